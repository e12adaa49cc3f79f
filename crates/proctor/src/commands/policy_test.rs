//! `proctor policy test`: a file of actions and the decisions that are expected of them.
//!
//! ```yaml
//! policy: policy.yaml            # from this file; default: the configured policy
//! cases:
//!   - name: deleting is denied
//!     action: { tool: bash, args: { command: rm -rf / } }
//!     expect: deny
//!     rule: no-recursive-delete  # optional
//!     workspace: /repo           # optional: the pinned workspace
//!   - name: no upload after reading
//!     steps:                     # in one session, one after the other
//!       - { action: { tool: read_file }, expect: allow }
//!       - { action: { tool: upload }, expect: deny }
//! ```

use std::path::Path;

use proctor_core::decision::Effect;
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_core::time::{Clock, Timestamp};
use proctor_facts::Workspace;
use proctor_facts::path::absolute;
use proctor_policy::document::YAML_LIMITS;
use proctor_policy::policy::Policy;
use proctor_policy::state::State;
use proctor_yaml::Value;

use super::Context;
use super::action_args::{self, Described};
use super::policy::trial;
use crate::failure::{CHECKS_FAILED, Failure, OK, Outcome};
use crate::output;
use proctor_engine::access::load_policy;
use proctor_engine::policy_files;
use proctor_system::SystemClock;

/// Error in a test file.
#[derive(Debug, thiserror::Error)]
enum TestFileError {
    #[error("{what} is a mapping")]
    NotAMapping { what: &'static str },
    #[error("unknown key `{key}` in {what}; did you mean `{near}`?")]
    MisspelledKey { key: String, what: &'static str, near: String },
    #[error("unknown key `{key}` in {what}; known are {known}")]
    UnknownKey { key: String, what: &'static str, known: String },
    #[error("`cases` is a list of cases")]
    NoCases,
    #[error("there is no case: nothing would be tested")]
    Empty,
    #[error("`name` says what the case shows")]
    NoName,
    #[error("`steps` is a list")]
    StepsNotAList,
    #[error("`steps` is empty: nothing would be tested")]
    NoSteps,
    #[error("`action` is missing")]
    NoAction,
    #[error("{}", .0.lines.join("; "))]
    Action(Failure),
    #[error("`expect` is missing: allow, deny, ask, modify, redact or defer")]
    NoExpectation,
    #[error("`{0}` is not a decision: allow, deny, ask, modify, redact or defer")]
    NotADecision(String),
    #[error("the workspace `{0}` does not start at the root, as in `/repo`")]
    RelativeWorkspace(String),
    #[error("`{0}` is not a moment: write it like 2026-11-15T20:45:00Z")]
    NotAMoment(String),
}

/// An action of a case.
struct Step {
    described: Described,
    expect: Effect,
    rule: Option<String>,
    reason: Option<String>,
    at: Option<Timestamp>,
}

struct Case {
    name: String,
    workspace: String,
    caller: Caller,
    steps: Vec<Step>,
}

pub(super) fn run(context: &Context, file: &Path) -> Outcome {
    let shown = file.display().to_string();
    let text =
        policy_files::read_bounded(file).map_err(|error| Failure::from(format!("{shown}: {error}")))?;
    let root = proctor_yaml::parse(&text, &YAML_LIMITS)
        .map_err(|errors| Failure::list(errors.iter().map(|error| format!("{shown}:{error}"))))?;
    let value = root.to_json();
    let wrong = |problem: TestFileError| Failure::from(format!("{shown}: {problem}"));
    known(&value, &["policy", "cases"], "the file").map_err(wrong)?;
    let policy = match value.get("policy").and_then(Json::as_str) {
        Some(path) => {
            let path = file.parent().unwrap_or(Path::new(".")).join(path);
            policy_files::load(&path)
                .map_err(|problems| Failure::list(problems.iter().map(ToString::to_string)))?
        }
        None => load_policy(&context.config.engine)?,
    };
    let Some((_, Value::List(nodes))) = root.entry("cases").map(|(key, node)| (key, &node.value)) else {
        return Err(wrong(TestFileError::NoCases));
    };
    let (mut cases, mut mistakes) = (Vec::new(), Vec::new());
    for (number, node) in (1..).zip(nodes) {
        match read_case(&node.to_json()) {
            Ok(case) => cases.push(case),
            Err(problem) => mistakes
                .push(format!("{shown}:{}:{}: case {number}: {problem}", node.at.line, node.at.column)),
        }
    }
    if !mistakes.is_empty() {
        return Err(Failure::list(mistakes));
    }
    if cases.is_empty() {
        return Err(wrong(TestFileError::Empty));
    }
    let mut failed = 0;
    for case in &cases {
        let problems = run_case(&policy, case);
        failed += usize::from(!problems.is_empty());
        report(context, case, &problems)?;
    }
    let passed = cases.len() - failed;
    if !context.json {
        output::data(format!("{passed} passed, {failed} failed"))?;
    }
    Ok(if failed == 0 { OK } else { CHECKS_FAILED })
}

fn report(context: &Context, case: &Case, problems: &[String]) -> Result<(), Failure> {
    if context.json {
        let problems = problems.iter().map(|problem| Json::from(problem.as_str())).collect::<Vec<_>>();
        return output::data(
            Json::object()
                .with("name", case.name.as_str())
                .with("ok", problems.is_empty())
                .with("problems", problems),
        );
    }
    let word = if problems.is_empty() { "ok" } else { "FAILED" };
    output::data(format!("{word:<6}  {}", output::shown(&case.name, 100)))?;
    for problem in problems {
        output::data(format!("        {}", output::shown(problem, 400)))?;
    }
    Ok(())
}

/// Runs the steps of a case on a memory of its own.
fn run_case(policy: &Policy, case: &Case) -> Vec<String> {
    let mut state = State::default();
    let mut problems = Vec::new();
    for (index, step) in case.steps.iter().enumerate() {
        let now = step.at.unwrap_or_else(|| SystemClock.now());
        let workspace = Workspace { folder: &case.workspace, resolver: None };
        let judgement = trial(policy, &step.described, &case.caller, &state, now, workspace).judgement;
        let decision = &judgement.decision;
        let place = if case.steps.len() == 1 { String::new() } else { format!("step {}: ", index + 1) };
        let got = format!("got {} by `{}`: {}", decision.effect, decision.rule, decision.reason);
        if decision.effect != step.expect {
            problems.push(format!("{place}expected {}, {got}", step.expect));
        } else if step.rule.as_ref().is_some_and(|rule| *rule != decision.rule) {
            problems
                .push(format!("{place}expected rule `{}`, {got}", step.rule.as_deref().unwrap_or_default()));
        } else if step.reason.as_ref().is_some_and(|reason| !decision.reason.contains(reason.as_str())) {
            problems.push(format!(
                "{place}expected a reason with `{}`, {got}",
                step.reason.as_deref().unwrap_or_default()
            ));
        }
        state.apply(index as u64, &judgement.envelope);
    }
    problems
}

const CASE: &[&str] =
    &["name", "steps", "principal", "team", "org", "workspace", "action", "expect", "rule", "reason", "at"];
const STEP: &[&str] = &["action", "expect", "rule", "reason", "at"];

fn read_case(value: &Json) -> Result<Case, TestFileError> {
    known(value, CASE, "a case")?;
    let text = |name: &str| value.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
    let name = text("name");
    if name.is_empty() {
        return Err(TestFileError::NoName);
    }
    let principal = match text("principal") {
        named if named.is_empty() => "test".to_owned(),
        named => named,
    };
    let steps = match value.get("steps") {
        Some(steps) => {
            let steps = steps.as_array().ok_or(TestFileError::StepsNotAList)?;
            steps
                .iter()
                .map(|step| known(step, STEP, "a step").and_then(|()| read_step(step)))
                .collect::<Result<Vec<_>, _>>()?
        }
        None => vec![read_step(value)?],
    };
    if steps.is_empty() {
        return Err(TestFileError::NoSteps);
    }
    let workspace = text("workspace");
    if !workspace.is_empty() && !workspace.starts_with('/') {
        return Err(TestFileError::RelativeWorkspace(workspace));
    }
    let workspace = if workspace.is_empty() { workspace } else { absolute(&workspace, "") };
    Ok(Case { name, workspace, caller: Caller { principal, team: text("team"), org: text("org") }, steps })
}

fn read_step(value: &Json) -> Result<Step, TestFileError> {
    let action = value.get("action").ok_or(TestFileError::NoAction)?;
    let described = action_args::describe(action.clone()).map_err(TestFileError::Action)?;
    let word = value.get("expect").and_then(Json::as_str).ok_or(TestFileError::NoExpectation)?;
    let text = |name: &str| value.get(name).and_then(Json::as_str).map(str::to_owned);
    let at = match text("at") {
        None => None,
        Some(text) => Some(Timestamp::parse(&text).ok_or(TestFileError::NotAMoment(text))?),
    };
    Ok(Step {
        described,
        expect: word.parse().map_err(|()| TestFileError::NotADecision(word.to_owned()))?,
        rule: text("rule"),
        reason: text("reason"),
        at,
    })
}

fn known(value: &Json, names: &[&str], what: &'static str) -> Result<(), TestFileError> {
    let members = value.as_object().ok_or(TestFileError::NotAMapping { what })?;
    for (name, _) in members {
        if !names.contains(&name.as_str()) {
            let key = name.clone();
            return Err(match proctor_core::nearest(name, names) {
                Some(near) => TestFileError::MisspelledKey { key, what, near: near.to_owned() },
                None => TestFileError::UnknownKey { key, what, known: names.join(", ") },
            });
        }
    }
    Ok(())
}
