//! Bounds that are checked before a module reaches its parser, which is recursive: size, nesting, and the length of one
//! statement's chain of operators.

use super::ModuleProblem;

/// Largest module, in bytes.
pub(super) const MAX_BYTES: usize = 1 << 20;
/// Deepest nesting of brackets.
pub(super) const MAX_NESTING: usize = 32;
/// Most operators in one statement.
pub(super) const MAX_OPERATORS: usize = 1000;

/// Lexical rules of a language: comments, raw strings, end of a statement.
pub(super) struct Syntax {
    pub(super) comment: &'static str,
    pub(super) raw_quote: Option<char>,
    pub(super) statement_end: char,
}

/// Refuses what is too large or nested too deeply. Takes one pass and no recursion.
pub(super) fn check(file: &str, text: &str, syntax: &Syntax) -> Result<(), ModuleProblem> {
    if text.len() > MAX_BYTES {
        let message = format!("the module is {} bytes long; at most {MAX_BYTES} are read", text.len());
        return Err(ModuleProblem::at(file, text, 0, message));
    }
    let (mut depth, mut operators) = (0usize, 0usize);
    for (offset, word) in code(text, syntax) {
        match word {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            "if" | "." | "+" | "-" | "*" | "/" | "%" | "&" | "|" | "!" | "=" | "<" | ">" | "else" => {
                operators += 1;
            }
            _ => {}
        }
        if word.starts_with(syntax.statement_end) {
            operators = 0;
        }
        if depth > MAX_NESTING || operators > MAX_OPERATORS {
            let message = format!(
                "nested too deeply or too complex here (at most {MAX_NESTING} brackets within each other and {MAX_OPERATORS} operators in a statement)"
            );
            return Err(ModuleProblem::at(file, text, offset, message));
        }
    }
    Ok(())
}

/// The words and signs of a program with their offsets, without comments and texts.
pub(super) fn code<'t>(text: &'t str, syntax: &Syntax) -> impl Iterator<Item = (usize, &'t str)> {
    let comment = syntax.comment;
    let raw_quote = syntax.raw_quote;
    let mut offset = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = text.get(offset..)?;
            let first = rest.chars().next()?;
            let start = offset;
            if rest.starts_with(comment) {
                offset += rest.find('\n').unwrap_or(rest.len());
            } else if first == '"' || Some(first) == raw_quote {
                offset += 1 + text_length(rest.get(1..)?, first, first == '"');
            } else if first.is_alphanumeric() || first == '_' {
                let length =
                    rest.find(|next: char| !next.is_alphanumeric() && next != '_').unwrap_or(rest.len());
                offset += length;
                return rest.get(..length).map(|word| (start, word));
            } else {
                offset += first.len_utf8();
                if first == '\n' || !first.is_whitespace() {
                    return rest.get(..first.len_utf8()).map(|sign| (start, sign));
                }
            }
        }
    })
}

/// The length of a text literal after its opening quote, the closing one included.
fn text_length(rest: &str, quote: char, escapes: bool) -> usize {
    let mut escaped = false;
    for (offset, character) in rest.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' if escapes => escaped = true,
            _ if character == quote => return offset + character.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}
