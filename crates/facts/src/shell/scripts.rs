//! Code in other languages: scripts of sed and awk are followed, other code is noted.

use super::awk::{self, AwkEffect};
use super::collect::{Collector, Effect};
use super::opaque;
use super::sed::{self, SedEffect};
use super::unwrap::{Context, run_text};
use super::word::Word;

/// Records what code given to a program does.
pub(super) fn record(collector: &mut Collector, name: &str, code: &Word, context: &Context) {
    let text = code.text();
    match name {
        "sed" | "gsed" if !code.expands() => sed_script(collector, &text, context),
        "awk" | "gawk" | "mawk" | "nawk" if !code.expands() => awk_program(collector, &text, context),
        "sqlite3" | "sqlite" | "psql" if !code.expands() && is_query(&text) => {}
        _ => {
            collector.note("code", name);
            opaque::scan_code(collector, &text);
        }
    }
}

/// Whether the code is a query that touches nothing but the database.
fn is_query(sql: &str) -> bool {
    let lower = sql.to_ascii_lowercase();
    let shows = [
        ".schema",
        ".tables",
        ".databases",
        ".indexes",
        ".indices",
        ".mode",
        ".headers",
        ".help",
        ".show",
        ".dump",
        ".stats",
    ];
    let verb = lower.split_whitespace().next().unwrap_or_default();
    if shows.contains(&verb) && !lower.contains(['\n', '|', '/']) {
        return true;
    }
    let verb = lower.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    matches!(
        verb,
        "select"
            | "insert"
            | "update"
            | "delete"
            | "create"
            | "drop"
            | "alter"
            | "begin"
            | "commit"
            | "explain"
            | "with"
    ) && ![
        "writefile",
        "readfile",
        "load_extension",
        "attach",
        "vacuum",
        "edit(",
        "copy",
        "program",
        "pg_read",
        "lo_",
    ]
    .iter()
    .any(|part| lower.contains(part))
        && !lower.contains(['\\', '\n'])
}

fn sed_script(collector: &mut Collector, script: &str, context: &Context) {
    for effect in sed::effects(script) {
        match effect {
            SedEffect::Runs(code) => {
                collector.note("code", "sed");
                if !code.is_empty() {
                    run_text(collector, "sed", &code, context);
                }
            }
            SedEffect::Writes(file) => file_of_script(collector, Effect::Write, &file),
            SedEffect::Reads(file) => file_of_script(collector, Effect::Read, &file),
            SedEffect::Unreadable => {
                collector.note("code", "sed");
                opaque::scan_code(collector, script);
            }
        }
    }
}

fn awk_program(collector: &mut Collector, program: &str, context: &Context) {
    for effect in awk::effects(program) {
        match effect {
            AwkEffect::Runs(code) => {
                collector.note("code", "awk");
                match code {
                    Some(code) => run_text(collector, "awk", &code, context),
                    None => opaque::scan_code(collector, program),
                }
            }
            AwkEffect::Writes(Some(file)) => file_of_script(collector, Effect::Write, &file),
            AwkEffect::Reads(Some(file)) => file_of_script(collector, Effect::Read, &file),
            AwkEffect::Names(file) => collector.mention(&file),
            AwkEffect::Writes(None) | AwkEffect::Reads(None) | AwkEffect::Unreadable => {
                collector.note("code", "awk");
                opaque::scan_code(collector, program);
            }
        }
    }
}

/// A file that a script names. GNU awk connects for names such as `/inet/tcp/0/host/80`.
fn file_of_script(collector: &mut Collector, effect: Effect, file: &str) {
    if let Some(rest) = file.strip_prefix("/inet") {
        if let Some(host) = rest.split('/').nth(3) {
            collector.address(super::AddressForm::Host, host);
        }
        return;
    }
    collector.file(effect, &Word::literal(file));
}
