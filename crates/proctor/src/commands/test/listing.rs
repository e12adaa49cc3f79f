//! Results of a suite run for people.

use owo_colors::OwoColorize;
use proctor_runner::comparison::BaselineComparison;
use proctor_runner::results::{SuiteResult, TestResult, reasons};
use proctor_runner::run::RunResult;
use proctor_runner::scoring::Verdict;

use crate::failure::Failure;
use crate::output::{self, shown};

/// Width of a test's name.
const NAME_WIDTH: usize = 40;

/// Width of a reason.
const REASON_WIDTH: usize = 300;

/// One line on stderr for a test that has ended.
pub(super) fn progress(test: &TestResult) {
    output::note(&line(test));
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
        for run in &test.runs {
            for reason in lines(run) {
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
        output::data(format!("flaky: {}", shown(&statistics.flaky.join(", "), REASON_WIDTH)))?;
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
    let score = test.mean().map_or_else(String::new, |mean| format!("  {mean:>6.2}"));
    let runs = if test.runs.len() > 1 {
        format!(
            "  {} of {} runs{}",
            test.passes(),
            test.runs.len(),
            if test.is_flaky() { ", flaky" } else { "" }
        )
    } else {
        String::new()
    };
    format!(
        "{word}  {:<NAME_WIDTH$}{score}{runs}  {:.1} s",
        shown(&test.name, NAME_WIDTH),
        test.took.as_secs_f64()
    )
}

/// Reasons of a run that did not pass, and the last lines of an agent that ended in an error.
fn lines(run: &RunResult) -> Vec<String> {
    let mut lines: Vec<String> = reasons(run).iter().map(|reason| shown(reason, REASON_WIDTH)).collect();
    if run.error.is_some() && run.verdict != Verdict::Passed {
        let from = run.last_lines.len().saturating_sub(5);
        lines.extend(
            run.last_lines.iter().skip(from).map(|line| format!("  | {}", shown(line, REASON_WIDTH))),
        );
    }
    lines
}
