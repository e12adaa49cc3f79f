//! Unwrapping of a command: records it, then the commands that it would run in turn.

use super::arguments::{self, Arguments};
use super::collect::{Collector, Effect};
use super::effects;
use super::interpreter::{self, Program, Reader};
use super::reader::parse_code_apart;
use super::special;
use super::word::{Kind, Word};
use super::wrapper::{self, Wrapper};

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
    let acts = effects::record(collector, name, rest, &context.starts);
    if context.from_input && (acts || interpreter::is_shell(name) || interpreter::language(name).is_some()) {
        collector.note("operands from input", name);
    }
    if let Some(wrapper) = wrapper::find(name) {
        return unwrap(collector, name, wrapper, rest, context);
    }
    if interpreter::is_shell(name) {
        return run_shell(collector, name, rest, context);
    }
    if let Some(language) = interpreter::language(name) {
        return run_language(collector, name, language, rest);
    }
    special::run(collector, name, rest, context)
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
    wrapper: &Wrapper,
    rest: &[Word],
    context: &Context,
) -> Option<Reader> {
    let mut found = arguments::read(rest, &wrapper.options, false);
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
        found = arguments::read(&words, &wrapper.options, false);
    }
    let mut operands = found.operands.as_slice();
    // A lone dash is an option of `env`.
    while wrapper.assignments && operands.first().is_some_and(|word| is_env_word(&word.text())) {
        operands = operands.get(1..).unwrap_or_default();
    }
    let inner = operands.get(wrapper.operands..).unwrap_or_default();
    let mut inner_context = inner_context(context, name);
    let directories = collector.directories.clone();
    match name {
        "command" if found.has(&["v", "V"]) => return None,
        "xargs" | "gxargs" => {
            inner_context.from_input = true;
            inner_context.piped = false;
            if let Some(file) = found.value(&["a", "arg-file"]) {
                collector.file(Effect::Read, file);
            }
        }
        "time" | "gtime" | "strace" | "ltrace" => {
            if let Some(file) = found.value(&["o", "output"]) {
                collector.file(Effect::Write, file);
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
    if let Some(directory) = found.value(&["C", "chdir", "D", "w", "wd", "working-directory"])
        && matches!(name, "env" | "genv" | "sudo" | "unshare" | "systemd-run")
    {
        collector.directories = collector.directories_after(directory);
    }
    if inner.is_empty() {
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

fn run_shell(collector: &mut Collector, name: &str, rest: &[Word], context: &Context) -> Option<Reader> {
    let name = name.trim_start_matches('-');
    match interpreter::shell_program(rest) {
        Program::Code(code) => {
            run_code(collector, name, &[code], context);
            None
        }
        Program::Script(script) => {
            run_script(collector, name, &script);
            None
        }
        Program::Input => Some(shell_reader(name, &inner_context(context, name))),
        Program::Nothing => None,
    }
}

fn run_language(collector: &mut Collector, name: &str, language: &str, rest: &[Word]) -> Option<Reader> {
    match interpreter::language_program(name, rest) {
        Program::Code(_) => collector.note("code", language),
        Program::Script(script) => run_script(collector, language, &script),
        Program::Input => {
            return Some(Reader { name: language.to_owned(), is_shell: false, wrappers: Vec::new() });
        }
        Program::Nothing => {}
    }
    None
}

/// Records a script file that is run.
pub(super) fn run_script(collector: &mut Collector, name: &str, script: &Word) {
    if script.is_process() {
        collector.note("script from pipe", name);
    } else if script.expands() {
        collector.note("script from expansion", &script.text());
    }
    collector.file(Effect::Read, script);
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
