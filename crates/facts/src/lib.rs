//! Facts of an action: the canonical form that policy rules are evaluated on.
//!
//! [`normalise`] maps a tool's name to its canonical one, makes paths absolute and lexically clean, parses shell command lines, lists
//! the files of patches and the hosts of URLs. Whatever cannot be parsed is reported in [`Facts::unknown`], so that a rule can deny it.
//! The crate does no I/O: real paths come from a [`PathResolver`] that the caller supplies.
//!
//! ```
//! use proctor_core::action::Action;
//! use proctor_core::json::Json;
//! use proctor_facts::normalise;
//!
//! let sent = Json::parse(br#"{"tool": "Bash", "args": {"command": "sudo rm -rf build"}, "cwd": "/repo"}"#).unwrap();
//! let facts = normalise(&Action::from_json(&sent).unwrap(), None);
//! assert_eq!(facts.tool, "shell");
//! assert!(facts.commands.iter().any(|command| command == "rm -rf build"));
//! assert_eq!(facts.paths, ["/repo/build"]);
//! ```

pub mod patch;
pub mod path;
pub mod shell;
pub mod tool;
pub mod url;
pub mod workspace;

mod gather;
mod links;

use rust_decimal::Decimal;

use proctor_core::action::{Action, ActionKind};
use proctor_core::json::Json;

pub use workspace::Workspace;

/// The evaluator's semantic version. It names the tables and rules of this module, the language of conditions and the
/// time-zone rules: two evaluators with the same version give the same decision for the same read-set.
pub const SEMANTICS: &str = "3";

/// Facts of an action, which rules are evaluated on. Unknown members are empty, never missing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// Kind, as sent.
    pub kind: ActionKind,
    /// The tool's name, as sent.
    pub name: String,
    /// The tool's canonical name.
    pub tool: String,
    /// The arguments.
    pub args: Json,
    /// The result, for `tool_result`.
    pub result: Json,
    /// Further members of the message.
    pub metadata: Json,
    /// Operation on a file.
    pub operation: String,
    /// The file concerned, absolute and cleaned.
    pub path: String,
    /// The command line.
    pub command: String,
    /// The host concerned, lower-cased.
    pub host: String,
    /// The port; zero if unknown.
    pub port: u16,
    /// The URL concerned.
    pub url: String,
    /// The model.
    pub model: String,
    /// Prompt or other text.
    pub text: String,
    /// Expected tokens.
    pub tokens: u64,
    /// Expected cost in USD.
    pub cost_usd: Decimal,
    /// The directory that relative paths start from: the claimed one, else the workspace.
    pub cwd: String,
    /// The workspace that is pinned for the caller; empty if none is.
    pub workspace: String,
    /// Number of agents between this one and the root.
    pub depth: u32,
    /// The door that received it.
    pub door: String,
    /// Every path found, absolute and cleaned; real paths are added where a resolver knows them.
    pub paths: Vec<String>,
    /// Paths that would be written, created or deleted; a subset of `paths`.
    pub writes: Vec<String>,
    /// Every command found, wrappers taken off, words joined by single spaces.
    pub commands: Vec<String>,
    /// Every host found, lower-cased.
    pub hosts: Vec<String>,
    /// Descriptions of parts that were not understood.
    pub unknown: Vec<String>,
    /// Words of commands whose value is only known when they run: variables, globs, substitutions, operands from `xargs` or `find -exec`.
    pub expansions: Vec<String>,
    /// Variables that are set for commands, as `NAME=value`; a value that is not known is left empty.
    pub assignments: Vec<String>,
    /// Commands whose effects are not modelled, each by its text: build tools, interpreters that run a file, unknown programs.
    pub opaque: Vec<String>,
}

proctor_core::member_table! {
    /// A member of [`Facts`], by its name in conditions, modules and records.
    pub enum Fact of Facts {
        Kind = "kind": kind as ActionKind,
        Name = "name": name as String,
        Tool = "tool": tool as String,
        Args = "args": args as Json,
        Result = "result": result as Json,
        Metadata = "metadata": metadata as Json,
        Operation = "operation": operation as String,
        Path = "path": path as String,
        Command = "command": command as String,
        Host = "host": host as String,
        Port = "port": port as u16,
        Url = "url": url as String,
        Model = "model": model as String,
        Text = "text": text as String,
        Tokens = "tokens": tokens as u64,
        CostUsd = "cost_usd": cost_usd as Decimal,
        Cwd = "cwd": cwd as String,
        Workspace = "workspace": workspace as String,
        Depth = "depth": depth as u32,
        Door = "door": door as String,
        Paths = "paths": paths as Vec<String>,
        Writes = "writes": writes as Vec<String>,
        Commands = "commands": commands as Vec<String>,
        Hosts = "hosts": hosts as Vec<String>,
        Unknown = "unknown": unknown as Vec<String>,
        Expansions = "expansions": expansions as Vec<String>,
        Assignments = "assignments": assignments as Vec<String>,
        Opaque = "opaque": opaque as Vec<String>,
    }
}

/// Resolver of the real path behind a cleaned one. Only a door on the same host as the agent can have one.
pub trait PathResolver {
    /// The real path of an absolute one, which need not be clean, if it differs. Of a path that does not exist, links are followed as
    /// far as there are any.
    fn real_path(&self, path: &str) -> Option<String>;
}

/// Entry of `unknown` for a URL that cannot be parsed.
pub const UNREADABLE_URL: &str = "a URL that cannot be read";
/// Entry of `unknown` for a path that is too long to be one.
pub const LONG_PATH: &str = "a path of more than 4096 bytes";
/// Entry of `unknown` for a shell call without a recognisable command.
pub const NO_COMMAND: &str = "a shell call without a command that could be found";
/// The longest path that is looked up.
pub const MAX_PATH: usize = 4096;
/// Entry of `unknown` for a host that cannot be parsed.
pub const UNREADABLE_HOST: &str = "a host that cannot be read";
/// Entry of `unknown` for a relative path without a directory that it starts from.
pub const RELATIVE_PATH: &str = "a relative path, without a working directory or a workspace";
/// Entry of `unknown` for a tool for files without a path.
pub const NO_PATH: &str = "a tool for files without a path that could be found";
/// Entry of `unknown` for a tool that connects without a host.
pub const NO_HOST: &str = "a connection without a host that could be found";
/// Entry of `paths`, `writes` and `hosts` for one that could not be read: no path and no host is spelled so.
pub const UNREADABLE: &str = "?";
/// Entry of `unknown` for lists that were truncated.
pub const TOO_MANY_ENTRIES: &str = "more than 1024 paths, commands or hosts";

/// Whether an entry of `unknown` says that a part of a command line was not read at all: it was too long, or nested too deep. Any
/// command, path or host may be in it.
pub fn is_unread(unknown: &str) -> bool {
    unknown.starts_with(shell::NOT_PARSED)
}

/// Most entries of each list; further ones are dropped and reported in `unknown`.
pub const MAX_ENTRIES: usize = 1024;

/// Derives the facts of an action of a caller without a workspace.
pub fn normalise(action: &Action, resolver: Option<&dyn PathResolver>) -> Facts {
    normalise_in(action, Workspace { folder: "", resolver })
}

/// Derives the facts of an action.
pub fn normalise_in(action: &Action, workspace: Workspace<'_>) -> Facts {
    gather::facts(action, workspace)
}

#[cfg(test)]
mod tests;
