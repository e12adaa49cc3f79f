//! Options of programs that take a password.

use super::super::{Finding, FindingKind};
use super::begins_word;
use super::values::{self, Form, Span};
use crate::additional::Strength;

/// How an option takes its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// In the same word only: `-pPASS`. A following word is something else.
    Joined,
    /// In the same word or the next one.
    Either,
    /// In either way, a user and a password with this sign between them.
    UserAnd(u8),
}

/// A program, and its options that take a password.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    options: &'static [(&'static str, Style)],
}

const fn program(name: &'static str, options: &'static [(&'static str, Style)]) -> Program {
    Program { name, options }
}

use Style::{Either, Joined, UserAnd};

const USER: &[(&str, Style)] = &[
    ("--user", UserAnd(b':')),
    ("--proxy-user", UserAnd(b':')),
    ("-u", UserAnd(b':')),
    ("-U", UserAnd(b':')),
];

pub(super) const PROGRAMS: &[Program] = &[
    program("mysql", &[("-p", Joined)]),
    program("mariadb", &[("-p", Joined)]),
    program("mysqladmin", &[("-p", Joined)]),
    program("mysqldump", &[("-p", Joined)]),
    program("mysqlimport", &[("-p", Joined)]),
    program("sshpass", &[("-p", Either)]),
    program("7z", &[("-p", Joined)]),
    program("zip", &[("-P", Either)]),
    program("curl", USER),
    program("redis-cli", &[("-a", Either)]),
    program("mongo", &[("-p", Either)]),
    program("mongosh", &[("-p", Either)]),
    program("mongodump", &[("-p", Either)]),
    program("sqlcmd", &[("-P", Either)]),
    program("ldapsearch", &[("-w", Either)]),
    program("ldapmodify", &[("-w", Either)]),
    program("smbclient", &[("-U", UserAnd(b'%'))]),
    program("docker login", &[("-p", Either)]),
    program("podman login", &[("-p", Either)]),
    program("registry login", &[("-p", Either)]),
    program("az login", &[("-p", Either)]),
    program("oc login", &[("-p", Either)]),
];

/// The most bytes after a program in which its options are looked for.
const WINDOW: usize = 512;

/// Finds the passwords among the options of the program at this match. `from` is where the last search ended: a text full of names of
/// programs is walked once. Returns where this search ended.
pub(super) fn find(
    text: &str,
    start: usize,
    end: usize,
    from: usize,
    program: &Program,
    findings: &mut Vec<Finding>,
) -> usize {
    let bytes = text.as_bytes();
    let is_word = begins_word(bytes, start)
        && bytes.get(end).is_none_or(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'/'));
    if !is_word {
        return from;
    }
    let begin = end.max(from);
    let limit = end.saturating_add(WINDOW).min(bytes.len());
    let window = bytes.get(begin..limit).unwrap_or_default();
    let length = window.iter().position(|byte| matches!(byte, b'\n' | b';' | b'|')).unwrap_or(window.len());
    let stop = begin + length;
    let mut at = begin;
    while at < stop {
        let Some(dash) = bytes.get(at..stop).and_then(|rest| rest.iter().position(|byte| *byte == b'-'))
        else {
            break;
        };
        let option = at + dash;
        at = option + 1;
        let is_first = option
            .checked_sub(1)
            .and_then(|before| bytes.get(before))
            .is_some_and(|byte| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b','));
        if !is_first {
            continue;
        }
        let span = program.options.iter().find_map(|(name, style)| value(text, option, name, *style));
        if let Some((offset, value_end)) = span {
            findings.push(Finding { kind: FindingKind::Credential, offset, end: value_end });
            at = value_end.max(at);
        }
    }
    stop.max(from)
}

fn value(text: &str, option: usize, name: &str, style: Style) -> Option<Span> {
    let bytes = text.as_bytes();
    let end = option + name.len();
    if bytes.get(option..end) != Some(name.as_bytes()) {
        return None;
    }
    let gap = bytes.get(end..)?.iter().take(4).take_while(|byte| matches!(byte, b' ' | b'\t' | b'=')).count();
    if gap > 0 && style == Joined {
        return None;
    }
    // A long option is a whole word.
    if gap == 0 && name.starts_with("--") {
        return None;
    }
    let value = values::value_at(text, end + gap)?;
    let (from, to) = value.span;
    if let UserAnd(sign) = style {
        let colon = bytes.get(from..to)?.iter().position(|byte| *byte == sign)?;
        let password = from + colon + 1;
        let is_number =
            |(from, to): Span| bytes.get(from..to).is_some_and(|word| word.iter().all(u8::is_ascii_digit));
        let is_secret = password < to && !(is_number((from, from + colon)) && is_number((password, to)));
        return (is_secret && !values::is_reference(text.get(password..to)?)).then_some((password, to));
    }
    let is_secret = values::is_secret(text.get(from..to)?, value.is_quoted, Form::Option, Strength::Password);
    is_secret.then_some((from, to))
}
