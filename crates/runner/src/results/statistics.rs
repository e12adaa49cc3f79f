//! Statistics of repeated runs, for each test and for the suite.

use serde::Serialize;

use super::{SuiteResult, TestResult, run_seconds};
use crate::scoring::Verdict;
use crate::statistics::{Interval, Stability, SuccessRate, Summary};

/// Numbers of runs that `pass@k` and `pass^k` are given for, as far as there are so many runs.
const KS: [u32; 11] = [1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000];

/// Estimates for `k` runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PassRate {
    /// Number of runs.
    pub k: u32,
    /// `pass@k`: probability that at least one of them passes.
    #[serde(rename = "pass@k")]
    pub any: f64,
    /// `pass^k`: probability that all of them pass.
    #[serde(rename = "pass^k")]
    pub all: f64,
}

/// Statistics of a test over its runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TestStatistics {
    /// Number of runs.
    pub runs: usize,
    /// Runs that could not be evaluated. They have no score, and no success.
    pub errors: usize,
    /// Scores of the evaluated runs.
    pub score: Option<Summary>,
    /// Costs of the evaluated runs that have one.
    pub cost_usd: Option<Summary>,
    /// Durations of the evaluated runs.
    pub duration_seconds: Option<Summary>,
    /// Share of all runs that passed.
    pub success: Option<SuccessRate>,
    /// `pass@k` and `pass^k`.
    pub pass: Vec<PassRate>,
    /// Class of the scores' spread; none with one score.
    pub stability: Option<Stability>,
    /// Whether some runs passed and others did not.
    pub flaky: bool,
}

/// Statistics of a suite over its tests.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SuiteStatistics {
    /// Tests that were run.
    pub tests: usize,
    /// Runs of all tests.
    pub runs: usize,
    /// Runs that could not be evaluated.
    pub errors: usize,
    /// Mean scores of the tests: each test counts once, however many runs it has.
    pub score: Option<Summary>,
    /// Cost of all runs that have one.
    pub cost_usd: Option<f64>,
    /// Share of all runs that passed.
    pub success: Option<SuccessRate>,
    /// Mean over the tests of `pass@k` and `pass^k`, for as many runs as every test has.
    pub pass: Vec<PassRate>,
    /// Numbers of tests by stability.
    pub stability: StabilityCounts,
    /// Ids of the tests of which some runs passed and others did not.
    pub flaky: Vec<String>,
}

/// Numbers of tests by stability; tests with one score have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct StabilityCounts {
    /// Stable tests.
    pub stable: usize,
    /// Moderately stable tests.
    pub moderate: usize,
    /// Unstable tests.
    pub unstable: usize,
    /// Tests whose scores vary by 30 % or more.
    pub critical: usize,
}

impl TestResult {
    /// Statistics over the runs.
    pub fn statistics(&self) -> TestStatistics {
        let evaluated = || self.runs.iter().filter(|run| run.verdict != Verdict::Error);
        let costs: Vec<f64> = evaluated().filter_map(|run| run.measures.cost_usd).collect();
        let durations: Vec<f64> = evaluated().map(run_seconds).collect();
        let score = Summary::of(&self.points());
        let success = rate(self.passes(), self.runs.len());
        TestStatistics {
            runs: self.runs.len(),
            errors: self.runs.len() - evaluated().count(),
            score,
            cost_usd: Summary::of(&costs),
            duration_seconds: Summary::of(&durations),
            success,
            pass: success.map(|success| pass_rates(&[success])).unwrap_or_default(),
            stability: score.and_then(|score| score.stability),
            flaky: self.is_flaky(),
        }
    }
}

impl TestStatistics {
    /// Short sentence for people; none with fewer than two runs, which have no spread.
    pub fn sentence(&self) -> Option<String> {
        let mut parts = Vec::new();
        let success = self.success.filter(|success| success.runs > 1)?;
        if let Some((score, interval)) = self.score.and_then(|score| Some((score, score.interval?))) {
            let deviation = score.deviation.unwrap_or_default();
            parts.push(format!("score {:.1} ± {deviation:.1} (95 %: {})", score.mean, of_scores(interval)));
        }
        parts.push(format!(
            "success {:.0} % (95 %: {:.0} to {:.0})",
            100.0 * success.rate,
            100.0 * success.interval.low,
            100.0 * success.interval.high
        ));
        // With two runs, two of them say nothing new.
        if let Some(pass) = self.pass.iter().find(|pass| pass.k == 2 && success.runs > 2) {
            parts.push(format!("pass@2 {:.0} %, pass^2 {:.0} %", 100.0 * pass.any, 100.0 * pass.all));
        }
        parts.extend(self.stability.map(|stability| format!("stability: {}", stability.word())));
        Some(parts.join(", "))
    }
}

impl SuiteResult {
    /// Statistics over the tests that were run.
    pub fn statistics(&self) -> SuiteStatistics {
        let (mut means, mut costs, mut rates) = (Vec::new(), Vec::new(), Vec::new());
        let mut stability = StabilityCounts::default();
        let (mut tests, mut runs, mut errors, mut passes) = (0, 0, 0, 0);
        let mut flaky = Vec::new();
        // Only numbers are kept of each test: the statistics of thousands would double the memory of the result.
        for test in self.tests.iter().filter(|test| !test.runs.is_empty()) {
            let statistics = test.statistics();
            tests += 1;
            runs += statistics.runs;
            errors += statistics.errors;
            passes += test.passes();
            means.extend(statistics.score.map(|score| score.mean));
            rates.extend(statistics.success);
            costs.extend(
                test.runs.iter().filter_map(|run| run.measures.cost_usd).filter(|cost| cost.is_finite()),
            );
            match statistics.stability {
                Some(Stability::Stable) => stability.stable += 1,
                Some(Stability::Moderate) => stability.moderate += 1,
                Some(Stability::Unstable) => stability.unstable += 1,
                Some(Stability::Critical) => stability.critical += 1,
                None => {}
            }
            if statistics.flaky {
                flaky.push(test.id.clone());
            }
        }
        SuiteStatistics {
            tests,
            runs,
            errors,
            score: Summary::of(&means),
            cost_usd: (!costs.is_empty()).then(|| costs.iter().sum()),
            success: rate(passes, runs),
            pass: pass_rates(&rates),
            stability,
            flaky,
        }
    }
}

impl SuiteStatistics {
    /// Short sentence for people; none unless a test has several runs.
    pub fn sentence(&self) -> Option<String> {
        let success = self.success.filter(|_| self.runs > self.tests)?;
        let mut parts = Vec::new();
        if let Some(score) = self.score {
            let interval = score
                .interval
                .map_or_else(String::new, |interval| format!(" (95 %: {})", of_scores(interval)));
            parts.push(format!("mean score {:.1}{interval}", score.mean));
        }
        parts.push(format!("{} of {} runs passed", success.successes, success.runs));
        if self.errors > 0 {
            let noun = if self.errors == 1 { "run" } else { "runs" };
            parts.push(format!("{} {noun} could not be evaluated", self.errors));
        }
        Some(parts.join(", "))
    }
}

/// An interval of scores, cut to the range that scores have.
fn of_scores(interval: Interval) -> String {
    format!("{:.1} to {:.1}", interval.low.clamp(0.0, 100.0), interval.high.clamp(0.0, 100.0))
}

fn rate(successes: usize, runs: usize) -> Option<SuccessRate> {
    let successes = u32::try_from(successes).ok()?;
    SuccessRate::new(successes, u32::try_from(runs).ok()?.checked_sub(successes)?)
}

/// Means of `pass@k` and `pass^k` over several rates, for as many runs as each of them has.
fn pass_rates(rates: &[SuccessRate]) -> Vec<PassRate> {
    let fewest = rates.iter().map(|rate| rate.runs).min().unwrap_or_default();
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
    KS.into_iter()
        .filter(|k| *k <= fewest)
        .map(|k| PassRate {
            k,
            any: mean(rates.iter().filter_map(|rate| rate.pass_any(k)).collect()),
            all: mean(rates.iter().filter_map(|rate| rate.pass_all(k)).collect()),
        })
        .collect()
}
