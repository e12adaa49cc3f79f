//! Parsing of an assertion's spec.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Visitor};
use serde_json::value::RawValue;

use crate::raw;
use crate::verdict::Verdict;

/// Reads a spec into the members that a layer knows; others are ignored. `null` is an empty spec, an absent one is a mistake, and so
/// is a member that stands twice, however deep.
pub(crate) fn read<'a, T: Deserialize<'a>>(spec: Option<&'a RawValue>) -> Result<T, Verdict> {
    let Some(spec) = spec else { return Err(Verdict::error("the assertion has no `spec`")) };
    let text = if spec.get() == "null" { "{}" } else { spec.get() };
    // A list would be taken for the members in their order.
    if !text.starts_with('{') {
        return Err(Verdict::error("the spec is not an object"));
    }
    if let Some(twice) = raw::duplicate(text) {
        return Err(Verdict::error(format!("the spec {twice}")).suggest("remove one of them"));
    }
    serde_json::from_str(text).map_err(|error| Verdict::error(format!("the spec cannot be read: {error}")))
}

/// A mistake in a spec: a member that is needed is not there.
pub(crate) fn missing(member: &str, what_for: &str) -> Verdict {
    Verdict::error(format!("the spec has no `{member}`, which {what_for} needs"))
        .suggest(format!("add `{member}` to the spec"))
}

/// A mistake in a spec: a member is there that the check does not read, so that it would not do what was meant.
pub(crate) fn not_read(member: &str, check: &str, instead: &str) -> Verdict {
    Verdict::error(format!("`{check}` does not read `{member}`: give {instead}"))
        .suggest(format!("remove `{member}`, or use the member that `{check}` reads"))
}

/// A mistake in a spec: two members have the same meaning.
pub(crate) fn both(first: &str, second: &str, check: &str) -> Verdict {
    Verdict::error(format!("the spec has both `{first}` and `{second}` for `{check}`: give one of them"))
        .suggest(format!("remove `{first}` or `{second}`"))
}

/// A whole number; one that is written with a fraction of zero counts as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Whole(pub(crate) i64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Whole, D::Error> {
        struct WholeVisitor;

        impl Visitor<'_> for WholeVisitor {
            type Value = Whole;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a whole number")
            }

            fn visit_i64<E>(self, number: i64) -> Result<Whole, E> {
                Ok(Whole(number))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Whole, E> {
                Ok(Whole(i64::try_from(number).unwrap_or(i64::MAX)))
            }

            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Whole, E> {
                // Beyond 2^53 not every whole number is a float.
                if number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0 {
                    #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
                    return Ok(Whole(number as i64));
                }
                Err(E::invalid_value(serde::de::Unexpected::Float(number), &self))
            }
        }

        deserializer.deserialize_any(WholeVisitor)
    }
}

/// The first that is there: the usual name wins over its other names.
pub(crate) fn either<T>(usual: Option<T>, other: Option<T>) -> Option<T> {
    usual.or(other)
}
