//! Agents that claim tool calls: only calls that reached a tool of the endpoint fulfil an assertion.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const SUITE: &str = r"
test_suite: claims
mock_tools:
  - {name: search, default: {output: {hits: 1}}}
tests:
  - {id: must, name: Must use, task: {description: x}, assertions: [{type: behavior, config: {must_use_tools: [search]}}]}
  - {id: min, name: At least, task: {description: x}, assertions: [{type: behavior, config: {min_tool_calls: 3}}]}
  - {id: attest, name: Required, task: {description: x}, attest: [{type: trace, spec: {check: required_tools, tools: [search]}}]}
  - {id: forbidden, name: Forbidden, task: {description: x}, attest: [{type: trace, spec: {check: forbidden_tools, tools: [search]}}]}
";

/// Tools that only a server or a recording has.
const UNMOCKED: &str = r"
test_suite: claims
tests:
  - id: must
    name: Must use
    task: {description: x}
    constraints: {allowed_tools: [search]}
    assertions: [{type: behavior, config: {must_use_tools: [search]}}]
";

const PROLOGUE: &str = r#"
import json, sys, urllib.error, urllib.request
request = json.loads(sys.stdin.readline())
task = request["task_id"]
def report():
    print(json.dumps({"version": "1.0", "task_id": task, "sequence": 0, "event_type": "tool_call", "timestamp": "2026-01-01T00:00:00Z",
        "payload": {"tool": "search", "input": {}, "status": "success", "output": {"hits": 1}}}), file=sys.stderr, flush=True)
def post(tool, body):
    try:
        urllib.request.urlopen(request["context"]["tools_endpoint"] + "/" + tool, body).read()
    except urllib.error.HTTPError:
        pass
def call():
    post("search", json.dumps({"task_id": task, "input": {}}).encode())
def answer(metrics):
    print(json.dumps({"version": "1.0", "task_id": task, "status": "completed", "artifacts": [], "metrics": metrics}))
"#;

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new(suite: &str) -> Bench {
        let bench = Bench { folder: tempfile::tempdir().unwrap() };
        bench.write("suite.yaml", suite);
        bench
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    fn proctor(&self, arguments: &[&str]) -> Output {
        Command::new(crate::support::binary()).args(arguments).current_dir(self.path()).output().unwrap()
    }

    /// Verdicts of the tests, in order, for an agent that runs this Python code.
    fn verdicts(&self, code: &str, more: &[&str]) -> Vec<String> {
        self.write("agent.py", &format!("{PROLOGUE}{code}\n"));
        let given = ["test", "suite.yaml", "--agent", "stdio:python3 agent.py", "--json"];
        let output = self.proctor(&[&given, more].concat());
        let result: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        let tests = result["tests"].as_array().unwrap().iter();
        tests.map(|test| test["verdict"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn calls_that_are_made_count() {
    let bench = Bench::new(SUITE);
    let made = bench.verdicts("call(); call(); call(); answer({})", &[]);
    assert_eq!(made, ["passed", "passed", "passed", "failed"]);
    let none = bench.verdicts("answer({})", &[]);
    assert_eq!(none, ["failed", "failed", "failed", "passed"]);
}

#[test]
fn a_call_that_is_only_reported_fulfils_nothing_and_is_forbidden_all_the_same() {
    assert_eq!(Bench::new(SUITE).verdicts("report(); answer({})", &[]), ["failed"; 4]);
}

#[test]
fn a_metric_is_no_call() {
    let verdicts = Bench::new(SUITE).verdicts("answer({'tool_calls': 5})", &[]);
    assert_eq!(verdicts, ["failed", "failed", "failed", "passed"]);
}

#[test]
fn a_malformed_call_and_one_of_another_task_are_no_use_of_the_tool() {
    let bench = Bench::new(SUITE);
    for code in [
        "post('search', b'garbage'); answer({})",
        "post('search', json.dumps({'task_id': 'another', 'input': {}}).encode()); answer({})",
    ] {
        let verdicts = bench.verdicts(code, &[]);
        assert_eq!(&verdicts[..3], ["failed"; 3], "{code}");
    }
}

#[test]
fn a_call_of_a_tool_that_does_not_exist_is_no_use_of_it() {
    assert_eq!(Bench::new(UNMOCKED).verdicts("call(); answer({})", &[]), ["failed"]);
}

#[test]
fn tools_of_a_recording_are_used_only_at_the_endpoint() {
    let bench = Bench::new(UNMOCKED);
    bench.write(
        "tools.jsonl",
        "{\"tool\":\"search\",\"input\":{},\"reply\":{\"status\":\"success\",\"output\":{\"hits\":1}}}\n",
    );
    let replayed = ["--replay-tools", "tools.jsonl"];
    assert_eq!(bench.verdicts("report(); answer({})", &replayed), ["failed"]);
    assert_eq!(bench.verdicts("call(); answer({})", &replayed), ["passed"]);
}

#[test]
fn tools_of_a_server_are_used_only_at_the_endpoint() {
    let bench = Bench::new(UNMOCKED);
    // Nobody listens there: the agent calls nothing.
    let served = ["--tools-url", "http://127.0.0.1:9/tools"];
    assert_eq!(bench.verdicts("report(); answer({})", &served), ["failed"]);
}

const EIGHT: &str = "test_suite: eight\ntests:\n";

/// Resuming with another half of the tests, or another number of runs, would lose tests or mix results.
#[test]
fn a_suite_run_is_resumed_only_with_the_same_tests_and_runs() {
    let tests: String = (1..=8)
        .map(|n| format!("  - {{id: t{n}, name: T{n}, task: {{description: x}}, assertions: [{{type: contains, config: {{pattern: hi}}}}]}}\n"))
        .collect();
    let bench = Bench::new(&format!("{EIGHT}{tests}"));
    let agent = "plain:sh -c 'echo hi; while [ ! -e go ]; do sleep 0.05; done'";
    // The agent waits in its own workspace, where no `go` ever appears: the suite run is killed in its first test.
    let started = |more: &[&str]| {
        let given = ["test", "suite.yaml", "--agent", agent];
        let mut child = Command::new(crate::support::binary())
            .args(given)
            .args(more)
            .current_dir(bench.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while bench.proctor(&["runs", "list"]).stdout.is_empty() {
            assert!(child.try_wait().unwrap().is_none(), "the suite run waits");
        }
        child.kill().unwrap();
        child.wait().unwrap();
    };
    started(&["--partition", "hash:1/2"]);
    let counts: Vec<usize> = ["hash:1/2", "hash:2/2"]
        .iter()
        .map(|part| {
            let output = bench.proctor(&[
                "test",
                "suite.yaml",
                "--agent",
                "nop",
                "--partition",
                part,
                "--json",
                "--state",
                "other",
            ]);
            let result: Value = serde_json::from_slice(&output.stdout).unwrap();
            result["tests"].as_array().unwrap().len()
        })
        .collect();
    assert_eq!(counts, [4, 4], "both parts have the same number, so that only their tests differ");
    for more in [
        ["--partition", "hash:2/2", "--resume"].as_slice(),
        &["--partition", "hash:1/2", "--runs", "2", "--resume"],
    ] {
        let given = ["test", "suite.yaml", "--agent", agent];
        let output = bench.proctor(&[&given, more].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("was of other tests, or of another number of runs"), "{said}");
    }
}
