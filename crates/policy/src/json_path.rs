//! The small part of JSONPath (RFC 9535) that documents and decisions use: `$`, names, indexes and `[*]`.

use proctor_core::json::Json;

use crate::scan::{json_path_child, json_path_index};

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// A member.
    Name(String),
    /// An item.
    Index(usize),
    /// All members or items.
    Every,
}

/// Most segments of a path.
const MAX_SEGMENTS: usize = 64;

/// A text that is not a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonPathError {
    /// The first character is not `$`.
    #[error("a path starts with `$`")]
    NoRoot,
    /// Too many segments.
    #[error("a path has at most {MAX_SEGMENTS} steps")]
    TooLong,
    /// A `.` without a name.
    #[error("a name is missing after `.`")]
    NoName,
    /// The text between brackets is neither a number nor `*`.
    #[error("`{0}` is not an index")]
    Index(String),
    /// An opening bracket without its closing one.
    #[error("`]` is missing")]
    UnclosedBracket,
    /// A quoted name without a closing bracket.
    #[error("`]` is missing after `'`")]
    UnclosedBracketAfterQuote,
    /// A quoted name without its closing quote.
    #[error("`'` is missing")]
    UnclosedQuote,
    /// A backslash precedes a character that is neither a quote nor a backslash.
    #[error("only `\\'` and `\\\\` are escapes")]
    Escape,
    /// A character that begins no segment.
    #[error("expected `.`, `[` or the end")]
    NotASegment,
}

/// Parses a path.
///
/// ```
/// use proctor_policy::json_path::{Segment, parse};
/// assert_eq!(parse("$.a['b c'][*]").unwrap(), [Segment::Name("a".into()), Segment::Name("b c".into()), Segment::Every]);
/// assert!(parse("a.b").is_err());
/// ```
pub fn parse(path: &str) -> Result<Vec<Segment>, JsonPathError> {
    let Some(mut rest) = path.strip_prefix('$') else { return Err(JsonPathError::NoRoot) };
    let mut segments = Vec::new();
    while !rest.is_empty() {
        if segments.len() >= MAX_SEGMENTS {
            return Err(JsonPathError::TooLong);
        }
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (name, tail) = after.split_at(end);
            if name.is_empty() {
                return Err(JsonPathError::NoName);
            }
            segments.push(if name == "*" { Segment::Every } else { Segment::Name(name.to_owned()) });
            rest = tail;
        } else if let Some(after) = rest.strip_prefix("['") {
            let (name, tail) = quoted(after)?;
            segments.push(Segment::Name(name));
            rest = tail;
        } else if let Some(after) = rest.strip_prefix('[') {
            let Some((inside, tail)) = after.split_once(']') else {
                return Err(JsonPathError::UnclosedBracket);
            };
            segments.push(match inside {
                "*" => Segment::Every,
                digits => {
                    Segment::Index(digits.parse().map_err(|_| JsonPathError::Index(digits.to_owned()))?)
                }
            });
            rest = tail;
        } else {
            return Err(JsonPathError::NotASegment);
        }
    }
    Ok(segments)
}

fn quoted(text: &str) -> Result<(String, &str), JsonPathError> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\'' => {
                let rest = text.get(at + 1..).unwrap_or_default();
                return match rest.strip_prefix(']') {
                    Some(tail) => Ok((name, tail)),
                    None => Err(JsonPathError::UnclosedBracketAfterQuote),
                };
            }
            '\\' => match characters.next() {
                Some((_, escaped @ ('\'' | '\\'))) => name.push(escaped),
                _ => return Err(JsonPathError::Escape),
            },
            other => name.push(other),
        }
    }
    Err(JsonPathError::UnclosedQuote)
}

/// The value at a path without `[*]`.
pub fn get<'a>(path: &str, value: &'a Json) -> Option<&'a Json> {
    let mut current = value;
    for segment in parse(path).ok()? {
        current = match (segment, current) {
            (Segment::Name(name), Json::Object(_)) => current.get(&name)?,
            (Segment::Index(index), Json::Array(items)) => items.get(index)?,
            _ => return None,
        };
    }
    Some(current)
}

/// The concrete paths of all values that a path selects.
pub fn select(path: &str, value: &Json) -> Vec<String> {
    let Ok(segments) = parse(path) else { return Vec::new() };
    let mut found = vec![("$".to_owned(), value)];
    for segment in segments {
        let mut next = Vec::new();
        for (path, value) in found {
            match (&segment, value) {
                (Segment::Name(name), Json::Object(_)) => {
                    if let Some(member) = value.get(name) {
                        next.push((json_path_child(&path, name), member));
                    }
                }
                (Segment::Index(index), Json::Array(items)) => {
                    if let Some(item) = items.get(*index) {
                        next.push((json_path_index(&path, *index), item));
                    }
                }
                (Segment::Every, Json::Array(items)) => {
                    next.extend(
                        items.iter().enumerate().map(|(at, item)| (json_path_index(&path, at), item)),
                    );
                }
                (Segment::Every, Json::Object(members)) => {
                    next.extend(members.iter().map(|(name, member)| (json_path_child(&path, name), member)));
                }
                _ => {}
            }
        }
        found = next;
    }
    found.into_iter().map(|(path, _)| path).collect()
}

/// Puts a value at a path without `[*]`; a missing last member is added. False if the way there does not exist.
pub fn put(path: &str, target: &mut Json, value: Json) -> bool {
    let Ok(segments) = parse(path) else { return false };
    let mut pointer = String::new();
    for segment in segments {
        pointer.push('/');
        match segment {
            Segment::Name(name) => pointer.push_str(&name.replace('~', "~0").replace('/', "~1")),
            Segment::Index(index) => pointer.push_str(&index.to_string()),
            Segment::Every => return false,
        }
    }
    target.set_pointer(&pointer, value)
}

/// The path that an RFC 6901 pointer names. Steps that are all digits are taken for indexes.
pub fn from_pointer(pointer: &str) -> String {
    let mut path = "$".to_owned();
    for token in pointer.split('/').skip(1) {
        let name = token.replace("~1", "/").replace("~0", "~");
        path = match name.parse::<usize>() {
            Ok(index) => json_path_index(&path, index),
            Err(_) => json_path_child(&path, &name),
        };
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selects_and_puts() {
        let mut value = Json::parse(br#"{"a":[{"b":1},{"b":2,"c d":3}],"it's":4}"#).unwrap();
        assert_eq!(select("$.a[*].b", &value), ["$.a[0].b", "$.a[1].b"]);
        assert_eq!(select("$.a[1]['c d']", &value), ["$.a[1]['c d']"]);
        assert_eq!(get("$['it\\'s']", &value), Some(&Json::from(4u8)));
        assert!(put("$.a[0].b", &mut value, Json::Null));
        assert!(put("$.new", &mut value, Json::from("x")));
        assert!(!put("$.none.x", &mut value, Json::Null));
        assert_eq!(value.to_string(), r#"{"a":[{"b":null},{"b":2,"c d":3}],"it's":4,"new":"x"}"#);
        assert_eq!(from_pointer("/args/list/0/a~1b"), "$.args.list[0]['a/b']");
    }

    #[test]
    fn mistakes_are_named() {
        for (path, problem) in [
            ("x", "starts with"),
            ("$.", "name is missing"),
            ("$[x]", "not an index"),
            ("$['a", "`'` is missing"),
            ("$a", "expected"),
        ] {
            assert!(parse(path).unwrap_err().to_string().contains(problem), "{path}");
        }
    }
}
