//! A suite against one agent: its tests, in parallel, each as often as it says.

mod kept;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use proctor_core::random::Randomness;
use tokio::task::{Id, JoinSet};

use crate::agent::Agent;
use crate::execute::RunIdentity;
use crate::results::{Isolation, SuiteResult, TestResult};
use crate::run::{Attempt, RunResult, Surroundings, run};
use crate::scoring::{Verdict, required_passes, test_verdict};
use crate::suite::{Suite, TestCase};
use kept::Kept;

/// Tests at a time.
pub const MAX_PARALLEL: usize = 64;

/// Settings of a suite run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Numbers of the selected tests, in the order of the suite.
    pub selected: Vec<usize>,
    /// Runs of each test, instead of what the suite says.
    pub runs: Option<u32>,
    /// Tests at a time.
    pub parallel: usize,
    /// Whether tests after the first that did not pass are left out.
    pub fail_fast: bool,
    /// Further attempts at a run that ended in an error, instead of what the agent's settings say.
    pub retries: Option<u32>,
    /// Results of tests that ended before the suite run was interrupted; they are not run again.
    pub known: HashMap<String, TestResult>,
}

/// A suite, an agent, and all that their runs share.
#[derive(Clone)]
pub struct Bench {
    /// The suite.
    pub suite: Arc<Suite>,
    /// The agent.
    pub agent: Arc<Agent>,
    /// Surroundings of the runs.
    pub around: Arc<Surroundings>,
    /// Source of task ids.
    pub randomness: Arc<dyn Randomness>,
}

/// Runs the selected tests of a suite. `finished` hears of each test as it ends, in the order of ending.
///
/// Each test that is running has a task of its own: an agent that floods its output keeps one worker of the runtime busy, and the others go
/// on. If the future is dropped, the tasks are aborted, and with them their processes end.
pub async fn run_suite(
    bench: &Bench,
    options: &Options,
    finished: &mut dyn FnMut(&TestResult),
) -> SuiteResult {
    let started = Instant::now();
    let stopped = Arc::new(AtomicBool::new(false));
    let parallel = options.parallel.clamp(1, MAX_PARALLEL);
    let tests = &bench.suite.tests;
    let mut waiting = options.selected.iter().copied().filter(|index| *index < tests.len()).enumerate();
    let mut kept = Kept::new(options.selected.len());
    let mut end = |place: usize, result: TestResult| {
        let did_not_pass = matches!(result.verdict, Some(Verdict::Failed | Verdict::Error));
        if options.fail_fast && did_not_pass {
            stopped.store(true, Ordering::Relaxed);
        }
        finished(&result);
        kept.keep(place, result);
    };
    let mut running: JoinSet<Option<TestResult>> = JoinSet::new();
    let mut places: HashMap<Id, (usize, usize)> = HashMap::new();
    loop {
        while running.len() < parallel
            && let Some((place, index)) = waiting.next()
        {
            let known = tests.get(index).and_then(|test| options.known.get(&test.id));
            if let Some(known) = known {
                end(place, known.clone());
                continue;
            }
            let plan = Plan {
                runs: options.runs,
                retries: options.retries.unwrap_or(bench.agent.retries),
                stopped: Arc::clone(&stopped),
            };
            let task = running.spawn(run_recorded(bench.clone(), index, plan));
            places.insert(task.id(), (place, index));
        }
        let Some(ended) = running.join_next_with_id().await else { break };
        let (id, result) = match ended {
            Ok((id, result)) => (id, result),
            Err(error) => (error.id(), None),
        };
        let Some((place, index)) = places.remove(&id) else { continue };
        if let Some(result) = result.or_else(|| tests.get(index).map(broken_off)) {
            end(place, result);
        }
    }
    SuiteResult {
        suite: bench.suite.name.clone(),
        file: String::new(),
        agent: bench.agent.name.clone(),
        tests: kept.into_results(),
        is_interrupted: *bench.around.interrupted.borrow(),
        took: started.elapsed(),
        ended: None,
        isolation: Isolation::of(&bench.around.sandbox, &bench.agent, bench.around.endpoints.is_some()),
    }
}

/// Result of a test whose task has panicked.
fn broken_off(test: &TestCase) -> TestResult {
    let mut result = TestResult::new(test);
    result.verdict = Some(Verdict::Error);
    result.not_run = Some("the test broke off because of a defect in Proctor; its log says more".to_owned());
    result
}

/// Runs a test and records its result.
async fn run_recorded(bench: Bench, index: usize, plan: Plan) -> Option<TestResult> {
    let Bench { suite, agent, around, randomness } = bench;
    let test = suite.tests.get(index)?;
    let mut result = run_test(&agent, test, &plan, &around, &*randomness).await;
    // An interrupted test has not ended: it is run again as a whole.
    let has_ended = !*around.interrupted.borrow() && !is_left_out(&result);
    if let Some(recorder) = around.recorder.as_ref().filter(|_| has_ended)
        && let Err(error) = recorder.test_ended(&result).await
    {
        result.verdict = Some(Verdict::Error);
        result.not_run.get_or_insert(error.to_string());
    }
    Some(result)
}

/// Whether a test was left out because an earlier one did not pass, or the user interrupted.
fn is_left_out(result: &TestResult) -> bool {
    result.not_run.as_deref().is_some_and(|reason| [LEFT_OUT, INTERRUPTED].contains(&reason))
}

/// Reason of a test that was left out after one that did not pass.
const LEFT_OUT: &str = "an earlier test did not pass (`--fail-fast`)";

/// Reason of a test that was left out after an interrupt.
const INTERRUPTED: &str = "the suite run was interrupted";

/// Number of runs of a test, of attempts at each, and whether no further one begins.
struct Plan {
    runs: Option<u32>,
    retries: u32,
    stopped: Arc<AtomicBool>,
}

async fn run_test(
    agent: &Agent,
    test: &TestCase,
    plan: &Plan,
    around: &Surroundings,
    randomness: &dyn Randomness,
) -> TestResult {
    let mut result = TestResult::new(test);
    if let Some(reason) = &test.settings.skip {
        result.not_run = Some(format!("skipped: {reason}"));
        return result;
    }
    let is_for = test.settings.agents.is_empty() || test.settings.agents.contains(&agent.name);
    if !is_for {
        result.not_run = Some(format!("not for this agent; it is for {}", test.settings.agents.join(", ")));
        return result;
    }
    let total = plan.runs.unwrap_or(test.settings.runs);
    let mut runs: Vec<RunResult> = Vec::new();
    for number in 1..=total {
        if plan.stopped.load(Ordering::Relaxed) || *around.interrupted.borrow() {
            break;
        }
        let new_identity = || RunIdentity { task_id: new_id(randomness), number, total };
        runs.push(run_until_evaluated(agent, test, plan.retries, &new_identity, around).await);
    }
    if runs.is_empty() {
        let reason = if *around.interrupted.borrow() { INTERRUPTED } else { LEFT_OUT };
        result.not_run = Some(reason.to_owned());
        return result;
    }
    let mut verdicts: Vec<Verdict> = runs.iter().map(|run| run.verdict).collect();
    // A run that was left out is one that nobody looked at.
    verdicts.resize(usize::try_from(total).unwrap_or(verdicts.len()).max(verdicts.len()), Verdict::Error);
    result.verdict = Some(test_verdict(&verdicts, test.settings.pass_rate));
    result.required = required_passes(verdicts.len(), test.settings.pass_rate);
    result.took = runs.iter().map(|run| run.took).sum::<Duration>();
    result.runs = runs;
    result
}

/// Runs a test once; one that ended in an error is attempted again.
async fn run_until_evaluated(
    agent: &Agent,
    test: &TestCase,
    retries: u32,
    new_identity: &(dyn Fn() -> RunIdentity + Sync),
    around: &Surroundings,
) -> RunResult {
    let mut earlier_attempts = Vec::new();
    loop {
        let mut result = run(around, agent, test, new_identity()).await;
        let made = u32::try_from(earlier_attempts.len()).unwrap_or(u32::MAX);
        if result.verdict != Verdict::Error || made >= retries || *around.interrupted.borrow() {
            result.earlier_attempts = earlier_attempts;
            return result;
        }
        earlier_attempts.push(Attempt {
            task_id: result.task_id,
            error: result.error.unwrap_or_else(|| "the assertions could not be evaluated".to_owned()),
            took: result.took,
        });
        let mut interrupted = around.interrupted.clone();
        tokio::select! {
            () = tokio::time::sleep(agent.retry_delay) => {}
            _ = interrupted.wait_for(|is_interrupted| *is_interrupted) => {}
        }
    }
}

/// A new identifier of a suite run or a task: a UUIDv4 from injected randomness, without digits that records would redact.
pub fn new_id(randomness: &dyn Randomness) -> String {
    proctor_core::id::drawn_without_long_number(|| {
        let mut bytes = [0; 16];
        randomness.fill(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    })
}

#[cfg(test)]
mod tests;
