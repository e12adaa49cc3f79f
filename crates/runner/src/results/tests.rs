use std::time::Duration;

use proctor_core::json::Json;
use proctor_core::time::Timestamp;
use proctor_yaml::Position;
use proptest::prelude::*;

use super::*;
use crate::checks::{AssertionResult, CheckResult};
use crate::execute::ReceivedJson;
use crate::run::Attempt;
use crate::scoring::{Limits, Measures, Weights, score};

fn run(number: u32, verdict: Verdict) -> RunResult {
    RunResult {
        earlier_attempts: vec![Attempt {
            task_id: "earlier".to_owned(),
            error: "crashed".to_owned(),
            took: Duration::from_millis(5),
        }],
        number,
        task_id: format!("task-{number}"),
        verdict,
        ending: Ending::Completed,
        error: None,
        last_lines: Vec::new(),
        score: None,
        assertions: Vec::new().into(),
        trace_id: None,
        events: 0,
        flawed_events: 0,
        shown_events: Vec::new(),
        measures: Measures::default(),
        warnings: Vec::new(),
        took: Duration::from_millis(1500),
    }
}

fn assertion(status: Status, critical: bool, optional: bool) -> AssertionResult {
    let passed = status == Status::Passed;
    let points = if passed { 1.0 } else { 0.0 };
    AssertionResult {
        name: "contains".to_owned(),
        status,
        score: points,
        critical,
        optional,
        checks: vec![CheckResult {
            name: "contains".to_owned(),
            passed,
            score: points,
            message: "looked for `x`".to_owned(),
            details: Json::object().with("count", 1u8),
        }],
    }
}

/// A run whose score follows from its assertions.
fn scored(number: u32, verdict: Verdict, assertions: Vec<AssertionResult>) -> RunResult {
    let measures = Measures { steps: Some(3), tokens: Some(1000), cost_usd: Some(0.25) };
    let score = score(&assertions, &Weights::default(), &measures, &Limits::default());
    RunResult {
        score: Some(Arc::new(score)),
        assertions: assertions.into(),
        measures,
        ..run(number, verdict)
    }
}

fn test(id: &str, verdict: Option<Verdict>, runs: Vec<RunResult>) -> TestResult {
    TestResult {
        id: id.to_owned(),
        name: format!("Test {id}"),
        tags: vec!["smoke".to_owned()].into(),
        at: Position { line: 3, column: 5 },
        network: false,
        verdict,
        not_run: None,
        required: 2,
        runs,
        took: Duration::from_millis(3000),
    }
}

fn suite(tests: Vec<TestResult>) -> SuiteResult {
    SuiteResult {
        suite: "sample".to_owned(),
        file: "suite.yaml".to_owned(),
        agent: "plain:cat".to_owned(),
        tests,
        is_interrupted: false,
        took: Duration::from_secs(7),
        ended: Some(Timestamp::from_micros(1_763_239_507_123_456)),
        isolation: Isolation {
            is_outside: false,
            sandbox: "auto".to_owned(),
            protections: vec![
                ProtectionState {
                    name: "writes confined".to_owned(),
                    state: State::Held(vec!["mount namespace".to_owned(), "Landlock".to_owned()]),
                },
                ProtectionState { name: "network closed".to_owned(), state: State::Waived },
                ProtectionState {
                    name: "memory limit".to_owned(),
                    state: State::Missing("refused".to_owned()),
                },
            ],
        },
    }
}

fn sample() -> SuiteResult {
    let mut failed = scored(
        2,
        Verdict::Failed,
        vec![
            assertion(Status::Failed, true, false),
            assertion(Status::Error, false, true),
            assertion(Status::Error, false, false),
        ],
    );
    failed.error = Some("TIMEOUT: the agent took longer than 1 s".to_owned());
    failed.ending = Ending::Timeout;
    failed.last_lines = vec!["out of \u{1b}luck".to_owned()];
    failed.warnings = vec!["no version".to_owned()];
    failed.trace_id = Some("t-1".to_owned());
    failed.events = 2;
    failed.flawed_events = 1;
    failed.shown_events = vec![
        ReceivedJson { json: Json::object().with("event_type", "tool_call"), is_flawed: false },
        ReceivedJson { json: Json::from("odd"), is_flawed: true },
    ];
    let passed = scored(1, Verdict::Passed, vec![assertion(Status::Passed, false, false)]);
    let mut skipped = test("skipped", None, Vec::new());
    skipped.not_run = Some("skipped: later".to_owned());
    suite(vec![
        test("flaky", Some(Verdict::Failed), vec![passed, failed]),
        test("broken", Some(Verdict::Error), vec![run(1, Verdict::Error)]),
        skipped,
    ])
}

fn read_back(result: &SuiteResult) -> SuiteResult {
    SuiteResult::read(result.to_json().to_string().as_bytes()).unwrap()
}

#[test]
fn a_document_is_read_back_with_everything_that_it_says() {
    let (before, after) = (sample(), read_back(&sample()));
    assert_eq!(after.to_json().to_string(), before.to_json().to_string());
    assert_eq!((after.ended, &after.isolation), (before.ended, &before.isolation));
    let (expected, run) = (&before.tests[0].runs[1], &after.tests[0].runs[1]);
    assert_eq!((&run.score, &run.assertions), (&expected.score, &expected.assertions));
    assert_eq!((&run.shown_events, run.measures), (&expected.shown_events, expected.measures));
    assert_eq!(
        (run.ending, &run.last_lines, &run.warnings),
        (Ending::Timeout, &expected.last_lines, &expected.warnings)
    );
    assert_eq!(run.trace_id.as_deref(), Some("t-1"));
    assert_eq!(after.tests[0].at, Position { line: 3, column: 5 });
    assert_eq!(after.tests[2].not_run.as_deref(), Some("skipped: later"));
}

#[test]
fn the_document_as_text_is_that_of_the_json() {
    let (result, baseline) = (sample(), suite(Vec::new()));
    assert_eq!(result.document().to_string(), result.to_json().to_string());
    let text = result.document().with("conclusion", "failed").with_result("baseline_result", &baseline);
    let json = result.to_json().with("conclusion", "failed").with("baseline_result", baseline.to_json());
    assert_eq!(text.to_string(), json.to_string());
}

#[test]
fn statistics_stand_in_the_document() {
    let json = sample().to_json();
    let statistics = json.pointer("/tests/0/statistics").unwrap();
    assert_eq!(statistics.pointer("/success/rate").unwrap().to_string(), "0.5");
    assert_eq!(statistics.pointer("/score/n").unwrap().as_u64(), Some(2));
    assert!(statistics.pointer("/score/interval/low").is_some());
    assert_eq!(statistics.pointer("/pass/1/pass@k").unwrap().to_string(), "1.0");
    assert_eq!(statistics.pointer("/pass/1/pass^k").unwrap().to_string(), "0.0");
    assert_eq!(json.pointer("/statistics/flaky/0").unwrap(), &Json::from("flaky"));
    assert_eq!(json.pointer("/statistics/errors").unwrap().as_u64(), Some(1));
    assert!(json.pointer("/tests/2/statistics").is_none());
}

#[test]
fn events_that_are_too_large_or_too_deep_are_cut_and_the_rest_is_kept() {
    let mut deep = Json::from("x");
    for _ in 0..120 {
        deep = Json::Array(vec![deep]);
    }
    let large =
        Json::object().with("event_type", "progress").with("sequence", 7u8).with("payload", "x".repeat(5000));
    let mut failed = run(1, Verdict::Failed);
    failed.shown_events = vec![
        ReceivedJson { json: deep.clone(), is_flawed: false },
        ReceivedJson { json: large, is_flawed: false },
    ];
    let mut check = assertion(Status::Failed, false, false);
    check.checks[0].details = deep;
    failed.assertions = vec![check].into();
    let result = suite(vec![test("a", Some(Verdict::Failed), vec![failed])]);
    let read = read_back(&result);
    let kept = &read.tests[0].runs[0];
    assert_eq!(kept.shown_events[0].json.to_string(), r#"{"payload":{"cut":true}}"#);
    assert_eq!(
        kept.shown_events[1].json.to_string(),
        r#"{"event_type":"progress","sequence":7,"payload":{"cut":true}}"#
    );
    assert_eq!(kept.assertions[0].checks[0].details.to_string(), r#"{"cut":true}"#);
}

#[test]
fn the_events_of_all_runs_together_are_bounded() {
    let event = ReceivedJson { json: Json::object().with("payload", "x".repeat(4000)), is_flawed: false };
    let failed = RunResult { shown_events: vec![event; 500], ..run(1, Verdict::Failed) };
    let tests: Vec<TestResult> =
        (0..20).map(|index| test(&index.to_string(), Some(Verdict::Failed), vec![failed.clone()])).collect();
    let json = suite(tests).to_json();
    let kept = |index: usize| {
        let events = json.pointer(&format!("/tests/{index}/runs/0/shown_events")).unwrap();
        events.as_array().unwrap().len()
    };
    assert_eq!((kept(0), kept(19)), (500, 0));
    assert!(json.to_string().len() < 40 << 20);
}

#[test]
fn documents_that_are_no_result_say_what_is_wrong_and_where() {
    let head = r#""format": "proctor test", "version": "1.0", "suite": "s", "agent": "a""#;
    let run = r#""run": 1, "verdict": "passed", "ending": "completed""#;
    for (text, says) in [
        ("{".to_owned(), "not JSON"),
        ("[]".to_owned(), "not a result of `proctor test`"),
        (
            r#"{"format": "proctor test", "version": "2.0"}"#.to_owned(),
            "version `2.0` of the format is not known",
        ),
        (r#"{"format": "proctor test"}"#.to_owned(), "`$.version` is missing"),
        (format!("{{{head}}}"), "`$.tests` is missing"),
        (format!(r#"{{{head}, "tests": {{}}}}"#), "`$.tests` should be a list"),
        (format!(r#"{{{head}, "tests": [{{"id": 7}}]}}"#), "`$.tests[0].verdict` is missing"),
        (
            format!(r#"{{{head}, "tests": [{{"id": "a", "name": "a", "verdict": "good", "runs": []}}]}}"#),
            "`$.tests[0].verdict` should be `passed`, `failed` or `error`",
        ),
        (
            format!(
                r#"{{{head}, "tests": [{{"id": "a", "name": "a", "verdict": "passed", "runs": [{{{run}, "duration_seconds": -1}}]}}]}}"#
            ),
            "`$.tests[0].runs[0].duration_seconds` should be a number of seconds",
        ),
        (
            format!(
                r#"{{{head}, "tests": [{{"id": "a", "name": "a", "verdict": "passed", "runs": [{{{run}, "score": {{"final_score": 1e999}}}}]}}]}}"#
            ),
            "`$.tests[0].runs[0].score.components` is missing",
        ),
        (format!(r#"{{{head}, "tests": [], "ended": "yesterday"}}"#), "`$.ended` should be a time"),
    ] {
        let error = SuiteResult::read(text.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(says), "{error}: {says}");
    }
    // A higher minor version and members that are not known are accepted.
    let later = r#"{"format": "proctor test", "version": "1.7", "suite": "s", "agent": "a", "tests": [], "more": [1]}"#;
    assert!(SuiteResult::read(later.as_bytes()).is_ok());
}

#[test]
fn a_run_that_failed_before_it_could_be_scored_has_0_points_and_an_error_has_none() {
    let points: Vec<Option<f64>> = [Verdict::Failed, Verdict::Error, Verdict::Passed]
        .map(|verdict| super::points(&run(1, verdict)))
        .to_vec();
    assert_eq!(points, [Some(0.0), None, None]);
    let partly = test("a", Some(Verdict::Error), vec![run(1, Verdict::Error), run(2, Verdict::Failed)]);
    let statistics = partly.statistics();
    assert_eq!((statistics.errors, statistics.score.unwrap().n), (1, 1));
    // An error is no success: a crash never makes the success rate better.
    assert_eq!(statistics.success.unwrap().runs, 2);
}

#[test]
fn sentences_say_what_several_runs_show() {
    let passed = || scored(1, Verdict::Passed, vec![assertion(Status::Passed, false, false)]);
    let failed = || scored(1, Verdict::Failed, vec![assertion(Status::Failed, true, false)]);
    let one = test("one", Some(Verdict::Passed), vec![passed()]);
    assert_eq!(one.statistics().sentence(), None);
    assert_eq!(suite(vec![one.clone()]).statistics().sentence(), None);
    let several = test("several", Some(Verdict::Failed), vec![passed(), passed(), passed(), failed()]);
    let sentence = several.statistics().sentence().unwrap();
    assert!(
        sentence.contains("success 75 % (95 %: 19 to 99), pass@2 100 %, pass^2 50 %, stability: critical"),
        "{sentence}"
    );
    let sentence = suite(vec![one, several]).statistics().sentence().unwrap();
    assert!(sentence.contains("4 of 5 runs passed"), "{sentence}");
    assert_eq!(
        Counts { passed: 1, failed: 2, errors: 3, not_run: 4 }.sentence(),
        "1 passed, 2 failed, 3 could not be evaluated, 4 not run"
    );
}

#[test]
fn a_run_that_did_not_pass_always_has_a_reason() {
    assert!(reasons(&run(1, Verdict::Passed)).is_empty());
    assert_eq!(reasons(&run(1, Verdict::Failed)), ["the agent ended as `completed`"]);
    let sample = sample();
    let reasons = reasons(&sample.tests[0].runs[1]);
    assert_eq!(
        reasons,
        [
            "timeout: TIMEOUT: the agent took longer than 1 s",
            "contains (critical): looked for `x`",
            "contains: could not be evaluated: looked for `x`",
            "contains: could not be evaluated: looked for `x`",
        ]
    );
}

fn any_verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![Just(Verdict::Passed), Just(Verdict::Failed), Just(Verdict::Error)]
}

fn any_status() -> impl Strategy<Value = Status> {
    prop_oneof![Just(Status::Passed), Just(Status::Failed), Just(Status::Error)]
}

#[test]
fn scores_that_do_not_count_and_missing_passes_are_shown() {
    let mut stopped = scored(1, Verdict::Failed, vec![assertion(Status::Passed, false, false)]);
    stopped.ending = Ending::Stopped;
    stopped.error = Some("the agent emitted the secret KEY".to_owned());
    let mut result = test(
        "a",
        Some(Verdict::Failed),
        vec![stopped, scored(2, Verdict::Passed, vec![assertion(Status::Passed, false, false)])],
    );
    let mean = result.shown_mean().unwrap();
    assert!(mean.starts_with('(') && mean.ends_with(')'), "{mean}");
    assert_eq!(result.runs_sentence(), "1 of 2 runs, flaky");
    result.required = 1;
    assert_eq!(result.runs_sentence(), "1 of 2 runs, needs 1, flaky");
    result.runs.remove(0);
    assert!(!result.shown_mean().unwrap().starts_with('('));
}

#[test]
fn hints_name_a_closed_network_and_the_record() {
    let mut failed = run(1, Verdict::Error);
    failed.error = Some("the agent exited with status 1".to_owned());
    failed.last_lines = vec!["openai.APIConnectionError: Connection error.".to_owned()];
    failed.task_id = "t-1".to_owned();
    let mut result = test("a", Some(Verdict::Error), vec![failed]);
    let closed = "the network is closed for this test; `network: true` opens it";
    assert_eq!(hints(&result, &result.runs[0]), [closed, "`proctor session show t-1` shows what it did"]);
    result.network = true;
    assert_eq!(hints(&result, &result.runs[0]), ["`proctor session show t-1` shows what it did"]);
    result.network = false;
    result.runs[0].error = Some("the agent cannot be connected to: connection refused".to_owned());
    assert_eq!(hints(&result, &result.runs[0]).len(), 1);
    assert_eq!(hints(&result, &run(1, Verdict::Passed)), Vec::<String>::new());
}

prop_compose! {
    fn any_run()(
        number in any::<u32>(),
        verdict in any_verdict(),
        error in proptest::option::of(any::<String>()),
        lines in proptest::collection::vec(any::<String>(), 0..3),
        kinds in proptest::collection::vec((any_status(), any::<bool>(), any::<bool>()), 0..4),
        cost in proptest::option::of(0.0..1e12_f64),
        steps in proptest::option::of(any::<u64>()),
        has_score in any::<bool>(),
        took in 0_u64..10_000_000_000_000,
        events in proptest::collection::vec((any::<String>(), any::<bool>()), 0..3),
    ) -> RunResult {
        let assertions: Vec<AssertionResult> =
            kinds.into_iter().map(|(status, critical, optional)| assertion(status, critical, optional)).collect();
        let measures = Measures { steps, tokens: None, cost_usd: cost };
        let score =
            has_score.then(|| Arc::new(score(&assertions, &Weights::default(), &measures, &Limits::default())));
        let shown_events = events
            .into_iter()
            .map(|(text, is_flawed)| ReceivedJson { json: Json::object().with("payload", text), is_flawed })
            .collect();
        RunResult {
            error,
            last_lines: lines.clone(),
            warnings: lines,
            assertions: assertions.into(),
            measures,
            score,
            shown_events,
            took: Duration::from_nanos(took),
            ..run(number, verdict)
        }
    }
}

prop_compose! {
    fn any_suite()(
        names in proptest::collection::vec(any::<(String, String)>(), 0..4),
        runs in proptest::collection::vec(proptest::collection::vec(any_run(), 0..4), 4),
        verdict in proptest::option::of(any_verdict()),
        texts in any::<(String, String, String)>(),
        is_interrupted in any::<bool>(),
    ) -> SuiteResult {
        let tests = names.into_iter().zip(runs).map(|((id, name), runs)| TestResult {
            id,
            name,
            ..test("", verdict, runs)
        });
        SuiteResult { suite: texts.0, agent: texts.1, file: texts.2, is_interrupted, ..suite(tests.collect()) }
    }
}

proptest! {
    #[test]
    fn writing_what_was_read_gives_the_same_document(result in any_suite()) {
        let written = result.to_json().to_string();
        let read = SuiteResult::read(written.as_bytes()).unwrap();
        prop_assert_eq!(read.document().to_string(), written);
        prop_assert_eq!(read.counts(), result.counts());
        for (read, result) in read.tests.iter().zip(&result.tests) {
            prop_assert_eq!(read.points(), result.points());
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(text in any::<Vec<u8>>(), middle in "[ -~]{0,200}") {
        let _ = SuiteResult::read(&text);
        let framed = format!(r#"{{"format":"proctor test","version":"1.0","suite":"s","agent":"a","tests":[{middle}]}}"#);
        let _ = SuiteResult::read(framed.as_bytes());
    }
}
