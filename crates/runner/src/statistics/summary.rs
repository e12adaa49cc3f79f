//! Summary of a sample.

use serde::Serialize;

use super::distribution::student_t_quantile;
use super::sample::{Moments, is_usable};

/// Probability with which an interval contains the true value.
pub const CONFIDENCE: f64 = 0.95;

/// Two-sided confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// The interval of an estimate with a standard error, by Student's distribution.
    pub(crate) fn around(estimate: f64, error: f64, freedom: f64) -> Interval {
        // Without deviation the distribution does not matter, and its degrees of freedom may be undefined.
        let reach = if error > 0.0 {
            student_t_quantile(f64::midpoint(1.0, CONFIDENCE), freedom) * error
        } else {
            0.0
        };
        Interval { low: estimate - reach, high: estimate + reach }
    }

    /// Whether a value lies in the interval.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// Class of spread, by the coefficient of variation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stability {
    /// Coefficient of variation below 0.05.
    Stable,
    /// Below 0.15.
    Moderate,
    /// Below 0.30.
    Unstable,
    /// 0.30 or more, or undefined because the mean is 0 and the values differ.
    Critical,
}

impl Stability {
    /// The word for it in reports.
    pub fn word(self) -> &'static str {
        match self {
            Stability::Stable => "stable",
            Stability::Moderate => "moderate",
            Stability::Unstable => "unstable",
            Stability::Critical => "critical",
        }
    }

    /// The class of a coefficient of variation; `None` is an undefined one.
    fn of(variation: Option<f64>) -> Stability {
        match variation {
            Some(variation) if variation < 0.05 => Stability::Stable,
            Some(variation) if variation < 0.15 => Stability::Moderate,
            Some(variation) if variation < 0.30 => Stability::Unstable,
            _ => Stability::Critical,
        }
    }
}

/// Location and spread of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// Number of values that count.
    pub n: usize,
    /// Number of values that were left out: not finite, or larger than [`MAGNITUDE`](super::MAGNITUDE).
    pub ignored: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation (n − 1); `None` with one value, whose spread is unknown.
    pub deviation: Option<f64>,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Median; of an even number of values the mean of the middle two.
    pub median: f64,
    /// Coefficient of variation: deviation over |mean|, and 0 without deviation. `None` with one value, or if the mean is 0 and the
    /// values differ.
    pub variation: Option<f64>,
    /// 95 % interval of the mean, by Student's distribution; `None` with one value.
    pub interval: Option<Interval>,
    /// Class of spread; `None` with one value.
    pub stability: Option<Stability>,
}

impl Summary {
    /// Summarises a sample; `None` if no value counts.
    pub fn of(values: &[f64]) -> Option<Summary> {
        let moments = Moments::of(values)?;
        let mut sorted: Vec<f64> = values.iter().copied().filter(|value| is_usable(*value)).collect();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let upper = *sorted.get(middle)?;
        let median = if sorted.len().is_multiple_of(2) {
            f64::midpoint(*sorted.get(middle.checked_sub(1)?)?, upper)
        } else {
            upper
        };
        let deviation = moments.variance().map(f64::sqrt);
        let variation = deviation.and_then(|deviation| match moments.mean.abs() {
            _ if deviation == 0.0 => Some(0.0),
            0.0 => None,
            size => Some(deviation / size),
        });
        Some(Summary {
            n: moments.n,
            ignored: values.len() - moments.n,
            mean: moments.mean,
            deviation,
            min: *sorted.first()?,
            max: *sorted.last()?,
            median,
            variation,
            interval: interval_of(&moments),
            stability: deviation.map(|_| Stability::of(variation)),
        })
    }
}

/// The 95 % interval of the mean of a sample, by Student's distribution; `None` with fewer than two values that count. Of paired
/// differences it is the interval of the mean difference.
pub fn mean_interval(values: &[f64]) -> Option<Interval> {
    interval_of(&Moments::of(values)?)
}

fn interval_of(moments: &Moments) -> Option<Interval> {
    let n = moments.n as f64;
    Some(Interval::around(moments.mean, (moments.variance()? / n).sqrt(), n - 1.0))
}

#[cfg(test)]
mod tests;
