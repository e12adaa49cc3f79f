//! Reads characters and words: quoting, and where a word ends.

use super::collect::Collector;
use super::escape;
use super::evaluate::{self, Evaluation, evaluated_source};
use super::grammar::{AndOr, Frame};
use super::input::Output;
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
    /// Output of the command that was read last.
    pub(super) last_output: Output,
    /// Output that the next command reads from a pipe.
    pub(super) pipe_from: Option<Output>,
    /// Number of inherited readers before the construct that was closed last.
    pub(super) closed_readers: usize,
    /// State of the and-or list being read.
    pub(super) and_or: AndOr,
    /// Whether a `)` ends the code being read.
    pub(super) in_substitution: bool,
    /// Whether the next word may be an assignment: its index is read as a whole.
    pub(super) may_assign: bool,
}

/// Parses a piece of code one level deeper.
pub(super) fn parse_code(collector: &mut Collector, code: &str, piped: bool) {
    parse_with(collector, code, piped, |parser| {
        parser.list();
    });
}

/// Parses the expansions in text that is expanded once more, whatever quotes are around them.
pub(super) fn parse_expansions(collector: &mut Collector, text: &str) {
    if !text.contains(['$', '`']) {
        return;
    }
    let directories = collector.directories.clone();
    parse_with(collector, &text.replace('\\', ""), false, |parser| {
        parser.expansions_until(parser.characters.len());
    });
    collector.directories = directories;
}

fn parse_with(collector: &mut Collector, code: &str, piped: bool, parse: impl FnOnce(&mut Parser<'_>)) {
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
        last_output: Output::default(),
        pipe_from: None,
        closed_readers: usize::MAX,
        and_or: AndOr::default(),
        in_substitution: false,
        may_assign: false,
    };
    parse(&mut parser);
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
        let may_assign = std::mem::take(&mut self.may_assign);
        while let Some(character) = self.peek() {
            match character {
                '<' | '>' if self.peek_at(1) == Some('(') => self.process_substitution(&mut word),
                '[' if may_assign && word.plain().is_some_and(evaluate::is_identifier) => {
                    let array = word.text();
                    self.index(&mut word, &array, false);
                }
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
        self.collector.variables.quoted_expansions |= word.quotes_active_text() || word.has_odd_sequence();
        word
    }

    /// Reads `[ … ]` after the name of an array, with the position at the bracket. Blanks, operators and `#` in it are no syntax.
    pub(super) fn index(&mut self, word: &mut Word, array: &str, in_double_quotes: bool) {
        let start = self.position;
        self.advance(1);
        let mut scratch = Word::default();
        let mut depth = 0_usize;
        loop {
            let Some(character) = self.peek() else {
                self.collector.note("unbalanced", "`[` is not closed");
                break;
            };
            match character {
                ']' if depth == 0 => break,
                '\\' => self.advance(2),
                '\'' if !in_double_quotes => self.single_quotes(&mut scratch),
                '"' => self.double_quotes(&mut scratch),
                '`' => self.backquotes(&mut scratch, in_double_quotes),
                '$' => self.dollar(&mut scratch, in_double_quotes),
                _ => {
                    depth = match character {
                        '[' => depth.saturating_add(1),
                        ']' => depth.saturating_sub(1),
                        _ => depth,
                    };
                    self.advance(1);
                }
            }
        }
        let end = self.position;
        self.advance(1);
        let inside: Vec<char> =
            self.characters.get(start.saturating_add(1)..end).unwrap_or_default().to_vec();
        if !in_double_quotes && inside.iter().any(|c| " \t\n;&|<>()#".contains(*c)) && !scratch.expands() {
            // A shell without arrays reads words and operators here.
            let text: String = inside.iter().collect();
            self.collector.note("quoting that shells read differently", &text);
        }
        evaluated_source(self.collector, &inside, Evaluation::Index(array));
        let constant = inside.iter().all(|c| c.is_ascii_alphanumeric() || "_-+*@^!.".contains(*c));
        if constant || !scratch.is_absent() || inside.contains(&'\\') {
            word.push(Kind::Plain, '[');
            word.push_all(if constant { Kind::Plain } else { Kind::Expansion }, &inside);
            word.push(Kind::Plain, ']');
        } else {
            word.push_all(Kind::Plain, self.since(start));
        }
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
        let array = word.text().trim_end_matches(['=', '+']).to_owned();
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
                Some(first) => {
                    let before = self.position;
                    if first == '[' {
                        let mut key = Word::default();
                        self.index(&mut key, &array, false);
                    }
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
