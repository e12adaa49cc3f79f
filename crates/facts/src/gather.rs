//! Derivation of facts: walks the arguments and parses shell commands, patches and URLs.

mod arguments;
mod names;
mod programs;
mod targets;

use super::links;
use super::path::{absolute, is_anchored};
use super::shell::{self, Link, ShellCommand, ShellFacts};
use super::tool::ToolClass;
use super::{
    Facts, LONG_PATH, MAX_ENTRIES, MAX_PATH, NO_COMMAND, NO_HOST, NO_PATH, PathResolver, RELATIVE_PATH,
    TOO_MANY_ENTRIES, UNREADABLE, Workspace, is_unread, tool, url,
};
use proctor_core::action::{Action, ActionKind};
use proctor_core::json::Json;

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
    let mut gatherer = Gatherer {
        facts,
        class: tool::class(action),
        resolver: workspace.resolver,
        first_path: String::new(),
        bases: Vec::new(),
        unclean: Vec::new(),
        only_views: false,
        patch_without_files: None,
    };
    gatherer.gather(action);
    let mut facts = gatherer.finish();
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

struct Gatherer<'a> {
    facts: Facts,
    class: ToolClass,
    resolver: Option<&'a dyn PathResolver>,
    first_path: String,
    /// Directories in the arguments, which relative paths may start from besides the working directory.
    bases: Vec<String>,
    /// Paths before they were cleaned, for the resolver: behind a link, `..` is another directory. With whether they are written.
    unclean: Vec<(String, bool)>,
    /// An editor was told to show a file only.
    only_views: bool,
    /// What is wrong with a patch in which no file was found.
    patch_without_files: Option<String>,
}

impl Gatherer<'_> {
    fn gather(&mut self, action: &Action) {
        self.is_long(&action.cwd);
        // The arguments of `args` as sent; a result is data, not a target.
        let args = std::mem::take(&mut self.facts.args);
        self.find_bases(&args, 0);
        if !action.path.is_empty() {
            let writes = self.class.writes() || self.writes_by_kind();
            self.add_argument_path(&action.path, writes);
        }
        if !action.command.is_empty() {
            self.add_command(&action.command);
        }
        self.add_sent_host(&action.host);
        if !action.url.is_empty() {
            self.add_url(&action.url);
        }
        self.walk("", &args, None, 0);
        let says_something = match &args {
            Json::Null => false,
            Json::Object(members) => !members.is_empty(),
            _ => true,
        };
        self.facts.args = args;
        self.note_what_is_missing(action.kind, says_something);
    }

    /// Notes targets that the tool must have and that were not found. A result names none.
    fn note_what_is_missing(&mut self, kind: ActionKind, says_something: bool) {
        if self.class == ToolClass::Shell && says_something && self.facts.commands.is_empty() {
            self.unknown(NO_COMMAND);
        }
        if let Some(problem) = self.patch_without_files.take()
            && self.facts.writes.is_empty()
        {
            push_new(&mut self.facts.unknown, problem);
            self.hidden_path(true);
        }
        if kind == ActionKind::ToolResult {
            return;
        }
        if matches!(self.class, ToolClass::FileSearch | ToolClass::ContentSearch)
            && self.facts.paths.is_empty()
            && !self.facts.cwd.is_empty()
        {
            // A search that names no folder searches the working directory.
            let cwd = self.facts.cwd.clone();
            self.push_path(cwd, false);
        }
        let takes_path = self.class.is_file() || kind == ActionKind::FileOperation;
        if takes_path
            && self.facts.paths.is_empty()
            && self.facts.commands.is_empty()
            && self.facts.hosts.is_empty()
        {
            self.unknown(NO_PATH);
            self.hidden_path(self.class.writes() || self.writes_by_kind());
        }
        // Tools that only resemble one that connects may have their host in their settings.
        let takes_host = self.facts.tool == "network" || kind == ActionKind::NetworkCall;
        if takes_host
            && self.facts.hosts.is_empty()
            && self.facts.paths.is_empty()
            && self.facts.commands.is_empty()
        {
            self.hidden_host(NO_HOST);
        }
        // What is only named as a directory is what a tool without another path changes.
        let writes = self.class.writes() && !self.only_views;
        if writes && self.facts.writes.is_empty() && self.class != ToolClass::FileCopy {
            self.facts.writes = self.facts.paths.clone();
        }
    }

    fn finish(mut self) -> Facts {
        if let Some(resolver) = self.resolver {
            let unclean = std::mem::take(&mut self.unclean);
            add_real_paths(&mut self.facts, &unclean, resolver);
        }
        self.facts.path = std::mem::take(&mut self.first_path);
        if self.facts.host.is_empty() {
            self.facts.host = self.facts.hosts.first().cloned().unwrap_or_default();
        }
        self.facts
    }

    /// Whether the action claims to change a file.
    fn writes_by_kind(&self) -> bool {
        self.facts.kind == ActionKind::FileOperation && self.facts.operation != "read"
    }

    fn add_command(&mut self, line: &str) {
        let shell = shell::parse(line);
        let bases = self.bases(&shell);
        for command in &shell.commands {
            push_new(&mut self.facts.commands, command.text.clone());
        }
        for path in shell.reads.iter().chain(&shell.mentions) {
            self.add_path_from(&bases, path, false);
        }
        for path in shell.writes.iter().chain(&shell.deletes) {
            self.add_path_from(&bases, path, true);
        }
        for host in url::hosts_of(&shell) {
            self.add_host(host);
        }
        self.add_linked(&bases, &shell.links);
        // First, so that it stays when the list is cut.
        if let Some(unread) = shell.unknown.iter().find(|unknown| is_unread(unknown))
            && !self.facts.unknown.contains(unread)
        {
            self.facts.unknown.insert(0, unread.clone());
        }
        self.add_patches_of(line, &shell);
        let noted = [
            (&mut self.facts.unknown, shell.unknown),
            (&mut self.facts.expansions, shell.expansions),
            (&mut self.facts.assignments, shell.assignments),
            (&mut self.facts.opaque, shell.opaque),
        ];
        for (list, entries) in noted {
            for entry in entries {
                push_new(list, entry);
            }
        }
    }

    /// Adds the paths behind links and copies that the command line makes: what is reached through them counts as their source.
    fn add_linked(&mut self, bases: &[String], found: &[Link]) {
        let mut links: Vec<links::Ends> = Vec::new();
        let mut copies: Vec<links::Ends> = Vec::new();
        for link in found {
            let list = if link.is_copy { &mut copies } else { &mut links };
            let ends = bases.iter().map(|base| links::Ends {
                path: absolute(&link.path, base),
                target: absolute(&link.target, base),
                counts_itself: link.is_written,
            });
            list.extend(ends.filter(|ends| ends.path.len() <= MAX_PATH && ends.target.len() <= MAX_PATH));
        }
        for path in links::behind(&self.facts.writes, &links) {
            self.push_path(path, true);
        }
        // Writing to a copy leaves its source as it is.
        copies.extend(links);
        for ends in &mut copies {
            ends.counts_itself = true;
        }
        for path in links::behind(&self.facts.paths, &copies) {
            self.push_path(path, false);
        }
    }

    /// The directories that relative paths may start from: the action's own, those in its arguments, and every one that a `cd` goes to.
    /// Which of them holds at a given word depends on what succeeds at run time, so all are judged.
    fn bases(&mut self, shell: &ShellFacts) -> Vec<String> {
        let mut bases = vec![self.facts.cwd.clone()];
        self.bases.iter().for_each(|base| push_new(&mut bases, base.clone()));
        let changes = |command: &ShellCommand| {
            matches!(command.words.first().map(String::as_str), Some("cd" | "pushd"))
        };
        // After the last command nothing depends on a directory.
        let last = shell.commands.iter().rposition(|command| !changes(command)).unwrap_or(0);
        for command in shell.commands.iter().take(last).filter(|command| changes(command)) {
            let mut words = command.words.iter().map(String::as_str).skip(1);
            let Some(target) = words.find(|word| !word.starts_with('-')) else {
                push_new(&mut bases, "~".to_owned());
                continue;
            };
            let mut reached: Vec<String> = bases.iter().map(|base| absolute(target, base)).collect();
            // Behind a link, `..` of a later path is the parent of the link's target.
            let real = bases.iter().filter_map(|base| self.resolver?.real_path(&joined(target, base)));
            reached.extend(real.collect::<Vec<_>>());
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
            self.note_unclean(path, base, writes);
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

    /// Keeps a path with `..` as it is, because links give it another meaning than cleaning does.
    fn note_unclean(&mut self, path: &str, base: &str, writes: bool) {
        if self.resolver.is_some() && self.unclean.len() < MAX_ENTRIES && path.contains("..") {
            self.unclean.push((joined(path, base), writes));
        }
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

    fn add_host(&mut self, host: String) {
        if !host.is_empty() {
            push_new(&mut self.facts.hosts, host);
        }
    }

    /// Notes a host that cannot be read. Its entry is no host, so that no rule about known hosts permits it.
    fn hidden_host(&mut self, problem: &str) {
        self.unknown(problem);
        self.add_host(UNREADABLE.to_owned());
    }

    /// Notes a path that cannot be found, by an entry that no folder contains.
    fn hidden_path(&mut self, writes: bool) {
        if writes {
            push_new(&mut self.facts.writes, UNREADABLE.to_owned());
        }
        push_new(&mut self.facts.paths, UNREADABLE.to_owned());
    }

    fn unknown(&mut self, what: &str) {
        push_new(&mut self.facts.unknown, what.to_owned());
    }
}

/// A path behind its directory, not cleaned.
fn joined(path: &str, base: &str) -> String {
    if is_anchored(path) || base.is_empty() { path.to_owned() } else { format!("{base}/{path}") }
}

fn add_real_paths(facts: &mut Facts, unclean: &[(String, bool)], resolver: &dyn PathResolver) {
    let known: Vec<(String, bool)> = facts
        .paths
        .iter()
        .take(MAX_ENTRIES)
        .map(|path| (path.clone(), facts.writes.contains(path)))
        .collect();
    for (path, writes) in known.iter().chain(unclean) {
        // No system has such a path, and looking it up costs more the longer it is.
        if path.len() > MAX_PATH {
            push_new(&mut facts.unknown, LONG_PATH.to_owned());
            continue;
        }
        let Some(real) = resolver.real_path(path) else { continue };
        if *writes {
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
    let parts = url::parse(&format!("host://{host}")).filter(|parts| url::is_host(&parts.host));
    parts.map_or_else(|| UNREADABLE.to_owned(), |parts| parts.host)
}

#[cfg(test)]
mod tests;
