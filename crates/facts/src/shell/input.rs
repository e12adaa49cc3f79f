//! Input that a command line writes itself: `echo … | sh`, `echo … | xargs …`.
//!
//! Which command reads what is not followed. If some command takes code or words from its input, every printed text counts as
//! that: the larger reading.

use super::collect::{Collector, Effect};
use super::notes::FROM_INPUT;
use super::opaque;
use super::redirect::Redirections;
use super::unwrap::{Context, analyse, base_name, run_text};
use super::word::Word;

/// Entries of `unknown` that say that a command takes code from its input.
const TAKES_CODE: &[&str] = &["script from pipe", "code", "command from input"];

/// Judges printed texts as the input of commands that take code or words from it.
pub(super) fn feed(collector: &mut Collector) {
    let printed = std::mem::take(&mut collector.printed);
    let given = std::mem::take(&mut collector.given);
    let fed = std::mem::take(&mut collector.fed);
    if printed.is_empty() && given.is_empty() {
        return;
    }
    let context = Context::default();
    let takes_code = collector
        .facts
        .unknown
        .iter()
        .any(|entry| entry.split(':').next().is_some_and(|kind| TAKES_CODE.contains(&kind)));
    let directories = collector.directories.clone();
    // The text of a here-document was read as code where an interpreter takes it.
    let texts = printed.iter().map(|text| (text, takes_code)).chain(given.iter().map(|text| (text, false)));
    for (text, is_code) in texts {
        if is_code {
            opaque::scan_code(collector, text);
            run_text(collector, "input", text, &context);
        }
        for command in &fed {
            if command.is_empty() {
                // A list of files.
                for word in text.split_whitespace() {
                    collector.path(Effect::Read, word);
                }
                continue;
            }
            let mut words: Vec<Word> = Vec::new();
            let mut replaced = false;
            for word in command {
                if word.text().contains(FROM_INPUT) {
                    replaced = true;
                    words.push(Word::literal(&word.text().replace(FROM_INPUT, text)));
                } else {
                    words.push(word.clone());
                }
            }
            if !replaced {
                words.extend(text.split_whitespace().map(Word::literal));
            }
            analyse(collector, &words, &context);
            collector.directory_change = None;
        }
    }
    // What is printed while the texts are judged was judged with them.
    collector.printed.clear();
    collector.given.clear();
    collector.fed.clear();
    collector.directories = directories;
}

/// What is known of the output of a command, for those that read it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Output {
    /// It is what files hold, or what the command found, rather than text of the command line.
    pub(super) is_plain: bool,
    /// It is names of files that were found, or texts that were judged with the command.
    pub(super) is_names: bool,
}

/// Programs that print files as they are.
const READERS: &[&str] = &[
    "cat", "zcat", "bzcat", "xzcat", "gzcat", "bat", "wc", "diff", "stat", "file", "yes", "date", "pwd",
    "du", "true",
];

/// Programs that print the names of what they find.
const LISTERS: &[&str] = &["find", "gfind", "ls", "fd", "fdfind", "seq", "pgrep", "which"];

/// Programs that print some of the lines that they read, unchanged.
const FILTERS: &[&str] = &[
    "grep", "egrep", "fgrep", "rg", "head", "tail", "sort", "uniq", "tac", "shuf", "tee", "nl", "less",
    "more",
];

/// Subcommands of git that print what the repository holds.
const GIT: &[&str] =
    &["diff", "log", "show", "status", "ls-files", "ls-tree", "grep", "blame", "branch", "tag", "rev-list"];

/// Programs that take data or patches, which are judged apart, rather than code.
const TAKES_DATA: &[&str] = &["apply_patch", "applypatch", "patch", "git", "gh", "glab", "xargs", "gxargs"];

/// Judges the output of a command by its words. `from` is its input, if that is a pipe.
fn output(words: &[Word], redirections: &Redirections, from: Option<Output>) -> Output {
    let texts: Vec<String> = words.iter().map(Word::text).collect();
    let name = texts.first().map(|text| base_name(text)).unwrap_or_default();
    let has = |options: &[&str]| texts.iter().any(|text| options.contains(&text.as_str()));
    let input = from.unwrap_or(Output { is_plain: !redirections.gives_text(), is_names: false });
    let second = texts.get(1).map(String::as_str).unwrap_or_default();
    match name {
        "echo" | "printf" => Output { is_plain: false, is_names: !words.iter().any(Word::expands) },
        "git" if GIT.contains(&second) => {
            let lists = second == "ls-files" || has(&["--name-only", "-l", "--files-with-matches"]);
            Output { is_plain: true, is_names: lists }
        }
        // A start or a format of one's own could be any text.
        "find" | "gfind" | "ls" | "stat" if has(&["-printf", "--printf", "-c"]) => Output::default(),
        _ if LISTERS.contains(&name) => Output { is_plain: true, is_names: true },
        _ if FILTERS.contains(&name) => {
            let lists = has(&[
                "-l",
                "-rl",
                "-lr",
                "-Rl",
                "-rlE",
                "-rli",
                "-ril",
                "-lE",
                "--files",
                "--files-with-matches",
            ]);
            Output { is_plain: input.is_plain, is_names: lists || (from.is_some() && input.is_names) }
        }
        _ if READERS.contains(&name) => Output { is_plain: input.is_plain, is_names: false },
        _ => Output::default(),
    }
}

/// State of the collector before a command, to see what it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before {
    opaque: usize,
    fed: usize,
}

impl Before {
    pub(super) fn new(collector: &Collector) -> Self {
        Self { opaque: collector.opaque_seen, fed: collector.fed_seen }
    }

    /// Notes a command that may take code or words from an input that is not known. Returns what is known of its output.
    pub(super) fn judge(
        self,
        collector: &mut Collector,
        words: &[Word],
        redirections: &Redirections,
        from: Option<Output>,
        piped: bool,
    ) -> Output {
        let name = words.first().map(Word::text).unwrap_or_default();
        let name = base_name(&name);
        let is_text = redirections.gives_text() || from.is_some_and(|from| !from.is_plain);
        let is_opaque = collector.opaque_seen > self.opaque;
        if is_text && is_opaque && !TAKES_DATA.contains(&name) {
            collector.note("code from input", name);
        }
        let has_names = from.is_some_and(|from| from.is_names) || redirections.gives_text();
        if piped && collector.fed_seen > self.fed && !has_names {
            collector.note("operands from input", name);
        }
        let mut found = output(words, redirections, from);
        // What is not modelled was judged as such, and so was what it prints.
        found.is_plain |= is_opaque && !is_text;
        found
    }
}

impl Collector {
    /// Keeps a text of the command line that is the input of a command.
    pub(super) fn give(&mut self, text: &str) {
        if self.given.len() < 8 {
            self.charge(text.len());
            self.given.push(text.to_owned());
        }
    }

    /// Notes that a command takes a list of files from its input.
    pub(super) fn takes_list(&mut self) {
        self.unknown_word(FROM_INPUT);
        if self.fed.len() < 8 {
            self.fed.push(Vec::new());
        }
    }
}
