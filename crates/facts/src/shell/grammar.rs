//! Finds the simple commands: a flat walk over separators, groups and keywords.
//!
//! No tree is built. A stack of open constructs says what closes what, whether commands read from a pipe, and which
//! directories relative paths may start from.

use super::brace;
use super::builtin::split_assignment;
use super::evaluate::{self, Evaluation, evaluated};
use super::input::{Before, Output};
use super::lookahead::{is_descriptor, is_time, looks_like_command};
use super::reader::Parser;
use super::redirect::Redirections;
use super::unwrap::{Context, analyse};
use super::word::Word;

/// The kinds of constructs that enclose commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    If,
    Loop,
    Case,
    Brace,
    Parenthesis,
}

/// An open construct.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: FrameKind,
    piped: bool,
    and_or: AndOr,
    directories: Vec<String>,
    readers: usize,
}

/// State of the and-or list being read.
#[derive(Debug, Default)]
pub(super) struct AndOr {
    /// A `||` or `!` came before: what follows may run although a command before it failed.
    pub(super) uncertain: bool,
    /// The directories that are possible once this list is over, if a `cd … &&` is part of it.
    after: Option<Vec<String>>,
}

/// Effect of a step on the list.
enum Step {
    More,
    Closed,
    End,
}

impl Parser<'_> {
    /// Reads commands to the end of the code, or to the `)` that closes a substitution; whether that was found.
    pub(super) fn list(&mut self) -> bool {
        self.reads_pipe = self.piped;
        let closed = loop {
            match self.step() {
                Step::More => {}
                Step::Closed => break true,
                Step::End => break false,
            }
        };
        self.end_and_or();
        while let Some(frame) = self.frames.last() {
            let text = format!("`{}` is not closed", frame.kind.opening());
            self.collector.note("unbalanced", &text);
            self.pop_frame();
        }
        closed
    }

    fn step(&mut self) -> Step {
        self.skip_blanks();
        self.skip_comment();
        let Some(character) = self.peek() else { return Step::End };
        let continues = std::mem::take(&mut self.continues);
        match (character, self.peek_at(1)) {
            ('\n', _) => {
                self.newline();
                self.continues = continues;
                if !continues {
                    self.separator();
                }
            }
            (';', Some(';' | '&')) => {
                let ends_case_item = self.top_is(FrameKind::Case);
                let length = if self.looking_at(";;&") { 3 } else { 2 };
                self.advance(length);
                self.separator();
                if ends_case_item {
                    self.case_pattern();
                } else {
                    self.collector.note("unbalanced", "`;;` outside of `case`");
                }
            }
            ('&', Some('&')) => {
                self.advance(2);
                self.continues = true;
                self.reads_pipe = self.frame_piped();
            }
            ('&', Some('>')) => self.simple(),
            (';' | '&', _) => {
                self.advance(1);
                self.separator();
            }
            ('|', Some('|')) => {
                self.advance(2);
                self.end_and_or();
                self.and_or.uncertain = true;
                self.continues = true;
                self.reads_pipe = self.frame_piped();
            }
            ('|', next) => {
                self.advance(if next == Some('&') { 2 } else { 1 });
                self.pipe_from = Some(std::mem::take(&mut self.last_output));
                self.continues = true;
                self.reads_pipe = true;
            }
            ('(', next) => self.open_parenthesis(next),
            (')', _) => return self.close_parenthesis(),
            _ => {
                let before = self.position;
                self.simple();
                if self.position == before {
                    let text = format!("`{character}`");
                    self.collector.note("unexpected", &text);
                    self.advance(1);
                }
            }
        }
        Step::More
    }

    fn open_parenthesis(&mut self, next: Option<char>) {
        let start = self.position;
        if next == Some('(') && self.arithmetic(2) {
            // A shell without `(( ))` reads nested subshells here.
            let inner = self.characters.get(start.saturating_add(2)..self.position.saturating_sub(2));
            let inner: String = inner.unwrap_or_default().iter().collect();
            if looks_like_command(&inner) {
                let piped = self.reads_pipe;
                super::reader::parse_code_apart(self.collector, &inner, piped);
            }
            return;
        }
        self.position = start;
        if next == Some('(') {
            self.note_late_here_documents();
        }
        self.advance(1);
        self.push_frame(FrameKind::Parenthesis);
    }

    fn close_parenthesis(&mut self) -> Step {
        let has_parenthesis = self.frames.iter().any(|frame| frame.kind == FrameKind::Parenthesis);
        self.advance(1);
        if !has_parenthesis {
            if self.in_substitution {
                return Step::Closed;
            }
            self.collector.note("unbalanced", "`)` closes nothing");
            self.separator();
            return Step::More;
        }
        while let Some(frame) = self.frames.last() {
            let kind = frame.kind;
            if kind != FrameKind::Parenthesis {
                let text = format!("`{}` is not closed", kind.opening());
                self.collector.note("unbalanced", &text);
            }
            self.pop_frame();
            if kind == FrameKind::Parenthesis {
                break;
            }
        }
        Step::More
    }

    /// Reads one simple command, or the keyword in its place.
    fn simple(&mut self) {
        let from = self.pipe_from.take();
        let mut words: Vec<Word> = Vec::new();
        let mut assignments: Vec<String> = Vec::new();
        let mut redirections = Redirections::default();
        // Whether there is nothing yet but `time`, perhaps more than once.
        let mut starts = true;
        // Where a shell without `&>` reads `&`, the end of one command and the start of another.
        let mut background_at: Option<usize> = None;
        loop {
            self.skip_blanks();
            self.skip_comment();
            match self.peek() {
                None | Some('\n' | ';' | '|' | ')') => break,
                Some('&') if self.peek_at(1) != Some('>') => break,
                Some('(') => {
                    if words.len() == 1 && self.function_parentheses() {
                        return;
                    }
                    if starts && !words.is_empty() {
                        return;
                    }
                    if !words.is_empty() {
                        self.collector.note("unexpected", "`(` after a command");
                    }
                    break;
                }
                Some('!') if starts && self.peek_at(1) == Some('(') => {
                    // Without extended globs this is `!` and a subshell.
                    self.advance(1);
                    self.and_or.uncertain = true;
                    break;
                }
                Some('<' | '>' | '&') if self.peek_at(1) != Some('(') => {
                    if self.peek() == Some('&') {
                        background_at.get_or_insert(words.len());
                    }
                    self.redirection(&mut redirections);
                }
                Some(_) => {
                    self.may_assign = starts;
                    let before = self.position;
                    let word = self.read_word();
                    if word.is_absent() {
                        break;
                    }
                    let next = self.peek();
                    if matches!(next, Some('<' | '>')) && is_descriptor(&word) {
                        self.named_descriptor(before);
                        self.redirection(&mut redirections);
                        continue;
                    }
                    if starts
                        && assignments.is_empty()
                        && redirections.is_empty()
                        && let Some(keyword) = word.plain().map(str::to_owned)
                        && self.keyword(&keyword)
                    {
                        // The first command of a construct reads what the construct reads.
                        self.pipe_from = from;
                        self.last_output = Output::default();
                        return;
                    }
                    if starts && word.is_assignment() {
                        assignments.push(word.text());
                        self.assignment(&word);
                    } else {
                        starts = starts && is_time(&word, words.is_empty());
                        words.push(word);
                    }
                }
            }
        }
        self.finish_simple(&words, &assignments, &redirections, from);
        if let Some((first, second)) = background_at.and_then(|index| words.split_at_checked(index))
            && !first.is_empty()
            && !second.is_empty()
        {
            self.finish_simple(first, &assignments, &Redirections::default(), from);
            self.finish_simple(second, &[], &Redirections::default(), None);
        }
    }

    /// Records an assignment; its index was evaluated where it was read.
    fn assignment(&mut self, word: &Word) {
        let (name, value) = split_assignment(word);
        let text = name.text();
        let base = text.split('[').next().unwrap_or_default();
        evaluate::assigned(self.collector, base, value.as_ref());
    }

    /// `{name}>` stores the number of the descriptor into a variable.
    fn named_descriptor(&mut self, start: usize) {
        let text = self.text_since(start);
        let name = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        if let Some(name) = name {
            evaluated(self.collector, &Word::literal(name), Evaluation::Name);
        }
    }

    fn finish_simple(
        &mut self,
        words: &[Word],
        assignments: &[String],
        redirections: &Redirections,
        from: Option<Output>,
    ) {
        let words = self.expand_braces(words);
        if words.is_empty() {
            // Redirections alone: they may belong to the construct that was just closed.
            self.feed_compound(redirections);
            self.claim_here_documents(redirections, None);
            return;
        }
        let piped = self.reads_pipe;
        let context = Context {
            piped: piped || redirections.feeds_input(),
            assignments,
            wrappers: self.collector.wrappers.clone(),
            ..Context::default()
        };
        let before = Before::new(self.collector);
        let reader = analyse(self.collector, &words, &context);
        self.last_output = before.judge(self.collector, &words, redirections, from, context.piped);
        self.feed_interpreter(reader.as_ref(), redirections, piped);
        if let Some(target) = self.collector.directory_change.take() {
            self.change_directory(&target, piped);
        }
    }

    fn expand_braces(&mut self, words: &[Word]) -> Vec<Word> {
        let mut expanded = Vec::with_capacity(words.len());
        for word in words {
            if let Some(results) = brace::expand(self.collector, word) {
                // An alternative that is empty and unquoted leaves no word.
                expanded.extend(results.into_iter().filter(|word| !word.is_absent()));
            } else {
                self.collector.note("brace expansion with too many words", &word.text());
                expanded.push(word.clone());
            }
        }
        expanded
    }

    fn change_directory(&mut self, target: &Word, piped: bool) {
        let innermost = self.frames.iter().rev().map(|frame| frame.kind);
        let mut kinds = innermost.take_while(|kind| *kind != FrameKind::Parenthesis);
        if kinds.any(|kind| kind == FrameKind::Loop) {
            self.collector.note("directory unknown", "a change of directory in a loop");
        }
        let inside = self.collector.directories_after(target);
        self.skip_blanks();
        if self.looking_at("&&") && !piped && !self.and_or.uncertain {
            let before = std::mem::replace(&mut self.collector.directories, inside);
            let after = self.and_or.after.get_or_insert_default();
            after.extend(before);
        } else {
            self.collector.add_directories(inside);
        }
    }

    /// Ends an and-or list: whatever directory changes in it may or may not have happened.
    fn end_and_or(&mut self) {
        let and_or = std::mem::take(&mut self.and_or);
        if let Some(after) = and_or.after {
            let inside = std::mem::take(&mut self.collector.directories);
            self.collector.add_directories(after);
            self.collector.add_directories(inside);
        }
    }

    fn separator(&mut self) {
        self.end_and_or();
        self.reads_pipe = self.frame_piped();
    }

    fn frame_piped(&self) -> bool {
        self.frames.last().map_or(self.piped, |frame| frame.piped)
    }

    /// Whether this is the innermost open construct.
    pub(super) fn top_is(&self, kind: FrameKind) -> bool {
        self.frames.last().is_some_and(|frame| frame.kind == kind)
    }

    /// Opens a construct.
    pub(super) fn push_frame(&mut self, kind: FrameKind) {
        if !self.collector.enter() {
            return;
        }
        self.frames.push(Frame {
            kind,
            piped: self.reads_pipe,
            and_or: std::mem::take(&mut self.and_or),
            directories: self.collector.directories.clone(),
            readers: self.collector.inherited_readers.len(),
        });
    }

    /// Closes the innermost construct.
    pub(super) fn pop_frame(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        self.end_and_or();
        if frame.kind == FrameKind::Parenthesis {
            self.collector.directories = frame.directories;
        }
        self.and_or = frame.and_or;
        if let Some(after) = &mut self.and_or.after {
            after.extend(self.collector.directories.iter().cloned());
        }
        self.reads_pipe = frame.piped;
        self.closed_readers = frame.readers;
        self.collector.leave();
    }
}

impl FrameKind {
    /// The word that opens it.
    pub(super) fn opening(self) -> &'static str {
        match self {
            Self::If => "if",
            Self::Loop => "do",
            Self::Case => "case",
            Self::Brace => "{",
            Self::Parenthesis => "(",
        }
    }
}
