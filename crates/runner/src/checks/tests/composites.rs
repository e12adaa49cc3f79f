use super::*;

/// A leaf that passes, fails, or cannot be evaluated.
fn leaf(kind: char) -> String {
    match kind {
        'p' => "{type: artifact_exists, config: {path: a}}".to_owned(),
        'f' => "{type: artifact_exists, config: {path: b}}".to_owned(),
        _ => "{type: pytest}".to_owned(),
    }
}

fn run(config: &str) -> AssertionResult {
    let response = json(r#"{"artifacts": [{"path": "a", "content": "x"}]}"#);
    let files = Memory::default();
    let evidence = Evidence { response: &response, events: &[], files: &files, has_tools: false };
    evaluate(&assertion(loaded("composite", config)), &evidence, &[])
}

fn list(operator: &str, leaves: &str) -> String {
    let leaves: Vec<String> = leaves.chars().map(leaf).collect();
    format!("{{operator: {operator}, conditions: [{}]}}", leaves.join(", "))
}

#[test]
fn three_valued_logic() {
    use Status::{Error, Failed, Passed};
    for (operator, leaves, status, score) in [
        ("and", "pp", Passed, 1.0),
        ("and", "pf", Failed, 0.5),
        ("and", "pe", Error, 0.0),
        ("and", "fe", Failed, 0.0),
        ("or", "fp", Passed, 1.0),
        ("or", "ff", Failed, 0.0),
        ("or", "fe", Error, 0.0),
        ("or", "pe", Passed, 1.0),
    ] {
        let result = run(&list(operator, leaves));
        assert_eq!((result.status, result.score), (status, score), "{operator} {leaves}");
    }
    for (kind, status, score) in [('p', Failed, 0.0), ('f', Passed, 1.0), ('e', Error, 0.0)] {
        let result = run(&format!("{{operator: not, condition: {}}}", leaf(kind)));
        assert_eq!((result.status, result.score), (status, score), "not {kind}");
    }
}

#[test]
fn thresholds_are_decided_if_both_ends_agree() {
    use Status::{Error, Failed, Passed};
    for (comparator, value, leaves, expected) in [
        (">=", "0.5", "pf", Passed),
        (">", "0.5", "pf", Failed),
        ("<", "0.6", "pf", Passed),
        ("<=", "0.4", "pf", Failed),
        ("==", "0.5", "pf", Passed),
        ("!=", "0.5", "pf", Failed),
        (">=", "0.5", "pe", Passed),
        (">=", "0.6", "pe", Error),
        ("<", "0.4", "pe", Failed),
        ("==", "0.2", "pe", Failed),
        ("==", "0.7", "pe", Error),
        ("!=", "0.2", "pe", Passed),
    ] {
        let config = format!(
            "{{operator: threshold, value: {value}, comparator: '{comparator}', condition: {}}}",
            list("and", leaves)
        );
        assert_eq!(run(&config).status, expected, "{comparator} {value} {leaves}");
    }
}

#[test]
fn reasons_are_named() {
    let result = run(&list("and", "pe"));
    assert_eq!(
        result.checks[0].message,
        "the composite cannot be decided, because `pytest`: the command was not run"
    );
    let result = run(&list("or", "pe"));
    assert!(result.checks[0].message.starts_with("the conditions hold, whatever could not be evaluated"));
    assert_eq!(result.checks[0].details.get("conditions").unwrap().as_array().unwrap().len(), 2);
}

#[test]
fn needs_and_answers_are_numbered_by_leaf() {
    let config = "{operator: and, conditions: [{type: no_errors}, {operator: not, condition: {type: custom_command, config: {command: a}}}, {type: composite, config: {operator: or, conditions: [{type: custom_command, config: {command: b}}]}}]}";
    let check = loaded("composite", config);
    let response = Json::object();
    let evidence = Evidence { response: &response, events: &[], files: &NoFiles, has_tools: false };
    let needs = needs(&check, &evidence, "fence");
    let named: Vec<(usize, String)> = needs
        .iter()
        .map(|need| match &need.request {
            Request::Command(command) => (need.leaf, command.words.join(" ")),
            Request::Judge(_) => (need.leaf, "judge".to_owned()),
        })
        .collect();
    assert_eq!(named, [(1, "a".to_owned()), (2, "b".to_owned())]);
    let answer = |leaf, code| Answer {
        leaf,
        reply: Reply::Command(CommandOutcome::Exited { code, stdout: String::new(), stderr: String::new() }),
    };
    let status = |first, second| {
        evaluate(&assertion(check.clone()), &evidence, &[answer(2, second), answer(1, first)]).status
    };
    assert_eq!((status(1, 0), status(0, 0), status(1, 1)), (Status::Passed, Status::Failed, Status::Failed));
}
