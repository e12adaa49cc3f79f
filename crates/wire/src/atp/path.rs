//! JSON paths of values inside a message, composed only when a finding is reported.

use std::fmt;

/// Characters of a member name that a path repeats: names are the sender's, and could be megabytes long.
const MAX_NAME: usize = 64;

/// A position in a message, as a list on the stack.
#[derive(Clone, Copy)]
pub(super) enum Path<'a> {
    Root,
    Member(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    pub(super) fn member(&'a self, name: &'a str) -> Path<'a> {
        Path::Member(self, name)
    }

    pub(super) fn index(&'a self, index: usize) -> Path<'a> {
        Path::Index(self, index)
    }
}

/// `$.artifacts[2].path`; a name that is no identifier is written as `['a b']`.
impl fmt::Display for Path<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => out.write_str("$"),
            Path::Index(parent, index) => write!(out, "{parent}[{index}]"),
            Path::Member(parent, name) if is_identifier(name) => write!(out, "{parent}.{name}"),
            Path::Member(parent, name) => {
                write!(out, "{parent}['")?;
                for (count, character) in name.chars().enumerate() {
                    if count == MAX_NAME {
                        out.write_str("…")?;
                        break;
                    }
                    match character {
                        '\'' | '\\' => write!(out, "\\{character}")?,
                        _ if character.is_control() => write!(out, "\\u{:04x}", u32::from(character))?,
                        _ => write!(out, "{character}")?,
                    }
                }
                out.write_str("']")
            }
        }
    }
}

fn is_identifier(name: &str) -> bool {
    name.len() <= MAX_NAME
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_json_paths() {
        let artifacts = Path::Root.member("artifacts");
        let second = artifacts.index(2);
        assert_eq!(second.member("path").to_string(), "$.artifacts[2].path");
        assert_eq!(Path::Root.member("it's\n").to_string(), "$['it\\'s\\u000a']");
        assert_eq!(Path::Root.member("0").to_string(), "$['0']");
        assert_eq!(Path::Root.member(&"x".repeat(100)).to_string(), format!("$['{}…']", "x".repeat(64)));
    }
}
