//! Keywords: what they open, close and skip.

use super::evaluate::{Evaluation, assigned, evaluated, is_identifier};
use super::grammar::FrameKind;
use super::reader::Parser;
use super::word::{Kind, Word};

/// Operators of `[[` that evaluate both sides as arithmetic.
const COMPARISONS: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

impl Parser<'_> {
    /// Handles a word in command position if it is a keyword.
    pub(super) fn keyword(&mut self, word: &str) -> bool {
        match word {
            "!" => self.and_or.uncertain = true,
            "if" => self.push_frame(FrameKind::If),
            "while" | "until" => self.push_frame(FrameKind::Loop),
            "{" => self.push_frame(FrameKind::Brace),
            "then" | "else" | "elif" => self.inside(FrameKind::If, word),
            "do" => self.inside(FrameKind::Loop, word),
            "fi" => self.close(FrameKind::If, word),
            "done" => self.close(FrameKind::Loop, word),
            "esac" => self.close(FrameKind::Case, word),
            "}" => self.close(FrameKind::Brace, word),
            "for" | "select" => self.for_clause(),
            "case" => self.case_clause(),
            "function" => self.function_clause(),
            "coproc" => self.coprocess(),
            "[[" => self.condition(),
            _ => return false,
        }
        true
    }

    fn inside(&mut self, kind: FrameKind, word: &str) {
        if !self.top_is(kind) {
            let text = format!("`{word}` without `{}`", kind.opening());
            self.collector.note("unbalanced", &text);
        }
    }

    fn close(&mut self, kind: FrameKind, word: &str) {
        if self.top_is(kind) {
            self.pop_frame();
        } else {
            self.inside(kind, word);
        }
    }

    fn for_clause(&mut self) {
        self.push_frame(FrameKind::Loop);
        self.skip_blanks();
        if self.looking_at("((") {
            if !self.arithmetic(2) {
                self.collector.note("unbalanced", "`((` is not closed");
            }
            return;
        }
        let variable = self.read_word().text();
        self.skip_lines();
        let start = self.position;
        if self.read_word().plain() != Some("in") {
            self.position = start;
            return self.loop_variable(&variable, None);
        }
        loop {
            self.skip_blanks();
            self.skip_comment();
            if matches!(self.peek(), None | Some('\n' | ';' | '&' | '|' | '(' | ')')) {
                return;
            }
            let before = self.position;
            let value = self.read_word();
            self.loop_variable(&variable, Some(&value));
            if self.position == before {
                self.collector.note("unexpected", "an operator in the words of `for`");
                return self.advance(1);
            }
        }
    }

    /// Records a value of a loop's variable.
    fn loop_variable(&mut self, variable: &str, value: Option<&Word>) {
        if is_identifier(variable) {
            // A sequence of numbers is one; of characters it may be anything.
            let number = value.filter(|value| value.is_number_sequence()).map(|_| Word::literal("0"));
            assigned(self.collector, variable, number.as_ref().or(value.filter(|value| !value.has_brace())));
        }
    }

    fn case_clause(&mut self) {
        self.push_frame(FrameKind::Case);
        self.skip_blanks();
        self.read_word();
        self.skip_lines();
        let start = self.position;
        if self.read_word().plain() == Some("in") {
            self.case_pattern();
        } else {
            self.position = start;
            self.collector.note("unbalanced", "`case` without `in`");
        }
    }

    /// Reads the pattern of a case item up to its `)`, or the `esac`.
    pub(super) fn case_pattern(&mut self) {
        self.skip_lines();
        let parenthesis = self.peek() == Some('(');
        if parenthesis {
            self.advance(1);
        }
        let mut first = true;
        loop {
            self.skip_blanks();
            let before = self.position;
            let word = self.read_word();
            if first && !parenthesis && word.plain() == Some("esac") {
                return self.close(FrameKind::Case, "esac");
            }
            first = false;
            self.skip_blanks();
            match self.peek() {
                Some(')') => return self.advance(1),
                Some('|') => self.advance(1),
                None => return,
                // A blank is allowed nowhere in a pattern, so this is no `case` that a shell accepts.
                Some(_) => {
                    self.collector.note("unbalanced", "a `case` pattern without `)`");
                    self.position = before;
                    if word.is_absent() {
                        self.advance(1);
                    }
                    return;
                }
            }
        }
    }

    fn function_clause(&mut self) {
        self.collector.saw_function = true;
        self.skip_blanks();
        self.read_word();
        self.skip_blanks();
        self.function_parentheses();
        self.skip_lines();
    }

    /// Skips `()` after a function's name; `false` if other text follows.
    pub(super) fn function_parentheses(&mut self) -> bool {
        let start = self.position;
        if self.peek() == Some('(') {
            self.advance(1);
            self.skip_blanks();
            if self.peek() == Some(')') {
                self.advance(1);
                self.collector.saw_function = true;
                self.skip_lines();
                return true;
            }
        }
        self.position = start;
        false
    }

    /// Skips the name of `coproc NAME { … }`: without a construct after it, the first word is the command.
    fn coprocess(&mut self) {
        self.skip_blanks();
        let start = self.position;
        while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
            self.advance(1);
        }
        let named = self.position > start;
        self.skip_blanks();
        let word_start = self.position;
        while self.peek().is_some_and(|c| c.is_ascii_lowercase() || matches!(c, '{' | '[')) {
            self.advance(1);
        }
        let opens = self.peek_opening(word_start);
        self.position = if named && opens { word_start } else { start };
    }

    fn peek_opening(&self, start: usize) -> bool {
        let word = self.text_since(start);
        self.characters.get(start) == Some(&'(')
            || matches!(
                word.as_str(),
                "{" | "if" | "while" | "until" | "for" | "case" | "select" | "[[" | "function"
            )
    }

    /// Reads `[[ … ]]`: its operators look like redirections and lists but are not.
    fn condition(&mut self) {
        let mut operand: Vec<Word> = Vec::new();
        let mut after_or = false;
        loop {
            self.skip_lines();
            let Some(character) = self.peek() else {
                self.collector.note("unbalanced", "`[[` is not closed");
                return;
            };
            if matches!(character, '(' | ')' | '<' | '>' | ';' | '&' | '|') && !self.process_starts() {
                if matches!(character, '<' | '>') {
                    let mut operator = Word::default();
                    operator.push(Kind::Plain, character);
                    operand.push(operator);
                } else if matches!(character, '|' | '&' | ';') {
                    self.check_operand(&operand, after_or);
                    after_or = true;
                    operand.clear();
                }
                self.advance(1);
                continue;
            }
            let word = self.read_word();
            if word.plain() == Some("]]") {
                return self.check_operand(&operand, after_or);
            }
            if word.is_absent() {
                self.advance(1);
                continue;
            }
            if word.plain() == Some("=~") {
                self.regular_expression();
            }
            operand.push(word);
        }
    }

    /// Skips the pattern after `=~`, in which parentheses and bars are no operators.
    fn regular_expression(&mut self) {
        self.skip_blanks();
        while self.peek().is_some_and(|c| !c.is_whitespace()) {
            if self.read_word().is_absent() {
                self.advance(1);
            }
        }
    }

    fn process_starts(&self) -> bool {
        matches!(self.peek(), Some('<' | '>')) && self.peek_at(1) == Some('(')
    }

    /// A shell without `[[` runs what follows an operator in it as a command.
    fn check_operand(&mut self, operand: &[Word], after_operator: bool) {
        for pair in operand.windows(2) {
            let [first, second] = pair else { continue };
            if matches!(first.text().as_str(), "-v" | "-R") {
                evaluated(self.collector, second, Evaluation::Name);
            }
            if COMPARISONS.contains(&first.text().as_str()) {
                evaluated(self.collector, second, Evaluation::Arithmetic);
            }
            if COMPARISONS.contains(&second.text().as_str()) {
                evaluated(self.collector, first, Evaluation::Arithmetic);
            }
        }
        let texts: Vec<String> = operand.iter().map(Word::text).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).skip_while(|text| *text == "!").collect();
        let condition = match texts.as_slice() {
            [] => true,
            [first, ..] if first.starts_with('-') && texts.len() <= 2 => true,
            [_, operator, ..] => {
                matches!(*operator, "=" | "==" | "!=" | "=~" | "<" | ">")
                    || COMPARISONS.contains(operator)
                    || matches!(*operator, "-nt" | "-ot" | "-ef")
            }
            [_] => operand.iter().all(|word| word.is_quoted() || word.expands()),
        };
        if after_operator && !condition {
            self.collector.note("command in condition", &texts.join(" "));
        }
    }
}
