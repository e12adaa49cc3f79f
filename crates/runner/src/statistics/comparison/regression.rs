//! Decision about a regression.

use serde::Serialize;
use thiserror::Error;

use super::effect::{Quantity, Verdict};
use super::input::Joined;
use super::plan;
use super::suite::SuiteEffect;
use super::{SIGNIFICANCE, TestComparison};
use crate::statistics::summary::Interval;

/// Loss of the suite's mean score, in points, that must be excluded.
pub const DEFAULT_MARGIN: f64 = 5.0;

/// Parameters of a decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    margin: f64,
    seed: u64,
}

/// Error of a margin that no score can reach.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[error("the margin `{0}` is no number of points above 0 and up to 100; give a loss that matters, as 5")]
pub struct InvalidMargin(pub f64);

impl Default for Rule {
    fn default() -> Rule {
        // Any constant: the same results give the same comparison.
        Rule { margin: DEFAULT_MARGIN, seed: 12 }
    }
}

impl Rule {
    /// The same rule with another margin, in points above 0 and up to 100.
    pub fn with_margin(self, margin: f64) -> Result<Rule, InvalidMargin> {
        if margin > 0.0 && margin <= 100.0 { Ok(Rule { margin, ..self }) } else { Err(InvalidMargin(margin)) }
    }

    /// The same rule with another seed of the permutation test's draws.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Rule {
        Rule { seed, ..self }
    }

    /// Loss in points that must be excluded.
    pub fn margin(&self) -> f64 {
        self.margin
    }

    /// Seed of the permutation test's draws.
    pub fn seed(&self) -> u64 {
        self.seed
    }
}

/// Decision about a regression of score or success.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Regression {
    /// No loss shown, and a loss of the margin is excluded.
    None,
    /// Loss shown, of tests or of the suite.
    Shown {
        /// Tests whose verdict is worse.
        tests: Vec<String>,
        /// Whether the suite's verdict is worse.
        suite: bool,
    },
    /// No loss shown and none excluded: the interval of the suite's mean score reaches a loss of the margin, or there is no interval, or
    /// the runs are too few to show any loss.
    Undecided {
        /// Interval of the mean difference in score.
        interval: Option<Interval>,
        /// Runs for each test, in both results, that would decide in four of five repetitions if the observed deviations stay; `None` if
        /// no number up to 10,000 would, or nothing was compared.
        runs: Option<u32>,
    },
}

/// Decides from the verdicts and the interval of the suite's score.
pub(super) fn decide(
    joined: &Joined<'_>,
    tests: &[TestComparison],
    suite: &[SuiteEffect],
    rule: &Rule,
) -> Regression {
    let worse: Vec<String> =
        tests.iter().filter(|test| test.verdict == Verdict::Worse).map(|test| test.name.clone()).collect();
    let suite_is_worse =
        suite.iter().any(|effect| effect.quantity.is_quality() && effect.verdict == Verdict::Worse);
    if !worse.is_empty() || suite_is_worse {
        return Regression::Shown { tests: worse, suite: suite_is_worse };
    }
    let interval =
        suite.iter().find(|effect| effect.quantity == Quantity::Score).and_then(|effect| effect.interval);
    let in_tests = tests.iter().flat_map(|test| &test.effects);
    let is_testable = in_tests.clone().any(|effect| effect.quantity.is_quality() && effect.is_testable())
        || suite.iter().any(|effect| effect.quantity.is_quality() && effect.is_testable());
    let excluded = interval.is_some_and(|interval| interval.low > -rule.margin());
    if excluded && is_testable {
        return Regression::None;
    }
    // With more runs every effect on a test is a hypothesis; of the suite's effects those with enough tests.
    let hypotheses = in_tests.count() + suite.iter().filter(|effect| effect.is_testable()).count();
    let level = SIGNIFICANCE / hypotheses.max(1) as f64;
    Regression::Undecided { interval, runs: plan::runs_to_decide(joined, interval, rule.margin(), level) }
}
