//! Two canonical forms.
//!
//! [`rfc8785`] is for what we make ourselves: envelopes, checkpoints, files. Integers beyond ±2⁵³ and fractions are refused
//! there, because readers that use doubles would see another number; we write amounts as decimal strings.
//! [`claimed`] is for other people's JSON, of which only a digest is taken: members sorted by name, numbers as their literal
//! text, nothing refused.

use crate::json::Json;

/// A value without an RFC 8785 form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotCanonical {
    /// A number that is not an integer within ±2⁵³.
    #[error("number `{0}` is not an integer within ±2^53: write it as a string")]
    Number(String),
}

const MAX_SAFE: i64 = 1 << 53;

/// The RFC 8785 text of a value whose numbers are integers within ±2⁵³.
pub fn rfc8785(value: &Json) -> Result<String, NotCanonical> {
    let mut out = String::new();
    write(value, &mut out, &|number, out| {
        // Only the one spelling of an integer is accepted, so the text itself is canonical.
        let parsed = number.parse::<i64>().ok().filter(|integer| (-MAX_SAFE..=MAX_SAFE).contains(integer));
        match parsed {
            Some(integer) if integer.to_string() == number => out.push_str(number),
            _ => return Err(NotCanonical::Number(number.to_owned())),
        }
        Ok(())
    })?;
    Ok(out)
}

/// The text that the digest of other people's JSON is taken over.
pub fn claimed(value: &Json) -> String {
    let mut out = String::new();
    // INVARIANT: the number writer never fails.
    let _ = write(value, &mut out, &|number, out| {
        out.push_str(number);
        Ok(())
    });
    out
}

type WriteNumber<'a> = &'a dyn Fn(&str, &mut String) -> Result<(), NotCanonical>;

fn write(value: &Json, out: &mut String, write_number: WriteNumber<'_>) -> Result<(), NotCanonical> {
    match value {
        Json::Number(text) => write_number(text, out)?,
        Json::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, out, write_number)?;
            }
            out.push(']');
        }
        Json::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by(|(left, _), (right, _)| left.encode_utf16().cmp(right.encode_utf16()));
            out.push('{');
            for (index, (name, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                string(name, out);
                out.push(':');
                write(member, out, write_number)?;
            }
            out.push('}');
        }
        Json::String(text) => string(text, out),
        Json::Null => out.push_str("null"),
        Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
    }
    Ok(())
}

/// Appends a string in its one canonical spelling.
pub fn string(text: &str, out: &mut String) {
    // Writing to a String cannot fail.
    let _ = crate::json::write_string(text, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_sort_by_utf16() {
        let value = Json::parse(
            "{\"\u{20ac}\":1,\"\\r\":2,\"\u{fb33}\":3,\"1\":4,\"\u{1f600}\":5,\"\u{80}\":6,\"\u{f6}\":7}"
                .as_bytes(),
        )
        .unwrap();
        let text = rfc8785(&value).unwrap();
        assert_eq!(
            text,
            "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"\u{f6}\":7,\"\u{20ac}\":1,\"\u{1f600}\":5,\"\u{fb33}\":3}"
        );
    }

    #[test]
    fn escapes_are_the_shortest() {
        let value = Json::from("\u{0}\u{8}\t\n\u{c}\r\u{1f}\"\\/\u{7f}é");
        assert_eq!(rfc8785(&value).unwrap(), "\"\\u0000\\b\\t\\n\\f\\r\\u001f\\\"\\\\/\u{7f}é\"");
    }

    #[test]
    fn only_safe_integers_in_our_own_files() {
        assert_eq!(rfc8785(&Json::Number("9007199254740992".into())).unwrap(), "9007199254740992");
        for refused in ["9007199254740993", "1.5", "1e3", "-0"] {
            assert!(rfc8785(&Json::Number(refused.into())).is_err(), "{refused}");
        }
    }

    #[test]
    fn claimed_form_ignores_member_order_and_keeps_numbers() {
        let one = Json::parse(br#"{"b": 1.0, "a": {"y": 1e400, "x": 2}}"#).unwrap();
        let other = Json::parse(br#"{"a":{"x":2,"y":1e400},"b":1.0}"#).unwrap();
        assert_eq!(claimed(&one), claimed(&other));
        assert_eq!(claimed(&one), r#"{"a":{"x":2,"y":1e400},"b":1.0}"#);
        let different = Json::parse(br#"{"a":{"x":2,"y":1e400},"b":1}"#).unwrap();
        assert_ne!(claimed(&one), claimed(&different));
    }
}
