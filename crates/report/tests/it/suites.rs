//! Snapshots of the report files of a suite, with every verdict, odd names and a baseline.

use std::path::Path;

use proctor_report::{SuiteReport, SuiteStream, suite_destinations, write_suite};
use proctor_runner::comparison::BaselineComparison;
use proctor_runner::results::SuiteResult;
use proctor_runner::statistics::Rule;

use crate::snapshots::{broken_into_lines, compare, indented_text};

/// Runs of a test that passed, then runs that failed.
fn runs(passed: usize, failed: usize) -> String {
    let run = |index: usize| {
        let (verdict, points) = if index < passed { ("passed", "96.5") } else { ("failed", "31.25") };
        let checks = format!(
            r#"[{{"name": "contains", "passed": {}, "score": {}, "message": "`<b>hello</b>` in a.txt"}}]"#,
            index < passed,
            u8::from(index < passed)
        );
        let part = r#"{"normalized": 0.965, "weight": 0.25, "weighted": 0.24125, "details": {}}"#;
        let events = if index < passed {
            String::new()
        } else {
            r#", "shown_events": [
                {"flawed": false, "event": {"event_type": "llm_request", "timestamp": "2026-01-01T00:00:00Z", "payload": {"model": "m & n", "tokens": 12}}},
                {"flawed": true, "event": {"event_type": "tool_call", "timestamp": "2026-01-01T00:00:01.500Z", "payload": {"tool": "<search>", "arguments": {"q": 1}}}}]"#
                .to_owned()
        };
        format!(
            r#"{{"run": {}, "task_id": "id-{index}", "verdict": "{verdict}", "ending": "completed",
                "score": {{"final_score": {points}, "components": {{"quality": {part}, "completeness": {part}, "efficiency": {part}, "cost": {part}}}}},
                "measures": {{"steps": 3, "cost_usd": 0.01}}, "duration_seconds": {}, "events": 2,
                "assertions": [{{"name": "contains", "status": "{verdict}", "score": 1, "critical": false, "optional": false, "checks": {checks}}}]{events}}}"#,
            index + 1,
            1.0 + index as f64 / 4.0
        )
    };
    (0..passed + failed).map(run).collect::<Vec<_>>().join(",")
}

/// A run that passed at the second attempt.
fn retried() -> String {
    let attempt = r#""earlier_attempts": [{"task_id": "id-c", "error": "the connection was reset & lost", "duration_seconds": 0.5}], "events""#;
    runs(1, 0).replacen("\"events\"", attempt, 1)
}

/// A result with every verdict.
fn result(falls: (usize, usize), is_interrupted: bool) -> SuiteResult {
    let test = |id: &str, name: &str, line: usize, verdict: &str, rest: &str| {
        format!(
            r#"{{"id": "{id}", "name": "{name}", "tags": ["a"], "at": {{"line": {line}, "column": 5}}, "verdict": "{verdict}", "duration_seconds": 2.5{rest}}}"#
        )
    };
    let crash = r#", "runs": [{"run": 1, "task_id": "id", "verdict": "error", "ending": "error",
        "error": "the agent exited with status 3", "duration_seconds": 0.1, "events": 0,
        "last_lines": ["Traceback (most recent call last):", "\u001b[31mKeyError\u001b[0m: <x> & ]]> \u0000 \u202e"], "warnings": ["the `version` is missing"],
        "earlier_attempts": [
            {"task_id": "id-a", "error": "no answer within <1> s", "duration_seconds": 1},
            {"task_id": "id-b", "error": "the agent exited with status 2", "duration_seconds": 0.2}]}]"#;
    let tests = [
        test("plain", "Says hello", 3, "passed", &format!(r#", "runs": [{}]"#, runs(1, 0))),
        test(
            "odd|name",
            r"<script>alert(1)<\/script> | \u001b `x` @team \uffff",
            9,
            "failed",
            &format!(r#", "runs": [{}]"#, runs(falls.0, falls.1)),
        ),
        test("crash", "Crashes", 15, "error", crash),
        test("later", "Is skipped", 21, "not_run", r#", "reason": "skipped: <needs a key>", "runs": []"#),
        test("new", "Is new", 27, "passed", &format!(r#", "runs": [{}]"#, runs(2, 0))),
        test("retried", "Is attempted twice", 33, "passed", &format!(r#", "runs": [{}]"#, retried())),
    ];
    let document = format!(
        r#"{{"format": "proctor test", "version": "1.0", "suite": "greetings & more", "file": "suites/my suite.yaml", "agent": "stdio:./agent <x>",
            "ended": "2025-11-15T20:45:07.123456Z", "interrupted": {is_interrupted}, "duration_seconds": 12.5,
            "isolation": {{"agent_is_outside": false, "protections": [
                {{"protection": "writes confined", "state": "held", "by": ["mount namespace", "Landlock"]}},
                {{"protection": "network closed", "state": "waived"}},
                {{"protection": "memory limit", "state": "missing", "reason": "the kernel <refuses> it"}}]}},
            "tests": [{}]}}"#,
        tests.join(",")
    );
    SuiteResult::read(document.as_bytes()).unwrap()
}

/// The texts of these report files.
fn written(report: &SuiteReport<'_>, kind: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report");
    write(report, kind, &path);
    std::fs::read_to_string(path).unwrap().replace(env!("CARGO_PKG_VERSION"), "[version]")
}

fn write(report: &SuiteReport<'_>, kind: &str, path: &Path) {
    let destinations = suite_destinations(&[format!("{kind}={}", path.display())]).unwrap();
    let mut stream = SuiteStream::open(&destinations).unwrap();
    for test in &report.result.tests {
        stream.test(&report.result.agent, test);
    }
    let mut failures = write_suite(report, &destinations);
    failures.extend(stream.end(report));
    assert!(failures.is_empty(), "{failures:?}");
}

fn check(name: &str, report: &SuiteReport<'_>, kind: &str) {
    let text = written(report, kind);
    let shown = match kind {
        "sarif" | "json" => indented_text(&text),
        "jsonl" => text.lines().map(indented_text).collect::<Vec<_>>().join("\n"),
        "html" => broken_into_lines(&text),
        _ => text,
    };
    compare(name, &shown);
}

#[test]
fn every_format() {
    let result = result((1, 1), false);
    let report = SuiteReport::new(&result);
    for kind in ["junit", "sarif", "json", "html", "markdown", "jsonl"] {
        check(&format!("suite_{kind}"), &report, kind);
    }
}

#[test]
fn every_format_shows_each_attempt_with_its_reason() {
    let result = result((1, 1), false);
    for kind in ["junit", "sarif", "json", "html", "markdown", "jsonl"] {
        let text = written(&SuiteReport::new(&result), kind);
        for reason in ["no answer within", "exited with status 2", "the connection was reset"] {
            assert!(text.contains(reason), "{kind}: {reason}: {text}");
        }
    }
}

#[test]
fn compared_with_a_baseline() {
    let mut before = result((20, 0), false);
    before.tests.retain(|test| test.id != "new");
    let after = result((2, 18), false);
    let comparison = BaselineComparison::new("main.json", &before, &after, &Rule::default());
    let report = SuiteReport { comparison: Some(&comparison), ..SuiteReport::new(&after) };
    let text = written(&report, "html");
    let (_, rest) = text.split_once("<h2>Compared with the baseline</h2>").unwrap();
    let (section, _) = rest.split_once("<h2>").unwrap();
    compare("suite_html_compared", &section.replace("><", ">\n<"));
    let markdown = written(&report, "markdown");
    let (_, rest) = markdown.split_once("## Comparison\n").unwrap();
    compare("suite_markdown_compared", rest.split_once("\n## ").unwrap().0);
}

#[test]
fn interrupted() {
    let mut result = result((1, 1), true);
    result.tests.truncate(2);
    compare("suite_markdown_interrupted", &written(&SuiteReport::new(&result), "markdown"));
}
