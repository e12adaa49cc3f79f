//! The outline of a message: only what the transports must know of it.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

/// Whether a text is one JSON object.
#[cfg(feature = "stdio")]
pub(super) fn is_object(text: &[u8]) -> bool {
    outline(text).is_some()
}

/// Whether a text is a response by its content: an object with `status`, but without `event_type`.
pub(super) fn is_response(text: &[u8]) -> bool {
    outline(text).is_some_and(|outline| outline.has_status && !outline.has_event_type)
}

/// The reason why a text that begins like an object is none.
#[cfg(feature = "stdio")]
pub(super) fn syntax_error(text: &[u8]) -> Option<String> {
    let begins_like_one = text.trim_ascii_start().first() == Some(&b'{');
    let read = || serde_json::from_slice::<Outline>(text).err().map(|error| error.to_string());
    begins_like_one.then(read).flatten()
}

#[derive(Debug, Default)]
struct Outline {
    has_status: bool,
    has_event_type: bool,
}

fn outline(text: &[u8]) -> Option<Outline> {
    // Most log lines are told apart by their first byte.
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    if first != Some(&b'{') {
        return None;
    }
    serde_json::from_slice(text).ok()
}

impl<'de> Deserialize<'de> for Outline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Outline, D::Error> {
        deserializer.deserialize_map(OutlineVisitor)
    }
}

struct OutlineVisitor;

impl<'de> Visitor<'de> for OutlineVisitor {
    type Value = Outline;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Outline, A::Error> {
        let mut outline = Outline::default();
        while let Some(name) = members.next_key::<Name>()? {
            members.next_value::<IgnoredAny>()?;
            match name {
                Name::Status => outline.has_status = true,
                Name::EventType => outline.has_event_type = true,
                Name::Other => {}
            }
        }
        Ok(outline)
    }
}

/// The name of a member, read without an allocation.
enum Name {
    Status,
    EventType,
    Other,
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        deserializer.deserialize_str(NameVisitor)
    }
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = Name;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Name, E> {
        Ok(match name {
            "status" => Name::Status,
            "event_type" => Name::EventType,
            _ => Name::Other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_told_from_events_by_their_members() {
        for text in [r#"{"status":"completed"}"#, " {\"a\":[{}],\"\\u0073tatus\":1}\r\n"] {
            assert!(is_response(text.as_bytes()), "{text}");
        }
        for text in [
            r#"{"event_type":"tool_call","payload":{"status":"success"}}"#,
            r#"{"status":"success","event_type":"tool_call"}"#,
            r#"{"payload":{"status":"success"}}"#,
            r#"[{"status":1}]"#,
            r#"{"status":"completed""#,
            r#"{"status":"completed"} x"#,
            "{status}",
            "",
            "Traceback",
        ] {
            assert!(!is_response(text.as_bytes()), "{text}");
        }
    }

    /// Deep messages are refused by their reader, with a reason; they are no log lines.
    #[cfg(feature = "stdio")]
    #[test]
    fn depth_does_not_turn_an_object_into_a_log_line() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(is_object(deep.as_bytes()));
        assert!(!is_object(b"{not json}") && !is_object(b"[]"));
    }
}
