//! Listing for people: one line for each assertion, more about those that failed, and a summary.

use owo_colors::OwoColorize;

use crate::failure::Failure;
use crate::output::{self, shown};
use proctor_report::{Ending, Entry, Findings};

/// Width limits of the parts of a line.
const ID: usize = 40;
const EXPLANATION: usize = 200;
const DETAIL: usize = 500;

/// Width of a result in characters: `soft fail`.
const RESULT: usize = 9;

pub(super) fn print(findings: &Findings) -> Result<(), Failure> {
    let kind = |entry: &Entry| shown(&entry.kind, ID);
    let id = |entry: &Entry| shown(&entry.id, ID);
    let width = |text: &dyn Fn(&Entry) -> String, least: usize| {
        let widths = findings.entries.iter().map(|entry| text(entry).chars().count());
        widths.max().unwrap_or_default().max(least)
    };
    let (kinds, ids) = (width(&kind, 4), width(&id, 2));
    let head =
        format!("{:<RESULT$}  LAYER  {:<kinds$}  {:<ids$}  SCORE  EXPLANATION", "RESULT", "TYPE", "ID");
    output::data(head)?;
    for entry in &findings.entries {
        let result = coloured(entry.ending, &format!("{:<RESULT$}", entry.ending.shown()));
        let layer = entry.layer.map_or_else(|| "-".to_owned(), |layer| layer.to_string());
        let score = entry.score.map_or_else(|| "-".to_owned(), |score| format!("{score:.2}"));
        output::data(format!(
            "{result}  {layer:<5}  {:<kinds$}  {:<ids$}  {score:<5}  {}",
            kind(entry),
            id(entry),
            shown(entry.why(), EXPLANATION)
        ))?;
        for (name, text) in [
            ("at", &entry.path),
            ("expected", &entry.expected),
            ("actual", &entry.actual),
            ("try", &entry.suggestion),
        ] {
            if !text.is_empty() {
                let name = output::dim(&format!("{name:<8}"));
                output::data(format!("{:RESULT$}  {name}  {}", "", shown(text, DETAIL)))?;
            }
        }
    }
    output::data(summary(findings))
}

fn coloured(ending: Ending, text: &str) -> String {
    match ending {
        Ending::Pass => text.green().to_string(),
        Ending::SoftFail | Ending::NotRun => text.yellow().to_string(),
        Ending::HardFail | Ending::Error => text.red().to_string(),
    }
}

fn summary(findings: &Findings) -> String {
    let mut line = findings.counts().sentence();
    let cost = findings.cost_usd();
    if cost > 0.0 {
        line.push_str(&format!(", ${cost:.4}"));
    }
    if findings.simulated {
        line.push_str(" (simulated: this says nothing about an agent)");
    }
    if let Some(why) = findings.strict_failure() {
        line.push_str(&format!("; {why}"));
    }
    line
}
