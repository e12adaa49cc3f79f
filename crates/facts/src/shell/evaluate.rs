//! Text that bash reads a second time: as code, as arithmetic, as the name of a variable, or for its expansions.
//!
//! [`evaluated`] is called wherever bash does that. It reports the commands that it finds in the text, and notes whatever it cannot follow.

use super::collect::Collector;
use super::reader::{parse_code_apart, parse_expansions};
use super::variables::Value;
use super::word::Word;

/// The way in which a text is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Evaluation<'a> {
    /// Commands.
    Code,
    /// An expression. A variable in it is evaluated too, again and again, and an index in its value may run commands.
    Arithmetic,
    /// The index of an array: an expression, or a key if the array is associative.
    Index(&'a str),
    /// The name of a variable, perhaps with an index.
    Name,
    /// Text whose expansions are carried out.
    Text,
}

/// Characters that make text more than a constant.
const ACTIVE: [char; 3] = ['$', '`', '\\'];

/// Notes what a text does that is evaluated. Expansions that the parser met on its way were already read; those in quotes were not.
pub(super) fn evaluated(collector: &mut Collector, word: &Word, evaluation: Evaluation<'_>) {
    let text = word.text();
    if word.hides_expansions() && evaluation != Evaluation::Code {
        parse_expansions(collector, &text);
    }
    match evaluation {
        Evaluation::Code => {
            if word.expands() {
                collector.note("code from expansion", &text);
            }
            parse_code_apart(collector, &text, false);
        }
        Evaluation::Arithmetic => arithmetic(collector, &text, None),
        Evaluation::Index(array) => index(collector, &text, array),
        Evaluation::Name if word.expands() => collector.note("name from expansion", &text),
        Evaluation::Name => name(collector, &text),
        Evaluation::Text if word.expands() || text.contains('\\') => {
            collector.note("text that is expanded again", &text);
        }
        Evaluation::Text => {}
    }
}

/// Like [`evaluated`], for source text of which the parser has read the expansions outside of quotes.
pub(super) fn evaluated_source(collector: &mut Collector, source: &[char], evaluation: Evaluation<'_>) {
    let text: String = source.iter().collect();
    if text.contains(['\'', '\\']) && text.contains(['$', '`']) {
        parse_expansions(collector, &text);
    }
    match evaluation {
        Evaluation::Index(array) => index(collector, &text, array),
        _ => arithmetic(collector, &text, None),
    }
}

/// Notes the value that a variable is given. `None` is a value that is not in the command line.
pub(super) fn assigned(collector: &mut Collector, name: &str, value: Option<&Word>) {
    let known = value.filter(|value| !value.expands()).map(Word::text);
    collector.assignment(name, known.as_deref().unwrap_or_default());
    match name {
        "PS0" | "PS1" | "PS2" | "PS4" | "MAILPATH" => match value {
            Some(value) => evaluated(collector, value, Evaluation::Text),
            None => collector.note("text that is expanded again", name),
        },
        "PROMPT_COMMAND" => match value {
            Some(value) => evaluated(collector, value, Evaluation::Code),
            None => collector.note("code from expansion", name),
        },
        "BASH_ENV" | "ENV" => {
            if let Some(value) = value {
                evaluated(collector, value, Evaluation::Text);
            }
            collector.note("script from variable", name);
        }
        // `history` writes the file that its variable names.
        "HISTFILE" => {
            if let Some(value) = value {
                collector.file(super::collect::Effect::Write, value);
            }
        }
        "BASH_ALIASES" | "BASH_CMDS" => collector.note("alias", name),
        _ => {}
    }
    let kind = match value {
        Some(value) if is_number(value) => Value::Number,
        _ => Value::Other,
    };
    collector.variables.assign(name, kind);
}

/// Notes what a builtin does that stores something of its own into a variable.
pub(super) fn stored(collector: &mut Collector, name: &Word) {
    evaluated(collector, name, Evaluation::Name);
    let text = name.text();
    let base = text.split('[').next().unwrap_or_default();
    if !name.expands() && is_identifier(base) {
        assigned(collector, base, None);
    }
}

/// Whether the text can be the name of a variable.
pub(super) fn is_identifier(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && text.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}

/// Whether a value is a number wherever the command line runs.
fn is_number(value: &Word) -> bool {
    let text = value.text();
    if value.expands() {
        // The value of an expression, a length, a status or a count.
        let whole = |open: &str, close: &str| {
            text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close)).is_some_and(|inside| {
                !inside.contains(['$', '`', '\'', '"', '\\', '}'])
                    && inside.matches('(').count() == inside.matches(')').count()
            })
        };
        return whole("$((", "))") || whole("${#", "}") || matches!(text.as_str(), "$#" | "$?" | "$$" | "$!");
    }
    let digits = text.strip_prefix('-').unwrap_or(&text);
    digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn name(collector: &mut Collector, text: &str) {
    match text.split_once('[') {
        Some((array, rest)) => index(collector, rest.strip_suffix(']').unwrap_or(rest), array),
        None if text.contains(ACTIVE) => collector.note("name", text),
        None => {}
    }
}

fn index(collector: &mut Collector, text: &str, array: &str) {
    if matches!(text, "@" | "*") {
        return;
    }
    // A key may be quoted.
    let bare = ['"', '\''].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote));
    arithmetic(collector, bare.filter(|bare| !bare.contains(['"', '\''])).unwrap_or(text), Some(array));
}

/// Walks over an expression. `array` is the array whose index it is.
fn arithmetic(collector: &mut Collector, text: &str, array: Option<&str>) {
    collector.charge(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let after = rest.get(first.len_utf8()..).unwrap_or_default();
        rest = match first {
            '0'..='9' => {
                after.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '#' | '@' | '_'))
            }
            'a'..='z' | 'A'..='Z' | '_' => {
                let (name, next) = split_name(rest);
                let operator = next.trim_start();
                let is_set = operator.starts_with('=') && !operator.starts_with("==");
                if !is_set {
                    collector.variables.evaluate(name, array);
                }
                if is_set || is_changed(operator) {
                    collector.variables.assign(name, Value::Number);
                }
                next
            }
            '$' => {
                let Some(next) = dollar(collector, after, array) else {
                    return collector.note("arithmetic", text);
                };
                next
            }
            '\'' | '"' | '\\' | '`' => return collector.note("arithmetic", text),
            _ => after,
        };
    }
}

/// Whether an operator stores a number into the variable before it.
fn is_changed(operator: &str) -> bool {
    operator.starts_with("++") || operator.starts_with("--") || {
        let rest = operator.trim_start_matches(['+', '-', '*', '/', '%', '&', '|', '^', '<', '>']);
        rest.len() < operator.len()
            && rest.starts_with('=')
            && !matches!(operator.get(..2), Some("<=" | ">="))
    }
}

/// The text after an expansion in an expression, or `None` if its value is not known to be a number.
fn dollar<'a>(collector: &mut Collector, after: &'a str, array: Option<&str>) -> Option<&'a str> {
    match after.chars().next()? {
        '#' | '?' | '$' | '!' => after.get(1..),
        '{' => {
            let (inside, rest) = after.get(1..)?.split_once('}')?;
            let name = inside.strip_prefix('#').unwrap_or(inside);
            let (name, of) = name.split_once('[').unwrap_or((name, ""));
            if inside.contains(['$', '`', '\'', '"', '\\']) || !(is_identifier(name) || inside == "#") {
                return None;
            }
            if !inside.starts_with('#') {
                collector.variables.evaluate(name, array);
            }
            (of.is_empty() || of.ends_with(']')).then_some(rest)
        }
        '(' if after.starts_with("((") => {
            let mut depth = 0_usize;
            for (index, character) in after.char_indices() {
                match character {
                    '(' => depth = depth.saturating_add(1),
                    ')' => depth = depth.saturating_sub(1),
                    '\'' | '"' | '\\' | '`' => return None,
                    _ => {}
                }
                if depth == 0 {
                    return after.get(index.saturating_add(1)..);
                }
            }
            None
        }
        'a'..='z' | 'A'..='Z' | '_' => {
            let (name, rest) = split_name(after);
            collector.variables.evaluate(name, array);
            Some(rest)
        }
        _ => None,
    }
}

fn split_name(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    text.split_at(end)
}
