//! Parser of approval expressions.

use rust_decimal::Decimal;

use super::field::{LEVELS, TIERS};
use super::{Clause, ContextType, ExpressionError, Field, Literal, MAX_BYTES, MAX_CLAUSES, Operator};

pub(super) fn parse(text: &str) -> Result<Vec<Vec<Clause>>, ExpressionError> {
    let mut reader = Reader { rest: text, column: 1 };
    if text.len() > MAX_BYTES {
        return Err(
            reader.error(format!("the expression has {} bytes; at most {MAX_BYTES} are allowed", text.len()))
        );
    }
    let mut alternatives = Vec::new();
    let mut clauses = vec![parse_clause(&mut reader)?];
    let mut count = 1;
    loop {
        reader.skip_space();
        let column = reader.column;
        match reader.word() {
            "" if reader.rest.is_empty() => break,
            "AND" => {}
            "OR" => alternatives.push(std::mem::take(&mut clauses)),
            word => {
                let shown: String = if word.is_empty() {
                    reader.rest.chars().take(1).collect()
                } else {
                    word.chars().take(64).collect()
                };
                let advice = match word {
                    "and" | "And" | "&&" => "write `AND` in capitals",
                    "or" | "Or" | "||" => "write `OR` in capitals",
                    _ => "clauses are joined by `AND` or `OR`",
                };
                return Err(ExpressionError { column, message: format!("unexpected `{shown}`; {advice}") });
            }
        }
        count += 1;
        if count > MAX_CLAUSES {
            return Err(ExpressionError { column, message: format!("more than {MAX_CLAUSES} clauses") });
        }
        clauses.push(parse_clause(&mut reader)?);
    }
    alternatives.push(clauses);
    Ok(alternatives)
}

fn parse_clause(reader: &mut Reader<'_>) -> Result<Clause, ExpressionError> {
    reader.skip_space();
    let column = reader.column;
    if reader.rest.starts_with('(') {
        return Err(reader.error("parentheses are not part of this language; `AND` binds tighter than `OR`"));
    }
    let name = reader.take_while(|character| {
        !character.is_whitespace() && !matches!(character, '=' | '!' | '<' | '>' | '"' | '(')
    });
    if name.is_empty() {
        return Err(reader.error("a variable is missing here, as in `path starts_with \"/etc\"`"));
    }
    let field = Field::named(name).map_err(|error| ExpressionError { column, message: error.to_string() })?;
    reader.skip_space();
    let operator = parse_operator(reader)?;
    reader.skip_space();
    let column = reader.column;
    let literal = parse_literal(reader)?;
    check_types(&field, operator, &literal)
        .map_err(|error| ExpressionError { column, message: error.to_string() })?;
    Ok(Clause { field, operator, literal })
}

fn parse_operator(reader: &mut Reader<'_>) -> Result<Operator, ExpressionError> {
    let column = reader.column;
    let symbol = reader.take_while(|character| matches!(character, '=' | '!' | '<' | '>'));
    let written = if symbol.is_empty() { reader.word() } else { symbol };
    if let Some((operator, _)) = Operator::ALL.iter().find(|(_, word)| *word == written) {
        return Ok(*operator);
    }
    let words: Vec<&str> = Operator::ALL.iter().map(|(_, word)| *word).collect();
    let shown: String = written.chars().take(64).collect();
    let message = match (written, proctor_core::nearest(written, &words)) {
        ("", _) => format!("an operator is missing here, one of `{}`", words.join("`, `")),
        ("=", _) => "unknown operator `=`; did you mean `==`?".to_owned(),
        (_, Some(near)) => format!("unknown operator `{shown}`; did you mean `{near}`?"),
        (_, None) => format!("unknown operator `{shown}`; valid are `{}`", words.join("`, `")),
    };
    Err(ExpressionError { column, message })
}

fn parse_literal(reader: &mut Reader<'_>) -> Result<Literal, ExpressionError> {
    match reader.rest.chars().next() {
        Some('"') => parse_string(reader).map(Literal::Text),
        Some('[') => parse_list(reader).map(Literal::List),
        Some('\'') => Err(reader.error("strings are written in double quotes")),
        _ => {
            let column = reader.column;
            let word = reader.word();
            if word.is_empty() || word == "AND" || word == "OR" {
                return Err(ExpressionError {
                    column,
                    message: "a value is missing here, such as `\"/etc\"` or `10`".to_owned(),
                });
            }
            Ok(number(word).unwrap_or_else(|| Literal::Text(word.to_owned())))
        }
    }
}

fn number(word: &str) -> Option<Literal> {
    let first = word.trim_start_matches(['-', '+']).chars().next()?;
    if !first.is_ascii_digit() && first != '.' {
        return None;
    }
    let plain = word.parse::<Decimal>().or_else(|_| Decimal::from_scientific(word)).ok();
    let seconds = || {
        crate::duration::parse_micros(word)
            .ok()
            .map(|micros| Decimal::from(micros) / Decimal::from(1_000_000))
    };
    plain.or_else(seconds).map(|value| Literal::Number(value.normalize(), word.to_owned()))
}

fn parse_string(reader: &mut Reader<'_>) -> Result<String, ExpressionError> {
    let start = reader.column;
    reader.next();
    let mut text = String::new();
    while let Some(character) = reader.next() {
        match character {
            '"' => return Ok(text),
            '\\' => {
                let Some(escaped @ ('"' | '\\')) = reader.next() else {
                    let column = reader.column.saturating_sub(2);
                    let message =
                        "a backslash stands only before `\"` or another backslash; double it".to_owned();
                    return Err(ExpressionError { column, message });
                };
                text.push(escaped);
            }
            character => text.push(character),
        }
    }
    Err(ExpressionError { column: start, message: "this string does not end; add a `\"`".to_owned() })
}

fn parse_list(reader: &mut Reader<'_>) -> Result<Vec<String>, ExpressionError> {
    let start = reader.column;
    reader.next();
    let mut items = Vec::new();
    loop {
        reader.skip_space();
        match reader.rest.chars().next() {
            None => {
                return Err(ExpressionError {
                    column: start,
                    message: "this list does not end; add a `]`".to_owned(),
                });
            }
            Some(']') if items.is_empty() => {
                return Err(ExpressionError {
                    column: start,
                    message: "this list is empty; name at least one value".to_owned(),
                });
            }
            Some('"') => items.push(parse_string(reader)?),
            Some('\'') => return Err(reader.error("strings are written in double quotes")),
            Some(_) => {
                let item = reader
                    .take_while(|character| !character.is_whitespace() && !matches!(character, ',' | ']'));
                if item.is_empty() {
                    return Err(reader.error("a value is missing here"));
                }
                items.push(item.to_owned());
            }
        }
        reader.skip_space();
        match reader.next() {
            Some(',') => {}
            Some(']') => return Ok(items),
            None => {
                return Err(ExpressionError {
                    column: start,
                    message: "this list does not end; add a `]`".to_owned(),
                });
            }
            Some(_) => {
                let column = reader.column.saturating_sub(1);
                return Err(ExpressionError { column, message: "`,` or `]` is missing here".to_owned() });
            }
        }
    }
}

/// A field, an operator and a literal that can never be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum TypeError {
    #[error("`{0}` needs a list, such as `[\"a\", \"b\"]`")]
    NeedsList(&'static str),
    #[error("`{0}` does not take a list; use `in` or `not_in`")]
    TakesNoList(&'static str),
    #[error("`{operator}` needs a string, and `{name}` is not one")]
    NeedsText { operator: &'static str, name: &'static str },
    #[error("`{0}` is true or false and has no order")]
    NoOrder(&'static str),
    #[error("`{0}` is not a governance level; valid are `L0`, `L1`, `L2`, `L3`")]
    Level(String),
    #[error("`{0}` is not a risk tier; valid are `Low`, `Medium`, `High`, `Critical`")]
    Tier(String),
    #[error("`{name}` is compared with `true` or `false`, found `{found}`")]
    Truth { name: &'static str, found: String },
    #[error("`{name}` is compared with a number, found `{found}`")]
    Number { name: &'static str, found: String },
}

/// Refuses clauses that can never hold, at load rather than at evaluation.
fn check_types(field: &Field, operator: Operator, literal: &Literal) -> Result<(), TypeError> {
    let word = operator.word();
    match (operator.takes_list(), literal) {
        (true, Literal::List(_)) | (false, Literal::Text(_) | Literal::Number(..)) => {}
        (true, _) => return Err(TypeError::NeedsList(word)),
        (false, _) => return Err(TypeError::TakesNoList(word)),
    }
    let Field::Context(name, kind) = field else { return Ok(()) };
    if *kind != ContextType::Text && matches!(operator, Operator::Contains | Operator::StartsWith) {
        return Err(TypeError::NeedsText { operator: word, name });
    }
    if *kind == ContextType::Truth && operator.is_ordered() {
        return Err(TypeError::NoOrder(name));
    }
    let words: Vec<&str> = match literal {
        Literal::Text(text) | Literal::Number(_, text) => vec![text],
        Literal::List(items) => items.iter().map(String::as_str).collect(),
    };
    for text in words {
        let shown: String = text.chars().take(64).collect();
        match kind {
            ContextType::Level if !LEVELS.contains(&text) => {
                return Err(TypeError::Level(shown));
            }
            ContextType::Tier if !TIERS.contains(&text) => {
                return Err(TypeError::Tier(shown));
            }
            ContextType::Truth if !matches!(text, "true" | "false") => {
                return Err(TypeError::Truth { name, found: shown });
            }
            ContextType::Number if number(text).is_none() => {
                return Err(TypeError::Number { name, found: shown });
            }
            _ => {}
        }
    }
    Ok(())
}

struct Reader<'text> {
    rest: &'text str,
    column: usize,
}

impl<'text> Reader<'text> {
    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let character = characters.next()?;
        self.rest = characters.as_str();
        self.column += 1;
        Some(character)
    }

    fn take_while(&mut self, holds: impl Fn(char) -> bool) -> &'text str {
        let end = self.rest.find(|character| !holds(character)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = rest;
        self.column += taken.chars().count();
        taken
    }

    fn skip_space(&mut self) {
        self.take_while(char::is_whitespace);
    }

    fn word(&mut self) -> &'text str {
        self.take_while(|character| !character.is_whitespace())
    }

    fn error(&self, message: impl Into<String>) -> ExpressionError {
        ExpressionError { column: self.column, message: message.into() }
    }
}
