//! Markdown report of a suite, for job summaries and comments on code hosts.

use proctor_core::printable::shown;
use proctor_runner::results::TestResult;
use proctor_runner::scoring::Verdict;

use super::SuiteReport;
use super::explain::{NAME, needs_explanation, text, verdict, why};
use crate::visible;

/// Tests in the table, and tests that are explained: a job summary has a limit of 1 MiB.
const MAX_ROWS: usize = 500;
const MAX_EXPLAINED: usize = 50;

/// Characters of one explanation.
const MAX_EXPLANATION: usize = 8000;

/// Characters of a reason in the table.
const REASON: usize = 200;

pub(super) fn write(report: &SuiteReport<'_>) -> String {
    let result = report.result;
    let conclusion = report.conclusion();
    let mut out = format!("# {}: {}\n\n", escaped(&result.suite, NAME), conclusion.shown());
    out.push_str(&format!(
        "{} with {}, {:.1} s.\n",
        result.counts().sentence(),
        escaped(&result.agent, NAME),
        result.took.as_secs_f64()
    ));
    let statistics = result.statistics();
    if let Some(sentence) = statistics.sentence() {
        out.push_str(&format!("{sentence}.\n"));
    }
    if !statistics.flaky.is_empty() {
        let ids: Vec<String> =
            statistics.flaky.iter().take(MAX_EXPLAINED).map(|id| escaped(id, NAME)).collect();
        let more = statistics.flaky.len() - ids.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        out.push_str(&format!("Flaky: {}{more}.\n", ids.join(", ")));
    }
    if let Some(comparison) = report.comparison {
        out.push_str("\n## Comparison\n\n");
        for sentence in comparison.sentences() {
            out.push_str(&format!("- {}\n", escaped(&sentence, 1000)));
        }
    }
    table(&mut out, &result.tests);
    explanations(&mut out, &result.tests);
    isolation(&mut out, report);
    out
}

/// Tests that did not pass first; then the others, as far as there is capacity.
fn table(out: &mut String, tests: &[TestResult]) {
    if tests.is_empty() {
        return;
    }
    let mut rows: Vec<&TestResult> = tests.iter().collect();
    rows.sort_by_key(|test| match test.verdict {
        Some(Verdict::Failed | Verdict::Error) => 0,
        None => 1,
        Some(Verdict::Passed) => 2,
    });
    out.push_str(
        "\n## Tests\n\n| Result | Test | Score | Runs | Time | Why |\n|---|---|---:|---:|---:|---|\n",
    );
    for test in rows.iter().take(MAX_ROWS) {
        let score = test.shown_mean().unwrap_or_else(|| "–".to_owned());
        let runs = if test.runs.is_empty() {
            "–".to_owned()
        } else {
            format!("{}/{}", test.passes(), test.runs.len())
        };
        out.push_str(&format!(
            "| {} | {} | {score} | {runs} | {:.1} s | {} |\n",
            verdict(test),
            escaped(&test.name, NAME),
            test.took.as_secs_f64(),
            escaped(&why(test), REASON)
        ));
    }
    if rows.len() > MAX_ROWS {
        out.push_str(&format!("\n{} more tests are not listed here.\n", rows.len() - MAX_ROWS));
    }
}

fn explanations(out: &mut String, tests: &[TestResult]) {
    let explained: Vec<&TestResult> = tests.iter().filter(|test| needs_explanation(test)).collect();
    if explained.is_empty() {
        return;
    }
    out.push_str("\n## What to look at\n");
    for test in explained.iter().take(MAX_EXPLAINED) {
        let title = format!("{}: {} ({})", verdict(test), escaped(&test.name, NAME), escaped(&test.id, NAME));
        let text: String = text(test).trim_end().chars().take(MAX_EXPLANATION).collect();
        out.push_str(&format!("\n### {title}\n\n{}\n", fenced(&text)));
    }
    if explained.len() > MAX_EXPLAINED {
        out.push_str(&format!("\n{} more tests are not explained here.\n", explained.len() - MAX_EXPLAINED));
    }
}

fn isolation(out: &mut String, report: &SuiteReport<'_>) {
    let isolation = &report.result.isolation;
    if !isolation.is_outside && isolation.protections.is_empty() {
        return;
    }
    out.push_str("\n## Isolation\n\n");
    if isolation.is_outside {
        out.push_str("The agent runs elsewhere, outside of the sandbox.\n\n");
    }
    if !isolation.protections.is_empty() {
        out.push_str("| Protection | Held by |\n|---|---|\n");
        for protection in &isolation.protections {
            let state = protection.state.to_string();
            out.push_str(&format!("| {} | {} |\n", escaped(&protection.name, NAME), escaped(&state, NAME)));
        }
    }
}

/// A text on one line, without a meaning for Markdown or HTML, and without mentions of users.
fn escaped(text: &str, width: usize) -> String {
    let mut out = String::new();
    for character in visible(&shown(text, width)).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' => {
                out.push('\\');
                out.push(character);
            }
            _ => out.push(character),
        }
    }
    out
}

/// A block of literal text, with a fence that the text does not have.
fn fenced(text: &str) -> String {
    let mut longest = 0;
    let mut current = 0;
    for character in text.chars() {
        current = if character == '`' { current + 1 } else { 0 };
        longest = longest.max(current);
    }
    let fence = "`".repeat(3.max(longest + 1));
    format!("{fence}text\n{text}\n{fence}")
}
