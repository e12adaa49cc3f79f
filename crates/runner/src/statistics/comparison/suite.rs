//! Effect of a change on a suite as a whole.

use serde::Serialize;

use super::SIGNIFICANCE;
use super::effect::{Quantity, Verdict};
use super::input::{Joined, TestRuns};
use crate::statistics::permutation::{self, EXACT_PAIRS, Permutation, paired_permutation};
use crate::statistics::rate::SuccessRate;
use crate::statistics::sample::{Moments, is_usable};
use crate::statistics::summary::{Interval, mean_interval};
use crate::statistics::welch::welch;

/// Assignments of signs that are drawn if not all are counted.
const DRAWS: u32 = 9_999;

/// Upper bound on draws: a suite of 10,000 tests takes seconds with it.
const MOST_DRAWS: u32 = 999_999;

/// Mean difference of a quantity over the tests that both results have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SuiteEffect {
    /// Compared quantity.
    pub quantity: Quantity,
    /// Number of tests that both results have values of.
    pub tests: usize,
    /// Mean over the tests of later mean minus earlier mean.
    pub difference: f64,
    /// 95 % interval of that mean, by Student's distribution over the tests' differences. Of a single test it is the interval of Welch's
    /// test; `None` if that has fewer than two runs on a side, and for the success rate of a single test.
    pub interval: Option<Interval>,
    /// Paired permutation test; `None` with fewer pairs than could be significant.
    pub permutation: Option<Permutation>,
    /// The p value after Holm's correction; `None` without a permutation test.
    pub adjusted_p: Option<f64>,
    /// Conclusion.
    pub verdict: Verdict,
}

impl SuiteEffect {
    /// Effects on the suite, not yet tested, for each quantity that both sides have.
    pub(super) fn of(joined: &Joined<'_>) -> Vec<SuiteEffect> {
        Quantity::ALL.into_iter().filter_map(|quantity| SuiteEffect::new(quantity, joined)).collect()
    }

    fn new(quantity: Quantity, joined: &Joined<'_>) -> Option<SuiteEffect> {
        let pairs = differences(joined, quantity);
        Some(SuiteEffect {
            quantity,
            tests: pairs.len(),
            difference: Moments::of(&pairs)?.mean,
            interval: mean_interval(&pairs).or_else(|| interval_of_single(joined, quantity)),
            permutation: None,
            adjusted_p: None,
            verdict: Verdict::NotEnoughRuns,
        })
    }

    /// Runs the permutation test, with as many draws as the correction for so many hypotheses needs.
    pub(super) fn test(&mut self, joined: &Joined<'_>, hypotheses: usize, seed: u64) {
        let pairs = differences(joined, self.quantity);
        // A stream of its own for each quantity.
        let seed = seed.wrapping_add(self.quantity as u64);
        self.permutation = paired_permutation(&pairs, DRAWS, seed);
        let draws = draws_for(hypotheses);
        // The smallest p of m draws is 1 / (m + 1), which many hypotheses multiply beyond any significance. More draws are only made
        // where p is small uncorrected: what is not significant then would not be with them, so errors do not become more frequent.
        if pairs.len() > EXACT_PAIRS
            && draws > DRAWS
            && self.permutation.is_some_and(|permutation| permutation.p <= SIGNIFICANCE)
        {
            self.permutation = paired_permutation(&pairs, draws, seed);
        }
    }

    /// Whether so many pairs could be significant at all.
    pub(super) fn is_testable(&self) -> bool {
        self.smallest_p() <= SIGNIFICANCE
    }

    pub(super) fn smallest_p(&self) -> f64 {
        permutation::smallest_p(self.tests)
    }
}

/// Draws with which the smallest p is half of what Holm's correction asks for at first.
fn draws_for(hypotheses: usize) -> u32 {
    let needed = (2.0 * hypotheses as f64 / SIGNIFICANCE).ceil();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to a range of u32")]
    let draws = needed.clamp(f64::from(DRAWS), f64::from(MOST_DRAWS)) as u32;
    draws
}

/// Later mean minus earlier mean of each test that both results have values of.
fn differences(joined: &Joined<'_>, quantity: Quantity) -> Vec<f64> {
    let mean = |test: &TestRuns| match test.sample(quantity) {
        Some(sample) => Moments::of(sample).map(|moments| moments.mean),
        None => SuccessRate::new(test.successes, test.failures).map(|rate| rate.rate),
    };
    joined
        .common()
        .filter_map(|(before, after)| Some(mean(after)? - mean(before)?))
        .filter(|difference| is_usable(*difference))
        .collect()
}

/// The interval of the difference of the only test that has values on both sides.
fn interval_of_single(joined: &Joined<'_>, quantity: Quantity) -> Option<Interval> {
    let test =
        |(before, after): (&TestRuns, &TestRuns)| welch(after.sample(quantity)?, before.sample(quantity)?);
    joined.common().find_map(test).map(|test| test.interval)
}
