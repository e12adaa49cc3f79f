//! The cases of `conformance/`, over every transport that their protocol has.

mod agentcli;
mod ahp;
mod assembly;
mod attest;
mod calls;
mod case;
mod matcher;
mod proto;
mod rpc;
mod values;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Instant;

use case::{Case, Grammar};

/// A case that does not hold.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("line {line}: {cause}")]
    Step { line: usize, cause: Cause },
    #[error("{0}")]
    Panic(String),
}

/// The reason why a step does not hold.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    #[error(transparent)]
    Mismatch(#[from] matcher::Mismatch),
    #[error(transparent)]
    Value(#[from] values::ValueError),
    #[error(transparent)]
    Message(#[from] proto::MessageError),
    #[error("expected {expected}, found {found}")]
    Answer { expected: &'static str, found: String },
    #[error("the step cannot be sent: {0}")]
    Unusable(&'static str),
    #[error("`proctor {command}` failed: {said}")]
    Command { command: String, said: String },
}

/// One transport of a protocol, with the processes that its cases need.
pub trait Runner: Send {
    fn transport(&self) -> &'static str;
    fn run(&mut self, case: &Case) -> Result<(), Problem>;
}

/// Runs every case of a protocol on every transport, all of them also after a failure.
fn run_all(protocol: &str, grammar: &Grammar, least: usize, runners: Vec<Box<dyn Runner>>) {
    let files = case_files(protocol, grammar);
    let cases: Vec<(&str, &Case)> =
        files.iter().flat_map(|(name, cases)| cases.iter().map(move |case| (name.as_str(), case))).collect();
    assert!(cases.len() >= least, "{protocol}: {} cases, fewer than {least}", cases.len());
    let cases = cases.as_slice();
    let failures: Vec<String> = std::thread::scope(|scope| {
        let started: Vec<_> =
            runners.into_iter().map(|runner| scope.spawn(move || run_on(runner, protocol, cases))).collect();
        started.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

fn run_on(mut runner: Box<dyn Runner>, protocol: &str, cases: &[(&str, &Case)]) -> Vec<String> {
    let start = Instant::now();
    let mut failures = Vec::new();
    for (file, case) in cases {
        // Helpers of the tests panic; the other cases are run nevertheless.
        let outcome = catch_unwind(AssertUnwindSafe(|| runner.run(case)));
        if let Err(problem) = outcome.unwrap_or_else(|panic| Err(Problem::Panic(panic_text(&*panic)))) {
            failures.push(format!("{protocol}/{file} over {}: {}: {problem}", runner.transport(), case.name));
        }
    }
    println!(
        "{protocol} over {}: {} cases, {} ms",
        runner.transport(),
        cases.len(),
        start.elapsed().as_millis()
    );
    failures
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()))
        .unwrap_or_else(|| "a panic without text".to_owned())
}

/// All case files of a protocol, by name.
fn case_files(protocol: &str, grammar: &Grammar) -> Vec<(String, Vec<Case>)> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder().join(protocol))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .inspect(|path| assert_eq!(path.extension().unwrap_or_default(), "yaml", "{}", path.display()))
        .collect();
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let cases = case::read(&std::fs::read(&path).unwrap(), grammar);
        let cases = cases.unwrap_or_else(|error| panic!("conformance/{protocol}/{name}: {error}"));
        (name, cases)
    };
    paths.into_iter().map(read).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance")
}

#[test]
fn every_protocol_with_cases_has_a_runner() {
    let mut found: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    found.sort();
    // Those of `policy` are run by `starters.rs`.
    assert_eq!(found, ["agentcli", "ahp", "assembly", "attest", "policy"]);
}

#[test]
fn every_case_of_the_agent_harness_protocol_holds_on_every_transport() {
    run_all("ahp", &ahp::GRAMMAR, 60, ahp::runners());
}

#[test]
fn every_case_of_agent_assembly_holds_on_every_transport() {
    run_all("assembly", &assembly::GRAMMAR, 40, assembly::runners());
}

#[test]
fn every_case_of_agentcli_holds_on_every_transport() {
    run_all("agentcli", &agentcli::GRAMMAR, 80, agentcli::runners());
}

#[test]
fn every_case_of_attest_holds_on_every_transport() {
    run_all("attest", &attest::GRAMMAR, 60, attest::runners());
}

/// Cases whose expectations are wrong: each must fail on each transport.
fn assert_all_fail(grammar: &Grammar, file: &str, runners: Vec<Box<dyn Runner>>) {
    let cases = case::read(file.as_bytes(), grammar).unwrap();
    for mut runner in runners {
        for case in &cases {
            let outcome = runner.run(case);
            assert!(
                matches!(outcome, Err(Problem::Step { .. })),
                "over {}: {}: {outcome:?}",
                runner.transport(),
                case.name
            );
        }
    }
}

#[test]
fn a_wrong_expectation_fails_on_every_transport() {
    let ahp = r#"
policy: "default: deny"
cases:
  - name: another decision
    steps: [{ event: { event_type: pre_action, payload: { tool_name: x } }, result: { decision: allow } }]
  - name: another code
    steps: [{ event: { event_type: pre_action, depth: 11, payload: {} }, error: { code: -32603 } }]
  - name: a result instead of an error
    steps: [{ event: { event_type: pre_action, payload: { tool_name: x } }, error: { code: -32602 } }]
  - name: an error instead of a result
    steps: [{ request: { method: nothing, params: {} }, result: $any }]
"#;
    assert_all_fail(&ahp::GRAMMAR, ahp, ahp::runners());
    let assembly = r#"
policy: "default: deny"
agents: [coder]
cases:
  - name: another decision
    steps: [{ check: { context: { tool_call: { tool_name: x } } }, result: { decision: ALLOW } }]
  - name: another status
    steps: [{ call: ApprovalService/ListPending, message: {}, error: { code: PERMISSION_DENIED } }]
  - name: a message instead of a status
    steps: [{ register: coder, error: { code: UNAUTHENTICATED } }]
  - name: a status instead of a message
    steps: [{ call: ApprovalService/ListPending, message: {}, result: {} }]
  - name: a field that does not exist
    steps: [{ check: { contxt: {} }, error: { code: INVALID_ARGUMENT } }]
"#;
    assert_all_fail(&assembly::GRAMMAR, assembly, assembly::runners());
    let attest = r"
trace: { trace_id: t, output: { message: hi } }
cases:
  - name: another status
    steps: [{ assert: { type: content, spec: { check: contains, value: hi } }, verdict: { status: hard_fail } }]
  - name: another code
    steps: [{ request: { method: nothing, params: {} }, error: { code: -32602 } }]
  - name: another id
    steps: [{ text: x, id: 1, error: { code: -32700 } }]
";
    assert_all_fail(&attest::GRAMMAR, attest, attest::runners());
    let agentcli = r"
cases:
  - name: another result
    steps: [{ request: { method: agentcli.ping, params: {} }, result: { pong: false } }]
  - name: another code
    steps: [{ request: { method: nothing, params: {} }, error: { code: -32602 } }]
  - name: another id
    steps: [{ text: x, id: 1, error: { code: -32700 } }]
  - name: a reply instead of none
    steps: [{ text: x, no_reply: true }]
";
    assert_all_fail(&agentcli::GRAMMAR, agentcli, agentcli::runners());
}
