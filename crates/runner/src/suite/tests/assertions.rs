//! Configurations of assertions.

use super::*;
use crate::checks::{Behavior, Check, CommandKind, Severity};

fn check(kind: &str, config: &str) -> Check {
    loaded(&with_assertion(kind, config)).suite.tests[0].assertions[0].check.clone()
}

#[test]
fn mistakes_in_configurations_are_found_at_load() {
    for (kind, config, expected) in [
        ("artifact_exists", "{}", "`path` is missing in the config of `artifact_exists`"),
        (
            "contains",
            "{pattern: ''}",
            ".config.pattern: an empty pattern matches everything; write what must be there",
        ),
        (
            "contains",
            "{pattern: '(', regex: true}",
            ".config.pattern: `(` is not a regular expression: unclosed group",
        ),
        (
            "contains",
            "{pattern: 'a{1000}{1000}', regex: true}",
            "needs too much memory; use smaller repetitions",
        ),
        ("contains", "{artifact: x, pattern: y}", "unknown key `artifact` in the config of `contains`"),
        ("schema", "{schema: {type: 5}}", ".config.schema: the schema is not valid at"),
        ("schema", "{schema: []}", "expected a mapping: a JSON Schema, found a list"),
        ("sections", "{sections: []}", ".config.sections: the list is empty: nothing would be checked"),
        (
            "behavior",
            "{}",
            "the config of `behavior` has no rule: nothing would be checked; write a rule, for example `no_errors: true`",
        ),
        (
            "behavior",
            "{must_use_tool: [a]}",
            "unknown key `must_use_tool` in the config of `behavior`; did you mean `must_use_tools`?",
        ),
        ("behavior", "{no_errors: false}", "`no_errors: false` checks nothing; write `true`, or remove it"),
        ("behavior", "{check: errors}", ".config.check: unknown value `errors`; did you mean `no_errors`?"),
        ("behavior", "{tool_call_order: any}", "has no rule"),
        (
            "behavior",
            "{expected_tool_calls: [{tool: a, input_matches: [{path: a, equals: 1}]}]}",
            "a path is `$` followed by",
        ),
        (
            "behavior",
            "{expected_tool_calls: [{tool: a, input_matches: [{path: $, equals: 1, exists: true}]}]}",
            "a matcher has exactly one of",
        ),
        (
            "behavior",
            "{expected_tool_calls: [{tool: a, input_matches: [{path: $, exists: false}]}]}",
            "`exists` can only be `true`; write `absent: true`",
        ),
        ("max_tool_calls", "{}", "`limit` is missing"),
        ("no_errors", "{check: x}", "unknown key `check` in the config of `no_errors`"),
        ("llm_eval", "{}", "`criteria` or `prompt` is missing in the config of `llm_eval`"),
        ("llm_eval", "{criteria: clarty}", "unknown value `clarty`; did you mean `clarity`?"),
        ("llm_eval", "{prompt: x, num_runs: 11}", "expected a whole number from 1 to 10, found `11`"),
        ("pytest", "{container: true}", "`container` is not supported yet"),
        ("pytest", "{path: -x}", "the path `-x` looks like an option; write `./` before it"),
        ("pytest", "{path: /etc}", "`/etc` is not relative"),
        ("custom_command", "{}", "`command` is missing in the config of `custom_command`"),
        ("custom_command", "{command: a, pattern: '\\d+'}", "the pattern has no group that counts"),
        (
            "code_exec",
            "{command: a, expect_zero: false}",
            "nothing would be checked; add `pattern` or `success_pattern`",
        ),
        ("lint", "{linter: flake8}", "unknown value `flake8`; known are `ruff`, `eslint`"),
        ("security", "{checks: []}", "no check is chosen: nothing would be searched for"),
        ("security", "{sensitivity: midium}", "unknown value `midium`; did you mean `medium`?"),
        ("security", "{pii_types: [mail]}", "unknown value `mail`; did you mean `email`?"),
        ("file_exists", "{path: ../x}", "`../x` leaves the workspace; write it without `..`"),
        (
            "file_exists",
            "{path: a, workspace_path: /tmp}",
            "`/tmp` is not relative; write a path below the workspace",
        ),
        ("file_count", "{operator: ne}", "unknown value `ne`"),
        ("composite", "{operator: xor}", "unknown value `xor`"),
        ("composite", "{operator: and, conditions: []}", "there are no conditions; write at least one"),
        ("composite", "{conditions: []}", "there are no conditions; write at least one"),
        ("pytest", "{threshold: 0}", "with a threshold of 0 everything passes; write a number above 0"),
        ("npm", "{threshold: 0.0}", "with a threshold of 0 everything passes"),
        ("custom_command", "{command: x, threshold: 0}", "with a threshold of 0 everything passes"),
        ("llm_eval", "{criteria: quality, threshold: 0}", "with a threshold of 0 everything passes"),
        ("composite", "{operator: and}", "`conditions` is missing in the config of `composite`"),
        (
            "composite",
            "{operator: not, conditions: []}",
            "`conditions` does not belong to the operator `not`",
        ),
        (
            "composite",
            "{conditions: [{type: no_errors, critical: true}]}",
            "unknown key `critical` in a condition",
        ),
        (
            "composite",
            "{conditions: [{type: no_erors}]}",
            ".config.conditions[0].type: unknown type of assertion `no_erors`; did you mean `no_errors`?",
        ),
    ] {
        let found = mistakes(&with_assertion(kind, config));
        assert!(found.iter().any(|line| line.contains(expected)), "{kind} {config}: {found:#?}");
    }
}

#[test]
fn usual_values() {
    let Check::Command(pytest) = check("pytest", "{}") else { panic!("a command") };
    assert_eq!(pytest.need().words, ["pytest", "--color=no", "tests"]);
    assert_eq!((pytest.threshold, pytest.timeout_seconds), (1.0, 300));
    let Check::Command(dash) = check("pytest", "{path: ./-x, args: -q --strict}") else {
        panic!("a command")
    };
    assert_eq!(dash.need().words, ["pytest", "--color=no", "-q", "--strict", "./-x"]);
    let Check::Command(npm) = check("npm", "{}") else { panic!("a command") };
    assert_eq!(npm.need().words, ["npm", "test"]);
    let Check::Command(custom) = check("code_exec", "{command: a 'b c'}") else { panic!("a command") };
    assert_eq!(custom.need().words, ["a", "b c"]);
    assert!(matches!(custom.kind, CommandKind::Custom { expect_zero: true, .. }));
    let Check::LlmEval(eval) = check("llm_eval", "{criteria: quality}") else { panic!("a judgement") };
    assert_eq!((eval.threshold, eval.num_runs), (0.7, 1));
    assert_eq!(
        check("no_errors", "{}"),
        Check::Behavior(Behavior { no_errors: true, ..Behavior::default() })
    );
}

#[test]
fn types_without_configuration_load_without_it() {
    let source = with_test(
        "assertions: [{type: no_errors}, {type: security}, {type: pytest}, {type: npm}, {type: file_count}]",
    );
    assert_eq!(loaded(&source).suite.tests[0].assertions.len(), 5);
    assert_eq!(
        mistakes(&with_test("assertions:\n- type: contains")),
        ["7:13: $.tests[0].assertions[0].config: `pattern` is missing in the config of `contains`"]
    );
}

#[test]
fn security_checks_select_subtypes() {
    let subtypes = |config: &str| {
        let Check::Security(scan) = check("security", config) else { panic!("a scan") };
        scan.subtypes.join(" ")
    };
    assert_eq!(subtypes("{}"), "api_key credit_card email phone ssn");
    assert_eq!(subtypes("{checks: [pii_exposure], pii_types: [ssn]}"), "ssn");
    assert_eq!(subtypes("{checks: [email, jailbreak]}"), "email jailbreak");
    assert_eq!(subtypes("{secret_types: [jwt_token]}"), "jwt_token");
    assert_eq!(subtypes("{checks: [prompt_injection]}"), "injection jailbreak role_manipulation");
    let Check::Security(scan) = check("security", "{sensitivity: high}") else { panic!("a scan") };
    assert_eq!(scan.sensitivity, Severity::High);
    let idle = loaded(&with_assertion("security", "{checks: [email], secret_types: [jwt_token]}"));
    assert_eq!(
        idle.warnings[0].to_string(),
        "7:50: $.tests[0].assertions[0].config: `secret_types` has no effect, because `checks` does not have `secret_leak`"
    );
}
