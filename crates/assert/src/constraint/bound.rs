//! Comparison operators and their bounds.

use std::cmp::Ordering;
use std::fmt;

use serde_json::value::RawValue;

use crate::spec;
use crate::verdict::{Verdict, cut};

/// A number as it was written. Whole numbers are compared exactly, others as floating point.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quantity {
    written: String,
    whole: Option<i128>,
    float: f64,
}

impl Quantity {
    /// Reads a JSON number.
    pub(crate) fn parse(json: &str) -> Option<Quantity> {
        let json = json.trim();
        let float = serde_json::from_str(json).ok()?;
        Some(Quantity { written: json.to_owned(), whole: json.parse().ok(), float })
    }

    /// Reads an operand of a spec.
    pub(crate) fn read(member: &str, raw: &RawValue) -> Result<Quantity, Verdict> {
        Quantity::parse(raw.get()).ok_or_else(|| {
            Verdict::error(format!("`{member}` is not a number: it is `{}`", cut(raw.get(), 80)))
                .suggest(format!("write `{member}` as a number"))
        })
    }

    fn compare(&self, other: &Quantity) -> Option<Ordering> {
        match (self.whole, other.whole) {
            (Some(this), Some(other)) => Some(this.cmp(&other)),
            _ => self.float.partial_cmp(&other.float),
        }
    }
}

impl From<f64> for Quantity {
    fn from(float: f64) -> Quantity {
        let written = float.to_string();
        Quantity { whole: written.parse().ok(), written, float }
    }
}

impl From<usize> for Quantity {
    fn from(count: usize) -> Quantity {
        #[expect(clippy::cast_precision_loss, reason = "compared exactly where it matters")]
        let float = count as f64;
        Quantity { written: count.to_string(), whole: i128::try_from(count).ok(), float }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LENGTH: usize = 80;
        formatter.write_str(&cut(&self.written, LENGTH))
    }
}

/// A bound on a number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Bound {
    /// Less than.
    Below(Quantity),
    /// Less than or equal.
    AtMost(Quantity),
    /// Greater than.
    Above(Quantity),
    /// Greater than or equal.
    AtLeast(Quantity),
    /// Exactly.
    Equal(Quantity),
    /// Unequal.
    NotEqual(Quantity),
    /// Closed range.
    Between(Quantity, Quantity),
}

impl Bound {
    /// The bound that an operator and its operands make. An operand that the operator does not use is a mistake: it would bound
    /// nothing.
    pub(crate) fn read(
        operator: &str,
        value: Option<Quantity>,
        min: Option<Quantity>,
        max: Option<Quantity>,
    ) -> Result<Bound, Verdict> {
        let make = match operator {
            "lt" | "<" => Bound::Below,
            "lte" | "<=" => Bound::AtMost,
            "gt" | ">" => Bound::Above,
            "gte" | ">=" => Bound::AtLeast,
            "eq" | "==" => Bound::Equal,
            "neq" | "!=" => Bound::NotEqual,
            "between" => {
                if value.is_some() {
                    return Err(spec::not_read("value", operator, "`min` and `max`"));
                }
                let min = min.ok_or_else(|| spec::missing("min", "`between`"))?;
                let max = max.ok_or_else(|| spec::missing("max", "`between`"))?;
                return Bound::range(min, max);
            }
            _ => return Err(unknown_operator(operator)),
        };
        for (member, given) in [("min", min.is_some()), ("max", max.is_some())] {
            if given {
                return Err(spec::not_read(member, operator, "`value`"));
            }
        }
        value.map(make).ok_or_else(|| spec::missing("value", &format!("`{operator}`")))
    }

    /// The closed range from `min` to `max`.
    pub(crate) fn range(min: Quantity, max: Quantity) -> Result<Bound, Verdict> {
        if min.compare(&max) == Some(Ordering::Greater) {
            return Err(Verdict::error(format!("`min` is {min} and `max` is {max}: no number lies between"))
                .suggest("exchange `min` and `max`"));
        }
        Ok(Bound::Between(min, max))
    }

    /// Whether a number is within it.
    pub(crate) fn holds(&self, number: &Quantity) -> bool {
        let than = |bound: &Quantity| number.compare(bound);
        match self {
            Bound::Below(bound) => than(bound).is_some_and(Ordering::is_lt),
            Bound::AtMost(bound) => than(bound).is_some_and(Ordering::is_le),
            Bound::Above(bound) => than(bound).is_some_and(Ordering::is_gt),
            Bound::AtLeast(bound) => than(bound).is_some_and(Ordering::is_ge),
            Bound::Equal(bound) => than(bound).is_some_and(Ordering::is_eq),
            Bound::NotEqual(bound) => than(bound).is_some_and(Ordering::is_ne),
            Bound::Between(min, max) => {
                than(min).is_some_and(Ordering::is_ge) && than(max).is_some_and(Ordering::is_le)
            }
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Below(bound) => write!(formatter, "less than {bound}"),
            Bound::AtMost(bound) => write!(formatter, "at most {bound}"),
            Bound::Above(bound) => write!(formatter, "more than {bound}"),
            Bound::AtLeast(bound) => write!(formatter, "at least {bound}"),
            Bound::Equal(bound) => write!(formatter, "exactly {bound}"),
            Bound::NotEqual(bound) => write!(formatter, "not {bound}"),
            Bound::Between(min, max) => write!(formatter, "from {min} to {max}"),
        }
    }
}

fn unknown_operator(operator: &str) -> Verdict {
    const OPERATORS: &str = "lt, lte, gt, gte, eq, neq, between";
    Verdict::error(format!("`{operator}` is not an operator"))
        .evidence(OPERATORS, operator)
        .suggest(format!("use one of: {OPERATORS}"))
}
