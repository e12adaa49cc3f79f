//! All mistakes are reported at once, each where it stands.

use super::*;

#[test]
fn one_suite_with_many_mistakes_reports_all_of_them() {
    let source = r#"test_siute: s
version: 1.0
chaos: {}
defaults:
  runs_per_test: 0
  timeout: 5
  scoring: {quality_weight: 0.5}
  environment: {A: b}
agents:
  - {name: a, type: langgraph}
  - {name: a, type: cli}
  - {name: b, type: htp, config: {endpoint: x}}
  - {type: http, config: {endpoint: "localhost:80"}}
  - {name: c, endpoint: "http://h"}
environment: {1A: x, B: 5}
public: [MODE]
network: yes
setup: ["echo 'a", 5]
approvals: [{tool: x}]
mock_tools: [{name: a/b}, {name: c, responses: [{when: {pattern: x}}]}]
strict: "true"
tests:
  - id: one
    nmae: One
    task: {description: " ", input_data: {request_preparer: x}, expected_artifacts: [5]}
    mode: handoff
    runs: 0
    pass_rate: 2
    skip: true
    files: [../a, {path: b}]
    agents: [x]
    constraints: {timeout_seconds: 100000, max_steps: 0, budget_usd: -1, allowed_tool: []}
    scoring: {quality_weight: 1.0, cost_weight: 0.5}
    assertions:
      - {type: contians, config: {}}
      - {typ: contains}
      - 5
  - just text
"#;
    let expected = r"
1:1: $: `test_suite` is missing in the suite
1:1: $: unknown key `test_siute` in the suite; did you mean `test_suite`?
2:10: $.version: expected a string, found a number; put it in quotes
3:1: $: `chaos` is not supported yet; remove it
5:18: $.defaults.runs_per_test: expected a whole number from 1 to 10000, found `0`
6:3: $.defaults: unknown key `timeout` in the defaults; known are `runs_per_test`, `timeout_seconds`, `scoring`, `constraints`, `pass_rate`, `allow_partial`
7:12: $.defaults.scoring: the weights have the sum 0.5, and it must be 1; weights that are not given are 0; without `scoring` they are 0.4, 0.3, 0.2 and 0.1
8:3: $.defaults: `environment` stands beside `defaults`, at the top of the suite, or in a test
10:21: $.agents[0].type: agents of type `langgraph` are not supported; write a program that reads a request on stdin (`type: cli`)
11:5: $.agents[1]: `config` is missing in an agent of type `cli`
11:12: $.agents[1].name: the name `a` is that of another agent; give each agent its own name
12:21: $.agents[2].type: unknown type of agent `htp`; did you mean `http`?
13:5: $.agents[3]: `name` is missing in an agent
13:37: $.agents[3].config.endpoint: the address `localhost:80` has the wrong form; begin it with http:// or https://
14:15: $.agents[4]: `endpoint` belongs to the `config` of an agent
15:15: $.environment: `1A` is not the name of a variable; use letters, digits and underscores
15:25: $.environment.B: expected a string, found a number; put it in quotes
16:10: $.public[0]: `MODE` is no variable of `environment`
17:10: $.network: unknown value `yes`; known are `allow`, `deny`
18:9: $.setup[0]: a quote is not closed
18:20: $.setup[1]: expected a command line or a list of words, found a number
19:13: $.approvals[0]: `decision` is missing in an approval
20:21: $.mock_tools[0].name: the name of a tool has no `/`: it is a part of an address
20:49: $.mock_tools[1].responses[0]: `then` is missing in a mock response
20:56: $.mock_tools[1].responses[0].when: `type` is missing beside `pattern`; known are `exact`, `contains`, `regex`, `any`
21:9: $.strict: expected `true` or `false`, found a string; take off the quotes
23:5: $.tests[0]: `name` is missing in a test
24:5: $.tests[0]: unknown key `nmae` in a test; did you mean `name`?
25:25: $.tests[0].task.description: the text is blank; write something
25:43: $.tests[0].task.input_data: `request_preparer` is not supported; prepare the run with `setup` and `workspace_fixture`
25:86: $.tests[0].task.expected_artifacts[0]: expected a string or a mapping, found a number; put it in quotes
26:11: $.tests[0].mode: `mode: handoff` is not supported: a test runs one agent
27:11: $.tests[0].runs: expected a whole number from 1 to 10000, found `0`
28:16: $.tests[0].pass_rate: expected a number from 0 to 1, found `2`
29:11: $.tests[0].skip: a skipped test needs a reason; write it as text: `skip: waits for …`
30:13: $.tests[0].files[0]: `../a` leaves the workspace; write it without `..`
30:19: $.tests[0].files[1]: a file has either `content` or `source`
31:14: $.tests[0].agents[0]: the suite has no agent `x`; did you mean `a`?
32:36: $.tests[0].constraints.timeout_seconds: expected a whole number from 1 to 86400, found `100000`
32:55: $.tests[0].constraints.max_steps: expected a whole number from 1 on, found `0`
32:70: $.tests[0].constraints.budget_usd: expected a number from 0 on, found `-1`
32:74: $.tests[0].constraints: unknown key `allowed_tool` in constraints; did you mean `allowed_tools`?
33:14: $.tests[0].scoring: the weights have the sum 1.5, and it must be 1; weights that are not given are 0; without `scoring` they are 0.4, 0.3, 0.2 and 0.1
35:16: $.tests[0].assertions[0].type: unknown type of assertion `contians`; did you mean `contains`?
36:9: $.tests[0].assertions[1]: `type` is missing in an assertion
36:10: $.tests[0].assertions[1]: unknown key `typ` in an assertion; did you mean `type`?
37:9: $.tests[0].assertions[2]: expected a mapping, found a number
38:5: $.tests[1]: expected a mapping, found a string
";
    let found = mistakes(source);
    let expected: Vec<&str> = expected.trim().lines().collect();
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
}

#[test]
fn syntax_and_meaning_are_reported_together() {
    let found = mistakes("test_suite: s\ntest_suite: t\ntets: []\n");
    assert_eq!(
        found,
        [
            "1:1: $: `tests` is missing in the suite",
            "2:1: $: duplicate key `test_suite`, first given at line 1",
            "3:1: $: unknown key `tets` in the suite; did you mean `tests`?",
        ]
    );
    assert_eq!(mistakes(""), ["1:1: $: the document is empty"]);
    assert_eq!(mistakes("- a\n"), ["1:1: $: expected a mapping, found a list"]);
    assert!(mistakes("test_suite: [\n")[0].contains("is not valid YAML"));
    assert_eq!(
        mistakes("test_suite: s\ntests: []\n"),
        ["2:1: $.tests: there is no test: nothing would be run"]
    );
}

#[test]
fn what_is_out_of_scope_is_refused_by_name() {
    for (source, expected) in [
        ("test_suite: s\ninclude: [a.yaml]\n", "`include` is not supported yet"),
        ("test_suite: s\nmatrix: {}\n", "`matrix` is not supported yet"),
        ("test_suite: s\ngame: {}\n", "`game` is not supported"),
        ("test_suite: s\ndefaults: {chaos: light}\n", "`chaos` is not supported yet"),
    ] {
        assert!(mistakes(source).iter().any(|line| line.contains(expected)), "{source}");
    }
    for (lines, expected) in [
        ("mode: comparison", "`mode: comparison` is not supported yet"),
        ("mode: collaboration", "`mode: collaboration` is not supported"),
        ("comparison_config: {}", "`comparison_config` is not supported yet"),
        ("handoff_config: {}", "`handoff_config` is not supported"),
        ("collaboration_config: {}", "`collaboration_config` is not supported"),
        ("chaos: {}", "`chaos` is not supported yet"),
        ("matrix: {}", "`matrix` is not supported yet"),
    ] {
        let found = mistakes(&with_test(lines));
        assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
    }
    for kind in keys::LATER_ASSERTION_TYPES {
        let found = mistakes(&with_assertion(kind, "{}"));
        assert_eq!(
            found,
            [format!(
                "7:14: $.tests[0].assertions[0].type: assertions of type `{kind}` are not supported yet; remove it until then"
            )]
        );
    }
    for kind in keys::REFUSED_ASSERTION_TYPES {
        let found = mistakes(&with_assertion(kind, "{}"));
        assert!(found[0].contains(&format!("assertions of type `{kind}` are not supported;")), "{found:?}");
    }
    for (kind, meant) in keys::MISNAMED_ASSERTION_TYPES {
        let found = mistakes(&with_assertion(kind, "{}"));
        assert!(
            found[0].ends_with(&format!("unknown type of assertion `{kind}`; did you mean `{meant}`?")),
            "{found:?}"
        );
    }
}

#[test]
fn references_between_parts_are_checked() {
    let twice = "test_suite: s\ntests:\n  - {id: a, name: A, task: {description: d}}\n  - {id: a, name: B, task: {description: d}}\n";
    assert_eq!(
        mistakes(twice),
        ["4:5: $.tests[1]: the id `a` is that of another test, at line 3; give each test its own id"]
    );
    let several = "test_suite: s\nagents: [{name: a}, {name: b}]\ntests: [{id: a, name: A, task: {description: d}, agents: [a, b]}]\n";
    assert_eq!(
        mistakes(several),
        [
            "3:50: $.tests[0].agents: several agents in one test are not supported yet; name one, and give `--agent` twice to compare two agents"
        ]
    );
    assert_eq!(
        mistakes(&with_test("environment: {TOKEN: x}\npublic: [TOKN]")),
        ["7:14: $.tests[0].public[0]: `TOKN` is no variable of `environment`; did you mean `TOKEN`?"]
    );
}

#[test]
fn numbers_from_variables_are_strings() {
    assert_eq!(
        mistakes(&with_test("runs: ${N:3}")),
        [
            "6:11: $.tests[0].runs: expected a whole number, found a string; the value of a variable is always a string"
        ]
    );
}

#[test]
fn attest_assertions_are_checked_as_those_of_files() {
    let source = with_test(
        "attest:\n- {type: contnt, spec: {}}\n- {type: trace, spec: {chek: x}}\n- {type: content, spec: {check: contians, value: x}}\n- {type: content}\n- {assertion_id: b, type: llm_judge, spec: {criteria: x}}\n- {assertion_id: b, type: llm_judge, spec: {criteria: y}}",
    );
    assert_eq!(
        mistakes(&source),
        [
            "7:14: $.tests[0].attest[0].type: unknown type of Attest assertion `contnt`; did you mean `content`?",
            "8:28: $.tests[0].attest[1].spec: unknown key `chek` in the spec of `trace`; did you mean `check`?",
            "9:29: $.tests[0].attest[2].spec: `contians` is not a check of content; did you mean `contains`?",
            "10:7: $.tests[0].attest[3]: `spec` is missing in an attest assertion",
            "12:7: $.tests[0].attest[5]: the id `b` is that of another assertion, at line 11; give each assertion its own id",
        ]
    );
}

#[test]
fn long_lists_of_mistakes_are_cut() {
    let source = format!("test_suite: s\ntests: [{}]\n", "5, ".repeat(2_000));
    let found = mistakes(&source);
    assert_eq!(found.len(), 501);
    assert!(found[500].ends_with("more than 500 problems; the others are not listed"));
}

#[test]
fn doubtful_values_are_warnings() {
    let source = format!(
        "test_suite: s\nagents:\n  - {{name: a, type: cli, config: {{comand: x, command: y, enable_cost_tracking: true}}}}\ntests:\n  - {{id: a, name: A, task: {{description: {}}}, constraints: {{max_steps: 5000}}}}\n",
        "x".repeat(10_001)
    );
    let source = source.replace("constraints: {max", "assertions: [{type: no_errors}], constraints: {max");
    let lines: Vec<String> = loaded(&source).warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "3:35: $.agents[0].config: unknown key `comand` in the config of a `cli` agent has no effect; did you mean `command`?",
            "3:58: $.agents[0].config: `enable_cost_tracking` has no effect: costs are always counted",
            "5:42: $.tests[0].task.description: the description has 10001 characters, the protocol allows 10000; agents may refuse it",
            "5:10093: $.tests[0].constraints.max_steps: the protocol allows at most 1000; agents may refuse it",
        ]
    );
    assert!(
        !mistakes(
            &with_test("x: 1").replace("description: d", &format!("description: {}", "x".repeat(100_001)))
        )
        .is_empty()
    );
}
