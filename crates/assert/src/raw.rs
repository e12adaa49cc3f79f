//! JSON as the text that came: looking into it without building a tree.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::text::Text;

/// The member of an object that has this name; the last one if there are several.
pub(crate) fn member<'a>(object: &'a str, name: &str) -> Option<&'a RawValue> {
    struct Find<'n>(&'n str);

    impl<'de> Visitor<'de> for Find<'_> {
        type Value = Option<&'de RawValue>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
            let mut found = None;
            while let Some(name) = members.next_key::<Text<'de>>()? {
                if name.as_str() == self.0 {
                    found = Some(members.next_value::<&'de RawValue>()?);
                } else {
                    members.next_value::<IgnoredAny>()?;
                }
            }
            Ok(found)
        }
    }

    impl<'de> DeserializeSeed<'de> for Find<'_> {
        type Value = Option<&'de RawValue>;

        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
            deserializer.deserialize_map(self)
        }
    }

    Find(name).deserialize(&mut serde_json::Deserializer::from_str(object)).ok().flatten()
}

/// A JSON value as plain text: a string's value, nothing for `null`, otherwise the text of the value as it came.
pub(crate) fn plain(raw: &str) -> Cow<'_, str> {
    let raw = raw.trim();
    if raw == "null" {
        return Cow::Borrowed("");
    }
    match serde_json::from_str::<Text<'_>>(raw) {
        Ok(text) => text.0,
        Err(_) => Cow::Borrowed(raw),
    }
}

/// The same JSON without space between its parts and without escapes that are not needed, so that what it says does not depend
/// on who wrote it.
pub fn normalised(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(start) = rest.find('"') {
        let (before, string) = rest.split_at(start);
        out.extend(before.chars().filter(|character| !character.is_ascii_whitespace()));
        let end = string_end(string);
        let (string, after) = string.split_at(end);
        match serde_json::from_str::<Text<'_>>(string) {
            // Writing a string to a `String` cannot fail.
            Ok(text) => out.push_str(&serde_json::to_string(text.as_str()).unwrap_or_default()),
            Err(_) => out.push_str(string),
        }
        rest = after;
    }
    out.extend(rest.chars().filter(|character| !character.is_ascii_whitespace()));
    out
}

/// Where the string that this text begins with ends.
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
    fn a_member_is_found_and_the_last_wins() {
        assert_eq!(member(r#"{"a": 1, "b": {"a": 2}, "a": [3]}"#, "a").map(RawValue::get), Some("[3]"));
        assert!(member(r#"{"a": 1}"#, "b").is_none());
        assert!(member("[1]", "a").is_none());
        assert!(member("5", "a").is_none());
        assert_eq!(member(r#"{"\u0061": 1}"#, "a").map(RawValue::get), Some("1"));
    }

    #[test]
    fn plain_text() {
        assert_eq!(plain(r#""a\"b""#), "a\"b");
        assert_eq!(plain("null"), "");
        assert_eq!(plain("[1, 2]"), "[1, 2]");
        assert_eq!(plain("1.50"), "1.50");
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
