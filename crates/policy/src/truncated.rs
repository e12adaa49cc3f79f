//! Truncated texts: half a secret is not recognised by the scanner.

/// Drops partial words at truncation marks (`…`), so that half a secret is never stored.
pub fn drop_partial_words(text: &str) -> String {
    let parts: Vec<&str> = text.split('…').collect();
    let last = parts.len().saturating_sub(1);
    let whole = parts.iter().enumerate().map(|(index, part)| {
        let mut kept = *part;
        if index > 0 {
            kept = kept.get(partial_word_bytes(&mut kept.chars())..).unwrap_or_default();
        }
        if index < last {
            kept = kept.get(..kept.len() - partial_word_bytes(&mut kept.chars().rev())).unwrap_or_default();
        }
        kept
    });
    whole.collect::<Vec<&str>>().join("…")
}

/// Length in bytes of the partial word at the beginning of a text.
fn partial_word_bytes(characters: &mut dyn Iterator<Item = char>) -> usize {
    const LONGEST: usize = 128;
    let separates =
        |character: &char| character.is_whitespace() || matches!(character, '"' | '\'' | '`' | ',' | ';');
    characters.take(LONGEST).take_while(|character| !separates(character)).map(char::len_utf8).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn torn_words_are_left_out_and_nothing_else() {
        for (text, kept) in [
            ("say sk-live-abc…", "say …"),
            ("…live-abc is it", "… is it"),
            ("…abc in the middle def…", "… in the middle …"),
            ("…abcdef…", "……"),
            ("whole text", "whole text"),
            ("ends well …", "ends well …"),
            ("…", "…"),
            ("", ""),
        ] {
            assert_eq!(drop_partial_words(text), kept);
        }
        // What is longer than a word is told by its length: the scanner looks at what is left.
        assert_eq!(drop_partial_words(&format!("{}…", "ö".repeat(200))).chars().count(), 73);
    }

    #[test]
    fn words_torn_in_the_middle_are_left_out_too() {
        assert_eq!(
            drop_partial_words("`x` is `begin sk_live_4eC39HqLyjWDarj…`, not of type"),
            "`x` is `begin …`, not of type"
        );
        assert_eq!(drop_partial_words("a…b…c"), "……");
    }
}
