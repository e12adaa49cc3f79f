//! Runs of `proctor test` on record: tools endpoint, policy, history, resuming.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

/// An agent that makes the tool calls of its `input_data` and writes the replies into `replies.json`.
const AGENT: &str = r#"
import json, os, sys, time, urllib.request
request = json.loads(sys.stdin.readline())
data = request["task"].get("input_data") or {}
replies = []
for number, call in enumerate(data.get("calls", [])):
    url = request["context"]["tools_endpoint"] + "/" + call["tool"]
    body = json.dumps({"task_id": call.get("task_id", request["task_id"]), "input": call.get("input", {})}).encode()
    post = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(post) as reply:
        replies.append(json.load(reply))
    if data.get("report"):
        payload = {"tool": call["tool"], "input": call.get("input", {}), "status": "success", "output": "as reported"}
        print(json.dumps({"version": "1.0", "task_id": request["task_id"], "sequence": number, "event_type": "tool_call",
            "timestamp": "2026-01-01T00:00:00Z", "payload": payload}), file=sys.stderr, flush=True)
time.sleep(data.get("seconds", 0))
with open("replies.json", "w") as file:
    json.dump(replies, file)
text = json.dumps(replies)
print(json.dumps({"version": "1.0", "task_id": request["task_id"], "status": "completed", "metrics": {"total_tokens": 12},
    "artifacts": [{"type": "file", "path": "replies.json", "content": text}]}))
"#;

const MOCKS: &str = r"
mock_tools:
  - name: search
    responses:
      - {when: {type: contains, field: q, pattern: rust}, then: {output: {hits: 3}}}
    default: {output: {hits: 0}}
  - name: pay
    default: {status: error, error: no money}
";

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new(suite: &str) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let bench = Bench { folder };
        bench.write("suite.yaml", suite);
        bench.write("agent.py", AGENT);
        bench
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(crate::support::binary());
        command.args(arguments).current_dir(self.path());
        command
    }

    fn proctor(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.proctor(&[arguments, &["--json"]].concat());
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)))
    }

    fn test(&self, arguments: &[&str]) -> Value {
        self.json(&[&["test", "suite.yaml", "--agent", "stdio:python3 agent.py"], arguments].concat())
    }

    /// Checks the ledger for damage, and derives the decisions of a bundle again.
    fn verify(&self) {
        self.text(&["audit", "fsck"]);
        self.text(&["audit", "export", "-o", "bundle"]);
        let verified = self.proctor(&["audit", "verify", "bundle"]);
        // Nobody has said which ledger to trust; everything else is right.
        assert_eq!(verified.status.code(), Some(13), "{}", String::from_utf8_lossy(&verified.stdout));
        std::fs::remove_file(self.path().join("bundle")).unwrap();
    }

    fn text(&self, arguments: &[&str]) -> String {
        let output = self.proctor(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

/// A suite with one test that makes calls.
fn suite(calls: &Value, more: &str) -> String {
    let data = json!({"calls": calls, "report": true});
    format!(
        "test_suite: tools\n{MOCKS}\ntests:\n  - id: calls\n    name: Calls tools\n    task: {{description: Call, input_data: {data}}}\n{more}\n"
    )
}

fn run(result: &Value) -> &Value {
    &result["tests"][0]["runs"][0]
}

#[test]
fn mock_tools_answer_and_a_reported_call_counts_once() {
    let calls = json!([{"tool": "search", "input": {"q": "rust"}}, {"tool": "search", "input": {"q": "go"}}, {"tool": "pay"}]);
    let assertions = r#"    assertions:
      - {type: file_contains, config: {path: replies.json, pattern: '"hits": 3'}, critical: true}
      - {type: file_contains, config: {path: replies.json, pattern: no money}, critical: true}
      - {type: behavior, config: {must_use_tools: [search, pay], max_tool_calls: 3}}"#;
    let bench = Bench::new(&suite(&calls, assertions));
    let result = bench.test(&[]);
    assert_eq!(result["summary"]["passed"], 1, "{result}");
    // Everything is on record, under a principal of its own, and the ledger verifies.
    let task = run(&result)["task_id"].as_str().unwrap().to_owned();
    let shown = bench.text(&["session", "show", &task]);
    assert_eq!(shown.matches("allow search").count(), 2, "{shown}");
    bench.verify();
    let tail = bench.text(&["audit", "tail", "-n", "100", "--json"]);
    for (kind, code) in
        [("run", "suite_started"), ("run", "started"), ("run", "ended"), ("run", "test_ended")]
    {
        let is_there = tail.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        assert_eq!(
            is_there.filter(|record| record["kind"] == kind && record["code"] == code).count(),
            if code == "ended" { 2 } else { 1 },
            "{code}: {tail}"
        );
    }
    // The run is a trace: three calls, seen once each.
    bench.write(
        "checks.yaml",
        "- {assertion_id: used, type: trace, spec: {check: required_tools, tools: [search, pay]}}\n",
    );
    let verdict = bench.proctor(&["assert", "--session", &task, "--assertions", "checks.yaml"]);
    assert!(verdict.status.success(), "{}", String::from_utf8_lossy(&verdict.stdout));
}

#[test]
fn an_unknown_tool_is_named_with_those_that_there_are_and_the_agent_goes_on() {
    let bench = Bench::new(&suite(
        &json!([{"tool": "nothing"}]),
        "    assertions: [{type: file_contains, config: {path: replies.json, pattern: available_tools}}]",
    ));
    let result = bench.test(&[]);
    assert_eq!(result["summary"]["passed"], 1, "{result}");
}

#[test]
fn a_tool_outside_of_the_allowed_ones_is_refused_and_fails_the_run() {
    let more = "    constraints: {allowed_tools: [pay]}\n    assertions: [{type: file_exists, config: {path: replies.json}}]";
    let bench = Bench::new(&suite(&json!([{"tool": "search"}]), more));
    let result = bench.test(&[]);
    assert_eq!(result["summary"]["failed"], 1, "{result}");
    assert!(run(&result)["error"].as_str().unwrap().starts_with("TOOL_NOT_FOUND"), "{result}");
    assert!(bench.text(&["audit", "tail", "-n", "50"]).contains("tool_not_allowed"));
}

const POLICY: &str = r#"
version: "1"
default: deny
rules:
  - {id: no-paying, when: action.name == "pay", then: deny, reason: Nobody pays.}
  - {id: look-first, when: action.name == "search", then: ask, reason: Somebody must look.}
"#;

#[test]
fn the_policy_decides_and_only_the_suite_approves() {
    let calls = json!([{"tool": "pay"}, {"tool": "search", "input": {"q": "rust"}}]);
    let assertions = r"    assertions:
      - {type: file_contains, config: {path: replies.json, pattern: no-paying}}
      - {type: file_contains, config: {path: replies.json, pattern: WANTED}}";
    let refused = Bench::new(&suite(&calls, &assertions.replace("WANTED", "an approval is needed")));
    refused.write("policy.yaml", POLICY);
    let result = refused.test(&["--policy", "policy.yaml"]);
    assert_eq!(result["summary"]["passed"], 1, "{result}");
    let approvals = "\n    approvals: [{tool: search, decision: approve, reason: fine here}]";
    let approved = Bench::new(&suite(&calls, &(assertions.replace("WANTED", "'\"hits\": 3'") + approvals)));
    approved.write("policy.yaml", POLICY);
    let result = approved.test(&["--policy", "policy.yaml"]);
    assert_eq!(result["summary"]["passed"], 1, "{result}");
    let tail = approved.text(&["audit", "tail", "-n", "50"]);
    assert!(tail.contains("simulated_approval") && !tail.contains("alarm"), "{tail}");
}

#[test]
fn the_task_of_another_run_is_refused() {
    let calls = json!([{"tool": "search", "task_id": "6b1d6c1e-0000-4000-8000-000000000000"}]);
    let bench = Bench::new(&suite(
        &calls,
        "    assertions: [{type: file_contains, config: {path: replies.json, pattern: INVALID_REQUEST}}]",
    ));
    assert_eq!(bench.test(&[])["summary"]["passed"], 1);
    assert!(bench.text(&["audit", "tail", "-n", "50"]).contains("foreign_task"));
}

#[test]
fn calls_are_forwarded_recorded_and_replayed() {
    let server = crate::tool_server::ToolServer::start(r#"{"status":"success","output":{"price":42}}"#);
    let calls = json!([{"tool": "price", "input": {"of": "tea"}}]);
    let bench = Bench::new(&suite(
        &calls,
        "    constraints: {allowed_tools: [price]}\n    assertions: [{type: file_contains, config: {path: replies.json, pattern: '42'}}]",
    ));
    let result = bench.test(&["--tools-url", &server.url, "--record-tools", "calls.jsonl"]);
    assert_eq!(result["summary"]["passed"], 1, "{result}");
    drop(server);
    let result = bench.test(&["--replay-tools", "calls.jsonl"]);
    assert_eq!(result["summary"]["passed"], 1, "{result}");
    bench.write("suite.yaml", &suite(&json!([{"tool": "price", "input": {"of": "milk"}}]), "    assertions: [{type: file_contains, config: {path: replies.json, pattern: 'the recording has no call'}}]"));
    let result = bench.test(&["--replay-tools", "calls.jsonl"]);
    assert_eq!(result["summary"]["passed"], 1, "{result}");
}

#[test]
fn a_running_owner_decides_and_records() {
    let calls = json!([{"tool": "pay"}, {"tool": "search", "input": {"q": "rust"}}]);
    let assertions = "    assertions: [{type: file_contains, config: {path: replies.json, pattern: no-paying}}]\n    approvals: [{tool: '*', decision: approve}]";
    let bench = Bench::new(&suite(&calls, assertions));
    bench.write("policy.yaml", POLICY);
    let mut owner = bench.command(&["gate", "--policy", "policy.yaml"]);
    let mut owner = owner.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    wait_for_owner(&mut owner);
    let result = bench.test(&["--runs", "2"]);
    assert_eq!(result["summary"]["passed"], 1, "{result}");
    drop(owner.stdin.take());
    owner.wait().unwrap();
    let tail = bench.text(&["audit", "tail", "-n", "100"]);
    assert!(tail.contains("suite_started") && tail.contains("no-paying"), "{tail}");
    bench.verify();
    assert_eq!(bench.json(&["runs", "list"]).as_array().unwrap().len(), 1);
}

/// Waits until a `proctor gate` owns the state directory: it answers a line.
fn wait_for_owner(owner: &mut Child) {
    use std::io::{BufRead as _, BufReader, Write as _};
    owner.stdin.as_mut().unwrap().write_all(b"{\"tool\":\"x\"}\n").unwrap();
    let mut line = String::new();
    BufReader::new(owner.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("decision"), "{line}");
}

#[test]
fn suite_runs_are_listed_shown_exported_and_compared() {
    let bench =
        Bench::new(&suite(&json!([]), "    assertions: [{type: file_exists, config: {path: replies.json}}]"));
    let first = bench.test(&[]);
    let second = bench.test(&["--runs", "2"]);
    let listed = bench.json(&["runs", "list"]);
    assert_eq!(listed.as_array().unwrap().len(), 2);
    let newest = listed[0]["run"].as_str().unwrap();
    let exported = bench.json(&["runs", "export", newest]);
    assert_eq!(exported["tests"], second["tests"], "{exported}");
    assert_eq!(bench.json(&["runs", "export", listed[1]["run"].as_str().unwrap()])["tests"], first["tests"]);
    assert!(bench.text(&["runs", "show", "last"]).contains("Calls tools"));
    let compared = bench.proctor(&["runs", "compare", listed[1]["run"].as_str().unwrap(), "last"]);
    assert!(compared.status.success(), "{}", String::from_utf8_lossy(&compared.stderr));
    let unknown = bench.proctor(&["runs", "show", "feedbeef"]);
    assert_eq!(unknown.status.code(), Some(1));
}

#[test]
fn only_what_failed_is_run_again() {
    let suite = "test_suite: two\ntests:\n  - {id: good, name: Good, task: {description: x}, assertions: [{type: file_exists, config: {path: replies.json}}]}\n  - {id: bad, name: Bad, task: {description: x}, assertions: [{type: file_exists, config: {path: missing}}]}\n";
    let bench = Bench::new(suite);
    assert_eq!(bench.test(&[])["summary"]["total"], 2);
    let again = bench.test(&["--rerun", "failed"]);
    assert_eq!(
        (again["summary"]["total"].as_u64(), again["tests"][0]["id"].as_str()),
        (Some(1), Some("bad"))
    );
    let none =
        bench.proctor(&["test", "suite.yaml", "--agent", "stdio:python3 agent.py", "--rerun", "errors"]);
    assert_eq!(none.status.code(), Some(0));
    let said = String::from_utf8_lossy(&none.stderr);
    assert!(said.contains("none of 2 tests could not be evaluated"), "{said}");
}

/// A test that failed stays to be run again until it passes, also if reruns in between left it out.
#[test]
fn a_rerun_loses_no_test_that_failed() {
    let test = |id: &str| {
        format!(
            "  - {{id: {id}, name: N, task: {{description: x}}, assertions: [{{type: contains, config: {{pattern: here}}}}]}}\n"
        )
    };
    let bench = Bench::new(&format!("test_suite: three\ntests:\n{}{}{}", test("a"), test("b"), test("c")));
    let bad = SHELL_AGENT.to_owned();
    bench.write("agent.sh", &bad);
    let run = |more: &[&str]| -> Vec<String> {
        let result = bench.json(&[&["test", "suite.yaml", "--agent", "stdio:sh agent.sh"], more].concat());
        let tests = result["tests"].as_array().unwrap().iter();
        tests.map(|test| format!("{} {}", test["id"].as_str().unwrap(), test["verdict"])).collect()
    };
    let failed: Vec<String> = ["a", "b", "c"].iter().map(|id| format!("{id} \"failed\"")).collect();
    assert_eq!(run(&[]), failed);
    assert_eq!(run(&["--rerun", "failed", "--fail-fast"])[0], failed[0]);
    bench.write("agent.sh", &bad.replace("[]", r#"[{"type":"file","path":"out","content":"here"}]"#));
    let again = run(&["--rerun", "failed"]);
    assert_eq!(again, ["a \"passed\"", "b \"passed\"", "c \"passed\""]);
}

/// Without a policy that somebody wrote, a tool server is reached only for tools that the suite names.
#[test]
fn a_tool_server_without_a_policy_gets_only_calls_that_the_suite_names() {
    let server = crate::tool_server::ToolServer::start(r#"{"status":"success","output":{"done":true}}"#);
    let calls = json!([{"tool": "delete_production"}]);
    let found = |pattern: &str| {
        format!(
            "    assertions: [{{type: file_contains, config: {{path: replies.json, pattern: '{pattern}'}}}}]"
        )
    };
    let bench = Bench::new(&suite(&calls, &found("done")));
    let result = bench.test(&["--tools-url", &server.url]);
    assert_eq!(result["summary"]["failed"], 1, "{result}");
    let reason = run(&result)["error"].as_str().unwrap();
    assert!(reason.contains("TOOL_NOT_FOUND") && reason.contains("delete_production"), "{reason}");
    let named = format!("{}\n    constraints: {{allowed_tools: [delete_production]}}", found("done"));
    bench.write("suite.yaml", &suite(&calls, &named));
    let result = bench.test(&["--tools-url", &server.url]);
    assert_eq!(result["summary"]["passed"], 1, "{result}");
}

#[test]
fn errors_are_retried_and_each_attempt_is_shown() {
    let suite = "test_suite: retry\ntests:\n  - {id: t, name: T, task: {description: x}, assertions: [{type: file_exists, config: {path: replies.json}}]}\nagents:\n  - {name: crasher, type: cli, config: {command: 'sh -c \"exit 3\"', retry_count: 1, retry_delay_seconds: 0}}\n";
    let bench = Bench::new(suite);
    let result = bench.json(&["test", "suite.yaml", "--agent", "crasher"]);
    assert_eq!(run(&result)["earlier_attempts"].as_array().unwrap().len(), 1, "{result}");
    let result = bench.json(&["test", "suite.yaml", "--agent", "crasher", "--retries", "2"]);
    assert_eq!(run(&result)["earlier_attempts"].as_array().unwrap().len(), 2, "{result}");
    let shown = bench.proctor(&["runs", "show", "last"]).stdout;
    let shown = String::from_utf8(shown).unwrap();
    for line in ["attempt 1: error: ", "attempt 2: error: "] {
        assert_eq!(shown.matches(line).count(), 1, "{shown}");
    }
}

#[test]
fn the_first_suite_passes_and_says_something() {
    let folder = tempfile::tempdir().unwrap();
    let proctor = |arguments: &[&str], at: &Path| {
        Command::new(crate::support::binary()).args(arguments).current_dir(at).output().unwrap()
    };
    assert!(proctor(&["test", "--init", "first"], folder.path()).status.success());
    let first = folder.path().join("first");
    let passed = proctor(&["test", "suite.yaml"], &first);
    assert!(passed.status.success(), "{}", String::from_utf8_lossy(&passed.stdout));
    assert!(proctor(&["test", "suite.yaml", "--agent", "reference"], &first).status.success());
    let nop = proctor(&["test", "suite.yaml", "--agent", "nop", "--json"], &first);
    let nop: Value = serde_json::from_slice(&nop.stdout).unwrap();
    assert_eq!(nop["summary"]["failed"], 2, "{nop}");
    assert_eq!(proctor(&["test", "--init", "first"], folder.path()).status.code(), Some(1));
}

/// A suite of many short tests for a shell agent.
fn many_tests(count: u32) -> String {
    let test = |number: u32| {
        format!(
            "  - {{id: t{number}, name: Test {number}, task: {{description: x}}, assertions: [{{type: file_exists, config: {{path: out}}}}]}}\n"
        )
    };
    format!(
        "test_suite: many\ndefaults: {{timeout_seconds: 20}}\ntests:\n{}",
        (0..count).map(test).collect::<String>()
    )
}

const SHELL_AGENT: &str = r#"id=$(sed 's/.*"task_id":"\([^"]*\)".*/\1/'); echo x > out; echo '{"version":"1.0","task_id":"'"$id"'","status":"completed","artifacts":[],"metrics":{}}'"#;

/// Kills suite runs at random moments and resumes them: every test is on record exactly once.
#[test]
fn a_killed_suite_run_is_resumed_and_every_test_ends_once() {
    use crate::support::{count, seed};
    use proctor_core::random::SeededRandomness;
    let seed = seed();
    println!("seed {seed}");
    let random = SeededRandomness::new(seed);
    let mut kills = 0;
    while kills < count(200) {
        let bench = Bench::new(&many_tests(12));
        bench.write("agent.sh", SHELL_AGENT);
        let arguments = ["test", "suite.yaml", "--agent", "stdio:sh agent.sh", "--parallel", "2"];
        let mut started = false;
        loop {
            let listed = bench.proctor(&["runs", "list", "--json"]).stdout;
            started = started || String::from_utf8_lossy(&listed).contains("\"run\"");
            // The last kill may have come after the end was recorded.
            if String::from_utf8_lossy(&listed).contains("\"passed\"") {
                break;
            }
            let mut command = bench.command(&arguments);
            if started {
                command.arg("--resume");
            }
            let errors = std::fs::File::create(bench.path().join("errors")).unwrap();
            let mut child = command.stdout(Stdio::null()).stderr(errors).spawn().unwrap();
            let moment = std::time::Duration::from_millis(random.next_u64() % 250);
            // The moment itself is what is random here; nothing waits for anything.
            std::thread::sleep(moment);
            if let Some(status) = child.try_wait().unwrap() {
                let errors = std::fs::read_to_string(bench.path().join("errors")).unwrap();
                assert_eq!(status.code(), Some(0), "{errors}");
                break;
            }
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
        }
        let exported = bench.json(&["runs", "export", "last"]);
        let mut ids: Vec<&str> =
            exported["tests"].as_array().unwrap().iter().map(|test| test["id"].as_str().unwrap()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!((ids.len(), exported["summary"]["passed"].as_u64()), (12, Some(12)), "{exported}");
        assert_eq!(exported["tests"].as_array().unwrap().len(), 12);
        bench.verify();
    }
}

/// An agent that completes, for the task `hold` only once the file `go` exists.
fn waiting_agent(bench: &Bench) -> String {
    let go = bench.path().join("go");
    let wait =
        format!("case \"$line\" in *hold*) until [ -e '{}' ]; do sleep 0.02; done;; esac", go.display());
    let rest = SHELL_AGENT.replace("[]", r#"[{"type":"file","path":"out","content":"here"}]"#);
    format!("line=$(cat)\n{wait}\nprintf '%s' \"$line\" | (\n{rest}\n)\n")
}

/// Starts a suite run whose last test waits, and kills it when the others are on record. Returns what is on record.
fn killed_in_the_last_test(bench: &Bench, arguments: &[&str], tests: usize) -> Value {
    let mut command = bench.command(arguments);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let mut recorded = Value::Null;
    while std::time::Instant::now() < patience {
        let output = bench.proctor(&["runs", "export", "last", "--json"]);
        recorded = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let tests_on_record = recorded["tests"].as_array().into_iter().flatten();
        if tests_on_record.filter(|test| !test["runs"][0].is_null()).count() == tests - 1 {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    recorded
}

const HELD: &str = "test_suite: held\ntests:\n  - {id: a, name: A, task: {description: x}, assertions: [{type: contains, config: {pattern: here}}]}\n  - {id: b, name: B, tags: [slow], task: {description: hold}, assertions: [{type: contains, config: {pattern: here}}]}\n";

/// A suite run that has ended is never taken for a new one: green would be green for ever.
#[test]
fn only_a_suite_run_that_did_not_end_is_resumed() {
    let bench = Bench::new(HELD);
    bench.write("agent.sh", &waiting_agent(&bench));
    let arguments = ["test", "suite.yaml", "--agent", "stdio:sh agent.sh"];
    let resume = |more: &[&str]| {
        let output = bench.proctor(&[&arguments, more, &["--resume"]].concat());
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    killed_in_the_last_test(&bench, &arguments, 2);
    bench.write("go", "");
    let (code, said) = resume(&["--tags", "slow"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("was of 2 tests, the flags select 1"), "{said}");
    let (code, said) = resume(&[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("1 of 2 tests are kept, 1 to run"), "{said}");
    // It is one suite run, however often it was started.
    assert_eq!(bench.text(&["runs", "list"]).lines().count(), 1);
    let (code, said) = resume(&[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("has ended, so there is nothing to resume"), "{said}");
}

/// Reports of a part say so, and are not green.
#[test]
fn a_killed_suite_run_is_no_green_report() {
    let bench = Bench::new(HELD);
    bench.write("agent.sh", &waiting_agent(&bench));
    let arguments = ["test", "suite.yaml", "--agent", "stdio:sh agent.sh"];
    killed_in_the_last_test(&bench, &arguments, 2);
    let why = "1 of 2 tests have no result: the suite run did not end";
    let shown = bench.text(&["runs", "show", "last"]);
    assert!(shown.contains(why) && shown.contains("1 could not be evaluated"), "{shown}");
    bench.text(&["runs", "export", "last", "--report", "junit=j.xml,markdown=m.md,html=h.html"]);
    for file in ["j.xml", "m.md", "h.html"] {
        let text = std::fs::read_to_string(bench.path().join(file)).unwrap();
        assert!(text.contains(why), "{file}: {text}");
    }
    let junit = std::fs::read_to_string(bench.path().join("j.xml")).unwrap();
    assert!(junit.contains("errors=\"1\""), "{junit}");
}

/// Two agents share one owner of the state directory.
#[test]
fn a_second_agent_is_no_stranger_to_the_state_directory() {
    let bench = Bench::new(HELD);
    bench.write("agent.sh", &waiting_agent(&bench));
    bench.write("go", "");
    let words = ["test", "suite.yaml", "--agent", "stdio:sh agent.sh", "--agent", "nop"];
    let output = bench.proctor(&words);
    assert_eq!(output.status.code(), Some(10));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!said.contains("another process"), "{said}");
}

/// An id that the scanner takes for a secret is not on record; its test is found again all the same.
#[test]
fn a_test_whose_id_looks_like_a_secret_is_resumed_rerun_and_compared() {
    const IDS: [&str; 3] =
        ["ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8", "ghp_Z9y8X7w6V5u4T3s2R1q0P9o8N7m6L5k4J3h2", "plain"];
    let test = |id: &&str| {
        let pattern = if *id == IDS[1] { "absent" } else { "here" };
        format!(
            "  - {{id: {id}, name: N, task: {{description: {}}}, assertions: [{{type: contains, config: {{pattern: {pattern}}}}}]}}\n",
            if *id == IDS[2] { "hold" } else { "x" }
        )
    };
    let bench = Bench::new(&format!("test_suite: ids\ntests:\n{}", IDS.iter().map(test).collect::<String>()));
    bench.write("agent.sh", &waiting_agent(&bench));
    let arguments = ["test", "suite.yaml", "--agent", "stdio:sh agent.sh"];
    let run = |more: &[&str]| bench.json(&[&arguments, more].concat());
    let field = |result: &Value, pointer: &str| -> Vec<String> {
        let tests = result["tests"].as_array().unwrap().iter();
        tests.map(|test| test.pointer(pointer).unwrap().as_str().unwrap().to_owned()).collect()
    };
    // The last test waits until the suite run was killed.
    let first = killed_in_the_last_test(&bench, &arguments, IDS.len());
    let kept = field(&first, "/id");
    assert!(kept.iter().all(|id| id != IDS[0] && id != IDS[1]), "the scanner no longer cuts these: {kept:?}");
    bench.write("go", "");
    let resumed = run(&["--resume"]);
    assert_eq!(field(&resumed, "/id"), IDS);
    let tasks = |result: &Value| -> Vec<Value> {
        let tests = result["tests"].as_array().unwrap().iter().take(2);
        tests.map(|test| test["runs"][0]["task_id"].clone()).collect()
    };
    assert_eq!(tasks(&resumed), tasks(&first), "what had ended is not run again");
    let compared = run(&["--baseline", "last"]);
    let tests = compared.pointer("/comparison/statistics/tests").and_then(Value::as_array).unwrap();
    assert_eq!(tests.len(), IDS.len(), "each test is compared with itself: {tests:?}");
    assert_eq!(field(&run(&["--rerun", "failed"]), "/id"), [IDS[1]]);
}

/// An agent that writes a secret of its environment wherever it can.
const LEAKING_AGENT: &str = r#"
import base64, json, os, sys, urllib.parse, urllib.request
request = json.loads(sys.stdin.readline())
secret = os.environ["API_KEY"]
for number, text in enumerate([secret, base64.b64encode(secret.encode()).decode(), urllib.parse.quote(secret), "x" + base64.b64encode(("ab" + secret).encode()).decode()]):
    print(json.dumps({"version": "1.0", "task_id": request["task_id"], "sequence": number, "event_type": "reasoning",
        "timestamp": "2026-01-01T00:00:00Z", "payload": {"thought": text, text: 1}}), file=sys.stderr, flush=True)
    print("log line", text, file=sys.stderr)
body = json.dumps({"task_id": request["task_id"], "input": {"q": secret, secret: "name"}}).encode()
for tool in ["search", secret.replace("/", "_"), "nothing"]:
    url = request["context"]["tools_endpoint"] + "/" + urllib.parse.quote(tool)
    urllib.request.urlopen(urllib.request.Request(url, body)).read()
open("out.txt", "w").write(secret)
print(json.dumps({"version": "1.0", "task_id": request["task_id"], "status": "completed", "metrics": {},
    "artifacts": [{"type": "file", "path": "out.txt", "content": secret}], "error": secret, "trace_id": secret}))
"#;

#[test]
fn a_secret_is_nowhere_on_disk_and_its_emission_fails_the_run() {
    const SECRET: &str = "p4ss/w0rd+very\"long";
    let suite = format!(
        "test_suite: leak\nenvironment: {{API_KEY: '{SECRET}'}}\n{MOCKS}\ntests:\n  - {{id: t, name: T, task: {{description: x}}, assertions: [{{type: contains, config: {{pattern: nothing-of-the-kind}}}}]}}\n"
    );
    let bench = Bench::new(&suite);
    bench.write("agent.py", LEAKING_AGENT);
    let arguments = ["test", "suite.yaml", "--agent", "stdio:python3 agent.py", "--json"];
    let output = bench.proctor(&arguments);
    assert_eq!(output.status.code(), Some(10));
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("API_KEY"), "{text}");
    std::fs::remove_file(bench.path().join("suite.yaml")).unwrap();
    bench.text(&["audit", "export", "-o", "bundle"]);
    let encoded = |bytes: &[u8]| base64_text(bytes);
    let spellings: Vec<String> = vec![
        SECRET.to_owned(),
        SECRET.replace('"', "\\\""),
        "p4ss%2Fw0rd%2Bvery%22long".to_owned(),
        encoded(SECRET.as_bytes()),
        encoded(&SECRET.as_bytes()[1..]),
    ];
    let mut searched = 0;
    for_each_file(bench.path(), &mut |path, bytes| {
        searched += 1;
        for spelling in &spellings {
            let is_there = bytes.windows(spelling.len()).any(|window| window == spelling.as_bytes());
            assert!(!is_there, "{spelling} in {}", path.display());
        }
    });
    assert!(searched > 3);
    for spelling in &spellings {
        assert!(!text.contains(spelling.as_str()), "{spelling}: {text}");
    }
}

fn base64_text(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD_NO_PAD.encode(bytes)
}

fn for_each_file(folder: &Path, each: &mut dyn FnMut(&Path, &[u8])) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            for_each_file(&path, each);
        } else if path.is_file() {
            each(&path, &std::fs::read(&path).unwrap());
        }
    }
}

#[test]
fn a_configured_judge_scores_and_without_one_nothing_passes() {
    let suite = r"test_suite: judged
tests:
  - id: t
    name: T
    task: {description: x}
    assertions: [{type: llm_eval, config: {criteria: clarity, threshold: 0.8}}]
    attest: [{assertion_id: said, type: content, spec: {target: output.message, check: contains, value: '[]'}}]
";
    let bench = Bench::new(suite);
    let arguments = ["test", "suite.yaml", "--agent", "stdio:python3 agent.py", "--json"];
    let unset = bench.proctor(&arguments);
    let result: Value = serde_json::from_slice(&unset.stdout).unwrap();
    assert_eq!((unset.status.code(), result["summary"]["errors"].as_u64()), (Some(10), Some(1)), "{result}");
    assert!(result.to_string().contains("no judge is configured"), "{result}");
    let verdict = |score: &str| {
        let content = format!(r#"{{\"score\":{score},\"explanation\":\"clear\"}}"#);
        format!(
            r#"{{"choices":[{{"message":{{"role":"assistant","content":"{content}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":1,"completion_tokens":1}}}}"#
        )
    };
    for (score, code) in [("0.9", 0), ("0.5", 10)] {
        let server = crate::tool_server::ToolServer::start(verdict(score));
        let judged = bench
            .command(&arguments)
            .env("ATTEST_JUDGE_BASE_URL", server.base())
            .env("ATTEST_JUDGE_MODEL", "double")
            .env("ATTEST_CACHE_DIR", bench.path().join("cache"))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&judged.stdout).into_owned();
        assert_eq!(judged.status.code(), Some(code), "{text}");
        assert!(text.contains("clear"), "{text}");
    }
}
