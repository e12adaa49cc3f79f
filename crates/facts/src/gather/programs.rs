//! Programs beside a command: the shell that runs it, the program that gets the words, and the variables that both get.

use proctor_core::json::Json;

use super::names::{Role, role};
use super::{Gatherer, quote};
use crate::tool::{ToolClass, squash};

/// Names of a program that runs the command, or gets the words, beside it.
const PROGRAM: &[&str] = &[
    "shell",
    "shelltype",
    "shellpath",
    "shellprogram",
    "shellexecutable",
    "program",
    "executable",
    "executablepath",
    "interpreter",
    "interpreterpath",
    "binary",
    "exe",
];
/// Names of shells whose meaning for a command is known.
const SHELLS: &[&str] = &[
    "bash",
    "sh",
    "zsh",
    "dash",
    "ksh",
    "fish",
    "powershell",
    "powershell.exe",
    "pwsh",
    "cmd",
    "cmd.exe",
    "gitbash",
    "default",
    "auto",
    "system",
];
/// Directories where a shell of a known name is that shell.
const SHELL_DIRECTORIES: &[&str] =
    &["/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/", "/run/current-system/sw/bin/"];

/// Whether a name in the arguments of a shell is of a program beside the command.
pub(super) fn is_program(name: &str) -> bool {
    PROGRAM.contains(&squash(name).as_str())
}

fn is_plain_shell(text: &str) -> bool {
    let name = SHELL_DIRECTORIES.iter().find_map(|directory| text.strip_prefix(directory)).unwrap_or(text);
    SHELLS.contains(&squash(name).as_str())
}

impl Gatherer<'_> {
    /// Commands whose further words stand in a member of their own, and programs beside them; true if there is a command with words.
    pub(super) fn command_with_words(&mut self, members: &[(String, Json)]) -> bool {
        if !matches!(self.class, ToolClass::Shell | ToolClass::Code) {
            return false;
        }
        let words = members
            .iter()
            .find_map(|(name, member)| member.as_array().filter(|_| role(self.class, name) == Role::Words));
        let quoted: Vec<String> =
            words.unwrap_or_default().iter().filter_map(Json::as_str).map(quote).collect();
        if quoted.len() < words.map_or(0, <[Json]>::len) {
            self.unknown("command words that are not strings");
        }
        let mut joined = false;
        for (name, member) in members {
            if is_program(name) {
                // With options of its own, or the whole as one text.
                let options: Vec<&str> =
                    member.as_array().unwrap_or_default().iter().filter_map(Json::as_str).collect();
                let program = member.as_str().or_else(|| options.first().copied()).unwrap_or_default();
                if program.is_empty() || (is_plain_shell(program) && words.is_none()) {
                    continue;
                }
                let options: Vec<String> = options.iter().skip(1).map(|word| quote(word)).collect();
                let line = [vec![program.to_owned()], options, quoted.clone()].concat().join(" ");
                self.note_command(&line);
                self.add_command(&line);
                joined |= words.is_some();
            } else if super::is_any(&["command", "cmd", "file"], name)
                && self.class == ToolClass::Shell
                && words.is_some()
                && let Some(command) = member.as_str()
            {
                self.add_command(&format!("{command} {}", quoted.join(" ")));
                joined = true;
            }
        }
        joined
    }

    /// Variables in one text: an object in JSON, lines or words `NAME=value`, or the name of a file with them.
    pub(super) fn environment_text(&mut self, text: &str, depth: usize) {
        if self.walks_environment(text, depth) {
            return;
        }
        if !text.contains('=') {
            if text.starts_with(['/', '~', '.']) {
                self.add_argument_path(text, false);
            }
            return;
        }
        let separators: [&[char]; 2] = [&['\n', '\0'], &['\n', '\0', ' ', '\t', '\r', ';', ',', '&']];
        for separator in separators {
            for part in text.split(separator) {
                let part = part.trim().trim_start_matches("export ").trim_matches(['"', '\'']);
                if let Some((name, value)) = part.split_once('=') {
                    self.add_assignment(name.trim(), value.trim_matches(['"', '\'']));
                }
            }
        }
    }

    fn walks_environment(&mut self, text: &str, depth: usize) -> bool {
        if !text.trim_start().starts_with(['{', '[']) {
            return false;
        }
        match Json::parse(text.trim().as_bytes()) {
            Ok(value @ (Json::Object(_) | Json::Array(_))) => {
                self.walk("env", &value, None, depth + 1);
                true
            }
            _ => false,
        }
    }
}
