//! Reads characters and words: quoting, and where a word ends.

use super::collect::Collector;
use super::escape;
use super::grammar::{AndOr, Frame};
use super::redirect::HereDocument;
use super::word::{Kind, Word};

/// Parser of one piece of code, in one pass. Nested substitutions are parsed by the same parser, code strings by another.
pub(super) struct Parser<'a> {
    pub(super) characters: &'a [char],
    pub(super) position: usize,
    pub(super) collector: &'a mut Collector,
    pub(super) frames: Vec<Frame>,
    /// Here-documents whose bodies start after the next newline.
    pub(super) here_documents: Vec<HereDocument>,
    /// Whether commands outside of any frame read from a pipe.
    pub(super) piped: bool,
    /// Whether the command being read reads from a pipe.
    pub(super) reads_pipe: bool,
    /// Whether the last operator was `|`, `&&` or `||`, after which a newline ends nothing.
    pub(super) continues: bool,
    /// Number of inherited readers before the construct that was closed last.
    pub(super) closed_readers: usize,
    /// State of the and-or list being read.
    pub(super) and_or: AndOr,
    /// Whether a `)` ends the code being read.
    pub(super) in_substitution: bool,
}

/// Parses a piece of code one level deeper.
pub(super) fn parse_code(collector: &mut Collector, code: &str, piped: bool) {
    if !collector.enter() {
        return;
    }
    collector.charge(code.len());
    let characters: Vec<char> = code.chars().collect();
    let mut parser = Parser {
        characters: &characters,
        position: 0,
        collector: &mut *collector,
        frames: Vec::new(),
        here_documents: Vec::new(),
        piped,
        reads_pipe: piped,
        continues: false,
        closed_readers: usize::MAX,
        and_or: AndOr::default(),
        in_substitution: false,
    };
    parser.list();
    parser.unfinished_here_documents();
    collector.leave();
}

/// Parses a code string that a new shell runs: its changes of directory do not last.
pub(super) fn parse_code_apart(collector: &mut Collector, code: &str, piped: bool) {
    let directories = collector.directories.clone();
    parse_code(collector, code, piped);
    collector.directories = directories;
}

impl Parser<'_> {
    /// The current character.
    pub(super) fn peek(&self) -> Option<char> {
        self.peek_at(0)
    }

    /// The character at that offset ahead.
    pub(super) fn peek_at(&self, offset: usize) -> Option<char> {
        if self.collector.is_stopped() {
            return None;
        }
        self.characters.get(self.position.saturating_add(offset)).copied()
    }

    pub(super) fn advance(&mut self, count: usize) {
        self.position = self.position.saturating_add(count).min(self.characters.len());
    }

    /// Whether the text at the position starts with this.
    pub(super) fn looking_at(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(offset, expected)| self.peek_at(offset) == Some(expected))
    }

    /// The source text from a position to here.
    pub(super) fn since(&self, start: usize) -> &[char] {
        self.characters.get(start..self.position).unwrap_or_default()
    }

    /// The source text from a position to here, as text.
    pub(super) fn text_since(&self, start: usize) -> String {
        self.since(start).iter().collect()
    }

    /// Skips blanks and line continuations.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.advance(1),
                Some('\\') if self.peek_at(1) == Some('\n') => self.advance(2),
                _ => return,
            }
        }
    }

    /// Skips a comment if one starts here.
    pub(super) fn skip_comment(&mut self) {
        if self.peek() == Some('#') {
            while self.peek().is_some_and(|c| c != '\n') {
                self.advance(1);
            }
        }
    }

    /// Skips blanks, comments and newlines; here-document bodies are read on the way.
    pub(super) fn skip_lines(&mut self) {
        loop {
            self.skip_blanks();
            self.skip_comment();
            if self.peek() != Some('\n') {
                return;
            }
            self.newline();
        }
    }

    /// Reads a word; it is absent if none starts here.
    pub(super) fn read_word(&mut self) -> Word {
        let mut word = Word::default();
        while let Some(character) = self.peek() {
            match character {
                '<' | '>' if self.peek_at(1) == Some('(') => self.process_substitution(&mut word),
                '(' if word.plain().is_some_and(|text| text.ends_with('=')) && word.is_assignment() => {
                    self.array(&mut word);
                }
                ' ' | '\t' | '\n' | ';' | '&' | '|' | ')' | '<' | '>' | '(' => break,
                '?' | '*' | '+' | '@' | '!' if self.peek_at(1) == Some('(') => {
                    if !self.extended_glob(&mut word) {
                        word.push(Kind::Plain, character);
                        self.advance(1);
                    }
                }
                '\\' => self.backslash(&mut word),
                '\'' => self.single_quotes(&mut word),
                '"' => self.double_quotes(&mut word),
                '`' => self.backquotes(&mut word, false),
                '$' => self.dollar(&mut word, false),
                _ => {
                    word.push(Kind::Plain, character);
                    self.advance(1);
                }
            }
        }
        word
    }

    fn backslash(&mut self, word: &mut Word) {
        match self.peek_at(1) {
            Some('\n') => {}
            Some(escaped) => {
                word.mark_quoted();
                word.push(Kind::Quoted, escaped);
            }
            None => word.push(Kind::Quoted, '\\'),
        }
        self.advance(2);
    }

    fn single_quotes(&mut self, word: &mut Word) {
        word.mark_quoted();
        self.advance(1);
        let start = self.position;
        while let Some(character) = self.peek() {
            if character == '\'' {
                word.push_all(Kind::Quoted, self.since(start));
                self.advance(1);
                return;
            }
            self.advance(1);
        }
        word.push_all(Kind::Quoted, self.since(start));
        self.collector.note("unclosed quote", "`'` is not closed");
    }

    /// Reads `"…"`, with the position at the opening quote.
    pub(super) fn double_quotes(&mut self, word: &mut Word) {
        word.mark_quoted();
        self.advance(1);
        while let Some(character) = self.peek() {
            match character {
                '"' => {
                    self.advance(1);
                    return;
                }
                '\\' => match self.peek_at(1) {
                    Some('\n') => self.advance(2),
                    Some(escaped @ ('$' | '`' | '"' | '\\')) => {
                        word.push(Kind::Quoted, escaped);
                        self.advance(2);
                    }
                    _ => {
                        word.push(Kind::Quoted, '\\');
                        self.advance(1);
                    }
                },
                '`' => self.backquotes(word, true),
                '$' => self.dollar(word, true),
                _ => {
                    word.push(Kind::Quoted, character);
                    self.advance(1);
                }
            }
        }
        self.collector.note("unclosed quote", "`\"` is not closed");
    }

    /// Reads `$'…'`, with the position at the `$`.
    pub(super) fn ansi_quotes(&mut self, word: &mut Word) {
        word.mark_quoted();
        self.advance(2);
        let start = self.position;
        let mut escaped_quote = false;
        loop {
            match self.peek() {
                None => {
                    self.collector.note("unclosed quote", "`$'` is not closed");
                    break;
                }
                Some('\'') => break,
                Some('\\') => {
                    // A shell without this quoting ends the string at such a quote.
                    escaped_quote |= self.peek_at(1) == Some('\'');
                    self.advance(2);
                }
                Some(_) => self.advance(1),
            }
        }
        let decoded: Vec<char> = escape::decode(self.since(start)).chars().collect();
        word.push_all(Kind::Quoted, &decoded);
        if escaped_quote {
            let source = self.text_since(start);
            self.collector.note("quoting that shells read differently", &source);
        }
        self.advance(1);
    }

    /// Reads `name=( … )`, with the position at the parenthesis.
    fn array(&mut self, word: &mut Word) {
        let start = self.position;
        if !self.collector.enter() {
            return;
        }
        self.advance(1);
        loop {
            self.skip_lines();
            match self.peek() {
                None => {
                    self.collector.note("unbalanced", "`=(` is not closed");
                    break;
                }
                Some(')') => {
                    self.advance(1);
                    break;
                }
                Some(_) => {
                    let before = self.position;
                    self.read_word();
                    if self.position == before {
                        let here: String = self.peek().into_iter().collect();
                        self.collector.note("unexpected in array", &here);
                        self.advance(1);
                    }
                }
            }
        }
        self.collector.leave();
        word.push_all(Kind::Expansion, self.since(start));
    }

    /// Reads an extended glob: `?(…)`, `*(…)`, `+(…)`, `@(…)` or `!(…)`. In a shell without them the line is an error, so nothing is hidden
    /// here.
    fn extended_glob(&mut self, word: &mut Word) -> bool {
        let start = self.position;
        let Some(end) = self.closing_parenthesis(start.saturating_add(2)) else { return false };
        let inner = self.characters.get(start.saturating_add(2)..end).unwrap_or_default();
        // `name+()` defines a function in a shell without extended globs.
        if inner.iter().all(|c| c.is_whitespace()) {
            return false;
        }
        self.advance(2);
        self.expansions_until(end);
        self.position = end;
        self.advance(1);
        word.push_all(Kind::Plain, self.since(start));
        true
    }
}
