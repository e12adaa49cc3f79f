use proptest::prelude::*;

use super::*;

fn value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        "[ -~]{0,12}".prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let name = prop::sample::select(vec![
            "artifacts",
            "path",
            "content",
            "data",
            "error",
            "metrics",
            "tool_calls",
            "tool",
            "input",
            "x",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::Array),
            prop::collection::btree_map(name, inner, 0..5).prop_map(|members| Json::Object(
                members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            )),
        ]
    })
}

fn checks() -> Vec<Check> {
    [
        ("artifact_exists", "{path: x}"),
        ("contains", "{pattern: a}"),
        ("schema", "{schema: {type: object}}"),
        ("sections", "{sections: [a]}"),
        ("behavior", "{must_use_tools: [x], max_tool_calls: 1, no_errors: true, expected_tool_calls: [{tool: x, input_matches: [{path: $.x, exists: true}]}]}"),
        ("security", "{checks: [pii_exposure, prompt_injection, code_safety, secret_leak]}"),
        ("llm_eval", "{prompt: x}"),
        ("pytest", "{}"),
        ("npm", "{}"),
        ("lint", "{linter: ruff}"),
        ("custom_command", r"{command: x, pattern: '(?P<passed>\d+)'}"),
        ("composite", "{operator: or, conditions: [{type: pytest}, {operator: not, condition: {type: no_errors}}]}"),
        ("file_count", "{count: 1}"),
    ]
    .into_iter()
    .map(|(kind, config)| loaded(kind, config))
    .collect()
}

proptest! {
    #[test]
    fn any_evidence_gives_a_result(
        response in value(),
        payloads in prop::collection::vec((prop::sample::select(vec!["tool_call", "error", "other"]), any::<Option<u64>>(), value()), 0..5),
        code in any::<i32>(), output in "\\PC{0,80}",
    ) {
        let events: Vec<EventView<'_>> = payloads
            .iter()
            .map(|(event_type, sequence, payload)| EventView { sequence: *sequence, event_type, payload, is_doubtful: false })
            .collect();
        let evidence = Evidence { response: &response, events: &events, files: &NoFiles, has_tools: false };
        for check in checks() {
            let mut answers = exited(code, &output);
            answers.push(Answer { leaf: 0, reply: Reply::Judge(vec![JudgeReply::Text(output.clone())]) });
            for answers in [&answers[..1], &answers[1..], &[]] {
                let result = evaluate(&assertion(check.clone()), &evidence, answers);
                prop_assert!((0.0..=1.0).contains(&result.score));
                prop_assert_eq!(result.status == Status::Passed, result.checks.iter().all(|check| check.passed));
                prop_assert!(!result.checks.is_empty());
            }
            let _ = needs(&check, &evidence, "fence");
        }
    }

    #[test]
    fn paths_never_leave_the_workspace(written in "[a-z./\\\\~:]{0,20}") {
        if let Ok(path) = WorkspacePath::parse(&written) {
            prop_assert!(!path.as_str().starts_with('/'));
            prop_assert!(path.as_str().split('/').all(|segment| segment != ".." && !segment.is_empty()));
            let again = WorkspacePath::parse(path.as_str());
            prop_assert_eq!(again, Ok(path));
        }
    }
}
