//! Everything in a suite loads and means what it says.

use proctor_core::json::Json;

use super::*;
use crate::checks::{Check, WorkspacePath};
use crate::scoring::Weights;

#[test]
fn the_worked_example_loads() {
    let Loaded { suite, warnings } = loaded(WORKED_EXAMPLE);
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!((suite.name.as_str(), suite.version.as_str()), ("invoice_smoke", "1.0"));
    let test = &suite.tests[0];
    assert_eq!(
        (test.settings.runs, test.settings.pass_rate, test.settings.constraints.timeout_seconds),
        (2, 1.0, 20)
    );
    assert_eq!(
        test.settings.weights,
        Weights { quality: 0.5, completeness: 0.3, efficiency: 0.1, cost: 0.1 }
    );
    assert_eq!(
        (test.settings.constraints.max_steps, test.settings.constraints.max_tokens),
        (Some(8), Some(4000))
    );
    assert_eq!(*test.tags, ["smoke", "billing"]);
    assert_eq!(test.task.expected_artifacts.as_deref(), Some(&[Json::from("total.json")][..]));
    assert_eq!(test.assertions.len(), 3);
    assert!(test.assertions[0].critical && !test.assertions[1].critical);
    let AgentKind::Http(agent) = &suite.agents[0].kind else { panic!("an HTTP agent") };
    assert_eq!(agent.endpoint, "http://127.0.0.1:9000/execute");
}

#[test]
fn every_key_has_its_meaning() {
    let Loaded { suite, warnings } = loaded(EVERYTHING);
    assert!(warnings.is_empty(), "{warnings:?}");
    let (one, two) = (&suite.tests[0], &suite.tests[1]);
    assert_eq!(one.settings.constraints.timeout_seconds, 7);
    assert_eq!(
        (one.settings.constraints.max_steps, one.settings.constraints.budget_usd),
        (Some(8), Some(0.5))
    );
    assert_eq!(one.settings.constraints.allowed_tools.as_deref(), Some(&["calc".to_owned()][..]));
    assert_eq!(two.settings.constraints.timeout_seconds, 20);
    assert_eq!(
        (
            one.settings.runs,
            one.settings.pass_rate,
            one.settings.allow_partial,
            one.settings.strict,
            one.settings.network
        ),
        (1, 1.0, false, false, true)
    );
    assert_eq!(
        (
            two.settings.runs,
            two.settings.pass_rate,
            two.settings.allow_partial,
            two.settings.strict,
            two.settings.network
        ),
        (3, 0.9, true, true, false)
    );
    assert_eq!(one.settings.weights, Weights { quality: 1.0, completeness: 0.0, efficiency: 0.0, cost: 0.0 });
    assert_eq!(two.settings.weights, Weights { quality: 0.5, completeness: 0.5, efficiency: 0.0, cost: 0.0 });
    assert_eq!(
        (one.settings.skip.as_deref(), two.settings.skip.as_deref()),
        (Some("waits for the server"), None)
    );
    assert_eq!(one.settings.agents, ["a"]);

    let variables = |test: &TestCase| {
        test.settings
            .environment
            .iter()
            .map(|(name, value)| format!("{name}={}", value.expose()))
            .collect::<Vec<_>>()
    };
    assert_eq!(variables(one), ["TOKEN=other678", "EXTRA=1", "MODE=quick"]);
    assert_eq!(variables(two), ["TOKEN=abcdefgh", "MODE=quick"]);
    assert_eq!(
        (&*one.settings.public, &*two.settings.public),
        (&["EXTRA".to_owned(), "MODE".to_owned()][..], &["MODE".to_owned()][..])
    );

    let words =
        |commands: &[Command]| commands.iter().map(|command| command.words.join(" ")).collect::<Vec<_>>();
    assert_eq!(words(&one.settings.setup), ["mkdir out", "touch b", "touch c d"]);
    assert_eq!(words(&one.settings.teardown), ["rm b", "rm -r out"]);
    assert_eq!((one.settings.teardown[0].timeout_seconds, one.settings.teardown[1].timeout_seconds), (60, 5));

    let path = |written: &str| WorkspacePath::parse(written).unwrap();
    assert_eq!(
        one.settings.files,
        [
            FileItem {
                path: path("tests/test_a.py"),
                source: FileSource::Path("tests/test_a.py".to_owned())
            },
            FileItem { path: path("conftest.py"), source: FileSource::Inline(String::new()) },
            FileItem { path: path("data"), source: FileSource::Path("shared/data".to_owned()) },
        ]
    );
    assert_eq!(
        one.settings.reference,
        [FileItem { path: path("."), source: FileSource::Path("solution".to_owned()) }]
    );
    let tools: Vec<&str> = one.settings.approvals.iter().map(|approval| approval.tool.as_str()).collect();
    assert_eq!(tools, ["*", "shell"]);
    assert!(one.settings.approvals[0].answers("anything") && !one.settings.approvals[1].answers("anything"));
    assert_eq!(one.settings.mock_tools.len(), 1);
    assert_eq!(one.settings.mock_tools[0].responses.len(), 5);
    assert_eq!(two.settings.mock_tools[0].default.delay_ms, 5);
    assert_eq!(one.settings.attest[0].id, "said");
    assert_eq!((two.settings.attest[0].id.as_str(), two.settings.attest[0].kind.as_str()), ("a1", "trace"));
    assert_eq!(one.assertions.len(), 23);
    assert!(one.assertions[10].optional);
    assert!(matches!(one.assertions[22].check, Check::Composite(_)));
}

#[test]
fn json_is_read_as_yaml_is() {
    let root = proctor_yaml::parse(EVERYTHING.as_bytes(), &SUITE_LIMITS).unwrap();
    let json = root.to_json().to_string();
    let strip = |mut suite: Suite| {
        for test in &mut suite.tests {
            test.at = Position::START;
        }
        for agent in &mut suite.agents {
            agent.at = Position::START;
        }
        suite
    };
    assert_eq!(strip(loaded(&json).suite), strip(loaded(EVERYTHING).suite));
}

#[test]
fn json_escapes_beyond_the_basic_plane_are_joined() {
    let json = r#"{"test_suite": "s", "tests": [{"id": "a", "name": "\\ud83d \uD83D\uDE00\u00e4\/", "task": {"description": "d"}}]}"#;
    assert_eq!(loaded(json).suite.tests[0].name, "\\ud83d 😀ä/");
    let lone = json.replace("\\uD83D\\uDE00", "\\uD83D");
    assert!(!mistakes(&lone).is_empty());
}

#[test]
fn expected_artifacts_stay_as_written() {
    let suite = loaded(EVERYTHING).suite;
    let artifacts = suite.tests[0].task.expected_artifacts.as_ref().unwrap();
    let texts: Vec<String> = artifacts.iter().map(ToString::to_string).collect();
    assert_eq!(texts, [r#""a.txt""#, r#"{"type":"file","format":"text","name":"b.txt"}"#]);
}

#[test]
fn time_limits_come_from_the_nearest_place() {
    for (defaults, own, expected) in [
        ("{}", "{}", 300),
        ("{timeout_seconds: 20}", "{}", 20),
        ("{timeout_seconds: 20, constraints: {timeout_seconds: 30}}", "{}", 30),
        ("{timeout_seconds: 20, constraints: {timeout_seconds: 30}}", "{timeout_seconds: 40}", 40),
        ("{timeout_seconds: 20}", "{timeout_seconds: null}", 20),
    ] {
        let source = format!(
            "test_suite: s\ndefaults: {defaults}\ntests: [{{id: a, name: A, task: {{description: d}}, constraints: {own}}}]\n"
        );
        assert_eq!(loaded(&source).suite.tests[0].settings.constraints.timeout_seconds, expected, "{source}");
    }
}

#[test]
fn variables_are_replaced_in_values_at_any_depth() {
    let environment = |name: &str| match name {
        "A" => Some("x".to_owned()),
        "_B1" => Some("${A}".to_owned()),
        _ => None,
    };
    let read = |text: &str| {
        let source = with_test(&format!("description: '{text}'"));
        load(source.as_bytes(), &LoadOptions::new(&environment, &|_| None))
            .map(|loaded| loaded.suite.tests[0].description.clone())
    };
    for (written, expected) in [
        ("${A}", "x"),
        ("-${A}-${A:y}-", "-x-x-"),
        ("${_B1}", "${A}"),
        ("${C:}", ""),
        ("${C:a:b}", "a:b"),
        ("${C:default value}", "default value"),
        ("${lower} ${Mixed} ${} ${1A} $A ${A", "${lower} ${Mixed} ${} ${1A} $A ${A"),
        ("${lower${A}", "${lowerx"),
    ] {
        assert_eq!(read(written).unwrap(), expected, "{written}");
    }
    let problems = read("${MISSING}").unwrap_err();
    assert_eq!(
        problems[0].to_string(),
        "6:18: $.tests[0].description: the environment variable `MISSING` is not set; set it, or write a default: `${MISSING:…}`"
    );
    let deep = with_test("task2: x")
        .replace("task2: x", "environment: {K: \"${A}\"}")
        .replace("{description: d}", "{description: d, input_data: {\"${A}\": [\"${A}\"]}}");
    let suite = load(deep.as_bytes(), &LoadOptions::new(&environment, &|_| None)).unwrap().suite;
    assert_eq!(suite.tests[0].task.input_data.as_ref().unwrap().to_string(), r#"{"${A}":["x"]}"#);
    assert_eq!(suite.tests[0].settings.environment[0].1.expose(), "x");
}

#[test]
fn values_of_variables_never_reach_a_message() {
    let environment = |_: &str| Some("hunter2-secret".to_owned());
    for source in [
        with_test("runs: ${A}"),
        with_test("network: ${A}"),
        with_assertion("'${A}'", "{}"),
        with_assertion("contains", "{pattern: '(${A}', regex: true}"),
        with_assertion("file_exists", "{path: '../${A}'}"),
        with_assertion("security", "{checks: ['${A}']}"),
        with_test("agents: ['${A}']"),
        "test_suite: s\nagents: [{name: a, type: http, config: {endpoint: 'ftp://${A}'}}]\ntests: []\n"
            .to_owned(),
    ] {
        let problems = load(source.as_bytes(), &LoadOptions::new(&environment, &|_| None)).unwrap_err();
        let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(!shown.join("\n").contains("hunter2"), "{shown:?}");
        assert!(!shown.is_empty());
    }
    let suite =
        load(with_test("environment: {K: '${A}'}").as_bytes(), &LoadOptions::new(&environment, &|_| None))
            .unwrap();
    assert!(!format!("{suite:?}").contains("hunter2"));
}

#[test]
fn variables_cannot_fill_the_memory() {
    let environment = |_: &str| Some("x".repeat(1 << 20));
    let source = with_test(&format!("tags: [{}]", "\"${A}\", ".repeat(50)));
    let problems = load(source.as_bytes(), &LoadOptions::new(&environment, &|_| None)).unwrap_err();
    assert!(problems[0].message.contains("more than 16777216 bytes together"), "{}", problems[0]);
}

#[test]
fn a_secret_in_a_description_is_refused_where_it_stands() {
    let scan =
        |text: &str| text.find("sk-").map(|offset| SecretFinding { kind: "OpenAiKey".to_owned(), offset });
    let source = "test_suite: s\ntests:\n  - id: a\n    name: A\n    task:\n      description: |\n        Log in with\n        key sk-123\n";
    let problems = load(source.as_bytes(), &LoadOptions::new(&|_| None, &scan)).unwrap_err();
    assert_eq!(
        problems[0].to_string(),
        "8:13: $.tests[0].task.description: the description holds what looks like a secret (OpenAiKey); give it to the agent as a variable, under `environment`"
    );
    let hidden = source.replace("sk-123", "${KEY}");
    let environment = |_: &str| Some("sk-999".to_owned());
    let problems = load(hidden.as_bytes(), &LoadOptions::new(&environment, &scan)).unwrap_err();
    assert!(!problems[0].to_string().contains("999"));
}
