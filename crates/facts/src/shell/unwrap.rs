//! Unwrapping of a command: records it, then the commands that it would run in turn.

use super::AddressForm;
use super::arguments::{self, Arguments};
use super::collect::{Collector, Effect};
use super::effects::{self, Recorder};
use super::interpret;
use super::interpreter::{self, Reader};
use super::network;
use super::notes::{FROM_INPUT, command_in, proxy_in};
use super::opaque;
use super::program::{self, Runs, Value};
use super::reader::parse_code_apart;
use super::special;
use super::word::{Kind, Word};

/// Context in which a command was found.
#[derive(Debug, Clone, Default)]
pub(super) struct Context<'a> {
    /// Whether its standard input is a pipe or a file.
    pub(super) piped: bool,
    /// The assignments before it.
    pub(super) assignments: &'a [String],
    /// The wrappers around it, outermost first.
    pub(super) wrappers: Vec<String>,
    /// Value of `{}` inside of `find -exec`.
    pub(super) starts: Vec<Word>,
    /// Whether operands are added from input, inside of `xargs`.
    pub(super) from_input: bool,
}

/// Records a command and everything it would run. Returns the interpreter that reads standard input, if one does.
pub(super) fn analyse(collector: &mut Collector, words: &[Word], context: &Context) -> Option<Reader> {
    if words.is_empty() || !collector.enter() {
        return None;
    }
    let reader = look_into(collector, words, context);
    collector.leave();
    reader
}

/// The last part of a program's path.
pub(super) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

fn look_into(collector: &mut Collector, words: &[Word], context: &Context) -> Option<Reader> {
    let (first, rest) = words.split_first()?;
    let program = first.text();
    if first.expands() || first.has_sequence() {
        collector.note("command from expansion", &program);
    } else if first.has_glob() && !matches!(program.as_str(), "[" | "[[") {
        collector.note("command from glob", &program);
    }
    collector.command(words, &context.wrappers, context.assignments);
    let name = base_name(&program);
    if in_standard_directory(&program) && !first.has_glob() && !first.expands() {
        let named = Word::literal(name);
        let plain: Vec<Word> = std::iter::once(named).chain(rest.iter().cloned()).collect();
        collector.command(&plain, &context.wrappers, context.assignments);
    }
    for assignment in context.assignments {
        assigned(collector, name, assignment, context);
    }
    if program.contains('/') && !in_standard_directory(&program) && !first.expands() {
        // A program of this name from elsewhere need not be the one that the table describes.
        collector.file(Effect::Read, first);
        opaque::record(collector, words);
    }
    let entry = program::find(name);
    if let Some(entry) = entry
        && let Some(runs) = entry.runs
    {
        return unwrap(collector, name, entry, runs, rest, context);
    }
    if interpreter::is_shell(name) {
        if context.from_input {
            collector.note("operands from input", name);
        }
        return interpret::shell(collector, name, words, context);
    }
    if let Some(language) = interpreter::language(name) {
        if context.from_input {
            collector.note("operands from input", name);
        }
        return interpret::language(collector, name, language, words, context);
    }
    if let Some(subcommand) = name.strip_prefix("git-") {
        let mut plain = vec![Word::literal("git"), Word::literal(subcommand)];
        plain.extend(rest.iter().cloned());
        collector.command(&plain, &context.wrappers, context.assignments);
        super::git::run(collector, &plain, context);
        return None;
    }
    if matches!(name, "echo" | "printf") && collector.printed.len() < 8 {
        collector.printed.push(join(rest));
    }
    match entry {
        Some(_) if name == "git" => {}
        Some(entry) if entry.subcommands => run_subcommand(collector, name, words, context),
        Some(entry) => {
            let acts = effects::record(collector, entry, name, words, rest, context);
            if entry.opaque && !matches!(name, "gh" | "glab") {
                opaque::lines_inside(collector, name, rest, context);
            }
            if context.from_input && acts {
                collector.note("operands from input", name);
            }
        }
        None => {
            opaque::record(collector, words);
            for word in rest.iter().filter(|word| word.expands() || word.has_glob()) {
                collector.unknown_word(&word.text());
            }
            if context.from_input {
                collector.unknown_word(FROM_INPUT);
            }
            opaque::commands_inside(collector, words, context);
        }
    }
    special::run(collector, name, rest, context)
}

/// Records what a variable's value runs or reaches.
fn assigned(collector: &mut Collector, name: &str, assignment: &str, context: &Context) {
    if let Some(code) = command_in(assignment) {
        run_text(collector, name, code, context);
    }
    if let Some(address) = proxy_in(assignment) {
        collector.address(AddressForm::Url, address);
    }
    if let Some((variable, value)) = assignment.split_once('=')
        && value.starts_with(['/', '~', '.'])
        && !(variable.ends_with("PATH") && value.contains(':'))
    {
        // Git writes where its variables say.
        let effect = if variable.starts_with("GIT_") { Effect::Write } else { Effect::Mention };
        collector.path(effect, value);
    }
}

/// Records a program by the entry of its subcommand; without one the command is opaque.
fn run_subcommand(collector: &mut Collector, name: &str, words: &[Word], context: &Context) {
    let Some((subcommand, rest)) = words.get(1..).and_then(<[Word]>::split_first) else { return };
    match program::find_subcommand(name, &subcommand.text()) {
        Some(entry) => {
            effects::record(collector, entry, name, words, rest, context);
        }
        None => opaque::record(collector, words),
    }
}

/// Whether a program's path is one where the system keeps its programs, so that its name says what it is.
fn in_standard_directory(program: &str) -> bool {
    let directory = program.strip_suffix(base_name(program)).unwrap_or_default();
    matches!(
        directory,
        "/bin/"
            | "/sbin/"
            | "/usr/bin/"
            | "/usr/sbin/"
            | "/usr/local/bin/"
            | "/usr/local/sbin/"
            | "/opt/homebrew/bin/"
            | "/run/current-system/sw/bin/"
            | "/system/bin/"
    )
}

/// The context of a command that `name` runs.
pub(super) fn inner_context<'a>(context: &Context<'a>, name: &str) -> Context<'a> {
    let mut inner = context.clone();
    inner.wrappers.push(name.to_owned());
    inner
}

fn unwrap(
    collector: &mut Collector,
    name: &str,
    entry: &program::Program,
    runs: Runs,
    rest: &[Word],
    context: &Context,
) -> Option<Reader> {
    let mut found = arguments::read(rest, entry, false);
    for option in &found.unknown {
        collector.note("unknown option", &format!("{name} {option}"));
    }
    if code_option(collector, name, &found, context) {
        return None;
    }
    if name == "env"
        && let Some(split) = found.value(&["S", "split-string"])
    {
        let mut words = split_string(split);
        words.extend(found.operands.iter().cloned());
        found = arguments::read(&words, entry, false);
    }
    let mut operands = found.operands.as_slice();
    // A lone dash is an option of `env`.
    let mut variables: Vec<Word> = found
        .values
        .iter()
        .filter(|given| given.kind == Value::Assign)
        .map(|given| given.value.clone())
        .collect();
    while runs.assignments
        && let Some(word) = operands.first().filter(|word| is_env_word(&word.text()))
    {
        variables.push(word.clone());
        operands = operands.get(1..).unwrap_or_default();
    }
    for variable in &variables {
        collector.assign(variable);
        assigned(collector, name, &variable.text(), context);
    }
    let inner = operands.get(runs.skip..).unwrap_or_default();
    let mut inner_context = inner_context(context, name);
    let directories = collector.directories.clone();
    // Options and operands before the command: files, hosts and words whose value is not known.
    let mut recorder = Recorder { collector, name, words: rest, context };
    for given in &found.values {
        match given.kind {
            Value::Directory => recorder.value(Value::Text, &given.value),
            Value::Assign => {}
            Value::Code if name == "flock" => {}
            kind => recorder.value(kind, &given.value),
        }
    }
    for operand in operands.iter().take(runs.skip) {
        let kind = if matches!(name, "flock") { Value::Write } else { Value::Text };
        recorder.value(kind, operand);
    }
    let before = rest.len().saturating_sub(inner.len());
    for word in rest.iter().take(before) {
        if word.expands() || word.has_glob() {
            collector.unknown_word(&word.text());
        }
    }
    match name {
        "command" if found.has(&["v", "V"]) => return None,
        "xargs" | "gxargs" => {
            inner_context.from_input = true;
            inner_context.piped = false;
            collector.fed_seen = collector.fed_seen.saturating_add(1);
            if inner.iter().take(2).any(|word| network::connects(base_name(&word.text()))) {
                // The words from the input may name any host.
                collector.address(AddressForm::Host, FROM_INPUT);
            }
            if collector.fed.len() < 8 {
                collector.fed.push(inner.to_vec());
            }
        }
        "sudo" if found.has(&["e", "edit"]) => {
            for file in &found.operands {
                collector.file(Effect::Write, file);
            }
            return None;
        }
        "chroot" | "gchroot" => collector.note("files under another root", name),
        "unshare" if found.value(&["R", "root"]).is_some() => {
            collector.note("files under another root", name);
        }
        _ => {}
    }
    for directory in found.values.iter().filter(|given| given.kind == Value::Directory) {
        collector.directories = collector.directories_after(&directory.value);
    }
    if inner.is_empty() {
        collector.directories = directories;
        if context.from_input {
            collector.note("command from input", name);
        }
        return match name {
            // These start a shell when they are given no command.
            "chroot" | "unshare" | "nsenter" => Some(shell_reader("sh", &inner_context)),
            "sudo" | "doas" if found.has(&["s", "i", "shell", "login"]) => {
                Some(shell_reader("sh", &inner_context))
            }
            _ => None,
        };
    }
    if matches!(name, "sudo" | "doas") && found.has(&["s", "i", "shell", "login"]) {
        // The shell gets the words escaped, but a single word may be a whole command line.
        run_joined(collector, name, inner, context);
    }
    let reader = analyse(collector, inner, &inner_context);
    if !matches!(name, "command" | "builtin" | "time" | "noglob" | "nocorrect") {
        collector.directory_change = None;
    }
    collector.directories = directories;
    reader
}

/// Wrappers that can also take a code string.
fn code_option(collector: &mut Collector, name: &str, found: &Arguments, context: &Context) -> bool {
    if name != "flock" {
        return false;
    }
    // The option may come after the lock file.
    let position = found.operands.iter().position(|word| matches!(word.text().as_str(), "-c" | "--command"));
    let code =
        position.and_then(|index| found.operands.get(index + 1)).or_else(|| found.value(&["c", "command"]));
    if let Some(code) = code {
        run_code(collector, name, std::slice::from_ref(code), context);
    }
    code.is_some()
}

fn is_env_word(text: &str) -> bool {
    text == "-" || text.find('=').is_some_and(|index| index > 0)
}

/// Splits the string of `env -S`, whose quoting resembles the shell's without operators.
fn split_string(source: &Word) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut current = Word::default();
    let mut quote: Option<char> = None;
    let mut characters = source.marked().into_iter().peekable();
    while let Some((character, kind)) = characters.next() {
        let kind = if kind == Kind::Plain { Kind::Quoted } else { kind };
        match (character, quote) {
            ('\\', None | Some('"')) => {
                if let Some((escaped, _)) = characters.next() {
                    match (escaped, quote) {
                        ('_', None) => words.push(std::mem::take(&mut current)),
                        ('_', _) => current.push(kind, ' '),
                        ('c', _) => break,
                        ('t', _) => current.push(kind, '\t'),
                        ('n', _) => current.push(kind, '\n'),
                        _ => current.push(kind, escaped),
                    }
                }
            }
            (closing, Some(open)) if closing == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(character);
                current.mark_quoted();
            }
            ('$', None | Some('"')) => current.push(Kind::Expansion, '$'),
            (' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}', None) => words.push(std::mem::take(&mut current)),
            _ => current.push(kind, character),
        }
    }
    words.push(current);
    words.retain(|word| !word.is_absent());
    words
}

/// A shell that reads its program from standard input.
pub(super) fn shell_reader(name: &str, inner: &Context) -> Reader {
    Reader { name: name.to_owned(), is_shell: true, wrappers: inner.wrappers.clone() }
}

/// Parses words, joined, as code of a new shell that `name` starts.
pub(super) fn run_code(collector: &mut Collector, name: &str, words: &[Word], context: &Context) {
    note_code(collector, words, context);
    run_text(collector, name, &join(words), context);
}

/// Parses text as code of a new shell that `name` starts.
pub(super) fn run_text(collector: &mut Collector, name: &str, code: &str, context: &Context) {
    let inner = inner_context(context, name).wrappers;
    let outer = std::mem::replace(&mut collector.wrappers, inner);
    parse_code_apart(collector, code, context.piped);
    collector.wrappers = outer;
}

/// Runs words that a program joins and passes to a shell.
pub(super) fn run_joined(
    collector: &mut Collector,
    name: &str,
    words: &[Word],
    context: &Context,
) -> Option<Reader> {
    let special = |c: char| !(c.is_alphanumeric() || "_-./=:,@%+{}".contains(c));
    if words.iter().any(|word| word.text().contains(special) || word.text().is_empty()) {
        run_code(collector, name, words, context);
        return None;
    }
    let reader = analyse(collector, words, &inner_context(context, name));
    collector.directory_change = None;
    reader
}

/// Notes what makes the text of a code string uncertain.
pub(super) fn note_code(collector: &mut Collector, words: &[Word], context: &Context) {
    let code = join(words);
    if words.iter().any(Word::expands) {
        // The value becomes code, so it can hold any command.
        collector.note("code from expansion", &code);
    }
    if (context.from_input || !context.starts.is_empty()) && code.contains("{}") {
        collector.note("code from input", &code);
    }
}

/// The words joined with spaces.
pub(super) fn join(words: &[Word]) -> String {
    words.iter().map(Word::text).collect::<Vec<_>>().join(" ")
}
