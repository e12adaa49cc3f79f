//! Canonical JSON text `json-sort-v1` and the digests made from it.
//!
//! The form is that of a JavaScript program which rebuilds every object with sorted keys and then prints it: keys by UTF-16 code
//! unit, except that array indices come first in numeric order, as JavaScript objects enumerate them; numbers as doubles in
//! their shortest form.

use std::cmp::Ordering;

use proctor_core::digest::Digest;
use proctor_core::json::{Json, MAX_DEPTH};

/// Deepest nesting that has a canonical text: a parsed document inside structures of our own.
const DEEPEST: usize = MAX_DEPTH * 2;

/// A value without a canonical text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotCanonical {
    /// A number beyond the range of a double.
    #[error("number `{0}` is beyond the range of a double: write a smaller one, or a string")]
    NotFinite(String),
    /// Arrays and objects are nested too deeply.
    #[error("nested deeper than {DEEPEST} levels")]
    TooDeep,
}

/// The canonical text of a value.
pub fn text(value: &Json) -> Result<String, NotCanonical> {
    let mut out = String::new();
    write(value, 0, &mut out)?;
    Ok(out)
}

/// The digest of a value's canonical text: `sha256:` and 64 hexadecimal digits.
pub fn digest(value: &Json) -> Result<String, NotCanonical> {
    Ok(text_digest(&text(value)?))
}

/// The digest of a text: `sha256:` and 64 hexadecimal digits.
pub fn text_digest(text: &str) -> String {
    format!("sha256:{}", Digest::of(text.as_bytes()))
}

/// A number's literal as JavaScript prints it.
pub fn number(literal: &str) -> Result<String, NotCanonical> {
    let mut out = String::new();
    write_number(literal, &mut out)?;
    Ok(out)
}

fn write(value: &Json, depth: usize, out: &mut String) -> Result<(), NotCanonical> {
    if depth > DEEPEST {
        return Err(NotCanonical::TooDeep);
    }
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Json::Number(literal) => write_number(literal, out)?,
        Json::String(text) => proctor_core::canonical::string(text, out),
        Json::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, depth + 1, out)?;
            }
            out.push(']');
        }
        Json::Object(members) => {
            let mut sorted: Vec<_> =
                members.iter().map(|(name, member)| (array_index(name), name, member)).collect();
            sorted.sort_by(|left, right| order(left.0, left.1, right.0, right.1));
            out.push('{');
            for (index, (_, name, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                proctor_core::canonical::string(name, out);
                out.push(':');
                write(member, depth + 1, out)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

fn order(left_index: Option<u32>, left: &str, right_index: Option<u32>, right: &str) -> Ordering {
    match (left_index, right_index) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => left.encode_utf16().cmp(right.encode_utf16()),
    }
}

/// The array index that a key spells in its one decimal form: 0 to 2³² − 2.
fn array_index(key: &str) -> Option<u32> {
    let first = *key.as_bytes().first()?;
    if !first.is_ascii_digit() || (first == b'0' && key.len() > 1) {
        return None;
    }
    if !key.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    key.parse::<u32>().ok().filter(|index| *index < u32::MAX)
}

fn write_number(literal: &str, out: &mut String) -> Result<(), NotCanonical> {
    // Short integers in their one spelling are by far the most common numbers.
    if literal.len() <= 15 && array_index(literal).is_some() {
        out.push_str(literal);
        return Ok(());
    }
    let value = literal
        .parse::<f64>()
        .ok()
        .filter(|value| value.is_finite())
        .ok_or_else(|| NotCanonical::NotFinite(literal.chars().take(40).collect()))?;
    write_double(value, out);
    Ok(())
}

/// ECMAScript's `Number::toString` for a finite double.
fn write_double(value: f64, out: &mut String) {
    if value == 0.0 {
        // Negative zero prints as zero.
        out.push('0');
        return;
    }
    // Rust prints the shortest digits that read back as the same double, as ECMAScript demands: `d.ddde±x`.
    let scientific = format!("{:e}", value.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific.as_str(), "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let exponent: i32 = exponent.parse().unwrap_or_default();
    // `point` is the position of the decimal point, counted from the first digit.
    let (point, count) = (exponent + 1, i32::try_from(digits.len()).unwrap_or(i32::MAX));
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or_default());
    if value < 0.0 {
        out.push('-');
    }
    if count <= point && point <= 21 {
        out.push_str(&digits);
        out.push_str(&zeros(point - count));
    } else if 0 < point && point <= 21 {
        let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or_default());
        out.push_str(&format!("{whole}.{fraction}"));
    } else if -6 < point && point <= 0 {
        out.push_str(&format!("0.{}{digits}", zeros(-point)));
    } else {
        let (first, rest) = digits.split_at(1);
        out.push_str(first);
        if !rest.is_empty() {
            out.push_str(&format!(".{rest}"));
        }
        out.push_str(&format!("e{}{}", if exponent < 0 { '-' } else { '+' }, exponent.abs()));
    }
}

#[cfg(test)]
mod tests;
