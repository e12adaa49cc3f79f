//! Welch's t test and Hedges' g: the difference of the means of two samples.

use serde::Serialize;

use super::distribution::{gamma_half_step, student_t_two_sided, student_t_upper};
use super::sample::Moments;
use super::summary::Interval;

/// Result of Welch's t test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Welch {
    /// Statistic: the difference over its standard error. Infinite (in JSON null) if both samples are constant and differ.
    pub t: f64,
    /// Degrees of freedom by Welch and Satterthwaite; n₁ + n₂ − 2 if both samples are constant.
    pub freedom: f64,
    /// Two-sided p.
    pub p: f64,
    /// One-sided p of the alternative that `after` has the smaller mean.
    pub p_less: f64,
    /// One-sided p of the alternative that `after` has the larger mean.
    pub p_greater: f64,
    /// 95 % interval of the difference of the means.
    pub interval: Interval,
}

/// Welch's t test on the difference of means, `after` minus `before`. `None` if a sample has fewer than two values that count.
///
/// Constant samples have no standard error: equal ones get t = 0 and p = 1, different ones an infinite t and p = 0. Such a p says
/// nothing about the few runs that it comes from, so that [`Comparison`](super::Comparison) does not use it as it is.
pub fn welch(after: &[f64], before: &[f64]) -> Option<Welch> {
    let (after, before) = (Moments::of(after)?, Moments::of(before)?);
    let difference = after.mean - before.mean;
    let (n_after, n_before) = (after.n as f64, before.n as f64);
    // Squared standard errors of the two means.
    let (error_after, error_before) = (after.variance()? / n_after, before.variance()? / n_before);
    let error = error_after + error_before;
    let (t, freedom) = if error > 0.0 {
        // Shares instead of squares of tiny errors, which would underflow.
        let (share_after, share_before) = (error_after / error, error_before / error);
        let spread = share_after.powi(2) / (n_after - 1.0) + share_before.powi(2) / (n_before - 1.0);
        (difference / error.sqrt(), 1.0 / spread)
    } else {
        let t = if difference == 0.0 { 0.0 } else { f64::INFINITY.copysign(difference) };
        (t, n_after + n_before - 2.0)
    };
    Some(Welch {
        t,
        freedom,
        p: student_t_two_sided(t, freedom),
        p_less: student_t_upper(-t, freedom),
        p_greater: student_t_upper(t, freedom),
        interval: Interval::around(difference, error.sqrt(), freedom),
    })
}

/// Hedges' g: the difference of means, `after` minus `before`, in pooled standard deviations, with the exact correction for small
/// samples. `None` if a sample has fewer than two values that count, or both are constant and differ.
pub fn hedges_g(after: &[f64], before: &[f64]) -> Option<f64> {
    let (after, before) = (Moments::of(after)?, Moments::of(before)?);
    if after.n < 2 || before.n < 2 {
        return None;
    }
    let difference = after.mean - before.mean;
    let freedom = (after.n + before.n - 2) as f64;
    let deviation = ((after.squares() + before.squares()) / freedom).sqrt();
    if deviation == 0.0 {
        return (difference == 0.0).then_some(0.0);
    }
    let correction = gamma_half_step(freedom / 2.0) / (freedom / 2.0).sqrt();
    Some(correction * difference / deviation)
}

#[cfg(test)]
mod tests;
