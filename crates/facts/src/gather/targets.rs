//! Targets of arguments: paths in their spellings, patterns of names, patches and URLs.

use proctor_core::action::ActionKind;

use super::{Gatherer, push_new};
use crate::path::absolute;
use crate::shell::ShellFacts;
use crate::{UNREADABLE_HOST, UNREADABLE_URL, patch, url};

/// Prefixes of URLs that hold another URL.
const AROUND_URLS: [&str; 5] = ["blob:", "view-source:", "filesystem:", "feed:", "jar:"];

impl Gatherer<'_> {
    /// A path in an argument, from every directory that it may start from, in every spelling that a tool may read it as.
    pub(super) fn add_argument_path(&mut self, text: &str, writes: bool) {
        if self.is_long(text) {
            return;
        }
        self.note_expansion(text);
        let mut spellings = vec![text];
        // Tools trim what models write; `@` names a file in prompts.
        let trimmed = text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`'));
        let named =
            trimmed.strip_prefix('@').filter(|rest| rest.starts_with(['/', '~', '.'])).unwrap_or(trimmed);
        for spelling in [trimmed, named] {
            if !spelling.is_empty() && !spellings.contains(&spelling) {
                spellings.push(spelling);
            }
        }
        if let Some((before, _)) = text.split_once('\0') {
            // The operating system reads a name up to here.
            self.unknown("a path with a NUL byte");
            spellings.push(before);
        }
        let mut bases = vec![self.facts.cwd.clone()];
        self.bases.iter().for_each(|base| push_new(&mut bases, base.clone()));
        for spelling in spellings {
            for base in &bases {
                self.note_unclean(spelling, base, writes);
                let path = absolute(spelling, base);
                if self.first_path.is_empty() {
                    self.first_path.clone_from(&path);
                }
                self.push_path(path, writes);
            }
        }
    }

    /// Notes a path whose value a tool may compute: variables, and patterns of names.
    fn note_expansion(&mut self, text: &str) {
        let has_variable = text.contains(['`'])
            || text.contains("${")
            || text.contains("$(")
            || text.split('/').any(is_variable);
        if has_variable || text.contains(['*', '?']) || (text.contains('{') && text.contains(',')) {
            push_new(&mut self.facts.expansions, text.to_owned());
        }
    }

    /// A pattern of file names: the folder that it starts from. Below that it finds what is there.
    pub(super) fn add_glob(&mut self, pattern: &str) {
        if self.is_long(pattern) {
            return;
        }
        let wild = pattern.find(['*', '?', '[', '{', '\\', '!', '(']).unwrap_or(pattern.len());
        let (fixed, rest) = pattern.split_at(wild);
        let folder = if rest.is_empty() {
            fixed
        } else {
            fixed.rfind('/').and_then(|end| fixed.get(..=end)).unwrap_or("")
        };
        if rest.contains("..")
            || (folder.is_empty() && rest.contains(['~', '\\']))
            || rest.contains("{/")
            || rest.contains(",/")
        {
            push_new(&mut self.facts.expansions, pattern.to_owned());
        }
        let is_path = folder.contains('/') || folder.starts_with(['~', '.']);
        if is_path {
            let bases = std::iter::once(self.facts.cwd.clone()).chain(self.bases.clone()).collect::<Vec<_>>();
            self.add_path_from(&bases, folder, false);
        }
    }

    pub(super) fn add_patch(&mut self, text: &str) {
        let files = patch::files(text);
        if files.writes.is_empty() && files.deletes.is_empty() {
            // A tool may take the file's name beside the patch.
            self.patch_without_files = files.unknown.into_iter().next();
            return;
        }
        for path in files.writes.iter().chain(&files.deletes) {
            self.add_argument_path(path, true);
        }
        for unknown in files.unknown {
            push_new(&mut self.facts.unknown, unknown);
        }
    }

    /// The files of patches in a command line: in a here-document, or in a word.
    pub(super) fn add_patches_of(&mut self, line: &str, shell: &ShellFacts) {
        let applies = shell.commands.iter().any(|command| {
            let mut words = command.words.iter().map(|word| word.rsplit('/').next().unwrap_or(word));
            match words.next() {
                Some("apply_patch" | "applypatch" | "patch") => true,
                Some("git") => words.any(|word| matches!(word, "apply" | "am")),
                _ => false,
            }
        });
        if !applies {
            return;
        }
        let words = shell.commands.iter().flat_map(|command| &command.words).map(String::as_str);
        let bases = self.bases(shell);
        for text in std::iter::once(line).chain(words).filter(|text| patch::looks_like(text)) {
            let files = patch::files(text);
            for path in files.writes.iter().chain(&files.deletes) {
                self.add_path_from(&bases, path, true);
            }
        }
    }

    pub(super) fn add_url(&mut self, text: &str) {
        let mut text = text.trim_matches(|c: char| c.is_whitespace() || c.is_control());
        for prefix in AROUND_URLS {
            let is_around = text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
            text = if is_around { text.get(prefix.len()..).unwrap_or_default() } else { text };
        }
        // Without a scheme it is what tools make of it: `example.com/x`, `//example.com/x`.
        let parsed = url::parse(text).or_else(|| {
            let has_other_scheme = url::scheme_without_host(text);
            let complete = format!("https://{}", text.trim_start_matches('/'));
            (!has_other_scheme).then(|| url::parse(&complete)).flatten()
        });
        let is_local = text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"));
        match parsed {
            _ if is_local => {
                let writes = self.facts.kind == ActionKind::FileOperation && self.writes_by_kind();
                self.add_argument_path(text, writes);
            }
            Some(parts) => {
                if self.facts.port == 0 {
                    self.facts.port = parts.port.unwrap_or(0);
                }
                if url::is_host(&parts.host) {
                    self.add_host(parts.host);
                } else {
                    self.hidden_host(UNREADABLE_HOST);
                }
                for other in url::other_readings(text) {
                    self.hidden_host(UNREADABLE_HOST);
                    if url::is_host(&other) {
                        self.add_host(other);
                    }
                }
            }
            None => self.hidden_host(UNREADABLE_URL),
        }
    }
}

/// Whether a part of a path is a variable as shells write it; `$id.tsx` is a name.
fn is_variable(part: &str) -> bool {
    let name = part.strip_prefix('$').unwrap_or_default();
    let is_dollar = name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_');
    is_dollar || (part.len() > 2 && part.starts_with('%') && part.ends_with('%'))
}
