//! HTML report: one page without scripts and external resources, all text escaped.

use std::time::Duration;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use proctor_core::time::Timestamp;

use super::{Conclusion, Ending, Entry, Findings, details, visible};

pub(crate) const STYLE: &str = include_str!("html/style.css");

pub(super) fn page(findings: &Findings) -> String {
    let counts = findings.counts();
    let banner = banner(findings);
    let rows = failures_first(&findings.entries);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                title { (banner.word) " · " (visible(&findings.trace_id)) }
                style { (PreEscaped(STYLE)) }
            }
            body.simulation[findings.simulated] {
                header {
                    h1 { "Assertions" }
                    p.banner.(banner.class) { strong { (banner.word) } " " (prose(&banner.says)) }
                    dl.counts {
                        (count("assertions", counts.total, ""))
                        (count("passed", counts.passed, "pass"))
                        (count("soft fail", counts.soft_fail, "soft_fail"))
                        (count("hard fail", counts.hard_fail, "hard_fail"))
                        (count("error", counts.error, "error"))
                        (count("not run", counts.not_run, "not_run"))
                    }
                    p.about {
                        "Trace " code { (visible(&findings.trace_id)) }
                        " · " (moment(findings.made))
                        " · " (took(findings.took()))
                        @if findings.cost_usd() > 0.0 { " · " (format!("${:.4}", findings.cost_usd())) }
                    }
                }
                main {
                    div.wide tabindex="0" role="region" aria-label="Results" { (table(&rows)) }
                    @if rows.iter().any(|(_, entry)| has_details(entry)) {
                        h2 { "What to look at" }
                        @for (index, entry) in rows.iter().filter(|(_, entry)| has_details(entry)) {
                            (failure(*index, entry))
                        }
                    }
                }
                footer { "proctor " (env!("CARGO_PKG_VERSION")) }
            }
        }
    };
    page.into_string() + "\n"
}

/// Entries with their indexes, sorted: failed, soft failures, not run, passed.
fn failures_first(entries: &[Entry]) -> Vec<(usize, &Entry)> {
    let mut rows: Vec<(usize, &Entry)> = entries.iter().enumerate().collect();
    rows.sort_by_key(|(_, entry)| match entry.ending {
        Ending::HardFail | Ending::Error => 0,
        Ending::SoftFail => 1,
        Ending::NotRun => 2,
        Ending::Pass => 3,
    });
    rows
}

struct Banner {
    class: &'static str,
    word: &'static str,
    says: String,
}

fn banner(findings: &Findings) -> Banner {
    let counts = findings.counts();
    let mut says = counts.sentence();
    if let Some(why) = findings.strict_failure() {
        says.push_str(&format!("; {why}"));
    }
    if findings.simulated {
        let says = format!("These results say nothing about an agent: they come from a simulation. {says}");
        return Banner { class: "simulated", word: "Simulated", says };
    }
    match (findings.conclusion(), counts.soft_fail) {
        (Conclusion::Failed, _) => Banner { class: "failed", word: "Failed", says },
        (Conclusion::Undecided, _) => Banner { class: "undecided", word: "Not enough to decide", says },
        (Conclusion::Passed, 0) => Banner { class: "passed", word: "Passed", says },
        (Conclusion::Passed, _) => Banner { class: "soft", word: "Passed with soft failures", says },
    }
}

/// A moment, to the second.
pub(crate) fn moment(time: Timestamp) -> Markup {
    let written = time.to_string();
    // A fraction of a second tells nobody anything: `2026-01-31T12:00:00`.
    let second = written.get(..19).unwrap_or(&written);
    html! { time datetime={ (second) "Z" } { (second.replace('T', " ")) " UTC" } }
}

pub(crate) fn took(time: Duration) -> String {
    match time.as_millis() {
        0 => "under 1 ms".to_owned(),
        short @ 1..1000 => format!("{short} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

pub(crate) fn count(name: &str, count: usize, class: &str) -> Markup {
    html! {
        div class=[(count > 0 && !class.is_empty()).then_some(class)] { dt { (name) } dd { (count) } }
    }
}

fn table(rows: &[(usize, &Entry)]) -> Markup {
    html! {
        table {
            thead {
                tr {
                    th { "Result" } th { "Layer" } th { "Type" } th.name { "Assertion" } th { "Score" } th.why { "Why" }
                }
            }
            tbody {
                @for (index, entry) in rows {
                    tr {
                        td { (mark(entry.ending)) }
                        td.number { @if let Some(layer) = entry.layer { (layer) } }
                        td { (visible(&entry.kind)) }
                        td.name {
                            @if has_details(entry) {
                                a href={ "#" (anchor(*index)) } { code { (visible(&entry.id)) } }
                            } @else {
                                code { (visible(&entry.id)) }
                            }
                        }
                        td.number { @if let Some(score) = entry.score { (format!("{score:.2}")) } @else { "–" } }
                        td.why { (prose(entry.why())) }
                    }
                }
            }
        }
    }
}

/// The anchor of an assertion's details within the page, by its index: its own name may be any text.
fn anchor(index: usize) -> String {
    format!("assertion-{}", index + 1)
}

fn mark(ending: Ending) -> Markup {
    html! { span.mark.(ending.word()) { (ending.shown()) } }
}

/// A text in which what stands between backticks is code.
pub(crate) fn prose(text: &str) -> Markup {
    let text = visible(text);
    let parts: Vec<&str> = text.split('`').collect();
    // A backtick without its other half is only a backtick.
    let last = parts.len().saturating_sub(1);
    html! {
        @for (index, part) in parts.iter().enumerate() {
            @if index % 2 == 0 { (part) }
            @else if index == last { "`" (part) }
            @else { code { (part) } }
        }
    }
}

fn has_details(entry: &Entry) -> bool {
    !matches!(entry.ending, Ending::Pass | Ending::NotRun)
}

fn failure(index: usize, entry: &Entry) -> Markup {
    html! {
        section id=(anchor(index)) {
            h3 { (mark(entry.ending)) " " code { (visible(&entry.id)) } }
            p { (prose(entry.why())) }
            dl.details {
                @for (name, text) in details(entry) {
                    dt { (name) }
                    dd { @if name == "try" { (prose(text)) } @else { pre { (visible(text)) } } }
                }
            }
        }
    }
}
