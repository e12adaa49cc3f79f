//! `proctor assert`. Its report files are compared in `crates/report/tests/it`.

use super::{POLICY, Transcript};
use crate::assert_cli::{FAILS, FAILS_SOFTLY, HOLDS, NEEDS_A_JUDGE, TRACE};

/// A transcript in a folder with a trace and these assertions.
fn with(assertions: &[&str]) -> Transcript {
    let transcript = Transcript::with_policy(POLICY);
    transcript.write("trace.json", TRACE);
    transcript.write("assertions.yaml", &format!("- {}\n", assertions.join("\n- ")));
    transcript
}

const CHECK: &str = "assert --trace trace.json --assertions assertions.yaml";

/// Runs the check with each of these arguments.
fn run(transcript: &mut Transcript, arguments: &[&str]) {
    for argument in arguments {
        transcript.run(format!("{CHECK} {argument}").trim_end());
    }
}

#[test]
fn pass() {
    let mut transcript = with(&[HOLDS]);
    run(&mut transcript, &["", "--json", "--gate"]);
    transcript.check("assert_pass");
}

#[test]
fn soft_fail() {
    let mut transcript = with(&[HOLDS, FAILS_SOFTLY]);
    run(&mut transcript, &["", "--strict"]);
    transcript.check("assert_soft_fail");
}

#[test]
fn hard_fail() {
    let mut transcript = with(&[HOLDS, FAILS_SOFTLY, FAILS, NEEDS_A_JUDGE]);
    run(&mut transcript, &["", "--json", "--gate"]);
    transcript.check("assert_hard_fail");
}

#[test]
fn error() {
    let mut transcript = with(&[
        HOLDS,
        NEEDS_A_JUDGE,
        "{ assertion_id: near, type: embedding, spec: { target: output.message, reference: x } }",
        "{ assertion_id: mine, type: plugin, spec: { plugin_id: p } }",
    ]);
    run(&mut transcript, &["", "--gate"]);
    transcript.check("assert_error");
}

#[test]
fn a_session_of_the_ledger() {
    let mut transcript = Transcript::with_ledger();
    transcript.write(
        "assertions.yaml",
        "- { assertion_id: done, type: content, spec: { check: contains, value: done } }\n\
         - { assertion_id: kept, type: trace, spec: { check: forbidden_tools, tools: [deploy] } }\n",
    );
    transcript.run_all(&[
        "assert --session s1 --assertions assertions.yaml",
        "assert --session nobody --assertions assertions.yaml",
        "audit tail --kind observation",
    ]);
    transcript.check("assert_session");
}

#[test]
fn mistakes_are_said_at_once() {
    let mut transcript = with(&[]);
    transcript.write_shown(
        "assertions.yaml",
        r#"- assertion_id: vague
  type: content
  spec: { check: contians, value: x }
- type: contnt
  spec: {}
- { type: content, spec: { chek: contains, value: x } }
- { type: constraint, spec: { field: metadata.cost_usd, operator: lte, value: "0.05" } }
- { type: content, spec: { check: regex_match, value: "(" } }
- { type: trace, specs: {}, spec: { check: required_tools, tools: [] } }
"#,
    );
    run(&mut transcript, &[""]);
    transcript.check("assert_mistakes");
}

#[test]
fn wrong_arguments() {
    let mut transcript = with(&[HOLDS]);
    transcript.write("empty.yaml", "[]\n");
    transcript.write("no-output.json", "{\"trace_id\": \"t\"}\n");
    run(&mut transcript, &["--report junt=x", "--report junit=-", "--report json=no/such/folder.json,html"]);
    transcript.run_all(&[
        "assert --trace nowhere.json --assertions assertions.yaml",
        "assert --trace assertions.yaml --assertions trace.json",
        "assert --trace no-output.json --assertions assertions.yaml",
        "assert --trace trace.json --assertions empty.yaml",
        "assert --assertions assertions.yaml",
    ]);
    transcript.check("assert_wrong_arguments");
}
