use super::*;
use crate::atp::{Number, ProblemKind, ReadError, Strictness, WarningKind};

const ID: &str = "550e8400-e29b-41d4-a716-446655440000";

fn request(members: &str) -> String {
    format!(r#"{{"version":"1.0","task_id":"{ID}","task":{{"description":"d"}}{members}}}"#)
}

fn problems(text: &str, strictness: Strictness) -> Vec<(String, ProblemKind)> {
    match Request::parse(text.as_bytes(), strictness) {
        Err(ReadError::Invalid(findings)) => {
            findings.problems.listed().iter().map(|found| (found.path.clone(), found.kind.clone())).collect()
        }
        Ok(_) => Vec::new(),
        Err(other) => panic!("{other}"),
    }
}

fn paths(text: &str) -> Vec<String> {
    problems(text, Strictness::Lenient).into_iter().map(|(path, _)| path).collect()
}

#[test]
fn built_requests_are_strictly_valid_and_leave_out_what_is_absent() {
    let budget = Json::Number("1.50".into());
    let constraints = Constraints {
        timeout_seconds: Some(300),
        allowed_tools: Some(vec!["web_search"]),
        budget_usd: Number::of(&budget),
        ..Constraints::default()
    };
    let context = Context {
        tools_endpoint: Some("http://127.0.0.1:9/abc"),
        environment: vec![("KEY", "hidden-value")],
        ..Context::default()
    };
    let built = Request::new(ID, "find it")
        .with_input_data(Json::object().with("a", 1u8))
        .with_expected_artifacts(vec![Json::object().with("type", "file").with("name", "r.md")])
        .with_constraints(&constraints)
        .with_context(&context)
        .with_metadata(Json::object().with("run_number", 1u8));
    assert_eq!(
        built.to_string(),
        format!(
            r#"{{"version":"1.0","task_id":"{ID}","task":{{"description":"find it","input_data":{{"a":1}},"expected_artifacts":[{{"type":"file","name":"r.md"}}]}},"constraints":{{"timeout_seconds":300,"allowed_tools":["web_search"],"budget_usd":1.50}},"context":{{"tools_endpoint":"http://127.0.0.1:9/abc","environment":{{"KEY":"hidden-value"}}}},"metadata":{{"run_number":1}}}}"#
        )
    );
    assert!(built.check(Strictness::Strict).is_valid());
    let read = Request::parse(built.to_string().as_bytes(), Strictness::Strict).unwrap();
    assert!(read.warnings.is_empty());
    assert_eq!(read.message, built);
    assert_eq!((read.message.constraints(), read.message.context()), (constraints, context));
    assert_eq!(read.message.timeout_seconds(), 300);
    assert_eq!(Request::new(ID, "d").timeout_seconds(), 300);
}

#[test]
fn values_of_the_environment_and_the_endpoint_are_not_shown() {
    let context = Context {
        tools_endpoint: Some("http://127.0.0.1:9/unguessable"),
        environment: vec![("KEY", "hidden-value")],
        ..Context::default()
    };
    let shown = format!("{:?}", Request::new(ID, "d").with_context(&context));
    assert!(shown.contains("KEY"), "{shown}");
    assert!(!shown.contains("hidden-value") && !shown.contains("unguessable"), "{shown}");
}

#[test]
fn all_problems_are_reported_at_once() {
    let text = r#"{"version":"2.0","task_id":"a b","task":{"description":"","input_data":[],"expected_artifacts":[{"type":"x"},{"name":1},"../a"]},
        "constraints":{"max_steps":0,"max_tokens":10000001,"timeout_seconds":86401,"allowed_tools":["a",1],"budget_usd":-0.01},
        "context":{"tools_endpoint":"ftp://x","workspace_path":"a\u0000","environment":{"A B":"v","C":1,"D":"\u0000"}},"metadata":[]}"#;
    let mut found = paths(text);
    found.sort();
    let mut expected = vec![
        "$.version",
        "$.task_id",
        "$.task.description",
        "$.task.input_data",
        "$.task.expected_artifacts[0].type",
        "$.task.expected_artifacts[1].name",
        "$.task.expected_artifacts[2]",
        "$.constraints.max_steps",
        "$.constraints.max_tokens",
        "$.constraints.timeout_seconds",
        "$.constraints.allowed_tools[1]",
        "$.constraints.budget_usd",
        "$.context.tools_endpoint",
        "$.context.workspace_path",
        "$.context.environment['A B']",
        "$.context.environment.C",
        "$.context.environment.D",
        "$.metadata",
    ];
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(paths("[]"), ["$"]);
    assert_eq!(paths("{}"), ["$.task_id", "$.task"]);
}

#[test]
fn descriptions_have_two_limits() {
    let text = |length: usize| {
        format!(r#"{{"version":"1.0","task_id":"{ID}","task":{{"description":"{}"}}}}"#, "ä".repeat(length))
    };
    assert!(problems(&text(10_000), Strictness::Strict).is_empty());
    assert_eq!(
        problems(&text(10_001), Strictness::Strict),
        [("$.task.description".to_owned(), ProblemKind::TooLong { most: 10_000 })]
    );
    let read = Request::parse(text(100_000).as_bytes(), Strictness::Lenient).unwrap();
    assert_eq!(read.warnings.count(WarningKind::LongDescription), 1);
    assert_eq!(paths(&text(100_001)), ["$.task.description"]);
}

#[test]
fn limits_of_runs_are_warnings_in_strict_mode() {
    let environment = |count: usize| {
        let entries: Vec<String> = (0..count).map(|index| format!(r#""V{index}":"v""#)).collect();
        request(&format!(r#","context":{{"environment":{{{}}}}}"#, entries.join(",")))
    };
    let metadata = |count: usize| {
        let entries: Vec<String> = (0..count).map(|index| format!(r#""m{index}":1"#)).collect();
        request(&format!(r#","metadata":{{{}}}"#, entries.join(",")))
    };
    let workspace =
        |length: usize| request(&format!(r#","context":{{"workspace_path":"{}"}}"#, "w".repeat(length)));
    for (good, bad, path) in [
        (environment(100), environment(101), "$.context.environment"),
        (metadata(50), metadata(51), "$.metadata"),
        (workspace(4096), workspace(4097), "$.context.workspace_path"),
    ] {
        assert!(paths(&good).is_empty(), "{path}");
        assert_eq!(paths(&bad), [path]);
        let read = Request::parse(bad.as_bytes(), Strictness::Strict).unwrap();
        assert_eq!(read.warnings.count(WarningKind::RefusedInRuns), 1, "{path}");
        assert!(read.warnings.listed()[0].to_string().starts_with(path), "{path}");
    }
}

#[test]
fn ranges_of_constraints_include_their_ends() {
    let constraint = |member: &str| request(&format!(r#","constraints":{{{member}}}"#));
    for good in [
        r#""max_steps":1"#,
        r#""max_steps":1000"#,
        r#""max_steps":1e3"#,
        r#""max_tokens":10000000.0"#,
        r#""timeout_seconds":86400"#,
        r#""budget_usd":0"#,
        r#""budget_usd":-0.0"#,
        r#""allowed_tools":[]"#,
    ] {
        assert!(problems(&constraint(good), Strictness::Strict).is_empty(), "{good}");
    }
    for bad in [
        r#""max_steps":1001"#,
        r#""max_steps":1.5"#,
        r#""max_steps":"5""#,
        r#""max_tokens":-1"#,
        r#""timeout_seconds":1e99"#,
        r#""budget_usd":"1""#,
    ] {
        assert_eq!(paths(&constraint(bad)).len(), 1, "{bad}");
    }
}

#[test]
fn what_released_platforms_send_is_a_warning() {
    let text = r#"{"task_id":"run_1-a","task":{"description":"d","input_data":null,"expected_artifacts":["out/report.md",{"type":null,"name":"n"}]},
        "constraints":{"max_steps":null},"context":null,"metadata":null}"#;
    let read = Request::parse(text.as_bytes(), Strictness::Lenient).unwrap();
    let counts: Vec<(WarningKind, u64)> = read.warnings.counts().collect();
    assert_eq!(
        counts,
        [
            (WarningKind::NoVersion, 1),
            (WarningKind::TaskIdNotUuid, 1),
            (WarningKind::NullForAbsent, 5),
            (WarningKind::ExpectedArtifactAsText, 1)
        ]
    );
    assert_eq!(
        read.message.to_string(),
        r#"{"task_id":"run_1-a","task":{"description":"d","expected_artifacts":["out/report.md",{"name":"n"}]},"constraints":{}}"#
    );
    let expected: Vec<ExpectedArtifact<'_>> = read.message.expected_artifacts().collect();
    assert_eq!(
        expected,
        [
            ExpectedArtifact::Path("out/report.md"),
            ExpectedArtifact::Described { kind: None, format: None, name: Some("n") }
        ]
    );
    assert_eq!(problems(text, Strictness::Strict).len(), 8);
}

#[test]
fn task_ids_have_their_grammar() {
    let with_id = |id: &str| {
        paths(&format!(r#"{{"version":"1.0","task_id":{id},"task":{{"description":"d"}}}}"#)).is_empty()
    };
    assert!(with_id(&format!("\"{}\"", "a".repeat(128))));
    for bad in ["\"\"", "\"a.b\"", "\" a\"", "\"ä\"", "1", "null"] {
        assert!(!with_id(bad), "{bad}");
    }
    assert!(!with_id(&format!("\"{}\"", "a".repeat(129))));
}

#[test]
fn higher_minor_versions_are_accepted() {
    for (version, good) in
        [("\"1.7\"", true), ("\"1.0\"", true), ("\"2.0\"", false), ("\"1\"", false), ("1.0", false)]
    {
        let text =
            format!(r#"{{"version":{version},"task_id":"{ID}","task":{{"description":"d"}},"new":[1]}}"#);
        for strictness in [Strictness::Lenient, Strictness::Strict] {
            assert_eq!(problems(&text, strictness).is_empty(), good, "{version}");
        }
    }
}
