//! `proctor init`, `audit`, `session`, `approve`, `names` and `completion` from the outside.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use crate::support::{Folder, Gate, lines, text};
use proctor_core::json::Json;

const POLICY: &str = r#"
version: "1"
default: deny
tools:
  shell: { allow: true }
rules:
  - { id: deploys, when: action.tool == "deploy", then: ask, expires: 1h, reason: Deploying needs a person. }
"#;

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn printed(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// A folder whose ledger has two sessions of two agents, an approval that waits, and a body that is easy to find.
fn populated() -> Folder {
    let folder = Folder::with_approver(POLICY);
    let input = r#"{"tool":"bash","args":{"command":"ls needle-in-a-body"},"session":"s1","agent":"coder"}
{"tool":"bash","args":{"command":"pwd"},"session":"s1","agent":"coder"}
{"tool":"unknown","session":"s2","agent":"helper"}
{"tool":"deploy","args":{"to":"prod"},"session":"s2","agent":"helper"}
{"observation":{"code":"response","data":"done"},"session":"s1","agent":"coder"}
"#;
    let output = folder.run_with(&["gate"], input);
    assert_eq!(lines(&output).len(), 5, "{}", said(&output));
    folder
}

fn records(folder: &Folder, args: &[&str]) -> Vec<Json> {
    let mut all = vec!["audit", "tail", "--json"];
    all.extend(args);
    folder.json(&all)
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// The sequence of the record of this kind that is newest.
fn newest(folder: &Folder, kind: &str) -> String {
    records(folder, &["--kind", kind, "-n", "1"])[0].get("seq").unwrap().to_string()
}

#[test]
fn init_makes_keys_for_their_owner_alone_and_names_them() {
    let folder = Folder { dir: tempfile::tempdir().unwrap() };
    std::fs::create_dir_all(folder.path("")).unwrap();
    let output = folder.run(&["init", "--approver", "ann"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let credential = folder.dir.path().join("config/proctor/approver.key");
    let report = folder.json(&["init", "--json"]).remove(0);
    let state = std::path::PathBuf::from(text(&report, "state"));
    assert!(state.starts_with(folder.dir.path().join("states/proctor")), "outside of the folder");
    for key in [state.join("ledger.key"), state.join("digest.key"), credential.clone()] {
        assert_eq!(mode(&key), 0o600, "{}", key.display());
    }
    assert_eq!(mode(&state), 0o700);
    let key: proctor_ledger::keys::VerifierKey = text(&report, "ledger").parse().unwrap();
    assert!(printed(&output).contains(&format!("ledger    {key}")), "{}", printed(&output));
    assert!(printed(&output).contains("approver  ann+"));
    assert_eq!(text(&report, "credential"), credential.display().to_string());
    // A second time nothing is made anew and nothing is lost.
    let before = std::fs::read(state.join("ledger.key")).unwrap();
    folder.write("policy.yaml", POLICY);
    assert_eq!(folder.run(&["init"]).status.code(), Some(0));
    assert_eq!(std::fs::read(state.join("ledger.key")).unwrap(), before);
    assert_eq!(std::fs::read_to_string(folder.path("policy.yaml")).unwrap(), POLICY);
    // Where agents work is no place for the key that approves.
    for inside in ["approver.key", ".proctor/approver.key"] {
        let refused = folder.run(&["init", "--credential", inside]);
        assert_eq!(refused.status.code(), Some(1));
        assert!(said(&refused).contains("where agents work"), "{}", said(&refused));
        assert!(!folder.path(inside).exists());
    }
}

#[test]
fn a_bundle_is_verified_as_far_as_its_signer_is_known() {
    let folder = populated();
    let export = folder.run(&["audit", "export", "-o", "whole"]);
    assert_eq!(export.status.code(), Some(0), "{}", said(&export));
    let unknown = folder.run(&["audit", "verify", "whole"]);
    assert_eq!(unknown.status.code(), Some(13));
    assert!(printed(&unknown).contains("signer unknown"), "{}", printed(&unknown));

    let key = text(&folder.json(&["init", "--json"])[0], "ledger").to_owned();
    folder.write("trust", &format!("# ours\nlog {key}\n"));
    let known = folder.run(&["audit", "verify", "whole", "--trust", "trust", "--json"]);
    assert_eq!(known.status.code(), Some(0), "{}", said(&known));
    let report = lines(&known).remove(0);
    assert_eq!((text(&report, "verdict"), text(&report, "signer")), ("verified", key.as_str()), "{report}");
    assert_eq!(report.pointer("/derivation/same").and_then(Json::as_u64), Some(4), "{report}");

    let other = Folder::with_approver(POLICY);
    let other_key = text(&other.json(&["init", "--json"])[0], "ledger").to_owned();
    folder.write("strangers", &format!("log {other_key}\n"));
    let stranger = folder.run(&["audit", "verify", "whole", "--trust", "strangers"]);
    assert_eq!(stranger.status.code(), Some(12));
    assert!(said(&stranger).contains("is not trusted"), "{}", said(&stranger));
    for (bundle, trust, code) in
        [("whole", "nowhere", 1), ("nowhere", "trust", 1), ("policy.yaml", "trust", 12)]
    {
        assert_eq!(
            folder.run(&["audit", "verify", bundle, "--trust", trust]).status.code(),
            Some(code),
            "{bundle} {trust}"
        );
    }
    folder.write("trust-with-a-slip", "lgo x\n");
    assert_eq!(
        folder.run(&["audit", "verify", "whole", "--trust", "trust-with-a-slip"]).status.code(),
        Some(1)
    );

    let part = folder.run(&["audit", "export", "--session", "s2", "-o", "part", "--json"]);
    let part_size = lines(&part)[0].get("records").and_then(Json::as_u64).unwrap();
    assert!(part_size < report.get("records").and_then(Json::as_u64).unwrap(), "{}", printed(&part));
    let verified = folder.run(&["audit", "verify", "part", "--trust", "trust", "--json"]);
    assert_eq!(verified.status.code(), Some(0), "{}", said(&verified));
    let report = lines(&verified).remove(0);
    assert_eq!(
        report.pointer("/derivation/same").and_then(Json::as_u64),
        Some(2),
        "the policy came along: {report}"
    );
    let plain = folder.run(&["audit", "verify", "part", "--trust", "trust", "--json", "--no-derivation"]);
    assert!(lines(&plain)[0].get("derivation").is_none());
    let none = folder.run(&["audit", "export", "--kind", "gap", "-o", "empty"]);
    assert_eq!((none.status.code(), folder.path("empty").exists()), (Some(1), false), "{}", said(&none));
}

/// Has the witness cosign while a gate owns the ledger.
fn witness(folder: &Folder, at: &Path) -> Output {
    let mut gate = Gate::start(folder, &[]);
    gate.ask(r#"{"tool":"bash","args":{"command":"true"}}"#);
    let output = folder.run(&[
        "audit",
        "witness",
        "--witness",
        at.to_str().unwrap(),
        "--name",
        "example.com/w",
        "--json",
    ]);
    gate.end();
    output
}

fn copy_state(from: &Path, to: &Path) {
    std::fs::create_dir_all(to.join("run")).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
        }
    }
}

#[test]
fn a_witness_cosigns_what_continues_and_refuses_what_does_not() {
    let folder = populated();
    let at = folder.dir.path().join("witness");
    let first = witness(&folder, &at);
    assert_eq!(first.status.code(), Some(0), "{}", said(&first));
    assert_eq!(mode(&at.join("witness.key")), 0o600);
    let old_state = folder.dir.path().join("older");
    copy_state(&folder.state(), &old_state);

    folder.run_with(&["gate"], &"{\"tool\":\"bash\",\"args\":{\"command\":\"ls\"}}\n".repeat(10));
    let second = witness(&folder, &at);
    assert_eq!(second.status.code(), Some(0), "{}", said(&second));
    let cosigned = lines(&second).remove(0);
    folder.write(
        "trust",
        &format!("log {}\nwitness {}\n", text(&cosigned, "ledger"), text(&cosigned, "witness")),
    );
    folder.run(&["audit", "export", "-o", "witnessed"]);
    let verified = folder.run(&["audit", "verify", "witnessed", "--trust", "trust", "--json"]);
    assert_eq!(verified.status.code(), Some(0), "{}", said(&verified));
    assert_eq!(lines(&verified)[0].get("witnesses").unwrap().to_string(), r#"["example.com/w"]"#);

    // Somebody puts an older copy in place: smaller than what was seen, and later another history of the same length.
    std::fs::rename(folder.state(), folder.dir.path().join("genuine")).unwrap();
    copy_state(&old_state, &folder.state());
    let seen = std::fs::read(at.join("seen")).unwrap();
    let smaller = witness(&folder, &at);
    assert_eq!(smaller.status.code(), Some(12), "{}", printed(&smaller));
    assert!(said(&smaller).contains("the witness refuses"), "{}", said(&smaller));
    folder.run_with(&["gate"], &"{\"tool\":\"unknown\"}\n".repeat(30));
    let forked = witness(&folder, &at);
    assert_eq!(forked.status.code(), Some(12), "{}", printed(&forked));
    assert_eq!(std::fs::read(at.join("seen")).unwrap(), seen, "a refusal changes nothing");
    folder.run(&["audit", "export", "-o", "forked"]);
    let unwitnessed = folder.run(&["audit", "verify", "forked", "--trust", "trust"]);
    assert_eq!(unwitnessed.status.code(), Some(12), "{}", printed(&unwitnessed));

    // The genuine one is still welcome, also when no gate runs.
    std::fs::remove_dir_all(folder.state()).unwrap();
    std::fs::rename(folder.dir.path().join("genuine"), folder.state()).unwrap();
    let again = folder.run(&["audit", "witness", "--witness", at.to_str().unwrap()]);
    assert_eq!(again.status.code(), Some(0), "{}", said(&again));
    assert!(
        printed(&again).contains(&format!("witness {}", text(&cosigned, "witness"))),
        "{}",
        printed(&again)
    );
    // Another ledger is not the one that this witness knows.
    let other = populated();
    assert_eq!(witness(&other, &at).status.code(), Some(12));
}

#[test]
fn a_record_is_proven_by_sequence_or_by_id() {
    let folder = populated();
    let record = records(&folder, &["--kind", "decision", "-n", "1"]).remove(0);
    let by_sequence = folder.run(&["audit", "prove", &record.get("seq").unwrap().to_string()]);
    let by_id = folder.run(&["audit", "prove", text(&record, "id")]);
    assert_eq!(by_sequence.status.code(), Some(0), "{}", said(&by_sequence));
    assert_eq!(printed(&by_sequence), printed(&by_id));
    let proven = proctor_ledger::bundle::verify_proof(&printed(&by_id), None).unwrap();
    assert_eq!(Some(proven.seq), record.get("seq").and_then(Json::as_u64));
    let check = |proof: &str, args: &[&str]| {
        let mut all = vec!["audit", "prove", "--check"];
        all.extend(args);
        folder.run_with(&all, proof)
    };
    let key = text(&folder.json(&["init", "--json"])[0], "ledger").to_owned();
    folder.write("trust", &format!("log {key}\n"));
    let proof = printed(&by_id);
    let known = check(&proof, &["--trust", "trust"]);
    assert_eq!(known.status.code(), Some(0), "{}", said(&known));
    assert!(printed(&known).contains(text(&record, "id")), "{}", printed(&known));
    assert_eq!(check(&proof, &[]).status.code(), Some(13));
    let index = format!("index {}", record.get("seq").unwrap());
    for forged in [
        proof.replace(&index, "index 0"),
        proof.replacen("hash ", "hash A", 1),
        proof.replacen("leaf e", "leaf f", 1),
        String::new(),
    ] {
        let refused = check(&forged, &["--trust", "trust"]);
        assert_eq!(
            (refused.status.code(), refused.stdout.is_empty()),
            (Some(12), true),
            "{forged}: {}",
            said(&refused)
        );
    }
    for (name, problem) in [
        ("99", "not in the checkpoint"),
        ("x", "neither a sequence"),
        ("01a1e148-2bc6-7ed1-89e7-033627e5c99a", "no record"),
    ] {
        let refused = folder.run(&["audit", "prove", name]);
        assert_eq!(refused.status.code(), Some(1), "{name}");
        assert!(said(&refused).contains(problem), "{name}: {}", said(&refused));
    }
}

#[test]
fn the_ledger_is_proven_to_continue_an_earlier_one() {
    let folder = populated();
    let export = folder.json(&["audit", "export", "-o", "early", "--json"]).remove(0);
    let size = export.get("size").unwrap().to_string();
    folder.run_with(&["gate"], &"{\"tool\":\"bash\",\"args\":{\"command\":\"ls\"}}\n".repeat(20));
    let output = folder.run(&["audit", "prove", "--consistency", &size]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let proven = proctor_ledger::bundle::verify_consistency_proof(&printed(&output), None).unwrap();
    assert_eq!(proven.old.size.to_string(), size);
    assert!(proven.new.size > proven.old.size);
    let checked = folder.run_with(&["audit", "prove", "--check"], &printed(&output));
    assert_eq!(checked.status.code(), Some(13), "{}", said(&checked));
    assert!(printed(&checked).contains("continue"), "{}", printed(&checked));
    let forged = printed(&output).replacen("hash ", "hash A", 1);
    assert_eq!(folder.run_with(&["audit", "prove", "--check"], &forged).status.code(), Some(12));
    let never = folder.run(&["audit", "prove", "--consistency", "3"]);
    assert_eq!(never.status.code(), Some(1));
    assert!(said(&never).contains("no checkpoint of 3 records"), "{}", said(&never));
}

/// Whether any file of the state directory holds these bytes.
fn on_disk(folder: &Folder, needle: &[u8]) -> bool {
    std::fs::read_dir(folder.state()).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        path.is_file() && std::fs::read(path).unwrap().windows(needle.len()).any(|window| window == needle)
    })
}

#[test]
fn what_is_erased_is_gone_and_the_ledger_still_stands() {
    let folder = populated();
    let needle = b"needle-in-a-body";
    assert!(on_disk(&folder, needle), "the body is there before");
    let record = records(&folder, &["--kind", "decision"]).remove(0);
    let output = folder.run(&["audit", "erase", text(&record, "id"), "--reason", "asked for", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(!on_disk(&folder, needle), "the body is gone from every file");
    let twice = folder.run(&["audit", "erase", text(&record, "id"), "--reason", "again"]);
    assert_eq!(twice.status.code(), Some(1));
    assert!(said(&twice).contains("erased already"), "{}", said(&twice));
    let fsck = folder.run(&["audit", "fsck"]);
    assert_eq!((fsck.status.code(), printed(&fsck).as_str()), (Some(0), "no damage found\n"));
    let (report, code) = folder.verify(None);
    assert_eq!(code, 13);
    let number = |path: &str| report.pointer(path).and_then(Json::as_u64).unwrap();
    assert_eq!(
        (number("/derivation/same"), number("/derivation/different"), number("/derivation/undecidable")),
        (3, 0, 1)
    );
    assert_eq!(number("/erased"), 1);
    let erasure = records(&folder, &["--kind", "erasure"]).remove(0);
    assert_eq!(erasure.get("links").unwrap().to_string(), format!("[{}]", record.get("seq").unwrap()));
    let session = folder.json(&["session", "show", "s1", "--json"]);
    let shown = session.iter().find(|shown| text(shown, "id") == text(&record, "id")).unwrap();
    assert_eq!(shown.get("erased"), Some(&Json::Bool(true)), "{shown}");
    assert_eq!(folder.run(&["audit", "erase", "99", "--reason", "x"]).status.code(), Some(1));
    assert_eq!(folder.run(&["audit", "erase", "2"]).status.code(), Some(1), "a reason is needed");
}

#[test]
fn fsck_tells_what_is_damaged_and_what_to_do() {
    let folder = populated();
    assert_eq!(folder.run(&["audit", "fsck", "--json"]).status.code(), Some(0));
    let database = folder.state().join("ledger.db");
    let connection = rusqlite::Connection::open(&database).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    let mut bytes = std::fs::read(&database).unwrap();
    let needle = b"needle-in-a-body";
    let at = bytes.windows(needle.len()).position(|window| window == needle).unwrap();
    bytes[at] = b'N';
    std::fs::write(&database, bytes).unwrap();
    let output = folder.run(&["audit", "fsck", "--json"]);
    assert_eq!(output.status.code(), Some(12));
    let findings = lines(&output);
    assert_eq!(
        findings.iter().map(|finding| text(finding, "code")).collect::<Vec<_>>(),
        ["body-digest"],
        "{findings:?}"
    );
    for member in ["what", "where", "advice"] {
        assert!(!text(&findings[0], member).is_empty(), "{member}");
    }
    let for_people = folder.run(&["audit", "fsck"]);
    assert_eq!(for_people.status.code(), Some(12));
    assert!(printed(&for_people).contains("body-digest"), "{}", printed(&for_people));
    // Somebody else's key does not fit this ledger.
    let other = populated();
    std::fs::copy(populated().state().join("ledger.key"), other.state().join("ledger.key")).unwrap();
    assert_eq!(other.run(&["audit", "fsck"]).status.code(), Some(12));
}

#[test]
fn tail_shows_the_newest_records_that_fit() {
    let folder = populated();
    let all = records(&folder, &["-n", "100"]);
    let sequences: Vec<u64> =
        all.iter().map(|record| record.get("seq").and_then(Json::as_u64).unwrap()).collect();
    assert_eq!(sequences, (0..all.len() as u64).collect::<Vec<_>>(), "in order, none left out");
    assert_eq!(records(&folder, &["-n", "3"]), all[all.len() - 3..]);
    let fitting = |args: &[&str]| records(&folder, args).len();
    let of = |name: &str, value: &str| all.iter().filter(|record| text(record, name) == value).count();
    assert_eq!(fitting(&["--kind", "decision"]), 4);
    assert_eq!(fitting(&["--of-agent", "helper"]), of("agent", "helper"));
    assert_eq!(fitting(&["--session", "s1", "--kind", "decision"]), 2);
    let principal = format!("uid:{}", rustix::process::getuid().as_raw());
    assert_eq!(fitting(&["--principal", &principal]), of("principal", &principal));
    assert_eq!(fitting(&["--principal", "uid:12345"]), 0);
    assert_eq!(fitting(&["--from", "2", "--to", "5"]), 3);
    assert_eq!(fitting(&["--since", "2000-01-01T00:00:00Z", "-n", "100"]), all.len());
    assert_eq!(fitting(&["--until", "2000-01-01T00:00:00Z"]), 0);
    assert_eq!(printed(&folder.run(&["audit", "tail", "-n", "100"])).lines().count(), all.len());
    for args in
        [&["--kind", "decison"][..], &["--since", "yesterday"], &["--session", "nobody"], &["-n", "x"]]
    {
        let mut wrong = vec!["audit", "tail"];
        wrong.extend(args);
        let output = folder.run(&wrong);
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(1), true), "{args:?}");
    }
}

/// A command that goes on, and its lines.
fn going_on(folder: &Folder, args: &[&str]) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut child = folder.command(args).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    (child, lines)
}

#[test]
fn tail_and_watch_go_on_as_records_come() {
    let folder = populated();
    let (mut tail, mut followed) =
        going_on(&folder, &["audit", "tail", "--follow", "--json", "-n", "1", "--kind", "decision"]);
    let first = Json::parse(followed.next().unwrap().as_bytes()).unwrap();
    assert_eq!(text(&first, "tool"), "deploy", "{first}");
    let (mut watch, mut watched) = going_on(&folder, &["approve", "watch", "--json"]);
    let mut gate = Gate::start(&folder, &[]);
    // What the watcher sees begins when it is there; so it is asked until it is.
    let (sender, seen) = std::sync::mpsc::sync_channel(1);
    let watching = std::thread::spawn(move || sender.send(watched.next().unwrap()));
    let mut asked = Vec::new();
    let line = loop {
        gate.ask(r#"{"tool":"bash","args":{"command":"true"}}"#);
        asked.push(gate.ask(&format!(r#"{{"tool":"deploy","args":{{"n":{}}}}}"#, asked.len())));
        if let Ok(line) = seen.recv_timeout(std::time::Duration::from_millis(300)) {
            break line;
        }
        assert!(asked.len() < 100, "nothing was shown");
    };
    watching.join().unwrap().unwrap();
    let shown = Json::parse(line.as_bytes()).unwrap();
    assert!(asked.iter().any(|answer| text(answer, "approval_id") == text(&shown, "approval")), "{shown}");
    for expected in ["shell", "deploy"] {
        let record = Json::parse(followed.next().unwrap().as_bytes()).unwrap();
        assert_eq!(text(&record, "tool"), expected);
    }
    gate.end();
    for child in [&mut tail, &mut watch] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn sessions_are_listed_and_shown_by_any_of_their_names() {
    let folder = populated();
    let listed = folder.json(&["session", "list", "--json"]);
    let names: Vec<(&str, &str)> =
        listed.iter().map(|session| (text(session, "claimed"), text(session, "agent"))).collect();
    assert_eq!(names, [("s2", "helper"), ("s1", "coder")], "the one that acted last comes first");
    let numbers = |name: &str| {
        listed.iter().map(|session| session.get(name).unwrap().as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(
        (numbers("let_through"), numbers("denied"), numbers("asked")),
        (vec![0, 2], vec![1, 0], vec![1, 0])
    );
    assert_eq!(folder.json(&["session", "list", "--json", "--limit", "1"]).len(), 1);
    assert!(printed(&folder.run(&["session", "list"])).starts_with("SESSION"));

    let id = text(&listed[1], "session_id");
    let by_id = folder.json(&["session", "show", id, "--json"]);
    assert_eq!(by_id, folder.json(&["session", "show", "s1", "--json"]));
    assert_eq!(by_id, folder.json(&["session", "show", &id[..id.len() - 2], "--json"]));
    assert_eq!(by_id.len(), 4, "its beginning, two decisions, an observation");
    let trace = folder.json(&["session", "show", "s1", "--trace"]).remove(0);
    assert_eq!(text(&trace, "trace_id"), id);
    let steps = trace.get("steps").and_then(Json::as_array).unwrap();
    assert_eq!(
        steps.iter().map(|step| text(step, "name")).collect::<Vec<_>>(),
        ["shell", "shell"],
        "{trace}"
    );
    assert_eq!(steps[1].get("args").unwrap().to_string(), r#"{"command":"pwd"}"#);
    let denied = folder.json(&["session", "show", "s2", "--trace"]).remove(0);
    assert_eq!(denied.pointer("/metadata/denied/0/tool").and_then(Json::as_str), Some("unknown"), "{denied}");
    assert!(
        printed(&folder.run(&["session", "show", "s1"])).contains("needle-in-a-body"),
        "what it was about"
    );
    assert_eq!(trace.pointer("/output/message").and_then(Json::as_str), Some("done"));
    let refused = folder.run(&["session", "show", "nobody"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(said(&refused).contains("proctor session list"), "{}", said(&refused));
    // Two agents call their sessions the same: then the name alone does not say which.
    folder.run_with(&["gate"], "{\"tool\":\"x\",\"session\":\"s1\",\"agent\":\"other\"}\n");
    let several = folder.run(&["session", "show", "s1"]);
    assert_eq!(several.status.code(), Some(1));
    assert!(said(&several).contains("several sessions") && said(&several).contains(id), "{}", said(&several));
}

#[test]
fn approvals_are_listed_shown_and_decided_once() {
    let folder = populated();
    let waiting = folder.json(&["approve", "list", "--json"]);
    assert_eq!(waiting.len(), 1);
    let id = text(&waiting[0], "approval_id").to_owned();
    assert_eq!(
        (text(&waiting[0], "status"), text(&waiting[0], "tool"), text(&waiting[0], "rule")),
        ("waiting", "deploy", "deploys")
    );
    let shown = folder.json(&["approve", "show", &id[..id.len() - 3], "--json"]).remove(0);
    assert_eq!(
        (text(&shown, "approval_id"), text(&shown, "reason")),
        (id.as_str(), "Deploying needs a person."),
        "{shown}"
    );
    assert_eq!(shown.pointer("/action/args/to").and_then(Json::as_str), Some("prod"), "{shown}");
    let for_people = printed(&folder.run(&["approve", "show", &id]));
    assert!(for_people.contains(r#"args = {"to":"prod"}"#), "{for_people}");
    assert!(
        for_people.contains("status    waiting") && for_people.contains("rule      deploys"),
        "{for_people}"
    );
    let allowed = folder.json(&["approve", "allow", &id, "--reason", "fine", "--json"]).remove(0);
    assert_eq!((text(&allowed, "verdict"), text(&allowed, "approver")), ("allow", "ann"), "{allowed}");
    assert!(folder.json(&["approve", "list", "--json"]).is_empty());
    let all = folder.json(&["approve", "list", "--all", "--json"]);
    assert_eq!((text(&all[0], "status"), text(&all[0], "decided_by")), ("granted", "approver:ann"));
    for args in [&["approve", "deny", &id][..], &["approve", "show", "01"], &["approve", "allow", "nonsense"]]
    {
        let output = folder.run(args);
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(1), true), "{args:?}");
    }
    let long = folder.run(&["approve", "deny", &id, "--reason", &"x".repeat(100_000)]);
    assert_eq!(long.status.code(), Some(1));
}

#[test]
fn links_are_made_and_a_file_in_the_way_stays() {
    let folder = Folder::with_policy(POLICY);
    let report = folder.json(&["names", "links", "--json"]).remove(0);
    let links = report.get("links").and_then(Json::as_array).unwrap();
    assert!(!links.is_empty());
    for link in links {
        let path = folder.path(link.as_str().unwrap());
        let version = if path.ends_with("attest-engine") { "version" } else { "--version" };
        let output = std::process::Command::new(&path).arg(version).output().unwrap();
        assert!(output.status.success(), "{}", path.display());
    }
    assert_eq!(folder.run(&["names", "links"]).status.code(), Some(0), "a second time is fine");
    std::fs::remove_file(folder.path("links/proctor")).unwrap();
    folder.write("links/proctor", "mine");
    let refused = folder.run(&["names", "links"]);
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(
        std::fs::read_to_string(folder.path("links/proctor")).unwrap(),
        "mine",
        "what is not a link stays"
    );
}

#[test]
fn completions_are_printed_for_each_shell() {
    let folder = Folder::with_policy(POLICY);
    for (shell, mark) in
        [("bash", "complete -F _proctor"), ("zsh", "#compdef proctor"), ("fish", "complete -c proctor")]
    {
        let output = folder.run(&["completion", shell]);
        assert_eq!(output.status.code(), Some(0));
        assert!(printed(&output).contains(mark), "{shell}");
        assert!(output.stderr.is_empty());
    }
    // A reader who has seen enough is no reason to complain.
    let mut child = folder
        .command(&["completion", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), said(&output).as_str()), (Some(0), ""));
}

#[test]
fn with_json_every_line_of_every_command_is_json() {
    let folder = populated();
    let approval = text(&folder.json(&["approve", "list", "--json"])[0], "approval_id").to_owned();
    folder.write(
        "cases.yaml",
        "cases:\n  - { name: x, action: { tool: bash, args: { command: ls } }, expect: allow }\n",
    );
    let decision = newest(&folder, "decision");
    let commands = format!(
        "init|policy lint|policy check --tool bash --arg command=ls|policy check --record --tool bash --arg command=ls|\
         policy explain --tool bash --arg command=ls|policy test cases.yaml|policy scan|session list|session show s1|\
         session show s1 --trace|approve list|approve show {approval}|approve allow {approval}|audit tail|audit export -o all|\
         audit verify all|audit erase {decision} --reason x|audit bench --records 1000|names links"
    );
    for args in commands.split('|').map(words) {
        let mut all = args.clone();
        all.push("--json");
        let output = folder.run(&all);
        assert!(matches!(output.status.code(), Some(0 | 13)), "{args:?}: {}", said(&output));
        assert!(!lines(&output).is_empty(), "{args:?} said nothing");
    }
}

#[test]
fn wrong_arguments_are_exit_code_one_and_nothing_on_stdout() {
    let folder = populated();
    let commands = "init|gate|policy lint|policy check|policy explain|policy test|policy scan|policy schema|session list|session show|\
                    audit tail|audit export|audit verify|audit prove|audit fsck|audit erase|audit witness|audit bench|\
                    approve list|approve show|approve allow|approve deny|approve watch|names|completion";
    for command in commands.split('|').map(words) {
        let mut wrong = command.clone();
        wrong.push("--no-such-flag");
        let output = folder.run(&wrong);
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(1), true), "{wrong:?}");
        assert!(said(&output).contains("--no-such-flag"), "{wrong:?}: {}", said(&output));
        let mut help = command;
        help.push("--help");
        assert_eq!(folder.run(&help).status.code(), Some(0), "{help:?}");
    }
    let wrongly_called = "|polcy|policy|audit|approve|session|session show|audit verify|audit export|audit erase 1|audit prove|\
                          audit witness|approve allow|names|completion tcl|init --starter lax|audit tail --durability none|\
                          audit verify x --at-least -1|gate --answer-ms soon|audit tail --state nowhere|gate --policy nowhere";
    for wrong in wrongly_called.split('|').map(words) {
        let output = folder.run(&wrong);
        assert_eq!(
            (output.status.code(), output.stdout.is_empty()),
            (Some(1), true),
            "{wrong:?}: {}",
            printed(&output)
        );
        assert!(!output.stderr.is_empty(), "{wrong:?}");
    }
    folder.write("proctor.toml", "polcy = \"policy.yaml\"\n");
    let output = folder.run(&["audit", "tail"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("polcy"), "{}", said(&output));
}

/// The program as another user, who may read everything here and write nothing.
fn as_reader(folder: &Folder, program: &Path, args: &[&str]) -> Output {
    use std::os::unix::process::CommandExt;
    let mut command = std::process::Command::new(program);
    command
        .args(args)
        .current_dir(folder.path(""))
        .env_clear()
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null());
    if rustix::process::getuid().is_root() {
        command.uid(65534).gid(65534);
    }
    command.output().unwrap()
}

#[test]
fn a_state_directory_that_cannot_be_written_can_be_read() {
    let folder = populated();
    folder.run(&["audit", "export", "-o", "before"]);
    let mut program = folder.dir.path().join("program");
    // Copied by another process: a program that some process still has open for writing cannot be started.
    assert!(
        std::process::Command::new("cp")
            .arg(crate::support::binary())
            .arg(&program)
            .status()
            .unwrap()
            .success()
    );
    set_modes(folder.dir.path(), 0o555, 0o444);
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o555)).unwrap();
    program = program.canonicalize().unwrap();
    let commands = "audit tail|session list|session show s1|approve list|audit fsck|audit verify before --no-derivation|policy lint";
    for args in commands.split('|').map(words) {
        let output = as_reader(&folder, &program, &args);
        assert!(matches!(output.status.code(), Some(0 | 13)), "{args:?}: {}", said(&output));
        assert!(!output.stdout.is_empty(), "{args:?}");
    }
    let gate = as_reader(&folder, &program, &["policy", "check", "--record", "--tool", "bash"]);
    assert_eq!((gate.status.code(), gate.stdout.is_empty()), (Some(1), true), "{}", said(&gate));
    set_modes(folder.dir.path(), 0o755, 0o644);
}

fn set_modes(folder: &Path, folders: u32, files: u32) {
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).unwrap();
    let entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    for path in entries {
        if path.is_dir() {
            set_modes(&path, folders, files);
        } else {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(files)).unwrap();
        }
    }
    std::fs::set_permissions(folder, PermissionsExt::from_mode(folders)).unwrap();
}
