//! Defects of the released platform, seen from outside. Each test carries the number of its defect; `docs/verification.md` says where the
//! others are.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// An agent that writes the file and then answers. `{}` is what it does before.
fn script(before: &str) -> String {
    format!(
        r#"read line
id=$(printf '%s' "$line" | sed 's/.*"task_id":"\([^"]*\)".*/\1/')
run=$(printf '%s' "$line" | sed 's/.*"run_number":\([0-9]*\).*/\1/')
answer() {{ printf '{{"version":"1.0","task_id":"%s","status":"completed","artifacts":[%s],"metrics":{{%s}}}}\n' "$id" "$1" "$2"; }}
event() {{ printf '{{"version":"1.0","task_id":"%s","timestamp":"2026-01-01T00:00:00Z","sequence":%s,"event_type":"%s","payload":%s}}\n' "$id" "$1" "$2" "$3" >&2; }}
{before}
"#
    )
}

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    /// A suite of one test with these members, and an agent.
    fn new(members: &str, agent: &str) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("tmp")).unwrap();
        let suite = format!(
            "test_suite: one\ntests:\n- id: t\n  name: The test\n  task: {{description: Do it}}\n{members}\n"
        );
        std::fs::write(folder.path().join("suite.yaml"), suite).unwrap();
        std::fs::write(folder.path().join("agent.sh"), script(agent)).unwrap();
        Bench { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(crate::support::binary())
            .args(["test", "suite.yaml"])
            .args(arguments)
            .current_dir(self.folder.path())
            .env("TMPDIR", self.path("tmp"))
            .output()
            .unwrap()
    }

    /// Exit code and result with this agent.
    fn result(&self, more: &[&str]) -> (i32, Value) {
        let output = self.run(&[&["--agent", "stdio:sh agent.sh", "--json"], more].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let result = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
        (output.status.code().unwrap(), result)
    }
}

#[test]
fn defect_01_an_agent_over_its_budget_is_evaluated_and_fails() {
    let members = "  constraints: {budget_usd: 0.5, max_steps: 1}\n  assertions: [{type: file_exists, critical: true, config: {path: out.txt}}]";
    let bench = Bench::new(members, "answer '' '\"cost_usd\": 9.5, \"total_steps\": 99'");
    let (code, result) = bench.result(&[]);
    let run = &result["tests"][0]["runs"][0];
    assert_eq!((code, run["verdict"].as_str()), (10, Some("failed")), "{result:#}");
    assert!(run["error"].as_str().unwrap().starts_with("BUDGET_EXCEEDED: "), "{run:#}");
    assert_eq!(run["assertions"][0]["status"], "failed", "what came is evaluated: {run:#}");
}

#[test]
fn defect_02_a_misspelt_assertion_runs_nothing() {
    let bench = Bench::new("  assertions: [{type: file_exist, config: {path: out.txt}}]", "answer");
    let output = bench.run(&["--agent", "nop"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    assert!(said.contains("did you mean `file_exists`?"), "{said}");
}

#[test]
fn defect_05_without_the_test_program_nothing_passes() {
    let bench = Bench::new("  assertions: [{type: pytest, config: {path: tests}}]", "answer");
    // A search path that certainly has no pytest.
    std::fs::create_dir(bench.path("bin")).unwrap();
    for program in ["sh", "sed"] {
        let found = ["/bin", "/usr/bin"].iter().map(|folder| format!("{folder}/{program}"));
        let found = found.into_iter().find(|path| std::path::Path::new(path).exists()).unwrap();
        std::os::unix::fs::symlink(found, bench.path("bin").join(program)).unwrap();
    }
    let output = Command::new(crate::support::binary())
        .args(["test", "suite.yaml", "--agent", "stdio:sh agent.sh", "--json"])
        .current_dir(bench.folder.path())
        .env("PATH", bench.path("bin"))
        .env("TMPDIR", bench.path("tmp"))
        .output()
        .unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(10));
    let run = &result["tests"][0]["runs"][0];
    assert_eq!(run["verdict"], "error", "{result:#}");
    assert_eq!(
        run["assertions"][0]["checks"][0]["message"],
        "the program `pytest` was not found; install it where the checks run"
    );
}

#[test]
fn defect_08_every_run_is_evaluated_in_a_workspace_of_its_own() {
    let members = "  assertions: [{type: file_exists, config: {path: out.txt}}, {type: file_count, config: {path: ., count: 1}}]";
    let bench = Bench::new(members, r#"[ "$run" = 2 ] || echo x > "out.txt"; touch "$TMPDIR/left"; answer"#);
    let (code, result) = bench.result(&["--runs", "3", "--parallel", "3"]);
    let test = &result["tests"][0];
    let verdicts: Vec<&str> =
        test["runs"].as_array().unwrap().iter().map(|run| run["verdict"].as_str().unwrap()).collect();
    assert_eq!((code, verdicts), (10, vec!["passed", "failed", "passed"]), "{result:#}");
    assert_eq!((test["verdict"].as_str(), test["flaky"].as_bool()), (Some("failed"), Some(true)));
    assert!(test["statistics"]["score"]["deviation"].as_f64() > Some(0.0), "{test}");
}

#[test]
fn defect_11_the_reason_of_an_error_is_in_every_report() {
    for (agent, reason) in [
        ("echo 'out of luck' >&2; exit 3", "the agent exited with status 3"),
        ("echo '{oops'", "not valid JSON"),
        ("sleep 60", "TIMEOUT: the agent took longer than 1 s"),
    ] {
        let bench =
            Bench::new("  constraints: {timeout_seconds: 1}\n  assertions: [{type: no_errors}]", agent);
        let (code, result) = bench.result(&[]);
        let error = result["tests"][0]["runs"][0]["error"].as_str().unwrap_or_default().to_owned();
        assert!(code == 10 && error.contains(reason), "{agent}: {result:#}");
        let output = bench.run(&["--agent", "stdio:sh agent.sh"]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(reason), "{agent}: {text}");
        assert_eq!(text.contains("| out of luck"), agent.contains("luck"), "{text}");
    }
}

#[test]
fn defect_12_files_of_the_user_are_not_touched() {
    let artifact = r#"{"type":"file","path":"notes.txt","content":"from the agent"}"#;
    let members = "  assertions: [{type: contains, config: {path: notes.txt, pattern: from the agent}}]";
    let bench = Bench::new(members, &format!("echo 'from the agent' > notes.txt; answer '{artifact}'"));
    std::fs::write(bench.path("notes.txt"), "mine").unwrap();
    let (code, result) = bench.result(&[]);
    assert_eq!(code, 0, "{result:#}");
    assert_eq!(std::fs::read_to_string(bench.path("notes.txt")).unwrap(), "mine");
    let mut names: Vec<_> =
        std::fs::read_dir(bench.folder.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    assert_eq!(
        names,
        [".proctor", "agent.sh", "notes.txt", "suite.yaml", "tmp"],
        "nothing but the state directory is written beside the suite"
    );
}

#[test]
fn defect_13_the_workspace_is_there_when_it_is_checked() {
    let members = "  assertions: [{type: file_contains, critical: true, config: {path: deep/out.txt, pattern: done}}, {type: custom_command, config: {command: grep done deep/out.txt}}]";
    let bench = Bench::new(members, "mkdir deep; echo done > deep/out.txt; answer");
    let (code, result) = bench.result(&[]);
    assert_eq!(code, 0, "{result:#}");
}

#[test]
fn defect_14_secrets_reach_no_disk() {
    let secret = "s3cr3t-v4lue-of-a-key";
    let members = format!("  environment: {{API_KEY: {secret}}}\n  assertions: [{{type: no_errors}}]");
    let agent = r#"echo "key $API_KEY" >&2; event 0 reasoning "{\"thought\":\"$API_KEY\"}"; answer "{\"type\":\"file\",\"path\":\"a\",\"content\":\"$API_KEY\"}""#;
    let bench = Bench::new(&members, agent);
    let (code, result) = bench.result(&[]);
    assert_eq!(code, 10, "an agent that emits a secret fails");
    assert!(!result.to_string().contains(secret));
    std::fs::remove_file(bench.path("suite.yaml")).unwrap();
    let mut folders = vec![bench.folder.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else {
                let content = std::fs::read(entry.path()).unwrap_or_default();
                let found = content.windows(secret.len()).any(|part| part == secret.as_bytes());
                assert!(!found, "{:?}", entry.path());
            }
        }
    }
}

#[test]
fn defect_16_limits_and_agents_of_the_suite_are_used() {
    let bench = Bench::new("  assertions: [{type: no_errors}]", "sleep 60");
    let suite = std::fs::read_to_string(bench.path("suite.yaml")).unwrap();
    let agents = "defaults: {timeout_seconds: 1}\nagents: [{name: mine, type: cli, config: {command: sh, args: [agent.sh]}}]\n";
    std::fs::write(bench.path("suite.yaml"), suite.replace("tests:\n", &format!("{agents}tests:\n")))
        .unwrap();
    // The only agent of the suite needs no flag.
    let output = bench.run(&["--json"]);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["agent"], "mine");
    assert_eq!(
        result["tests"][0]["runs"][0]["error"], "TIMEOUT: the agent took longer than 1 s",
        "{result:#}"
    );
}

#[test]
fn defect_17_the_samples_load() {
    let suites = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/suites");
    for entry in std::fs::read_dir(suites).unwrap().flatten() {
        if entry.path().extension().is_some_and(|ending| ending == "yaml") {
            let mut command = Command::new(crate::support::binary());
            let output = command.arg("test").arg(entry.path()).arg("--check").output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

/// A setting that this version does not have is refused, not ignored. Comparisons of time are for `--baseline`, not for an assertion that
/// never fires.
#[test]
fn defect_20_settings_are_honoured_or_refused() {
    let bench = Bench::new("  assertions: [{type: performance, config: {max_regression: 0.1}}]", "answer");
    let output = bench.run(&["--agent", "nop"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("`performance`"), "{said}");
    let bench = Bench::new("  assertions: [{type: no_errors}]", "echo started >&2; exit 1");
    let suite = std::fs::read_to_string(bench.path("suite.yaml")).unwrap();
    let agents =
        "agents: [{name: mine, type: cli, config: {command: sh, args: [agent.sh], retry_count: 2}}]\n";
    std::fs::write(bench.path("suite.yaml"), suite.replace("tests:\n", &format!("{agents}tests:\n")))
        .unwrap();
    let output = bench.run(&["--json"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let earlier = result["tests"][0]["runs"][0]["earlier_attempts"].as_array().map_or(0, Vec::len);
    assert_eq!(earlier, 2, "{said}{result:#}");
}

/// Not a defect of others: the agent that people begin with works.
#[test]
fn the_minimal_agent_of_the_examples_passes() {
    let bench = Bench::new(
        "  assertions: [{type: contains, critical: true, config: {path: answer.txt, pattern: 'Task: Do it'}}, {type: no_errors}]",
        "",
    );
    let agent = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agents/minimal.py");
    let agent = format!("stdio:python3 {}", agent.canonicalize().unwrap().display());
    let output = bench.run(&["--agent", &agent, "--json"]);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = &result["tests"][0]["runs"][0];
    assert_eq!((output.status.code(), run["events"].as_u64()), (Some(0), Some(3)), "{result:#}");
    assert!(run.get("warnings").is_none() && run.get("flawed_events").is_none(), "{run:#}");
}
