//! Shell command lines: the commands that would run, and the files that would be written, read and deleted.
//!
//! The parser never fails. It reads POSIX sh and the common bash extensions, and where the text does not say what
//! would happen (a command name from a variable, a script from a pipe, quoting that shells read differently) it says so
//! in [`ShellFacts::unknown`]. When two readings are possible it reports the larger one: a rule may see a command that
//! would not run, but must not miss one that would.

mod arguments;
mod brace;
mod builtin;
mod collect;
mod effects;
mod escape;
mod evaluate;
mod expansion;
mod grammar;
mod interpreter;
mod keyword;
mod lookahead;
mod reader;
mod redirect;
mod special;
mod unwrap;
mod variables;
mod word;
mod wrapper;

#[cfg(test)]
mod tests;

use collect::Collector;
use word::Word;

/// Command lines longer than this many bytes are not parsed.
pub const MAX_INPUT_BYTES: usize = 256 * 1024;

/// Beginning of the entries of `unknown` for what was not read at all.
pub const NOT_PARSED: &str = "not parsed";

/// Substitutions, groups, wrappers and code strings nested deeper than this are not parsed.
pub const MAX_DEPTH: usize = 32;

/// Result of parsing a command line. Lists hold each entry once, in the order it was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellFacts {
    /// The commands that would run; a wrapper such as `sudo` comes before the command it runs.
    pub commands: Vec<ShellCommand>,
    /// Files that would be written or created, as written, relative ones joined with a preceding `cd`.
    pub writes: Vec<String>,
    /// Files that would be read by redirection or by a well-known reading command.
    pub reads: Vec<String>,
    /// Files that would be deleted or moved away.
    pub deletes: Vec<String>,
    /// Parts that could not be determined, as `kind: detail`.
    pub unknown: Vec<String>,
    /// Words whose value is only known when they run.
    pub expansions: Vec<String>,
    /// Variables that are set for commands, as `NAME=value`.
    pub assignments: Vec<String>,
    /// Commands whose effects are not modelled, each by its text.
    pub opaque: Vec<String>,
}

/// A command that would run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ShellCommand {
    /// The argument vector after quote removal and comma-brace expansion; other expansions keep their source text.
    pub words: Vec<String>,
    /// The names of the wrappers (`sudo`, `env`, …) this command was found in, outermost first.
    pub wrappers: Vec<String>,
    /// The assignments before the command, such as `LD_PRELOAD=x`.
    pub assignments: Vec<String>,
    /// The words joined with single spaces: what rules match on.
    pub text: String,
    /// Whether a word holds an expansion, so that its real value is not known.
    pub has_expansion: bool,
}

/// Finds what a command line would do. Takes any text, never fails, and takes time bounded by the input's size.
pub fn parse(command: &str) -> ShellFacts {
    let mut collector = Collector::default();
    if command.len() > MAX_INPUT_BYTES {
        collector.note(NOT_PARSED, "the command is longer than 256 KiB");
        return collector.finish();
    }
    if command.contains('\0') {
        collector.note("control character", "the command contains a NUL byte");
    }
    reader::parse_code(&mut collector, command, false);
    collector.finish()
}

/// The operands of a known program, and its options with their values.
pub(crate) fn operands(program: &str, arguments: &[String]) -> (Vec<String>, Vec<(String, String)>) {
    let words: Vec<Word> = arguments.iter().map(|argument| Word::literal(argument)).collect();
    let found = arguments::read(&words, &effects::options_of(program), true);
    let values = found.values.iter().map(|(option, value)| (option.clone(), value.text())).collect();
    (found.operands.iter().map(Word::text).collect(), values)
}
