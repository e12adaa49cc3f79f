//! Effect of a change on one test, and verdicts.

use serde::Serialize;

use super::SIGNIFICANCE;
use super::input::TestRuns;
use crate::statistics::distribution::choose;
use crate::statistics::fisher::fisher_exact;
use crate::statistics::rate::SuccessRate;
use crate::statistics::sample::Moments;
use crate::statistics::welch::{Welch, hedges_g, welch};

/// Compared quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Score in points; more is better.
    Score,
    /// Success rate; more is better.
    Success,
    /// Cost; less is better.
    Cost,
    /// Duration; less is better.
    Latency,
}

impl Quantity {
    /// All quantities.
    pub const ALL: [Quantity; 4] = [Quantity::Score, Quantity::Success, Quantity::Cost, Quantity::Latency];

    /// Whether the quantity decides about a regression. Cost and latency do not: they follow prices and the load of a machine too.
    pub fn is_quality(self) -> bool {
        matches!(self, Quantity::Score | Quantity::Success)
    }

    fn more_is_better(self) -> bool {
        matches!(self, Quantity::Score | Quantity::Success)
    }
}

/// Conclusion of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Improvement shown.
    Better,
    /// Loss shown.
    Worse,
    /// No difference shown, although these runs could have shown one.
    NoDifference,
    /// Undecided: whatever these runs say, they could not show a difference.
    NotEnoughRuns,
    /// Only the later result has the test.
    New,
    /// Only the earlier result has the test.
    Removed,
}

impl Verdict {
    /// The verdict of an effect among so many hypotheses.
    pub(super) fn decide(
        quantity: Quantity,
        difference: f64,
        adjusted_p: Option<f64>,
        smallest_p: f64,
        hypotheses: usize,
    ) -> Verdict {
        match adjusted_p {
            Some(p) if p <= SIGNIFICANCE && difference != 0.0 => {
                if (difference > 0.0) == quantity.more_is_better() { Verdict::Better } else { Verdict::Worse }
            }
            Some(_) if smallest_p * hypotheses as f64 <= SIGNIFICANCE => Verdict::NoDifference,
            _ => Verdict::NotEnoughRuns,
        }
    }

    /// The verdict on score and success together: a loss of one outweighs a gain of the other.
    pub(super) fn of_quality(effects: impl Iterator<Item = (Quantity, Verdict)>) -> Verdict {
        let rank = |verdict: &Verdict| match verdict {
            Verdict::Worse => 3,
            Verdict::Better => 2,
            Verdict::NoDifference => 1,
            Verdict::NotEnoughRuns | Verdict::New | Verdict::Removed => 0,
        };
        effects
            .filter(|(quantity, _)| quantity.is_quality())
            .map(|(_, verdict)| verdict)
            .max_by_key(rank)
            .unwrap_or(Verdict::NotEnoughRuns)
    }
}

/// Difference of one quantity of one test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Effect {
    /// Compared quantity.
    pub quantity: Quantity,
    /// Values that count in the earlier result.
    pub runs_before: usize,
    /// Values that count in the later result.
    pub runs_after: usize,
    /// Later mean minus earlier mean; of success, of the rates.
    pub difference: f64,
    /// Welch's test; `None` for success, and with fewer than two values on a side.
    pub welch: Option<Welch>,
    /// Hedges' g; `None` where [`hedges_g`] is.
    pub hedges_g: Option<f64>,
    /// The p value that is corrected: of Fisher's test, or of Welch's test and at least the smallest p of a permutation of the runs.
    pub p: Option<f64>,
    /// The p value after Holm's correction; `None` if the runs are too few for a hypothesis.
    pub adjusted_p: Option<f64>,
    /// Conclusion.
    pub verdict: Verdict,
}

impl Effect {
    /// Effects on a test, for each quantity that both sides have.
    pub(super) fn of(before: &TestRuns, after: &TestRuns) -> Vec<Effect> {
        Quantity::ALL.into_iter().filter_map(|quantity| Effect::new(quantity, before, after)).collect()
    }

    fn new(quantity: Quantity, before: &TestRuns, after: &TestRuns) -> Option<Effect> {
        let effect = Effect {
            quantity,
            runs_before: 0,
            runs_after: 0,
            difference: 0.0,
            welch: None,
            hedges_g: None,
            p: None,
            adjusted_p: None,
            verdict: Verdict::NotEnoughRuns,
        };
        let (Some(sample_before), Some(sample_after)) = (before.sample(quantity), after.sample(quantity))
        else {
            let rate_before = SuccessRate::new(before.successes, before.failures)?;
            let rate_after = SuccessRate::new(after.successes, after.failures)?;
            return Some(Effect {
                runs_before: rate_before.runs as usize,
                runs_after: rate_after.runs as usize,
                difference: rate_after.rate - rate_before.rate,
                p: Some(fisher_exact((after.successes, after.failures), (before.successes, before.failures))),
                ..effect
            });
        };
        let (moments_before, moments_after) = (Moments::of(sample_before)?, Moments::of(sample_after)?);
        let test = welch(sample_after, sample_before);
        let smallest = smallest_p(moments_before.n, moments_after.n);
        Some(Effect {
            runs_before: moments_before.n,
            runs_after: moments_after.n,
            difference: moments_after.mean - moments_before.mean,
            welch: test,
            hedges_g: hedges_g(sample_after, sample_before),
            p: test.map(|test| test.p.max(smallest)),
            ..effect
        })
    }

    /// Whether the runs could be significant at all.
    pub(super) fn is_testable(&self) -> bool {
        self.p.is_some() && self.smallest_p() <= SIGNIFICANCE
    }

    pub(super) fn smallest_p(&self) -> f64 {
        smallest_p(self.runs_before, self.runs_after)
    }
}

/// Smallest two-sided p that a permutation of so many runs can have: one assignment of the runs to the two sides, and its mirror image if
/// the sides are equally large. It is also the smallest p of Fisher's test.
pub(super) fn smallest_p(before: usize, after: usize) -> f64 {
    let extremes: f64 = if before == after { 2.0 } else { 1.0 };
    (extremes / choose(before + after, before)).min(1.0)
}
