//! Nobody switches the guard off: ledgers that are taken away, weaker policies, settings that others can change, and state that is lost.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use crate::support::{Folder, Gate, lines, text};

const STRICT: &str = "version: \"1\"\ndefault: allow\nrules:\n  - { id: no-rm, when: 'action.commands.exists(c, c.startsWith(\"rm \"))', then: deny }\n";
const WEAK: &str = "version: \"1\"\ndefault: allow\n";
const RM: &str = r#"{"tool":"bash","args":{"command":"rm x"}}"#;
const LS: &str = r#"{"tool":"bash","args":{"command":"ls"}}"#;

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn decided(answer: &proctor_core::json::Json) -> (&str, &str) {
    (text(answer, "decision"), text(answer, "rule"))
}

/// The line of an action.
fn line(action: &str) -> String {
    format!("{action}\n")
}

fn empty() -> Folder {
    let folder = Folder { dir: tempfile::tempdir().unwrap() };
    std::fs::create_dir(folder.path("")).unwrap();
    folder
}

fn status(address: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

#[test]
fn a_gate_whose_ledger_is_removed_denies_and_says_so() {
    let folder = Folder::with_policy(WEAK);
    let mut gate = Gate::start(&folder, &[]);
    assert_eq!(decided(&gate.ask(LS)).0, "allow");
    std::fs::remove_dir_all(folder.state()).unwrap();
    for _ in 0..3 {
        let answer = gate.ask(LS);
        assert_eq!(decided(&answer), ("deny", "not-recorded"), "{answer}");
        assert!(text(&answer, "reason").contains("ledger.db` is gone"), "{answer}");
    }
    let (_, said) = gate.end();
    assert_eq!(said.matches("everything is denied").count(), 1, "{said}");
}

#[test]
fn a_server_whose_ledger_is_moved_away_is_not_healthy_until_it_is_back() {
    let folder = Folder::with_policy(WEAK);
    let mut child = folder
        .command(&["serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut announced = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut announced).unwrap();
    let announced = proctor_core::json::Json::parse(announced.as_bytes()).unwrap();
    let http = text(&announced, "http");
    assert_eq!(status(http), ("HTTP/1.1 200 OK".to_owned(), "ok\n".to_owned()));
    let (ledger, away) = (folder.state().join("ledger.db"), folder.state().join("away"));
    std::fs::rename(&ledger, &away).unwrap();
    let (head, body) = status(http);
    assert!(head.contains(" 503 ") && body.contains("is gone"), "{head} {body}");
    std::fs::rename(&away, &ledger).unwrap();
    assert!(status(http).0.contains(" 200 "));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let said = said(&child.wait_with_output().unwrap());
    assert!(said.contains("everything is denied"), "{said}");
}

#[test]
fn a_weaker_policy_waits_for_an_approver_through_restarts_and_while_a_gate_runs() {
    let folder = Folder::with_approver(STRICT);
    assert_eq!(decided(&lines(&folder.run_with(&["gate"], &line(RM)))[0]), ("deny", "no-rm"));
    folder.write("policy.yaml", WEAK);
    for _ in 0..2 {
        let output = folder.run_with(&["gate"], &line(RM));
        assert_eq!(decided(&lines(&output)[0]), ("deny", "no-rm"), "{}", said(&output));
    }
    // A file that is named on the command line is no way around it either.
    folder.write("other.yaml", WEAK);
    let output = folder.run_with(&["gate", "--policy", "other.yaml"], &line(RM));
    assert_eq!(decided(&lines(&output)[0]), ("deny", "no-rm"));

    let shown = folder.run(&["policy", "accept", "--dry-run"]);
    assert_eq!(shown.status.code(), Some(10), "{}", said(&shown));
    assert!(
        String::from_utf8_lossy(&shown.stdout).contains("weaker: `policy.yaml`: rule `no-rm` (deny) is gone")
    );
    let mut gate = Gate::start(&folder, &[]);
    assert_eq!(decided(&gate.ask(RM)), ("deny", "no-rm"));
    folder.write("eve.key", "");
    let refused = folder.run(&["policy", "accept", "--credential", "eve.key"]);
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(decided(&gate.ask(RM)), ("deny", "no-rm"));
    // Another gate that has read the weaker policy is served under the one in force.
    assert_eq!(decided(&lines(&folder.run_with(&["gate"], &line(RM)))[0]), ("deny", "no-rm"));
    let accepted = folder.run(&["policy", "accept"]);
    assert_eq!(accepted.status.code(), Some(0), "{}", said(&accepted));
    assert_eq!(decided(&gate.ask(RM)).0, "allow");
    gate.end();
    assert_eq!(decided(&lines(&folder.run_with(&["gate"], &line(RM)))[0]).0, "allow");
    let (report, code) = folder.verify(None);
    assert_eq!(code, 13, "the signer is unknown, and every decision derives again: {report}");
    let alarms = folder.json(&["audit", "tail", "--kind", "alarm", "--json"]);
    assert!(alarms.iter().all(|alarm| text(alarm, "code") == "policy_weaker"), "{alarms:?}");
    assert_eq!(alarms.len(), 2, "one for each weaker policy: {alarms:?}");
}

#[test]
fn settings_and_policies_that_other_users_can_change_are_refused() {
    let folder = Folder::with_policy(WEAK);
    for name in ["policy.yaml", "proctor.toml", ""] {
        let path = folder.path(name);
        let usual = std::fs::metadata(&path).unwrap().permissions();
        assert_eq!(folder.run_with(&["gate"], &line(LS)).status.code(), Some(0));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
        let output = folder.run_with(&["gate"], &line(LS));
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(said(&output).contains("chmod go-w") && output.stdout.is_empty(), "{}", said(&output));
        std::fs::set_permissions(&path, usual).unwrap();
    }
}

#[test]
fn a_ledger_that_the_settings_name_is_not_made_anew() {
    let folder = empty();
    let report = folder.json(&["init", "--json", "--approver", "ann"]).remove(0);
    let state = PathBuf::from(text(&report, "state"));
    assert!(!state.starts_with(folder.path("")), "git clean does not reach {}", state.display());
    assert_eq!(folder.run_with(&["gate"], &line(LS)).status.code(), Some(0));
    let away = folder.dir.path().join("away");
    std::fs::rename(&state, &away).unwrap();
    for command in [&["gate"][..], &["init"], &["serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]] {
        let output = folder.run(command);
        assert_eq!(output.status.code(), Some(1), "{command:?}");
        assert!(
            said(&output).contains("is not here") && said(&output).contains("--state"),
            "{}",
            said(&output)
        );
        assert!(!state.exists(), "{command:?}");
    }
    // Another ledger in its place is not that one; a directory that is named is made, as ever.
    assert_eq!(folder.run_with(&["gate", "--state", "other"], &line(LS)).status.code(), Some(0));
    std::fs::rename(folder.path("other"), &state).unwrap();
    assert!(said(&folder.run(&["gate"])).contains("the ledger is `proctor-"));
    std::fs::remove_dir_all(&state).unwrap();
    std::fs::rename(&away, &state).unwrap();
    std::fs::remove_file(state.join("ledger.db")).unwrap();
    assert!(said(&folder.run(&["gate"])).contains("`ledger.db` is not"));
}

fn content(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

#[test]
fn settings_without_the_name_of_their_ledger_get_it_from_init() {
    let folder = empty();
    assert_eq!(folder.run(&["init"]).status.code(), Some(0));
    let settings = std::fs::read_to_string(folder.path("proctor.toml")).unwrap();
    let without: String =
        settings.lines().filter(|line| !line.starts_with("origin")).map(|line| format!("{line}\n")).collect();
    folder.write("proctor.toml", &format!("{without}[http]\n"));
    std::fs::set_permissions(folder.path("proctor.toml"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let output = folder.run(&["init"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let again = std::fs::read_to_string(folder.path("proctor.toml")).unwrap();
    let line = |text: &str, key: &str| text.lines().find(|line| line.starts_with(key)).map(str::to_owned);
    assert_eq!(line(&again, "origin"), line(&settings, "origin"), "{again}");
    assert!(again.ends_with("[http]\n") && !folder.path(".proctor").exists(), "{again}");
    let mode = std::fs::metadata(folder.path("proctor.toml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn an_init_that_fails_leaves_nothing() {
    for arguments in [&["--approver", "ann b"][..], &["--credential", "approver.key"]] {
        let folder = empty();
        let output = folder.run(&[&["init"][..], arguments].concat());
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(content(folder.dir.path()), [folder.dir.path().join("work")], "{arguments:?}");
        assert_eq!(content(&folder.path("")), Vec::<PathBuf>::new(), "{arguments:?}");
        // What was there stays.
        folder.write("policy.yaml", WEAK);
        std::fs::create_dir(folder.path("state")).unwrap();
        folder.write("state/mine", "");
        assert_eq!(
            folder.run(&[&["init", "--state", "state"][..], arguments].concat()).status.code(),
            Some(1)
        );
        assert_eq!(content(&folder.path("")), [folder.path("policy.yaml"), folder.path("state")]);
        assert_eq!(content(&folder.path("state")), [folder.path("state/mine")]);
    }
}

#[test]
fn init_says_what_it_keeps_and_refuses_a_folder_below_one_with_settings() {
    let folder = empty();
    folder.write("policy.yaml", WEAK);
    let output = folder.run(&["init", "--state", ".proctor"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("kept ")
            && folder.state().join("ledger.db").exists()
    );
    assert_eq!(std::fs::read_to_string(folder.path("policy.yaml")).unwrap(), WEAK);
    assert!(std::fs::read_to_string(folder.path("proctor.toml")).unwrap().contains("state = \".proctor\""));
    std::fs::create_dir(folder.path("below")).unwrap();
    let refused = folder.command(&["init"]).current_dir(folder.path("below")).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(said(&refused).contains("proctor.toml holds for this folder too"), "{}", said(&refused));
    assert_eq!(content(&folder.path("below")), Vec::<PathBuf>::new());
}
