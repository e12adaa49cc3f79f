//! Defects of the released program, as far as loading decides them.

use super::*;
use crate::checks::{Behavior, Check};
use crate::scoring::Weights;

#[test]
fn defect_02_unknown_assertion_type_is_refused() {
    let source = with_assertion("artifact_exist", "{path: a}");
    assert_eq!(
        mistakes(&source),
        [
            "7:14: $.tests[0].assertions[0].type: unknown type of assertion `artifact_exist`; did you mean `artifact_exists`?"
        ]
    );
}

#[test]
fn defect_03_an_invalid_pattern_is_refused_at_load() {
    let found = mistakes(&with_test(
        "assertions:\n- {type: file_contains, critical: true, config: {path: a, pattern: '[', regex: true}}",
    ));
    assert_eq!(
        found,
        [
            "7:72: $.tests[0].assertions[0].config.pattern: `[` is not a regular expression: unclosed character class"
        ]
    );
}

#[test]
fn defect_04_partial_weights_are_complete() {
    let weights =
        |scoring: &str| loaded(&with_test(&format!("scoring: {scoring}"))).suite.tests[0].settings.weights;
    assert_eq!(
        weights("{quality_weight: 1.0}"),
        Weights { quality: 1.0, completeness: 0.0, efficiency: 0.0, cost: 0.0 }
    );
    assert!((weights("{quality_weight: 0.6, cost_weight: 0.4}").cost - 0.4).abs() < 1e-9);
    assert_eq!(weights("{}"), Weights::default());
    for (scoring, good) in [
        ("{quality_weight: 0.999}", true),
        ("{quality_weight: 0.9985}", false),
        ("{quality_weight: 1, cost_weight: 0.001}", true),
        ("{quality_weight: 0.995}", false),
        ("{quality_weight: 0.4}", false),
        ("{quality_weight: 0}", false),
    ] {
        assert_eq!(mistakes(&with_test(&format!("scoring: {scoring}"))).is_empty(), good, "{scoring}");
    }
}

#[test]
fn defect_06_check_no_errors_means_no_errors() {
    let test = &loaded(&with_assertion("behavior", "{check: no_errors}")).suite.tests[0];
    assert_eq!(
        test.assertions[0].check,
        Check::Behavior(Behavior { no_errors: true, ..Behavior::default() })
    );
}

#[test]
fn defect_15_security_checks_restrict_the_scan() {
    let test = &loaded(&with_assertion("security", "{checks: [pii_exposure]}")).suite.tests[0];
    let Check::Security(scan) = &test.assertions[0].check else { panic!("a scan") };
    assert_eq!(scan.subtypes, ["api_key", "credit_card", "email", "phone", "ssn"]);
}

#[test]
fn defect_16_defaults_and_agents_take_effect() {
    let source = "test_suite: s\ndefaults: {timeout_seconds: 2}\nagents: [{name: a, type: cli, config: {command: ./a}}]\ntests: [{id: a, name: A, task: {description: d}, agents: [a]}]\n";
    let suite = loaded(source).suite;
    assert_eq!(suite.tests[0].settings.constraints.timeout_seconds, 2);
    assert_eq!(suite.tests[0].settings.agents, ["a"]);
    assert!(matches!(&suite.agents[0].kind, AgentKind::Cli(agent) if agent.command == ["./a"]));
}

/// Forms that the released program's own examples use and its own loaders refuse or ignore.
#[test]
fn defect_17_forms_of_the_released_examples_load_or_say_what_to_write() {
    let quickstart = "test_suite: quickstart\nversion: \"1.0\"\ndescription: First steps\ndefaults:\n  runs_per_test: 1\n  timeout_seconds: 60\nagents:\n  - name: demo\n    type: cli\n    config:\n      command: python\n      args: [\"agent.py\"]\ntests:\n  - id: hello\n    name: Hello\n    tags: [smoke]\n    task:\n      description: Write hello to hello.txt\n      expected_artifacts: [hello.txt]\n    constraints: {max_steps: 5, max_tokens: null, allowed_tools: null}\n    assertions:\n      - type: artifact_exists\n        config: {path: hello.txt}\n      - type: behavior\n        config:\n          check: no_errors\n";
    assert!(loaded(quickstart).warnings.is_empty());
    for (kind, advice) in
        [("artifact_contains", "contains"), ("artifact_json_valid", "schema"), ("sections_exist", "sections")]
    {
        let found = mistakes(&with_assertion(kind, "{}"));
        assert!(found[0].ends_with(&format!("did you mean `{advice}`?")), "{found:?}");
    }
}
