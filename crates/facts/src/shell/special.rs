//! Programs that run others in ways of their own: `find`, `ssh`, `su`, `git` and more.

use super::arguments::{self, Options};
use super::builtin;
use super::collect::{Collector, Effect};
use super::interpreter::{self, Program, Reader};
use super::unwrap::{
    Context, analyse, inner_context, run_code, run_joined, run_script, run_text, shell_reader,
};
use super::word::{Kind, Word};

/// Extracts commands from programs that run others in ways of their own.
pub(super) fn run(collector: &mut Collector, name: &str, rest: &[Word], context: &Context) -> Option<Reader> {
    if builtin::run(collector, name, rest, context) {
        return None;
    }
    match name {
        "cd" | "pushd" | "chdir" | "popd" => {
            let target = rest.iter().find(|word| word.text() == "-" || !word.text().starts_with('-'));
            let target = match (name, target) {
                ("popd", _) | ("pushd", None) => unknown_directory(),
                ("pushd", Some(word)) if word.text().starts_with('+') => unknown_directory(),
                (_, Some(word)) => word.clone(),
                (_, None) => Word::literal("~"),
            };
            collector.directory_change = Some(target);
        }
        "source" | "." => {
            let script = rest.iter().find(|word| word.text() != "--")?;
            if interpreter::is_standard_input(&script.text()) {
                return Some(shell_reader(name, &inner_context(context, name)));
            }
            run_script(collector, name, script);
        }
        "find" | "gfind" | "fd" | "fdfind" | "bfs" => find(collector, name, rest, context),
        "ssh" | "slogin" | "autossh" => return ssh(collector, name, rest, context),
        "su" | "runuser" | "sg" => return switch_user(collector, name, rest, context),
        "watch" => {
            let options = Options {
                values: "nqs",
                flags: "bcCdegprtwxvf",
                long_values: "interval equexit shotsdir",
                long_flags: "beep color no-color differences errexit chgexit precise no-rerun no-title no-wrap exec follow",
            };
            let found = arguments::read(rest, &options, false);
            if found.has(&["x", "exec"]) {
                analyse(collector, &found.operands, &inner_context(context, name));
            } else {
                run_joined(collector, name, &found.operands, context);
            }
        }
        "parallel" => {
            let options = Options {
                values: "jIaSNndLPE",
                flags: "0kmrtuvXqiU",
                long_values: "jobs arg-file sshlogin max-args max-lines delay timeout retries results joblog colsep",
                long_flags: "null keep-order dry-run verbose bar progress halt-on-error pipe ungroup will-cite quote",
            };
            let found = arguments::read(rest, &options, false);
            let stop = found.operands.iter().position(|word| word.text().starts_with(":::"));
            let command = found.operands.get(..stop.unwrap_or(found.operands.len())).unwrap_or_default();
            let mut from_input = context.clone();
            from_input.from_input = true;
            run_joined(collector, name, command, &from_input);
            if command.is_empty() {
                collector.note("script from pipe", name);
            }
        }
        "script" | "entr" | "hyperfine" => {
            if let Some(index) =
                rest.iter().position(|word| matches!(word.text().as_str(), "-c" | "--command"))
                && let Some(code) = rest.get(index + 1)
            {
                run_code(collector, name, std::slice::from_ref(code), context);
            }
        }
        "awk" | "gawk" | "mawk" | "nawk" => {
            let options = Options {
                values: "fvFeE",
                flags: "",
                long_values: "file assign field-separator source",
                long_flags: "",
            };
            let found = arguments::read(rest, &options, false);
            let from_file = found.value(&["f", "file"]).is_some();
            let program = found.operands.first().filter(|_| !from_file).map(Word::text).unwrap_or_default();
            if interpreter::awk_acts(&program) || found.value(&["e", "source"]).is_some() {
                collector.note("code", "awk");
            }
        }
        "sed" | "gsed" if rest.iter().any(|word| interpreter::sed_acts(&word.text())) => {
            collector.note("code", "sed");
        }
        "vi" | "vim" | "nvim" | "ex" | "ed" | "emacs" => {
            if rest.iter().any(|word| {
                let text = word.text();
                text.starts_with('+') || matches!(text.as_str(), "-c" | "--cmd" | "-S" | "--eval" | "-s")
            }) {
                collector.note("code", name);
            }
            if context.piped && matches!(name, "ex" | "ed") {
                collector.note("script from pipe", name);
            }
        }
        "git" => git(collector, name, rest, context),
        "tar" | "gtar" | "bsdtar" | "rsync" | "zip" if rest.iter().any(runs_helper) => {
            collector.note("code", name);
        }
        _ => {}
    }
    None
}

/// A directory that only a running shell knows.
fn unknown_directory() -> Word {
    let mut word = Word::default();
    word.push_all(Kind::Expansion, &"$DIRSTACK".chars().collect::<Vec<_>>());
    word
}

/// Configuration given to git on the command line can name commands to run.
fn git(collector: &mut Collector, name: &str, rest: &[Word], context: &Context) {
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        let text = word.text();
        let setting = match text.as_str() {
            "-c" => words.next().map(Word::text),
            "--exec" | "-x" => {
                if let Some(code) = words.next() {
                    run_code(collector, name, std::slice::from_ref(code), context);
                }
                None
            }
            _ => text.strip_prefix("--config-env=").map(str::to_owned),
        };
        let Some(setting) = setting else { continue };
        let (key, value) = setting.split_once('=').unwrap_or((&setting, ""));
        let key = key.to_ascii_lowercase();
        let runs = value.starts_with('!')
            || [
                "alias.",
                "pager",
                "editor",
                "sshcommand",
                "fsmonitor",
                "hookspath",
                "helper",
                "textconv",
                "proxy",
            ]
            .iter()
            .any(|part| key.contains(part));
        if runs {
            collector.note("code", "git");
            if let Some(code) = value.strip_prefix('!') {
                run_text(collector, name, code, context);
            }
        }
    }
}

fn find(collector: &mut Collector, name: &str, rest: &[Word], context: &Context) {
    let is_expression = |text: &str| text.starts_with('-') || matches!(text, "(" | ")" | "!" | ",");
    let mut starts: Vec<Word> = Vec::new();
    let mut index = 0;
    while let Some(word) = rest.get(index) {
        let text = word.text();
        match text.as_str() {
            "-H" | "-L" | "-P" => {}
            "-D" => index += 1,
            _ if text.starts_with("-O") => {}
            _ if is_expression(&text) => break,
            _ => starts.push(word.clone()),
        }
        index += 1;
    }
    if starts.is_empty() {
        starts.push(Word::literal("."));
    }
    while let Some(word) = rest.get(index) {
        index += 1;
        match word.text().as_str() {
            "-delete" => {
                for start in &starts {
                    collector.file(Effect::Delete, start);
                }
            }
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                if let Some(file) = rest.get(index) {
                    collector.file(Effect::Write, file);
                }
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch" => {
                let from = index;
                while let Some(word) = rest.get(index) {
                    let text = word.text();
                    let ends = text == ";" || (text == "+" && index > from);
                    if ends {
                        break;
                    }
                    index += 1;
                }
                let mut inner = inner_context(context, name);
                inner.starts.clone_from(&starts);
                analyse(collector, rest.get(from..index).unwrap_or_default(), &inner);
                collector.directory_change = None;
            }
            _ => {}
        }
    }
}

fn ssh(collector: &mut Collector, name: &str, rest: &[Word], context: &Context) -> Option<Reader> {
    let options = Options {
        values: "BbcDEeFIiJLlmOopQRSWwP",
        flags: "46AaCfGgKkMNnqsTtVvXxYy",
        long_values: "",
        long_flags: "",
    };
    let found = arguments::read(rest, &options, false);
    for option in &found.unknown {
        collector.note("unknown option", &format!("{name} {option}"));
    }
    for (_, value) in found.values.iter().filter(|(option, _)| option == "o") {
        let text = value.text();
        let (key, code) = text.split_once(['=', ' ']).unwrap_or((&text, ""));
        if matches!(key.to_ascii_lowercase().as_str(), "proxycommand" | "localcommand" | "knownhostscommand")
        {
            run_text(collector, name, code, context);
        }
    }
    let (_, mut command) = found.operands.split_first()?;
    // Options may also follow the host.
    let again = arguments::read(command, &options, false);
    if command.first().is_some_and(|word| word.text().starts_with('-')) {
        command = &again.operands;
    }
    if command.is_empty() {
        return Some(shell_reader(name, &inner_context(context, name)));
    }
    run_joined(collector, name, command, context)
}

fn switch_user(collector: &mut Collector, name: &str, rest: &[Word], context: &Context) -> Option<Reader> {
    let options = Options {
        values: "cCsgGuwT",
        flags: "flmpPh",
        long_values: "command session-command shell group supp-group user whitelist-environment",
        long_flags: "fast login preserve-environment pty",
    };
    let found = arguments::read(rest, &options, true);
    if let Some(code) = found.value(&["c", "command", "session-command", "C"]) {
        run_code(collector, name, std::slice::from_ref(code), context);
        return None;
    }
    if name == "runuser" && found.value(&["u", "user"]).is_some() {
        let stopped = arguments::read(rest, &options, false);
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

/// Whether an option of an archive program names a command to run.
fn runs_helper(word: &Word) -> bool {
    let text = word.text();
    [
        "--checkpoint-action",
        "--to-command",
        "--use-compress",
        "--rsh",
        "--info-script",
        "-TT",
        "--unzip-command",
    ]
    .iter()
    .any(|option| text.starts_with(option))
}
