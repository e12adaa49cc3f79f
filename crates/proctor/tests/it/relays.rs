//! Processes that share a state directory: answers that do not arrive, owners that hang, lost keys and ledgers.

use std::time::{Duration, Instant};

use crate::support::{Folder, Gate, stop_process, text};
use proctor_core::json::Json;

const ASKS: &str = "version: \"1\"\ndefault: allow\nrules:\n  - { id: deploys, when: 'action.tool == \"deploy\"', then: ask, expires: 1h }\n";
const DEPLOY: &str = r#"{"tool":"deploy","args":{"to":"prod"},"session":"s"}"#;
const LIST: &str = r#"{"tool":"bash","args":{"command":"ls"},"session":"s"}"#;

fn pid(gate: &Gate) -> rustix::process::Pid {
    rustix::process::Pid::from_raw(gate.child.id().cast_signed()).unwrap()
}

fn resume(gate: &Gate) {
    rustix::process::kill_process(pid(gate), rustix::process::Signal::CONT).unwrap();
}

fn is_sound(folder: &Folder) {
    let fsck = folder.run(&["audit", "fsck"]);
    assert!(fsck.status.success(), "{}", String::from_utf8_lossy(&fsck.stdout));
    let (report, _) = folder.verify(None);
    assert_eq!(report.pointer("/derivation/different").unwrap().as_u64(), Some(0), "{report}");
}

#[test]
fn a_decision_that_does_not_reach_a_relay_is_retracted_and_its_grant_stays() {
    let folder = Folder::with_approver(ASKS);
    let mut owner = Gate::start(&folder, &[]);
    owner.ask(LIST);
    let mut relay = Gate::start(&folder, &["--answer-ms", "500"]);
    let asked = relay.ask(DEPLOY);
    assert_eq!(text(&asked, "decision"), "ask", "{asked}");
    assert!(folder.run(&["approve", "allow", text(&asked, "approval_id")]).status.success());
    stop_process(pid(&owner));
    let missing = relay.ask(DEPLOY);
    assert_eq!((text(&missing, "decision"), text(&missing, "rule")), ("deny", "not-recorded"), "{missing}");
    assert!(text(&missing, "reason").contains("did not answer within"), "{missing}");
    resume(&owner);
    // The owner now decides what nobody waits for any more, or does not; either way the grant is there.
    let mut used = relay.ask(DEPLOY);
    let deadline = Instant::now() + Duration::from_secs(30);
    while text(&used, "rule") == "not-recorded" && Instant::now() < deadline {
        used = relay.ask(DEPLOY);
    }
    assert_eq!(text(&used, "decision"), "allow", "{used}");
    assert_eq!(relay.end().0, 0);
    assert_eq!(owner.end().0, 0);
    let all = folder.json(&["audit", "tail", "--json", "-n", "100"]);
    let told = text(&used, "decision_id");
    let allowed: Vec<&Json> = all
        .iter()
        .filter(|record| text(record, "kind") == "decision" && text(record, "decision") == "allow")
        .filter(|record| text(record, "tool") == "deploy" && text(record, "id") != told)
        .collect();
    let retracted = all.iter().filter(|record| text(record, "kind") == "retracted").count();
    let gaps = all.iter().filter(|record| text(record, "kind") == "gap").count();
    assert_eq!(allowed.len(), retracted, "{all:?}");
    assert!(retracted + gaps > 0, "{all:?}");
    is_sound(&folder);
}

#[test]
fn denies_of_a_relay_are_a_gap_of_the_next_owner() {
    let folder = Folder::with_policy(ASKS);
    let mut owner = Gate::start(&folder, &[]);
    owner.ask(LIST);
    let mut relay = Gate::start(&folder, &[]);
    relay.ask(LIST);
    stop_process(pid(&owner));
    for _ in 0..3 {
        relay.send(LIST);
    }
    owner.child.kill().unwrap();
    owner.child.wait().unwrap();
    let denied = (0..3).filter(|_| text(&relay.receive(), "rule") == "not-recorded").count();
    assert_eq!(text(&relay.ask(LIST), "decision"), "allow");
    assert_eq!(relay.end().0, 0);
    let gaps = folder.json(&["audit", "tail", "--json", "--kind", "gap"]);
    let counted: usize = gaps.iter().map(|gap| text(gap, "code").parse::<usize>().unwrap()).sum();
    assert_eq!(counted, denied, "{gaps:?}");
    is_sound(&folder);
}

#[test]
fn an_owner_that_hangs_costs_each_line_no_more_than_its_time() {
    let folder = Folder::with_policy(ASKS);
    let mut owner = Gate::start(&folder, &[]);
    owner.ask(LIST);
    let mut relay = Gate::start(&folder, &["--answer-ms", "400"]);
    relay.ask(LIST);
    stop_process(pid(&owner));
    let start = Instant::now();
    for _ in 0..4 {
        assert_eq!(text(&relay.ask(LIST), "rule"), "not-recorded");
    }
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    owner.child.kill().unwrap();
    owner.child.wait().unwrap();
    relay.end();
}

#[test]
fn a_line_over_the_limit_is_the_same_at_a_relay() {
    let folder = Folder::with_policy(ASKS);
    let mut owner = Gate::start(&folder, &[]);
    let long = format!("{{\"tool\":\"{}\"}}", "x".repeat(4 << 20));
    let at_owner = owner.ask(&long);
    let mut relay = Gate::start(&folder, &[]);
    let at_relay = relay.ask(&long);
    for answer in [&at_owner, &at_relay] {
        assert_eq!((text(answer, "decision"), text(answer, "rule")), ("deny", "malformed"), "{answer}");
    }
    assert_eq!(text(&at_owner, "reason"), text(&at_relay, "reason"));
    relay.end();
    owner.end();
    assert_eq!(folder.json(&["audit", "tail", "--json", "--kind", "alarm"]).len(), 2);
}

#[test]
fn relays_do_not_lock_commands_out() {
    let folder = Folder::with_approver(ASKS);
    let mut owner = Gate::start(&folder, &[]);
    let asked = owner.ask(DEPLOY);
    let mut relays: Vec<Gate> = (0..64).map(|_| Gate::start(&folder, &[])).collect();
    for relay in &mut relays {
        relay.ask(LIST);
    }
    let output = folder.run(&["approve", "deny", text(&asked, "approval_id")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // No turn is free within its time: a deny, and no error that a client could take for permission.
    let waited = folder.run_with(&["gate", "--answer-ms", "300"], LIST);
    let said = String::from_utf8_lossy(&waited.stderr);
    let answer = Json::parse(&waited.stdout).unwrap();
    assert_eq!((text(&answer, "decision"), text(&answer, "rule")), ("deny", "not-recorded"), "{answer}");
    assert!(text(&answer, "reason").contains("serves 64 other processes"), "{answer} {said}");
    // A turn that ends is the turn of the one that waits.
    let mut queued = Gate::start(&folder, &["--answer-ms", "60000"]);
    queued.send(LIST);
    assert_eq!(relays.pop().unwrap().end().0, 0);
    assert_eq!(text(&queued.receive(), "decision"), "allow");
    assert_eq!(queued.end().0, 0);
    for relay in relays {
        assert_eq!(relay.end().0, 0);
    }
    owner.end();
}

#[test]
fn a_hundred_relays_at_once_are_all_answered() {
    let folder = Folder::with_policy(ASKS);
    let mut owner = Gate::start(&folder, &[]);
    owner.ask(LIST);
    let answers: Vec<_> = std::thread::scope(|scope| {
        let relays: Vec<_> = (0..100)
            .map(|_| scope.spawn(|| folder.run_with(&["gate", "--answer-ms", "120000"], LIST)))
            .collect();
        relays.into_iter().map(|relay| relay.join().unwrap()).collect()
    });
    for answer in answers {
        let said = String::from_utf8_lossy(&answer.stderr);
        assert_eq!(answer.status.code(), Some(0), "{said}");
        assert_eq!(text(&Json::parse(&answer.stdout).unwrap(), "decision"), "allow", "{said}");
    }
    assert_eq!(owner.end().0, 0);
}

/// Connecting and answering together take no longer than an answer may, also with an owner that has hung from the start.
#[test]
fn a_relay_of_an_owner_that_hangs_answers_within_one_limit() {
    let folder = Folder::with_policy(ASKS);
    let mut owner = Gate::start(&folder, &[]);
    owner.ask(LIST);
    stop_process(pid(&owner));
    let start = Instant::now();
    let output = folder.run_with(&["gate", "--answer-ms", "2000"], LIST);
    let took = start.elapsed();
    let answer = Json::parse(&output.stdout).unwrap();
    assert_eq!((text(&answer, "decision"), text(&answer, "rule")), ("deny", "not-recorded"), "{answer}");
    assert!(text(&answer, "reason").contains("did not answer within"), "{answer}");
    assert_ne!(output.status.code(), Some(0));
    // Two seconds for the answer, one for telling an owner of the deny, and time to start.
    assert!(took < Duration::from_secs(8), "{took:?}");
    owner.child.kill().unwrap();
    owner.child.wait().unwrap();
}

/// An owner that takes connections and says nothing, or ends each one, costs no more than that either.
#[test]
fn a_socket_that_accepts_and_closes_is_not_tried_for_longer_than_an_answer_may_take() {
    let folder = Folder::with_policy(ASKS);
    let mut owner = Gate::start(&folder, &[]);
    owner.ask(LIST);
    stop_process(pid(&owner));
    let socket = folder.state().join("run/owner.sock");
    std::fs::remove_file(&socket).unwrap();
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let closing = std::thread::spawn(move || {
        // Each connection is held for as long as the relay can still wait, and then closed.
        while let Ok((stream, _)) = listener.accept() {
            let mut byte = [0u8; 1];
            stream.set_read_timeout(Some(Duration::from_millis(1500))).unwrap();
            while matches!(std::io::Read::read(&mut &stream, &mut byte), Ok(1)) {}
            if byte == *b"!" {
                return;
            }
        }
    });
    let start = Instant::now();
    let output = folder.run_with(&["gate", "--answer-ms", "2000"], LIST);
    let took = start.elapsed();
    assert_eq!(text(&Json::parse(&output.stdout).unwrap(), "rule"), "not-recorded");
    assert!(took < Duration::from_secs(8), "{took:?}");
    let mut last = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    std::io::Write::write_all(&mut last, b"!").unwrap();
    drop(last);
    closing.join().unwrap();
    owner.child.kill().unwrap();
    owner.child.wait().unwrap();
}

#[test]
fn a_lost_ledger_or_key_is_not_replaced() {
    for (lost, kept, said) in [
        (
            &["ledger.db", "ledger.db-wal", "ledger.db-shm"][..],
            "ledger.key",
            "the keys are here, but `ledger.db` is not",
        ),
        (&["ledger.key"][..], "digest.key", "the ledger is here, but `ledger.key` is not"),
        (&["digest.key"][..], "ledger.key", "the ledger is here, but `digest.key` is not"),
    ] {
        let folder = Folder::with_policy(ASKS);
        assert!(folder.run_with(&["gate"], LIST).status.success());
        let before = std::fs::read(folder.state().join(kept)).unwrap();
        for file in lost {
            let _ = std::fs::remove_file(folder.state().join(file));
        }
        for command in [&["gate"][..], &["harness"], &["init", "--credential", "ann.key"]] {
            let output = folder.run_with(command, LIST);
            let text = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{command:?}: {text}");
            assert!(text.contains(said), "{command:?}: {text}");
        }
        assert!(!folder.state().join(lost[0]).exists());
        assert_eq!(std::fs::read(folder.state().join(kept)).unwrap(), before);
    }
}

#[test]
fn a_state_directory_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not run: only root can give a folder to another user");
        return;
    }
    let folder = Folder::with_policy(ASKS);
    assert!(folder.run_with(&["gate"], LIST).status.success());
    for state in [folder.state(), folder.path("empty")] {
        std::fs::create_dir_all(&state).unwrap();
        std::os::unix::fs::chown(&state, Some(65534), Some(65534)).unwrap();
        let named = state.display().to_string();
        let before = std::fs::read_dir(&state).unwrap().count();
        for command in ["gate", "harness"] {
            let output = folder.run_with(&[command, "--state", &named], LIST);
            let text = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{command}: {text}");
            assert!(text.contains("belongs to the user 65534"), "{command}: {text}");
        }
        assert_eq!(std::fs::read_dir(&state).unwrap().count(), before);
    }
}

#[test]
fn bundles_and_exports_are_for_their_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::with_policy(ASKS);
    assert!(folder.run_with(&["gate"], LIST).status.success());
    // One that was there with another mode, too.
    folder.write("old.bundle", "x");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for name in ["new.bundle", "old.bundle"] {
        let output = folder.run(&["audit", "export", "--output", name]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(mode(&folder.path(name)), 0o600, "{name}");
    }
    assert!(folder.run(&["audit", "export", "--tiles", "tiles"]).status.success());
    assert_eq!(mode(&folder.path("tiles/checkpoint")), 0o600);
}

#[test]
fn keys_whose_ledger_was_about_to_be_made_heal() {
    let folder = Folder::with_policy(ASKS);
    assert!(folder.run_with(&["gate"], LIST).status.success());
    let half = Folder::with_policy(ASKS);
    std::fs::create_dir_all(half.state()).unwrap();
    for file in ["digest.key", "ledger.key"] {
        std::fs::copy(folder.state().join(file), half.state().join(file)).unwrap();
    }
    std::fs::write(half.state().join("being-made"), "").unwrap();
    assert!(half.run_with(&["gate"], LIST).status.success());
    assert!(!half.state().join("being-made").exists());
}

#[test]
fn a_relay_asks_for_no_more_durability_than_the_owner_gives() {
    let folder = Folder::with_policy(ASKS);
    let mut owner = Gate::start(&folder, &[]);
    owner.ask(LIST);
    let output = folder.run_with(&["gate", "--durability", "power"], LIST);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("records with durability `process`"));
    // A valid change of the policy reaches the relay and the owner alike.
    folder.write("policy.yaml", "version: \"1\"\ndefault: allow\n");
    let output = folder.run_with(&["gate"], LIST);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    owner.end();
}

#[test]
fn a_state_path_that_is_no_folder_is_named_for_what_it_is() {
    let folder = Folder::with_policy(ASKS);
    folder.write("file", "x");
    std::os::unix::fs::symlink("nowhere", folder.path("dangling")).unwrap();
    std::os::unix::fs::symlink("loop", folder.path("loop")).unwrap();
    for (path, said) in [
        ("file", "this is a file"),
        ("dangling", "a link that leads nowhere"),
        ("loop", "a link that leads to itself"),
    ] {
        let output = folder.run_with(&["gate", "--state", path], LIST);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{path}: {text}");
        assert!(text.contains(said), "{path}: {text}");
    }
}

/// Lines of an agent for a door that the owner does not have must not be carried out as commands.
#[test]
fn a_handshake_for_an_unknown_door_is_refused() {
    use std::io::{BufRead, BufReader, Write};
    let folder = Folder::with_approver(ASKS);
    let mut owner = Gate::start(&folder, &[]);
    owner.ask(LIST);
    let mut stream = std::os::unix::net::UnixStream::connect(folder.state().join("run/owner.sock")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    writeln!(stream, r#"{{"hello":1,"mode":"gate2"}}"#).unwrap();
    let mut said = String::new();
    BufReader::new(stream).read_line(&mut said).unwrap();
    assert!(said.contains("the owner has no door `gate2`"), "{said}");
    assert_eq!(owner.end().0, 0);
}
