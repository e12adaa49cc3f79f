//! Section about a test that did not pass in every run at once: attempts, reasons, last lines, timeline of events.

use maud::{Markup, html};
use proctor_runner::results::{TestResult, ending_word, hints};
use proctor_runner::run::RunResult;

use super::super::explain::{
    EventLine, MAX_RUNS, NAME, REASON, attempts, is_explained, last_lines, line, run_line, run_reasons,
    timeline, verdict, why,
};
use super::class;
use crate::html::prose;

/// Events of a run that the page shows.
const MAX_EVENTS: usize = 100;

/// Warnings of a run that the page shows.
const MAX_WARNINGS: usize = 20;

/// Width of the strip that shows when events happened.
const STRIP: f64 = 1000.0;

pub(super) fn section(anchor: &str, test: &TestResult) -> Markup {
    let explained = || test.runs.iter().filter(|run| is_explained(run));
    html! {
        section id=(anchor) {
            h3 {
                span.mark.(class(test)) { (verdict(test)) } " " (line(&test.name, NAME))
                @if test.name != test.id { " " code.quiet { (line(&test.id, NAME)) } }
            }
            @if let Some(sentence) = test.statistics().sentence() {
                p.quiet {
                    (test.passes()) " of " (test.runs.len()) " runs passed: " (sentence)
                    @if test.is_flaky() { ", " span.mark.soft_fail { "flaky" } }
                }
            }
            @if explained().next().is_none() { p { (why(test)) } }
            @for run in explained().take(MAX_RUNS) { (run_part(test, run)) }
            @if explained().count() > MAX_RUNS {
                p.about { (explained().count() - MAX_RUNS) " more runs that did not pass at once are in the JSON report only." }
            }
        }
    }
}

fn run_part(test: &TestResult, run: &RunResult) -> Markup {
    let lines = last_lines(run);
    let trace = run.trace_id.as_deref();
    html! {
        div.run {
            p.quiet {
                (run_line(run)) ", ended as " (ending_word(run.ending))
                @if let Some(cost) = run.measures.cost_usd { (format!(", ${cost:.4}")) }
                @if let Some(trace) = trace { ", trace " code { (line(trace, NAME)) } }
            }
            ul { @for reason in attempts(run).iter().chain(&run_reasons(run)) { li { (prose(reason)) } } }
            @for hint in hints(test, run) { p.quiet { (prose(&line(&hint, REASON))) } }
            @if !lines.is_empty() {
                p.quiet { "Last lines of standard error" }
                pre.lines { (lines.join("\n")) }
            }
            @for warning in run.warnings.iter().take(MAX_WARNINGS) {
                p.quiet { "Warning: " (prose(&line(warning, REASON))) }
            }
            @if !run.shown_events.is_empty() { (events(run)) }
        }
    }
}

fn events(run: &RunResult) -> Markup {
    let events = timeline(run, MAX_EVENTS);
    let more = run.events.saturating_sub(events.len());
    html! {
        details {
            summary {
                "Timeline: " (run.events) " events"
                @if run.flawed_events > 0 { ", " (run.flawed_events) " invalid or out of sequence" }
            }
            (strip(&events))
            ol.timeline {
                @for event in &events {
                    li.flawed[event.is_flawed] {
                        span.number { @if let Some(offset) = event.offset { (moment(offset)) } @else { "–" } }
                        span.kind.(kind_class(&event.kind)) { (event.kind) }
                        span.text { (event.text) @if event.is_flawed { " " span.mark.error { "invalid" } } }
                    }
                }
            }
            @if more > 0 { p.about { (more) " more events are not shown here." } }
        }
    }
}

/// A tick for each event at its time; none if all happened at once.
fn strip(events: &[EventLine]) -> Markup {
    let last = events.iter().filter_map(|event| event.offset).max().unwrap_or_default();
    html! {
        @if last > 0 {
            svg.strip viewBox=(format!("0 0 {STRIP} 12")) preserveAspectRatio="none" role="img" aria-label="Times of the events" {
                @for event in events {
                    @if let Some(offset) = event.offset {
                        @let x = (STRIP - 4.0) * offset as f64 / last as f64;
                        rect.(kind_class(&event.kind)) x=(format!("{x:.0}")) y="0" width="4" height="12" {}
                    }
                }
            }
        }
    }
}

fn kind_class(kind: &str) -> &'static str {
    match kind {
        "tool_call" => "tool",
        "llm_request" => "model",
        "error" => "error",
        _ => "other",
    }
}

fn moment(milliseconds: u64) -> String {
    if milliseconds < 1000 {
        format!("+{milliseconds} ms")
    } else {
        format!("+{:.1} s", milliseconds as f64 / 1000.0)
    }
}
