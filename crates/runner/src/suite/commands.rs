//! Commands: of `setup` and `teardown`, of agents, of assertions.

use proctor_core::quoted;
use proctor_yaml::{Node, Value};

use super::keys;
use super::model::Command;
use super::object::{Object, text, texts};
use super::path::Path;
use super::reader::Reader;
use super::settings::workspace_path;
use super::words::split_words;
use crate::checks::{Check, CommandCheck, CommandKind, Linter, WorkspacePath, check_count_pattern};

/// Time limit of a command that names none.
const DEFAULT_SECONDS: u32 = 60;

/// Time limit of a check that names none.
const DEFAULT_CHECK_SECONDS: u32 = 300;

/// Longest time limit.
const MAX_SECONDS: u64 = 86_400;

/// Commands of one test.
const MAX_COMMANDS: usize = 100;

/// Remedy for a command line that is written for a shell.
const NO_SHELL: &str = "write `sh -c '…'`";

/// `setup` or `teardown`: a list of command lines, lists of words, and mappings with `command` and `timeout_seconds`.
pub(super) fn read_commands(above: &Object<'_, '_>, key: &str, reader: &mut Reader<'_>) -> Vec<Command> {
    let Some(items) = above.list(key, reader) else { return Vec::new() };
    let list = above.path.key(key);
    if items.len() > MAX_COMMANDS {
        reader.mistake(above.key_at(key), &list, format!("at most {MAX_COMMANDS} commands are allowed"), "");
        return Vec::new();
    }
    let read = |(index, item): (usize, &std::rc::Rc<Node>)| read_command(item, &list.index(index), reader);
    items.iter().enumerate().filter_map(read).collect()
}

fn read_command(node: &Node, path: &Path<'_>, reader: &mut Reader<'_>) -> Option<Command> {
    if !matches!(node.value, Value::Map(_)) {
        let words = words_of(node, path, reader)?;
        return Some(Command { words, timeout_seconds: DEFAULT_SECONDS });
    }
    let object = Object::read(node, path, &keys::COMMAND, reader)?;
    let words =
        object.required("command", reader).and_then(|node| words_of(node, &path.key("command"), reader));
    let timeout_seconds = seconds(&object, "timeout_seconds", DEFAULT_SECONDS, reader);
    Some(Command { words: words?, timeout_seconds })
}

/// A command line, or a list of words.
pub(super) fn words_of(node: &Node, path: &Path<'_>, reader: &mut Reader<'_>) -> Option<Vec<String>> {
    let words = match &node.value {
        Value::Text(line) => split_words(line),
        Value::List(_) => {
            let words = arguments_of(node, path, reader)?;
            if words.first().is_none_or(String::is_empty) { Err(super::WordsError::Empty) } else { Ok(words) }
        }
        _ => {
            reader.wrong_type(node, path, "a command line or a list of words");
            return None;
        }
    };
    let sign = match &node.value {
        Value::Text(line) => super::shell_sign(line),
        _ => None,
    };
    let operator = |word: &&String| ["&&", "||", "|", ">", ">>", "<"].contains(&word.as_str());
    let sign = sign.or_else(|| words.iter().flatten().find(operator).cloned());
    if let Some(sign) = sign.filter(|_| words.is_ok()) {
        // A variable's value may be a secret.
        let sign = if reader.substituted.contains_key(&node.at) {
            "a sign of shells".to_owned()
        } else {
            quoted(&sign)
        };
        reader.warn(node.at, path, format!("{sign} is an ordinary word: there is no shell"), NO_SHELL);
    }
    match words {
        Ok(words) => Some(words),
        Err(error) => {
            reader.mistake(node.at, path, error.to_string(), "");
            None
        }
    }
}

/// A list of arguments, or a text that is split into words. Arguments may be empty.
pub(super) fn arguments_of(node: &Node, path: &Path<'_>, reader: &mut Reader<'_>) -> Option<Vec<String>> {
    match &node.value {
        Value::Text(line) if line.trim().is_empty() => Some(Vec::new()),
        Value::Text(_) => words_of(node, path, reader),
        Value::List(items) => {
            let mut words = Vec::new();
            for (index, item) in items.iter().enumerate() {
                let word = text(item, &path.index(index), reader)?;
                if word.contains('\0') {
                    reader.mistake(item.at, &path.index(index), "the argument has a NUL character", "");
                    return None;
                }
                words.push(word.to_owned());
            }
            Some(words)
        }
        _ => {
            // Names the expected type and the mistake.
            texts(node, path, reader)
        }
    }
}

fn seconds(object: &Object<'_, '_>, key: &str, usual: u32, reader: &mut Reader<'_>) -> u32 {
    let given = object.whole(key, (1, MAX_SECONDS), reader);
    given.and_then(|seconds| u32::try_from(seconds).ok()).unwrap_or(usual)
}

/// `pytest`, `npm`, `lint`, `custom_command`, `code_exec`.
pub(super) fn read_command_check(
    word: &str,
    config: &Node,
    path: &Path<'_>,
    reader: &mut Reader<'_>,
) -> Option<Check> {
    let table = match word {
        "pytest" => &keys::PYTEST,
        "npm" => &keys::NPM,
        "lint" => &keys::LINT,
        _ => &keys::CUSTOM_COMMAND,
    };
    let object = Object::read(config, path, table, reader)?;
    let kind = match word {
        "pytest" => {
            let inside = path_or(&object, "path", "tests", reader);
            let args = args(&object, reader);
            inside.zip(args).map(|(path, args)| CommandKind::Pytest { path, args })
        }
        "npm" => {
            let command = match object.get("command") {
                Some(node) => words_of(node, &path.key("command"), reader),
                None => Some(vec!["npm".to_owned(), "test".to_owned()]),
            };
            command.map(|command| CommandKind::Npm { command })
        }
        "lint" => {
            object.required("linter", reader);
            let linter = object.word("linter", &Linter::WORDS, reader).and_then(Linter::named);
            let inside = path_or(&object, "path", ".", reader);
            let args = args(&object, reader);
            let max_violations = object.whole("max_violations", (0, u64::MAX), reader).unwrap_or_default();
            let max_errors = object.whole("max_errors", (0, u64::MAX), reader).unwrap_or_default();
            linter.zip(inside).zip(args).map(|((linter, path), args)| CommandKind::Lint {
                linter,
                path,
                args,
                max_violations,
                max_errors,
            })
        }
        _ => custom(&object, reader),
    };
    let threshold = threshold(&object, 1.0, reader);
    let timeout_seconds = seconds(&object, "timeout", DEFAULT_CHECK_SECONDS, reader);
    let working_dir = match object.get("working_dir") {
        Some(_) => Some(path_or(&object, "working_dir", ".", reader)?),
        None => None,
    };
    Some(Check::Command(CommandCheck { kind: kind?, threshold, timeout_seconds, working_dir }))
}

/// `threshold`, the least share or score that passes. With 0 everything would.
pub(super) fn threshold(object: &Object<'_, '_>, usual: f64, reader: &mut Reader<'_>) -> f64 {
    let given = object.number("threshold", (0.0, 1.0), reader);
    if given == Some(0.0)
        && let Some(node) = object.get("threshold")
    {
        let path = object.path.key("threshold");
        reader.mistake(node.at, &path, "with a threshold of 0 everything passes", "write a number above 0");
    }
    given.unwrap_or(usual)
}

fn custom(object: &Object<'_, '_>, reader: &mut Reader<'_>) -> Option<CommandKind> {
    let command = object
        .required("command", reader)
        .and_then(|node| words_of(node, &object.path.key("command"), reader));
    let pattern = object.nonblank("pattern", reader).map(str::to_owned);
    if let (Some(pattern), Some(node)) = (&pattern, object.get("pattern")) {
        let path = object.path.key("pattern");
        reader.pattern(node, &path, pattern, true)?;
        if check_count_pattern(pattern) == Ok(false) {
            let message = "the pattern has no group that counts";
            reader.mistake(node.at, &path, message, "name one `(?P<passed>\\d+)`, `failed` or `total`");
        }
    }
    let success_pattern = object.nonblank("success_pattern", reader).map(str::to_owned);
    if let (Some(pattern), Some(node)) = (&success_pattern, object.get("success_pattern")) {
        reader.pattern(node, &object.path.key("success_pattern"), pattern, true)?;
    }
    let expect_zero = object.boolean("expect_zero", reader).unwrap_or(true);
    if !expect_zero && pattern.is_none() && success_pattern.is_none() {
        let message = "without an expected exit code and without patterns nothing would be checked";
        reader.mistake(
            object.key_at("expect_zero"),
            object.path,
            message,
            "add `pattern` or `success_pattern`",
        );
    }
    Some(CommandKind::Custom { command: command?, pattern, success_pattern, expect_zero })
}

fn args(object: &Object<'_, '_>, reader: &mut Reader<'_>) -> Option<Vec<String>> {
    match object.get("args") {
        Some(node) => arguments_of(node, &object.path.key("args"), reader),
        None => Some(Vec::new()),
    }
}

/// A path in the workspace, or the usual one. It must not look like an option of the command.
fn path_or(
    object: &Object<'_, '_>,
    key: &str,
    usual: &str,
    reader: &mut Reader<'_>,
) -> Option<WorkspacePath> {
    let Some(node) = object.get(key) else { return WorkspacePath::parse(usual).ok() };
    let path = object.path.key(key);
    let written = super::object::nonblank(node, &path, reader)?;
    if written.starts_with('-') {
        let message = format!("the path {} looks like an option", reader.shown(node));
        reader.mistake(node.at, &path, message, "write `./` before it");
        return None;
    }
    workspace_path(node, &path, written, reader)
}
