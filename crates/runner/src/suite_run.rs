//! A suite against one agent: its tests, in parallel, each as often as it says.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use proctor_core::random::Randomness;

use crate::agent::Agent;
use crate::execute::RunIdentity;
use crate::isolation::Isolation;
use crate::results::{SuiteResult, TestResult};
use crate::run::{RunResult, Surroundings, run};
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
        let ids: Vec<String> = (0..runs).map(|_| task_id(randomness)).collect();
        let stopped = Arc::clone(&stopped);
        async move {
            let is_stopped =
                || stopped.load(std::sync::atomic::Ordering::Relaxed) || *around.interrupted.borrow();
            let result = run_test(agent, test, ids, around, &is_stopped).await;
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
    let selected = options.selected.iter().filter_map(|index| suite.tests.get(*index));
    let isolation = Isolation::of(&around.sandbox, agent, selected, false);
    results.sort_by_key(|(place, _)| *place);
    SuiteResult {
        suite: suite.name.clone(),
        agent: agent.name.clone(),
        tests: results.into_iter().map(|(_, result)| result).collect(),
        is_interrupted: *around.interrupted.borrow(),
        took: started.elapsed(),
        isolation,
    }
}

async fn run_test(
    agent: &Agent,
    test: &TestCase,
    ids: Vec<String>,
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
    let total = u32::try_from(ids.len()).unwrap_or(u32::MAX);
    let mut runs: Vec<RunResult> = Vec::new();
    for (number, task_id) in (1..).zip(ids) {
        if is_stopped() {
            break;
        }
        let identity = RunIdentity { task_id, number, total, tools_endpoint: None };
        runs.push(run(around, agent, test, identity).await);
    }
    if runs.is_empty() {
        result.not_run = Some("an earlier test did not pass, or the run was interrupted".to_owned());
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

/// A UUIDv4 from injected randomness.
fn task_id(randomness: &dyn Randomness) -> String {
    let mut bytes = [0; 16];
    randomness.fill(&mut bytes);
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}
