//! Targets of rules that change an action: JSON pointers of `set`, JSONPaths of `paths`.

use proctor_core::quoted;

use super::problems::{listed, suggestion};
use crate::json_path::{self, JsonPathError, Segment};

/// Members of an action that hold structured values: a pointer may go deeper.
pub const STRUCTURED: &[&str] = &["args", "result", "metadata"];
/// Members of an action that hold text.
pub const TEXTUAL: &[&str] = &["text", "path", "command", "url", "model"];

/// A path or pointer to a value that rules cannot change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The text is not a JSONPath.
    #[error("{} is not a JSONPath: {error}", quoted(path))]
    NotAPath {
        /// The path.
        path: String,
        /// Description of the problem.
        error: JsonPathError,
    },
    /// A JSONPath that begins with an index or `*`.
    #[error("{} must name a member of the action first, as in `$.args.password`", quoted(.0))]
    NoMember(String),
    /// A JSON pointer that does not begin with `/`.
    #[error("{} is not a JSON pointer: it must begin with `/`, as in `/args/timeout`", quoted(.0))]
    NotAPointer(String),
    /// A `~` in a JSON pointer that is no escape.
    #[error("{} is not a JSON pointer: write `~` as `~0` and a `/` in a name as `~1`", quoted(.0))]
    PointerEscape(String),
    /// The path leads below a member that is text.
    #[error(
        "{} goes below `{member}`, which is text; only {} have members",
        quoted(target),
        listed(STRUCTURED)
    )]
    BelowText {
        /// The path or pointer.
        target: String,
        /// The member.
        member: String,
    },
    /// A member that rules cannot change.
    #[error("{} does not name a part of the action that can change; {}", quoted(target), suggestion(member, &changeable()))]
    Member {
        /// The path or pointer.
        target: String,
        /// The member.
        member: String,
    },
}

fn changeable() -> Vec<&'static str> {
    STRUCTURED.iter().chain(TEXTUAL).copied().collect()
}

/// Checks a JSONPath that begins at the action: `$.args.x`, `$.args['x'][0]`, `$.args.list[*]`.
pub fn check_path(path: &str) -> Result<(), TargetError> {
    let segments =
        json_path::parse(path).map_err(|error| TargetError::NotAPath { path: path.to_owned(), error })?;
    match segments.first() {
        Some(Segment::Name(member)) => check_member(member, segments.len() > 1, path),
        _ => Err(TargetError::NoMember(path.to_owned())),
    }
}

/// Checks a JSON pointer that begins at the action, such as `/args/timeout`, and returns its first token.
pub fn check_pointer(pointer: &str) -> Result<&str, TargetError> {
    let Some(rest) = pointer.strip_prefix('/') else {
        return Err(TargetError::NotAPointer(pointer.to_owned()));
    };
    let mut characters = rest.chars();
    while let Some(character) = characters.next() {
        if character == '~' && !matches!(characters.next(), Some('0' | '1')) {
            return Err(TargetError::PointerEscape(pointer.to_owned()));
        }
    }
    let (member, deeper) = match rest.split_once('/') {
        Some((member, _)) => (member, true),
        None => (rest, false),
    };
    check_member(member, deeper, pointer)?;
    Ok(member)
}

fn check_member(member: &str, deeper: bool, target: &str) -> Result<(), TargetError> {
    if STRUCTURED.contains(&member) || (TEXTUAL.contains(&member) && !deeper) {
        return Ok(());
    }
    let (target, member) = (target.to_owned(), member.to_owned());
    Err(if TEXTUAL.contains(&member.as_str()) {
        TargetError::BelowText { target, member }
    } else {
        TargetError::Member { target, member }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_checked() {
        for path in [
            "$.args",
            "$.text",
            "$.args.x",
            "$['args'].x[*].y",
            "$.args.*",
            "$.args['a.b]'][10]",
            "$.result.x-y",
        ] {
            assert_eq!(check_path(path), Ok(()), "{path}");
        }
        for path in [
            "",
            "args.x",
            "$",
            "$.",
            "$..x",
            "$.args.",
            "$.args[",
            "$.args[]",
            "$.args[-1]",
            "$.args['x",
            "$.args['x'",
            "$.args[?(@.x)]",
            "$.args[1:2]",
            "$[0]",
            "$.*",
            "$.kind",
            "$.text.x",
            "$.args[99999999999999999999999]",
            "$args",
        ] {
            assert!(check_path(path).is_err(), "{path}");
        }
    }

    #[test]
    fn pointers_are_checked() {
        for pointer in ["/args", "/args/a/0", "/args/", "/args/a~1b~0c", "/text", "/metadata/x", "/result/x"]
        {
            assert!(check_pointer(pointer).is_ok(), "{pointer}");
        }
        for pointer in ["", "args", "/", "/kind", "/tool", "/text/x", "/args/~", "/args/~2", "#/args"] {
            assert!(check_pointer(pointer).is_err(), "{pointer}");
        }
        assert!(check_pointer("/arg/x").unwrap_err().to_string().contains("did you mean `args`?"));
    }
}
