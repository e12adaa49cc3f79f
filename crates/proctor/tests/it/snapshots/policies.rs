//! `proctor policy …` on good and bad documents.

use super::{POLICY, Transcript};

#[test]
fn lint_of_a_good_document() {
    let mut transcript = Transcript::with_policy(POLICY);
    transcript.run_all(&["policy lint", "policy lint --json"]);
    transcript.check("policy_lint");
}

#[test]
fn lint_warns() {
    let mut transcript = Transcript::empty();
    transcript.write_shown(
        "weak.yaml",
        "version: \"2\"\ndefault: allow\ntools:\n  \"*\": { allow: true }\nrules:\n  - { id: never, when: \"false\", then: deny }\n  - { id: always, then: allow }\n",
    );
    transcript.run_all(&["policy lint weak.yaml", "policy lint weak.yaml --json"]);
    transcript.check("policy_lint_warnings");
}

#[test]
fn lint_of_a_document_with_mistakes() {
    let mut transcript = Transcript::empty();
    transcript.write_shown(
        "bad.yaml",
        r#"version: "2"
defualt: deny
tools:
  shell: { alow: true, limit_per_hour: many }
rules:
  - { id: a, then: alow }
  - { id: b, then: deny, sett: 1 }
  - { id: a, then: deny }
  - { id: c, when: action.tol == "x", then: deny }
  - { id: d, when: 'action.tool ==', then: deny }
  - { id: e, then: ask, expires: soon }
  - { when: "true", then: deny }
  - { id: f, then: modify }
budget: { daily_limit_usd: -1 }
netwrk: {}
"#,
    );
    transcript.run_all(&["policy lint bad.yaml", "policy lint bad.yaml --json"]);
    transcript.run("gate --policy bad.yaml");
    transcript.check("policy_lint_mistakes");
}

#[test]
fn lint_of_what_is_no_document() {
    let mut transcript = Transcript::empty();
    transcript.write("open.yaml", "rules: [\n");
    transcript.write("list.yaml", "- a\n");
    transcript.write("empty.yaml", "");
    transcript.write("tabs.yaml", "version: \"1\"\nrules:\n\t- { id: a, then: deny }\n");
    transcript.write("twice.yaml", "version: \"1\"\ndefault: deny\ndefault: allow\n");
    std::fs::create_dir(transcript.folder.path("nothing")).unwrap();
    transcript.run_all(&[
        "policy lint open.yaml",
        "policy lint list.yaml",
        "policy lint empty.yaml",
        "policy lint tabs.yaml",
        "policy lint twice.yaml",
        "policy lint nothing",
        "policy lint nowhere.yaml",
    ]);
    transcript.check("policy_lint_unreadable");
}

#[test]
fn check_of_actions() {
    let mut transcript = Transcript::with_policy(POLICY);
    transcript.run_all(&[
        "policy check --tool bash --arg command=ls",
        "policy check --tool bash --arg 'command=sudo rm -rf x'",
        "policy check --tool deploy",
        "policy check --tool search --arg limit=5000",
        "policy check --tool bash --arg 'command=echo AKIAIOSFODNN7EXAMPLE'",
        "policy check --tool unknown",
        "policy check --tool deploy --json",
        "policy check --record --tool bash --arg command=ls",
    ]);
    transcript.check("policy_check");
}

#[test]
fn check_of_what_is_no_action() {
    let mut transcript = Transcript::with_policy(POLICY);
    transcript.run_all(&[
        "policy check",
        "policy check '{\"tol\":\"bash\"}'",
        "policy check '{\"tool\":'",
        "policy check --kind tool_cal --tool bash",
        "policy check --tool bash --arg command",
    ]);
    transcript.check("policy_check_mistakes");
}

#[test]
fn explain() {
    let mut transcript = Transcript::with_policy(POLICY);
    transcript.run_all(&[
        "policy explain --tool bash --cwd /w --arg 'command=sudo rm -rf x'",
        "policy explain --tool unknown",
        "policy explain --tool bash --cwd /w --arg command=ls --json",
    ]);
    transcript.check("policy_explain");
}

#[test]
fn test_of_cases() {
    let mut transcript = Transcript::with_policy(POLICY);
    transcript.write_shown(
        "cases.yaml",
        r"cases:
  - { name: listing is allowed, action: { tool: bash, args: { command: ls } }, expect: allow }
  - { name: deleting is asked about, action: { tool: bash, args: { command: rm x } }, expect: ask }
  - { name: deploying is asked about, action: { tool: deploy }, expect: ask, rule: other }
  - { name: deploying says why, action: { tool: deploy }, expect: ask, reason: nonsense }
  - name: in steps
    steps:
      - { action: { tool: bash, args: { command: ls } }, expect: allow }
      - { action: { tool: unknown }, expect: allow }
",
    );
    transcript.run_all(&["policy test cases.yaml", "policy test cases.yaml --json"]);
    transcript.write("cases.yaml", "cases:\n  - { name: deleting is denied, action: { tool: bash, args: { command: rm x } }, expect: deny }\n");
    transcript.run("policy test cases.yaml");
    transcript.check("policy_test");
}

#[test]
fn test_of_files_that_test_nothing() {
    let mut transcript = Transcript::with_policy(POLICY);
    for text in [
        "cases: []\n",
        "case: []\n",
        "cases:\n  - { name: x, action: { tool: a } }\n",
        "cases:\n  - { name: x, action: { tool: a }, expect: denied }\n",
        "cases:\n  - { name: x, action: { tol: a }, expect: deny }\n",
        "policy: nowhere.yaml\ncases:\n  - { name: x, action: { tool: a }, expect: deny }\n",
        "cases:\n  - { name: x, action: { tool: a }, expect: deny, at: noon }\n",
        "cases:\n  - { action: { tool: a }, expect: deny }\n  - { name: x, action: { tool: a }, expect: denied }\n  - { name: y, stepps: [] }\n",
        "cases: [\n",
    ] {
        transcript.write_shown("cases.yaml", text);
        transcript.run("policy test cases.yaml");
    }
    transcript.check("policy_test_mistakes");
}

#[test]
fn scan() {
    let mut transcript = Transcript::empty();
    let text = "The key is AKIAIOSFODNN7EXAMPLE.\nNothing else.\n";
    transcript.run_with("policy scan", text);
    transcript.run_with("policy scan --json", text);
    transcript.run_with("policy scan", "Nothing here.\n");
    transcript.check("policy_scan");
}
