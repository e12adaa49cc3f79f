//! Facts about words: expansions, assignments, hosts, paths that are named, and opaque commands.

use super::collect::{Collector, Effect, MAX_COLLECTED, join};
use super::word::Word;
use super::{Address, AddressForm, Link};

/// Longest entry of `expansions`, `assignments` and `opaque`, in characters.
const MAX_ENTRY_CHARS: usize = 400;

/// The word in `expansions` for operands that a program finds or reads when it runs.
pub(super) const FROM_INPUT: &str = "{}";

/// Variables whose value programs run as a command line.
const COMMAND_VARIABLES: &[&str] = &[
    "BROWSER",
    "EDITOR",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "LESSOPEN",
    "LESSCLOSE",
    "MANPAGER",
    "PAGER",
    "PROMPT_COMMAND",
    "RSYNC_RSH",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "VISUAL",
    "SYSTEMD_PAGER",
    "CVS_RSH",
    "SUDO_EDITOR",
    "FCEDIT",
];

impl Collector {
    fn add(&mut self, choose: impl FnOnce(&mut super::ShellFacts) -> &mut Vec<String>, text: &str) {
        self.charge(text.len().min(MAX_ENTRY_CHARS));
        if self.is_stopped() {
            return;
        }
        let mut entry: String = text.chars().take(MAX_ENTRY_CHARS).collect();
        if entry.len() < text.len() {
            entry.push('…');
        }
        let list = choose(&mut self.facts);
        if list.len() < MAX_COLLECTED && !list.iter().rev().take(256).any(|known| *known == entry) {
            list.push(entry);
        }
    }

    /// Records a word whose value is only known when it runs.
    pub(super) fn unknown_word(&mut self, text: &str) {
        self.add(|facts| &mut facts.expansions, text);
    }

    /// Records a variable that is set for a command. A value that is not known is left empty.
    pub(super) fn assign(&mut self, word: &Word) {
        let text = word.text();
        let Some((name, _)) = text.split_once('=') else { return };
        let entry = if word.expands() { format!("{name}=") } else { text.clone() };
        self.add(|facts| &mut facts.assignments, &entry);
    }

    /// Records a command whose effects are not modelled.
    pub(super) fn opaque(&mut self, words: &[Word]) {
        self.opaque_seen = self.opaque_seen.saturating_add(1);
        let text = words.iter().map(Word::text).collect::<Vec<_>>().join(" ");
        self.add(|facts| &mut facts.opaque, &text);
    }

    /// Records a host that a program is given.
    pub(super) fn address(&mut self, form: AddressForm, text: &str) {
        self.charge(text.len());
        let address = Address { form, text: text.to_owned() };
        let known = self.facts.addresses.iter().rev().take(256).any(|known| *known == address);
        if !self.is_stopped() && !text.is_empty() && !known && self.facts.addresses.len() < MAX_COLLECTED {
            self.facts.addresses.push(address);
        }
    }

    /// Records a path that a word may name.
    pub(super) fn mention(&mut self, text: &str) {
        self.path(Effect::Mention, text);
    }

    /// Remembers that a path which may be a link is written to.
    pub(super) fn write_through(&mut self, path: &str) {
        if self.facts.links.is_empty() {
            return;
        }
        let written = crate::path::absolute(path, "");
        for link in &mut self.facts.links {
            link.is_written |= crate::path::absolute(&link.path, "") == written;
        }
    }

    /// Records that files are written where the command runs, if that is not where the command line starts.
    pub(super) fn writes_here(&mut self) {
        let directories = std::mem::replace(&mut self.directories, vec![String::new()]);
        for directory in directories.iter().filter(|directory| !directory.is_empty()) {
            self.path(Effect::Write, directory);
        }
        self.directories = directories;
    }

    /// Records that `path` leads to `target`, or is a copy of it; relative paths start where the command runs.
    pub(super) fn link(&mut self, path: &str, target: &str, is_copy: bool) {
        for directory in self.directories.clone() {
            let link = Link {
                path: join(&directory, path),
                target: join(&directory, target),
                is_copy,
                is_written: false,
            };
            self.charge(link.path.len().saturating_add(link.target.len()));
            if !self.is_stopped() && self.facts.links.len() < 64 && !self.facts.links.contains(&link) {
                self.facts.links.push(link);
            }
        }
    }
}

/// The command line in a variable's value, if programs run it.
pub(super) fn command_in(assignment: &str) -> Option<&str> {
    let (name, value) = assignment.split_once('=')?;
    COMMAND_VARIABLES.contains(&name).then_some(value).filter(|value| !value.is_empty())
}

/// The address in a variable that names a proxy.
pub(super) fn proxy_in(assignment: &str) -> Option<&str> {
    let (name, value) = assignment.split_once('=')?;
    let is_proxy = name.to_ascii_lowercase().ends_with("_proxy") && !name.eq_ignore_ascii_case("no_proxy");
    (is_proxy && !value.is_empty()).then_some(value)
}

/// Whether a text is written as a path: with a slash, or starting with a dot or a tilde.
pub(super) fn looks_like_path(text: &str) -> bool {
    !text.contains("://") && (text.contains('/') || text.starts_with(['~', '.']))
}
