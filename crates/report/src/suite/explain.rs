//! Explanations of tests that did not pass, shared by the formats. All text is bounded and has no control characters.

use proctor_core::json::Json;
use proctor_core::printable::shown;
use proctor_core::time::Timestamp;
use proctor_runner::results::{TestResult, hints, reasons, shown_points, word};
use proctor_runner::run::{Attempt, RunResult};
use proctor_runner::scoring::Verdict;

use crate::visible;

/// Characters of a name.
pub(super) const NAME: usize = 200;

/// Characters of a reason.
pub(super) const REASON: usize = 1000;

/// Reasons of a run.
const MAX_REASONS: usize = 50;

/// Last lines of a run's standard error.
const MAX_LINES: usize = 20;

/// Earlier attempts at a run.
const MAX_ATTEMPTS: usize = 20;

/// Runs of a test that are explained one by one.
pub(super) const MAX_RUNS: usize = 20;

/// A text on one line.
pub(super) fn line(text: &str, width: usize) -> String {
    visible(&shown(text, width))
}

/// The verdict of a test, for people.
pub(super) fn verdict(test: &TestResult) -> &'static str {
    match test.verdict {
        Some(verdict) => word(verdict),
        None => "not run",
    }
}

/// Whether a report explains the test: it did not pass, or one of its runs did not, or not at the first attempt.
pub(super) fn needs_explanation(test: &TestResult) -> bool {
    matches!(test.verdict, Some(Verdict::Failed | Verdict::Error)) || test.runs.iter().any(is_explained)
}

/// Whether a report explains the run: it did not pass, or not at the first attempt.
pub(super) fn is_explained(run: &RunResult) -> bool {
    run.verdict != Verdict::Passed || !run.earlier_attempts.is_empty()
}

/// Whether an attempt at a run of the test ended in an error and was followed by another.
pub(super) fn is_retried(test: &TestResult) -> bool {
    test.runs.iter().any(|run| !run.earlier_attempts.is_empty())
}

/// The first reason why a test did not pass, or not at once, in one line; empty if it passed in every run at the first attempt.
pub(super) fn why(test: &TestResult) -> String {
    if let Some(reason) = &test.not_run {
        return line(reason, REASON);
    }
    let worst = |verdict| test.runs.iter().find(|run| run.verdict == verdict);
    let Some(run) = worst(Verdict::Error).or_else(|| worst(Verdict::Failed)) else {
        // Runs that were left out count as errors.
        let is_short = matches!(test.verdict, Some(Verdict::Failed | Verdict::Error));
        if is_short {
            return "not every run was made".to_owned();
        }
        return test.runs.iter().flat_map(attempts).next().unwrap_or_default();
    };
    let reason = run_reasons(run).into_iter().next().unwrap_or_default();
    match test.runs.len() {
        1 => reason,
        runs => format!("run {} of {runs}: {reason}", run.number),
    }
}

/// Reasons of a run that did not pass, each in one line.
pub(super) fn run_reasons(run: &RunResult) -> Vec<String> {
    let reasons = reasons(run);
    let more = reasons.len().saturating_sub(MAX_REASONS);
    let mut lines: Vec<String> =
        reasons.iter().take(MAX_REASONS).map(|reason| line(reason, REASON)).collect();
    if more > 0 {
        lines.push(format!("and {more} more reasons"));
    }
    lines
}

/// Attempts that ended in an error before the last one, each in one line with its reason.
pub(super) fn attempts(run: &RunResult) -> Vec<String> {
    let shown = run.earlier_attempts.iter().take(MAX_ATTEMPTS).enumerate();
    let mut lines: Vec<String> = shown.map(|(index, attempt)| attempt_line(index, attempt)).collect();
    let more = run.earlier_attempts.len().saturating_sub(MAX_ATTEMPTS);
    if more > 0 {
        lines.push(format!("and {more} more attempts"));
    }
    lines
}

fn attempt_line(index: usize, attempt: &Attempt) -> String {
    let (number, time) = (index + 1, attempt.took.as_secs_f64());
    format!("attempt {number}: error, {time:.1} s: {}", line(&attempt.error, REASON))
}

/// Last lines of the standard error of a run that did not pass.
pub(super) fn last_lines(run: &RunResult) -> Vec<String> {
    if run.verdict == Verdict::Passed {
        return Vec::new();
    }
    let from = run.last_lines.len().saturating_sub(MAX_LINES);
    run.last_lines.iter().skip(from).map(|text| line(text, REASON)).collect()
}

/// One line about a run: its number, verdict, score, time, and the number of the attempt if there were others.
pub(super) fn run_line(run: &RunResult) -> String {
    let score = shown_points(run).map_or_else(String::new, |points| format!(", score {points}"));
    let attempt = match run.earlier_attempts.len() {
        0 => String::new(),
        earlier => format!(", attempt {}", earlier + 1),
    };
    let time = run.took.as_secs_f64();
    format!("run {}: {}{score}, {time:.1} s{attempt}", run.number, word(run.verdict))
}

/// Plain text about all runs of a test: statistics, then each run that did not pass at once, with attempts, reasons and last lines.
pub(super) fn text(test: &TestResult) -> String {
    let mut out = String::new();
    if let Some(reason) = &test.not_run {
        out.push_str(&line(reason, REASON));
        return out;
    }
    if test.runs.len() > 1 {
        out.push_str(&format!("{} of {} runs passed", test.passes(), test.runs.len()));
        if test.is_flaky() {
            out.push_str(" (flaky)");
        }
        out.push('\n');
        if let Some(sentence) = test.statistics().sentence() {
            out.push_str(&format!("{sentence}\n"));
        }
    }
    let explained = || test.runs.iter().filter(|run| is_explained(run));
    for run in explained().take(MAX_RUNS) {
        out.push_str(&format!("{}\n", run_line(run)));
        for reason in attempts(run).into_iter().chain(run_reasons(run)) {
            out.push_str(&format!("  {reason}\n"));
        }
        for hint in hints(test, run) {
            out.push_str(&format!("  {}\n", line(&hint, REASON)));
        }
        let lines = last_lines(run);
        if !lines.is_empty() {
            out.push_str("  last lines of standard error:\n");
            for text in lines {
                out.push_str(&format!("  | {text}\n"));
            }
        }
    }
    let more = explained().count().saturating_sub(MAX_RUNS);
    if more > 0 {
        out.push_str(&format!("and {more} more runs that did not pass at once\n"));
    }
    out
}

/// Event of a run's timeline.
pub(super) struct EventLine {
    /// Milliseconds since the first event that has a time.
    pub(super) offset: Option<u64>,
    /// Type of the event.
    pub(super) kind: String,
    /// What happened, in one line.
    pub(super) text: String,
    /// Whether it violates the protocol.
    pub(super) is_flawed: bool,
}

/// The first events of a run.
pub(super) fn timeline(run: &RunResult, count: usize) -> Vec<EventLine> {
    let time = |event: &Json| event.get("timestamp").and_then(Json::as_str).and_then(Timestamp::parse);
    let start = run.shown_events.iter().find_map(|event| time(&event.json));
    run.shown_events
        .iter()
        .take(count)
        .map(|event| EventLine {
            offset: time(&event.json)
                .zip(start)
                // An event may claim a time before the first one.
                .map(|(time, start)| time.micros_since(start) / 1000),
            kind: line(event.json.get("event_type").and_then(Json::as_str).unwrap_or("no event"), 40),
            text: preview(event.json.get("payload").unwrap_or(&event.json)),
            is_flawed: event.is_flawed,
        })
        .collect()
}

/// Members of a payload that are shown, and characters of each.
const PREVIEWED: (usize, usize) = (6, 80);

/// The first members of a value in one line, without looking at more of a large value than is shown.
fn preview(value: &Json) -> String {
    let scalar = |value: &Json| match value {
        Json::String(text) => line(text, PREVIEWED.1),
        Json::Array(items) => format!("[{} items]", items.len()),
        Json::Object(members) => format!("{{{} members}}", members.len()),
        other => line(&other.to_string(), PREVIEWED.1),
    };
    match value {
        Json::Object(members) => {
            let shown = members.iter().filter(|(_, value)| !value.is_null()).take(PREVIEWED.0);
            let parts: Vec<String> =
                shown.map(|(name, value)| format!("{} {}", line(name, 40), scalar(value))).collect();
            parts.join(" · ")
        }
        other => scalar(other),
    }
}
