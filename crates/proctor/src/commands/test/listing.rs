//! Results of a suite run for people.

use std::io::IsTerminal as _;

use owo_colors::OwoColorize;
use proctor_runner::comparison::BaselineComparison;
use proctor_runner::results::{SuiteResult, TestResult, hints, reasons};
use proctor_runner::run::RunResult;
use proctor_runner::scoring::Verdict;

use crate::failure::Failure;
use crate::output::{self, live, shown};

/// Width of a test's name.
const NAME_WIDTH: usize = 40;

/// Width of a reason.
const REASON_WIDTH: usize = 300;

/// Shows a test that has ended on stderr: on the live line, with a line above it if it did not pass, or else with a line of its own, unless
/// the result will stand on the same terminal.
pub(super) fn progress(test: &TestResult) {
    if live::with(|live| live.ended(test)) {
        if matches!(test.verdict, Some(Verdict::Failed | Verdict::Error)) {
            live::print_above(&line(test));
            if let Some(reason) = test.runs.iter().flat_map(lines).next() {
                live::print_above(&format!("        {reason}"));
            }
        }
    } else if !(std::io::stderr().is_terminal() && std::io::stdout().is_terminal()) {
        output::note(&line(test));
    }
}

/// The result on stdout.
pub(in super::super) fn print(result: &SuiteResult) -> Result<(), Failure> {
    for test in &result.tests {
        output::data(line(test))?;
        if let Some(sentence) = test.statistics().sentence() {
            output::data(format!("        {sentence}"))?;
        }
        if let Some(reason) = &test.not_run {
            output::data(format!("        {}", shown(reason, REASON_WIDTH)))?;
        }
        if test.has_no_assertions() {
            output::data("        the test has no assertions: only the status of the agent counts")?;
        }
        for run in &test.runs {
            for reason in lines(run).into_iter().chain(hints(test, run)) {
                let number =
                    if test.runs.len() > 1 { format!("run {}: ", run.number) } else { String::new() };
                output::data(format!("        {number}{reason}"))?;
            }
        }
    }
    for line in result.isolation.lines() {
        output::data(line)?;
    }
    let agent = shown(&result.agent, NAME_WIDTH);
    output::data(format!(
        "{}: {} with {agent}, {:.1} s",
        result.suite,
        result.counts().sentence(),
        result.took.as_secs_f64()
    ))?;
    let statistics = result.statistics();
    if let Some(sentence) = statistics.sentence() {
        output::data(sentence)?;
    }
    if !statistics.flaky.is_empty() {
        output::data(format!("flaky tests: {}", shown(&statistics.flaky.join(", "), REASON_WIDTH)))?;
    }
    Ok(())
}

/// A comparison in words on stdout.
pub(super) fn print_comparison(comparison: &BaselineComparison) -> Result<(), Failure> {
    comparison.sentences().iter().try_for_each(|sentence| output::data(shown(sentence, 2 * REASON_WIDTH)))
}

fn line(test: &TestResult) -> String {
    let word = match test.verdict {
        Some(Verdict::Passed) => "passed".green().to_string(),
        Some(Verdict::Failed) => "failed".red().to_string(),
        Some(Verdict::Error) => "error ".red().to_string(),
        None => "not run".yellow().to_string(),
    };
    let score = test.shown_mean().map_or_else(String::new, |mean| format!("  {mean:>6}"));
    let runs = if test.runs.len() > 1 { format!("  {}", test.runs_sentence()) } else { String::new() };
    // The longest word reaches into the gap, so that names stand in one column.
    let gap = if test.verdict.is_some() { "  " } else { " " };
    format!(
        "{word}{gap}{:<NAME_WIDTH$}{score}{runs}  {:.1} s",
        shown(&test.name, NAME_WIDTH),
        test.took.as_secs_f64()
    )
}

/// Earlier attempts at a run, reasons if it did not pass, and the last lines of an agent that ended in an error.
fn lines(run: &RunResult) -> Vec<String> {
    let attempts = run.earlier_attempts.iter().zip(1..);
    let attempts = attempts.map(|(attempt, number)| format!("attempt {number}: error: {}", attempt.error));
    let mut lines: Vec<String> =
        attempts.chain(reasons(run)).map(|reason| shown(&reason, REASON_WIDTH)).collect();
    if run.error.is_some() && run.verdict != Verdict::Passed {
        let from = run.last_lines.len().saturating_sub(5);
        lines.extend(
            run.last_lines.iter().skip(from).map(|line| format!("  | {}", shown(line, REASON_WIDTH))),
        );
    }
    lines
}
