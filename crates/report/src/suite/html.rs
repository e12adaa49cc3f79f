//! HTML report of a suite: one page without scripts and external resources, all text escaped, bounded in size.

mod chart;
mod comparison;
mod failure;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use proctor_runner::results::{State, SuiteStatistics, TestResult};
use proctor_runner::scoring::Verdict;

use super::explain::{NAME, REASON, line, needs_explanation, verdict, why};
use super::{SuiteConclusion, SuiteReport};
use crate::html::{STYLE, count, moment, prose, took};

const SUITE_STYLE: &str = include_str!("html/suite.css");

/// Bytes of the sections about tests that did not pass. With the table of 2,000 tests the page stays below 10 MB.
const MAX_SECTION_BYTES: usize = 6 << 20;

/// Rows of the table of tests.
const MAX_ROWS: usize = 5000;

/// Characters of a reason in the table.
const WHY: usize = 300;

pub(super) fn page(report: &SuiteReport<'_>) -> String {
    let result = report.result;
    let conclusion = report.conclusion();
    let counts = result.counts();
    let statistics = result.statistics();
    let rows = failures_first(&result.tests);
    let sections = sections(&rows);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                title { (conclusion.shown()) " · " (line(&result.suite, NAME)) }
                style { (PreEscaped(STYLE)) (PreEscaped(SUITE_STYLE)) }
            }
            body {
                header {
                    h1 { (line(&result.suite, NAME)) }
                    p.banner.(banner_class(conclusion)) { strong { (conclusion.shown()) } " " (prose(&says(report))) }
                    dl.counts {
                        (count("tests", result.tests.len(), ""))
                        (count("passed", counts.passed, "pass"))
                        (count("failed", counts.failed, "hard_fail"))
                        (count("error", counts.errors, "error"))
                        (count("not run", counts.not_run, "not_run"))
                        (count("flaky", statistics.flaky.len(), "soft_fail"))
                    }
                    p.about {
                        "Agent " code { (line(&result.agent, NAME)) }
                        @if !result.file.is_empty() { " · suite " code { (line(&result.file, NAME)) } }
                        @if let Some(ended) = result.ended { " · " (moment(ended)) }
                        " · " (took(result.took))
                        @if let Some(cost) = statistics.cost_usd { " · " (format!("${cost:.4}")) }
                    }
                }
                main {
                    @if let Some(compared) = report.comparison { (comparison::section(compared, &result.tests)) }
                    h2 { "Scores" }
                    div.charts { (chart::histogram(&result.tests)) (numbers(&statistics)) }
                    h2 { "Tests" }
                    (table(&rows, sections.len()))
                    @if !sections.is_empty() {
                        h2 { "What to look at" }
                        @for section in &sections { (PreEscaped(section)) }
                        @let left = rows.iter().filter(|(_, test)| needs_explanation(test)).count() - sections.len();
                        @if left > 0 { p.about { (left) " more tests are explained in the JSON report only." } }
                    }
                    (isolation(report))
                }
                footer { "proctor " (env!("CARGO_PKG_VERSION")) }
            }
        }
    };
    page.into_string() + "\n"
}

/// Tests with their indexes, sorted: failed and errors, not run, flaky, passed.
fn failures_first(tests: &[TestResult]) -> Vec<(usize, &TestResult)> {
    let mut rows: Vec<(usize, &TestResult)> = tests.iter().enumerate().collect();
    rows.sort_by_key(|(_, test)| match test.verdict {
        Some(Verdict::Failed | Verdict::Error) => 0,
        None => 2,
        Some(Verdict::Passed) if needs_explanation(test) => 1,
        Some(Verdict::Passed) => 3,
    });
    rows
}

/// Sections about tests that did not pass in every run, until the page is full.
fn sections(rows: &[(usize, &TestResult)]) -> Vec<String> {
    let mut left = MAX_SECTION_BYTES;
    let mut sections = Vec::new();
    for (index, test) in rows.iter().filter(|(_, test)| needs_explanation(test)) {
        let section = failure::section(&anchor(*index), test).into_string();
        let Some(rest) = left.checked_sub(section.len()) else { break };
        left = rest;
        sections.push(section);
    }
    sections
}

fn banner_class(conclusion: SuiteConclusion) -> &'static str {
    match conclusion {
        SuiteConclusion::Passed => "passed",
        SuiteConclusion::Failed | SuiteConclusion::Regression => "failed",
        SuiteConclusion::Undecided | SuiteConclusion::Interrupted => "undecided",
    }
}

fn says(report: &SuiteReport<'_>) -> String {
    let counts = report.result.counts().sentence();
    let decision = report.comparison.map(proctor_runner::comparison::BaselineComparison::decision);
    match decision {
        Some(decision) => format!("{counts}; {decision}"),
        None => counts,
    }
}

/// Statistics of the suite.
fn numbers(statistics: &SuiteStatistics) -> Markup {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    html! {
        dl.details.numbers {
            @if let Some(score) = statistics.score {
                dt { "mean score" }
                dd {
                    (format!("{:.2}", score.mean))
                    @if let Some(interval) = score.interval {
                        " (95 %: " (format!("{:.2}", interval.low.max(0.0))) " to " (format!("{:.2}", interval.high.min(100.0))) ")"
                    }
                }
                @if let Some(deviation) = score.deviation {
                    dt { "deviation among tests" } dd { (format!("{deviation:.2}")) }
                }
            }
            @if let Some(success) = statistics.success {
                dt { "runs that passed" }
                dd {
                    (success.successes) " of " (success.runs) ", " (percent(success.rate))
                    " (95 %: " (percent(success.interval.low)) " to " (percent(success.interval.high)) ")"
                }
            }
            @if statistics.errors > 0 { dt { "runs in error" } dd { (statistics.errors) } }
            @for pass in &statistics.pass {
                dt { "pass@" (pass.k) ", pass^" (pass.k) } dd { (percent(pass.any)) ", " (percent(pass.all)) }
            }
            @let stability = statistics.stability;
            @if statistics.runs > statistics.tests {
                dt { "stability" }
                dd {
                    (stability.stable) " stable, " (stability.moderate) " moderate, "
                    (stability.unstable) " unstable, " (stability.critical) " critical"
                }
            }
        }
    }
}

fn table(rows: &[(usize, &TestResult)], sections: usize) -> Markup {
    let mut explained = 0;
    let rows_with_links: Vec<(usize, &TestResult, bool)> = rows
        .iter()
        .take(MAX_ROWS)
        .map(|(index, test)| {
            // Sections follow the order of the rows, so that the first ones have a section.
            let has_section = needs_explanation(test) && explained < sections;
            explained += usize::from(has_section);
            (*index, *test, has_section)
        })
        .collect();
    html! {
        div.wide tabindex="0" role="region" aria-label="Tests" {
            table.tests {
                colgroup { col.c-result; col.c-test; col.c-score; col.c-runs; col.c-time; col; }
                thead { tr { th { "Result" } th { "Test" } th { "Score" } th { "Runs" } th { "Time" } th { "Why" } } }
                tbody {
                    @for (index, test, has_section) in &rows_with_links { (row(*index, test, *has_section)) }
                }
            }
        }
        @if rows.len() > MAX_ROWS { p.about { (rows.len() - MAX_ROWS) " more tests are in the JSON report only." } }
    }
}

fn row(index: usize, test: &TestResult, has_section: bool) -> Markup {
    let name = line(&test.name, NAME);
    html! {
        tr {
            td { span.mark.(class(test)) { (verdict(test)) } }
            td.name {
                @if has_section { a href={ "#" (anchor(index)) } { (name) } } @else { (name) }
                @if test.name != test.id { " " code.quiet { (line(&test.id, NAME)) } }
            }
            td.score { (chart::score(test)) }
            td.number {
                @if test.runs.is_empty() { "–" } @else { (test.passes()) "/" (test.runs.len()) }
                @if test.is_flaky() { " " span.mark.soft_fail { "flaky" } }
            }
            td.number { (took(test.took)) }
            td.why { (prose(&line(&why(test), WHY))) }
        }
    }
}

/// The class of a test's verdict, as the style sheet names it.
fn class(test: &TestResult) -> &'static str {
    match test.verdict {
        Some(Verdict::Passed) => "pass",
        Some(Verdict::Failed) => "hard_fail",
        Some(Verdict::Error) => "error",
        None => "not_run",
    }
}

/// The anchor of a test's section within the page, by its index: its own id may be any text.
fn anchor(index: usize) -> String {
    format!("test-{}", index + 1)
}

fn isolation(report: &SuiteReport<'_>) -> Markup {
    let isolation = &report.result.isolation;
    let open = report.result.tests.iter().filter(|test| test.network).count();
    html! {
        @if isolation.is_outside || !isolation.protections.is_empty() {
            h2 { "Isolation" }
            @if isolation.is_outside {
                p { "The agent runs elsewhere: these protections do not reach it. They hold for commands of checks." }
            }
            @if open > 0 { p { (open) " tests allow the agent to use the network." } }
            dl.details {
                @for protection in &isolation.protections {
                    dt { (line(&protection.name, NAME)) }
                    dd class=[matches!(protection.state, State::Missing(_)).then_some("error")] {
                        (line(&protection.state.to_string(), REASON))
                    }
                }
            }
        }
    }
}
