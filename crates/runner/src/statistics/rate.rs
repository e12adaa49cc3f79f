//! Success rates of repeated runs.

use serde::Serialize;

use super::distribution::beta_quantile;
use super::summary::{CONFIDENCE, Interval};

/// Most runs that a rate is computed of: the work for an exact interval grows with them, and no suite has as many.
const MOST_RUNS: u32 = 1_000_000;

/// Share of successful runs, with its exact interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SuccessRate {
    /// Successful runs.
    pub successes: u32,
    /// All runs.
    pub runs: u32,
    /// Successes over runs.
    pub rate: f64,
    /// Exact (Clopper–Pearson) 95 % interval.
    pub interval: Interval,
    /// Whether both outcomes were seen.
    pub flaky: bool,
}

impl SuccessRate {
    /// The rate of these counts; `None` without a run, or with more than a million of them.
    pub fn new(successes: u32, failures: u32) -> Option<SuccessRate> {
        let runs = successes.checked_add(failures).filter(|runs| (1..=MOST_RUNS).contains(runs))?;
        let (hits, misses) = (f64::from(successes), f64::from(failures));
        let tail = (1.0 - CONFIDENCE) / 2.0;
        let low = if successes == 0 { 0.0 } else { beta_quantile(tail, hits, misses + 1.0) };
        let high = if failures == 0 { 1.0 } else { beta_quantile(1.0 - tail, hits + 1.0, misses) };
        Some(SuccessRate {
            successes,
            runs,
            rate: hits / f64::from(runs),
            interval: Interval { low, high },
            flaky: successes > 0 && failures > 0,
        })
    }

    /// `pass@k` of these runs, see [`pass_any`].
    pub fn pass_any(&self, k: u32) -> Option<f64> {
        pass_any(self.successes, self.runs, k)
    }

    /// `pass^k` of these runs, see [`pass_all`].
    pub fn pass_all(&self, k: u32) -> Option<f64> {
        pass_all(self.successes, self.runs, k)
    }
}

/// `pass@k`: unbiased estimate of the probability that at least one of `k` runs succeeds, 1 − C(n − c, k) / C(n, k). `None` unless
/// 1 ≤ k ≤ runs and successes ≤ runs.
pub fn pass_any(successes: u32, runs: u32, k: u32) -> Option<f64> {
    let failures = runs.checked_sub(successes)?;
    pass_all(failures, runs, k).map(|all_fail| 1.0 - all_fail)
}

/// `pass^k`: unbiased estimate of the probability that all of `k` runs succeed, C(c, k) / C(n, k). `None` unless 1 ≤ k ≤ runs and
/// successes ≤ runs.
pub fn pass_all(successes: u32, runs: u32, k: u32) -> Option<f64> {
    if k == 0 || k > runs || successes > runs {
        return None;
    }
    if k > successes {
        return Some(0.0);
    }
    // C(c, k) / C(n, k) is a product over k, and by symmetry over n − c: the shorter one bounds the work and the rounding.
    let failures = runs - successes;
    let mut ratio = 1.0;
    for i in 0..k.min(failures) {
        ratio *= if k <= failures {
            f64::from(successes - i) / f64::from(runs - i)
        } else {
            f64::from(runs - k - i) / f64::from(runs - i)
        };
        if ratio == 0.0 {
            break;
        }
    }
    Some(ratio)
}

#[cfg(test)]
mod tests;
