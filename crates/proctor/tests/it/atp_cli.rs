//! `proctor atp` from the outside: schemas, validation of messages, check of agents.

mod check_agent;
#[path = "../../../wire/tests/it/atp/examples.rs"]
mod examples;
mod validate;

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Runs `proctor atp` with this text on standard input.
fn atp(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(crate::support::binary())
        .arg("atp")
        .args(arguments)
        .env("PROCTOR_AGENT", "not-read")
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(input.as_bytes());
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn schemas_are_those_of_the_repository() {
    for (name, file) in [
        ("request", include_str!("../../../../schemas/atp/v1/request.schema.json")),
        ("response", include_str!("../../../../schemas/atp/v1/response.schema.json")),
        ("event", include_str!("../../../../schemas/atp/v1/event.schema.json")),
        ("suite", include_str!("../../../../schemas/atp/v1/suite.schema.json")),
    ] {
        let output = atp(&["schema", name], "");
        assert!(output.status.success());
        assert_eq!(json(&output), serde_json::from_str::<Value>(file).unwrap(), "{name}");
    }
    let proto = String::from_utf8(atp(&["proto"], "").stdout).unwrap();
    assert!(proto.contains("package proctor.atp.v1;") && proto.contains("rpc ExecuteStream"), "{proto}");
    assert_eq!(json(&atp(&["proto", "--json"], ""))["proto"].as_str().unwrap().trim_end(), proto.trim_end());
    assert_eq!(atp(&["schema", "nonsense"], "").status.code(), Some(1));
}
