//! The documentation holds: its commands run and print what it says, its links lead somewhere, and the list of commands is
//! the program's own.
//!
//! A block marked `sh` is run; all of a page run in one shell, in order, in a scratch folder. If the next block is marked `text`, it
//! is what the commands print on stdout: `…` stands for any text within a line, and for any number of lines where it stands
//! alone. Blocks with other marks are not run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Pages that show no command that could run.
const WITHOUT_COMMANDS: &[&str] = &[
    "cli.md",
    "compatibility.md",
    "glossary.md",
    "performance.md",
    "style.md",
    "verification.md",
    "webhook.md",
];

/// Marker above the generated part of `docs/cli.md`.
const GENERATED: &str = "<!-- Below this line the page is made from `--help`. -->\n";

#[test]
fn commands_in_the_pages_do_what_the_pages_say() {
    let mut problems = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let blocks = blocks(&text);
        let name = page.file_name().unwrap().to_str().unwrap();
        let runs = blocks.iter().any(|block| block.mark == "sh");
        if runs == WITHOUT_COMMANDS.contains(&name) {
            problems.push(format!(
                "{name}: a page shows commands that run, or stands in WITHOUT_COMMANDS; this does not fit"
            ));
        }
        if runs {
            problems.extend(run_page(name, &blocks));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

#[test]
fn the_first_command_of_the_readme_answers() {
    let text = std::fs::read_to_string(root().join("README.md")).unwrap();
    let blocks = blocks(&text);
    let shown: Vec<&str> =
        blocks.iter().filter(|block| block.mark == "console").map(|block| block.body.trim()).collect();
    let [first, second] = shown.as_slice() else { panic!("two commands set it up, these are {shown:#?}") };
    assert_eq!(*second, "./scripts/test");
    assert!(root().join("scripts/test").exists());
    // The same program, already built.
    let (build, program) = ("cargo run --release -p proctor --", "proctor");
    assert!(first.contains(build), "{first}");
    let scratch = Scratch::new();
    let output = scratch.shell(&first.replace(build, program)).output().unwrap();
    let answer = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{answer}{}", String::from_utf8_lossy(&output.stderr));
    for word in ["allow", "block", "modify", "escalate", "alarm", "proctor session show"] {
        assert!(answer.contains(word), "{word} is missing: {answer}");
    }
    assert_eq!(names_in(&scratch.work()), BTreeSet::new(), "something is left in the working folder");
}

#[test]
fn links_lead_somewhere() {
    let mut problems = Vec::new();
    for page in all_markdown() {
        let text = std::fs::read_to_string(&page).unwrap();
        let folder = page.parent().unwrap();
        for target in links(&text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
            let file = if file.is_empty() { page.clone() } else { folder.join(file) };
            if !file.exists() {
                problems.push(format!("{}: `{target}` is not there", page.display()));
            } else if !heading.is_empty()
                && !headings(&std::fs::read_to_string(&file).unwrap()).contains(heading)
            {
                problems.push(format!("{}: `{target}` names a heading that is not there", page.display()));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_list_of_commands_is_the_programs_own() {
    let file = root().join("docs/cli.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let (written, old) =
        page.split_once(GENERATED).expect("docs/cli.md has the line above its generated part");
    let mut new = String::from("\n");
    let common = help(&[]);
    let common_flags: BTreeSet<String> = entries(common.section("Options:")).map(plain).collect();
    new.push_str(&format!("## Commands by task\n\n```\n{}\n```\n", common.groups().join("\n\n")));
    new.push_str(&format!("\n## Flags of every command\n\n```\n{}\n```\n", common.section("Options:")));
    describe(&mut Vec::new(), &common_flags, &mut new);
    if old != new && std::env::var("PROCTOR_WRITE_DOCS").is_ok_and(|value| value == "1") {
        std::fs::write(&file, format!("{written}{GENERATED}{new}")).unwrap();
        return;
    }
    assert!(old == new, "docs/cli.md is not what `--help` says: run this test with PROCTOR_WRITE_DOCS=1");
}

/// Commands that run until they are interrupted: of their examples only the arguments are checked, with `--help` after them.
const UNTIL_INTERRUPTED: &[&str] = &["serve", "approve watch"];

/// Exit codes of examples that are not 0.
const EXAMPLE_CODES: &[(&str, i32)] = &[
    // The starter policy asks about publishing, and denies deleting everything.
    ("policy check", 13),
    ("policy explain", 11),
    // No agent has registered in the prepared folder.
    ("agent deregister", 1),
    // The prepared agent answers anything, also what it should refuse.
    ("atp check-agent", 10),
];

/// The approval id that examples show; the test puts the prepared one in its place.
const SHOWN_APPROVAL: &str = "0199c4f2";

/// A folder in which the examples of the help texts make sense.
const PREPARATION: &str = r#"
proctor init --approver ann --state .proctor > /dev/null
printf '%s\n' \
  '{"session":"fix-42","agent":"coder","tool":"bash","args":{"command":"ls"}}' \
  '{"session":"fix-42","agent":"coder","tool":"bash","args":{"command":"git push"}}' \
  | proctor gate > /dev/null
echo '{"tool":"bash","args":{"command":"ls"}}' | proctor gate --agent builder > /dev/null
proctor agent suspend "uid:$(id -u)/builder" > /dev/null
proctor op pause 4bf92f3577b34da6:00f067aa0ba902b7 > /dev/null
proctor audit witness --witness ../trusted | grep -E '^(log|witness) ' > trust.txt
proctor audit export --output ledger.bundle > /dev/null
echo 'key AKIAIOSFODNN7EXAMPLE' > notes.txt
cat > cases.yaml <<'END'
policy: policy.yaml
cases:
  - { name: publishing is asked about, action: { tool: bash, args: { command: git push } }, expect: ask }
END
cat > suite.yaml <<'END'
test_suite: greetings
tests:
  - {id: one, name: Says hello, task: {description: Say hello}, assertions: [{type: contains, config: {pattern: hello}}]}
END
cat > agent.sh <<'END'
#!/bin/sh
id=$(sed 's/.*"task_id":"\([^"]*\)".*/\1/')
echo '{"version":"1.0","task_id":"'"$id"'","status":"completed","artifacts":[{"type":"file","path":"a.txt","content":"hello"}],"metrics":{}}'
END
chmod +x agent.sh
echo '{"version":"1.0","task_id":"t","status":"completed","artifacts":[],"metrics":{}}' > response.json
proctor test suite.yaml --agent stdio:./agent.sh > /dev/null 2>&1
echo '{"trace_id":"t","steps":[{"type":"tool_call","name":"lookup"}],"output":{"message":"Done."}}' > trace.json
echo '[{"type":"trace","spec":{"check":"required_tools","tools":["lookup"]}}]' > assertions.yaml
proctor approve list --json
"#;

#[test]
fn examples_of_the_help_texts_run() {
    let prepared = Scratch::new();
    let page = std::fs::read_to_string(root().join("docs/audit.md")).unwrap();
    let entry = page.lines().find(|line| line.contains(r#"'{"seq":0,"#)).unwrap();
    let entry = entry.split('\'').nth(1).unwrap();
    std::fs::write(prepared.work().join("gateway-default.jsonl"), format!("{entry}\n")).unwrap();
    let output = prepared.shell(PREPARATION).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let waiting = String::from_utf8(output.stdout).unwrap();
    let approval =
        waiting.split(r#""approval_id":""#).nth(1).and_then(|rest| rest.split('"').next()).unwrap();

    let mut examples = Vec::new();
    collect_examples(&mut Vec::new(), &mut examples);
    assert!(examples.len() > 40, "{examples:?}");
    let mut problems = Vec::new();
    for (command, example) in examples {
        let scratch = prepared.copy();
        let own = format!("uid:{}/builder", rustix::process::getuid().as_raw());
        let mut script = example.replace(SHOWN_APPROVAL, approval).replace("uid:1000/builder", &own);
        if UNTIL_INTERRUPTED.contains(&command.as_str()) {
            script.push_str(" --help");
        }
        let known = EXAMPLE_CODES.iter().find(|(of, _)| *of == command);
        let expected = known.map_or(0, |(_, code)| *code);
        let output = scratch.shell(&script).output().unwrap();
        if output.status.code() != Some(expected) {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let got = output.status.code();
            problems.push(format!("`{example}` of `{command}`: {got:?} instead of {expected}\n{said}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

/// The examples of a command and of all commands below it, each with the command's name.
fn collect_examples(command: &mut Vec<String>, examples: &mut Vec<(String, String)>) {
    let help = help(command);
    let shown: Vec<String> = help.section("Example:").lines().map(|line| line.trim().to_owned()).collect();
    assert!(!shown.is_empty(), "{command:?} has no example");
    examples.extend(shown.into_iter().map(|line| (command.join(" "), line)));
    for name in help.subcommands() {
        command.push(name);
        collect_examples(command, examples);
        command.pop();
    }
}

/// Published limits: source file, text in it, and text in `docs/limits.md`.
const LIMITS: &[(&str, &str, &str)] = &[
    (
        "engine/src/engine/pinned.rs",
        "MAX_ALARMS: u32 = 64;",
        "| Alarms about weaker policies that wait, of one process | 64 |",
    ),
    ("policy/src/comparison.rs", "MAX_CHANGES: usize = 100;", "| Changes that `policy accept` lists | 100 |"),
    (
        "net/src/lines.rs",
        "MAX_MESSAGE: usize = 4 * 1024 * 1024;",
        "| Message on stdio, Unix socket, WebSocket, gRPC | 4 MiB |",
    ),
    (
        "clients/src/ahp/server.rs",
        "WINDOW: usize = 128;",
        "| Messages of one connection in work at once | 128 |",
    ),
    (
        "clients/src/ahp/server.rs",
        "IN_FLIGHT: usize = 4096;",
        "| Messages in work at once, all connections | 4096 |",
    ),
    (
        "net/src/listen.rs",
        "max_connections: 4096,",
        "| Connections: HTTP, gRPC; Unix socket | 4096 each; 1024 |",
    ),
    (
        "net/src/unix.rs",
        "max_connections: 1024,",
        "| Connections: HTTP, gRPC; Unix socket | 4096 each; 1024 |",
    ),
    (
        "wire/src/ahp/rpc.rs",
        "MAX_VALUES: usize = 50_000;",
        "| Values in a message, containers included | 50,000 |",
    ),
    (
        "clients/src/ahp/server.rs",
        "MESSAGE_BYTES: usize = 32 * 1024 * 1024;",
        "| Memory of messages over 16 KiB in work | 32 MiB",
    ),
    ("wire/src/ahp/rpc.rs", "MAX_ID: usize = 4096;", "| Identifier of a request | 4096 bytes |"),
    (
        "doors/ahp/src/binding.rs",
        "MAX_OPEN: usize = 1024;",
        "| Open decisions of a session that reports are bound to | 1024 |",
    ),
    (
        "doors/ahp/src/binding.rs",
        "MAX_SCANNED_RECORDS: usize = 2000;",
        "| How far back a session is read for them after a restart | 2000 decisions and outcomes |",
    ),
    ("doors/ahp/src/runs.rs", "MAX_RUNS: usize = 64;", "| Runs of a session that are followed | 64 |"),
    (
        "wire/src/attest.rs",
        "MAX_LINE: usize = 10 * 1024 * 1024 - 1;",
        "| Line of a request | 10,485,759 bytes |",
    ),
    ("wire/src/attest.rs", "MAX_REPLY: usize = 60 * 1024;", "| Line of a reply | 60 KiB |"),
    (
        "wire/src/attest.rs",
        "MAX_LONG_REPLY: usize = 16 * 1024 * 1024;",
        "fit into no shorter one | 16 MiB, 10,000 assertions |",
    ),
    ("wire/src/attest.rs", "MAX_ASSERTIONS: usize = 10_000;", "16 MiB, 10,000 assertions |"),
    ("wire/src/attest.rs", "MAX_ASSERTION_ID: usize = 256;", "| Name of an assertion | 256 bytes |"),
    (
        "assert/src/validate.rs",
        "Limits { steps: 10_000, step_bytes: 1024 * 1024, depth: 5 }",
        "traces in each other | 10,000; 1 MiB; 5 |",
    ),
    ("doors/attest/src/serve.rs", "MAX_WORKERS: usize = 16;", "assertions of one batch | 16; 16 |"),
    ("doors/attest/src/evaluate.rs", "MAX_PARALLEL: usize = 16;", "assertions of one batch | 16; 16 |"),
    ("doors/attest/src/plugins.rs", "MAX_WAITING: usize = 10_000;", "that are waited for | 10,000 |"),
    ("assert/src/judge.rs", "MOST_SAMPLES: i64 = 16;", "| Samples of one judgement | 16 |"),
    ("net/src/lines.rs", "MAX_MESSAGE: usize = 4 * 1024 * 1024;", "| Line of the gate | 4 MiB |"),
    ("core/src/json/parse.rs", "MAX_DEPTH: usize = 128;", "| JSON, nested | 128 |"),
    ("doors/gate/src/lib.rs", "WAITING_ANSWERS: usize = 1024;", "| Answers that wait to be written | 1024 |"),
    (
        "doors/gate/src/in_flight.rs",
        "MAX_BYTES: usize = 8 << 20;",
        "| Lines that wait for their answers | 8 MiB",
    ),
    ("ledger/src/writer.rs", "queue_drafts: 4096,", "| Records that wait to be written | 4096, or 64 MiB |"),
    (
        "ledger/src/writer.rs",
        "queue_bytes: 64 << 20,",
        "| Records that wait to be written | 4096, or 64 MiB |",
    ),
    ("ledger/src/writer.rs", "batch_records: 2048,", "| Records in one commit | 2048, or 8 MiB |"),
    ("ledger/src/writer.rs", "batch_bytes: 8 << 20,", "| Records in one commit | 2048, or 8 MiB |"),
    ("proctor/src/config.rs", "ANSWER_MS: u64 = 8000;", "| Time to answer | 8 s (`--answer-ms`) |"),
    ("engine/src/engine.rs", "TRIES: usize = 3;", "whose state is stale | 3 |"),
    ("engine/src/turns.rs", "MAX_RELAYS: usize = 64;", "commands included | 64; 96 |"),
    ("engine/src/turns.rs", "MAX_WAITING: usize = 256;", "| Relays that wait for their turn | 256 |"),
    ("engine/src/owner.rs", "MAX_CONNECTIONS: usize = MAX_RELAYS + 32;", "commands included | 64; 96 |"),
    (
        "net/src/auth/refusals.rs",
        "MAX_PEERS: usize = 64;",
        "| Alarms about refused callers | one a minute for each of 63 peers",
    ),
    ("core/src/record.rs", "MAX_LEAF: usize = 65_535;", "| Envelope of a record | 65,535 bytes |"),
    ("core/src/record.rs", "MAX_CLAIMED: usize = 256;", "(names, ids, …) | 256 bytes |"),
    ("ledger/src/writer.rs", "MAX_BODY: usize = 16 << 20;", "| Body of a record | 16 MiB |"),
    ("engine/src/approvers.rs", "MAX_REASON: usize = 1024;", "| Reason of an approver | 1024 bytes |"),
    ("ledger/src/note.rs", "MAX_SIGNATURES: usize = 32;", "its size | 32; 64 KiB |"),
    ("ledger/src/note.rs", "MAX_NOTE_BYTES: usize = 64 * 1024;", "its size | 32; 64 KiB |"),
    ("ledger/src/keys/trust.rs", "MAX_TRUST_BYTES: usize = 64 * 1024;", "| Trust file | 64 KiB |"),
    ("facts/src/shell.rs", "MAX_INPUT_BYTES: usize = 256 * 1024;", "that is taken apart | 256 KiB |"),
    ("facts/src/shell.rs", "MAX_DEPTH: usize = 32;", "groups and wrappers, nested | 32 |"),
    ("facts/src/lib.rs", "MAX_ENTRIES: usize = 1024;", "`opaque` | 1024 each |"),
    ("facts/src/url.rs", "MAX_URL_BYTES: usize = 4096;", "| URL | 4096 bytes |"),
    ("scan/src/json.rs", "MAX_REPORTED_FINDINGS: usize = 1000;", "reported one by one | 1000 |"),
    ("scan/src/custom.rs", "MAX_MATCHES: usize = 1000;", "entry in one text | 1000 |"),
    ("policy/src/policy/compile.rs", "MAX_DOCUMENTS: usize = 1000;", "| Documents in a folder | 1000 |"),
    ("policy/src/document.rs", "MAX_SOURCE_BYTES: usize = 1 << 20;", "| Document | 1 MiB,"),
    ("policy/src/document.rs", "MAX_DEPTH: usize = 64;", "nested 64, 100,000 values |"),
    ("policy/src/document.rs", "MAX_NODES: usize = 100_000;", "nested 64, 100,000 values |"),
    ("policy/src/document/rules.rs", "MAX_RULES: usize = 10_000;", "| Rules in a document | 10,000 |"),
    (
        "policy/src/condition/bounds.rs",
        "MAX_BYTES: usize = 4096;",
        "| Condition | 4 KiB, nested 32, 32 choices",
    ),
    (
        "policy/src/condition/bounds.rs",
        "MAX_NESTING: usize = 32;",
        "| Condition | 4 KiB, nested 32, 32 choices",
    ),
    (
        "policy/src/condition/bounds.rs",
        "MAX_CHOICES: usize = 32;",
        "| Condition | 4 KiB, nested 32, 32 choices",
    ),
    ("policy/src/condition/bounds.rs", "MAX_SIGNS: usize = 1024;", "1024 operators and other signs |"),
    ("policy/src/condition/evaluate.rs", "MAX_STEPS: usize = 200_000;", "what it builds | 200,000; 64 KiB |"),
    (
        "policy/src/condition/evaluate.rs",
        "MAX_BUILT: usize = 64 * 1024;",
        "what it builds | 200,000; 64 KiB |",
    ),
    ("policy/src/condition/evaluate.rs", "MAX_ASKED: usize = 256;", "each glob or taint 256 bytes |"),
    ("policy/src/readset.rs", "MAX_QUESTIONS: usize = 1024;", "in one decision | 1024,"),
    ("policy/src/expression.rs", "MAX_BYTES: usize = 4096;", "| Approval expression | 4 KiB, 256 clauses |"),
    ("policy/src/expression.rs", "MAX_CLAUSES: usize = 256;", "| Approval expression | 4 KiB, 256 clauses |"),
    (
        "policy/src/document/sections.rs",
        "MAX_PATTERNS: usize = 256;",
        "| `sensitive_patterns` | 256, each 4 KiB",
    ),
    (
        "policy/src/document/sections.rs",
        "MAX_PATTERN_BYTES: usize = 4096;",
        "| `sensitive_patterns` | 256, each 4 KiB",
    ),
    ("policy/src/document/sections.rs", "MAX_COMPILED_BYTES: usize = 1 << 20;", "and 1 MiB compiled |"),
    (
        "policy/src/modules/bounds.rs",
        "MAX_BYTES: usize = 1 << 20;",
        "| Module | 1 MiB, nested 32, 1000 operators",
    ),
    (
        "policy/src/modules/bounds.rs",
        "MAX_NESTING: usize = 32;",
        "| Module | 1 MiB, nested 32, 1000 operators",
    ),
    (
        "policy/src/modules/bounds.rs",
        "MAX_OPERATORS: usize = 1000;",
        "| Module | 1 MiB, nested 32, 1000 operators",
    ),
    ("policy/src/modules/rego.rs", "MAX_INSTRUCTIONS: usize = 250_000;", "one Rego evaluation | 250,000 |"),
    ("policy/src/document/problems.rs", "MAX_PROBLEMS: usize = 500;", "| Problems reported at once | 500 |"),
    ("policy/src/state.rs", "session_tools: 512,", "taints in a session | 512, 256 |"),
    ("policy/src/state.rs", "session_taints: 256,", "taints in a session | 512, 256 |"),
    ("policy/src/state.rs", "agent_tools: 2048,", "in 24 hours | 2048, 1024 |"),
    ("policy/src/state.rs", "agent_taints: 1024,", "in 24 hours | 2048, 1024 |"),
    ("policy/src/state.rs", "sessions: 32_768,", "| Sessions | 32,768 |"),
    (
        "policy/src/state.rs",
        "session_entries: 65_536,",
        "| Sessions, and different tools and taints of all of them | 65,536 |",
    ),
    (
        "net/src/budget.rs",
        "const UNFINISHED: usize = 32 * 1024 * 1024;",
        "| Messages over 16 KiB that are not complete, all transports | 32 MiB, one alone may take more |",
    ),
    ("net/src/listen.rs", "const MAX_HEAD: usize = 32 * 1024;", "| Head of an HTTP/1 request | 32 KiB |"),
    ("net/src/listen.rs", "const MAX_STREAMS: u32 = 128;", "| Streams of an HTTP/2 connection | 128 |"),
    ("policy/src/state.rs", "approvals: 100_000,", "of one principal | 100,000; 10,000 |"),
    ("policy/src/state.rs", "approvals_of_principal: 10_000,", "of one principal | 100,000; 10,000 |"),
    ("policy/src/state.rs", "KEPT_MINUTES: i64 = 33 * 24 * 60;", "idle sessions are kept | 33 days |"),
    (
        "policy/src/state/approvals.rs",
        "KEPT_MICROS: i64 = 7 * 24 * 3_600_000_000;",
        "approvals are kept | 7 days |",
    ),
    ("policy/src/state/agents.rs", "WINDOW_HOURS: i64 = 24;", "memory | 24 to 25 hours,"),
    ("runner/src/results/read.rs", "MAX_RESULT_BYTES: usize = 256 << 20;", "| Baseline file | 256 MiB,"),
    ("runner/src/results/read.rs", "MAX_VALUES: usize = 20_000_000;", "nested 128, 20,000,000 values |"),
    (
        "runner/src/results/write.rs",
        "MAX_VALUE_BYTES: usize = 4096;",
        "in a JSON report | 4 KiB, nested 64 |",
    ),
    ("runner/src/results/write.rs", "MAX_VALUE_DEPTH: usize = 64;", "in a JSON report | 4 KiB, nested 64 |"),
    ("runner/src/results/write.rs", "MAX_EVENT_BYTES: usize = 32 << 20;", "runs in a JSON report | 32 MiB |"),
    ("runner/src/run.rs", "MAX_SHOWN_EVENTS: usize = 500;", "that reports show | 500; in HTML 100 |"),
    (
        "report/src/suite/html/failure.rs",
        "MAX_EVENTS: usize = 100;",
        "that reports show | 500; in HTML 100 |",
    ),
    ("report/src/suite/html.rs", "MAX_ROWS: usize = 5000;", "that did not pass | 5000; 6 MiB |"),
    ("report/src/suite/html.rs", "MAX_SECTION_BYTES: usize = 6 << 20;", "that did not pass | 5000; 6 MiB |"),
    ("report/src/suite/markdown.rs", "MAX_ROWS: usize = 500;", "that are explained | 500; 50 |"),
    ("report/src/suite/markdown.rs", "MAX_EXPLAINED: usize = 50;", "that are explained | 500; 50 |"),
    ("report/src/suite/explain.rs", "MAX_RUNS: usize = 20;", "explains one by one | 20 |"),
    ("sandbox/src/limits.rs", "memory: 4096 * MIB,", "| Memory of a run, all processes | 4 GiB |"),
    ("sandbox/src/limits.rs", "processes: 512,", "| Processes and threads of a run | 512 |"),
    ("sandbox/src/limits.rs", "file_size: 1024 * MIB,", "| File that a run writes | 1 GiB |"),
    ("sandbox/src/limits.rs", "descriptors: 4096,", "| Descriptors of a process | 4096 |"),
    ("sandbox/src/keeper/mounts.rs", "mode=1777,size=64m", "System V segment | 64 MiB; 1 MiB |"),
    ("sandbox/src/seccomp.rs", "SEGMENT: u32 = 1024 * 1024;", "System V segment | 64 MiB; 1 MiB |"),
    ("sandbox/src/plan/layers.rs", "MASKS: usize = 4096;", "| Hidden paths of a run | 4096 |"),
    ("runner/src/isolation.rs", "CROWD: usize = 64;", "hidden one by one | 64 |"),
];

#[test]
fn published_limits_are_those_of_the_source() {
    let page = std::fs::read_to_string(root().join("docs/limits.md")).unwrap();
    let mut problems = Vec::new();
    for (file, written, said) in LIMITS {
        let source = std::fs::read_to_string(root().join("crates").join(file)).unwrap_or_default();
        if !source.contains(written) {
            problems
                .push(format!("{file} no longer says `{written}`: change docs/limits.md, then this list"));
        }
        if !page.contains(said) {
            problems.push(format!("docs/limits.md no longer says `{said}`"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn comparing_is_strict_where_nothing_is_left_open() {
    let same = |expected: &str, got: &str| {
        fits(&expected.lines().collect::<Vec<_>>(), &got.lines().collect::<Vec<_>>())
    };
    assert!(same("a\nb", "a\nb"));
    assert!(!same("a\nb", "a") && !same("a", "a\nb") && !same("", "a"));
    assert!(same("a…c", "abc") && same("a…c", "ac") && same("…c", "abc") && same("a…", "abc"));
    assert!(!same("a…c", "abd") && !same("ab…ba", "aba") && !same("a…b…c", "acb"));
    assert!(same("a\n…\nz", "a\nz") && same("a\n…\nz", "a\nb\nc\nz") && !same("a\n…\nz", "a\nb"));
}

/// The program: the released build if the test script made one, else this build.
fn binary() -> PathBuf {
    let released = std::env::var_os("PROCTOR_RELEASE_BINARY");
    released.map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_proctor")), PathBuf::from)
}

// Pages.

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn names_in(folder: &Path) -> BTreeSet<String> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

fn markdown_in(folder: &Path) -> Vec<PathBuf> {
    let files = names_in(folder).into_iter().map(|name| folder.join(name));
    files.filter(|file| file.extension().is_some_and(|extension| extension == "md")).collect()
}

/// The pages whose commands run.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    pages.extend(markdown_in(&root().join("docs")));
    assert!(pages.len() > 10, "{pages:?}");
    pages
}

fn all_markdown() -> Vec<PathBuf> {
    let mut pages = markdown_in(&root());
    pages.extend(markdown_in(&root().join("docs")));
    pages.extend(markdown_in(&root().join("docs/design")));
    pages
}

/// A fenced block.
struct Block {
    mark: String,
    body: String,
    line: usize,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in (1..).zip(text.lines()) {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(mark)) => {
                open = Some(Block { mark: mark.trim().to_owned(), body: String::new(), line: number });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => {
                block.body.push_str(line);
                block.body.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

// Running.

/// A folder to run commands in, with the program on the path and a home of its own.
struct Scratch {
    dir: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Scratch {
        let scratch = Scratch { dir: tempfile::tempdir().unwrap() };
        for folder in ["work", "home", "bin", "tmp"] {
            std::fs::create_dir(scratch.dir.path().join(folder)).unwrap();
        }
        std::os::unix::fs::symlink(binary(), scratch.dir.path().join("bin/proctor")).unwrap();
        scratch
    }

    /// The same folders and files once more, in a place of their own.
    fn copy(&self) -> Scratch {
        let copy = Scratch { dir: tempfile::tempdir().unwrap() };
        let status = Command::new("cp")
            .arg("-a")
            .arg(self.dir.path().join("."))
            .arg(copy.dir.path())
            .status()
            .unwrap();
        assert!(status.success());
        copy
    }

    fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    fn shell(&self, script: &str) -> Command {
        let file = self.dir.path().join("script");
        std::fs::write(&file, script).unwrap();
        let mut path = self.dir.path().join("bin").into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut command = Command::new("sh");
        command.arg("-eu").arg(file).current_dir(self.work()).stdin(Stdio::null());
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PROCTOR_"))
        {
            command.env_remove(name);
        }
        command
            .env("PATH", path)
            .env("HOME", self.dir.path().join("home"))
            .env("XDG_CONFIG_HOME", self.dir.path().join("config"))
            .env("XDG_STATE_HOME", self.dir.path().join("states"))
            .env("TMPDIR", self.dir.path().join("tmp"))
            .env("USER", "reader")
            .env("NO_COLOR", "1");
        command
    }
}

/// Runs the commands of a page. Returns what does not hold.
fn run_page(name: &str, blocks: &[Block]) -> Vec<String> {
    let scratch = Scratch::new();
    let ready = |index: usize| format!("== block {index} of {name}");
    let mut script = String::new();
    for (index, block) in blocks.iter().enumerate().filter(|(_, block)| block.mark == "sh") {
        script.push_str(&format!("{}echo '{}'\n", block.body, ready(index)));
    }
    let output = scratch.shell(&script).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut problems = Vec::new();
    let mut rest = printed.as_str();
    for (index, block) in blocks.iter().enumerate().filter(|(_, block)| block.mark == "sh") {
        let Some((got, after)) = rest.split_once(&format!("{}\n", ready(index))) else {
            let code = output.status.code();
            let said = String::from_utf8_lossy(&output.stderr);
            problems.push(format!("{name}:{}: the commands failed ({code:?})\n{rest}{said}", block.line));
            return problems;
        };
        rest = after;
        let Some(expected) = blocks.get(index + 1).filter(|next| next.mark == "text") else { continue };
        if !fits(&expected.body.lines().collect::<Vec<_>>(), &got.lines().collect::<Vec<_>>()) {
            problems.push(format!("{name}:{}: expected\n{}but got\n{got}", expected.line, expected.body));
        }
    }
    problems
}

/// Whether lines are what is expected of them.
fn fits(expected: &[&str], got: &[&str]) -> bool {
    // Which numbers of lines the expectation so far can stand for.
    let mut reached = vec![false; got.len() + 1];
    reached[0] = true;
    for pattern in expected {
        let mut next = vec![false; got.len() + 1];
        let mut any_before = false;
        for count in 0..=got.len() {
            any_before |= reached[count];
            next[count] = if pattern.trim() == "…" {
                any_before
            } else {
                count > 0 && reached[count - 1] && line_fits(pattern, got[count - 1])
            };
        }
        reached = next;
    }
    reached[got.len()]
}

fn line_fits(pattern: &str, line: &str) -> bool {
    let pieces: Vec<&str> = pattern.trim_end().split('…').collect();
    let line = line.trim_end();
    let [first, middle @ .., last] = pieces.as_slice() else { return pattern.trim_end() == line };
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    for piece in middle {
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

// Links.

/// The targets of links outside of code.
fn links(text: &str) -> Vec<String> {
    let mut targets = Vec::new();
    let mut code = false;
    for line in text.lines() {
        code ^= line.starts_with("```");
        if code {
            continue;
        }
        // Every second part is between backticks.
        for prose in line.split('`').step_by(2) {
            let found = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
            targets.extend(found.map(|(target, _)| target.to_owned()));
        }
    }
    targets
}

/// The names under which a page's headings can be linked to.
fn headings(text: &str) -> BTreeSet<String> {
    let titles =
        text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let kept = |character: &char| character.is_alphanumeric() || matches!(character, ' ' | '-' | '_');
    titles
        .map(|title| title.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-"))
        .collect()
}

// The list of commands.

/// Sections of the output of `-h`.
struct Help(Vec<String>);

fn help(command: &[String]) -> Help {
    let mut run = Command::new(binary());
    run.args(command).arg("-h").stdin(Stdio::null()).env("NO_COLOR", "1").env("COLUMNS", "100");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PROCTOR_")) {
        run.env_remove(name);
    }
    let output = run.output().unwrap();
    assert!(output.status.success(), "{command:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    Help(text.trim_end().split("\n\n").map(str::to_owned).collect())
}

impl Help {
    /// The part under this title, without the title.
    fn section(&self, title: &str) -> &str {
        self.0
            .iter()
            .find_map(|part| part.strip_prefix(title))
            .map_or("", |part| part.trim_start_matches('\n'))
    }

    fn about(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    /// The parts that list commands: one below a command, one for each task at the root.
    fn groups(&self) -> Vec<&str> {
        let parts = self.0.iter().map(String::as_str);
        parts
            .filter(|part| part.lines().next().is_some_and(|title| title.ends_with(':')))
            .filter(|part| {
                !["Arguments:", "Options:", "Example:"].iter().any(|title| part.starts_with(title))
            })
            .collect()
    }

    fn subcommands(&self) -> Vec<String> {
        let groups = self.groups();
        let names = groups
            .iter()
            .flat_map(|group| group.lines().skip(1))
            .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
            .filter_map(|line| line.split_whitespace().next());
        names.filter(|name| *name != "help").map(str::to_owned).collect()
    }
}

/// The entries of a list of options: a line that begins with a flag, and the lines that go on.
fn entries(options: &str) -> impl Iterator<Item = &str> {
    let mut starts: Vec<usize> = Vec::new();
    let mut offset = 0;
    for line in options.split_inclusive('\n') {
        let text = line.trim_start();
        if text.starts_with('-') && line.len() - text.len() <= 6 {
            starts.push(offset);
        }
        offset += line.len();
    }
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([options.len()]).collect();
    starts.into_iter().zip(ends).map(|(start, end)| options[start..end].trim_end_matches('\n'))
}

/// An entry on one line, however it was wrapped.
fn plain(entry: &str) -> String {
    entry.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The long name of an entry.
fn flag(entry: &str) -> &str {
    let start = entry.find("--").unwrap_or(0);
    entry[start..].split([' ', '\n', '=']).next().unwrap_or_default()
}

fn describe(command: &mut Vec<String>, common: &BTreeSet<String>, out: &mut String) {
    let help = help(command);
    if !command.is_empty() {
        let level = "#".repeat(command.len() + 1);
        out.push_str(&format!(
            "\n{level} proctor {}\n\n{}\n\n```\n{}\n",
            command.join(" "),
            help.about(),
            help.0[1]
        ));
        if !help.section("Arguments:").is_empty() {
            out.push_str(&format!("\n{}\n", help.section("Arguments:")));
        }
        // A flag of every command may mean something else in one of them.
        let is_common =
            |entry: &&str| common.contains(&plain(entry)) || ["--help", "--version"].contains(&flag(entry));
        let own: Vec<&str> = entries(help.section("Options:")).filter(|entry| !is_common(entry)).collect();
        if !own.is_empty() {
            out.push_str(&format!("\n{}\n", own.join("\n")));
        }
        out.push_str(&format!("\n{}\n```\n", help.0.last().map_or("", String::as_str)));
    }
    for name in help.subcommands() {
        command.push(name);
        describe(command, common, out);
        command.pop();
    }
}
