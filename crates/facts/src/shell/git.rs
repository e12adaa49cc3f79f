//! Git: global options, aliases, settings that run programs, and subcommands.

use super::AddressForm;
use super::arguments;
use super::collect::{Collector, Effect};
use super::effects::{self, Recorder};
use super::network;
use super::opaque;
use super::program::{self, Program, Value};
use super::unwrap::{Context, analyse, run_text};
use super::word::Word;

/// Parts of settings whose value git runs.
const COMMAND_SETTINGS: &[&str] = &[
    "pager",
    "editor",
    "sshcommand",
    "fsmonitor",
    "hookspath",
    "helper",
    "textconv",
    "command",
    "askpass",
    ".program",
    ".cmd",
    ".clean",
    ".smudge",
    ".process",
    "uploadpack",
    "receivepack",
    ".driver",
    "gitproxy",
    ".command",
    "tunnel",
    "packobjectshook",
    "diff.external",
    "sendemail.smtpserver",
    "browser",
    "alternaterefscommand",
    "filter.",
    "merge.tool",
    "credential",
    "proxycommand",
    "update",
    "templatedir",
    "includeif",
    "include.path",
    "trailer.",
    "uploadarchive",
    "postbuffer-cmd",
    "rebase.instructionformat-cmd",
];

/// Settings whose value is an address.
const ADDRESS_SETTINGS: &[&str] = &["proxy", "url.", "remote.", "insteadof", "pushurl", "submodule."];

/// Records git and everything it would run.
pub(super) fn run(collector: &mut Collector, words: &[Word], context: &Context) {
    let Some((first, rest)) = words.split_first() else { return };
    let Some(entry) = program::find("git") else { return };
    let found = arguments::read(rest, entry, false);
    let directories = collector.directories.clone();
    if !found.unknown.is_empty() {
        opaque::record(collector, words);
    }
    // `-C` counts for what follows; the other paths start from there.
    let mut elsewhere: Vec<Word> = Vec::new();
    for given in &found.values {
        if given.kind == Value::Directory {
            collector.directories = collector.directories_after(&given.value);
            elsewhere.push(Word::literal("."));
        } else if given.kind == Value::Write {
            elsewhere.push(given.value.clone());
        }
    }
    let mut recorder = Recorder { collector, name: "git", words, context };
    for given in &found.values {
        match given.kind {
            Value::Directory | Value::Write => recorder.file(Effect::Read, &given.value),
            kind => recorder.value(kind, &given.value),
        }
    }
    for word in rest.iter().take(rest.len().saturating_sub(found.operands.len())) {
        if word.expands() || word.has_glob() {
            collector.unknown_word(&word.text());
        }
    }
    match found.operands.split_first() {
        Some((subcommand, arguments)) => {
            let changes = run_subcommand(collector, first, subcommand, arguments, words, context);
            if changes {
                collector.writes_here();
                for place in &elsewhere {
                    collector.file(Effect::Write, place);
                }
            }
        }
        None if context.from_input => collector.note("operands from input", "git"),
        None => {}
    }
    collector.directories = directories;
}

/// Records a subcommand. Returns whether it changes the repository or its work tree.
fn run_subcommand(
    collector: &mut Collector,
    first: &Word,
    subcommand: &Word,
    arguments: &[Word],
    words: &[Word],
    context: &Context,
) -> bool {
    let name = subcommand.text();
    if subcommand.expands() || subcommand.has_glob() || subcommand.has_sequence() {
        collector.unknown_word(&name);
        opaque::record(collector, words);
        return true;
    }
    // With the global options taken off, so that a rule need not know them.
    let mut plain = vec![Word::literal("git"), subcommand.clone()];
    plain.extend(arguments.iter().cloned());
    if plain.len() < words.len() || first.text() != "git" {
        collector.command(&plain, &context.wrappers, context.assignments);
    }
    if let Some((_, meaning)) = collector.git_aliases.iter().rev().find(|(alias, _)| *alias == name).cloned()
    {
        expand_alias(collector, &meaning, arguments, context);
    }
    if name == "config" {
        config(collector, arguments, context);
    }
    let Some(entry) = program::find_subcommand("git", &name) else {
        return other(collector, &name, arguments, words, context);
    };
    effects::record(collector, entry, "git", words, arguments, context);
    more(collector, &name, entry, arguments, words);
    !matches!(
        name.as_str(),
        "diff"
            | "log"
            | "show"
            | "status"
            | "blame"
            | "annotate"
            | "shortlog"
            | "grep"
            | "rev-parse"
            | "rev-list"
            | "describe"
            | "ls-files"
            | "ls-tree"
            | "cat-file"
            | "merge-base"
            | "show-ref"
            | "for-each-ref"
            | "name-rev"
            | "diff-tree"
            | "count-objects"
            | "check-ignore"
            | "check-attr"
            | "ls-remote"
            | "help"
            | "version"
            | "var"
            | "whatchanged"
            | "cherry"
            | "range-diff"
            | "verify-commit"
            | "verify-tag"
            | "diff-index"
            | "diff-files"
            | "show-branch"
            | "archive"
            | "format-patch"
            | "symbolic-ref"
    )
}

/// Subcommands without an entry: some run commands, the rest are opaque.
fn other(
    collector: &mut Collector,
    name: &str,
    arguments: &[Word],
    words: &[Word],
    context: &Context,
) -> bool {
    if name == "bundle"
        && let Some((verb, rest)) = arguments.split_first()
    {
        let effect = if verb.text() == "create" { Effect::Write } else { Effect::Read };
        if let Some(file) = rest.iter().find(|word| !word.text().starts_with('-')) {
            collector.file(effect, file);
        }
        for word in rest.iter().filter(|word| word.expands()) {
            collector.unknown_word(&word.text());
        }
        return false;
    }
    opaque::record(collector, words);
    for word in arguments.iter().filter(|word| word.expands() || word.has_glob()) {
        collector.unknown_word(&word.text());
    }
    for (index, word) in arguments.iter().enumerate() {
        let text = word.text();
        let rest = arguments.get(index + 1..).unwrap_or_default();
        match text.as_str() {
            "run" if name == "bisect" => {
                analyse(collector, rest, &super::unwrap::inner_context(context, "git"));
                collector.directory_change = None;
            }
            "foreach" => {
                let code: Vec<Word> = rest
                    .iter()
                    .filter(|word| !matches!(word.text().as_str(), "--recursive" | "--quiet" | "-q"))
                    .cloned()
                    .collect();
                super::unwrap::run_code(collector, "git", &code, context);
            }
            "-x" | "--extcmd" | "--exec" | "--tree-filter" | "--index-filter" | "--msg-filter"
            | "--env-filter" | "--commit-filter" | "--tag-name-filter" | "--parent-filter" => {
                if let Some(code) = rest.first() {
                    run_text(collector, "git", &code.text(), context);
                }
            }
            _ => {
                if let Some((option, code)) = text.split_once('=')
                    && (option.starts_with("--extcmd") || option.starts_with("--exec"))
                {
                    run_text(collector, "git", code, context);
                } else if text.starts_with("-x") && text.len() > 2 {
                    run_text(collector, "git", text.get(2..).unwrap_or_default(), context);
                } else if network::is_remote(&text) && !text.starts_with('-') {
                    collector.address(AddressForm::Remote, &text);
                }
            }
        }
    }
    if matches!(name, "subtree" | "p4" | "svn" | "lfs" | "http-push" | "annex") {
        let mut push = vec![Word::literal("git"), Word::literal("push")];
        push.extend(arguments.iter().cloned());
        if name == "send-pack"
            || arguments.iter().any(|word| matches!(word.text().as_str(), "push" | "dcommit"))
        {
            collector.command(&push, &context.wrappers, context.assignments);
        }
    }
    true
}

/// Effects of a subcommand that its entry cannot say.
fn more(collector: &mut Collector, name: &str, entry: &Program, arguments: &[Word], words: &[Word]) {
    let found = arguments::read(arguments, entry, true);
    match name {
        "diff" | "log" | "show" | "whatchanged" | "reflog" | "rev-list" => {
            let external = |flag: &String| {
                flag.len() > 2
                    && ("ext-diff".starts_with(flag.as_str()) || "textconv".starts_with(flag.as_str()))
                    || flag == "show-signature"
            };
            if found.flags.iter().any(external)
                || found.unknown.iter().any(|option| option.starts_with("--show-s"))
            {
                // Programs that the repository's configuration names are run.
                collector.note("code", "git");
            }
            let formats =
                found.values.iter().filter(|given| matches!(given.name.as_str(), "format" | "pretty"));
            if formats.clone().any(|given| given.value.text().contains("%G")) {
                // Checking signatures runs the program that the configuration names.
                opaque::record(collector, words);
            }
        }
        "clone" => {
            // The last operand is the directory if there are two; else it is named after the repository.
            if let [_, directory] = found.operands.as_slice() {
                collector.file(Effect::Write, directory);
            } else if let [repository] = found.operands.as_slice() {
                let text = repository.text();
                let name = text.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
                let name = name.strip_suffix(".git").unwrap_or(name);
                if !name.is_empty() && name != "." {
                    collector.path(Effect::Write, name);
                }
            }
        }
        "send-pack" => {
            // The same by another name, for rules on `git push`.
            let mut push = vec![Word::literal("git"), Word::literal("push")];
            push.extend(arguments.iter().cloned());
            collector.command(&push, &[], &[]);
        }
        "push" | "fetch" | "pull" => {
            if let Some(repository) = found.operands.first().map(Word::text)
                && (repository.starts_with(['/', '.', '~']) || repository.starts_with("file:"))
            {
                // A repository on this machine, which a push writes to.
                collector.path(if name == "push" { Effect::Write } else { Effect::Mention }, &repository);
            }
        }
        "remote" | "submodule" => {
            for word in &found.operands {
                if network::is_remote(&word.text()) {
                    collector.address(AddressForm::Remote, &word.text());
                }
            }
        }
        "apply" | "am" => {
            // The patch says which files are changed.
            opaque::record(collector, words);
        }
        "mv" | "rm" | "clean" | "checkout" | "restore" => {
            if name == "clean" {
                collector.path(Effect::Write, ".");
            }
            for word in found.operands.iter().filter(|word| super::notes::looks_like_path(&word.text())) {
                collector.file(Effect::Write, word);
            }
        }
        "reset" if found.has(&["hard", "merge", "keep"]) => collector.path(Effect::Write, "."),
        "format-patch" if found.value(&["o", "output-directory"]).is_none() => collector.writes_here(),
        _ => {}
    }
}

/// `git config`: aliases and settings that run programs.
fn config(collector: &mut Collector, arguments: &[Word], context: &Context) {
    let operands: Vec<String> = arguments
        .iter()
        .map(Word::text)
        .filter(|text| !text.starts_with('-') && text != "set" && text != "add")
        .collect();
    let Some(at) = operands.iter().position(|text| text.contains('.') && !text.contains('/')) else { return };
    if let (Some(key), Some(value)) = (operands.get(at), operands.get(at + 1)) {
        setting(collector, &format!("{key}={value}"), context);
        return;
    }
    // `--file x alias.y` names the key later.
    if let [.., key, value] = operands.as_slice() {
        setting(collector, &format!("{key}={value}"), context);
    }
}

/// A setting, `key=value`: what it runs, and what it stands for.
pub(super) fn setting(collector: &mut Collector, text: &str, context: &Context) {
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    let key = key.to_ascii_lowercase();
    if let Some(alias) = key.strip_prefix("alias.") {
        collector.note("code", "git");
        collector.git_aliases.push((alias.trim_end_matches(".command").to_owned(), value.to_owned()));
        if let Some(code) = value.strip_prefix('!') {
            run_text(collector, "git", code, context);
        } else {
            run_text(collector, "git", &format!("git {value}"), context);
        }
        return;
    }
    if COMMAND_SETTINGS.iter().any(|part| key.contains(part)) || value.starts_with('!') {
        collector.note("code", "git");
        let code = value.strip_prefix('!').unwrap_or(value);
        if !matches!(code, "" | "true" | "false" | "cat") {
            run_text(collector, "git", code, context);
        }
    }
    if ADDRESS_SETTINGS.iter().any(|part| key.contains(part)) {
        opaque::scan_code(collector, &format!("{key} {value}"));
        if key.contains("proxy") && !value.is_empty() {
            collector.address(AddressForm::Url, value);
        }
    }
    if key.contains("worktree") || key.contains("attributesfile") || key.contains("excludesfile") {
        collector.file(Effect::Write, &Word::literal(value));
    }
}

fn expand_alias(collector: &mut Collector, meaning: &str, arguments: &[Word], context: &Context) {
    let rest = arguments.iter().map(Word::text).collect::<Vec<_>>().join(" ");
    let code = match meaning.strip_prefix('!') {
        Some(code) => format!("{code} {rest}"),
        None => format!("git {meaning} {rest}"),
    };
    run_text(collector, "git", &code, context);
}
