//! Command line of the protocol's program: one table of commands, read strictly.
//!
//! Unknown, repeated and valueless options, values of switches (`--json=true`) and surplus words are errors.

mod table;

use std::collections::BTreeMap;

pub use table::{COMMANDS, CommandSpec, ELSEWHERE};
use table::{GLOBALS, Kind, OptionSpec};

/// A command of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is described by its summary in the table of commands")]
pub enum Command {
    Version,
    Help,
    Schema,
    Describe,
    Targets,
    Paths,
    Validate,
    Compile,
    Plan,
    Apply,
    Inspect,
    Convert,
    Exec,
    Run,
    Audit,
    Verify,
    ApprovalsList,
    RegistryList,
    RegistryAdd,
    RegistryShow,
    RegistryRemove,
    IdentityProviders,
    IdentitySchema,
    IdentityResolve,
    IdentityValidateDelegation,
    ProofMethods,
    ProofSchema,
    ProofVerify,
    AuthorizationProviders,
    AuthorizationSchema,
    AuthorizationEvaluate,
    EvidenceProviders,
    EvidenceSchema,
    Whoami,
    Serve,
}

/// A command with its words and options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The command.
    pub command: Command,
    /// Words that are no options, in order.
    pub words: Vec<String>,
    options: BTreeMap<&'static str, Option<String>>,
}

impl Invocation {
    /// Whether a switch is given.
    pub fn has(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    /// The value of an option.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.options.get(name)?.as_deref()
    }

    /// The word at a position.
    pub fn word(&self, position: usize) -> Option<&str> {
        self.words.get(position).map(String::as_str)
    }
}

/// Error of a command line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// No command has this name.
    #[error("there is no command `{0}`: `help` lists them")]
    UnknownCommand(String),
    /// A command of the released program that Proctor does differently.
    #[error("`{command}` is not a command here: {instead}")]
    Elsewhere {
        /// The command.
        command: &'static str,
        /// The way to do it with Proctor.
        instead: &'static str,
    },
    /// The command has no such option.
    #[error("`{command}` has no option `{option}`")]
    UnknownOption {
        /// The command.
        command: String,
        /// The option as given.
        option: String,
    },
    /// An option was given twice.
    #[error("`--{0}` is given twice")]
    Repeated(&'static str),
    /// An option has no value.
    #[error("`--{0}` needs a value")]
    WithoutValue(&'static str),
    /// A switch was given a value.
    #[error("`--{0}` takes no value")]
    SwitchWithValue(&'static str),
    /// A word is missing.
    #[error("`{command}` needs {word}")]
    MissingWord {
        /// The command.
        command: String,
        /// Name of the word.
        word: &'static str,
    },
    /// The format that the environment names does not exist.
    #[error("AGENTCLI_OUTPUT is `{0}`: it may be `json`, `pretty` or `ndjson`")]
    UnknownFormat(String),
    /// Two options contradict each other.
    #[error("`--{0}` and `--{1}` exclude each other")]
    Contradiction(&'static str, &'static str),
    /// There are too many words.
    #[error("`{word}` is one word too many for `{command}`")]
    SurplusWord {
        /// The command.
        command: String,
        /// The word.
        word: String,
    },
}

impl ArgumentError {
    /// Whether the command itself is unknown, which has a code of its own.
    pub fn is_unknown_command(&self) -> bool {
        matches!(self, ArgumentError::UnknownCommand(_) | ArgumentError::Elsewhere { .. })
    }
}

/// Reads the words after the program's name.
pub fn parse(arguments: &[String]) -> Result<Invocation, ArgumentError> {
    let mut rest = arguments;
    // Global options may stand before the command.
    let mut options = BTreeMap::new();
    while let Some((first, others)) = rest.split_first()
        && first.starts_with('-')
        && !matches!(first.as_str(), "-" | "-h" | "--help" | "-v" | "--version")
    {
        rest = take_option("agentcli", GLOBALS, first, others, &mut options)?;
    }
    let (spec, mut rest) = command(rest)?;
    let name = spec.name.join(" ");
    let mut words = Vec::new();
    let mut only_words = false;
    while let Some((first, others)) = rest.split_first() {
        if only_words || first == "-" || !first.starts_with('-') {
            words.push(first.clone());
            rest = others;
        } else if first == "--" {
            only_words = true;
            rest = others;
        } else if matches!(first.as_str(), "-h" | "--help") {
            let words = vec![name];
            return Ok(Invocation { command: Command::Help, words, options });
        } else {
            rest = take_option(&name, spec.options, first, others, &mut options)?;
        }
    }
    if spec.command == Command::Help && !words.is_empty() {
        // `help registry add` means what `registry add --help` means.
        let (named, surplus) = command(&words)?;
        if let Some(word) = surplus.first() {
            return Err(ArgumentError::SurplusWord { command: name, word: word.clone() });
        }
        words = vec![named.name.join(" ")];
    }
    if let Some(word) = spec.words.get(words.len()).filter(|_| words.len() < spec.required) {
        return Err(ArgumentError::MissingWord { command: name, word });
    }
    if let Some(word) = words.get(spec.words.len()) {
        return Err(ArgumentError::SurplusWord { command: name, word: word.clone() });
    }
    if options.contains_key("root") && options.contains_key("all-roots") {
        return Err(ArgumentError::Contradiction("root", "all-roots"));
    }
    Ok(Invocation { command: spec.command, words, options })
}

/// The command that the first words name, and the words after its name.
fn command(words: &[String]) -> Result<(&'static CommandSpec, &[String]), ArgumentError> {
    let first = match words.first().map(String::as_str) {
        None | Some("-h" | "--help") => "help",
        Some("-v" | "--version") => "version",
        Some(first) => first,
    };
    let starts = |name: &[&str]| {
        name.first() == Some(&first)
            && name.iter().skip(1).zip(words.iter().skip(1)).filter(|(a, b)| **a == b.as_str()).count() + 1
                == name.len()
    };
    if let Some((name, instead)) = ELSEWHERE.iter().find(|(name, _)| {
        let parts: Vec<&str> = name.split(' ').collect();
        starts(&parts)
    }) {
        return Err(ArgumentError::Elsewhere { command: name, instead });
    }
    match COMMANDS.iter().find(|spec| starts(spec.name)) {
        Some(spec) => Ok((spec, words.get(spec.name.len()..).unwrap_or_default())),
        None => {
            let is_group =
                COMMANDS.iter().any(|spec| spec.name.len() > 1 && spec.name.first() == Some(&first));
            let shown =
                words.iter().take(if is_group { 2 } else { 1 }).cloned().collect::<Vec<_>>().join(" ");
            Err(ArgumentError::UnknownCommand(shown))
        }
    }
}

/// Reads one option, and its value from the word itself or the next one; returns the words after it.
fn take_option<'a>(
    command: &str,
    specs: &'static [OptionSpec],
    word: &str,
    rest: &'a [String],
    options: &mut BTreeMap<&'static str, Option<String>>,
) -> Result<&'a [String], ArgumentError> {
    let (name, value) = match word.strip_prefix("--").unwrap_or_default().split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (word.strip_prefix("--").unwrap_or_default(), None),
    };
    let found = specs.iter().chain(GLOBALS).find(|spec| spec.name == name || spec.alias == Some(name));
    let Some(OptionSpec { name, kind, .. }) = found.filter(|_| !name.is_empty()) else {
        return Err(ArgumentError::UnknownOption { command: command.to_owned(), option: word.to_owned() });
    };
    let (value, rest) = match (kind, value) {
        (Kind::Switch, None) => (None, rest),
        (Kind::Switch, Some(_)) => return Err(ArgumentError::SwitchWithValue(name)),
        (Kind::Value, Some(value)) if !value.is_empty() => (Some(value), rest),
        (Kind::Value, Some(_)) => return Err(ArgumentError::WithoutValue(name)),
        (Kind::Value, None) => match rest.split_first() {
            Some((value, rest)) if !value.starts_with("--") && !value.is_empty() => {
                (Some(value.clone()), rest)
            }
            _ => return Err(ArgumentError::WithoutValue(name)),
        },
    };
    if options.insert(name, value).is_some() {
        return Err(ArgumentError::Repeated(name));
    }
    Ok(rest)
}

/// The value of `--home`, which is needed before anything else is read.
pub fn home(arguments: &[String]) -> Option<String> {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if word == "--home" {
            return words.next().cloned();
        }
        if let Some(value) = word.strip_prefix("--home=") {
            return Some(value.to_owned());
        }
    }
    None
}

/// The commands, each with its words and what it is for, for the help of a program that has them.
pub fn overview() -> String {
    let names: Vec<String> = COMMANDS.iter().map(|spec| spec.name.join(" ")).collect();
    let width = names.iter().map(String::len).max().unwrap_or_default();
    let lines =
        names.iter().zip(COMMANDS).map(|(name, spec)| format!("    {name:<width$}  {}", spec.summary));
    lines.collect::<Vec<_>>().join("\n")
}

/// Usage of the program, or of one command.
pub fn usage(program: &str, command: Option<&str>) -> String {
    let chosen = COMMANDS.iter().filter(|spec| command.is_none_or(|name| spec.name.join(" ") == name));
    let mut lines = Vec::new();
    for spec in chosen {
        let mut line = format!("  {program} {}", spec.name.join(" "));
        for (position, word) in spec.words.iter().enumerate() {
            let shown = if position < spec.required { (*word).to_owned() } else { format!("[{word}]") };
            line.push_str(&format!(" {shown}"));
        }
        lines.push(line);
        lines.push(format!("      {}", spec.summary));
        if command.is_some() {
            for option in spec.options.iter().chain(GLOBALS) {
                let value = if option.kind == Kind::Value { " VALUE" } else { "" };
                lines.push(format!("      --{}{value}  {}", option.name, option.meaning));
            }
        }
    }
    if command.is_none() {
        lines.push(String::new());
        lines.push(
            "INPUT is a file, a name in the registry, a JSON text, or `-` for standard input.".to_owned(),
        );
        lines.push(format!("Options of a command: {program} COMMAND --help"));
    }
    format!("usage:\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests;
