//! Spans of time as people write them: `24h`, `90m`, `1h30m`, `2 days`.

use std::fmt;

/// The longest span that a document may name: ten years. Adding it to any timestamp of this century cannot overflow.
pub const MAX_MICROS: u64 = 3660 * DAY;

const MILLISECOND: u64 = 1_000;
const SECOND: u64 = 1_000 * MILLISECOND;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;

/// A text that is not a duration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurationError {
    message: String,
}

impl fmt::Display for DurationError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for DurationError {}

/// Parses a positive duration, in microseconds.
///
/// ```
/// assert_eq!(proctor_policy::duration::parse_micros("1h30m"), Ok(5_400_000_000));
/// assert!(proctor_policy::duration::parse_micros("soon").is_err());
/// ```
pub fn parse_micros(text: &str) -> Result<u64, DurationError> {
    let fail = |message: &str| Err(DurationError { message: message.to_owned() });
    let mut rest = text.trim();
    if rest.is_empty() {
        return fail("a duration is missing; write one such as `24h`, `90m` or `1h30m`");
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (number, after) = split_while(rest, |character| character.is_ascii_digit());
        let (unit, after) = split_while(after.trim_start(), char::is_alphabetic);
        if number.is_empty() || unit.is_empty() {
            return fail("a duration is a number and a unit, such as `24h`, `90m` or `1h30m`");
        }
        let Some(size) = unit_micros(unit) else {
            return fail("the unit of a duration is one of `us`, `ms`, `s`, `m`, `h`, `d`, `w`");
        };
        let part = number.parse::<u64>().ok().and_then(|number| number.checked_mul(size));
        total = match part.and_then(|part| total.checked_add(part)) {
            Some(total) if total <= MAX_MICROS => total,
            _ => return fail("a duration may be at most 3660 days"),
        };
        rest = after.trim_start();
    }
    if total == 0 { fail("a duration must be longer than nothing") } else { Ok(total) }
}

fn unit_micros(unit: &str) -> Option<u64> {
    Some(match unit {
        "us" | "usec" => 1,
        "ms" | "msec" => MILLISECOND,
        "s" | "sec" | "second" | "seconds" => SECOND,
        "m" | "min" | "minute" | "minutes" => MINUTE,
        "h" | "hr" | "hour" | "hours" => HOUR,
        "d" | "day" | "days" => DAY,
        "w" | "week" | "weeks" => WEEK,
        _ => return None,
    })
}

fn split_while(text: &str, holds: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|character| !holds(character)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read() {
        for (text, micros) in [
            ("24h", 24 * HOUR),
            ("90m", 90 * MINUTE),
            ("1h30m", 90 * MINUTE),
            ("1h 30min", 90 * MINUTE),
            ("2 days", 2 * DAY),
            ("1w", WEEK),
            ("250ms", 250 * MILLISECOND),
            ("7us", 7),
            ("3660d", MAX_MICROS),
        ] {
            assert_eq!(parse_micros(text), Ok(micros), "{text}");
        }
    }

    #[test]
    fn what_is_no_span_is_refused() {
        for text in [
            "",
            " ",
            "0s",
            "0h0m",
            "30",
            "h",
            "-1h",
            "1.5h",
            "1h30",
            "soon",
            "3661d",
            "99999999999999999999s",
            "1y",
            "１h",
        ] {
            assert!(parse_micros(text).is_err(), "{text}");
        }
    }
}
