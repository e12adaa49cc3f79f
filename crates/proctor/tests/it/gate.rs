//! `proctor gate` from the outside.

use std::io::{BufRead, BufReader, Write};
use std::time::{Duration, Instant};

use crate::support::{Folder, Gate, text};
use proctor_core::json::Json;

const POLICY: &str = r#"
version: "1"
default: deny
rules:
  - id: no-delete
    when: action.commands.exists(c, c.startsWith("rm "))
    then: deny
    reason: Nothing is deleted here.
  - id: listing
    when: action.tool == "shell"
    then: allow
  - id: deploys-are-asked
    when: action.tool == "deploy"
    then: ask
    expires: 1h
    reason: Deploying needs a person.
  - id: read-once
    when: action.tool == "file_read"
    then: allow
    taint: has_read
  - id: no-upload-after-reading
    when: action.tool == "upload" && session.tainted("has_read")
    then: deny
    reason: This session has read files.
  - id: uploads
    when: action.tool == "upload"
    then: allow
  - id: short-searches
    when: action.tool == "search"
    then: modify
    set: { /args/limit: 10 }
  - id: searches
    when: action.tool == "search"
    then: allow
  - id: later
    when: action.tool == "later"
    then: defer
    retry_after: 2s
"#;

#[test]
fn every_decision_is_answered_in_order_and_on_record() {
    let folder = Folder::with_policy(POLICY);
    let mut gate = Gate::start(&folder, &[]);
    let allowed =
        gate.ask(r#"{"ref":1,"tool":"Bash","args":{"command":"ls -l"},"session":"s1","agent":"coder"}"#);
    assert_eq!((text(&allowed, "decision"), text(&allowed, "rule")), ("allow", "listing"), "{allowed}");
    assert_eq!(allowed.get("ref"), Some(&Json::from(1u8)));
    let denied =
        gate.ask(r#"{"tool":"Bash","args":{"command":"sudo rm -rf /"},"session":"s1","agent":"coder"}"#);
    assert_eq!((text(&denied, "decision"), text(&denied, "rule")), ("deny", "no-delete"), "{denied}");
    let unknown = gate.ask(r#"{"tool":"teleport","session":"s1","agent":"coder"}"#);
    assert_eq!((text(&unknown, "decision"), text(&unknown, "rule")), ("deny", "default"));
    let modified = gate.ask(r#"{"tool":"search","args":{"q":"x","limit":1000}}"#);
    assert_eq!(text(&modified, "decision"), "modify", "{modified}");
    assert_eq!(modified.get("args").unwrap().to_string(), r#"{"q":"x","limit":10}"#);
    let redacted = gate
        .ask(&format!(r#"{{"tool":"upload","args":{{"key":"sk-{}","n":1.50}}}}"#, "a1B2c3D4e5F6g7H8i9J0"));
    assert_eq!(text(&redacted, "decision"), "redact", "{redacted}");
    assert_eq!(redacted.get("args").unwrap().to_string(), r#"{"key":"[REDACTED:OpenAiKey]","n":1.50}"#);
    let deferred = gate.ask(r#"{"tool":"later"}"#);
    assert_eq!(
        (text(&deferred, "decision"), deferred.get("retry_after_ms")),
        ("defer", Some(&Json::from(2000u32)))
    );
    let (code, _) = gate.end();
    assert_eq!(code, 0);

    let shown = folder.json(&["session", "show", "s1", "--json"]);
    let decisions: Vec<&str> = shown
        .iter()
        .filter(|record| text(record, "kind") == "decision")
        .map(|record| text(record, "decision"))
        .collect();
    assert_eq!(decisions, ["allow", "deny", "deny"]);
    let whole = folder.run(&["audit", "tail", "--json", "-n", "100"]);
    let all = String::from_utf8(whole.stdout).unwrap();
    assert!(!all.contains("a1B2c3D4e5F6g7H8i9J0"), "a secret was written");
    let database = std::fs::read(folder.state().join("ledger.db")).unwrap();
    assert!(!String::from_utf8_lossy(&database).contains("a1B2c3D4e5F6g7H8i9J0"), "a secret was written");
    let (report, code) = folder.verify(None);
    assert_eq!(code, 13, "{report}");
    assert_eq!(report.pointer("/derivation/same").unwrap().as_u64(), Some(6), "{report}");
    assert_eq!(report.pointer("/derivation/different").unwrap().as_u64(), Some(0), "{report}");
}

#[test]
fn a_session_is_remembered_across_restarts() {
    let folder = Folder::with_policy(POLICY);
    let mut gate = Gate::start(&folder, &[]);
    assert_eq!(text(&gate.ask(r#"{"tool":"upload","session":"s"}"#), "decision"), "allow");
    let first = gate.ask(r#"{"tool":"read","args":{"path":"/x"},"session":"s"}"#);
    assert_eq!(text(&first, "decision"), "allow", "{first}");
    gate.end();
    let mut gate = Gate::start(&folder, &[]);
    let after = gate.ask(r#"{"tool":"upload","session":"s"}"#);
    assert_eq!((text(&after, "decision"), text(&after, "rule")), ("deny", "no-upload-after-reading"));
    assert_eq!(text(&after, "session_id"), text(&first, "session_id"));
    let other = gate.ask(r#"{"tool":"upload","session":"t"}"#);
    assert_eq!(text(&other, "decision"), "allow");
    gate.end();
}

#[test]
fn what_is_no_action_is_denied_and_nothing_stops() {
    let folder = Folder::with_policy(POLICY);
    let mut gate = Gate::start(&folder, &[]);
    for bad in
        ["{", "[]", r#"{"tol":"x"}"#, r#"{"tool":"bash","tool":"ls"}"#, "\"\u{0}\"", &"[".repeat(100_000)]
    {
        let answer = gate.ask(bad);
        assert_eq!((text(&answer, "decision"), text(&answer, "rule")), ("deny", "malformed"), "{answer}");
    }
    gate.stdin.write_all(b"{\"tool\":\"\xff\"}\n").unwrap();
    assert!(text(&gate.receive(), "reason").contains("UTF-8"));
    gate.stdin.write_all(&vec![b'x'; (4 << 20) + 10]).unwrap();
    gate.stdin.write_all(b"\n").unwrap();
    assert!(text(&gate.receive(), "reason").contains("over the limit"));
    assert_eq!(text(&gate.ask(r#"{"tool":"bash","args":{"command":"ls"}}"#), "decision"), "allow");
    gate.end();
    let alarms = folder.json(&["audit", "tail", "--json", "--kind", "alarm", "-n", "100"]);
    assert_eq!(alarms.len(), 8);
}

#[test]
fn outcomes_settle_budgets_and_show_what_was_done_all_the_same() {
    let policy = "version: \"1\"\ndefault: allow\nbudget: { daily_limit_usd: 5 }\nrules:\n  - { id: no, when: action.tool == \"no\", then: deny }\n";
    let folder = Folder::with_policy(policy);
    let mut gate = Gate::start(&folder, &[]);
    let first = gate.ask(r#"{"kind":"llm_call","model":"m","cost_usd":"4.00"}"#);
    assert_eq!(text(&first, "decision"), "allow");
    let settled = gate.ask(&format!(
        r#"{{"outcome":{{"decision_id":"{}","cost_usd":"1.00"}}}}"#,
        text(&first, "decision_id")
    ));
    assert_eq!(settled.get("recorded"), Some(&Json::Bool(true)), "{settled}");
    let again = gate.ask(&format!(r#"{{"outcome":{{"decision_id":"{}"}}}}"#, text(&first, "decision_id")));
    assert!(text(&again, "error").contains("on record already"), "{again}");
    // 1 of 5 is spent; 4 more reach the limit, and then nothing goes through.
    assert_eq!(text(&gate.ask(r#"{"kind":"llm_call","model":"m","cost_usd":"4.00"}"#), "decision"), "allow");
    let over = gate.ask(r#"{"kind":"llm_call","model":"m","cost_usd":"0.01"}"#);
    assert_eq!((text(&over, "decision"), text(&over, "rule")), ("deny", "budget.daily_limit_usd"), "{over}");
    let no = gate.ask(r#"{"tool":"no","session":"z"}"#);
    gate.ask(&format!(r#"{{"outcome":{{"decision_id":"{}","ok":true}}}}"#, text(&no, "decision_id")));
    gate.end();
    let alarms = folder.json(&["audit", "tail", "--json", "--kind", "alarm"]);
    let codes: Vec<_> = alarms.iter().map(|alarm| text(alarm, "code")).collect();
    // 80 per cent with the first estimate, all of it with the last.
    assert_eq!(codes, ["budget_threshold", "budget_threshold", "denied_but_done"]);
    let shown = String::from_utf8(folder.run(&["session", "show", "z"]).stdout).unwrap();
    assert!(shown.contains("denied_but_done"), "{shown}");
}

#[test]
fn an_approval_is_asked_decided_and_used_once() {
    let folder = Folder::with_approver(POLICY);
    let mut gate = Gate::start(&folder, &[]);
    let deploy = r#"{"tool":"deploy","args":{"to":"prod"},"session":"s"}"#;
    let asked = gate.ask(deploy);
    assert_eq!(text(&asked, "decision"), "ask", "{asked}");
    let id = text(&asked, "approval_id").to_owned();
    let again = gate.ask(deploy);
    assert_eq!(
        (text(&again, "decision"), text(&again, "approval_id")),
        ("ask", id.as_str()),
        "the same id while it waits"
    );
    let other = gate.ask(r#"{"tool":"deploy","args":{"to":"test"},"session":"s"}"#);
    assert_ne!(text(&other, "approval_id"), id);

    let waiting = folder.json(&["approve", "list", "--json"]);
    assert_eq!(waiting.len(), 2, "{waiting:?}");
    let stranger = folder.run(&["approve", "allow", &id, "--credential", "/nonexistent"]);
    assert_eq!(stranger.status.code(), Some(1));
    let allowed = folder.run(&["approve", "allow", &id, "--reason", "fine"]);
    assert!(allowed.status.success(), "{}", String::from_utf8_lossy(&allowed.stderr));
    let twice = folder.run(&["approve", "deny", &id]);
    assert_eq!(twice.status.code(), Some(1), "decided once");

    // Grants survive a restart, and are used once.
    gate.end();
    let mut gate = Gate::start(&folder, &[]);
    let used = gate.ask(deploy);
    assert_eq!(text(&used, "decision"), "allow", "{used}");
    assert!(text(&used, "reason").contains("approver:ann"), "{used}");
    let after = gate.ask(deploy);
    assert_eq!(text(&after, "decision"), "ask", "{after}");
    assert_ne!(text(&after, "approval_id"), id);

    // A refusal is passed on once.
    let refused_id = text(&other, "approval_id").to_owned();
    assert!(folder.run(&["approve", "deny", &refused_id, "--reason", "too late"]).status.success());
    let refused = gate.ask(r#"{"tool":"deploy","args":{"to":"test"},"session":"s"}"#);
    assert_eq!(text(&refused, "decision"), "deny", "{refused}");
    assert!(text(&refused, "reason").contains("too late"), "{refused}");
    let anew = gate.ask(r#"{"tool":"deploy","args":{"to":"test"},"session":"s"}"#);
    assert_eq!(text(&anew, "decision"), "ask", "{anew}");
    gate.end();
    let (report, _) = folder.verify(None);
    assert_eq!(report.pointer("/derivation/different").unwrap().as_u64(), Some(0), "{report}");
    assert_eq!(report.pointer("/derivation/undecidable").unwrap().as_u64(), Some(0), "{report}");
    let fsck = folder.run(&["audit", "fsck"]);
    assert!(fsck.status.success(), "{}", String::from_utf8_lossy(&fsck.stdout));
}

#[test]
fn a_changed_policy_comes_into_force_and_a_broken_one_does_not() {
    let folder = Folder::with_policy(POLICY);
    let mut gate = Gate::start(&folder, &[]);
    let stderr = BufReader::new(gate.child.stderr.take().unwrap());
    let (sender, said) = std::sync::mpsc::sync_channel(100);
    std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let wait_for = |what: &str| {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(20) {
            if let Ok(line) = said.recv_timeout(Duration::from_secs(20))
                && line.contains(what)
            {
                return;
            }
        }
        panic!("`{what}` was not said");
    };
    let list = r#"{"tool":"bash","args":{"command":"ls"}}"#;
    assert_eq!(text(&gate.ask(list), "decision"), "allow");
    folder.write("policy.yaml", "version: \"1\"\nrules: [{ id: x, then: alow }]\n");
    wait_for("did you mean `allow`");
    assert_eq!(text(&gate.ask(list), "decision"), "allow", "the old policy stays");
    folder.write("policy.yaml", "version: \"1\"\ndefault: deny\n");
    wait_for("is in force");
    assert_eq!(text(&gate.ask(list), "decision"), "deny");
    let policies = folder.json(&["audit", "tail", "--json", "--kind", "policy"]);
    let codes: Vec<&str> = policies.iter().map(|record| text(record, "code")).collect();
    assert_eq!(codes, ["loaded", "refused", "loaded"]);
    drop(gate.stdin);
    gate.child.wait().unwrap();
}

#[test]
fn two_processes_on_one_state_directory_are_one_ledger() {
    let folder = Folder::with_policy(POLICY);
    let mut owner = Gate::start(&folder, &[]);
    assert_eq!(text(&owner.ask(r#"{"tool":"read","session":"s"}"#), "decision"), "allow");
    let mut relay = Gate::start(&folder, &[]);
    let relayed = relay.ask(r#"{"tool":"upload","session":"s"}"#);
    assert_eq!(text(&relayed, "rule"), "no-upload-after-reading", "the owner's memory counts: {relayed}");
    // Another policy cannot come in by the back door.
    folder.write("other.yaml", "version: \"1\"\ndefault: allow\n");
    let other = folder.run_with(&["gate", "--policy", "other.yaml"], "{\"tool\":\"x\"}\n");
    assert_eq!(other.status.code(), Some(1));
    let said = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(said.contains("the owner's policy is") && said.contains("the one given here is"), "{said}");
    // The owner dies: nothing is let through until somebody owns the directory again, and then it is the relay.
    owner.child.kill().unwrap();
    owner.child.wait().unwrap();
    let list = r#"{"tool":"bash","args":{"command":"ls"}}"#;
    let gone = relay.ask(list);
    let first_after = text(&gone, "decision").to_owned();
    assert!(
        first_after == "deny" && text(&gone, "rule") == "not-recorded" || first_after == "allow",
        "{gone}"
    );
    assert_eq!(text(&relay.ask(list), "decision"), "allow");
    let (code, _) = relay.end();
    assert_eq!(code, 0);
    let (report, _) = folder.verify(None);
    assert_eq!(report.pointer("/derivation/different").unwrap().as_u64(), Some(0), "{report}");
}

#[test]
fn answers_that_nobody_reads_stop_the_gate_instead_of_filling_memory() {
    let folder = Folder::with_policy(POLICY);
    let mut gate = Gate::start(&folder, &[]);
    let line = format!("{{\"tool\":\"bash\",\"args\":{{\"command\":\"ls {}\"}}}}\n", "x".repeat(2000));
    // Without a reader of answers the gate must stop reading lines after a bounded number of them.
    let mut stdin = gate.stdin.try_clone_into_nonblocking();
    let mut sent = 0usize;
    let start = Instant::now();
    let mut quiet = Instant::now();
    while quiet.elapsed() < Duration::from_secs(3) && start.elapsed() < Duration::from_secs(60) {
        match stdin.write(line.as_bytes()) {
            Ok(written) => {
                sent += written;
                quiet = Instant::now();
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
        assert!(sent < 400 << 20, "the gate reads without end");
    }
    let memory = kib(gate.child.id(), "VmRSS");
    assert!(memory < 100 << 10, "{memory} KiB");
    let _ = gate.child.kill();
    let _ = gate.child.wait();
}

trait Nonblocking {
    fn try_clone_into_nonblocking(&self) -> std::fs::File;
}

impl Nonblocking for std::process::ChildStdin {
    fn try_clone_into_nonblocking(&self) -> std::fs::File {
        use std::os::fd::AsFd;
        let owned = self.as_fd().try_clone_to_owned().unwrap();
        rustix::io::ioctl_fionbio(&owned, true).unwrap();
        std::fs::File::from(owned)
    }
}

/// A line of `/proc/PID/status`.
fn kib(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn an_idle_gate_is_small() {
    let folder = Folder::with_policy(include_str!("../../../../schemas/examples/balanced.yaml"));
    let mut gate = Gate::start(&folder, &[]);
    gate.ask(r#"{"tool":"bash","args":{"command":"ls"}}"#);
    // How much of the program's own file is resident is up to the kernel's cache; what it takes besides is up to us.
    let memory = kib(gate.child.id(), "RssAnon");
    println!("idle memory: {memory} KiB, {} KiB with the program's file", kib(gate.child.id(), "VmRSS"));
    // The promise is about the released program; one built for tests carries more with it.
    let limit = if std::env::var_os("PROCTOR_RELEASE_BINARY").is_some() { 20 << 10 } else { 40 << 10 };
    assert!(memory <= limit, "{memory} KiB");
    gate.end();
}

#[test]
fn signals_end_the_gate_with_their_codes_and_lose_nothing() {
    for (signal, code) in [(rustix::process::Signal::TERM, 143), (rustix::process::Signal::INT, 130)] {
        let folder = Folder::with_policy(POLICY);
        let mut gate = Gate::start(&folder, &[]);
        for _ in 0..10 {
            gate.ask(r#"{"tool":"bash","args":{"command":"ls"},"session":"s"}"#);
        }
        let pid = rustix::process::Pid::from_raw(gate.child.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        assert_eq!(gate.child.wait().unwrap().code(), Some(code));
        assert_eq!(folder.json(&["audit", "tail", "--json", "--kind", "decision", "-n", "100"]).len(), 10);
    }
}

#[test]
fn a_policy_with_mistakes_leaves_no_state_directory_behind() {
    let folder = Folder::with_policy("defualt: deny\n");
    let output = folder.run_with(&["gate"], "{\"tool\":\"ls\"}\n");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(!folder.state().exists(), "{output:?}");
}

#[test]
fn without_a_policy_everything_is_denied() {
    let folder = Folder::with_policy("x");
    std::fs::remove_file(folder.path("proctor.toml")).unwrap();
    let output = folder.run_with(&["gate"], "{\"tool\":\"ls\"}\n");
    let answers = crate::support::lines(&output);
    assert_eq!(text(&answers[0], "rule"), "no-policy");
    assert!(String::from_utf8_lossy(&output.stderr).contains("every action is denied"));
}

#[test]
fn a_long_session_is_recorded_and_shown_in_little_memory() {
    let records = crate::support::count(500_000);
    let folder = Folder::with_policy(POLICY);
    let mut gate = Gate::start(&folder, &[]);
    let mut stdin = gate.stdin;
    let writer = std::thread::spawn(move || {
        let mut stdin = std::io::BufWriter::new(&mut stdin);
        for index in 0..records {
            let line =
                format!("{{\"observation\":{{\"code\":\"step\",\"data\":{index}}},\"session\":\"long\"}}\n");
            stdin.write_all(line.as_bytes()).unwrap();
        }
    });
    let answers =
        gate.stdout.lines().map_while(Result::ok).filter(|line| line.contains("\"recorded\":true")).count();
    writer.join().unwrap();
    assert_eq!(answers, records);
    assert!(gate.child.wait().unwrap().success());
    let mut show = folder.command(&["session", "show", "long", "--json"]);
    let mut child = show.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut shown = 0;
    let mut memory = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
        shown += usize::from(line.contains("\"kind\":\"observation\""));
        if shown % 1000 == 0 && shown < records {
            memory = memory.max(kib(child.id(), "VmRSS"));
        }
    }
    assert!(child.wait().unwrap().success());
    assert_eq!(shown, records);
    println!("{records} records shown with {memory} KiB");
    assert!(memory < 64 << 10, "{memory} KiB");
}
