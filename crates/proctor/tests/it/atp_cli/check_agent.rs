//! `proctor atp check-agent`: good agents pass on every transport, and an agent with one flaw fails on its line.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{atp, json};

/// A server that ends with the test.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    /// Starts a program that prints its URL as its first line.
    fn start(program: &Path, arguments: &[&str]) -> Server {
        let mut child = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Server { child, url: url.trim().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Exit code, names of failed duties, and the whole report.
fn check(agent: &str) -> (i32, Vec<String>, String) {
    let output = atp(&["check-agent", agent, "--timeout", "20", "--json"], "");
    let report = json(&output);
    let failed = report["duties"].as_array().unwrap().iter().filter(|duty| duty["outcome"] == "fail");
    let failed = failed.map(|duty| duty["duty"].as_str().unwrap().to_owned()).collect();
    (output.status.code().unwrap(), failed, report.to_string())
}

fn flawed(flaw: &str) -> String {
    format!("stdio:python3 -SE {}/tests/it/atp_cli/agent.py {flaw}", env!("CARGO_MANIFEST_DIR"))
}

fn flawed_server(flaw: &str) -> Server {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/atp_cli/agent.py");
    Server::start(Path::new("python3"), &["-SE", script, flaw, "serve"])
}

/// The example agent of `proctor-clients`, which a run of all tests builds; built here if only this crate's tests run.
fn rust_agent() -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().to_owned();
    let program = folder.join("examples/atp_agent");
    if !program.exists() {
        let status = Command::new(env!("CARGO"))
            .args(["build", "--locked", "-p", "proctor", "-p", "proctor-clients", "--example", "atp_agent"])
            .args(["--features", "proctor-clients/all-transports"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .unwrap();
        assert!(status.success());
    }
    program
}

#[test]
fn the_example_agents_pass_on_every_transport() {
    let python = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/agents/minimal.py");
    let program = rust_agent();
    let http = Server::start(&program, &["http", "127.0.0.1:0"]);
    let websocket = Server::start(&program, &["websocket", "127.0.0.1:0"]);
    let grpc = Server::start(&program, &["grpc", "127.0.0.1:0"]);
    let stdio = format!("stdio:{} stdio", program.display());
    let python = format!("stdio:python3 {python}");
    for agent in [&python, &stdio, &http.url, &websocket.url, &grpc.url] {
        let (code, failed, report) = check(agent);
        assert_eq!((code, failed), (0, Vec::new()), "{agent}: {report}");
        assert!(report.contains(r#"stands in the description","outcome":"pass""#), "{report}");
    }
}

#[test]
fn an_agent_without_flaw_passes_over_stdio_and_http() {
    assert_eq!(check(&flawed("none")).0, 0);
    let server = flawed_server("none");
    let (code, failed, report) = check(&server.url);
    assert_eq!((code, failed), (0, Vec::new()), "{report}");
}

/// One agent for each duty that a program has.
#[test]
fn a_flaw_fails_on_its_own_line_and_on_no_other() {
    let flaws = [
        ("answers", "answers", "wrote nothing on standard output"),
        ("answers_twice", "answers", "second response"),
        ("version", "version", "the response has no `version`"),
        ("task_id", "task_id", "`another`"),
        ("status", "status", "`done` is not one of"),
        ("artifacts", "artifacts", "$.artifacts[0].path"),
        ("artifacts_size", "artifacts", "content has another size"),
        ("metrics", "metrics", "$.metrics.total_steps: must not be negative"),
        ("error_text", "error_text", "has no `error`"),
        ("events", "events", "$.timestamp: required member is missing"),
        ("event_order", "event_order", "sequence 0"),
        ("allowed_tools", "allowed_tools", "`shell`"),
        ("higher_minor", "higher_minor", "not version 1.0"),
        ("other_major", "other_major", "version 2.0: it answered `completed`"),
        ("unknown_members", "unknown_members", "an unknown member"),
        ("malformed_input", "malformed_input", "exited with status 1"),
        ("invalid_request", "invalid_request", "a request without `task`"),
        ("huge_input", "huge_input", "a request of 8 MiB: "),
        ("exit", "exit", "exited with status 3"),
        ("secrets", "secrets", "on standard error"),
        ("secrets_in_errors", "secrets", "in a response"),
        ("canary", "canary", "the file of the command was made"),
    ];
    // Two at a time: most of the time is that of interpreters starting.
    std::thread::scope(|scope| {
        for half in flaws.chunks(flaws.len().div_ceil(2)) {
            scope.spawn(move || {
                for (flaw, duty, reason) in half {
                    let (code, failed, report) = check(&flawed(flaw));
                    assert_eq!((code, failed), (10, vec![(*duty).to_owned()]), "{flaw}: {report}");
                    assert!(report.contains(&reason.replace('"', "\\\"")), "{flaw}: {report}");
                }
            });
        }
    });
}

/// One agent for each duty that only servers have.
#[test]
fn servers_have_duties_of_their_own() {
    let dying = flawed_server("recovers");
    let (code, failed, report) = check(&dying.url);
    assert_eq!(code, 10);
    assert!(failed.contains(&"recovers".to_owned()), "{report}");
    let confused = flawed_server("concurrent");
    let (code, failed, report) = check(&confused.url);
    assert_eq!((code, failed), (10, vec!["concurrent".to_owned()]), "{report}");
    let evaluating = flawed_server("canary");
    let (code, failed, report) = check(&evaluating.url);
    assert_eq!((code, failed), (10, vec!["canary".to_owned()]), "{report}");
}

#[test]
fn an_agent_that_hangs_is_ended_and_fails() {
    let output = atp(&["check-agent", &flawed("hangs"), "--timeout", "1"], "");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(10), "{text}");
    let line =
        "fail            refuses input that is no JSON object: text that is no JSON: no answer within 1 s\n";
    assert!(text.contains(line), "{text}");
    assert!(text.ends_with(" pass, 1 fail, 2 not applicable\n"), "{text}");
}

#[test]
fn a_secret_is_not_shown_although_the_agent_said_it() {
    let (_, _, report) = check(&flawed("secrets_in_errors"));
    // The value begins like this, and nothing else in a report does.
    assert!(!report.contains("check-"), "{report}");
}

#[test]
fn agents_that_cannot_be_checked_are_refused() {
    for (agent, reason) in [
        ("plain:cat", "a plain agent knows no protocol"),
        ("nop", "parts of Proctor"),
        ("reference", "parts of Proctor"),
        ("nonsense", "there is no agent `nonsense`"),
        ("stdio:", "has no command"),
    ] {
        let output = atp(&["check-agent", agent], "");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{agent}: {text}");
        assert!(text.contains(reason), "{agent}: {text}");
    }
    // An agent that is not there does not answer.
    let (code, failed, _) = check("stdio:no-such-program");
    assert_eq!((code, failed), (10, vec!["answers".to_owned()]));
    let (code, failed, report) = check("http://127.0.0.1:9");
    assert_eq!((code, failed), (10, vec!["answers".to_owned()]), "{report}");
}
