//! Counts of tests in the output of test programs.

use std::sync::LazyLock;

use proctor_core::json::Json;
use regex::Regex;

use super::pattern::{PatternError, compile};

/// Counts of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counts {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) skipped: u64,
    pub(super) errors: u64,
}

impl Counts {
    pub(super) fn total(&self) -> u64 {
        [self.passed, self.failed, self.skipped, self.errors].into_iter().fold(0, u64::saturating_add)
    }

    /// Share of passed tests, skipped ones included in the total.
    pub(super) fn rate(&self) -> f64 {
        match self.total() {
            0 => 0.0,
            total => self.passed as f64 / total as f64,
        }
    }

    pub(super) fn details(&self, rate: f64) -> Json {
        Json::object()
            .with("passed", self.passed)
            .with("failed", self.failed)
            .with("skipped", self.skipped)
            .with("errors", self.errors)
            .with("rate", Json::Number(rate.to_string().into()))
    }

    fn add(&mut self, word: &str, count: u64) {
        let place = match word {
            "passed" | "passing" | "pass" => &mut self.passed,
            "failed" | "failing" | "fail" => &mut self.failed,
            "skipped" | "pending" | "todo" => &mut self.skipped,
            "error" | "errors" | "cancelled" => &mut self.errors,
            // `warnings`, `deselected`, `xfailed`, `total`: no tests that passed or failed.
            _ => return,
        };
        *place = place.saturating_add(count);
    }
}

/// The summary line of pytest. The last one counts: a test may print a summary of its own before it.
pub(super) fn pytest(output: &str) -> Option<Counts> {
    static SUMMARY: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"^=*\s*((?:\d+ [a-z]+(?:, )?)+) in \d+(?:\.\d+)?s(?: \(\d+:\d\d:\d\d\))?\s*=*$").ok()
    });
    let summary = SUMMARY.as_ref()?;
    let line = output.lines().rev().find_map(|line| summary.captures(line.trim()))?;
    Some(words(line.get(1)?.as_str()))
}

/// The summaries of Jest, Vitest, Mocha and Node's own test runner.
pub(super) fn javascript(output: &str) -> Option<Counts> {
    static JEST_OR_VITEST: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^Tests:?\s+((?:\d+ [a-z]+[,|\s]*)+)").ok());
    static MOCHA: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^(\d+) (passing|failing|pending)\b").ok());
    static NODE: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^[#ℹ] (pass|fail|cancelled|skipped|todo) (\d+)$").ok());
    let jest = JEST_OR_VITEST.as_ref()?;
    if let Some(line) = output.lines().rev().find_map(|line| jest.captures(line.trim())) {
        return Some(words(line.get(1)?.as_str()));
    }
    let (mocha, node) = (MOCHA.as_ref()?, NODE.as_ref()?);
    // Each word once, from the end.
    let mut counts = Counts::default();
    let mut seen: Vec<&str> = Vec::new();
    for line in output.lines().rev().map(str::trim) {
        let found = match (mocha.captures(line), node.captures(line)) {
            (Some(found), _) => found.get(2).zip(found.get(1)),
            (None, Some(found)) => found.get(1).zip(found.get(2)),
            (None, None) => None,
        };
        let Some((word, count)) = found else { continue };
        if !seen.contains(&word.as_str()) {
            seen.push(word.as_str());
            counts.add(word.as_str(), count.as_str().parse().unwrap_or_default());
        }
    }
    (!seen.is_empty()).then_some(counts)
}

/// The last match of a pattern with named groups.
pub(super) fn by_pattern(output: &str, pattern: &str) -> Result<Option<Counts>, PatternError> {
    let compiled = compile(pattern)?;
    let Some(found) = compiled.captures_iter(output).last() else { return Ok(None) };
    let group = |name: &str| found.name(name).and_then(|text| text.as_str().parse::<u64>().ok());
    let mut counts = Counts {
        passed: group("passed").unwrap_or_default(),
        failed: group("failed").unwrap_or_default(),
        skipped: group("skipped").unwrap_or_default(),
        errors: group("errors").unwrap_or_default(),
    };
    if let Some(total) = group("total") {
        if group("passed").is_none() {
            // Only the total and the failures are known.
            counts.passed = total.saturating_sub(counts.total());
        } else if total > counts.total() {
            counts.failed += total - counts.total();
        }
    } else if group("passed").is_none() && group("failed").is_none() {
        return Ok(None);
    }
    Ok(Some(counts))
}

/// `2 passed, 1 failed`.
fn words(text: &str) -> Counts {
    let mut counts = Counts::default();
    let mut number = None;
    for word in
        text.split(|separator: char| separator == ',' || separator == '|' || separator.is_whitespace())
    {
        if word.is_empty() {
            continue;
        }
        match (word.parse::<u64>(), number) {
            (Ok(count), _) => number = Some(count),
            (Err(_), Some(count)) => {
                counts.add(word, count);
                number = None;
            }
            (Err(_), None) => {}
        }
    }
    counts
}

/// The text without escape sequences of terminals.
pub(super) fn without_colours(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character != '\u{1b}' {
            out.push(character);
            continue;
        }
        if characters.next_if_eq(&'[').is_some() {
            for parameter in characters.by_ref() {
                if ('@'..='~').contains(&parameter) {
                    break;
                }
            }
        }
    }
    out
}
