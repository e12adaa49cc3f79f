//! Comparison of two results of a suite: effects for each test and for the suite, corrected together, and what follows from them.
//!
//! Hypotheses: for each test that both results have, Welch's test on score, cost and latency and Fisher's exact test on success; for the
//! suite, a paired permutation test over the tests' mean differences of each quantity. All p values are corrected together by Holm's
//! method at [`SIGNIFICANCE`].
//!
//! Two rules keep few runs from showing what they cannot. The p of Welch's test counts as at least the smallest p that a permutation of
//! the same runs could have, because scores of agents are not normal: with two values, success and failure, a small sample is often
//! constant. And runs that could not be significant whatever they say, corrected or not, are no hypothesis: their verdict is
//! [`Verdict::NotEnoughRuns`], and they take no significance from the others.

mod effect;
mod input;
mod plan;
mod regression;
mod suite;

use serde::Serialize;

pub use effect::{Effect, Quantity, Verdict};
pub use input::TestRuns;
pub use regression::{DEFAULT_MARGIN, InvalidMargin, Regression, Rule};
pub use suite::SuiteEffect;

use super::holm::holm;
use input::Joined;

/// Probability of a false alarm in a comparison of equal agents, over all hypotheses together.
pub const SIGNIFICANCE: f64 = 0.05;

/// Comparison of one test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TestComparison {
    /// Name of the test.
    pub name: String,
    /// Verdict on score and success: worse if one of them is, else better if one of them is. Cost and latency have verdicts of their own
    /// among the effects.
    pub verdict: Verdict,
    /// Effect for each quantity that both results have.
    pub effects: Vec<Effect>,
}

/// Comparison of two results of a suite.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The tests, in the order of the later result, then those that only the earlier one has.
    pub tests: Vec<TestComparison>,
    /// Verdict on the suite's score and success.
    pub verdict: Verdict,
    /// Effect over all tests, for each quantity that both results have.
    pub suite: Vec<SuiteEffect>,
    /// Number of p values that were corrected together.
    pub hypotheses: usize,
    /// Decision about a regression.
    pub regression: Regression,
}

impl Comparison {
    /// Compares the later result with the earlier one. Tests are matched by name; entries of the same name are pooled.
    pub fn new(before: &[TestRuns], after: &[TestRuns], rule: &Rule) -> Comparison {
        let joined = Joined::new(before, after);
        let mut tests: Vec<TestComparison> = joined
            .tests()
            .map(|(name, sides)| TestComparison {
                name: name.to_owned(),
                verdict: match sides {
                    (None, Some(_)) => Verdict::New,
                    (Some(_), None) => Verdict::Removed,
                    _ => Verdict::NotEnoughRuns,
                },
                effects: match sides {
                    (Some(before), Some(after)) => Effect::of(before, after),
                    _ => Vec::new(),
                },
            })
            .collect();
        let mut suite = SuiteEffect::of(&joined);

        let in_tests =
            tests.iter().flat_map(|test| &test.effects).filter(|effect| effect.is_testable()).count();
        let hypotheses = in_tests + suite.iter().filter(|effect| effect.is_testable()).count();
        for effect in suite.iter_mut().filter(|effect| effect.is_testable()) {
            effect.test(&joined, hypotheses, rule.seed());
        }
        correct(&mut tests, &mut suite, hypotheses);

        let verdict = Verdict::of_quality(suite.iter().map(|effect| (effect.quantity, effect.verdict)));
        let regression = regression::decide(&joined, &tests, &suite, rule);
        Comparison { tests, verdict, suite, hypotheses, regression }
    }
}

/// Corrects the p values of all hypotheses together and gives every effect its verdict.
fn correct(tests: &mut [TestComparison], suite: &mut [SuiteEffect], hypotheses: usize) {
    let testable = tests.iter().flat_map(|test| &test.effects).filter(|effect| effect.is_testable());
    let of_suite = suite.iter().filter(|effect| effect.is_testable());
    let values: Vec<f64> = testable
        .map(|effect| effect.p)
        .chain(of_suite.map(|effect| effect.permutation.map(|permutation| permutation.p)))
        .map(|p| p.unwrap_or(1.0))
        .collect();
    let mut adjusted = holm(&values).into_iter();
    for test in tests.iter_mut().filter(|test| !matches!(test.verdict, Verdict::New | Verdict::Removed)) {
        for effect in &mut test.effects {
            effect.adjusted_p = effect.is_testable().then(|| adjusted.next()).flatten();
            effect.verdict = Verdict::decide(
                effect.quantity,
                effect.difference,
                effect.adjusted_p,
                effect.smallest_p(),
                hypotheses,
            );
        }
        test.verdict =
            Verdict::of_quality(test.effects.iter().map(|effect| (effect.quantity, effect.verdict)));
    }
    for effect in suite {
        effect.adjusted_p = effect.is_testable().then(|| adjusted.next()).flatten();
        effect.verdict = Verdict::decide(
            effect.quantity,
            effect.difference,
            effect.adjusted_p,
            effect.smallest_p(),
            hypotheses,
        );
    }
}

#[cfg(test)]
mod tests;
