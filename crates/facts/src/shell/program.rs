//! Table of the programs whose effects are modelled.
//!
//! An entry says what each option and operand of a program is: a file that is read or written, a host, a command line, text.
//! An option that is not in its entry makes the command opaque, as a program without an entry is. To add a program, add an entry
//! to the table of its theme.

mod archives;
mod builds;
mod builtins;
mod files;
mod network;
mod system;
mod text;
mod vcs;
mod wrappers;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::LazyLock;

/// Meaning of an option's value or of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    /// The option has no value, or only one that is attached and means nothing here.
    Flag,
    /// Text without an effect of its own; what looks like a path in it is mentioned.
    Text,
    /// A pattern, format or script that is no path even if it looks like one.
    Pattern,
    /// A file that is read.
    Read,
    /// A file that is written, or a directory in which files are.
    Write,
    /// A file that is deleted.
    Delete,
    /// A directory that other relative paths may start from.
    Directory,
    /// `host`, `user@host` or `host:port`.
    Host,
    /// A URL that may lack its scheme.
    Url,
    /// `host:path`, or a file that is read.
    Remote,
    /// `host:path`, or a file that is written.
    RemoteTarget,
    /// A command line of the shell.
    Code,
    /// Code in another language.
    Foreign,
    /// A file that lists more operands.
    List,
    /// A file with settings or code: nothing is known of its effects.
    Config,
    /// A setting of ssh, `Key=value`.
    Ssh,
    /// A setting of git, `key=value`.
    Git,
    /// `NAME=value` in the environment.
    Assign,
    /// Data, or a file after `@`.
    Data,
    /// Two words: a name, and text.
    NamedText,
    /// Two words: a name, and a file that is read.
    NamedRead,
    /// Anything: makes the command opaque.
    Opaque,
}

/// Command that the operands of a wrapper are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Runs {
    /// Operands between the options and the command.
    pub(super) skip: usize,
    /// Whether `name=value` words come before the command.
    pub(super) assignments: bool,
}

/// Argument layout of a program, or of a subcommand (`git diff`).
#[derive(Debug)]
pub(super) struct Program {
    names: &'static [&'static str],
    /// Options by meaning. In a text, `-abc` are the short options a, b and c, other words are long options; `?` at the end of a
    /// word says that the value is optional and must be attached.
    options: &'static [(Value, &'static str)],
    /// Further options, which several programs have.
    shared: &'static [(Value, &'static str)],
    /// The first operands.
    pub(super) first: &'static [Value],
    /// Options that take the place of the first operands.
    pub(super) unless: &'static [&'static str],
    /// The operands after the first ones.
    pub(super) rest: Value,
    /// The last operand, if there are two or more.
    pub(super) last: Option<Value>,
    /// Whether options end at the first operand.
    pub(super) stops: bool,
    /// Whether long options start with one dash.
    pub(super) single_dash: bool,
    /// Whether its effects are not known whatever its arguments are, because it runs what files say.
    pub(super) opaque: bool,
    /// Whether other options are plain flags.
    pub(super) lenient: bool,
    /// Whether the first operand is a subcommand.
    pub(super) subcommands: bool,
    /// Whether standard input is code.
    pub(super) reads_code: bool,
    /// Whether words have no effect: what they hold is printed or compared.
    pub(super) pure: bool,
    /// Whether it is a command of the shell itself.
    pub(super) builtin: bool,
    pub(super) runs: Option<Runs>,
}

/// Starts an entry: the names, and what operands are.
const fn program(names: &'static [&'static str], rest: Value) -> Program {
    Program {
        names,
        options: &[],
        shared: &[],
        first: &[],
        unless: &[],
        rest,
        last: None,
        stops: false,
        single_dash: false,
        opaque: false,
        lenient: false,
        subcommands: false,
        reads_code: false,
        pure: false,
        builtin: false,
        runs: None,
    }
}

/// Starts the entry of a program that runs the command given by its operands.
const fn wrapper(names: &'static [&'static str], skip: usize) -> Program {
    let mut entry = program(names, Value::Text);
    entry.stops = true;
    entry.runs = Some(Runs { skip, assignments: false });
    entry
}

impl Program {
    const fn options(mut self, options: &'static [(Value, &'static str)]) -> Self {
        self.options = options;
        self
    }

    const fn shared(mut self, shared: &'static [(Value, &'static str)]) -> Self {
        self.shared = shared;
        self
    }

    const fn first(mut self, first: &'static [Value], unless: &'static [&'static str]) -> Self {
        self.first = first;
        self.unless = unless;
        self
    }

    const fn last(mut self, last: Value) -> Self {
        self.last = Some(last);
        self
    }

    const fn stops(mut self) -> Self {
        self.stops = true;
        self
    }

    const fn single_dash(mut self) -> Self {
        self.single_dash = true;
        self
    }

    const fn opaque(mut self) -> Self {
        self.opaque = true;
        self
    }

    const fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }

    const fn subcommands(mut self) -> Self {
        self.subcommands = true;
        self.stops = true;
        self
    }

    const fn reads_code(mut self) -> Self {
        self.reads_code = true;
        self
    }

    const fn pure(mut self) -> Self {
        self.pure = true;
        self.lenient = true;
        self
    }

    const fn builtin(mut self) -> Self {
        self.builtin = true;
        self.lenient = true;
        self
    }

    const fn assignments(mut self) -> Self {
        if let Some(runs) = &mut self.runs {
            runs.assignments = true;
        }
        self
    }

    /// Meaning of a short option, and whether its value is optional.
    pub(super) fn short(&self, option: char) -> Option<(Value, bool)> {
        let known = match self.index() {
            Some(index) => index.shorts.get(&option).copied(),
            None => self.short_options().find(|(letter, _)| *letter == option).map(|(_, meaning)| meaning),
        };
        known.or(self.lenient.then_some((Value::Flag, false)))
    }

    /// The long option of exactly this name.
    pub(super) fn exact(&self, name: &str) -> Option<(&'static str, Value, bool)> {
        match self.index() {
            Some(index) => {
                let (full, (kind, optional)) = index.longs.get_key_value(name)?;
                Some((full, *kind, *optional))
            }
            None => self.long_options().find(|(full, _, _)| *full == name),
        }
    }

    /// The long option that a name or a beginning of it means. `None` if there is none, or several that differ in meaning.
    pub(super) fn long(&self, name: &str) -> Option<(&'static str, Value, bool)> {
        if let Some(exact) = self.exact(name) {
            return Some(exact);
        }
        let mut candidates =
            self.long_options().filter(|(full, _, _)| !name.is_empty() && full.starts_with(name));
        let first = candidates.next()?;
        candidates.all(|other| (other.1, other.2) == (first.1, first.2)).then_some(first)
    }

    /// The options by name; only entries of the tables have it.
    fn index(&self) -> Option<&'static Index> {
        INDEX.get(&std::ptr::from_ref(self).addr())
    }

    fn short_options(&self) -> impl Iterator<Item = (char, (Value, bool))> {
        self.options.iter().chain(self.shared).flat_map(|(kind, names)| {
            names.split(' ').map(without_mark).flat_map(move |(token, optional)| {
                let letters = token.strip_prefix('-').unwrap_or_default();
                letters.chars().map(move |letter| (letter, (*kind, optional)))
            })
        })
    }

    fn long_options(&self) -> impl Iterator<Item = (&'static str, Value, bool)> {
        self.options.iter().chain(self.shared).flat_map(|(kind, names)| {
            names.split(' ').filter(|token| !token.starts_with('-') && !token.is_empty()).map(|token| {
                let (name, optional) = without_mark(token);
                (name, *kind, optional)
            })
        })
    }
}

fn without_mark(token: &str) -> (&str, bool) {
    token.strip_suffix('?').map_or((token, false), |name| (name, true))
}

static TABLES: &[&[Program]] = &[
    archives::TABLE,
    builds::TABLE,
    builtins::TABLE,
    files::TABLE,
    network::TABLE,
    system::TABLE,
    text::TABLE,
    vcs::TABLE,
    wrappers::TABLE,
];

static BY_NAME: LazyLock<HashMap<&'static str, &'static Program>> = LazyLock::new(|| {
    let programs = TABLES.iter().copied().flatten();
    programs.flat_map(|program| program.names.iter().map(move |name| (*name, program))).collect()
});

/// Options of an entry by name.
#[derive(Debug, Default)]
struct Index {
    shorts: HashMap<char, (Value, bool)>,
    longs: HashMap<&'static str, (Value, bool)>,
}

/// The options of the entries in the tables, by the entry's address, which is fixed because the tables are static.
static INDEX: LazyLock<HashMap<usize, Index>> = LazyLock::new(|| {
    let programs = TABLES.iter().copied().flatten();
    let entry = |program: &'static Program| {
        let mut index = Index::default();
        for (letter, meaning) in program.short_options() {
            index.shorts.entry(letter).or_insert(meaning);
        }
        for (name, kind, optional) in program.long_options() {
            index.longs.entry(name).or_insert((kind, optional));
        }
        (std::ptr::from_ref(program).addr(), index)
    };
    programs.map(entry).collect()
});

/// The entry of a program, by its name.
pub(super) fn find(name: &str) -> Option<&'static Program> {
    // The GNU programs have a `g` before their names where they are additional.
    let bare = || name.strip_prefix('g').filter(|bare| GNU.contains(bare));
    BY_NAME.get(name).or_else(|| bare().and_then(|bare| BY_NAME.get(bare))).copied()
}

/// The entry of a program's subcommand.
pub(super) fn find_subcommand(name: &str, subcommand: &str) -> Option<&'static Program> {
    BY_NAME.get(format!("{name} {subcommand}").as_str()).copied()
}

const GNU: &[&str] = &[
    "awk", "base64", "cat", "chmod", "chown", "chroot", "cp", "cut", "date", "dd", "env", "find", "grep",
    "head", "install", "ln", "ls", "make", "mkdir", "mktemp", "mv", "nice", "readlink", "realpath", "rm",
    "rmdir", "sed", "shred", "shuf", "sort", "split", "stat", "stdbuf", "tac", "tail", "tar", "tee", "time",
    "timeout", "touch", "tr", "truncate", "uniq", "unlink", "wc", "xargs",
];

/// Options of `su`, which may follow the user's name.
pub(super) static SWITCH_USER: Program = program(&[], Value::Text).options(&[
    (Value::Text, "-cCsgGuwT command session-command shell group supp-group user whitelist-environment"),
    (Value::Flag, "-flmpPhV fast login preserve-environment pty help version"),
]);

/// Options of `parallel`.
pub(super) static PARALLEL: Program = program(&[], Value::Text).options(&[
    (Value::Text, "-jISNndLPE jobs max-args max-lines delay timeout retries colsep max-procs block halt tmpdir"),
    (Value::List, "-a arg-file sshloginfile"),
    (Value::Host, "sshlogin"),
    (Value::Write, "results joblog"),
    (Value::Flag, "-0kmrtuvXqiU null keep-order dry-run verbose bar progress halt-on-error pipe ungroup will-cite quote line-buffer eta"),
]);
