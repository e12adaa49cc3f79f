//! Lookups in JSON text without building a value tree.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::text::Text;

/// A member name that occurs twice in an object. Parsers disagree on which one counts, so neither is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DuplicateName(pub(crate) String);

impl fmt::Display for DuplicateName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LENGTH: usize = 80;
        let name = crate::verdict::cut(&self.0, LENGTH);
        write!(formatter, "has the member `{name}` twice: which one is meant?")
    }
}

/// The member of an object that has this name, if there is exactly one.
pub(crate) fn member<'a>(object: &'a str, name: &str) -> Option<&'a RawValue> {
    sole_member(object, name).ok().flatten()
}

/// The member of an object that has this name, unless there are several.
pub(crate) fn sole_member<'a>(object: &'a str, name: &str) -> Result<Option<&'a RawValue>, DuplicateName> {
    struct Find<'n>(&'n str);

    impl<'de> Visitor<'de> for Find<'_> {
        type Value = (Option<&'de RawValue>, bool);

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
            let (mut found, mut twice) = (None, false);
            while let Some(name) = members.next_key::<Text<'de>>()? {
                if name.as_str() == self.0 {
                    twice |= found.replace(members.next_value::<&'de RawValue>()?).is_some();
                } else {
                    members.next_value::<IgnoredAny>()?;
                }
            }
            Ok((found, twice))
        }
    }

    impl<'de> DeserializeSeed<'de> for Find<'_> {
        type Value = (Option<&'de RawValue>, bool);

        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
            deserializer.deserialize_map(self)
        }
    }

    match Find(name).deserialize(&mut serde_json::Deserializer::from_str(object)) {
        Ok((_, true)) => Err(DuplicateName(name.to_owned())),
        Ok((found, false)) => Ok(found),
        Err(_) => Ok(None),
    }
}

/// The first name that some object in the JSON has twice, however deep. Linear in the text, and calls itself nowhere.
pub(crate) fn duplicate(json: &str) -> Option<DuplicateName> {
    struct Open<'a> {
        /// The names so far, or nothing for a list.
        names: Option<HashSet<Cow<'a, str>>>,
        name_is_next: bool,
    }
    if !has_parts(json) {
        return None;
    }
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut rest = json;
    while let Some(at) = rest.find(['"', '{', '[', '}', ']', ',']) {
        let (_, here) = rest.split_at(at);
        let mut taken = 1;
        match here.as_bytes().first() {
            Some(b'{') => open.push(Open { names: Some(HashSet::new()), name_is_next: true }),
            Some(b'[') => open.push(Open { names: None, name_is_next: false }),
            Some(b'}' | b']') => drop(open.pop()),
            Some(b',') => {
                if let Some(object) = open.last_mut() {
                    object.name_is_next = object.names.is_some();
                }
            }
            _ => {
                taken = string_end(here);
                if let (Some(object), Some(string)) = (open.last_mut(), here.get(..taken))
                    && object.name_is_next
                    && let Some(names) = &mut object.names
                {
                    object.name_is_next = false;
                    let name = decoded(string);
                    if names.contains(&name) {
                        return Some(DuplicateName(name.into_owned()));
                    }
                    names.insert(name);
                }
            }
        }
        rest = here.get(taken..).unwrap_or_default();
    }
    None
}

/// Whether the JSON is an object or a list.
pub(crate) fn has_parts(json: &str) -> bool {
    json.trim_start().starts_with(['{', '['])
}

/// Number of elements of a list or members of an object; nothing for anything else.
pub(crate) fn length(json: &str) -> Option<usize> {
    struct Count;

    impl<'de> Visitor<'de> for Count {
        type Value = usize;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a list or an object")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<usize, A::Error> {
            let mut count = 0;
            while items.next_element::<IgnoredAny>()?.is_some() {
                count += 1;
            }
            Ok(count)
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<usize, A::Error> {
            let mut count = 0;
            while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                count += 1;
            }
            Ok(count)
        }
    }

    serde_json::Deserializer::from_str(json).deserialize_any(Count).ok()
}

/// A JSON value as plain text: a string's value, nothing for `null`, otherwise the text of the value as it came.
pub(crate) fn plain(raw: &str) -> Cow<'_, str> {
    let raw = raw.trim();
    match raw {
        "null" => Cow::Borrowed(""),
        string if string.starts_with('"') => decoded(string),
        other => Cow::Borrowed(other),
    }
}

/// The decoded strings in the JSON, the names of members included.
pub(crate) fn strings(json: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let mut rest = json;
    std::iter::from_fn(move || {
        let (_, string) = rest.split_at(rest.find('"')?);
        let (string, after) = string.split_at(string_end(string));
        rest = after;
        Some(decoded(string))
    })
}

/// Normalises JSON: no space between its parts and no needless escapes, so that the text does not depend on its writer.
pub fn normalised(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(start) = rest.find('"') {
        let (before, string) = rest.split_at(start);
        out.extend(before.chars().filter(|character| !character.is_ascii_whitespace()));
        let (string, after) = string.split_at(string_end(string));
        // Writing a string to a `String` cannot fail.
        out.push_str(&serde_json::to_string(decoded(string).as_ref()).unwrap_or_default());
        rest = after;
    }
    out.extend(rest.chars().filter(|character| !character.is_ascii_whitespace()));
    out
}

/// Decodes a JSON string. A lone surrogate becomes a replacement character, so that it does not hide the text around it.
fn decoded(string: &str) -> Cow<'_, str> {
    if let Ok(text) = serde_json::from_str::<Text<'_>>(string) {
        return text.0;
    }
    let inner = string.strip_prefix('"').unwrap_or(string);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let length = match escape.as_bytes() {
            [_, b'u', ..] if pair(escape).is_some() => 12,
            [_, b'u', ..] => 6,
            _ => 2,
        };
        let end = escape.ceil_char_boundary(length.min(escape.len()));
        let (escape, after) = escape.split_at(end);
        match serde_json::from_str::<Text<'_>>(&format!("\"{escape}\"")) {
            Ok(text) => out.push_str(&text),
            Err(_) => out.push(char::REPLACEMENT_CHARACTER),
        }
        rest = after;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The two halves that this text begins with, if it does.
fn pair(text: &str) -> Option<()> {
    let half = |from: usize| {
        let digits = text.get(from..from + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let high = (0xD800..0xDC00).contains(&half(0)?);
    let low = (0xDC00..0xE000).contains(&half(6)?);
    (high && low).then_some(())
}

/// End of the string that this text begins with.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_member_is_found_unless_there_are_two() {
        assert_eq!(
            member(r#"{"b": {"a": 2}, "a": [3], "c": 1, "c": 2}"#, "a").map(RawValue::get),
            Some("[3]")
        );
        assert_eq!(sole_member(r#"{"a": 1, "\u0061": 1}"#, "a").unwrap_err(), DuplicateName("a".to_owned()));
        assert!(member(r#"{"a": 1, "a": [3]}"#, "a").is_none());
        assert!(member(r#"{"a": 1}"#, "b").is_none());
        assert!(member("[1]", "a").is_none());
        assert!(member("5", "a").is_none());
        assert_eq!(member(r#"{"\u0061": 1}"#, "a").map(RawValue::get), Some("1"));
    }

    #[test]
    fn names_that_stand_twice_are_found_wherever_they_are() {
        for (json, name) in [
            (r#"{"a": 1, "a": 1}"#, "a"),
            (r#"[{"x": [{"a": {}, "b": [1, "a"], "a": 1}]}]"#, "a"),
            (r#"{"a": {"b": 1}, "b": [], "\u0062" : 2}"#, "b"),
            (r#" {"k": "v", "l": {"k": 1}, "": 1, "": 2}"#, ""),
            (r#"{"\"": 1, "\u0022": 2}"#, "\""),
            (r#"{"\ud800": 1, "\ud800": 2}"#, "\u{FFFD}"),
        ] {
            assert_eq!(duplicate(json), Some(DuplicateName(name.to_owned())), "{json}");
        }
        for json in [
            r#"{"a": {"a": {"a": ["a", "a", {"a": 1}, {"a": 1}]}}, "b": "a"}"#,
            r#"["a", "a", ",", "{"]"#,
            r#""{\"a\":1,\"a\":2}""#,
            r#"{"a": "x,\"a\":1", "b": "{", "c": "}"}"#,
            "5",
            "",
        ] {
            assert_eq!(duplicate(json), None, "{json}");
        }
        let deep = format!("{}{}", r#"{"a":["#.repeat(100_000), "]}".repeat(100_000));
        assert_eq!(duplicate(&deep), None);
    }

    #[test]
    fn lengths() {
        assert_eq!(length("[1, [2, 3], {}]"), Some(3));
        assert_eq!(length(r#"{"a": [1, 2]}"#), Some(1));
        assert_eq!(length("[ ]"), Some(0));
        assert_eq!(length("5"), None);
        assert_eq!(length(r#""abc""#), None);
    }

    #[test]
    fn plain_text() {
        assert_eq!(plain(r#""a\"b""#), "a\"b");
        assert_eq!(plain("null"), "");
        assert_eq!(plain("[1, 2]"), "[1, 2]");
        assert_eq!(plain("1.50"), "1.50");
    }

    #[test]
    fn half_a_character_hides_nothing() {
        assert_eq!(plain(r#""\u0070ass\ud800\\ \"w\" \ud83d\ude00""#), "pass\u{FFFD}\\ \"w\" 😀");
        assert_eq!(plain(r#""\udc00\ud800\u0041\ud800""#), "\u{FFFD}\u{FFFD}A\u{FFFD}");
        assert_eq!(normalised(r#"["\u0061\ud800"]"#), "[\"a\u{FFFD}\"]");
    }

    #[test]
    fn strings_say_what_they_say() {
        let said: Vec<_> = strings(r#"{"a\"": ["C:\\x", 1, {"": "two\nlines"}]}"#).collect();
        assert_eq!(said, ["a\"", "C:\\x", "", "two\nlines"]);
    }

    #[test]
    fn normalised_text() {
        assert_eq!(
            normalised(r#"{ "sch\u00f6n" : [ 1 , "a b\n\u0001" ] }"#),
            "{\"schön\":[1,\"a b\\n\\u0001\"]}"
        );
    }

    proptest! {
        #[test]
        fn normalising_keeps_the_value(text in "\\PC*", number in any::<i64>()) {
            let value = serde_json::json!({"k": text, "list": [number, null, {"x": text}]});
            let pretty = serde_json::to_string_pretty(&value).unwrap_or_default();
            let compact = normalised(&pretty);
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&compact).ok(), Some(value));
            prop_assert_eq!(&normalised(&compact), &compact);
        }
    }
}
