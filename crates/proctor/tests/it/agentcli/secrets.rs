//! Planted credentials: one in every field that can hold one. None is found in state, streams, answers, deliveries or command lines.

mod planted;

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

use proctor_engine::access::open_reader;
use proctor_ledger::reader::BodyState;
use proctor_ledger::store::{Filter, Order};

use super::place::{ALLOW, Place};
use crate::ahp_serve::server::{ANY_PORT, Server, until};
use crate::attest_hostile::vendor::Vendor;
use crate::support::binary;
use planted::{Needle, Planted};

/// Everything that left the program, by the name of the place where it was found.
#[derive(Default)]
struct Seen(Vec<(String, Vec<u8>)>);

impl Seen {
    fn add(&mut self, name: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.0.push((name.into(), bytes.into()));
    }

    fn output(&mut self, name: &str, output: &Output) {
        self.add(format!("standard output of {name}"), output.stdout.clone());
        self.add(format!("standard error of {name}"), output.stderr.clone());
    }

    /// Files below a folder.
    fn files(&mut self, folder: &Path) -> usize {
        let mut waiting = vec![folder.to_owned()];
        let mut count = 0;
        while let Some(path) = waiting.pop() {
            let kind = path.symlink_metadata().unwrap().file_type();
            if kind.is_dir() {
                waiting.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else if kind.is_file() {
                self.add(path.display().to_string(), std::fs::read(&path).unwrap());
                count += 1;
            }
        }
        count
    }

    /// Records of a ledger with their bodies.
    fn ledger(&mut self, state: &Path) -> usize {
        let reader = open_reader(state).unwrap();
        let mut count = 0;
        for record in reader.records(Filter::default(), Order::Ascending) {
            let record = record.unwrap();
            self.add(format!("record {}", record.seq), format!("{:?}", record.envelope));
            if let BodyState::Present { bytes, .. } = reader.body(record.seq).unwrap() {
                self.add(format!("body {}", record.seq), bytes);
                count += 1;
            }
        }
        count
    }

    fn holds(&self, needle: &Needle) -> Option<&str> {
        let found = self.0.iter().find(|(_, bytes)| needle.is_in(bytes))?;
        Some(&found.0)
    }
}

#[test]
fn no_planted_credential_leaves_a_run() {
    let deliveries = Vendor::start(|_| (200, "{}".to_owned()));
    let mut place = Place::with_policy(ALLOW);
    let hook = deliveries.url();
    place.write(
        "proctor.toml",
        &format!(
            "policy = \"policy.yaml\"\nstate = \"state\"\n[webhook]\nurl = \"{hook}\"\nevents = [\"audit.action\", \"approval.requested\", \"alert.triggered\", \"data.leak\", \"agent.status_changed\"]\n"
        ),
    );
    std::fs::copy(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/agentcli/secrets/emit.py"),
        place.path("emit.py"),
    )
    .unwrap();
    let planted = Arc::new(Planted::new());
    let answering = Arc::clone(&planted);
    let vendor = Vendor::start(move |asked| answering.answer(&asked.path, &asked.head));
    planted.put(&mut place, vendor.url().trim_end_matches("/v1"));
    let owner = Server::spawn(place.command(&binary(), &ANY_PORT));

    let mut seen = Seen::default();
    let mut emitted = 0;
    for task in planted::TASKS {
        let mut arguments = vec!["exec", "m.json", task.id, "--identity-debug", "--presentation-debug"];
        if task.id == "command" || task.id == "command-fails" {
            arguments.push("--allow-commands");
        }
        let output = place.run(&arguments);
        assert_eq!(output.status.success(), task.is_ok, "{}: {}", task.id, shown(&output));
        if task.is_ok && task.values > 0 {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains("[REDACTED]"), "{}: {text}", task.id);
            emitted += 1;
        }
        seen.output(task.id, &output);
    }
    // The tasks had their credentials, and wrote them.
    let written = std::fs::read_to_string(place.path("emitted")).unwrap();
    let expected: Vec<usize> =
        planted::TASKS.iter().filter(|task| task.is_ok).map(|task| task.values).collect();
    assert_eq!(written.lines().map(|line| line.parse().unwrap()).collect::<Vec<usize>>(), expected);
    assert!(emitted > 8);

    examine(&place, &mut seen);
    until("every run is delivered", || {
        let bodies: Vec<String> = deliveries.asked().iter().map(|(_, body)| body.to_string()).collect();
        let is_there =
            |task: &planted::Task| bodies.iter().any(|body| body.contains(&format!("\"w/{}\"", task.id)));
        planted::TASKS.iter().all(is_there).then_some(())
    });
    let (_, rest, said) = owner.end(rustix::process::Signal::TERM);
    seen.add("standard output of the owner", rest);
    seen.add("standard error of the owner", said);
    for (number, (head, body)) in deliveries.asked().into_iter().enumerate() {
        seen.add(format!("delivery {number}"), format!("{head}{body}"));
    }
    let state = place.path("state");
    assert!(seen.files(&state) > 5);
    assert!(seen.ledger(&state) > 3 * planted::TASKS.len());
    let lines = std::fs::read(place.path("command-lines")).unwrap();
    assert!(lines.windows(7).any(|part| part == b"emit.py"), "the tasks saw each other");
    seen.add("command lines of processes", lines);

    let leaks: Vec<String> = planted
        .needles()
        .iter()
        .filter_map(|needle| Some(format!("{} is in {}", needle.name, seen.holds(needle)?)))
        .collect();
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
}

/// Everything else that shows something of the manifest or of the runs.
fn examine(place: &Place, seen: &mut Seen) {
    let document = std::fs::read_to_string(place.path("m.json")).unwrap();
    let mut server = place.serve();
    for task in planted::TASKS {
        for method in [
            "identity.resolve",
            "identity.validateDelegation",
            "authorization.evaluate",
            "authorizationProof.verify",
        ] {
            let params = format!(r#"{{"manifest":{document},"taskId":"{}"}}"#, task.id);
            let reply = server.call(&format!("agentcli.{method}"), &params);
            seen.add(format!("{method} of {}", task.id), reply.to_string());
        }
    }
    for (method, more) in [
        ("validate", ""),
        ("compile", ""),
        ("compile", r#","target":"openclaw-scheduler""#),
        ("apply", r#","schedulerBin":"/does/not/exist""#),
    ] {
        let reply =
            server.call(&format!("agentcli.{method}"), &format!(r#"{{"manifest":{document}{more}}}"#));
        seen.add(format!("{method}{more}"), reply.to_string());
    }
    for (method, params) in [("audit", r#"{"limit":1000}"#), ("approvals.list", "{}")] {
        seen.add(method, server.call(&format!("agentcli.{method}"), params).to_string());
    }
    server.end();
    for arguments in [
        vec!["run", "m.json", "--root", "env"],
        vec!["exec", "m.json", "env", "--dry-run", "--identity-debug"],
        vec!["whoami", "m.json", "env"],
        vec!["compile", "m.json", "--explain"],
    ] {
        let output = place.run(&arguments);
        assert!(output.status.success(), "{arguments:?}: {}", shown(&output));
        seen.output(&arguments.join(" "), &output);
    }
    for arguments in [
        vec!["audit", "tail", "--json", "-n", "100000"],
        vec!["session", "list", "--json"],
        vec!["approve", "list", "--all", "--json"],
    ] {
        let output = place.proctor(&arguments);
        assert!(output.status.success(), "{arguments:?}: {}", shown(&output));
        seen.output(&arguments.join(" "), &output);
    }
}

fn shown(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The check finds what is there: otherwise the test above would show nothing.
#[test]
fn a_needle_is_found_in_every_form() {
    let place = Place::new();
    let planted = Planted::new();
    let needles = planted.needles();
    let needle = needles.iter().find(|needle| needle.name == "token_env").unwrap();
    let value = needle.value.clone();
    std::fs::copy(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/agentcli/secrets/emit.py"),
        place.path("emit.py"),
    )
    .unwrap();
    let output = place.command(&PathBuf::from("python3"), &["emit.py"]).env("P_X", value).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 8, "{text}");
    for line in lines {
        assert!(needle.is_in(line.as_bytes()), "{line}");
        assert!(!needle.is_in(&line.as_bytes()[..line.len() / 2]));
    }
}
