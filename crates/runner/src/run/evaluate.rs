//! Evaluation of a run on the snapshot of its workspace.

use std::path::Path;

use proctor_core::json::Json;
use proctor_sandbox::{Snapshot, Workspace};
use proctor_wire::atp::artifact::{Artifact, Content, check_content};

use super::{Surroundings, attest, command, planted};
use crate::checks::{
    Answer, Assertion, AssertionResult, CommandNeed, EntryKind, EventView, Evidence, Files as _, Reply,
    Request, WorkspacePath, evaluate as evaluate_assertion, needs,
};
use crate::execute::Execution;
use crate::folder::{Folder, ResolvedFile};
use crate::scoring::{Limits, Score, score};
use crate::secrets::Secrets;
use crate::suite::TestCase;
use crate::tools::SeenEvent;

/// Bytes of a workspace file whose claimed size and hash are checked.
const MAX_CLAIMED_BYTES: usize = 64 << 20;

/// Results of a run's assertions.
pub(super) struct Evaluated {
    pub assertions: Vec<AssertionResult>,
    pub score: Score,
    /// A violation of the protocol that only the workspace shows.
    pub problem: Option<String>,
}

/// Files of the suite that came into the workspace.
pub(super) struct Given<'g> {
    /// Files that come in for the checks.
    pub files: &'g [ResolvedFile],
    /// Folder that the workspace was a copy of.
    pub fixture: Option<&'g Path>,
}

/// Evaluates the assertions of a test; none without a response. Also gives warnings.
pub(super) async fn evaluate(
    around: &Surroundings,
    test: &TestCase,
    workspace: &Workspace,
    execution: &Execution,
    given: &Given<'_>,
    secrets: &Secrets,
) -> (Option<Evaluated>, Vec<String>) {
    // A run that was stopped is evaluated on what came; one without a response for another reason has nothing to evaluate.
    if execution.response.is_null() && execution.crossing.is_none() {
        return (None, Vec::new());
    }
    let not_copied = |error: proctor_sandbox::WorkspaceError| {
        (None, vec![format!("the workspace could not be copied for the checks: {error}")])
    };
    let snapshot = match snapshot(workspace, given.files) {
        Ok(snapshot) => snapshot,
        Err(error) => return not_copied(error),
    };
    let mut warnings: Vec<String> =
        snapshot.left_out().iter().map(|left| format!("not copied for the checks: {left}")).collect();
    let folder = Folder::new(snapshot.path());
    let problem = wrong_claim(&execution.response, &folder);
    let mut assertions = Vec::new();
    let seen = execution.seen_events();
    let events: Vec<EventView<'_>> = seen.iter().map(view).collect();
    let evidence = Evidence { response: &execution.response, events: &events, files: &folder };
    // Tests that the agent itself was asked to write are its own, settings included.
    let is_guarded =
        !given.files.is_empty() && test.assertions.iter().any(|assertion| runs_pytest(assertion, &evidence));
    let planted = if is_guarded { planted::find(snapshot.path(), given) } else { Vec::new() };
    let guarded = match guarded(workspace, given, &planted) {
        Ok(guarded) => guarded,
        Err(error) => return not_copied(error),
    };
    warnings.extend(
        planted.iter().map(|path| format!("not used by pytest, because the agent wrote it: `{path}`")),
    );
    let for_tests = guarded.as_ref().unwrap_or(&snapshot);
    for assertion in &test.assertions {
        let answers = answers(around, assertion, &evidence, &snapshot, for_tests).await;
        assertions.push(evaluate_assertion(assertion, &evidence, &answers));
    }
    assertions.extend(attest::evaluate(around, test, execution).await);
    for result in &mut assertions {
        for check in &mut result.checks {
            check.message = secrets.cut(&check.message).0.into_owned();
            secrets.cut_json(&mut check.details, &mut Vec::new());
        }
    }
    let limits = Limits {
        max_steps: test.constraints.max_steps,
        max_tokens: test.constraints.max_tokens,
        budget_usd: test.constraints.budget_usd,
    };
    if test.assertions.is_empty() && test.attest.is_empty() {
        warnings.push("the test has no assertions: only the status of the agent counts".to_owned());
    }
    let score = score(&assertions, &test.weights, &execution.measures, &limits);
    (Some(Evaluated { assertions, score, problem }), warnings)
}

fn view(event: &SeenEvent) -> EventView<'_> {
    let SeenEvent { sequence, event_type, payload } = event;
    EventView { sequence: *sequence, event_type, payload }
}

fn snapshot(
    workspace: &Workspace,
    files: &[ResolvedFile],
) -> Result<Snapshot, proctor_sandbox::WorkspaceError> {
    let snapshot = workspace.snapshot()?;
    for file in files {
        file.add_to(&snapshot, workspace.tmp())?;
    }
    Ok(snapshot)
}

/// A copy of the workspace without these settings of pytest; none if there are no such.
fn guarded(
    workspace: &Workspace,
    given: &Given<'_>,
    planted: &[String],
) -> Result<Option<Snapshot>, proctor_sandbox::WorkspaceError> {
    if planted.is_empty() {
        return Ok(None);
    }
    let copy = snapshot(workspace, given.files)?;
    for path in planted {
        planted::remove(copy.path(), path)?;
    }
    Ok(Some(copy))
}

fn runs_pytest(assertion: &Assertion, evidence: &Evidence<'_>) -> bool {
    let is_pytest = |request: &Request| matches!(request, Request::Command(command) if is_pytest(command));
    needs(&assertion.check, evidence, "").iter().any(|need| is_pytest(&need.request))
}

fn is_pytest(command: &CommandNeed) -> bool {
    command.words.first().is_some_and(|program| program == planted::PYTEST)
}

/// Runs the commands that an assertion depends on, and asks the judge.
async fn answers(
    around: &Surroundings,
    assertion: &Assertion,
    evidence: &Evidence<'_>,
    snapshot: &Snapshot,
    for_tests: &Snapshot,
) -> Vec<Answer> {
    let mut answers = Vec::new();
    let fence = around.judges.as_ref().map(|judges| judges.fence()).unwrap_or_default();
    for need in needs(&assertion.check, evidence, &fence) {
        let reply = match need.request {
            Request::Command(wanted) => {
                let copy = if is_pytest(&wanted) { for_tests } else { snapshot };
                Reply::Command(command::run_check(around, copy, &wanted).await)
            }
            Request::Judge(wanted) => {
                let Some(judges) = around.judges.clone() else { continue };
                let asked = tokio::task::spawn_blocking(move || judges.replies(&wanted));
                Reply::Judge(asked.await.unwrap_or_default())
            }
        };
        answers.push(Answer { leaf: need.leaf, reply });
    }
    answers
}

/// The first artifact whose claimed size or hash is not that of its content or its file.
fn wrong_claim(response: &Json, folder: &Folder<'_>) -> Option<String> {
    let artifacts = response.get("artifacts").and_then(Json::as_array).unwrap_or_default();
    for (index, artifact) in artifacts.iter().enumerate() {
        let Some(artifact) = Artifact::view(artifact) else { continue };
        let inline = match &artifact {
            Artifact::File(file) => file.content,
            _ => None,
        };
        let mismatches = match inline {
            Some(content) => check_content(artifact.claims(), Content::Inline(content)),
            None => {
                let Ok(path) = WorkspacePath::parse(artifact.name()) else { continue };
                if matches!(artifact, Artifact::Structured(_))
                    || folder.entry(&path) != Ok(Some(EntryKind::File))
                {
                    continue;
                }
                let Ok(content) = folder.read(&path, MAX_CLAIMED_BYTES) else { continue };
                check_content(artifact.claims(), Content::Bytes(&content))
            }
        };
        if mismatches.size {
            return Some(format!("$.artifacts[{index}].size_bytes: the content has another size"));
        }
        if mismatches.hash {
            return Some(format!("$.artifacts[{index}].content_hash: the content has another hash"));
        }
    }
    None
}
