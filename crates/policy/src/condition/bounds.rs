//! Bounds that are checked before a condition reaches its parser, which is recursive: nesting has to be bounded by code that is not.

use super::ConditionProblem;
use super::position::problem_at;

/// Longest condition, in bytes.
pub const MAX_BYTES: usize = 4096;
/// Deepest nesting of brackets, and longest run of `!` or `-`.
pub const MAX_NESTING: usize = 32;
/// Most `? :`, which nest to the right without brackets.
pub const MAX_CHOICES: usize = 32;
/// Most signs (operators, dots, brackets, commas): each can add one level to the parsed tree.
pub const MAX_SIGNS: usize = 1024;

/// Refuses what is too long or nested too deeply. Takes one pass and no recursion.
pub(super) fn check(text: &str) -> Result<(), ConditionProblem> {
    if text.len() > MAX_BYTES {
        return Err(problem_at(
            text,
            0,
            format!("the condition is {} bytes long; at most {MAX_BYTES} are read", text.len()),
        ));
    }
    if let Some(offset) = text.find('\0') {
        return Err(problem_at(text, offset, "the condition contains a NUL character".to_owned()));
    }
    let mut depth = 0usize;
    let mut prefixes = 0usize;
    let mut choices = 0usize;
    let mut signs = 0usize;
    let mut characters = text.char_indices().peekable();
    let mut previous = ' ';
    while let Some((offset, character)) = characters.next() {
        match character {
            '"' | '\'' => skip_text(&mut characters, character, matches!(previous, 'r' | 'R')),
            '/' if characters.peek().is_some_and(|(_, next)| *next == '/') => {
                for (_, next) in characters.by_ref() {
                    if next == '\n' {
                        break;
                    }
                }
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '?' => choices += 1,
            _ => {}
        }
        prefixes = match character {
            '!' | '-' => prefixes + 1,
            space if space.is_whitespace() => prefixes,
            _ => 0,
        };
        signs += usize::from(character.is_ascii_punctuation() && !matches!(character, '_' | '"' | '\''));
        if depth > MAX_NESTING || prefixes > MAX_NESTING || choices > MAX_CHOICES || signs > MAX_SIGNS {
            return Err(problem_at(
                text,
                offset,
                format!(
                    "the condition is nested too deeply or too complex here (at most {MAX_NESTING} brackets or signs within each other, {MAX_CHOICES} `?` and {MAX_SIGNS} signs); split it into several rules"
                ),
            ));
        }
        previous = character;
    }
    Ok(())
}

/// Skips the rest of a string literal, single or triple quoted. An unterminated one is left to the parser to report.
fn skip_text(characters: &mut std::iter::Peekable<std::str::CharIndices<'_>>, quote: char, raw: bool) {
    let mut opening = 1;
    while opening < 3 && characters.peek().is_some_and(|(_, next)| *next == quote) {
        characters.next();
        opening += 1;
    }
    if opening == 2 {
        return;
    }
    let mut closing = 0;
    while let Some((_, character)) = characters.next() {
        if character == quote {
            closing += 1;
            if closing == opening {
                return;
            }
            continue;
        }
        closing = 0;
        if character == '\\' && !raw {
            characters.next();
        } else if opening == 1 && character == '\n' {
            // A single-quoted literal ends with its line; what follows is code again, whatever the parser says.
            return;
        }
    }
}
