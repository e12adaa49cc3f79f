use proctor_runner::comparison::BaselineComparison;
use proctor_runner::results::SuiteResult;
use proctor_runner::statistics::Rule;
use quick_junit::Report;

use super::*;
use proctor_core::json::Json;

/// A run as it is stored.
fn run(number: usize, verdict: &str, error: Option<&str>, events: usize) -> Json {
    let part = Json::object().with("normalized", 1u8).with("weight", 1u8);
    let mut components = Json::object();
    for name in ["quality", "completeness", "efficiency", "cost"] {
        components.push(name, part.clone());
    }
    let points: u8 = if verdict == "passed" { 100 } else { 20 };
    let mut json = Json::object()
        .with("run", number)
        .with("verdict", verdict)
        .with("ending", if error.is_some() { "error" } else { "completed" })
        .with("score", Json::object().with("final_score", points).with("components", components))
        .with("duration_seconds", 1u8)
        .with("events", events);
    if let Some(error) = error {
        json.push("error", error);
        json.push("last_lines", vec![Json::from("<b>last</b> \u{1b}[31m\u{0}\u{ffff} ]]> & \u{202e}")]);
    }
    let event = |index: usize| {
        let payload = Json::object().with("tool", "search").with("query", "<i>\u{7}x</i>".repeat(5));
        let event = Json::object()
            .with("event_type", "tool_call")
            .with("timestamp", format!("2026-01-01T00:00:{:02}Z", index % 60))
            .with("payload", payload);
        Json::object().with("flawed", index.is_multiple_of(7)).with("event", event)
    };
    if events > 0 {
        json.push("shown_events", (0..events).map(event).collect::<Vec<_>>());
    }
    json
}

fn test(id: &str, verdict: &str, runs: Vec<Json>) -> Json {
    let at = Json::object().with("line", 4u8).with("column", 5u8);
    let mut json = Json::object()
        .with("id", id)
        .with("name", format!("<Test> & \"{id}\" | `x` @team \u{1b}"))
        .with("at", at)
        .with("verdict", verdict)
        .with("runs", runs);
    if verdict == "not_run" {
        json.push("reason", "skipped: <later>");
    }
    json
}

fn suite(tests: Vec<Json>) -> SuiteResult {
    let document = Json::object()
        .with("format", "proctor test")
        .with("version", "1.0")
        .with("suite", "sample <suite>")
        .with("file", "suites/my suite.yaml")
        .with("agent", "stdio:./agent <x>")
        .with("tests", tests);
    SuiteResult::read(document.to_string().as_bytes()).unwrap()
}

fn sample() -> SuiteResult {
    suite(vec![
        test("passes", "passed", vec![run(1, "passed", None, 0)]),
        test("fails", "failed", vec![run(1, "failed", None, 3)]),
        test("breaks", "error", vec![run(1, "error", Some("the agent exited with status 3"), 0)]),
        test("skipped", "not_run", Vec::new()),
        test("flaky", "passed", vec![run(1, "passed", None, 0), run(2, "failed", None, 0)]),
    ])
}

#[test]
fn junit_is_read_back_with_failures_errors_and_skipped_apart() {
    let result = sample();
    let text = junit::write(&SuiteReport::new(&result)).unwrap();
    let report = Report::deserialize_from_str(&text).unwrap();
    let read = &report.test_suites[0];
    assert_eq!((read.tests, read.failures, read.errors), (5, 1, 1));
    assert_eq!(text.matches("<skipped ").count(), 1);
    for says in [
        "exited with status 3",
        "last lines of standard error:",
        "1 of 2 runs passed (flaky)",
        "run 2: failed, score 20.00, 1.0 s",
        "&lt;Test&gt; &amp; ",
    ] {
        assert!(text.contains(says), "{says}: {text}");
    }
    assert!(!text.chars().any(|character| character.is_control() && character != '\n'), "{text}");
    assert!(!text.contains('\u{ffff}') && !text.contains('\u{202e}'));
}

#[test]
fn sarif_results_are_at_the_tests_of_the_suite() {
    let result = sample();
    let json = sarif::to_json(&SuiteReport::new(&result));
    let run = json.pointer("/runs/0").unwrap();
    let results = run["results"].as_array().unwrap();
    let rules: Vec<&str> = results.iter().map(|result| result["ruleId"].as_str().unwrap()).collect();
    assert_eq!(rules, ["test-failed", "test-error", "flaky-test"]);
    for result in results {
        let place = result.pointer("/locations/0/physicalLocation").unwrap();
        assert_eq!(place.pointer("/artifactLocation/uri").unwrap(), &Json::from("suites/my%20suite.yaml"));
        assert_eq!(place.pointer("/region/startLine").unwrap().as_u64(), Some(4));
        assert_eq!(place.pointer("/region/startColumn").unwrap().as_u64(), Some(5));
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(
            run.pointer(&format!("/tool/driver/rules/{index}/id")).unwrap(),
            result.get("ruleId").unwrap()
        );
    }
    assert!(json.to_string().contains("`skipped` was not run: skipped: <later>"));
    assert_eq!(run.pointer("/invocations/0/executionSuccessful"), Some(&Json::Bool(false)));
}

#[test]
fn the_page_escapes_everything_and_loads_nothing() {
    let result = sample();
    let page = html::page(&SuiteReport::new(&result));
    for never in ["<script", "<b>", "<i>", "http://", "https://", "javascript:", "\u{202e}"] {
        assert!(!page.contains(never), "{never}");
    }
    assert!(page.contains("&lt;Test&gt; &amp;") && page.contains("&lt;b&gt;last"), "{page}");
    assert!(!page.chars().any(|character| character.is_control() && character != '\n'));
    // Every link has its target.
    for link in page.split("href=\"#").skip(1) {
        let id = link.split('"').next().unwrap();
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
}

#[test]
fn the_page_of_2000_failed_tests_with_timelines_stays_below_10_mb() {
    let failed =
        || test("t", "failed", vec![run(1, "failed", Some("x"), 120), run(2, "error", Some("y"), 120)]);
    let result = suite((0..2000).map(|_| failed()).collect());
    let page = html::page(&SuiteReport::new(&result));
    assert!(page.len() < 10_000_000, "{}", page.len());
    assert!(page.contains("more tests are explained in the JSON report only"));
    assert_eq!(page.matches("<tr>").count(), 2001);
    let sections = page.matches("<section").count();
    assert_eq!(page.matches("href=\"#test-").count(), sections);
}

#[test]
fn the_page_shows_the_baseline_and_the_timeline() {
    let many = |passed: usize, failed: usize| {
        let runs = (0..passed + failed).map(|index| {
            let verdict = if index < passed { "passed" } else { "failed" };
            run(index + 1, verdict, None, 2)
        });
        suite(vec![test("falls", "failed", runs.collect())])
    };
    let (before, after) = (many(30, 0), many(6, 24));
    let comparison = BaselineComparison::new("old.json", &before, &after, &Rule::default());
    let report =
        SuiteReport { comparison: Some(&comparison), fail_on_regression: true, ..SuiteReport::new(&after) };
    let page = html::page(&report);
    for says in
        ["Compared with the baseline", "worse", "a regression is shown", "Timeline: 2 events", "tool search"]
    {
        assert!(page.contains(says), "{says}");
    }
    let sarif = sarif::to_json(&report).to_string();
    assert!(sarif.contains(r#""ruleId":"regression""#), "{sarif}");
    assert!(markdown::write(&report).contains("- a regression is shown, of falls"));
}

#[test]
fn markdown_has_no_markup_of_others_and_mentions_nobody() {
    let result = sample();
    let text = markdown::write(&SuiteReport::new(&result));
    assert!(!text.contains("@team") && !text.contains("<Test>") && !text.contains('\u{1b}'), "{text}");
    assert!(text.contains("| error | &lt;Test&gt; &amp; \"breaks\" \\| \\`x\\` &#64;team"), "{text}");
    let fenced = suite(vec![test("a", "error", vec![run(1, "error", Some("```` text"), 0)])]);
    assert!(markdown::write(&SuiteReport::new(&fenced)).contains("\n`````text\n"));
}

#[test]
fn lines_are_written_as_tests_end_and_the_last_one_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tests.jsonl");
    let destinations = suite_destinations(&[format!("jsonl={}", path.display())]).unwrap();
    let mut stream = SuiteStream::open(&destinations).unwrap();
    let result = sample();
    let lines = || {
        let text = std::fs::read_to_string(&path).unwrap();
        text.lines().map(|line| Json::parse(line.as_bytes()).unwrap()).collect::<Vec<_>>()
    };
    stream.test("one", &result.tests[0]);
    assert_eq!(lines().len(), 1);
    stream.test("one", &result.tests[1]);
    assert_eq!(lines()[1].pointer("/test/verdict").unwrap(), &Json::from("failed"));
    assert!(write_suite(&SuiteReport::new(&result), &destinations).is_empty());
    assert!(stream.end(&SuiteReport::new(&result)).is_empty());
    let lines = lines();
    assert_eq!((lines.len(), lines[2]["kind"].as_str()), (3, Some("end")));
    assert!(lines[2].get("tests").is_none() && lines[2].get("summary").is_some());
}

#[test]
fn the_json_report_can_be_a_baseline() {
    let result = sample();
    let report = SuiteReport { baseline: Some(&result), ..SuiteReport::new(&result) };
    let text = suite_json(&report).to_string();
    assert_eq!(suite_document(&report).to_string(), text);
    assert_eq!(SuiteResult::read(text.as_bytes()).unwrap().to_json(), result.to_json());
}

#[test]
fn conclusions_never_call_green_what_nobody_evaluated() {
    let conclude = |tests: Vec<Json>, gate: bool| {
        let result = suite(tests);
        SuiteReport { gate, ..SuiteReport::new(&result) }.conclusion()
    };
    let of = |verdict: &str| test("t", verdict, Vec::new());
    assert_eq!(conclude(vec![], false), SuiteConclusion::Failed);
    assert_eq!(conclude(vec![of("not_run")], true), SuiteConclusion::Failed);
    assert_eq!(conclude(vec![of("passed"), of("not_run")], false), SuiteConclusion::Passed);
    assert_eq!(conclude(vec![of("passed"), of("error")], false), SuiteConclusion::Failed);
    assert_eq!(conclude(vec![of("passed"), of("error")], true), SuiteConclusion::Undecided);
    assert_eq!(conclude(vec![of("failed"), of("error")], true), SuiteConclusion::Failed);
    let runs = |passed: usize| (0..passed).map(|index| run(index + 1, "passed", None, 0)).collect::<Vec<_>>();
    let (before, after) =
        (suite(vec![test("t", "passed", runs(1))]), suite(vec![test("t", "passed", runs(1))]));
    let comparison = BaselineComparison::new("old", &before, &after, &Rule::default());
    let report = SuiteReport { comparison: Some(&comparison), ..SuiteReport::new(&after) };
    assert_eq!(report.conclusion(), SuiteConclusion::Passed);
    assert_eq!(SuiteReport { fail_on_regression: true, ..report }.conclusion(), SuiteConclusion::Undecided);
    let mut interrupted = after.clone();
    interrupted.is_interrupted = true;
    assert_eq!(SuiteReport::new(&interrupted).conclusion(), SuiteConclusion::Interrupted);
}

#[test]
fn kinds_of_suites_are_more_than_those_of_assertions() {
    let kinds = suite_destinations(&["pdf=a".to_owned()]).unwrap_err();
    assert!(
        kinds[0].to_string().ends_with("known are junit, sarif, json, html, markdown, jsonl"),
        "{kinds:?}"
    );
    assert!(crate::destinations(&["jsonl=a".to_owned()]).is_err());
}
