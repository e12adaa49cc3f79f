//! The operands of a condition that kept it from being true. The text is taken apart at its outermost `||` and `&&`, and each part is
//! evaluated by itself.

use crate::condition::{Activation, Condition, Truth};

/// Limit of shown characters of an operand.
const SHOWN: usize = 120;

/// The causes for which a condition that is not true is not.
pub(super) fn causes(text: &str, activation: &Activation<'_>) -> Vec<String> {
    let text = without_parentheses(text);
    let alternatives = parts(text, "||");
    if alternatives.len() > 1 {
        return alternatives.iter().flat_map(|part| causes(part, activation)).collect();
    }
    let conjuncts = parts(text, "&&");
    if conjuncts.len() == 1 {
        return cause(text, activation, "").into_iter().collect();
    }
    let decided = conjuncts.iter().any(|part| truth(part, activation) == Some(Truth::False));
    let absorbed = if decided { ", which does not matter, because another part is false" } else { "" };
    let of_part = |part: &&str| match truth(part, activation) {
        Some(Truth::True) | None => Vec::new(),
        Some(Truth::False) => causes(part, activation),
        Some(Truth::Missing | Truth::Error(_)) => cause(part, activation, absorbed).into_iter().collect(),
    };
    conjuncts.iter().flat_map(of_part).collect()
}

/// The cause in a part that is not taken apart further.
fn cause(part: &str, activation: &Activation<'_>, absorbed: &str) -> Option<String> {
    let shown = shown(part);
    match truth(part, activation)? {
        Truth::True => None,
        Truth::False => Some(format!("`{shown}` is false")),
        Truth::Missing => Some(format!("`{shown}` reads a member that is not there{absorbed}")),
        Truth::Error(problem) => Some(format!("`{shown}` failed ({problem}){absorbed}")),
    }
}

/// The value of a part; `None` if it cannot stand alone.
fn truth(part: &str, activation: &Activation<'_>) -> Option<Truth> {
    Condition::compile(part).ok().map(|condition| condition.evaluate(activation))
}

fn shown(part: &str) -> String {
    let text = part.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// The text within parentheses that enclose all of it.
fn without_parentheses(text: &str) -> &str {
    let mut text = text.trim();
    while let Some(inner) = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        // In `(a) && (b)` the two do not belong together.
        let mut depth = 0_i64;
        if tokens(inner).any(|(_, token)| {
            depth += token.depth();
            depth < 0
        }) {
            break;
        }
        text = inner.trim();
    }
    text
}

/// The operands of an operator outside of all brackets; one if there is none, or if a choice (`?`) binds less.
fn parts<'t>(text: &'t str, operator: &str) -> Vec<&'t str> {
    let mut depth = 0_i64;
    let mut places = Vec::new();
    for (at, token) in tokens(text) {
        depth += token.depth();
        match token {
            Token::Choice if depth == 0 => return vec![text],
            Token::Operator(found) if depth == 0 && found == operator => places.push(at),
            _ => {}
        }
    }
    let mut found = Vec::new();
    let mut start = 0;
    for place in places {
        found.extend(text.get(start..place).map(str::trim));
        start = place + operator.len();
    }
    found.extend(text.get(start..).map(str::trim));
    found
}

/// What matters for taking a condition apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Open,
    Close,
    Choice,
    Operator(&'static str),
}

impl Token {
    fn depth(self) -> i64 {
        match self {
            Token::Open => 1,
            Token::Close => -1,
            Token::Choice | Token::Operator(_) => 0,
        }
    }
}

/// The tokens of a condition with their offsets; texts and comments are skipped.
fn tokens(text: &str) -> impl Iterator<Item = (usize, Token)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = text.get(at..)?;
            let first = rest.chars().next()?;
            let (length, token) = match first {
                '(' | '[' | '{' => (1, Some(Token::Open)),
                ')' | ']' | '}' => (1, Some(Token::Close)),
                '?' => (1, Some(Token::Choice)),
                _ if rest.starts_with("&&") => (2, Some(Token::Operator("&&"))),
                _ if rest.starts_with("||") => (2, Some(Token::Operator("||"))),
                _ if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), None),
                '"' | '\'' => (string_length(rest, is_raw(text, at)), None),
                other => (other.len_utf8(), None),
            };
            let here = at;
            at += length;
            if let Some(token) = token {
                return Some((here, token));
            }
        }
    })
}

/// Whether a quote begins a text in which a backslash is only itself.
fn is_raw(text: &str, quote: usize) -> bool {
    let mut before = text.get(..quote).unwrap_or_default().chars().rev();
    let mut next = before.next();
    if matches!(next, Some('b' | 'B')) {
        next = before.next();
    }
    matches!(next, Some('r' | 'R'))
}

/// Length of the text that begins here, quotes included.
fn string_length(text: &str, raw: bool) -> usize {
    let quote = text.get(..1).unwrap_or_default();
    let triple = quote.repeat(3);
    let end = if text.starts_with(&triple) { triple.as_str() } else { quote };
    let mut at = end.len();
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(end) {
            return at + end.len();
        }
        let first = rest.chars().next().map_or(1, char::len_utf8);
        let escaped =
            if rest.starts_with('\\') && !raw { rest.chars().nth(1).map_or(0, char::len_utf8) } else { 0 };
        at += first + escaped;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_taken_apart_at_their_outermost_operators() {
        for (text, operator, expected) in [
            ("a && b && c", "&&", vec!["a", "b", "c"]),
            ("a && (b && c)", "&&", vec!["a", "(b && c)"]),
            ("a || b && c", "||", vec!["a", "b && c"]),
            (
                r#"x == "&&" && y == 'it\'s && "' && z"#,
                "&&",
                vec![r#"x == "&&""#, r#"y == 'it\'s && "'"#, "z"],
            ),
            (r#"x == r"\" && y"#, "&&", vec![r#"x == r"\""#, "y"]),
            ("x == \"\"\"a\" && b\"\"\" && c", "&&", vec!["x == \"\"\"a\" && b\"\"\"", "c"]),
            ("a // && b\n && c", "&&", vec!["a // && b", "c"]),
            ("a && b ? c : d", "&&", vec!["a && b ? c : d"]),
            ("l.all(x, x && y) && [a && b]", "&&", vec!["l.all(x, x && y)", "[a && b]"]),
            ("ö == 'ü' && ä", "&&", vec!["ö == 'ü'", "ä"]),
        ] {
            assert_eq!(parts(text, operator), expected, "{text}");
        }
        assert_eq!(without_parentheses(" ((a) && (b)) "), "(a) && (b)");
        assert_eq!(without_parentheses("(a) && (b)"), "(a) && (b)");
        for text in ["", "(", "'", "\\", "r'", "\"\"\"", "a &&", "?", "))(("] {
            parts(without_parentheses(text), "&&");
        }
    }
}
