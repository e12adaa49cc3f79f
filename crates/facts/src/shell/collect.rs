//! Gathers facts while parsing and enforces the limits that all levels of a command line share.

use std::collections::HashSet;

use super::variables::Variables;
use super::word::Word;
use super::{MAX_DEPTH, NOT_PARSED, ShellCommand, ShellFacts};

/// Characters that may be looked at in total, counting code strings that are parsed again.
const MAX_WORK: usize = 8 * 1024 * 1024;
/// Longest text of an unknown entry, in characters.
const MAX_NOTE_CHARS: usize = 200;
/// Most entries that a list may have.
pub(super) const MAX_COLLECTED: usize = 16 * 1024;
/// Most directories that a relative path is joined with.
const MAX_DIRECTORIES: usize = 8;

/// Operation on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Write,
    Read,
    Delete,
    /// The path is named; what happens to it is not known, or nothing does.
    Mention,
}

/// The facts so far and the state shared by nested parsers.
#[derive(Debug)]
pub(super) struct Collector {
    pub(super) facts: ShellFacts,
    seen_commands: HashSet<ShellCommand>,
    seen_paths: HashSet<(u8, String)>,
    seen_notes: HashSet<String>,
    seen_assignments: HashSet<String>,
    seen_expansions: HashSet<String>,
    depth: usize,
    work: usize,
    stopped: bool,
    /// The directories that relative paths may start from; the empty one is where the command line starts.
    pub(super) directories: Vec<String>,
    /// Set by a command that changes the directory, taken by the grammar, which knows what follows.
    pub(super) directory_change: Option<Word>,
    /// The wrappers around the code being parsed, outermost first.
    pub(super) wrappers: Vec<String>,
    /// Interpreters that read code from the standard input they inherited.
    pub(super) inherited_readers: Vec<String>,
    /// A function body was seen: it runs later, perhaps in another directory.
    pub(super) saw_function: bool,
    /// Aliases of git that the command line defines, with their meaning.
    pub(super) git_aliases: Vec<(String, String)>,
    /// Texts that commands print, which others may read.
    pub(super) printed: Vec<String>,
    /// Number of commands whose effects are not modelled, repeated ones included.
    pub(super) opaque_seen: usize,
    /// Number of commands that got further words from their input.
    pub(super) fed_seen: usize,
    /// Texts of here-documents and here-strings, which may be words of other commands.
    pub(super) given: Vec<String>,
    /// Commands that get further words from their input.
    pub(super) fed: Vec<Vec<Word>>,
    saw_directory_change: bool,
    /// What is known about variables.
    pub(super) variables: Variables,
}

impl Default for Collector {
    fn default() -> Self {
        Self {
            facts: ShellFacts::default(),
            seen_commands: HashSet::new(),
            seen_paths: HashSet::new(),
            seen_notes: HashSet::new(),
            seen_assignments: HashSet::new(),
            seen_expansions: HashSet::new(),
            depth: 0,
            work: 0,
            stopped: false,
            directories: vec![String::new()],
            directory_change: None,
            wrappers: Vec::new(),
            inherited_readers: Vec::new(),
            saw_function: false,
            git_aliases: Vec::new(),
            printed: Vec::new(),
            opaque_seen: 0,
            fed_seen: 0,
            given: Vec::new(),
            fed: Vec::new(),
            saw_directory_change: false,
            variables: Variables::default(),
        }
    }
}

impl Collector {
    /// The facts, at the end.
    pub(super) fn finish(mut self) -> ShellFacts {
        if self.saw_function && self.saw_directory_change {
            self.stopped = false;
            self.note("directory unknown", "a function and a change of directory");
        }
        for (kind, detail) in self.variables.notes() {
            self.note(kind, &detail);
        }
        self.facts
    }

    /// Records a variable that is set.
    pub(super) fn assignment(&mut self, name: &str, value: &str) {
        let entry = format!("{name}={value}");
        self.charge(entry.len());
        if !self.stopped
            && self.facts.assignments.len() < MAX_COLLECTED
            && self.seen_assignments.insert(entry.clone())
        {
            self.facts.assignments.push(entry);
        }
    }

    /// Records a word whose value is only known when it is used.
    pub(super) fn expansion(&mut self, text: &str) {
        self.charge(text.len());
        if !self.stopped
            && self.facts.expansions.len() < MAX_COLLECTED
            && self.seen_expansions.insert(text.to_owned())
        {
            self.facts.expansions.push(text.to_owned());
        }
    }

    /// Whether a limit was reached: nothing more is read.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Enters a nesting level; false at the limit. On `false` nothing more is read and [`Collector::leave`] must not be called.
    pub(super) fn enter(&mut self) -> bool {
        if self.depth >= MAX_DEPTH {
            self.stop("nested deeper than 32 levels");
            return false;
        }
        self.depth += 1;
        !self.stopped
    }

    /// Leaves a nesting level.
    pub(super) fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Counts work that is not covered by one pass over the input.
    pub(super) fn charge(&mut self, amount: usize) {
        self.work = self.work.saturating_add(amount);
        if self.work > MAX_WORK {
            self.stop("too many commands inside of others");
        }
    }

    fn stop(&mut self, reason: &str) {
        if !std::mem::replace(&mut self.stopped, true) {
            // First, so that no bound of the list drops it.
            self.facts.unknown.insert(0, format!("{NOT_PARSED} completely: {reason}"));
        }
    }

    /// Records an unknown fact.
    pub(super) fn note(&mut self, kind: &str, detail: &str) {
        // After a limit the rest looks unbalanced, which would only distract from the reason.
        if self.stopped || self.facts.unknown.len() >= MAX_COLLECTED {
            return;
        }
        let mut entry: String = format!("{kind}: ");
        let mut characters = detail.chars();
        entry.extend(characters.by_ref().take(MAX_NOTE_CHARS));
        if characters.next().is_some() {
            entry.push('…');
        }
        if self.seen_notes.insert(entry.clone()) {
            self.facts.unknown.push(entry);
        }
    }

    /// Records a command.
    pub(super) fn command(&mut self, words: &[Word], wrappers: &[String], assignments: &[String]) {
        let texts: Vec<String> = words.iter().map(Word::text).collect();
        let text = texts.join(" ");
        // A word costs far more than its characters: it is copied for every wrapper around it.
        self.charge(text.len().saturating_add(texts.len().saturating_mul(32)));
        if self.facts.commands.len() >= MAX_COLLECTED {
            self.stop("too many commands");
        }
        if self.stopped || texts.is_empty() {
            return;
        }
        let command = ShellCommand {
            words: texts,
            wrappers: wrappers.to_vec(),
            assignments: assignments.to_vec(),
            text,
            has_expansion: words.iter().any(Word::expands),
        };
        if self.seen_commands.insert(command.clone()) {
            self.facts.commands.push(command);
        }
    }

    /// Records a file, joined with the directories it may be relative to.
    pub(super) fn file(&mut self, effect: Effect, word: &Word) {
        if word.is_process() {
            return;
        }
        let text = word.text();
        if text.is_empty() || is_stream(&text) {
            return;
        }
        if let Some(verb) = effect.verb() {
            if word.expands() || word.has_sequence() {
                self.note(&format!("{verb} expansion"), &text);
            } else if word.has_glob() {
                self.note(&format!("{verb} glob"), &text);
            }
        }
        self.path(effect, &text);
    }

    /// Records a path whose text is known.
    pub(super) fn path(&mut self, effect: Effect, text: &str) {
        for directory in self.directories.clone() {
            let path = join(&directory, text);
            self.charge(path.len());
            if effect == Effect::Write {
                self.write_through(&path);
            }
            if self.stopped || !self.seen_paths.insert((effect as u8, path.clone())) {
                continue;
            }
            if let Some(verb) = effect.verb()
                && path != text
                && directory.contains(['$', '`'])
            {
                self.note(&format!("{verb} expansion"), &path);
            }
            let list = match effect {
                Effect::Write => &mut self.facts.writes,
                Effect::Read => &mut self.facts.reads,
                Effect::Delete => &mut self.facts.deletes,
                Effect::Mention => &mut self.facts.mentions,
            };
            if list.len() < MAX_COLLECTED {
                list.push(path);
            } else {
                self.stop("too many files");
            }
        }
    }

    /// The directories after `cd target`, if it succeeds.
    pub(super) fn directories_after(&mut self, target: &Word) -> Vec<String> {
        self.saw_directory_change = true;
        let text = target.text();
        let text = if text == "-" { "$OLDPWD".to_owned() } else { text };
        if target.has_glob() {
            self.note("directory from glob", &text);
        }
        let joined: Vec<String> = self.directories.iter().map(|directory| join(directory, &text)).collect();
        self.charge(joined.iter().map(String::len).sum());
        joined
    }

    /// Adds directories that relative paths may start from.
    pub(super) fn add_directories(&mut self, more: Vec<String>) {
        for directory in more {
            if self.directories.contains(&directory) {
                continue;
            }
            if self.directories.len() >= MAX_DIRECTORIES {
                self.note("directory unknown", "too many changes of directory");
                return;
            }
            self.directories.push(directory);
        }
    }
}

impl Effect {
    fn verb(self) -> Option<&'static str> {
        match self {
            Self::Write => Some("write to"),
            Self::Delete => Some("delete of"),
            Self::Read | Self::Mention => None,
        }
    }
}

/// Joins a path with a directory unless it does not depend on one.
pub(super) fn join(directory: &str, path: &str) -> String {
    let stands_alone = directory.is_empty()
        || path.starts_with(['/', '~', '$', '`'])
        || path.contains("://")
        || (path.as_bytes().get(1) == Some(&b':') && path.starts_with(|c: char| c.is_ascii_alphabetic()));
    if stands_alone {
        return path.to_owned();
    }
    format!("{}/{path}", directory.strip_suffix('/').unwrap_or(directory))
}

/// Whether the path names one of the process's own streams or a device without content.
fn is_stream(path: &str) -> bool {
    let Some(device) = path.strip_prefix("/dev/") else { return false };
    let descriptor = device.strip_prefix("fd/").unwrap_or("x");
    matches!(device, "null" | "zero" | "tty" | "stdin" | "stdout" | "stderr" | "random" | "urandom")
        || (!descriptor.is_empty() && descriptor.bytes().all(|byte| byte.is_ascii_digit()))
}
