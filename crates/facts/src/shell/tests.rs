//! Tests of the shell parser.

mod cases;
mod evaluated;
mod inputs;
mod laws;
mod limits;
mod programs;
mod properties;

use super::{ShellFacts, parse};

/// Parses any bytes and checks that every command's text is its words.
fn parse_any(data: &[u8]) -> ShellFacts {
    let facts = parse(&String::from_utf8_lossy(data));
    for command in &facts.commands {
        assert!(!command.words.is_empty() && command.text == command.words.join(" "), "{command:?}");
    }
    facts
}
