//! What a word or a text turns out to be, once what follows it is seen.

use super::word::Word;

/// Whether a word is `time`, or its option after one: a construct or an assignment may follow.
pub(super) fn is_time(word: &Word, is_first: bool) -> bool {
    matches!(word.plain(), Some("time")) || (!is_first && matches!(word.plain(), Some("-p" | "--")))
}

/// Whether the word before `<` or `>` names a file descriptor: digits, `{name}` or `{name[index]}`.
pub(super) fn is_descriptor(word: &Word) -> bool {
    let text = word.text();
    let name = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    if name.is_some_and(|name| name.contains('[') && name.ends_with(']')) && word.plain_contains(&['{']) {
        return true;
    }
    let Some(text) = word.plain() else { return false };
    text.bytes().all(|byte| byte.is_ascii_digit())
        || name.is_some_and(|name| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        })
}

/// Whether the text in `(( ))` could be commands rather than an expression.
pub(super) fn looks_like_command(inner: &str) -> bool {
    inner.split(['&', '|', ';', '\n']).any(|part| {
        let mut tokens = part.split_whitespace();
        let Some(first) = tokens.next() else { return false };
        let operators = ['=', '+', '*', '%', '?', '!', '^', ',', ':', ')', '('];
        let is_name = !first.contains(operators) && first.parse::<f64>().is_err();
        let Some(second) = tokens.next() else { return is_name };
        is_name && !second.starts_with(operators) && second != "-" && second != "/"
    })
}
