//! Comparison of a result with a baseline: from runs to statistics, and from these to words and a conclusion.
//!
//! Tests are matched by id. Runs that could not be evaluated say nothing about the agent's quality and are left out; their number is kept.

mod words;

use proctor_core::json::Json;

use crate::results::{SuiteResult, TestResult, points, run_seconds};
use crate::scoring::Verdict as RunVerdict;
use crate::statistics::{Comparison, Quantity, Regression, Rule, TestRuns, Verdict};

pub use words::{quantity_word, verdict_word};

/// Comparison of a result with a baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct BaselineComparison {
    /// The baseline, for people: a file, or the name of an agent.
    pub source: String,
    /// Agent of the baseline.
    pub agent: String,
    /// Effects, corrected together.
    pub statistics: Comparison,
    /// Means of each test, in the order of `statistics.tests`.
    pub means: Vec<TestMeans>,
    /// Loss in points that must be excluded.
    pub margin: f64,
    /// Runs of the baseline and of the result that could not be evaluated, and are left out.
    pub left_out: (usize, usize),
    /// Ids of tests that passed in the baseline and do not pass in the result.
    pub fails_now: Vec<String>,
    /// Ids of tests that did not pass in the baseline and pass in the result.
    pub passes_now: Vec<String>,
}

/// Means of a test before and after; none where there is no value.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TestMeans {
    /// Score in the baseline.
    pub score_before: Option<f64>,
    /// Score in the result.
    pub score_after: Option<f64>,
    /// Success rate in the baseline.
    pub success_before: Option<f64>,
    /// Success rate in the result.
    pub success_after: Option<f64>,
}

/// Conclusion about a regression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    /// No loss shown, and a loss of the margin excluded.
    NoRegression,
    /// A loss is shown.
    Regression,
    /// The runs do not decide.
    Undecided,
}

/// Error of a baseline that has nothing to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no test of the baseline has the id of a selected test; use a result of the same suite")]
pub struct NothingInCommon;

impl BaselineComparison {
    /// Compares a result with a baseline.
    pub fn new(
        source: impl Into<String>,
        baseline: &SuiteResult,
        result: &SuiteResult,
        rule: &Rule,
    ) -> BaselineComparison {
        let (before, after) = (all_runs(baseline), all_runs(result));
        let statistics = Comparison::new(&before, &after, rule);
        let find = |tests: &[TestRuns], name: &str| {
            // Linear search would be quadratic in the tests of a large suite.
            let index = tests.binary_search_by(|test| test.name.as_str().cmp(name)).ok()?;
            tests.get(index).cloned()
        };
        let sorted = |mut tests: Vec<TestRuns>| {
            tests.sort_by(|left, right| left.name.cmp(&right.name));
            tests
        };
        let (before, after) = (sorted(before), sorted(after));
        let means = statistics.tests.iter().map(|test| {
            let (before, after) = (find(&before, &test.name), find(&after, &test.name));
            TestMeans {
                score_before: before.as_ref().and_then(|test| mean(&test.scores)),
                score_after: after.as_ref().and_then(|test| mean(&test.scores)),
                success_before: before.as_ref().and_then(success),
                success_after: after.as_ref().and_then(success),
            }
        });
        let (fails_now, passes_now) = turned(baseline, result);
        BaselineComparison {
            fails_now,
            passes_now,
            source: source.into(),
            agent: baseline.agent.clone(),
            means: means.collect(),
            statistics,
            margin: rule.margin(),
            left_out: (errors(baseline), errors(result)),
        }
    }

    /// Conclusion about a regression.
    pub fn conclusion(&self) -> Conclusion {
        match self.statistics.regression {
            // An agent that crashes more often is worse, although such runs have no score.
            Regression::None if self.left_out.1 > 0 => Conclusion::Undecided,
            Regression::None => Conclusion::NoRegression,
            Regression::Shown { .. } => Conclusion::Regression,
            Regression::Undecided { .. } => Conclusion::Undecided,
        }
    }

    /// Ids of the tests with this verdict.
    pub fn tests(&self, verdict: Verdict) -> impl Iterator<Item = &str> {
        self.statistics
            .tests
            .iter()
            .filter(move |test| test.verdict == verdict)
            .map(|test| test.name.as_str())
    }

    /// The comparison as JSON, as it stands in the document of the result.
    pub fn to_json(&self) -> Json {
        let left_out = Json::object().with("before", self.left_out.0).with("after", self.left_out.1);
        let mut json = Json::object()
            .with("baseline", self.source.as_str())
            .with("agent", self.agent.as_str())
            .with("verdict", verdict_word(self.statistics.verdict))
            .with("conclusion", self.conclusion().word())
            .with("says", self.sentences().into_iter().map(Json::from).collect::<Vec<_>>())
            .with("margin", Json::Number(self.margin.to_string().into()))
            .with("left_out_runs", left_out);
        if let Ok(statistics) = Json::from_type(&self.statistics) {
            json.push("statistics", statistics);
        }
        json
    }
}

impl Conclusion {
    /// The word for it in reports.
    pub fn word(self) -> &'static str {
        match self {
            Conclusion::NoRegression => "no_regression",
            Conclusion::Regression => "regression",
            Conclusion::Undecided => "undecided",
        }
    }
}

/// Restricts a baseline to what a selection of tests can be compared with: tests of the suite that are not selected are no removed ones.
/// `is_left_out` tells whether the suite has a test of this id that is not selected, `is_selected` whether it is.
pub fn restrict(
    baseline: &mut SuiteResult,
    is_selected: &dyn Fn(&str) -> bool,
    is_left_out: &dyn Fn(&str) -> bool,
) -> Result<(), NothingInCommon> {
    baseline.tests.retain(|test| !is_left_out(&test.id));
    let has_common = baseline.tests.iter().any(|test| is_selected(&test.id));
    if has_common { Ok(()) } else { Err(NothingInCommon) }
}

/// Ids of tests whose verdict turned from passed to another, and from another to passed. Tests that were not run have none.
fn turned(baseline: &SuiteResult, result: &SuiteResult) -> (Vec<String>, Vec<String>) {
    let passed = |test: &TestResult| test.verdict.map(|verdict| verdict == RunVerdict::Passed);
    let before: std::collections::HashMap<&str, bool> =
        baseline.tests.iter().filter_map(|test| Some((test.id.as_str(), passed(test)?))).collect();
    let (mut fails, mut passes) = (Vec::new(), Vec::new());
    for test in &result.tests {
        match (before.get(test.id.as_str()), passed(test)) {
            (Some(true), Some(false)) => fails.push(test.id.clone()),
            (Some(false), Some(true)) => passes.push(test.id.clone()),
            _ => {}
        }
    }
    (fails, passes)
}

fn all_runs(result: &SuiteResult) -> Vec<TestRuns> {
    result.tests.iter().map(test_runs).collect()
}

/// Evaluated runs of a test.
fn test_runs(test: &TestResult) -> TestRuns {
    let evaluated = || test.runs.iter().filter(|run| run.verdict != RunVerdict::Error);
    let count = |verdict| evaluated().filter(|run| run.verdict == verdict).count();
    TestRuns {
        name: test.id.clone(),
        scores: evaluated().filter_map(points).collect(),
        costs: evaluated().filter_map(|run| run.measures.cost_usd).collect(),
        latencies: evaluated().map(run_seconds).collect(),
        successes: u32::try_from(count(RunVerdict::Passed)).unwrap_or(u32::MAX),
        failures: u32::try_from(count(RunVerdict::Failed)).unwrap_or(u32::MAX),
    }
}

fn errors(result: &SuiteResult) -> usize {
    let runs = result.tests.iter().flat_map(|test| &test.runs);
    runs.filter(|run| run.verdict == RunVerdict::Error).count()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn success(test: &TestRuns) -> Option<f64> {
    let runs = u64::from(test.successes) + u64::from(test.failures);
    (runs > 0).then(|| f64::from(test.successes) / runs as f64)
}

/// Factor from the unit of a quantity to the one that people read, and that unit.
pub(crate) fn unit(quantity: Quantity) -> (f64, &'static str) {
    match quantity {
        Quantity::Score => (1.0, "points"),
        Quantity::Success => (100.0, "percentage points"),
        Quantity::Cost => (1.0, "USD"),
        Quantity::Latency => (1.0, "s"),
    }
}

#[cfg(test)]
mod tests;
