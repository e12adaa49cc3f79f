//! Durations and timestamps, in microseconds.

use jiff::tz::TimeZone;

use super::node::Function;

/// Reads `1h30m`, `1.5s`, `-250ms`: CEL's durations. `None` for anything else, and for parts of a microsecond.
pub(super) fn parse_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanos = 0i128;
    while !rest.is_empty() {
        let digits = rest.find(|character: char| !character.is_ascii_digit() && character != '.')?;
        let (number, after) = rest.split_at(digits);
        let unit_length = after
            .find(|character: char| character.is_ascii_digit() || character == '.')
            .unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_length);
        let scale: i128 = match unit {
            "h" => 3_600_000_000_000,
            "m" => 60_000_000_000,
            "s" => 1_000_000_000,
            "ms" => 1_000_000,
            "us" | "µs" => 1_000,
            "ns" => 1,
            _ => return None,
        };
        nanos = nanos.checked_add(scaled(number, scale)?)?;
        rest = next;
    }
    if nanos % 1000 != 0 {
        return None;
    }
    let micros = i64::try_from(nanos / 1000).ok()?;
    Some(if negative { -micros } else { micros })
}

/// A decimal number times a scale, exactly; `None` if a fraction is left.
fn scaled(number: &str, scale: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty())
        || whole.len() > 18
        || fraction.len() > 15
        || fraction.contains('.')
    {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut total = whole.checked_mul(scale)?;
    if !fraction.is_empty() {
        let parts = fraction.parse::<i128>().ok()?.checked_mul(scale)?;
        let divisor = 10i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        if parts % divisor != 0 {
            return None;
        }
        total = total.checked_add(parts / divisor)?;
    }
    Some(total)
}

/// Reads RFC 3339.
pub(super) fn parse_timestamp(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_microsecond)
}

/// Seconds with `s`, as CEL prints durations.
pub(super) fn print_duration(micros: i64) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    let micros = micros.unsigned_abs();
    let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
    if rest == 0 {
        format!("{sign}{seconds}s")
    } else {
        format!("{sign}{seconds}.{}s", format!("{rest:06}").trim_end_matches('0'))
    }
}

/// RFC 3339 with as many digits as needed.
pub(super) fn print_timestamp(micros: i64) -> String {
    match jiff::Timestamp::from_microsecond(micros) {
        Ok(moment) => moment.to_string(),
        Err(_) => format!("{micros}µs"),
    }
}

/// Result of a `get…` method of a timestamp, in UTC. Months, days of the month and of the year start at zero, as in CEL, and
/// `getDate` at one; days of the week start at Sunday.
pub(super) fn part_of_moment(function: Function, micros: i64) -> Option<i64> {
    let civil = TimeZone::UTC.to_datetime(jiff::Timestamp::from_microsecond(micros).ok()?);
    Some(match function {
        Function::Year => i64::from(civil.year()),
        Function::Month => i64::from(civil.month()) - 1,
        Function::DayOfMonth => i64::from(civil.day()) - 1,
        Function::Date => i64::from(civil.day()),
        Function::DayOfWeek => i64::from(civil.weekday().to_sunday_zero_offset()),
        Function::DayOfYear => i64::from(civil.day_of_year()) - 1,
        Function::Hours => i64::from(civil.hour()),
        Function::Minutes => i64::from(civil.minute()),
        Function::Seconds => i64::from(civil.second()),
        Function::Milliseconds => i64::from(civil.millisecond()),
        _ => return None,
    })
}

/// Result of a `get…` method of a duration: the whole duration in that unit, except milliseconds, which are those of the last
/// second.
pub(super) fn part_of_duration(function: Function, micros: i64) -> Option<i64> {
    Some(match function {
        Function::Hours => micros / 3_600_000_000,
        Function::Minutes => micros / 60_000_000,
        Function::Seconds => micros / 1_000_000,
        Function::Milliseconds => micros / 1000 % 1000,
        _ => return None,
    })
}
