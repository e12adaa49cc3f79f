//! Redirections and here-documents.

use super::brace;
use super::collect::Effect;
use super::evaluate::{Evaluation, evaluated};
use super::interpreter::Reader;
use super::reader::{Parser, parse_code_apart};
use super::word::Word;

/// A here-document whose body was not read yet.
#[derive(Debug)]
pub(super) struct HereDocument {
    delimiter: String,
    strip_tabs: bool,
    quoted: bool,
    /// The interpreter that reads the body as code.
    reader: Option<Reader>,
    claimed: bool,
}

/// Effect of a command's redirections on its standard input.
#[derive(Debug, Default)]
pub(super) struct Redirections {
    count: usize,
    here_documents: bool,
    here_strings: Vec<Word>,
    input_files: Vec<Word>,
}

impl Redirections {
    /// Whether there were none.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether standard input is text in the command line.
    pub(super) fn gives_text(&self) -> bool {
        self.here_documents || !self.here_strings.is_empty() || self.input_files.iter().any(Word::is_process)
    }

    /// Whether standard input comes from one of them.
    pub(super) fn feeds_input(&self) -> bool {
        self.here_documents || !self.here_strings.is_empty() || !self.input_files.is_empty()
    }
}

impl Parser<'_> {
    /// Reads one redirection, with the position at its operator.
    pub(super) fn redirection(&mut self, found: &mut Redirections) {
        found.count = found.count.saturating_add(1);
        let operators =
            ["&>>", "&>|", "&>", "<<<", "<<-", "<<", "<>", "<&", "<", ">>|", ">>", ">|", ">&", ">"];
        let Some(operator) = operators.into_iter().find(|operator| self.looking_at(operator)) else {
            return self.advance(1);
        };
        self.advance(operator.len());
        self.skip_blanks();
        let target = self.read_word();
        if target.is_absent() {
            self.collector.note("unbalanced", &format!("`{operator}` without a target"));
            return;
        }
        match operator {
            "<<" | "<<-" => {
                if target.text().contains(['$', '`', '\\', '\n']) {
                    self.collector.note("quoting that shells read differently", &target.text());
                }
                found.here_documents = true;
                self.here_documents.push(HereDocument {
                    delimiter: target.text(),
                    strip_tabs: operator == "<<-",
                    quoted: target.is_quoted(),
                    reader: None,
                    claimed: false,
                });
            }
            "<<<" => {
                self.collector.give(&target.text());
                found.here_strings.push(target);
            }
            "<" => {
                self.files(Effect::Read, &target);
                found.input_files.push(target);
            }
            "<>" => {
                self.files(Effect::Read, &target);
                self.files(Effect::Write, &target);
                found.input_files.push(target);
            }
            "<&" | ">&" if is_descriptor(&target.text()) => {}
            "<&" => {
                evaluated(self.collector, &target, Evaluation::Text);
                self.files(Effect::Read, &target);
            }
            _ => {
                if operator == ">&" {
                    // Bash expands the name once for the descriptor that it could be, and again for the file that it is.
                    evaluated(self.collector, &target, Evaluation::Text);
                    if target.is_quoted()
                        && target.text().contains(['$', '`', '*', '?', '[', '{', '~', '\\', '('])
                    {
                        self.collector.note("write to expansion", &target.text());
                    }
                }
                if target.text() == "!" {
                    self.collector.note("write to expansion", "!");
                }
                self.files(Effect::Write, &target);
            }
        }
    }

    fn files(&mut self, effect: Effect, target: &Word) {
        if target.expands() || target.has_glob() {
            self.collector.expansion(&target.text());
        }
        if effect == Effect::Read && target.expands() && !target.is_process() {
            self.collector.note("read from expansion", &target.text());
        }
        if let Some(words) = brace::expand(self.collector, target) {
            for word in &words {
                self.collector.file(effect, word);
            }
            // A shell without braces takes the target as it is.
            self.collector.file(effect, target);
        } else {
            self.collector.note("brace expansion with too many words", &target.text());
            self.collector.file(effect, target);
        }
    }

    /// Connects an interpreter that reads code from standard input with what it would read.
    pub(super) fn feed_interpreter(
        &mut self,
        reader: Option<&Reader>,
        redirections: &Redirections,
        piped: bool,
    ) {
        if let Some(reader) = reader {
            for code in &redirections.here_strings {
                self.run_input(reader, &code.text(), code.expands());
            }
            for file in &redirections.input_files {
                let kind = if file.is_process() { "script from pipe" } else { "script from file" };
                let detail = if file.is_process() { reader.name.clone() } else { file.text() };
                self.collector.note(kind, &detail);
            }
            if !redirections.feeds_input() {
                if piped {
                    self.collector.note("script from pipe", &reader.name);
                } else {
                    self.collector.inherited_readers.push(reader.name.clone());
                }
            }
        }
        self.claim_here_documents(redirections, reader);
    }

    /// Redirections after a closed construct feed the interpreters inside of it.
    pub(super) fn feed_compound(&mut self, redirections: &Redirections) {
        if !redirections.feeds_input() {
            return;
        }
        let inside = self
            .collector
            .inherited_readers
            .split_off(self.closed_readers.min(self.collector.inherited_readers.len()));
        for name in inside {
            self.collector.note("script from pipe", &name);
        }
    }

    /// Assigns the reader of the here-documents of the command that was just read.
    pub(super) fn claim_here_documents(&mut self, redirections: &Redirections, reader: Option<&Reader>) {
        if !redirections.here_documents {
            return;
        }
        for document in self.here_documents.iter_mut().filter(|document| !document.claimed) {
            document.claimed = true;
            document.reader = reader.cloned();
        }
    }

    fn run_input(&mut self, reader: &Reader, code: &str, expands: bool) {
        if !reader.is_shell {
            return self.collector.note("code", &reader.name);
        }
        if expands {
            self.collector.note("code from expansion", code);
        }
        let wrappers = std::mem::replace(&mut self.collector.wrappers, reader.wrappers.clone());
        parse_code_apart(self.collector, code, false);
        self.collector.wrappers = wrappers;
    }

    /// Consumes a newline and the bodies of the here-documents that start after it.
    pub(super) fn newline(&mut self) {
        self.advance(1);
        for document in std::mem::take(&mut self.here_documents) {
            self.body(&document);
        }
    }

    fn body(&mut self, document: &HereDocument) {
        let start = self.position;
        let mut text = String::new();
        let end = loop {
            if self.peek().is_none() {
                let detail = format!("here-document `{}` is not closed", document.delimiter);
                self.collector.note("unbalanced", &detail);
                break self.position;
            }
            let line_start = self.position;
            let line = self.body_line(!document.quoted);
            let stripped = if document.strip_tabs { line.trim_start_matches('\t') } else { &line };
            if stripped == document.delimiter {
                break line_start;
            }
            if self.in_substitution
                && let Some(rest) = stripped.strip_prefix(document.delimiter.as_str())
                && rest.contains(')')
            {
                // Some shells end the document here, others at a later line.
                self.collector.note("quoting that shells read differently", stripped);
                let newline =
                    self.characters.get(..self.position).is_some_and(|read| read.ends_with(&['\n']));
                let unread = rest.chars().count().saturating_add(usize::from(newline));
                self.position = self.position.saturating_sub(unread);
                break line_start;
            }
            text.push_str(stripped);
            text.push('\n');
        };
        let after = self.position;
        let mut expands = false;
        self.collector.variables.quoted_expansions |= text.contains(['$', '`', '\\']);
        if !document.quoted {
            self.position = start;
            expands = self.expansions_until(end);
            self.position = after;
        }
        self.collector.give(&text);
        if let Some(reader) = &document.reader {
            self.run_input(reader, &text, expands);
        }
    }

    /// Reads a line and its newline; continued lines are joined where the document is expanded.
    fn body_line(&mut self, join: bool) -> String {
        let mut line = String::new();
        while let Some(character) = self.peek() {
            self.advance(1);
            if character == '\n' {
                break;
            }
            if join && character == '\\' {
                match self.peek() {
                    Some('\n') => {
                        self.advance(1);
                        continue;
                    }
                    Some(escaped) => {
                        line.push(character);
                        line.push(escaped);
                        self.advance(1);
                        continue;
                    }
                    None => {}
                }
            }
            line.push(character);
        }
        line
    }

    /// Reports here-documents that were announced but never given a body.
    pub(super) fn unfinished_here_documents(&mut self) {
        for document in std::mem::take(&mut self.here_documents) {
            let detail = format!("here-document `{}` has no body", document.delimiter);
            self.collector.note("unbalanced", &detail);
        }
    }
}

/// Whether the target of `>&` names a descriptor to copy or close.
fn is_descriptor(text: &str) -> bool {
    let digits = text.strip_suffix('-').unwrap_or(text);
    text == "-" || (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}
