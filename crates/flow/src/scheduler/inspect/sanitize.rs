//! Texts of the database, made harmless for terminals and for prompts that quote them.

use proctor_core::json::Json;

/// Removes colour escapes and control characters, and breaks code fences with U+2060, in every text of a value.
pub(super) fn basic(value: Json) -> Json {
    match value {
        Json::String(text) => Json::String(text_basic(&text)),
        Json::Array(items) => Json::Array(items.into_iter().map(basic).collect()),
        Json::Object(members) => {
            Json::Object(members.into_iter().map(|(name, value)| (name, basic(value))).collect())
        }
        other => other,
    }
}

fn text_basic(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        if let Some(length) = colour_escape(rest) {
            rest = rest.get(length..).unwrap_or_default();
            continue;
        }
        if !is_control(character) {
            kept.push(character);
        }
        rest = rest.get(character.len_utf8()..).unwrap_or_default();
    }
    // After the removal: an escape between two backticks must not hide a fence.
    kept.replace("```", "`\u{2060}``")
}

/// Length of the colour escape (`ESC [ … m`) that a text begins with.
fn colour_escape(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let length =
        parameters.bytes().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b';' | b':')).count();
    (parameters.as_bytes().get(length) == Some(&b'm')).then_some(length + 3)
}

/// Control characters other than tab, line feed and carriage return.
fn is_control(character: char) -> bool {
    matches!(character, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_controls_and_fences_are_removed() {
        for (text, clean) in [
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("a\u{1b}]0;title\u{7}b", "a]0;titleb"),
            ("tab\tline\ncr\rnul\0del\u{7f}", "tab\tline\ncr\rnuldel"),
            ("```sh", "`\u{2060}``sh"),
            ("`\u{1b}[0m``", "`\u{2060}``"),
            ("\u{1b}[12", "[12"),
            ("ä\u{1b}[mö", "äö"),
        ] {
            assert_eq!(text_basic(text), clean);
        }
        let nested = Json::object().with("a", vec![Json::from("x\u{0}"), Json::from(1u8)]);
        assert_eq!(basic(nested).to_string(), r#"{"a":["x",1]}"#);
    }
}
