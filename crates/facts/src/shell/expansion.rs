//! Expansions: command, process and parameter substitution, arithmetic. The commands in them run, so they are parsed.

use super::evaluate::{Evaluation, assigned, evaluated_source, is_identifier};
use super::reader::{Parser, parse_code, parse_code_apart};
use super::word::{Kind, Word};

impl Parser<'_> {
    /// Reads what starts with `$`.
    pub(super) fn dollar(&mut self, word: &mut Word, in_double_quotes: bool) {
        let start = self.position;
        match self.peek_at(1) {
            Some('(') => {
                if !(self.peek_at(2) == Some('(') && self.arithmetic(3)) {
                    if self.peek_at(2) == Some('(') {
                        self.note_late_here_documents();
                    }
                    self.advance(2);
                    self.substitution(self.reads_pipe);
                }
            }
            Some('{') => self.parameter(in_double_quotes),
            Some('\'') if !in_double_quotes => return self.ansi_quotes(word),
            Some('"') if !in_double_quotes => {
                self.advance(1);
                return self.double_quotes(word);
            }
            Some('[') if self.old_arithmetic() => {}
            Some(first) if first.is_ascii_alphabetic() || first == '_' => {
                self.advance(2);
                while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                    self.advance(1);
                }
            }
            Some('@' | '*' | '#' | '?' | '-' | '$' | '!' | '0'..='9') => self.advance(2),
            _ => {
                word.push(if in_double_quotes { Kind::Quoted } else { Kind::Plain }, '$');
                return self.advance(1);
            }
        }
        if !in_double_quotes {
            word.mark_split();
        }
        word.push_all(Kind::Expansion, self.since(start));
    }

    /// Reads commands up to the `)` that closes a substitution; the position is after its `(`.
    pub(super) fn substitution(&mut self, piped: bool) {
        if !self.collector.enter() {
            return;
        }
        let frames = std::mem::take(&mut self.frames);
        let here_documents = std::mem::take(&mut self.here_documents);
        let directories = self.collector.directories.clone();
        let outer_piped = std::mem::replace(&mut self.piped, piped);
        let outer_reads_pipe = std::mem::replace(&mut self.reads_pipe, piped);
        let and_or = std::mem::take(&mut self.and_or);
        let outer_substitution = std::mem::replace(&mut self.in_substitution, true);
        if !self.list() {
            self.collector.note("unbalanced", "`(` is not closed");
        }
        self.unfinished_here_documents();
        self.in_substitution = outer_substitution;
        self.and_or = and_or;
        self.reads_pipe = outer_reads_pipe;
        self.piped = outer_piped;
        self.collector.directories = directories;
        self.here_documents = here_documents;
        self.frames = frames;
        self.collector.leave();
    }

    /// Reads `<( … )` or `>( … )`, with the position at its first character.
    pub(super) fn process_substitution(&mut self, word: &mut Word) {
        let start = self.position;
        let reads_a_pipe = self.peek() == Some('>');
        self.advance(2);
        self.substitution(reads_a_pipe || self.reads_pipe);
        word.push_all(Kind::Process, self.since(start));
    }

    /// Reads a substitution in backquotes, with the position at the opening one.
    pub(super) fn backquotes(&mut self, word: &mut Word, in_double_quotes: bool) {
        let start = self.position;
        self.advance(1);
        let mut code = String::new();
        let mut closed = false;
        while let Some(character) = self.peek() {
            match (character, self.peek_at(1)) {
                ('`', _) => {
                    closed = true;
                    self.advance(1);
                    break;
                }
                ('\\', Some(escaped @ ('`' | '\\' | '$'))) => {
                    code.push(escaped);
                    self.advance(2);
                }
                ('\\', Some('"')) if in_double_quotes => {
                    code.push('"');
                    self.advance(2);
                }
                _ => {
                    code.push(character);
                    self.advance(1);
                }
            }
        }
        if !closed {
            self.collector.note("unbalanced", "a backquote is not closed");
        }
        let piped = self.reads_pipe;
        parse_code_apart(self.collector, &code, piped);
        if !in_double_quotes {
            word.mark_split();
        }
        word.push_all(Kind::Expansion, self.since(start));
    }

    /// Reads `${ … }`, with the position at the `$`.
    fn parameter(&mut self, in_double_quotes: bool) {
        if !self.collector.enter() {
            return;
        }
        let start = self.position;
        self.advance(2);
        let runs_commands = matches!(self.peek(), Some(' ' | '\t' | '\n' | '|'));
        let arithmetic = self.parameter_name(in_double_quotes);
        let operator = self.position;
        // In double quotes a single quote is literal in a value (`:-`) but quotes in a pattern (`#`, `%`, `/`).
        let mut in_pattern = !in_double_quotes;
        let mut scratch = Word::default();
        loop {
            match self.peek() {
                None => {
                    self.collector.note("unbalanced", "`${` is not closed");
                    break;
                }
                Some('}') => {
                    if arithmetic {
                        let inside = self.since(operator).to_vec();
                        evaluated_source(self.collector, &inside, Evaluation::Arithmetic);
                    }
                    self.advance(1);
                    break;
                }
                Some('\\') => self.advance(2),
                Some('\'') => self.parameter_quote(in_double_quotes, in_pattern),
                Some('"') => self.double_quotes(&mut scratch),
                Some('`') => self.backquotes(&mut scratch, in_double_quotes),
                Some('$') => self.dollar(&mut scratch, in_double_quotes),
                Some('<' | '>') if self.peek_at(1) == Some('(') && !in_double_quotes => {
                    self.process_substitution(&mut scratch);
                }
                Some(character) => {
                    in_pattern |= matches!(character, '#' | '%' | '/' | '^' | ',');
                    self.advance(1);
                }
            }
        }
        let source = self.text_since(start);
        if source.ends_with("@P}") {
            self.collector.note("code from expansion", &source);
        }
        if runs_commands && let Some(code) = source.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'))
        {
            let code = code.strip_prefix('|').unwrap_or(code).to_owned();
            let piped = self.reads_pipe;
            parse_code(self.collector, &code, piped);
        }
        self.collector.leave();
    }

    /// Reads the name and the index in `${ … }`, and what says how its value is evaluated. Returns whether arithmetic follows.
    fn parameter_name(&mut self, in_double_quotes: bool) -> bool {
        let start = self.position;
        let mut prefix = None;
        if let Some(first @ ('!' | '#')) = self.peek()
            && self.peek_at(1).is_some_and(|c| c.is_ascii_alphanumeric() || "_@*#?$!-".contains(c))
        {
            prefix = Some(first);
            self.advance(1);
        }
        let name_start = self.position;
        match self.peek() {
            Some(c) if c.is_ascii_alphanumeric() || c == '_' => {
                while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                    self.advance(1);
                }
            }
            Some('@' | '*' | '#' | '?' | '-' | '$' | '!') => self.advance(1),
            _ => return false,
        }
        let name = self.text_since(name_start);
        let mut lists = false;
        if self.peek() == Some('[') {
            lists = matches!((self.peek_at(1), self.peek_at(2)), (Some('@' | '*'), Some(']')));
            let mut scratch = Word::default();
            self.index(&mut scratch, &name, in_double_quotes);
        }
        let (operator, next) = (self.peek(), self.peek_at(1));
        // `${!prefix*}` lists names and `${!array[@]}` keys; any other `${!name}` takes its value for the name of a variable.
        let is_list =
            (lists && operator == Some('}')) || (matches!(operator, Some('*' | '@')) && next == Some('}'));
        if prefix == Some('!') && !is_list {
            let text = self.text_since(start);
            self.collector.note("name from expansion", &text);
        }
        match (operator, next) {
            (Some(':'), Some('=')) | (Some('='), _) if is_identifier(&name) => {
                assigned(self.collector, &name, None);
                false
            }
            (Some(':'), Some('-' | '+' | '?' | '=')) => false,
            (Some(':'), _) => true,
            _ => false,
        }
    }

    /// A single quote inside `${ … }`.
    fn parameter_quote(&mut self, in_double_quotes: bool, quotes: bool) {
        let start = self.position;
        let closing = self.characters.iter().skip(start.saturating_add(1)).position(|c| *c == '\'');
        self.collector.charge(closing.unwrap_or(self.characters.len().saturating_sub(start)));
        let Some(length) = closing else {
            if !in_double_quotes {
                self.collector.note("unclosed quote", "`'` is not closed");
            }
            return self.advance(1);
        };
        let inside =
            self.characters.get(start..start.saturating_add(length).saturating_add(1)).unwrap_or_default();
        if in_double_quotes && inside.iter().any(|c| matches!(c, '}' | '"' | '`' | '$' | '\\')) {
            let text: String = inside.iter().collect();
            self.collector.note("quoting that shells read differently", &text);
        }
        self.advance(if quotes { length.saturating_add(2) } else { 1 });
    }

    /// Reads arithmetic whose inner text starts `skip` characters ahead; `false` if it is no arithmetic.
    pub(super) fn arithmetic(&mut self, skip: usize) -> bool {
        let inner_start = self.position.saturating_add(skip);
        let Some(end) = self.closing_parenthesis(inner_start) else { return false };
        if self.characters.get(end.saturating_add(1)) != Some(&')') {
            return false;
        }
        self.position = inner_start;
        self.expansions_until(end);
        let inside = self.characters.get(inner_start..end).unwrap_or_default().to_vec();
        evaluated_source(self.collector, &inside, Evaluation::Arithmetic);
        self.position = end;
        self.advance(2);
        true
    }

    /// Notes here-documents around `((` that turned out to open two subshells: bash reads such text twice, and then takes the lines
    /// of a document in it for commands.
    pub(super) fn note_late_here_documents(&mut self) {
        let rest = self.characters.get(self.position..).unwrap_or_default();
        self.collector.charge(rest.len());
        let is_pending = !self.here_documents.is_empty() || (self.in_substitution && rest.contains(&'\n'));
        let opens = rest.windows(2).position(|pair| pair == ['<', '<']);
        if let Some(at) = opens.or(is_pending.then_some(0)) {
            let text: String = rest.iter().skip(at).take(20).collect();
            self.collector.note("quoting that shells read differently", &text);
        }
    }

    /// Reads `$[ … ]`, with the position at the `$`; `false` if it is not closed.
    fn old_arithmetic(&mut self) -> bool {
        let start = self.position;
        let mut depth = 0_usize;
        let mut end = None;
        for (index, character) in self.characters.iter().enumerate().skip(start.saturating_add(1)) {
            match character {
                '[' => depth = depth.saturating_add(1),
                ']' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        end = Some(index);
                        break;
                    }
                }
                _ => {}
            }
        }
        self.collector.charge(end.unwrap_or(self.characters.len()).saturating_sub(start));
        let Some(end) = end else { return false };
        let inside = self.characters.get(start..end).unwrap_or_default();
        // Only some shells know this form; for the others an operator in it ends the word.
        if inside.iter().any(|c| matches!(c, ';' | '|' | '&' | '<' | '>' | '\n' | '\'' | '"' | '#')) {
            let text: String = inside.iter().collect();
            self.collector.note("quoting that shells read differently", &text);
        }
        self.advance(2);
        self.expansions_until(end);
        let inside = self.characters.get(start.saturating_add(2)..end).unwrap_or_default().to_vec();
        evaluated_source(self.collector, &inside, Evaluation::Arithmetic);
        self.position = end;
        self.advance(1);
        true
    }

    /// Parses the expansions in text that is otherwise data: arithmetic, here-document bodies, patterns.
    pub(super) fn expansions_until(&mut self, end: usize) -> bool {
        let all = self.characters;
        self.characters = all.get(..end).unwrap_or(all);
        let mut scratch = Word::default();
        while let Some(character) = self.peek() {
            match character {
                '\\' => self.advance(2),
                '$' => self.dollar(&mut scratch, true),
                '`' => self.backquotes(&mut scratch, true),
                _ => self.advance(1),
            }
        }
        self.characters = all;
        scratch.expands()
    }

    /// The index of the `)` that closes a parenthesis whose inside starts at `from`.
    pub(super) fn closing_parenthesis(&mut self, from: usize) -> Option<usize> {
        let mut depth = 0_usize;
        let mut index = from;
        let mut quote: Option<char> = None;
        let found = loop {
            let Some(character) = self.characters.get(index).copied() else { break None };
            match (character, quote) {
                ('\\', None | Some('"' | '`')) => index = index.saturating_add(1),
                (closing, Some(open)) if closing == open => quote = None,
                ('\'' | '"' | '`', None) => quote = Some(character),
                ('(', None) => depth = depth.saturating_add(1),
                (')', None) if depth == 0 => break Some(index),
                (')', None) => depth = depth.saturating_sub(1),
                _ => {}
            }
            index = index.saturating_add(1);
        };
        self.collector.charge(index.saturating_sub(from));
        found
    }
}
