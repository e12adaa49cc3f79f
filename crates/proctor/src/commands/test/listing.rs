//! Results of a suite run for people.

use owo_colors::OwoColorize;
use proctor_runner::checks::Status;
use proctor_runner::results::{SuiteResult, TestResult, ending_word};
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
pub(super) fn print(result: &SuiteResult) -> Result<(), Failure> {
    for test in &result.tests {
        output::data(line(test))?;
        if let Some(reason) = &test.not_run {
            output::data(format!("        {}", shown(reason, REASON_WIDTH)))?;
        }
        for run in &test.runs {
            for reason in reasons(run) {
                let number =
                    if test.runs.len() > 1 { format!("run {}: ", run.number) } else { String::new() };
                output::data(format!("        {number}{reason}"))?;
            }
        }
    }
    for line in result.isolation.lines() {
        output::data(line)?;
    }
    let counts = result.counts();
    let mut parts = vec![format!("{} passed", counts.passed), format!("{} failed", counts.failed)];
    if counts.errors > 0 {
        parts.push(format!("{} could not be evaluated", counts.errors));
    }
    if counts.not_run > 0 {
        parts.push(format!("{} not run", counts.not_run));
    }
    let agent = shown(&result.agent, NAME_WIDTH);
    output::data(format!(
        "{}: {} with {agent}, {:.1} s",
        result.suite,
        parts.join(", "),
        result.took.as_secs_f64()
    ))
}

fn line(test: &TestResult) -> String {
    let word = match test.verdict {
        Some(Verdict::Passed) => "passed".green().to_string(),
        Some(Verdict::Failed) => "failed".red().to_string(),
        Some(Verdict::Error) => "error ".red().to_string(),
        None => "not run".yellow().to_string(),
    };
    let points = test.points();
    let score = if points.is_empty() {
        String::new()
    } else {
        format!("  {:>6.2}", points.iter().sum::<f64>() / points.len() as f64)
    };
    let runs = if test.runs.len() > 1 {
        let passed = test.runs.iter().filter(|run| run.verdict == Verdict::Passed).count();
        format!("  {passed} of {} runs{}", test.runs.len(), if test.is_flaky() { ", flaky" } else { "" })
    } else {
        String::new()
    };
    format!(
        "{word}  {:<NAME_WIDTH$}{score}{runs}  {:.1} s",
        shown(&test.name, NAME_WIDTH),
        test.took.as_secs_f64()
    )
}

/// Reasons of a run that did not pass.
fn reasons(run: &RunResult) -> Vec<String> {
    let mut reasons = Vec::new();
    if run.verdict == Verdict::Passed {
        return reasons;
    }
    if let Some(error) = &run.error {
        reasons.push(format!("{}: {}", ending_word(run.ending), shown(error, REASON_WIDTH)));
    }
    for assertion in run.assertions.iter().filter(|assertion| assertion.status != Status::Passed) {
        for check in assertion.checks.iter().filter(|check| !check.passed) {
            let kind = if assertion.status == Status::Error { "could not be evaluated: " } else { "" };
            let critical = if assertion.critical { " (critical)" } else { "" };
            let message = shown(&check.message, REASON_WIDTH);
            reasons.push(format!("{}{critical}: {kind}{message}", assertion.name));
        }
    }
    if run.error.is_some() {
        reasons.extend(
            run.last_lines
                .iter()
                .rev()
                .take(5)
                .rev()
                .map(|line| format!("  | {}", shown(line, REASON_WIDTH))),
        );
    }
    reasons
}
