//! Output for people: calm text; data on stdout, everything else on stderr. Colours are always written and taken away again by the
//! stream unless it is a terminal that shows them.

pub mod live;

use std::fmt::Display;
use std::io::{IsTerminal, Write};

use owo_colors::OwoColorize;
use proctor_core::decision::Effect;
use proctor_core::json::Json;

use crate::failure::Failure;

pub use proctor_core::printable::shown;

/// Turns colours off on terminals that only show text (`TERM=dumb`), which `anstream` would colour wherever `CI` is set.
/// `CLICOLOR_FORCE` still holds.
pub fn choose_colours() {
    let forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    if !forced && std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
        anstream::ColorChoice::Never.write_global();
    }
}

/// Prints a line of data. A reader that has gone away ends the command quietly.
pub fn data(line: impl Display) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    writeln!(out, "{line}").map_err(|error| match error.kind() {
        std::io::ErrorKind::BrokenPipe => Failure { code: 0, lines: Vec::new() },
        _ => Failure::from(format!("stdout: {error}")),
    })
}

/// Prints a line to stderr.
pub fn note(line: &str) {
    talk(&format!("{} {line}", "proctor:".dimmed()));
}

/// Prints an error to stderr.
pub fn error(line: &str) {
    talk(&format!("{} {line}", "error:".red()));
}

/// Prints a line to stderr, above the live line if there is one.
fn talk(line: &str) {
    if !live::print_above(line) {
        let _ = writeln!(anstream::stderr().lock(), "{line}");
    }
}

/// Talk on stderr as it is, for programs that are not called `proctor`.
#[expect(clippy::print_stderr, reason = "this is where programs talk to people")]
pub fn note_plain(text: &str) {
    eprintln!("{text}");
}

/// A decision's word, coloured.
pub fn effect(effect: Effect) -> String {
    let word = effect.word();
    match effect {
        Effect::Allow => word.green().to_string(),
        Effect::Deny => word.red().to_string(),
        Effect::Ask | Effect::Defer => word.yellow().to_string(),
        Effect::Modify | Effect::Redact => word.cyan().to_string(),
    }
}

/// Dimmed text.
pub fn dim(text: &str) -> String {
    text.dimmed().to_string()
}

/// A progress bar on stderr for long work; hidden without a terminal.
pub fn progress(total: u64, what: &'static str) -> indicatif::ProgressBar {
    if !std::io::stderr().is_terminal() || total < 10_000 {
        return indicatif::ProgressBar::hidden();
    }
    let bar = indicatif::ProgressBar::new(total);
    if let Ok(style) =
        indicatif::ProgressStyle::with_template("{msg} {bar:40} {human_pos}/{human_len} {per_sec}")
    {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar
}

/// Prints rows as aligned columns.
pub fn table(rows: &[Vec<String>]) -> Result<(), Failure> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| visible_width(cell)).max().unwrap_or(0)
        })
        .collect();
    for row in rows {
        let mut line = String::new();
        for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
            line.push_str(cell);
            if index + 1 < row.len() {
                line.push_str(&" ".repeat(width.saturating_sub(visible_width(cell)) + 2));
            }
        }
        data(line.trim_end())?;
    }
    Ok(())
}

/// The width of a cell without the escape sequences that colour it.
fn visible_width(cell: &str) -> usize {
    anstream::adapter::strip_str(cell).to_string().chars().count()
}

/// The member as text, for printing.
pub fn member<'a>(value: &'a Json, name: &str) -> &'a str {
    value.get(name).and_then(Json::as_str).unwrap_or_default()
}
