mod agents;
mod assertions;
mod defects;
mod laws;
mod mistakes;
mod mocks;
mod page;
mod paths;
mod scale;
mod selection;
mod values;

use super::*;

/// The worked example of the fact sheet.
pub(super) const WORKED_EXAMPLE: &str = include_str!("../../tests/it/worked-example.yaml");

/// A suite that uses every key.
pub(super) const EVERYTHING: &str = r#"test_suite: everything
version: "2"
description: every key once
defaults:
  runs_per_test: 3
  timeout_seconds: 20
  scoring: {quality_weight: 0.5, completeness_weight: 0.5}
  constraints: {max_steps: 8, max_tokens: null, allowed_tools: [calc], budget_usd: 0.5}
  pass_rate: 0.9
  allow_partial: true
agents:
  - {name: a, type: cli, config: {command: python3 agent.py, args: [--fast], working_dir: agents, environment: {A: b}, inherit_environment: true, allowed_env_vars: [PATH], timeout_seconds: 5, retry_count: 2, retry_delay_seconds: 0.5}}
  - {name: b, type: http, config: {endpoint: "http://127.0.0.1/", stream_endpoint: "https://h/s", headers: {X-A: b}, verify_ssl: false, health_endpoint: "http://h/", allow_internal: true}}
  - {name: c, type: ws, config: {endpoint: "ws://h/", headers: {}, verify_ssl: true}}
  - {name: d, type: grpc, config: {endpoint: "grpc://h:1"}}
  - {name: e, type: plain, config: {command: [cat, "-n"]}}
  - {name: f, type: nop}
  - {name: g, type: reference}
  - {name: h}
environment: {TOKEN: abcdefgh, MODE: quick}
public: [MODE]
network: false
setup: [mkdir out]
teardown: [{command: [rm, -r, out], timeout_seconds: 5}]
approvals: [{tool: shell, decision: deny}]
mock_tools:
  name: tools
  description: of the suite
  default_delay_ms: 5
  tools: [{name: calc, description: adds, default: {output: {sum: 0}}}]
strict: true
tests:
  - id: one
    name: One
    description: first
    tags: [x]
    task:
      description: do it
      input_data: {n: 1}
      expected_artifacts: [a.txt, {type: file, format: text, name: b.txt}]
      workspace_fixture: fixture
    constraints: {timeout_seconds: 7, max_steps: null}
    scoring: {quality_weight: 1.0}
    agents: [a]
    runs: 1
    pass_rate: 1.0
    allow_partial: false
    strict: false
    skip: waits for the server
    environment: {TOKEN: other678, EXTRA: "1"}
    public: [EXTRA]
    network: allow
    setup: [{command: touch b}, [touch, "c d"]]
    teardown: [rm b]
    files: [tests/test_a.py, {path: conftest.py, content: ""}, {path: data, source: shared/data}]
    reference: solution
    approvals: [{tool: "*", decision: approve, reason: fine}]
    mock_tools:
      - name: calc
        responses:
          - {when: {type: exact, field: op, pattern: add}, then: {output: {sum: 3}, delay_ms: 1}}
          - {when: {type: regex, pattern: "^x"}, then: {error: no, status: error}}
          - {when: {call: 2}, then: {output: twice}}
          - {when: {from_call: 3, to_call: 4}, then: {output: more}}
          - {then: {output: [1]}}
    attest:
      - {assertion_id: said, type: content, spec: {target: output.message, check: contains, value: x}, request_id: r}
    assertions:
      - {type: artifact_exists, config: {path: a.txt}, critical: true, optional: false}
      - {type: contains, config: {pattern: "^a", regex: true, path: a.txt}}
      - {type: schema, config: {schema: {type: object}, path: data}}
      - {type: sections, config: {sections: [Intro], path: a.md}}
      - {type: behavior, config: {check: no_errors, must_use_tools: [calc], forbidden_tools: [rm], max_tool_calls: 3, min_tool_calls: 1, no_errors: true, expected_tool_calls: [{tool: calc, status: success, input_matches: [{path: $.op, equals: add}, {path: "$.n[0]", exists: true}], output_matches: [{path: $.x, absent: true}]}], tool_call_order: expected, forbidden_tool_calls: [{tool: rm}]}}
      - {type: must_use_tools, config: {tools: [calc]}}
      - {type: forbidden_tools, config: {tools: [rm]}}
      - {type: max_tool_calls, config: {limit: 3}}
      - {type: min_tool_calls, config: {limit: 1}}
      - {type: no_errors}
      - {type: llm_eval, config: {criteria: clarity, prompt: Is it short?, threshold: 0.5, path: a.md, num_runs: 3}, optional: true}
      - {type: code_exec, config: {command: make test}}
      - {type: custom_command, config: {command: [make, test], pattern: "(?P<passed>\\d+) ok", success_pattern: done, threshold: 0.5, timeout: 5, working_dir: sub, expect_zero: false}}
      - {type: pytest, config: {path: tests/, threshold: 0.5, timeout: 5, working_dir: sub, args: [-q]}}
      - {type: npm, config: {command: npm run check, threshold: 1, timeout: 5, working_dir: sub}}
      - {type: lint, config: {linter: ruff, path: src, max_violations: 2, max_errors: 0, args: [], timeout: 5, working_dir: sub}}
      - {type: security, config: {checks: [secret_leak, code_safety, pii_exposure, prompt_injection, email], sensitivity: low, pii_types: [ssn], injection_categories: [jailbreak], code_categories: [file_operation], code_languages: [python], secret_types: [jwt_token], fail_on_warning: true}}
      - {type: file_exists, config: {path: a, workspace_path: sub}}
      - {type: file_not_exists, config: {path: a}}
      - {type: dir_exists, config: {path: a}}
      - {type: file_contains, config: {path: a, pattern: x, regex: true, workspace_path: sub}}
      - {type: file_count, config: {path: ., count: 2, operator: gte, workspace_path: sub}}
      - type: composite
        config:
          operator: or
          conditions:
            - {type: no_errors}
            - {operator: not, condition: {type: file_exists, config: {path: a}}}
            - {operator: threshold, value: 0.5, comparator: ">=", condition: {operator: and, conditions: [{type: no_errors}]}}
  - id: two
    name: Two
    task: {description: do more}
    attest: {assertions: [{type: trace, spec: {check: required_tools, tools: [calc]}}]}
    skip: false
"#;

/// Loads without variables and without a scanner.
pub(super) fn loaded(source: &str) -> Loaded {
    load(source.as_bytes(), &LoadOptions::new(&|_| None, &|_| None)).unwrap_or_else(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        panic!("{}", lines.join("\n"))
    })
}

/// The mistakes of a source, as they are shown; none if it loads.
pub(super) fn mistakes(source: &str) -> Vec<String> {
    match load(source.as_bytes(), &LoadOptions::new(&|_| None, &|_| None)) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

/// A suite of one test with these lines in it.
pub(super) fn with_test(lines: &str) -> String {
    let lines: Vec<String> = lines.lines().map(|line| format!("    {line}\n")).collect();
    format!("test_suite: s\ntests:\n  - id: a\n    name: A\n    task: {{description: d}}\n{}", lines.concat())
}

/// A suite of one assertion with this type and configuration, which begins at line 7, column 12.
pub(super) fn with_assertion(kind: &str, config: &str) -> String {
    with_test(&format!("assertions:\n- {{type: {kind}, config: {config}}}"))
}
