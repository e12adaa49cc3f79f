//! Combinations of checks, in three-valued logic: pass, fail, not evaluated.

use proctor_core::json::Json;

use super::evidence::Evidence;
use super::result::{CheckError, CheckResult, mean_score};
use super::{Answer, Check, leaf};

/// A condition of a composite.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// A check.
    Leaf {
        /// Type of the assertion.
        name: &'static str,
        /// The check; never a composite.
        check: Check,
    },
    /// Every condition holds.
    And(Vec<Condition>),
    /// At least one condition holds.
    Or(Vec<Condition>),
    /// The condition does not hold.
    Not(Box<Condition>),
    /// The score of the condition compares to a value.
    Threshold {
        /// The value.
        value: f64,
        /// The comparison.
        comparator: Comparator,
        /// The condition.
        condition: Box<Condition>,
    },
}

/// Comparisons of a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparator {
    /// `>`
    Above,
    /// `>=`
    AtLeast,
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
}

impl Comparator {
    /// The signs in suites.
    pub const SIGNS: [&'static str; 6] = [">", ">=", "<", "<=", "==", "!="];

    /// The comparison of this sign.
    pub fn named(sign: &str) -> Option<Comparator> {
        Some(match sign {
            ">" => Comparator::Above,
            ">=" => Comparator::AtLeast,
            "<" => Comparator::Below,
            "<=" => Comparator::AtMost,
            "==" => Comparator::Equal,
            "!=" => Comparator::NotEqual,
            _ => return None,
        })
    }

    /// The answer for every score from `low` to `high`, if it is the same for all of them.
    fn holds(self, low: f64, high: f64, value: f64) -> Option<bool> {
        /// Scores are means of a few numbers; this is far below any difference between them.
        const EQUAL: f64 = 1e-9;
        let agree = |low: bool, high: bool| (low == high).then_some(low);
        let equal = if value < low - EQUAL || value > high + EQUAL {
            Some(false)
        } else {
            (high - low <= EQUAL).then_some(true)
        };
        match self {
            Comparator::Above => agree(low > value + EQUAL, high > value + EQUAL),
            Comparator::AtLeast => agree(low >= value - EQUAL, high >= value - EQUAL),
            Comparator::Below => agree(low < value - EQUAL, high < value - EQUAL),
            Comparator::AtMost => agree(low <= value + EQUAL, high <= value + EQUAL),
            Comparator::Equal => equal,
            Comparator::NotEqual => equal.map(|equal| !equal),
        }
    }
}

/// The checks below a check that are no composites, in order: their positions number the needs.
pub(super) fn leaves(check: &Check) -> Vec<&Check> {
    let Check::Composite(condition) = check else { return vec![check] };
    let mut found = Vec::new();
    collect(condition, &mut found);
    found
}

/// Recursion is bounded: the loader bounds the depth of conditions.
fn collect<'c>(condition: &'c Condition, found: &mut Vec<&'c Check>) {
    match condition {
        Condition::Leaf { check, .. } => found.push(check),
        Condition::And(conditions) | Condition::Or(conditions) => {
            for condition in conditions {
                collect(condition, found);
            }
        }
        Condition::Not(condition) | Condition::Threshold { condition, .. } => collect(condition, found),
    }
}

pub(super) fn evaluate(
    condition: &Condition,
    evidence: &Evidence<'_>,
    answers: &[Answer],
) -> Result<Vec<CheckResult>, CheckError> {
    let mut walk = Walk { evidence, answers, next: 0, leaves: Vec::new(), errors: Vec::new() };
    let judged = walk.judge(condition);
    let Some(passed) = judged.holds else {
        return Err(CheckError::Indeterminate(walk.errors.join("; ")));
    };
    let score = match judged.point() {
        Some(score) => score,
        None if passed => 1.0,
        None => 0.0,
    };
    let message = if passed { "the conditions hold" } else { "the conditions do not hold" };
    let message = match walk.errors.as_slice() {
        [] => message.to_owned(),
        errors => format!("{message}, whatever could not be evaluated: {}", errors.join("; ")),
    };
    let details = Json::object().with("conditions", walk.leaves);
    Ok(vec![CheckResult { name: "composite".to_owned(), passed, score, message, details }])
}

/// A judged condition: its truth if known, and the interval of its score.
struct Judged {
    holds: Option<bool>,
    low: f64,
    high: f64,
}

impl Judged {
    fn point(&self) -> Option<f64> {
        (self.high - self.low <= f64::EPSILON).then_some(self.low)
    }
}

struct Walk<'w> {
    evidence: &'w Evidence<'w>,
    answers: &'w [Answer],
    next: usize,
    leaves: Vec<Json>,
    errors: Vec<String>,
}

impl Walk<'_> {
    fn judge(&mut self, condition: &Condition) -> Judged {
        match condition {
            Condition::Leaf { name, check } => self.leaf(name, check),
            Condition::And(conditions) => {
                let parts: Vec<Judged> = conditions.iter().map(|part| self.judge(part)).collect();
                if parts.is_empty() {
                    return Judged { holds: Some(true), low: 1.0, high: 1.0 };
                }
                let holds = if parts.iter().any(|part| part.holds == Some(false)) {
                    Some(false)
                } else {
                    parts.iter().all(|part| part.holds == Some(true)).then_some(true)
                };
                let count = parts.len() as f64;
                Judged {
                    holds,
                    low: parts.iter().map(|part| part.low).sum::<f64>() / count,
                    high: parts.iter().map(|part| part.high).sum::<f64>() / count,
                }
            }
            Condition::Or(conditions) => {
                let parts: Vec<Judged> = conditions.iter().map(|part| self.judge(part)).collect();
                let holds = if parts.iter().any(|part| part.holds == Some(true)) {
                    Some(true)
                } else {
                    parts.iter().all(|part| part.holds == Some(false)).then_some(false)
                };
                Judged {
                    holds,
                    low: parts.iter().map(|part| part.low).fold(0.0, f64::max),
                    high: parts.iter().map(|part| part.high).fold(0.0, f64::max),
                }
            }
            Condition::Not(condition) => {
                let inner = self.judge(condition);
                Judged {
                    holds: inner.holds.map(|holds| !holds),
                    low: 1.0 - inner.high,
                    high: 1.0 - inner.low,
                }
            }
            Condition::Threshold { value, comparator, condition } => {
                let inner = self.judge(condition);
                match comparator.holds(inner.low, inner.high, *value) {
                    Some(true) => Judged { holds: Some(true), low: 1.0, high: 1.0 },
                    Some(false) => Judged { holds: Some(false), low: 0.0, high: 0.0 },
                    None => Judged { holds: None, low: 0.0, high: 1.0 },
                }
            }
        }
    }

    fn leaf(&mut self, name: &str, check: &Check) -> Judged {
        let number = self.next;
        self.next += 1;
        let entry = Json::object().with("type", name);
        match leaf(check, self.evidence, self.answers, number) {
            Ok(checks) => {
                let passed = checks.iter().all(|check| check.passed);
                let score = mean_score(&checks);
                let said: Vec<&str> = checks.iter().map(|check| check.message.as_str()).collect();
                self.leaves.push(entry.with("passed", passed).with("message", said.join("; ")));
                Judged { holds: Some(passed), low: score, high: score }
            }
            Err(error) => {
                self.errors.push(format!("`{name}`: {error}"));
                self.leaves.push(entry.with("passed", Json::Null).with("message", error.to_string()));
                Judged { holds: None, low: 0.0, high: 1.0 }
            }
        }
    }
}
