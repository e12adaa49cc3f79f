//! Evaluation of a run on the snapshot of its workspace.

use std::collections::BTreeMap;
use std::path::Path;

use proctor_core::json::Json;
use proctor_sandbox::{Snapshot, Workspace, WorkspaceError};

use super::{Surroundings, attest, claims, command, planted};
use crate::checks::{
    Answer, Assertion, AssertionResult, Check, CommandNeed, CommandOutcome, EventView, Evidence, Need, Reply,
    Request, WorkspacePath, evaluate as evaluate_assertion, needs,
};
use crate::execute::Execution;
use crate::folder::{Folder, Hits, ResolvedFile};
use crate::scoring::{Limits, Score, score};
use crate::secrets::{Emitted, Secrets};
use crate::suite::{NO_ASSERTIONS, TestCase};
use crate::tools::SeenEvent;

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
    /// Files of the reference solution.
    pub reference: &'g [ResolvedFile],
    /// Artifacts that the task asks for.
    pub expected_artifacts: &'g [Json],
}

/// Evaluates the assertions of a test; an error, with its reason if the agent's own does not say it, where that is not possible. Also gives
/// warnings.
pub(super) async fn evaluate(
    around: &Surroundings,
    test: &TestCase,
    workspace: &Workspace,
    execution: &Execution,
    given: &Given<'_>,
    (secrets, emitted): (&Secrets, &Emitted),
) -> (Result<Evaluated, Option<String>>, Vec<String>) {
    // A run that was stopped is evaluated on what came; one without a response for another reason has nothing to evaluate.
    if execution.response.is_null() && execution.crossing.is_none() {
        return (Err(None), Vec::new());
    }
    let (evidence, mut warnings) = match copy(workspace, given.files) {
        Ok(snapshot) => {
            let left_out = snapshot.left_out().iter();
            let warnings = left_out.map(|left| format!("not copied for the checks: {left}")).collect();
            (snapshot, warnings)
        }
        Err(error) => return (Err(Some(not_copied(&error))), Vec::new()),
    };
    let place = evidence.path().to_owned();
    let hits = Hits::default();
    let folder = Folder::new(&place).without_secrets(secrets).noting(&hits);
    look_in_artifacts(&execution.response, &folder);
    let problem = claims::wrong(&execution.response, &folder);
    let seen = execution.seen_events(test);
    let events: Vec<EventView<'_>> = seen.iter().map(view).collect();
    let (untouched, warned) = (Some(evidence), &mut warnings);
    let mut checks = Checks { around, workspace, given, secrets, untouched, warnings: warned };
    let has_tools = !execution.served.is_empty() || !test.settings.mock_tools.is_empty();
    let evidence = Evidence { response: &execution.response, events: &events, files: &folder, has_tools };
    let results = checks.evaluate(&test.assertions, &evidence).await;
    let mut assertions = match results {
        Ok(assertions) => assertions,
        Err(error) => return (Err(Some(not_copied(&error))), warnings),
    };
    assertions.extend(attest::evaluate(around, test, execution).await);
    for (path, names) in hits.into_names() {
        if !planted::is_brought(&path, given.files) {
            let own = in_fixture(&path, given, secrets);
            emitted.add(names.into_iter().filter(|name| !own.contains(name)));
        }
    }
    let limits = Limits {
        max_steps: test.settings.constraints.max_steps,
        max_tokens: test.settings.constraints.max_tokens,
        budget_usd: test.settings.constraints.budget_usd,
    };
    if test.assertions.is_empty() && test.settings.attest.is_empty() {
        warnings.push(NO_ASSERTIONS.to_owned());
    }
    let score = score(&assertions, &test.settings.weights, &execution.measures, &limits);
    (Ok(Evaluated { assertions, score, problem }), warnings)
}

fn view(event: &SeenEvent) -> EventView<'_> {
    let SeenEvent { sequence, event_type, payload, doubt } = event;
    EventView { sequence: *sequence, event_type, payload, is_doubtful: doubt.is_some() }
}

/// Bytes of an artifact's file in which secrets are looked for.
const MAX_SEARCHED: u64 = 64 << 20;

/// Looks for secrets in the files that artifacts without content name.
fn look_in_artifacts(response: &Json, folder: &Folder<'_>) {
    for artifact in response.get("artifacts").and_then(Json::as_array).unwrap_or_default() {
        let path = artifact.get("path").and_then(Json::as_str).map(WorkspacePath::parse);
        if let Some(Ok(path)) = path {
            folder.look_for_secrets(&path, MAX_SEARCHED);
        }
    }
}

/// Names of secrets that a file of the fixture holds itself.
fn in_fixture(path: &str, given: &Given<'_>, secrets: &Secrets) -> Vec<String> {
    let found = Emitted::default();
    let file = given.fixture.and_then(|fixture| std::fs::File::open(fixture.join(path)).ok());
    if let Some(file) = file {
        secrets.look_in(file, MAX_SEARCHED, &found);
    }
    found.names()
}

fn not_copied(error: &WorkspaceError) -> String {
    format!("the workspace could not be copied for the checks: {error}")
}

/// Copies the workspace, with the files that checks bring.
fn copy(workspace: &Workspace, files: &[ResolvedFile]) -> Result<Snapshot, WorkspaceError> {
    let copy = workspace.snapshot()?;
    for file in files {
        file.add_to(&copy)?;
    }
    Ok(copy)
}

/// Commands of checks, each in a copy of its own: code of the agent runs in them, and must not change what the next one sees.
struct Checks<'c> {
    around: &'c Surroundings,
    workspace: &'c Workspace,
    given: &'c Given<'c>,
    secrets: &'c Secrets,
    /// The copy that assertions on files read, until the last command takes it.
    untouched: Option<Snapshot>,
    warnings: &'c mut Vec<String>,
}

impl Checks<'_> {
    /// Evaluates the assertions, in an order in which nothing reads the files after the last command.
    async fn evaluate(
        &mut self,
        assertions: &[Assertion],
        evidence: &Evidence<'_>,
    ) -> Result<Vec<AssertionResult>, WorkspaceError> {
        let judges = self.around.judges.clone();
        let fence = judges.as_ref().map(|judges| judges.fence()).unwrap_or_default();
        let all: Vec<Vec<Need>> =
            assertions.iter().map(|assertion| needs(&assertion.check, evidence, &fence)).collect();
        let runs = |needs: &[Need]| needs.iter().any(|need| matches!(need.request, Request::Command(_)));
        let mut order: Vec<usize> = (0..assertions.len()).collect();
        order.sort_by_key(|at| all.get(*at).is_some_and(|needs| runs(needs)));
        let last = order.last().copied();
        let mut results: BTreeMap<usize, AssertionResult> = BTreeMap::new();
        for at in order {
            let (Some(assertion), Some(needs)) = (assertions.get(at), all.get(at)) else { continue };
            // A composite reads files after its commands.
            let is_last = Some(at) == last && matches!(assertion.check, Check::Command(_));
            let mut answers = Vec::new();
            for need in needs {
                let reply = match &need.request {
                    Request::Command(wanted) => {
                        let outcome = self.run(wanted, is_last).await?;
                        // Messages show only parts of an output.
                        Reply::Command(outcome.map_texts(|text| self.secrets.cut(text).0.into_owned()))
                    }
                    Request::Judge(wanted) => {
                        let (Some(judges), wanted) = (judges.clone(), wanted.clone()) else { continue };
                        let asked = tokio::task::spawn_blocking(move || judges.replies(&wanted));
                        Reply::Judge(asked.await.unwrap_or_default())
                    }
                };
                answers.push(Answer { leaf: need.leaf, reply });
            }
            results.insert(at, evaluate_assertion(assertion, evidence, &answers));
        }
        Ok(results.into_values().collect())
    }

    /// Runs a command in a fresh copy; the last one in the copy that nobody reads any more.
    async fn run(&mut self, wanted: &CommandNeed, is_last: bool) -> Result<CommandOutcome, WorkspaceError> {
        let untouched = if is_last { self.untouched.take() } else { None };
        let copy = match untouched {
            Some(copy) => copy,
            None => copy(self.workspace, self.given.files)?,
        };
        // Tests that the agent itself was asked to write are its own, settings included.
        if !self.given.files.is_empty() {
            let is_program = |name: &str| command::search(self.around, name).is_some();
            let tools = planted::tools(&wanted.words);
            self.warn(planted::clear(copy.path(), self.given, &tools, &is_program)?);
            self.warn(own_program(copy.path(), self.given, wanted));
        }
        Ok(command::run_check(self.around, &copy, wanted, self.given).await)
    }

    fn warn(&mut self, warnings: impl IntoIterator<Item = String>) {
        for warning in warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
    }
}

/// Warning about a check whose program, or whose scripts, are the agent's: it says of itself whether it passes.
fn own_program(copy: &Path, given: &Given<'_>, wanted: &CommandNeed) -> Option<String> {
    let first = wanted.words.first()?;
    let name = if first.contains('/') && !first.starts_with('/') {
        first.trim_start_matches("./")
    } else if planted::tools(std::slice::from_ref(first)) == [planted::Tool::Node] {
        "package.json"
    } else {
        return None;
    };
    let relative = match &wanted.working_dir {
        Some(folder) => format!("{folder}/{name}"),
        None => name.to_owned(),
    };
    let is_own = copy.join(&relative).is_file()
        && !planted::is_brought(&relative, given.files)
        && !planted::is_unchanged(copy, &relative, given.fixture);
    is_own.then(|| {
        format!("the agent wrote `{relative}`, which decides the result of `{first}`; bring it under `files`")
    })
}
