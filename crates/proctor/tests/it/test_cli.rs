//! `proctor test` from the outside: verdicts, reasons and exit codes, with agents that are shell scripts.

use std::process::{Command, Output};

const SUITE: &str = r"
test_suite: sample
defaults: {timeout_seconds: 5}
tests:
  - id: hello
    name: Says hello
    task: {description: Say hello}
    reference: [{path: hello.txt, content: hello}]
    assertions: [{type: artifact_exists, critical: true, config: {path: hello.txt}}]
";

/// A response with the right task id, as the end of a shell script that has read the request.
const ANSWER: &str = r#"id=$(sed 's/.*"task_id":"\([^"]*\)".*/\1/'); echo hello > hello.txt; echo '{"version":"1.0","task_id":"'"$id"'","status":"completed","artifacts":[],"metrics":{}}'"#;

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new(suite: &str) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("suite.yaml"), suite).unwrap();
        Bench { folder }
    }

    fn script(&self, name: &str, body: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        format!("stdio:sh {name}")
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(crate::support::binary())
            .args(["test", "suite.yaml"])
            .args(arguments)
            .current_dir(self.folder.path())
            .env("PROCTOR_AGENT", "not-read")
            .output()
            .unwrap()
    }

    fn result(&self, arguments: &[&str]) -> (i32, serde_json::Value) {
        let output = self.run(&[arguments, &["--json"]].concat());
        let json = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        (output.status.code().unwrap(), json)
    }
}

#[test]
fn an_agent_that_does_the_task_passes_and_nop_does_not() {
    let bench = Bench::new(SUITE);
    let agent = bench.script("agent.sh", ANSWER);
    let (code, result) = bench.result(&["--agent", &agent, "--runs", "2"]);
    assert_eq!((code, result["summary"]["passed"].as_u64()), (0, Some(1)), "{result}");
    assert_eq!(result["tests"][0]["runs"].as_array().unwrap().len(), 2);
    let (code, result) = bench.result(&["--agent", "nop"]);
    assert_eq!((code, result["summary"]["failed"].as_u64()), (10, Some(1)), "{result}");
    let (code, _) = bench.result(&["--agent", "reference"]);
    assert_eq!(code, 0);
}

/// A program may take long to end after it has answered; it gets two seconds for that.
#[test]
fn the_time_of_a_run_is_that_until_the_response() {
    let bench = Bench::new(SUITE);
    let agent = bench.script("agent.sh", &format!("{ANSWER}; exec >&- 2>&-; sleep 60"));
    let begin = std::time::Instant::now();
    let (code, result) = bench.result(&["--agent", &agent]);
    assert_eq!(code, 0, "{result}");
    assert!(begin.elapsed().as_secs_f64() >= 2.0, "the program was waited for");
    let took = result["tests"][0]["runs"][0]["duration_seconds"].as_f64().unwrap();
    assert!(took < 2.0, "{took} s");
}

#[test]
fn a_crash_is_an_error_with_its_status_and_its_last_lines() {
    let bench = Bench::new(SUITE);
    let agent = bench.script("agent.sh", &format!("{ANSWER}; echo out of luck >&2; exit 3"));
    let (code, result) = bench.result(&["--agent", &agent]);
    let run = &result["tests"][0]["runs"][0];
    assert_eq!((code, run["verdict"].as_str()), (10, Some("error")), "{result}");
    assert!(run["error"].as_str().unwrap().starts_with("the agent exited with status 3"), "{run}");
    assert_eq!(run["last_lines"][0], "out of luck");
    // Only errors: with `--gate` that is not enough to decide.
    assert_eq!(bench.result(&["--agent", &agent, "--gate"]).0, 13);
}

#[test]
fn defect_09_a_time_limit_ends_every_process_of_the_agent() {
    let bench = Bench::new(&SUITE.replace("timeout_seconds: 5", "timeout_seconds: 1"));
    let seconds = "4242";
    let agent = bench.script("agent.sh", &format!("setsid sleep {seconds} & sleep {seconds}"));
    let (code, result) = bench.result(&["--agent", &agent]);
    let run = &result["tests"][0]["runs"][0];
    assert_eq!(code, 10);
    assert_eq!(run["error"], "TIMEOUT: the agent took longer than 1 s", "{result}");
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let line = std::fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        line.starts_with(b"sleep\x004242\x00").then_some(())
    });
    assert_eq!(processes.count(), 0);
}

#[test]
fn defect_10_megabytes_on_stdout_before_stderr_closes_are_read() {
    let bench = Bench::new(SUITE);
    let flood = "head -c 3000000 /dev/zero | tr '\\0' 'x'; echo";
    let agent = bench.script("agent.sh", &format!("{flood}; {ANSWER}"));
    let (code, result) = bench.result(&["--agent", &agent]);
    assert_eq!(code, 0, "{result}");
}

#[test]
fn defect_19_a_foreign_task_id_is_an_error() {
    let bench = Bench::new(SUITE);
    let agent = bench.script(
        "agent.sh",
        r#"echo hello > hello.txt; echo '{"version":"1.0","task_id":"another","status":"completed","artifacts":[],"metrics":{}}'"#,
    );
    let (code, result) = bench.result(&["--agent", &agent]);
    let run = &result["tests"][0]["runs"][0];
    assert_eq!((code, run["verdict"].as_str()), (10, Some("error")), "{result}");
    assert!(run["error"].as_str().unwrap().contains("`another`"), "{run}");
}

#[test]
fn an_emitted_secret_fails_the_run_and_is_shown_nowhere() {
    let suite = format!("{SUITE}    environment: {{API_KEY: s3cr3t-v4lue-9}}\n");
    let bench = Bench::new(&suite);
    let agent = bench.script("agent.sh", &format!("echo \"key $API_KEY\" >&2; {ANSWER}"));
    let output = bench.run(&["--agent", &agent, "--json"]);
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(10), "{text}");
    assert!(text.contains("the agent emitted the secret API_KEY"), "{text}");
    assert!(!text.contains("s3cr3t"), "{text}");
}

#[test]
fn a_constraint_stops_the_agent_whatever_it_answers() {
    let bench = Bench::new(&format!("{SUITE}    constraints: {{allowed_tools: [search]}}\n"));
    let event = r#"{"version":"1.0","task_id":"'"$id"'","timestamp":"2026-01-01T00:00:00Z","sequence":0,"event_type":"tool_call","payload":{"tool":"shell"}}"#;
    let body = format!("{ANSWER}; echo '{event}' >&2");
    let agent = bench.script("agent.sh", &body);
    let (code, result) = bench.result(&["--agent", &agent]);
    let error = result["tests"][0]["runs"][0]["error"].as_str().unwrap().to_owned();
    assert_eq!(code, 10);
    assert!(error.starts_with("TOOL_NOT_FOUND: the agent used the tool `shell`"), "{error}");
}

#[test]
fn mistakes_run_nothing() {
    let bench = Bench::new(&SUITE.replace("assertions:", "asertions:"));
    let output = bench.run(&["--agent", "nop"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    assert!(text.contains("suite.yaml:9:5: $.tests[0]: unknown key `asertions`"), "{text}");
    let output = Bench::new(SUITE).run(&[]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("name the agent under test"));
}
