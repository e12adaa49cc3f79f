//! Compact printing: numbers as they came, members in the order they came.

use std::fmt::{self, Write};

use super::Json;

impl Json {
    /// Appends the compact text. Large values are printed faster so than with `Display`, which calls its formatter for each piece.
    pub fn write_to(&self, out: &mut String) {
        // Writing to a `String` cannot fail.
        let _ = write_json(self, out);
    }
}

impl fmt::Display for Json {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_json(self, out)
    }
}

// Recursion is safe: the parser bounds depth, and values that we build ourselves are shallow.
fn write_json(value: &Json, out: &mut impl Write) -> fmt::Result {
    match value {
        Json::Null => out.write_str("null"),
        Json::Bool(true) => out.write_str("true"),
        Json::Bool(false) => out.write_str("false"),
        Json::Number(text) => out.write_str(text),
        Json::String(text) => write_string(text, out),
        Json::Array(items) => {
            out.write_str("[")?;
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.write_str(",")?;
                }
                write_json(item, out)?;
            }
            out.write_str("]")
        }
        Json::Object(members) => {
            out.write_str("{")?;
            for (index, (name, member)) in members.iter().enumerate() {
                if index > 0 {
                    out.write_str(",")?;
                }
                write_string(name, out)?;
                out.write_str(":")?;
                write_json(member, out)?;
            }
            out.write_str("}")
        }
    }
}

/// Writes a JSON string with the escapes that RFC 8785 prescribes, and no others.
pub(crate) fn write_string(text: &str, out: &mut impl Write) -> fmt::Result {
    out.write_str("\"")?;
    // Without an early exit the compiler tests many bytes at once, and few texts have an escape.
    if !text.bytes().fold(false, |found, byte| found | needs_escape(byte)) {
        out.write_str(text)?;
        return out.write_str("\"");
    }
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            0x08 => "\\b",
            0x09 => "\\t",
            0x0A => "\\n",
            0x0C => "\\f",
            0x0D => "\\r",
            0x00..=0x1F => "",
            _ => continue,
        };
        // Escaped bytes are ASCII, so both ends are character boundaries.
        out.write_str(text.get(plain..at).unwrap_or_default())?;
        if escape.is_empty() {
            write!(out, "\\u{byte:04x}")?;
        } else {
            out.write_str(escape)?;
        }
        plain = at + 1;
    }
    out.write_str(text.get(plain..).unwrap_or_default())?;
    out.write_str("\"")
}

fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}
