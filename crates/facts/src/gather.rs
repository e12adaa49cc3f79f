//! Derivation of facts: walks the arguments and parses shell commands, patches and URLs.

use super::path::{absolute, is_anchored};
use super::shell::{self, ShellCommand, ShellFacts};
use super::{
    Facts, LONG_PATH, MAX_ENTRIES, MAX_PATH, NO_COMMAND, PathResolver, RELATIVE_PATH, TOO_MANY_ENTRIES,
    UNREADABLE_HOST, UNREADABLE_URL, Workspace, patch, tool, url,
};
use proctor_core::action::{Action, ActionKind};
use proctor_core::json::Json;

/// Argument names that hold a path.
const PATH_NAMES: &[&str] = &[
    "path",
    "file",
    "file_path",
    "filepath",
    "filename",
    "file_name",
    "target_file",
    "notebook_path",
    "directory",
    "dir",
    "folder",
    "source",
    "src",
    "destination",
    "dest",
    "dst",
    "old_path",
    "new_path",
    "target",
    "output",
    "output_path",
    "paths",
    "files",
];
/// Argument names that hold a shell command.
const COMMAND_NAMES: &[&str] = &["command", "cmd", "script", "commands", "shell_command", "bash_command"];
/// Argument names that hold a command if the tool is a shell.
const SHELL_NAMES: &[&str] =
    &["input", "code", "stdin", "text", "line", "lines", "run", "exec", "bash", "sh", "shell", "content"];
/// Argument names that hold a patch.
const PATCH_NAMES: &[&str] = &["patch", "diff", "patch_text"];
/// Argument names that hold a URL.
const URL_NAMES: &[&str] =
    &["url", "uri", "endpoint", "target_url", "source_url", "href", "link", "urls", "base_url"];
/// Argument names that hold a host.
const HOST_NAMES: &[&str] = &["host", "hostname", "domain", "server", "hosts"];
/// Programs whose plain operands are files.
const FILE_PROGRAMS: &[&str] = &[
    "cat", "less", "more", "head", "tail", "tac", "nl", "cp", "mv", "ln", "install", "rm", "rmdir", "unlink",
    "shred", "touch", "truncate", "mkdir", "chmod", "chown", "chgrp", "stat", "ls", "source", ".", "vi",
    "vim", "nano", "ed", "strings", "xxd", "od", "hexdump", "base64", "tar", "zip", "unzip", "gzip",
    "gunzip", "wc", "sort", "tee", "diff", "cmp", "readlink", "realpath", "rsync", "scp",
];

pub(crate) fn facts(action: &Action, workspace: Workspace<'_>) -> Facts {
    let mut facts = Facts {
        kind: action.kind,
        name: action.name.clone(),
        tool: tool::canonical_tool(action),
        args: action.args.clone(),
        result: action.result.clone(),
        metadata: action.metadata.clone(),
        operation: action.operation.to_lowercase(),
        command: action.command.clone(),
        host: clean_host(&action.host),
        port: action.port.unwrap_or(0),
        url: action.url.clone(),
        model: action.model.clone(),
        text: action.text.clone(),
        tokens: action.tokens,
        cost_usd: action.cost_usd,
        cwd: working_directory(&action.cwd, workspace.folder),
        workspace: workspace.folder.to_owned(),
        depth: action.depth,
        door: action.door.clone(),
        ..Facts::default()
    };
    if facts.name.is_empty() {
        facts.name.clone_from(&facts.tool);
    }
    let mut gatherer = Gatherer { facts, first_path: String::new() };
    gatherer.gather(action);
    let mut facts = gatherer.finish();
    if let Some(resolver) = workspace.resolver {
        add_real_paths(&mut facts, resolver);
    }
    bound(&mut facts);
    facts
}

/// The working directory: the claimed one, else the workspace. None if the claimed one is longer than any that a system has, or relative
/// to nothing.
fn working_directory(claimed: &str, workspace: &str) -> String {
    if claimed.is_empty() {
        return workspace.to_owned();
    }
    if claimed.len() > MAX_PATH {
        return String::new();
    }
    let directory = absolute(claimed, workspace);
    if is_anchored(&directory) { directory } else { String::new() }
}

struct Gatherer {
    facts: Facts,
    first_path: String,
}

impl Gatherer {
    fn gather(&mut self, action: &Action) {
        self.is_long(&action.cwd);
        let writes = self.writes_by_itself();
        if !action.path.is_empty() {
            self.add_path(&action.path, writes);
        }
        if !action.command.is_empty() {
            self.add_command(&action.command);
        }
        self.add_sent_host(&action.host);
        if !action.url.is_empty() {
            self.add_url(&action.url);
        }
        // The arguments of `args` as sent; a result is data, not a target.
        let args = std::mem::take(&mut self.facts.args);
        self.walk("", &args, 0);
        let says_something = match &args {
            Json::Null => false,
            Json::Object(members) => !members.is_empty(),
            _ => true,
        };
        self.facts.args = args;
        if self.facts.tool == "shell" && says_something && self.facts.commands.is_empty() {
            self.unknown(NO_COMMAND);
        }
    }

    fn finish(mut self) -> Facts {
        self.facts.path = std::mem::take(&mut self.first_path);
        if self.facts.host.is_empty() {
            self.facts.host = self.facts.hosts.first().cloned().unwrap_or_default();
        }
        self.facts
    }

    /// Whether the tool itself writes the paths that it is given.
    fn writes_by_itself(&self) -> bool {
        matches!(self.facts.tool.as_str(), "file_write" | "file_delete")
            || (self.facts.kind == ActionKind::FileOperation && self.facts.operation != "read")
    }

    fn walk(&mut self, name: &str, value: &Json, depth: usize) {
        if depth > 32 {
            self.unknown("arguments nested too deep to search");
            return;
        }
        match value {
            Json::String(text) => self.leaf(name, text),
            Json::Array(items) if is_any(COMMAND_NAMES, name) || self.is_bare_command(name) => {
                self.argument_vector(items);
            }
            Json::Array(items) => items.iter().for_each(|item| self.walk(name, item, depth + 1)),
            Json::Object(members) => {
                for (name, member) in members {
                    self.walk(name, member, depth + 1);
                }
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
    }

    /// Whether a member of this name is a command because the tool is a shell: arguments that are a text or a list, and names that shells
    /// use for code.
    fn is_bare_command(&self, name: &str) -> bool {
        self.facts.tool == "shell" && (name.is_empty() || is_any(SHELL_NAMES, name))
    }

    fn leaf(&mut self, name: &str, text: &str) {
        if is_any(COMMAND_NAMES, name) || self.is_bare_command(name) {
            if self.facts.command.is_empty() {
                text.clone_into(&mut self.facts.command);
            }
            self.add_command(text);
        } else if is_any(PATCH_NAMES, name)
            || text.starts_with("*** Begin Patch")
            || text.starts_with("diff --git ")
        {
            self.add_patch(text);
        } else if is_any(URL_NAMES, name) {
            if self.facts.url.is_empty() {
                text.clone_into(&mut self.facts.url);
            }
            self.add_url(text);
        } else if is_any(HOST_NAMES, name) {
            self.add_sent_host(text);
        } else if is_any(PATH_NAMES, name) {
            if text.contains("://") && !text.starts_with("file:") {
                self.add_url(text);
            } else if !text.is_empty() {
                let writes = self.writes_by_itself();
                self.add_path(text, writes);
            }
        } else if text.contains("://") && !text.contains(char::is_whitespace) {
            self.add_url(text);
        } else if text.contains("://") && self.facts.tool == "network" {
            // A tool that connects may follow any URL that it is told of.
            for host in url::find_hosts(text) {
                self.add_host(host);
            }
        }
    }

    /// A command as a list of words: quoted back into one line, so that one parser judges both forms.
    fn argument_vector(&mut self, items: &[Json]) {
        let words: Vec<String> = items.iter().filter_map(Json::as_str).map(quote).collect();
        if words.len() < items.len() {
            self.unknown("command words that are not strings");
        }
        let line = words.join(" ");
        if self.facts.command.is_empty() {
            self.facts.command = items.iter().filter_map(Json::as_str).collect::<Vec<_>>().join(" ");
        }
        self.add_command(&line);
        // `["ls -l", "rm x"]` is a list of lines rather than of words.
        for line in items.iter().filter_map(Json::as_str).filter(|line| line.contains(' ')) {
            self.add_command(line);
        }
    }

    fn add_command(&mut self, line: &str) {
        let shell = shell::parse(line);
        let bases = self.bases(&shell);
        for command in &shell.commands {
            push_new(&mut self.facts.commands, command.text.clone());
            for operand in path_operands(command) {
                self.add_path_from(&bases, operand, false);
            }
        }
        for path in &shell.reads {
            self.add_path_from(&bases, path, false);
        }
        for path in shell.writes.iter().chain(&shell.deletes) {
            self.add_path_from(&bases, path, true);
        }
        for host in url::hosts_of(&shell) {
            self.add_host(host);
        }
        let noted = [
            (&mut self.facts.unknown, shell.unknown),
            (&mut self.facts.expansions, shell.expansions),
            (&mut self.facts.assignments, shell.assignments),
            (&mut self.facts.opaque, shell.opaque),
        ];
        for (list, entries) in noted {
            entries.into_iter().for_each(|entry| push_new(list, entry));
        }
    }

    /// The directories that relative paths may start from: the action's own, and every one that a `cd` goes to. Which of them
    /// holds at a given word depends on what succeeds at run time, so all are judged.
    fn bases(&mut self, shell: &ShellFacts) -> Vec<String> {
        let mut bases = vec![self.facts.cwd.clone()];
        for command in &shell.commands {
            let mut words = command.words.iter().map(String::as_str);
            if !matches!(words.next(), Some("cd" | "pushd")) {
                continue;
            }
            let Some(target) = words.find(|word| !word.starts_with('-')) else {
                push_new(&mut bases, "~".to_owned());
                continue;
            };
            let reached: Vec<String> = bases.iter().map(|base| absolute(target, base)).collect();
            for base in reached {
                if base.len() > MAX_PATH {
                    self.unknown(LONG_PATH);
                    continue;
                }
                if bases.len() >= 16 {
                    self.unknown("too many changes of directory");
                    return bases;
                }
                push_new(&mut bases, base);
            }
        }
        bases
    }

    fn add_path_from(&mut self, bases: &[String], path: &str, writes: bool) {
        if self.is_long(path) {
            return;
        }
        for base in bases {
            let path = absolute(path, base);
            self.push_path(path, writes);
        }
    }

    /// Whether a path is longer than any that a system opens; noted as unknown. Joined with every directory, such paths would multiply the
    /// size of the action.
    fn is_long(&mut self, path: &str) -> bool {
        let is_long = path.len() > MAX_PATH;
        if is_long {
            self.unknown(LONG_PATH);
        }
        is_long
    }

    fn add_path(&mut self, path: &str, writes: bool) {
        if self.is_long(path) {
            return;
        }
        let path = absolute(path, &self.facts.cwd);
        if self.first_path.is_empty() {
            self.first_path.clone_from(&path);
        }
        self.push_path(path, writes);
    }

    fn push_path(&mut self, path: String, writes: bool) {
        if !is_anchored(&path) {
            self.unknown(RELATIVE_PATH);
        }
        if writes {
            push_new(&mut self.facts.writes, path.clone());
        }
        push_new(&mut self.facts.paths, path);
    }

    fn add_patch(&mut self, text: &str) {
        let files = patch::files(text);
        for path in files.writes.iter().chain(&files.deletes) {
            self.add_path(path, true);
        }
        for unknown in files.unknown {
            push_new(&mut self.facts.unknown, unknown);
        }
    }

    fn add_url(&mut self, text: &str) {
        // Without a scheme it is what tools make of it: `example.com/x`, `//example.com/x`.
        let parsed =
            url::parse(text).or_else(|| url::parse(&format!("https://{}", text.trim_start_matches('/'))));
        match parsed {
            Some(parts) if parts.scheme == "file" => self.add_path(text, false),
            Some(parts) => {
                if self.facts.port == 0 {
                    self.facts.port = parts.port.unwrap_or(0);
                }
                self.add_host(parts.host);
            }
            None => self.unknown(UNREADABLE_URL),
        }
    }

    /// A host as it was sent. What could hide another one in it is not a host.
    fn add_sent_host(&mut self, sent: &str) {
        if sent.is_empty() {
            return;
        }
        if sent.contains(['/', '\\', '#', '?', '@']) || sent.contains(char::is_whitespace) {
            self.unknown(UNREADABLE_HOST);
        }
        self.add_host(clean_host(sent));
    }

    fn add_host(&mut self, host: String) {
        if !host.is_empty() {
            push_new(&mut self.facts.hosts, host);
        }
    }

    fn unknown(&mut self, what: &str) {
        push_new(&mut self.facts.unknown, what.to_owned());
    }
}

/// The words of a command that name files: those with a slash, and all plain operands of programs that take files.
fn path_operands(command: &ShellCommand) -> impl Iterator<Item = &str> {
    let program = command.words.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word));
    let takes_files = FILE_PROGRAMS.contains(&program);
    command.words.iter().skip(1).filter_map(move |word| {
        let value = match word.strip_prefix('-') {
            // `--file=/x`, or attached to a short option: `-I/usr/include`, `-f../x`.
            Some(option) => match option.split_once('=') {
                Some((_, value)) => value,
                None if option.contains('/') => option.get(option.find(['/', '.', '~'])?..)?,
                None => return None,
            },
            None => word.as_str(),
        };
        // `of=/dev/sda` and the like.
        let value = match value.split_once('=') {
            Some((_, after)) if after.starts_with(['/', '~', '.']) => after,
            _ => value,
        };
        let looks_like_path = value.starts_with(['~', '.', '/']) || value.contains('/');
        let is_path = !value.is_empty() && !value.contains("://") && (takes_files || looks_like_path);
        is_path.then_some(value)
    })
}

fn add_real_paths(facts: &mut Facts, resolver: &dyn PathResolver) {
    let known: Vec<String> = facts.paths.iter().take(MAX_ENTRIES).cloned().collect();
    for path in known {
        // No system has such a path, and looking it up costs more the longer it is.
        if path.len() > MAX_PATH {
            push_new(&mut facts.unknown, LONG_PATH.to_owned());
            continue;
        }
        let Some(real) = resolver.real_path(&path) else { continue };
        if facts.writes.contains(&path) {
            push_new(&mut facts.writes, real.clone());
        }
        push_new(&mut facts.paths, real);
    }
}

/// Cuts what is too long, and says so.
fn bound(facts: &mut Facts) {
    let mut cut = false;
    for list in [
        &mut facts.paths,
        &mut facts.writes,
        &mut facts.commands,
        &mut facts.hosts,
        &mut facts.unknown,
        &mut facts.expansions,
        &mut facts.assignments,
        &mut facts.opaque,
    ] {
        cut |= list.len() > MAX_ENTRIES;
        list.truncate(MAX_ENTRIES);
    }
    if cut {
        facts.unknown.truncate(MAX_ENTRIES - 1);
        facts.unknown.push(TOO_MANY_ENTRIES.to_owned());
    }
}

fn push_new(list: &mut Vec<String>, entry: String) {
    // Past the bound the list is cut anyway; not comparing any more keeps this from becoming quadratic.
    if list.len() > MAX_ENTRIES || list.contains(&entry) {
        return;
    }
    list.push(entry);
}

fn is_any(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// A word in single quotes, as a shell would need it.
fn quote(word: &str) -> String {
    if !word.is_empty()
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&byte))
    {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A host as sent, in the one spelling that rules compare with.
fn clean_host(host: &str) -> String {
    if host.is_empty() {
        return String::new();
    }
    match url::parse(&format!("host://{host}")) {
        Some(parts) => parts.host,
        None => host.to_lowercase(),
    }
}
