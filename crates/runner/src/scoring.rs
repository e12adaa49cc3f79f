//! Scores of runs, and verdicts of runs and tests.
//!
//! A score is `100 · (wq·Q + wc·C + we·E + wk·K)` for quality, completeness, efficiency and cost, rounded to two decimals.
//!
//! ```
//! use proctor_runner::scoring::{Limits, Measures, Weights, score};
//!
//! let measures = Measures { steps: Some(3), tokens: Some(1000), cost_usd: None };
//! let limits = Limits { max_steps: Some(8), max_tokens: Some(4000), budget_usd: None };
//! let score = score(&[], &Weights::default(), &measures, &limits);
//! assert_eq!(score.efficiency.normalized, 1.0 - 2.0 / 7.0);
//! ```

use proctor_core::json::Json;

use crate::checks::{AssertionResult, Status};

/// Steps of a perfect run.
const OPTIMAL_STEPS: u64 = 1;

/// Tokens below which a run without a limit counts as cheap.
const CHEAP_TOKENS: u64 = 1000;

/// Distance from 1 that the sum of weights may have.
pub const WEIGHT_TOLERANCE: f64 = 0.001;

/// Weights of the parts of a score. Their sum is 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// Of quality.
    pub quality: f64,
    /// Of completeness.
    pub completeness: f64,
    /// Of efficiency.
    pub efficiency: f64,
    /// Of cost.
    pub cost: f64,
}

impl Default for Weights {
    fn default() -> Weights {
        Weights { quality: 0.4, completeness: 0.3, efficiency: 0.2, cost: 0.1 }
    }
}

impl Weights {
    /// Sum of the weights.
    pub fn sum(&self) -> f64 {
        self.quality + self.completeness + self.efficiency + self.cost
    }
}

/// Measured amounts of a run; `None` if the agent did not report them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Measures {
    /// Steps.
    pub steps: Option<u64>,
    /// Tokens.
    pub tokens: Option<u64>,
    /// Cost.
    pub cost_usd: Option<f64>,
}

/// Limits that a test sets; `None` if it sets none.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits {
    /// Most steps.
    pub max_steps: Option<u64>,
    /// Most tokens.
    pub max_tokens: Option<u64>,
    /// Highest cost.
    pub budget_usd: Option<f64>,
}

/// A part of a score.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// From 0 to 1.
    pub normalized: f64,
    /// The weight.
    pub weight: f64,
    /// The numbers behind it.
    pub details: Json,
}

/// Score of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// From 0 to 100, rounded to two decimals; 0 if a critical assertion did not pass.
    pub points: f64,
    /// Mean of the checks' scores.
    pub quality: Part,
    /// Share of passed checks.
    pub completeness: Part,
    /// Steps against their limit.
    pub efficiency: Part,
    /// Cost or tokens against their limit.
    pub cost: Part,
    /// Assertions that do not hold.
    pub failures: usize,
    /// Assertions that could not be evaluated and are not optional.
    pub errors: usize,
    /// Optional assertions that could not be evaluated: left out of everything else.
    pub left_out: usize,
    /// Names of the critical assertions that did not pass.
    pub critical: Vec<String>,
}

/// Scores a run. An assertion that could not be evaluated counts with 0 points, unless it is optional.
pub fn score(results: &[AssertionResult], weights: &Weights, measures: &Measures, limits: &Limits) -> Score {
    let is_left_out = |result: &&AssertionResult| result.status == Status::Error && result.optional;
    let counted: Vec<&AssertionResult> = results.iter().filter(|result| !is_left_out(result)).collect();
    let count = |status| counted.iter().filter(|result| result.status == status).count();
    let critical: Vec<String> = counted
        .iter()
        .filter(|result| result.critical && result.status != Status::Passed)
        .map(|result| result.name.clone())
        .collect();
    let quality = quality(&counted, weights.quality);
    let completeness = completeness(&counted, weights.completeness);
    let efficiency = efficiency(measures, limits, weights.efficiency);
    let cost = cost(measures, limits, weights.cost);
    let weighted: f64 =
        [&quality, &completeness, &efficiency, &cost].iter().map(|part| part.normalized * part.weight).sum();
    // Weights may exceed 1 by the tolerance; a score never does.
    let points =
        if critical.is_empty() { (10_000.0 * weighted.clamp(0.0, 1.0)).round() / 100.0 } else { 0.0 };
    Score {
        points,
        quality,
        completeness,
        efficiency,
        cost,
        failures: count(Status::Failed),
        errors: count(Status::Error),
        left_out: results.len() - counted.len(),
        critical,
    }
}

impl Score {
    /// Whether every assertion that counts holds.
    pub fn passed(&self) -> bool {
        self.failures == 0 && self.errors == 0
    }

    /// The score for reports: `final_score` and `components`.
    pub fn to_json(&self) -> Json {
        let mut components = Json::object();
        for (name, part) in [
            ("quality", &self.quality),
            ("completeness", &self.completeness),
            ("efficiency", &self.efficiency),
            ("cost", &self.cost),
        ] {
            components.push(
                name,
                Json::object()
                    .with("normalized", number(part.normalized))
                    .with("weight", number(part.weight))
                    .with("weighted", number(part.normalized * part.weight))
                    .with("details", part.details.clone()),
            );
        }
        Json::object().with("final_score", number(self.points)).with("components", components)
    }
}

fn quality(results: &[&AssertionResult], weight: f64) -> Part {
    let scores: Vec<f64> =
        results.iter().flat_map(|result| &result.checks).map(|check| unit(check.score)).collect();
    let mean = if scores.is_empty() { 0.0 } else { scores.iter().sum::<f64>() / scores.len() as f64 };
    Part { normalized: unit(mean), weight, details: Json::object().with("total_checks", scores.len()) }
}

fn completeness(results: &[&AssertionResult], weight: f64) -> Part {
    let checks = || results.iter().flat_map(|result| &result.checks);
    let (total, passed) = (checks().count(), checks().filter(|check| check.passed).count());
    let normalized = if total == 0 { 1.0 } else { passed as f64 / total as f64 };
    Part {
        normalized,
        weight,
        details: Json::object().with("passed_checks", passed).with("total_checks", total),
    }
}

fn efficiency(measures: &Measures, limits: &Limits, weight: f64) -> Part {
    let normalized = match (measures.steps, limits.max_steps) {
        (None, _) => 1.0,
        (Some(steps), _) if steps <= OPTIMAL_STEPS => 1.0,
        (Some(_), None) => 0.5,
        (Some(_), Some(max)) if max <= OPTIMAL_STEPS => 0.0,
        (Some(steps), Some(max)) => unit(1.0 - (steps - OPTIMAL_STEPS) as f64 / (max - OPTIMAL_STEPS) as f64),
    };
    let details = Json::object().with("steps", measures.steps).with("max_steps", limits.max_steps);
    Part { normalized, weight, details }
}

fn cost(measures: &Measures, limits: &Limits, weight: f64) -> Part {
    let finite = |value: Option<f64>| value.filter(|value| value.is_finite() && *value >= 0.0);
    let (normalized, method) = match (finite(measures.cost_usd), finite(limits.budget_usd), measures.tokens) {
        (Some(cost), Some(budget), _) if budget > 0.0 => (unit(1.0 - cost / budget), "budget"),
        (Some(cost), Some(_), _) => (if cost > 0.0 { 0.0 } else { 1.0 }, "budget"),
        (_, _, Some(tokens)) => match limits.max_tokens {
            Some(max) if max > 0 => (unit(1.0 - (1.0 + tokens as f64 / max as f64).log2()), "tokens"),
            _ => (if tokens < CHEAP_TOKENS { 1.0 } else { 0.5 }, "tokens without limit"),
        },
        _ => (1.0, "nothing reported"),
    };
    let details = Json::object()
        .with("cost_usd", measures.cost_usd.map(number))
        .with("budget_usd", limits.budget_usd.map(number))
        .with("tokens", measures.tokens)
        .with("max_tokens", limits.max_tokens)
        .with("method", method);
    Part { normalized, weight, details }
}

/// Clamps to 0 to 1; not-a-number becomes 0.
fn unit(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) }
}

fn number(value: f64) -> Json {
    if value.is_finite() { Json::Number(value.to_string().into()) } else { Json::Null }
}

/// The way in which a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// The agent said `completed`.
    Completed,
    /// The agent said `partial`.
    Partial,
    /// The agent said `failed`.
    Failed,
    /// The agent said `timeout`.
    Timeout,
    /// The agent said `cancelled`.
    Cancelled,
    /// A constraint was crossed, and the agent was stopped.
    Stopped,
    /// There is no usable response: a crash, silence, a foreign task id.
    Error,
}

/// Verdict on a run or a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Everything holds.
    Passed,
    /// Something does not hold.
    Failed,
    /// Nothing failed, but something could not be evaluated.
    Error,
}

/// The verdict on a run. An evaluation that is missing (`None`) is an error: nothing passes because it was not looked at.
pub fn run_verdict(ending: Ending, allow_partial: bool, score: Option<&Score>) -> Verdict {
    let ended_well = match ending {
        Ending::Completed => true,
        Ending::Partial => allow_partial,
        Ending::Error => return Verdict::Error,
        Ending::Failed | Ending::Timeout | Ending::Cancelled | Ending::Stopped => false,
    };
    match score {
        _ if !ended_well => Verdict::Failed,
        None => Verdict::Error,
        Some(score) if score.failures > 0 => Verdict::Failed,
        Some(score) if score.errors > 0 => Verdict::Error,
        Some(_) => Verdict::Passed,
    }
}

/// Whether so many of the runs reach the rate. Rates are written with a few decimals; 2 of 3 must reach 0.6667 as little as 0.66666 must
/// miss it.
fn reaches(passes: usize, runs: usize, pass_rate: f64) -> bool {
    const ROUNDING: f64 = 1e-9;
    passes as f64 / runs as f64 + ROUNDING >= pass_rate
}

/// Number of runs, of so many, that must pass for a test to pass.
///
/// ```
/// use proctor_runner::scoring::required_passes;
/// assert_eq!([required_passes(5, 0.7), required_passes(3, 1.0), required_passes(1, 0.1)], [4, 3, 1]);
/// ```
pub fn required_passes(runs: usize, pass_rate: f64) -> usize {
    (0..=runs).find(|passes| reaches(*passes, runs, pass_rate)).unwrap_or(runs)
}

/// The verdict on a test from its runs: passed if enough of them passed; an error if runs that ended in errors could have made the
/// difference, or if there are no runs.
pub fn test_verdict(runs: &[Verdict], pass_rate: f64) -> Verdict {
    if runs.is_empty() {
        return Verdict::Error;
    }
    let passed = runs.iter().filter(|verdict| **verdict == Verdict::Passed).count();
    let errors = runs.iter().filter(|verdict| **verdict == Verdict::Error).count();
    if reaches(passed, runs.len(), pass_rate) {
        Verdict::Passed
    } else if reaches(passed + errors, runs.len(), pass_rate) {
        Verdict::Error
    } else {
        Verdict::Failed
    }
}

#[cfg(test)]
mod tests;
