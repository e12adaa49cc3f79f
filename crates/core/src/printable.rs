//! Terminal-safe rendering of untrusted text.

/// Escapes control and direction characters, and cuts the text after `width` characters.
pub fn shown(text: &str, width: usize) -> String {
    let mut out = String::new();
    for (count, character) in text.chars().enumerate() {
        if count >= width {
            out.push('…');
            break;
        }
        if character.is_control() || is_direction_mark(character) {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out
}

/// Characters that change the order in which text is shown.
fn is_direction_mark(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claimed_text_cannot_play_with_the_terminal() {
        assert_eq!(shown("a\u{1b}[31mb\u{202e}c\n", 80), "a\\u{1b}[31mb\\u{202e}c\\n");
        assert_eq!(shown("abcdef", 3), "abc…");
    }
}
