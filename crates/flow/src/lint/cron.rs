//! Cron expressions: whether they parse, and whether a date matches them.
//!
//! Plain expressions (five fields of numbers, names, ranges, lists and steps) are decided here within a microsecond. The library,
//! which takes forty times as long, reads the rest: `L`, `W`, `#`, seconds, years, nicknames.

use std::collections::HashMap;

use croner::Cron;
use croner::parser::CronParser;
use croner::time::{Weekday, days_in_month};

/// Most expressions of one manifest that the library parses.
pub(super) const MAX_PARSED: usize = 4000;
/// Longest expression that the scheduler takes.
const MAX_BYTES: usize = 128;

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// Verdict on an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A date matches.
    Fires,
    /// No date matches.
    Never,
    /// The expression cannot be parsed.
    Invalid,
    /// There were too many expressions.
    Unchecked,
}

/// Verdicts on the expressions of a manifest, equal ones judged once.
#[derive(Default)]
pub(super) struct Schedules<'m> {
    parsed: HashMap<&'m str, Verdict>,
    is_exhausted: bool,
}

impl<'m> Schedules<'m> {
    pub(super) fn judge(&mut self, expression: &'m str) -> Verdict {
        if let Some(verdict) = plain(expression) {
            return verdict;
        }
        if let Some(verdict) = self.parsed.get(expression) {
            return *verdict;
        }
        if self.parsed.len() >= MAX_PARSED {
            self.is_exhausted = true;
            return Verdict::Unchecked;
        }
        let verdict = parsed(expression);
        self.parsed.insert(expression, verdict);
        verdict
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }
}

/// Verdict on a plain expression; `None` if the library has to read it.
fn plain(expression: &str) -> Option<Verdict> {
    if expression.len() > MAX_BYTES {
        return None;
    }
    let mut fields = expression.split_ascii_whitespace();
    let [minute, hour, day, month, weekday] =
        [fields.next()?, fields.next()?, fields.next()?, fields.next()?, fields.next()?];
    if fields.next().is_some() {
        return None;
    }
    set(minute, 0, 59, &[])?;
    set(hour, 0, 23, &[])?;
    let days = set(day, 1, 31, &[])?;
    let months = set(month, 1, 12, &MONTHS)?;
    set(weekday, 0, 7, &WEEKDAYS)?;
    // A restricted weekday fires on its own: cron joins day and weekday by "or".
    if weekday != "*" {
        return Some(Verdict::Fires);
    }
    // February has 29 days in some years.
    let fires = (1..=12u32)
        .filter(|month| months & (1 << month) != 0)
        .any(|month| (1..=days_in_month(2024, month)).any(|day| days & (1 << day) != 0));
    Some(if fires { Verdict::Fires } else { Verdict::Never })
}

/// The values of a field as bits. `None` for everything that is not plain, faults included: the library judges those.
fn set(field: &str, lowest: u32, highest: u32, names: &[&str]) -> Option<u64> {
    let mut bits = 0u64;
    for part in field.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(number(step)?)),
            None => (part, None),
        };
        let (from, to) = if range == "*" {
            (lowest, highest)
        } else {
            match (range.split_once('-'), step) {
                (Some((from, to)), _) => (value(from, lowest, names)?, value(to, lowest, names)?),
                (None, None) => {
                    let only = value(range, lowest, names)?;
                    (only, only)
                }
                // `5/10` means different things to different readers.
                (None, Some(_)) => return None,
            }
        };
        if from < lowest || to > highest || from > to || step == Some(0) {
            return None;
        }
        let mut at = from;
        while at <= to {
            bits |= 1 << at;
            at += step.unwrap_or(1);
        }
    }
    Some(bits)
}

fn value(text: &str, lowest: u32, names: &[&str]) -> Option<u32> {
    if let Some(position) = names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
        return u32::try_from(position).ok().map(|position| position + lowest);
    }
    number(text)
}

fn number(text: &str) -> Option<u32> {
    let is_short = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_short.then(|| text.parse().ok()).flatten()
}

/// Verdict of the library's parser, and of a walk over the days of its pattern. The library's own search for a next date takes 14
/// ms where there is none.
fn parsed(expression: &str) -> Verdict {
    if expression.len() > MAX_BYTES || !expression.is_ascii() {
        return Verdict::Invalid;
    }
    match CronParser::new().parse(expression) {
        Ok(cron) if has_date(&cron) => Verdict::Fires,
        Ok(_) => Verdict::Never,
        Err(_) => Verdict::Invalid,
    }
}

/// Whether a date matches. Dates and weekdays repeat after 28 years.
fn has_date(cron: &Cron) -> bool {
    // 1 January 2012 was a Sunday.
    let mut weekday = Weekday::Sunday;
    for year in 2012..2040 {
        for month in 1..=12u32 {
            let days = days_in_month(year, month);
            if cron.pattern.month_match(month).unwrap_or(false) {
                let mut at = weekday;
                for day in 1..=days {
                    if cron.pattern.day_match(year, month, day, at).unwrap_or(false) {
                        return true;
                    }
                    at = at.shift(1);
                }
            }
            weekday = weekday.shift(i32::try_from(days).unwrap_or_default());
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_get_their_verdict() {
        for (expression, verdict) in [
            ("0 9 * * *", Verdict::Fires),
            ("*/15 8-18 * JAN-MAR mon-fri", Verdict::Fires),
            ("0 0 29 2 *", Verdict::Fires),
            ("0 0 31 2 1", Verdict::Fires),
            ("@daily", Verdict::Fires),
            ("0 0 L 2 *", Verdict::Fires),
            ("0 0 * * 5#5", Verdict::Fires),
            ("30 0 9 * * *", Verdict::Fires),
            ("0 0 29 2 +5#5", Verdict::Fires),
            ("0 0 31 2 *", Verdict::Never),
            ("0 0 30-31 FEB *", Verdict::Never),
            ("0 0 31 2,4,6,9,11 *", Verdict::Never),
            ("0 0 0 31 2 *", Verdict::Never),
            ("0 0 1 * +1#2", Verdict::Never),
            ("60 * * * *", Verdict::Invalid),
            ("* * * *", Verdict::Invalid),
            ("often", Verdict::Invalid),
            ("* * 0 * *", Verdict::Invalid),
            ("*/0 * * * *", Verdict::Invalid),
            ("5-2 * * * *", Verdict::Invalid),
            ("ö * * * *", Verdict::Invalid),
        ] {
            assert_eq!(Schedules::default().judge(expression), verdict, "{expression}");
        }
    }

    #[test]
    fn plain_expressions_are_judged_as_the_library_judges_them() {
        let fields = [
            ["0", "*", "*/7", "5,10-20/3", "0-59"],
            ["0", "*", "1-5", "22,23", "*/6"],
            ["*", "31", "30,31", "29", "1-31/2"],
            ["*", "2", "FEB,apr", "1-12/2", "*/3"],
            ["*", "1", "MON-FRI", "7", "0,6"],
        ];
        for minute in fields[0] {
            for hour in fields[1] {
                for day in fields[2] {
                    for month in fields[3] {
                        for weekday in fields[4] {
                            let text = format!("{minute} {hour} {day} {month} {weekday}");
                            assert_eq!(plain(&text), Some(parsed(&text)), "{text}");
                        }
                    }
                }
            }
        }
    }
}
