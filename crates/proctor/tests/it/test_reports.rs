//! Reports, statistics and comparisons of `proctor test` from the outside.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const SUITE: &str = r"
test_suite: sample
defaults: {timeout_seconds: 20}
tests:
  - id: hello
    name: Says <hello>
    task: {description: Say hello}
    assertions: [{type: artifact_exists, critical: true, config: {path: hello.txt}}]
  - id: bye
    name: Says good bye
    tags: [slow]
    task: {description: Say good bye}
    assertions: [{type: artifact_exists, critical: true, config: {path: bye.txt}}]
";

/// A plain agent that writes both files.
const GOOD: &str = "plain:sh -c 'echo hello > hello.txt; echo bye > bye.txt'";

/// A plain agent that writes one of them.
const HALF: &str = "plain:sh -c 'echo hello > hello.txt'";

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new(suite: &str) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("suite.yaml"), suite).unwrap();
        Bench { folder }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(crate::support::binary());
        command
            .args(["test", "suite.yaml"])
            .args(arguments)
            .current_dir(self.folder.path())
            .env("PROCTOR_AGENT", "not-read")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The exit code, and both streams.
    fn told(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = self.run(arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }
}

#[test]
fn every_format_is_written_and_says_the_same() {
    let bench = Bench::new(SUITE);
    let list = "junit=a.xml,sarif=a.sarif,json=a.json,html=a.html,markdown=a.md,jsonl=a.jsonl";
    let (code, stdout, _) = bench.told(&["--agent", HALF, "--report", list, "--json"]);
    assert_eq!(code, 10);
    let (printed, written) = (serde_json::from_str::<Value>(&stdout).unwrap(), bench.json("a.json"));
    assert_eq!(printed, written);
    assert_eq!(
        (written["conclusion"].as_str(), written["file"].as_str()),
        (Some("failed"), Some("suite.yaml"))
    );
    let protections = written["isolation"]["protections"].as_array().unwrap();
    assert_eq!(protections.len(), 10, "{written}");
    let junit = bench.read("a.xml");
    assert!(junit.contains(r#"tests="2""#) && junit.contains(r#"failures="1""#), "{junit}");
    assert!(junit.contains("Says &lt;hello&gt;"), "{junit}");
    let sarif = bench.json("a.sarif");
    let place = sarif.pointer("/runs/0/results/0/locations/0/physicalLocation").unwrap();
    assert_eq!(place.pointer("/artifactLocation/uri").unwrap(), "suite.yaml");
    assert_eq!(place.pointer("/region/startLine").unwrap(), 9);
    assert!(bench.read("a.html").contains("Says &lt;hello&gt;"));
    assert!(bench.read("a.md").starts_with("# sample: Failed\n"));
    let lines: Vec<Value> =
        bench.read("a.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.iter().filter(|line| line["kind"] == "test").count(), 2);
    assert_eq!(lines.last().unwrap()["kind"], "end");
}

#[test]
fn a_crash_is_explained_in_every_report() {
    let bench = Bench::new(SUITE);
    let list = "junit=a.xml,sarif=a.sarif,json=a.json,html=a.html,markdown=a.md,jsonl=a.jsonl";
    let agent = "stdio:sh -c 'echo out of luck >&2; exit 3'";
    let (code, stdout, _) = bench.told(&["--agent", agent, "--report", list]);
    assert_eq!(code, 10);
    for (name, text) in
        ["a.xml", "a.sarif", "a.json", "a.html", "a.md", "a.jsonl"].map(|name| (name, bench.read(name)))
    {
        assert!(text.contains("status 3") && text.contains("out of luck"), "{name}: {text}");
    }
    assert!(stdout.contains("status 3") && stdout.contains("| out of luck"), "{stdout}");
}

#[test]
fn several_runs_have_statistics_and_flaky_tests_are_named() {
    // The agent counts its runs in a file beside the suite; the sandbox would keep it from that.
    let bench = Bench::new(&SUITE.replace("    tags: [slow]\n", "    tags: [slow]\n    pass_rate: 0.5\n"));
    let counter = bench.folder.path().join("count");
    let script = format!(
        "plain:sh -c 'echo x >> {0}; echo hello > hello.txt; test $(wc -l < {0}) -eq 6 || echo bye > bye.txt'",
        counter.display()
    );
    let arguments =
        ["--agent", script.as_str(), "--runs", "4", "--sandbox", "off", "--report", "json=a.json"];
    let (code, stdout, stderr) = bench.told(&arguments);
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(stdout.contains("3 of 4 runs, needs 2, flaky"), "{stdout}");
    assert!(stdout.contains("success 75 % (95 %: 19 to 99), pass@2 100 %, pass^2 50 %"), "{stdout}");
    assert!(stdout.contains("7 of 8 runs passed") && stdout.contains("flaky tests: bye"), "{stdout}");
    let json = bench.json("a.json");
    assert_eq!(json.pointer("/statistics/flaky/0").unwrap(), "bye");
    assert_eq!(json.pointer("/tests/1/statistics/success/successes").unwrap(), 3);
    assert_eq!(json.pointer("/tests/0/statistics/stability").unwrap(), "stable");
}

#[test]
fn a_regression_against_a_stored_result_exits_10() {
    let bench = Bench::new(SUITE);
    let runs = ["--runs", "8", "--parallel", "2", "--sandbox", "off"];
    let with = |more: &[&'static str]| [&runs[..], more].concat();
    let (code, _, stderr) = bench.told(&with(&["--agent", GOOD, "--report", "json=base.json"]));
    assert_eq!(code, 0, "{stderr}");
    let worse = with(&["--agent", HALF, "--baseline", "base.json"]);
    let (code, stdout, _) = bench.told(&[&worse[..], &["--json"]].concat());
    let json: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        (code, json["conclusion"].as_str()),
        (10, Some("failed")),
        "only `--fail-on-regression` makes the comparison count: {json}"
    );
    let (_, stdout, _) = bench.told(&worse);
    assert!(stdout.contains("worse: bye") && stdout.contains("a regression is shown, of bye"), "{stdout}");
    let (code, stdout, _) = bench.told(&[&worse[..], &["--fail-on-regression", "--json"]].concat());
    let json: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        (code, json.pointer("/comparison/conclusion").unwrap()),
        (10, &Value::from("regression")),
        "{json}"
    );
    assert_eq!(json.pointer("/comparison/baseline").unwrap(), "base.json");
    let same = with(&["--agent", GOOD, "--baseline", "base.json", "--fail-on-regression"]);
    let (code, stdout, _) = bench.told(&same);
    assert_eq!(code, 0, "{stdout}");
    assert!(stdout.contains("no regression: a loss of 5 points is excluded"), "{stdout}");
}

#[test]
fn too_few_runs_exit_13_and_say_how_many_would_decide() {
    let bench = Bench::new(SUITE);
    let (code, stdout, _) = bench.told(&["--agent", GOOD, "--agent", GOOD, "--fail-on-regression"]);
    assert_eq!(code, 13, "{stdout}");
    assert!(stdout.contains("not enough runs to decide"), "{stdout}");
    assert!(stdout.contains("undecided, not enough runs: hello, bye"), "{stdout}");
}

#[test]
fn two_agents_are_compared_and_the_second_decides() {
    let bench = Bench::new(SUITE);
    let report = ["--report", "jsonl=a.jsonl"];
    let (code, stdout, _) = bench.told(&[&["--agent", HALF, "--agent", GOOD][..], &report].concat());
    assert_eq!(code, 0, "{stdout}");
    assert!(
        stdout.contains("1 passed, 1 failed with") && stdout.contains("2 passed, 0 failed with"),
        "{stdout}"
    );
    assert!(stdout.contains(&format!("compared with {HALF}: not enough tests (2) to tell")), "{stdout}");
    let agents: Vec<Value> =
        bench.read("a.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(agents.iter().filter(|line| line["kind"] == "test" && line["agent"] == HALF).count(), 2);
    let (code, stdout, _) = bench.told(&["--agent", GOOD, "--agent", HALF, "--json"]);
    let json: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, json["agent"].as_str()), (10, Some(HALF)));
    assert_eq!(json.pointer("/baseline_result/summary/passed").unwrap(), 2);
}

#[test]
fn tests_that_flags_leave_out_are_not_removed() {
    let bench = Bench::new(SUITE);
    bench.told(&["--agent", GOOD, "--report", "json=base.json"]);
    let (_, stdout, _) = bench.told(&["--agent", GOOD, "--baseline", "base.json", "--tags", "slow"]);
    assert!(stdout.contains("undecided, not enough runs: bye") && !stdout.contains("removed"), "{stdout}");
}

#[test]
fn mistakes_are_found_before_anything_is_run() {
    let bench = Bench::new(SUITE);
    std::fs::write(bench.folder.path().join("other.json"), r#"{"a": 1}"#).unwrap();
    let stored = r#"{"format": "proctor test", "version": "1.0", "suite": "x", "agent": "a", "tests": []}"#;
    std::fs::write(bench.folder.path().join("empty.json"), stored).unwrap();
    std::fs::write(bench.folder.path().join("later.json"), stored.replace("1.0", "2.0")).unwrap();
    for (arguments, says) in [
        (vec!["--report", "pdf=a.pdf"], "known are junit, sarif, json, html, markdown, jsonl"),
        (vec!["--report", "jsonl=no/a.jsonl"], "there is no folder"),
        (vec!["--baseline", "absent.json"], "absent.json: "),
        (vec!["--baseline", "other.json"], "other.json: not a result of `proctor test`"),
        (vec!["--baseline", "later.json"], "version `2.0` of the format is not known"),
        (vec!["--baseline", "empty.json"], "no test of the baseline has the id of a selected test"),
        (vec!["--fail-on-regression"], "there is nothing to compare with"),
        (vec!["--margin", "3"], "there is nothing to compare with"),
        (vec!["--agent", "nop", "--margin", "0"], "--margin: the margin `0` is no number of points"),
        (vec!["--agent", "nop", "--baseline", "empty.json"], "are both baselines"),
        (vec!["--agent", "nop", "--agent", "nop"], "given more than twice"),
    ] {
        let (code, stdout, stderr) = bench.told(&[&["--agent", "nop"], &arguments[..]].concat());
        assert_eq!((code, stdout.as_str()), (1, ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(says), "{arguments:?}: {stderr}");
    }
}

#[test]
fn an_interrupt_leaves_reports_with_what_there_is() {
    let bench = Bench::new(SUITE);
    let agent = "plain:sh -c 'grep -q bye && sleep 60; echo hello > hello.txt'";
    let child = bench
        .command(&["--agent", agent, "--report", "json=a.json,junit=a.xml,jsonl=a.jsonl,html=a.html"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The first test has ended when its line is there.
    let started = Instant::now();
    while std::fs::read_to_string(bench.folder.path().join("a.jsonl")).unwrap_or_default().is_empty() {
        assert!(started.elapsed() < Duration::from_secs(30), "the first test does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    let id = i32::try_from(child.id()).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(id).unwrap(), rustix::process::Signal::INT)
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let json = bench.json("a.json");
    assert_eq!(
        (json["interrupted"].as_bool(), json["conclusion"].as_str()),
        (Some(true), Some("interrupted"))
    );
    assert_eq!(json.pointer("/tests/0/verdict").unwrap(), "passed");
    assert!(bench.read("a.xml").contains("interrupted") && bench.read("a.html").contains("Interrupted"));
}
