//! Programs that run others in ways of their own: `find`, `ssh`, `su`, `watch`, `parallel` and more.

use super::arguments;
use super::collect::{Collector, Effect};
use super::filters;
use super::find;
use super::git;
use super::interpreter::{self, Program, Reader};
use super::notes::FROM_INPUT;
use super::opaque;
use super::program;
use super::unwrap::{Context, analyse, inner_context, join, run_code, run_joined, shell_reader};
use super::word::Word;

/// Extracts commands from programs that run others in ways of their own.
pub(super) fn run(collector: &mut Collector, name: &str, rest: &[Word], context: &Context) -> Option<Reader> {
    let mut words = vec![Word::literal(name)];
    words.extend(rest.iter().cloned());
    let entry = program::find(name);
    let takes_list = rest.iter().map(Word::text).any(|text| {
        let is_cluster = name == "zip" && text.starts_with('-') && text.contains('@');
        is_cluster || (name == "git" && text.starts_with("--stdin-p"))
    });
    if changes_home(name, rest) {
        collector.path(Effect::Write, "~");
    }
    if takes_list {
        collector.takes_list();
    }
    if matches!(name, "jq" | "gojq" | "jaq" | "yq") {
        filters::record(collector, name, rest);
    }
    match name {
        "find" | "gfind" | "bfs" => find::run(collector, name, &words, rest, context),
        "fd" | "fdfind" => fd(collector, name, rest, context),
        "ssh" | "slogin" | "autossh" => return ssh(collector, name, rest, context),
        "su" | "runuser" | "sg" => return switch_user(collector, name, rest, context),
        "git" => git::run(collector, &words, context),
        "watch" => {
            let found = arguments::read(rest, entry?, false);
            if found.has(&["x", "exec"]) {
                analyse(collector, &found.operands, &inner_context(context, name));
            } else {
                run_joined(collector, name, &found.operands, context);
            }
        }
        "parallel" => parallel(collector, name, rest, context),
        "script" => {
            let found = arguments::read(rest, entry?, true);
            if !found.names(&["c", "command"]) {
                return Some(shell_reader("sh", &inner_context(context, name)));
            }
        }
        "entr" | "pee" | "mispipe" => {
            for word in rest.iter().filter(|word| !word.text().starts_with('-')) {
                run_code(collector, name, std::slice::from_ref(word), context);
            }
        }
        "at" | "batch" => return Some(shell_reader("sh", &inner_context(context, name))),
        "gdb" | "lldb" => {
            let found = arguments::read(rest, entry?, true);
            if found.has(&["args"]) {
                analyse(collector, &found.operands, &inner_context(context, name));
                collector.directory_change = None;
            }
        }
        "make" | "gmake" | "bmake" => {
            for (index, word) in rest.iter().enumerate() {
                let text = word.text();
                let reads_input = text == "-f-"
                    || text == "--file=-"
                    || (matches!(text.as_str(), "-f" | "--file" | "--makefile")
                        && rest
                            .get(index + 1)
                            .is_some_and(|file| interpreter::is_standard_input(&file.text())));
                if reads_input {
                    return Some(other_reader("make"));
                }
                if sets_code(&text) || text.starts_with("--ev") || text.starts_with("SHELL") || text == "-E" {
                    collector.note("code", "make");
                    opaque::scan_code(collector, &text);
                }
            }
        }
        "gcc" | "g++" | "cc" | "c++" | "clang" | "clang++" | "tcc" | "rustc" => {
            let takes_program = rest.iter().map(Word::text).any(|text| {
                let options = ["-wrapper", "--wrapper", "-fplugin", "-specs", "--specs", "-B", "@"];
                options.iter().any(|option| text.starts_with(option)) || text.contains("linker=")
            });
            if takes_program {
                collector.note("code", name);
            }
        }
        "rename" | "prename" | "perl-rename" => {
            let found = arguments::read(rest, entry?, true);
            if let Some(expression) = found.operands.first().map(Word::text)
                && !is_plain_renaming(&expression)
            {
                collector.note("code", name);
                opaque::scan_code(collector, &expression);
            }
        }
        "jq" | "gojq" | "jaq" | "curl" | "wget" => {
            let reads_input = rest.iter().enumerate().any(|(index, word)| {
                let text = word.text();
                matches!(text.as_str(), "-K-" | "-i-" | "--config=-" | "--input-file=-")
                    || (matches!(text.as_str(), "-K" | "--config" | "--input-file")
                        && rest
                            .get(index + 1)
                            .is_some_and(|file| interpreter::is_standard_input(&file.text())))
            });
            if reads_input {
                return Some(other_reader(name));
            }
        }
        "docker" | "podman" | "nerdctl" | "kubectl" | "npx" | "uvx" | "direnv" | "nix-shell" | "nix"
        | "uv" | "poetry" | "pipx" | "bundle" | "rustup" | "mise" | "asdf" | "conda" | "hatch" | "pdm"
        | "doppler" | "op" | "vault" | "yarn" | "pnpm" | "npm" | "cmake" => {
            let verbs = ["run", "exec", "--", "-c", "--run", "--command", "x", "-E"];
            if let Some(at) = rest.iter().position(|word| verbs.contains(&word.text().as_str())) {
                opaque::commands_inside(collector, rest.get(at..).unwrap_or_default(), context);
            }
        }
        _ => {}
    }
    let reads_code = entry.is_some_and(|entry| entry.reads_code);
    if reads_code && !gives_code(name, rest) {
        return Some(other_reader(name));
    }
    None
}

/// Whether a program changes its settings or installs what it keeps in the home of the user.
fn changes_home(name: &str, rest: &[Word]) -> bool {
    let texts: Vec<String> = rest.iter().map(Word::text).collect();
    let has = |words: &[&str]| texts.iter().any(|text| words.contains(&text.as_str()));
    let first = texts.first().map(String::as_str).unwrap_or_default();
    match name {
        "go" => first == "env" && has(&["-w", "-u"]),
        "git" => {
            first == "config"
                && has(&["--global"])
                && !has(&["--get", "--get-all", "--list", "-l", "get", "list"])
        }
        "pip" | "pip3" => has(&["--user"]) || (first == "config" && has(&["set", "unset", "edit"])),
        "npm" | "pnpm" | "yarn" | "composer" | "bundle" | "poetry" => {
            has(&["-g", "--global"]) || (first == "config" && has(&["set", "delete", "edit", "unset"]))
        }
        _ => false,
    }
}

/// Whether a word of make sets a variable to more than a value: make runs it, or a recipe gets several words.
fn sets_code(text: &str) -> bool {
    let Some((name, value)) = text.split_once('=').filter(|_| !text.starts_with('-')) else { return false };
    let mut words = value.split_whitespace();
    let are_flags = words.all(|word| {
        let takes_program =
            ["-wrapper", "-fplugin", "-specs", "-B"].iter().any(|option| word.starts_with(option));
        word.starts_with('-') && !takes_program
    });
    let is_word = !value.contains(char::is_whitespace);
    name.ends_with(['!', ':'])
        || value.contains(['$', '`', ';', '|', '&', '<', '>', '@'])
        || !(is_word || are_flags)
}

/// Whether the expression of a renaming only puts one part of a name in place of another.
fn is_plain_renaming(expression: &str) -> bool {
    let is_part =
        |text: &str| text.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | ' '));
    let parts: Vec<&str> = expression.split('/').collect();
    match parts.as_slice() {
        [text] => is_part(text),
        ["s", pattern, replacement, flags] => {
            !pattern.contains("(?")
                && is_part(replacement)
                && !replacement.contains("..")
                && flags.chars().all(|c| matches!(c, 'g' | 'i'))
        }
        _ => false,
    }
}

/// Whether the code is an argument, so that standard input is data.
fn gives_code(name: &str, rest: &[Word]) -> bool {
    let Some(entry) = program::find(name) else { return false };
    let found = arguments::read(rest, entry, !entry.stops);
    match name {
        "sqlite3" | "sqlite" => found.operands.len() > 1,
        "psql" => found.names(&["c", "command", "f", "file", "l", "list", "version", "help"]),
        _ => found.has(&["help", "version"]),
    }
}

/// A program of another language that reads code from standard input.
fn other_reader(name: &str) -> Reader {
    Reader { name: name.to_owned(), is_shell: false, wrappers: Vec::new() }
}

fn fd(collector: &mut Collector, name: &str, rest: &[Word], context: &Context) {
    let at =
        rest.iter().position(|word| matches!(word.text().as_str(), "-x" | "-X" | "--exec" | "--exec-batch"));
    let Some(at) = at else { return };
    let mut inner = inner_context(context, name);
    let before: Vec<Word> =
        rest.iter().take(at).filter(|word| !word.text().starts_with('-')).skip(1).cloned().collect();
    inner.starts = if before.is_empty() { vec![Word::literal(".")] } else { before };
    inner.from_input = true;
    analyse(collector, rest.get(at + 1..).unwrap_or_default(), &inner);
    collector.directory_change = None;
}

fn parallel(collector: &mut Collector, name: &str, rest: &[Word], context: &Context) {
    const OPTIONS: &program::Program = &program::PARALLEL;
    let found = arguments::read(rest, OPTIONS, false);
    let stop = found.operands.iter().position(|word| word.text().starts_with(":::"));
    let command = found.operands.get(..stop.unwrap_or(found.operands.len())).unwrap_or_default();
    let values = stop.and_then(|stop| found.operands.get(stop + 1..)).unwrap_or_default();
    let mut from_input = context.clone();
    from_input.from_input = true;
    collector.unknown_word(FROM_INPUT);
    if command.is_empty() {
        if values.is_empty() {
            collector.note("script from pipe", name);
        }
        for value in values {
            run_code(collector, name, std::slice::from_ref(value), context);
        }
        return;
    }
    run_joined(collector, name, command, &from_input);
    for value in values.iter().take(16).filter(|value| !value.text().starts_with(":::")) {
        // Each value takes the place of `{}`, or is added at the end.
        let mut text = join(command);
        if text.contains(FROM_INPUT) {
            text = text.replace(FROM_INPUT, &value.text());
        } else {
            text = format!("{text} {}", value.text());
        }
        super::unwrap::run_text(collector, name, &text, context);
    }
}

fn ssh(collector: &mut Collector, name: &str, rest: &[Word], context: &Context) -> Option<Reader> {
    let entry = program::find(name)?;
    let found = arguments::read(rest, entry, false);
    for option in &found.unknown {
        collector.note("unknown option", &format!("{name} {option}"));
    }
    let (host, mut command) = found.operands.split_first()?;
    collector.address(super::AddressForm::Host, &host.text());
    // Options may also follow the host.
    let again = arguments::read(command, entry, false);
    if command.first().is_some_and(|word| word.text().starts_with('-')) {
        let mut recorder = super::effects::Recorder { collector, name, words: rest, context };
        for given in &again.values {
            recorder.value(given.kind, &given.value);
        }
        command = &again.operands;
    }
    if command.is_empty() {
        return Some(shell_reader(name, &inner_context(context, name)));
    }
    run_joined(collector, name, command, context)
}

/// Modules of python that only print.
const QUIET_MODULES: &[&str] =
    &["json.tool", "site", "platform", "sysconfig", "this", "calendar", "tokenize", "ast", "dis", "tabnanny"];

/// Modules of python that run code given as an argument or on standard input.
const CODE_MODULES: &[&str] =
    &["timeit", "code", "pdb", "cProfile", "profile", "trace", "asyncio", "idlelib", "bdb", "doctest"];

/// Records a module that python runs, and its arguments. Returns the module if it reads code from standard input.
pub(super) fn python_module(collector: &mut Collector, words: &[Word], context: &Context) -> Option<Reader> {
    let at = words.iter().position(|word| {
        let text = word.text();
        text.starts_with('-') && !text.starts_with("--") && text.ends_with('m')
    });
    let attached = words.iter().skip(1).map(Word::text).find_map(|text| {
        text.strip_prefix('-')
            .and_then(|cluster| cluster.split_once('m'))
            .map(|(_, module)| module.to_owned())
    });
    let module = at.and_then(|at| words.get(at + 1)).map(Word::text).or(attached).unwrap_or_default();
    let arguments = at.and_then(|at| words.get(at + 2..)).unwrap_or_default();
    if QUIET_MODULES.contains(&module.as_str()) {
        // `json.tool` takes an input and an output.
        let mut operands = arguments.iter().filter(|word| !word.text().starts_with("--"));
        if let Some(input) = operands.next() {
            collector.file(Effect::Read, input);
        }
        operands.for_each(|output| collector.file(Effect::Write, output));
        return None;
    }
    opaque::record(collector, words);
    for word in arguments.iter().filter(|word| word.expands() || word.has_glob()) {
        collector.unknown_word(&word.text());
    }
    if CODE_MODULES.contains(&module.as_str()) {
        collector.note("code", "python");
        for word in arguments {
            opaque::scan_code(collector, &word.text());
        }
        return Some(other_reader("python"));
    }
    if context.from_input {
        collector.unknown_word(FROM_INPUT);
    }
    None
}

fn switch_user(collector: &mut Collector, name: &str, rest: &[Word], context: &Context) -> Option<Reader> {
    const OPTIONS: &program::Program = &program::SWITCH_USER;
    let found = arguments::read(rest, OPTIONS, true);
    if let Some(code) = found.value(&["c", "command", "session-command", "C"]) {
        run_code(collector, name, std::slice::from_ref(code), context);
        return None;
    }
    if name == "runuser" && found.value(&["u", "user"]).is_some() {
        let stopped = arguments::read(rest, OPTIONS, false);
        return analyse(collector, &stopped.operands, &inner_context(context, name));
    }
    // After `--` the options belong to the shell.
    let separator = rest.iter().position(|word| word.text() == "--");
    let shell_words = separator.and_then(|index| rest.get(index + 1..)).unwrap_or_default();
    match interpreter::shell_program(shell_words) {
        Program::Code(code) => {
            run_code(collector, name, &[code], context);
            None
        }
        _ if name == "sg" => {
            analyse(collector, found.operands.get(1..).unwrap_or_default(), &inner_context(context, name))
        }
        _ => Some(shell_reader(name, &inner_context(context, name))),
    }
}
