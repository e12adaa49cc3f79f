//! Number of runs that would decide about a regression.

use super::SIGNIFICANCE;
use super::effect;
use super::input::Joined;
use crate::statistics::distribution::{student_t_quantile, student_t_two_sided};
use crate::statistics::permutation;
use crate::statistics::sample::Moments;
use crate::statistics::summary::{CONFIDENCE, Interval};

/// Most runs that are proposed: nobody makes more of them.
const MOST_RUNS: u32 = 10_000;

/// Standard errors that an estimate falls short of its mean in one of five repetitions: the usual power of 80 %.
const POWER: f64 = 0.841_621_233_572_914_2;

/// The smallest number of runs for each test, in both results, that would decide in four of five repetitions if the observed deviations
/// stay; `None` if [`MOST_RUNS`] would not decide.
///
/// If the interval contains 0, the observed difference may be chance: these are the runs with which equal agents are found to have lost
/// less than the margin. If the tests differ too much among themselves for that, these are the runs with which the observed loss of a test
/// would be significant at `level`, and with which the margin would be excluded if the tests did not differ. If the interval lies below 0, the observed loss is taken as it is, and either end counts.
pub(super) fn runs_to_decide(
    joined: &Joined<'_>,
    interval: Option<Interval>,
    margin: f64,
    level: f64,
) -> Option<u32> {
    let pairs: Vec<(Moments, Moments)> = joined
        .common()
        .filter_map(|(before, after)| Some((Moments::of(&before.scores)?, Moments::of(&after.scores)?)))
        .collect();
    if let [(before, after)] = pairs.as_slice()
        && (before.n < 2 || after.n < 2)
    {
        // No variance was observed: the fewest runs that could show anything.
        return (2..=MOST_RUNS).find(|runs| smallest_p(*runs) <= level);
    }
    let plan = Plan::new(&pairs)?;
    let now = pairs.iter().map(|(before, after)| before.n.min(after.n)).min()?;
    let now = u32::try_from(now).ok()?;
    if interval.is_some_and(|interval| interval.high < 0.0) {
        let reserve = margin + plan.difference;
        fewest(now, |runs| plan.excludes_loss(runs, reserve) || plan.shows_loss(runs, level))
    } else {
        fewest(now, |runs| plan.excludes_loss(runs, margin)).or_else(|| {
            // The tests' differences may still be chance: as many runs as decide in either case.
            let shown = fewest(now, |runs| plan.shows_loss(runs, level))?;
            let equal = Plan { among_tests: 0.0, ..plan };
            Some(fewest(now, |runs| equal.excludes_loss(runs, margin)).map_or(shown, |runs| runs.max(shown)))
        })
    }
}

/// The smallest number of runs above `now` that decides, if more runs never decide less.
fn fewest(now: u32, decides: impl Fn(u32) -> bool) -> Option<u32> {
    let (mut low, mut high) = (now.checked_add(1)?, MOST_RUNS);
    if low > high || !decides(high) {
        return None;
    }
    while low < high {
        let middle = low.midpoint(high);
        if decides(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(low)
}

/// Observed differences and variances of the scores.
struct Plan {
    /// Difference of each test, and the sum of both variances if known.
    tests: Vec<(f64, Option<f64>)>,
    /// Mean of the differences.
    difference: f64,
    /// Variance among the tests' differences that more runs do not reduce.
    among_tests: f64,
    /// Variance of a test's difference with one run on each side.
    per_run: f64,
}

impl Plan {
    fn new(pairs: &[(Moments, Moments)]) -> Option<Plan> {
        let sum = |before: &Moments, after: &Moments| Some(before.variance()? + after.variance()?);
        let tests: Vec<_> =
            pairs.iter().map(|(before, after)| (after.mean - before.mean, sum(before, after))).collect();
        let differences: Vec<f64> = tests.iter().map(|(difference, _)| *difference).collect();
        let all = Moments::of(&differences)?;
        let spread = all.variance().unwrap_or(0.0);
        let mean = |values: &[f64]| Moments::of(values).map(|moments| moments.mean);
        let sums: Vec<f64> = tests.iter().filter_map(|(_, sum)| *sum).collect();
        let (among_tests, per_run) = if let Some(per_run) = mean(&sums) {
            let explained: Vec<f64> = pairs
                .iter()
                .filter_map(|(before, after)| {
                    Some(before.variance()? / before.n as f64 + after.variance()? / after.n as f64)
                })
                .collect();
            let explained = mean(&explained)?;
            // What the runs' own variance does not explain is a difference among tests, unless it is within two standard deviations of
            // a sample variance: chance among few tests must not look like a difference that runs cannot remove.
            let chance = 2.0 * (2.0 / (tests.len() as f64 - 1.0).max(1.0)).sqrt();
            let among_tests = if spread > explained * (1.0 + chance) { spread - explained } else { 0.0 };
            (among_tests, per_run)
        } else {
            // Single runs have no variance of their own: all of the spread counts as theirs.
            let shares: Vec<f64> =
                pairs.iter().map(|(before, after)| 0.5 / before.n as f64 + 0.5 / after.n as f64).collect();
            (0.0, spread / mean(&shares)?)
        };
        Some(Plan { tests, difference: all.mean, among_tests, per_run })
    }

    /// Standard error of the suite's mean difference, and its degrees of freedom.
    fn error(&self, runs: u32) -> (f64, f64) {
        let runs = f64::from(runs);
        let tests = self.tests.len() as f64;
        let freedom = if self.tests.len() < 2 { 2.0 * (runs - 1.0) } else { tests - 1.0 };
        (((self.among_tests + self.per_run / runs) / tests).sqrt(), freedom)
    }

    /// Whether the interval would reach less than `reserve` below its middle, with runs that could show a loss.
    fn excludes_loss(&self, runs: u32, reserve: f64) -> bool {
        let is_testable =
            smallest_p(runs) <= SIGNIFICANCE || permutation::smallest_p(self.tests.len()) <= SIGNIFICANCE;
        let (error, freedom) = self.error(runs);
        let reach = if error > 0.0 {
            // The length of the interval varies too: quantile of a noncentral Student distribution, by its normal approximation.
            let t = student_t_quantile(f64::midpoint(1.0, CONFIDENCE), freedom);
            (t * (1.0 - 0.25 / freedom) + POWER * (1.0 + t * t / (2.0 * freedom)).sqrt()) * error
        } else {
            0.0
        };
        is_testable && reach < reserve
    }

    /// Whether the loss of the suite or of a test would be significant.
    fn shows_loss(&self, runs: u32, level: f64) -> bool {
        let (error, freedom) = self.error(runs);
        let suite = self.difference < 0.0
            && permutation::smallest_p(self.tests.len()) <= level
            && is_significant(self.difference, error, freedom, level);
        let of_test = |(difference, sum): &(f64, Option<f64>)| {
            let error = (sum.unwrap_or(self.per_run) / f64::from(runs)).sqrt();
            *difference < 0.0 && is_significant(*difference, error, 2.0 * (f64::from(runs) - 1.0), level)
        };
        suite || (smallest_p(runs) <= level && self.tests.iter().any(of_test))
    }
}

fn smallest_p(runs: u32) -> f64 {
    effect::smallest_p(runs as usize, runs as usize)
}

fn is_significant(difference: f64, error: f64, freedom: f64, level: f64) -> bool {
    error == 0.0 || student_t_two_sided((difference.abs() / error - POWER).max(0.0), freedom) <= level
}
