//! Values beside a name, an option, a header's name or a URL's user, and whether they are secret.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::begins_word;
use super::names::{Strength, is_position};

pub(super) type Span = (usize, usize);

/// The most bytes of a value in quotes.
const MAX_QUOTED: usize = 512;
/// The most bytes of a value without quotes.
const MAX_BARE: usize = 4096;
/// The most bytes of a URL's user and password.
const MAX_USER: usize = 512;
/// The most bytes of a name that are read backwards.
const MAX_NAME: usize = 48;

/// How a value stands beside its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `NAME=value`, as in shells and URLs.
    Tight,
    /// `name = value` or `name: value`, as in programs and configuration.
    Loose,
    /// `--name value`.
    Option,
    /// A member of JSON.
    Member,
}

/// A value, and whether it stands in quotes.
pub(super) struct Value {
    pub(super) span: Span,
    pub(super) is_quoted: bool,
}

/// The value beside the name that ends with this match, if it is secret.
pub(super) fn named(text: &str, start: usize, end: usize, strength: Strength) -> Option<Span> {
    let bytes = text.as_bytes();
    let numbered = end + count(bytes, end, 2, |byte| byte.is_ascii_digit());
    let closed = numbered
        + count(bytes, numbered, 4, |byte| matches!(byte, b'"' | b'\'' | b'\\' | b']' | b')' | b'`'));
    let spaced = closed + count(bytes, closed, 4, |byte| matches!(byte, b' ' | b'\t'));
    let name = name_before(text, start);
    let (form, from) = match bytes.get(spaced)? {
        b'=' | b':' => {
            let sign_end = spaced + count(bytes, spaced, 3, |byte| matches!(byte, b'=' | b':' | b'>'));
            let sign = bytes.get(spaced..sign_end)?;
            // A comparison, or a path in a module.
            if matches!(sign, b"==" | b"===" | b"::") {
                return None;
            }
            let from = sign_end + count(bytes, sign_end, 8, |byte| matches!(byte, b' ' | b'\t'));
            let is_tight = sign == b"=" && spaced == closed && from == sign_end;
            (if is_tight { Form::Tight } else { Form::Loose }, from)
        }
        _ if spaced > closed || closed > numbered => {
            // The quote after an option closes its word: the value is the next one.
            let is_option = name.starts_with('-') && begins_option(bytes, start, name);
            let gap =
                count(bytes, numbered, 8, |byte| matches!(byte, b' ' | b'\t' | b'"' | b'\'' | b',' | b'\\'));
            let quoted =
                bytes.get(numbered..numbered + gap)?.iter().any(|byte| matches!(byte, b' ' | b'\t' | b','));
            if !is_option || !quoted {
                return None;
            }
            // Back to the value's own quote.
            let quote = bytes
                .get(numbered..numbered + gap)?
                .iter()
                .rposition(|byte| matches!(byte, b' ' | b'\t' | b','))?;
            (Form::Option, numbered + quote + 1)
        }
        _ => return None,
    };
    if strength == Strength::Token && is_list_position(name) {
        return None;
    }
    let form = if name.starts_with('-') && form == Form::Tight { Form::Option } else { form };
    let value = value_at(text, from)?;
    let (from, to) = value.span;
    is_secret(text.get(from..to)?, value.is_quoted, form, strength).then_some((from, to))
}

/// The part of a name before a position.
fn name_before(text: &str, start: usize) -> &str {
    let bytes = text.as_bytes();
    let before = bytes.get(..start).unwrap_or_default();
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(**byte, b'_' | b'-');
    let length = before.iter().rev().take(MAX_NAME).take_while(is_name).count();
    text.get(start - length..start).unwrap_or_default()
}

/// Whether an option begins where its name does: behind a blank, a quote or nothing.
fn begins_option(bytes: &[u8], start: usize, name: &str) -> bool {
    start
        .checked_sub(name.len() + 1)
        .and_then(|before| bytes.get(before))
        .is_none_or(|byte| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'[' | b',' | b'('))
}

fn is_list_position(name: &str) -> bool {
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect();
    is_position(&plain)
}

/// The value that begins at a position: in quotes, or up to the first sign that ends a word.
pub(super) fn value_at(text: &str, from: usize) -> Option<Value> {
    let bytes = text.as_bytes();
    let escapes = count(bytes, from, 4, |byte| byte == b'\\');
    let opening = from + escapes;
    if let Some(quote @ (b'"' | b'\'' | b'`')) = bytes.get(opening).copied() {
        let begin = opening + 1;
        let limit = begin.saturating_add(MAX_QUOTED).min(bytes.len());
        let inside = bytes.get(begin..limit)?;
        let close = inside.iter().position(|byte| *byte == quote || *byte == b'\n');
        if let Some(length) = close.filter(|length| inside.get(*length) == Some(&quote)) {
            let value = inside.get(..length)?;
            let escaped = value.iter().rev().take(escapes).take_while(|byte| **byte == b'\\').count();
            return Some(Value { span: (begin, begin + length - escaped), is_quoted: true });
        }
        let span = (begin, bare_end(bytes, begin));
        return Some(Value { span, is_quoted: false });
    }
    Some(Value { span: (from, bare_end(bytes, from)), is_quoted: false })
}

fn bare_end(bytes: &[u8], from: usize) -> usize {
    from + count(bytes, from, MAX_BARE, |byte| {
        !byte.is_ascii_whitespace()
            && !matches!(
                byte,
                b'"' | b'\'' | b'`' | b',' | b';' | b')' | b']' | b'}' | b'&' | b'|' | b'<' | b'>'
            )
    })
}

fn count(bytes: &[u8], from: usize, most: usize, is: impl Fn(u8) -> bool) -> usize {
    bytes.get(from..).unwrap_or_default().iter().take(most).take_while(|byte| is(**byte)).count()
}

/// Whether a value refers to something, or stands for one: a variable, a template, a row of equal signs, our own label.
pub(super) fn is_reference(value: &str) -> bool {
    const WORDS: [&str; 16] = [
        "null",
        "none",
        "nil",
        "true",
        "false",
        "undefined",
        "string",
        "required",
        "optional",
        "redacted",
        "hidden",
        "masked",
        "example",
        "empty",
        "unset",
        "todo",
    ];
    let mut bytes = value.bytes();
    let Some(first) = bytes.next() else { return true };
    matches!(first, b'$' | b'{' | b'<' | b'(' | b'[' | b'%' | b'|' | b'&' | b'>')
        || bytes.all(|byte| byte == first)
        || value.contains("[REDACTED")
        || value.starts_with("env:")
        || value.starts_with("file:")
        || value.contains("://")
        || WORDS.iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// Whether a value is secret, given how it is named.
pub(super) fn is_secret(value: &str, is_quoted: bool, form: Form, strength: Strength) -> bool {
    if value.len() < 3 || is_reference(value) {
        return false;
    }
    if strength == Strength::Pwd && is_path(value) {
        return false;
    }
    let has = |class: fn(&u8) -> bool| value.as_bytes().iter().any(class);
    let has_digit = has(u8::is_ascii_digit);
    let is_identifier = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
    // A call, a path of a module, a member of an object, or a variable is code.
    let is_code = !is_quoted
        && form != Form::Member
        && (value.contains("::")
            || value.contains('(')
            || value.contains("->")
            || (is_identifier && value.contains(['_', '.']) && !has_digit)
            || (is_identifier && form == Form::Loose && value.contains('.')));
    if is_code {
        return false;
    }
    if strength == Strength::Token {
        return is_token(value, is_quoted, form, has_digit);
    }
    match form {
        Form::Member => true,
        Form::Option => is_quoted || !value.starts_with('-'),
        Form::Tight => is_quoted || has_digit || value.len() >= 6 && !is_own_name(value),
        Form::Loose if is_quoted => !is_own_name(value) || value.len() < 5,
        // `password: required` is prose, `password: hunter2` is none.
        Form::Loose => {
            has_digit
                || value.bytes().any(|byte| {
                    matches!(byte, b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'*' | b'?' | b'+' | b'~')
                })
        }
    }
}

fn is_token(value: &str, is_quoted: bool, form: Form, has_digit: bool) -> bool {
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    if value.bytes().any(|byte| byte.is_ascii_whitespace()) || (is_number && value.len() < 12) {
        return false;
    }
    let has = |class: fn(&u8) -> bool| value.as_bytes().iter().any(class);
    let is_mixed = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
    if form == Form::Option && (value.starts_with('-') || value.contains(['=', '/'])) {
        return false;
    }
    (has_digit && value.len() >= 6)
        || (is_mixed && value.len() >= 16)
        || (form == Form::Option && value.len() >= 4)
        || (form == Form::Tight && value.len() >= 8 && !is_own_name(value))
        || ((is_quoted || form == Form::Member) && value.len() >= 20)
}

/// Whether a value is only another name of what it is assigned to, as in `password=password`.
fn is_own_name(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    ["password", "passwd", "token", "secret", "key", "getpass", "prompt"]
        .iter()
        .any(|word| lower.ends_with(word))
}

fn is_path(value: &str) -> bool {
    let bytes = value.as_bytes();
    matches!(bytes.first(), Some(b'/' | b'~' | b'.')) || matches!(bytes.get(1..3), Some(b":\\" | b":/"))
}

/// Whether the value of a JSON member is secret as a whole.
pub(crate) fn is_member_secret(value: &str, strength: Strength) -> bool {
    is_secret(authorized(value), true, Form::Member, strength)
}

/// The value of a header without its scheme.
fn authorized(value: &str) -> &str {
    ["Bearer ", "bearer ", "Basic ", "basic ", "token ", "Token "]
        .iter()
        .find_map(|scheme| value.strip_prefix(*scheme))
        .unwrap_or(value)
}

/// The token after `Bearer `.
pub(super) fn bearer(text: &str, start: usize, end: usize) -> Option<Span> {
    let bytes = text.as_bytes();
    let is_token = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'=')
    };
    let length = count(bytes, end, MAX_BARE, is_token);
    let token = text.get(end..end + length)?;
    let has_digit = token.bytes().any(|byte| byte.is_ascii_digit());
    (begins_word(bytes, start) && ((has_digit && length >= 6) || length >= 20)).then_some((end, end + length))
}

/// User and password after `Basic `.
pub(super) fn basic(text: &str, start: usize, end: usize) -> Option<Span> {
    let bytes = text.as_bytes();
    let length = count(bytes, end, MAX_BARE, is_base64);
    let is_secret = begins_word(bytes, start) && is_basic_credential(text.get(end..end + length)?);
    is_secret.then_some((end, end + length))
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
}

/// Whether a text is base64 of a user and a password with a colon between them.
pub(crate) fn is_basic_credential(value: &str) -> bool {
    const ANY_PADDING: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_padding_mode(DecodePaddingMode::Indifferent)
            .with_decode_allow_trailing_bits(true),
    );
    if !(8..=MAX_BARE).contains(&value.len()) {
        return false;
    }
    let decoded = ANY_PADDING.decode(value.replace('-', "+").replace('_', "/"));
    decoded.is_ok_and(|bytes| {
        bytes.contains(&b':') && bytes.iter().all(|byte| !byte.is_ascii_control()) && bytes.len() >= 4
    })
}

/// The credentials after a header's name, whatever the scheme.
pub(super) fn authorization(text: &str, end: usize) -> Option<Span> {
    let bytes = text.as_bytes();
    let closed = end + count(bytes, end, 4, |byte| matches!(byte, b'"' | b'\'' | b'\\'));
    let sign = closed + count(bytes, closed, 2, |byte| byte == b' ');
    if !matches!(bytes.get(sign), Some(b':' | b'=')) {
        return None;
    }
    let from =
        sign + 1 + count(bytes, sign + 1, 8, |byte| matches!(byte, b' ' | b'\t' | b'"' | b'\'' | b'\\'));
    let scheme = count(bytes, from, 24, |byte| byte.is_ascii_alphabetic() || byte == b'-');
    let begin = if bytes.get(from + scheme) == Some(&b' ') { from + scheme + 1 } else { from };
    let to = bare_end(bytes, begin);
    is_secret(text.get(begin..to)?, false, Form::Loose, Strength::Token).then_some((begin, to))
}

/// The value of a member `auth` in text, as in Docker's configuration.
pub(super) fn auth(text: &str, end: usize) -> Option<Span> {
    let bytes = text.as_bytes();
    let from = end + count(bytes, end, 8, |byte| matches!(byte, b' ' | b'\t' | b':'));
    let (from, to) = value_at(text, from)?.span;
    is_basic_credential(text.get(from..to)?).then_some((from, to))
}

/// The password of a URL, or a token that stands for its user.
pub(super) fn url_password(text: &str, end: usize) -> Option<Span> {
    let bytes = text.as_bytes();
    let length = count(bytes, end, MAX_USER, |byte| {
        !byte.is_ascii_whitespace()
            && !matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'<' | b'>' | b'`' | b'\\')
    });
    let authority = text.get(end..end + length)?;
    // The last sign: some write the password as it is.
    let user = authority.get(..authority.rfind('@')?)?;
    let (from, secret) = match user.split_once(':') {
        Some((name, password)) => (end + name.len() + 1, password),
        None if user.len() >= 16 && user.bytes().any(|byte| byte.is_ascii_digit()) => (end, user),
        None => return None,
    };
    (!secret.is_empty() && !is_reference(secret)).then_some((from, from + secret.len()))
}

/// The password of an entry in a netrc file.
pub(super) fn netrc(text: &str, start: usize, end: usize) -> Option<Span> {
    const WORDS: usize = 8;
    let bytes = text.as_bytes();
    if !begins_word(bytes, start) {
        return None;
    }
    let is_space = |byte: u8| byte.is_ascii_whitespace();
    let mut at = end + count(bytes, end, 16, is_space);
    // The host.
    at += count(bytes, at, 256, |byte| !is_space(byte));
    let mut names_user = false;
    for _ in 0..WORDS {
        at += count(bytes, at, 64, |byte| is_space(byte) || byte == b'\\');
        at += usize::from(bytes.get(at) == Some(&b'n') && bytes.get(at.checked_sub(1)?) == Some(&b'\\'));
        at += count(bytes, at, 64, is_space);
        let word = text.get(at..at + count(bytes, at, 16, |byte| byte.is_ascii_alphabetic()))?;
        at += word.len();
        let gap = count(bytes, at, 16, is_space);
        let value = count(bytes, at + gap, 256, |byte| !is_space(byte) && !matches!(byte, b'"' | b'\\'));
        match word {
            "password" if names_user && gap > 0 && value > 0 => return Some((at + gap, at + gap + value)),
            "login" | "account" if gap > 0 => names_user = true,
            _ => return None,
        }
        at += gap + value;
    }
    None
}

/// The password in `pass:PASSWORD`, an argument of `openssl`.
pub(super) fn pass_source(text: &str, start: usize, end: usize) -> Option<Span> {
    let bytes = text.as_bytes();
    let is_argument = start
        .checked_sub(1)
        .and_then(|before| bytes.get(before))
        .is_some_and(|byte| matches!(byte, b' ' | b'"' | b'\'' | b'='));
    let to = bare_end(bytes, end);
    let value = text.get(end..to)?;
    (is_argument && value.len() >= 3 && !is_reference(value)).then_some((end, to))
}

/// A PEM block from the end of its header's words to the end of its last line.
pub(super) fn private_key(text: &str, end: usize) -> Option<Span> {
    const DASHES: &str = "-----";
    const END: &str = "-----END";
    const MAX_BLOCK: usize = 64 * 1024;
    let rest = text.get(end..)?;
    let block = rest.strip_prefix(" BLOCK").unwrap_or(rest).strip_prefix(DASHES)?;
    let from = text.len() - block.len();
    let limit = text.floor_char_boundary(from.saturating_add(MAX_BLOCK).min(text.len()));
    let body = text.get(from..limit)?;
    let Some(at) = body.find(END) else {
        // A block without its end: what is base64 or the end of a line belongs to it.
        let is_body = |byte: u8| is_base64(byte) || byte.is_ascii_whitespace() || byte == b'\\';
        let length = count(body.as_bytes(), 0, MAX_BLOCK, is_body);
        let is_key = body.as_bytes().iter().take(length).filter(|byte| is_base64(**byte)).count() >= 16;
        return is_key.then_some((from, from + length));
    };
    let after = body.get(at + END.len()..)?;
    let close = after.find(DASHES).filter(|close| *close < 64).map_or(0, |close| close + DASHES.len());
    Some((from, from + at + END.len() + close))
}
