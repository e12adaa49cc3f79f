//! Shell command lines: the commands that would run, and the files that would be written, read and deleted.
//!
//! The parser never fails. It reads POSIX sh and the common bash extensions, and where the text does not say what
//! would happen (a command name from a variable, a script from a pipe, quoting that shells read differently) it says so
//! in [`ShellFacts::unknown`]. When two readings are possible it reports the larger one: a rule may see a command that
//! would not run, but must not miss one that would.

mod arguments;
mod awk;
mod brace;
mod builtin;
mod collect;
mod copies;
mod effects;
mod escape;
mod evaluate;
mod expansion;
mod external;
mod filters;
mod find;
mod git;
mod grammar;
mod input;
mod interpret;
mod interpreter;
mod keyword;
mod lookahead;
mod network;
mod notes;
mod opaque;
mod program;
mod reader;
mod redirect;
mod scripts;
mod sed;
mod special;
mod unwrap;
mod variables;
mod word;

#[cfg(test)]
mod tests;

use collect::Collector;

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
    /// Other paths that are named; most programs that name them only look at them.
    pub mentions: Vec<String>,
    /// Hosts that programs are given without a URL, as written.
    pub addresses: Vec<Address>,
    /// Links and copies that the command line makes.
    pub links: Vec<Link>,
    /// Parts that could not be determined, as `kind: detail`.
    pub unknown: Vec<String>,
    /// Words whose value is only known when they run.
    pub expansions: Vec<String>,
    /// Variables that are set for commands, as `NAME=value`.
    pub assignments: Vec<String>,
    /// Commands whose effects are not modelled, each by its text.
    pub opaque: Vec<String>,
}

/// A link or a copy that a command line makes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Link {
    /// Its path.
    pub path: String,
    /// The path that it leads to, or was copied from.
    pub target: String,
    /// Whether it is a copy, so that writing to it does not reach the target.
    pub is_copy: bool,
    /// Whether something is written to the path after it was made.
    pub is_written: bool,
}

/// A word that names a host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    /// The spelling that the program reads.
    pub form: AddressForm,
    /// The word, as written.
    pub text: String,
}

/// Spelling of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressForm {
    /// `host`, `user@host` or `host:port`.
    Host,
    /// A URL that may lack its scheme.
    Url,
    /// `host:path`.
    Remote,
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
    input::feed(&mut collector);
    collector.finish()
}
