//! A suite against one agent: its tests, in parallel, each as often as it says.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use proctor_core::random::Randomness;

use crate::agent::Agent;
use crate::execute::RunIdentity;
use crate::results::{Isolation, SuiteResult, TestResult};
use crate::run::{Attempt, RunResult, Surroundings, run};
use crate::scoring::{Verdict, test_verdict};
use crate::suite::{Suite, TestCase};

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

/// Runs the selected tests of a suite. `finished` hears of each test as it ends, in the order of ending.
pub async fn run_suite(
    suite: &Suite,
    agent: &Agent,
    options: &Options,
    around: &Surroundings,
    randomness: &dyn Randomness,
    finished: &mut dyn FnMut(&TestResult),
) -> SuiteResult {
    let started = Instant::now();
    let stopped = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let tests: Vec<&TestCase> = options.selected.iter().filter_map(|index| suite.tests.get(*index)).collect();
    let planned = tests.into_iter().enumerate().map(|(place, test)| {
        let runs = options.runs.unwrap_or(test.runs);
        let stopped = Arc::clone(&stopped);
        async move {
            if let Some(known) = options.known.get(&test.id) {
                return (place, known.clone());
            }
            let is_stopped =
                || stopped.load(std::sync::atomic::Ordering::Relaxed) || *around.interrupted.borrow();
            let plan = Plan { runs, retries: options.retries.unwrap_or(agent.retries), randomness };
            let mut result = run_test(agent, test, &plan, around, &is_stopped).await;
            // An interrupted test has not ended: it is run again as a whole.
            let has_ended = !*around.interrupted.borrow() && !is_left_out(&result);
            if let Some(recorder) = around.recorder.as_ref().filter(|_| has_ended)
                && let Err(error) = recorder.test_ended(&result).await
            {
                result.verdict = Some(Verdict::Error);
                result.not_run.get_or_insert(error.to_string());
            }
            (place, result)
        }
    });
    let parallel = options.parallel.clamp(1, MAX_PARALLEL);
    let mut running = futures_util::stream::iter(planned).buffer_unordered(parallel);
    let mut results = Vec::new();
    while let Some((place, result)) = running.next().await {
        let did_not_pass = matches!(result.verdict, Some(Verdict::Failed | Verdict::Error));
        if options.fail_fast && did_not_pass {
            stopped.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        finished(&result);
        results.push((place, result));
    }
    drop(running);
    let isolation = Isolation::of(&around.sandbox, agent, around.endpoints.is_some());
    results.sort_by_key(|(place, _)| *place);
    SuiteResult {
        suite: suite.name.clone(),
        file: String::new(),
        agent: agent.name.clone(),
        tests: results.into_iter().map(|(_, result)| result).collect(),
        is_interrupted: *around.interrupted.borrow(),
        took: started.elapsed(),
        ended: None,
        isolation,
    }
}

/// Whether a test was left out because an earlier one did not pass.
fn is_left_out(result: &TestResult) -> bool {
    result.not_run.as_deref() == Some(LEFT_OUT)
}

/// Reason of a test that was left out.
const LEFT_OUT: &str = "an earlier test did not pass, or the run was interrupted";

/// Number of runs of a test, and of attempts at each.
struct Plan<'p> {
    runs: u32,
    retries: u32,
    randomness: &'p dyn Randomness,
}

async fn run_test(
    agent: &Agent,
    test: &TestCase,
    plan: &Plan<'_>,
    around: &Surroundings,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> TestResult {
    let mut result = TestResult::new(test);
    if let Some(reason) = &test.skip {
        result.not_run = Some(format!("skipped: {reason}"));
        return result;
    }
    let is_for = test.agents.is_empty() || test.agents.contains(&agent.name);
    if !is_for {
        result.not_run = Some(format!("not for this agent; it is for {}", test.agents.join(", ")));
        return result;
    }
    let total = plan.runs;
    let mut runs: Vec<RunResult> = Vec::new();
    for number in 1..=total {
        if is_stopped() {
            break;
        }
        runs.push(run_until_evaluated(agent, test, plan, number, around).await);
    }
    if runs.is_empty() {
        result.not_run = Some(LEFT_OUT.to_owned());
        return result;
    }
    let mut verdicts: Vec<Verdict> = runs.iter().map(|run| run.verdict).collect();
    // A run that was left out is one that nobody looked at.
    verdicts.resize(usize::try_from(total).unwrap_or(verdicts.len()).max(verdicts.len()), Verdict::Error);
    result.verdict = Some(test_verdict(&verdicts, test.pass_rate));
    result.took = runs.iter().map(|run| run.took).sum::<Duration>();
    result.runs = runs;
    result
}

/// Runs a test once; one that ended in an error is attempted again.
async fn run_until_evaluated(
    agent: &Agent,
    test: &TestCase,
    plan: &Plan<'_>,
    number: u32,
    around: &Surroundings,
) -> RunResult {
    let mut earlier_attempts = Vec::new();
    loop {
        let identity = RunIdentity { task_id: new_id(plan.randomness), number, total: plan.runs };
        let mut result = run(around, agent, test, identity).await;
        let made = u32::try_from(earlier_attempts.len()).unwrap_or(u32::MAX);
        if result.verdict != Verdict::Error || made >= plan.retries || *around.interrupted.borrow() {
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

/// A new identifier of a suite run or a task: a UUIDv4 from injected randomness.
pub fn new_id(randomness: &dyn Randomness) -> String {
    let mut bytes = [0; 16];
    randomness.fill(&mut bytes);
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}
