//! The report as one page for people: no scripts, nothing loaded from anywhere, everything escaped.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{Ending, Entry, Findings, details, visible};

const STYLE: &str = include_str!("html/style.css");

pub(super) fn page(findings: &Findings) -> String {
    let counts = findings.counts();
    let banner = banner(findings);
    let failures: Vec<&Entry> = findings.entries.iter().filter(|entry| has_details(entry)).collect();
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
            body {
                header {
                    h1 { "Assertions" }
                    p.banner.(banner.class) { strong { (banner.word) } " " (banner.says) }
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
                        " · " time { (findings.made.to_string()) }
                        " · " (format!("{:.3} s", findings.took().as_secs_f64()))
                        " · " (format!("${:.4}", findings.cost_usd()))
                    }
                }
                main {
                    div.wide { (table(&findings.entries)) }
                    @if !failures.is_empty() {
                        h2 { "What to look at" }
                        @for entry in failures { (failure(entry)) }
                    }
                }
                footer { "proctor " (env!("CARGO_PKG_VERSION")) }
            }
        }
    };
    page.into_string() + "\n"
}

struct Banner {
    class: &'static str,
    word: &'static str,
    says: String,
}

fn banner(findings: &Findings) -> Banner {
    let counts = findings.counts();
    let failed = counts.hard_fail + counts.error + counts.not_run > 0;
    if findings.simulated {
        let says = "These results say nothing about an agent: they come from a simulation.".to_owned();
        return Banner { class: "simulated", word: "Simulated", says };
    }
    let says = counts.sentence();
    match (failed, counts.soft_fail) {
        (true, _) => Banner { class: "failed", word: "Failed", says },
        (false, 0) => Banner { class: "passed", word: "Passed", says },
        (false, _) => Banner { class: "soft", word: "Passed with soft failures", says },
    }
}

fn count(name: &str, count: usize, class: &str) -> Markup {
    html! {
        div class=[(count > 0 && !class.is_empty()).then_some(class)] { dt { (name) } dd { (count) } }
    }
}

fn table(entries: &[Entry]) -> Markup {
    html! {
        table {
            thead {
                tr { th { "Result" } th { "Layer" } th { "Type" } th { "Assertion" } th { "Score" } th { "Why" } }
            }
            tbody {
                @for entry in entries {
                    tr {
                        td { (mark(entry.ending)) }
                        td { @if let Some(layer) = entry.layer { (layer) } }
                        td { (visible(&entry.kind)) }
                        td { code { (visible(&entry.id)) } }
                        td.number { @if let Some(score) = entry.score { (format!("{score:.2}")) } @else { "–" } }
                        td { (visible(&entry.explanation)) }
                    }
                }
            }
        }
    }
}

fn mark(ending: Ending) -> Markup {
    html! { span.mark.(ending.word()) { (ending.shown()) } }
}

fn has_details(entry: &Entry) -> bool {
    !matches!(entry.ending, Ending::Pass | Ending::NotRun)
}

fn failure(entry: &Entry) -> Markup {
    html! {
        section {
            h3 { (mark(entry.ending)) " " code { (visible(&entry.id)) } }
            p { (visible(&entry.explanation)) }
            dl.details {
                @for (name, text) in details(entry) { dt { (name) } dd { pre { (visible(text)) } } }
            }
        }
    }
}
