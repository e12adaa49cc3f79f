//! Phrases as people write them: found in any case, with any white space between words, and only as whole words.

use regex::{Regex, RegexBuilder};

/// The most memory that one compiled list may take, in bytes. The bounds on lists keep well below.
const MAX_COMPILED_BYTES: usize = 8 << 20;

/// A list of phrases, compiled.
#[derive(Debug, Clone)]
pub(crate) struct Phrases(Regex);

/// Phrases whose automaton exceeds its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the phrases are too large when compiled")]
pub(crate) struct PhrasesTooLarge;

impl Phrases {
    /// The phrases; nothing if there are none.
    pub(crate) fn compile(phrases: &[String]) -> Result<Option<Phrases>, PhrasesTooLarge> {
        if phrases.is_empty() {
            return Ok(None);
        }
        let each: Vec<String> = phrases
            .iter()
            .map(|phrase| {
                let words: Vec<String> = phrase.split_whitespace().map(regex::escape).collect();
                words.join(r"\s+")
            })
            .collect();
        let built = RegexBuilder::new(&format!(r"\b{{start-half}}(?:{})\b{{end-half}}", each.join("|")))
            .case_insensitive(true)
            .size_limit(MAX_COMPILED_BYTES)
            .dfa_size_limit(MAX_COMPILED_BYTES)
            .build();
        built.map(|regex| Some(Phrases(regex))).map_err(|_| PhrasesTooLarge)
    }

    /// The first position in the text of one of the phrases.
    pub(crate) fn find<'text>(&self, text: &'text str) -> Option<&'text str> {
        self.0.find(text).map(|found| found.as_str())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found<'text>(phrases: &[&str], text: &'text str) -> Option<&'text str> {
        let phrases: Vec<String> = phrases.iter().map(|phrase| (*phrase).to_owned()).collect();
        Phrases::compile(&phrases).unwrap().unwrap().find(text)
    }

    #[test]
    fn whole_words_in_any_case_and_spacing() {
        for (phrase, text, expected) in [
            ("where is", "Where  is it?", Some("Where  is")),
            ("where is", "where\n\tIS", Some("where\n\tIS")),
            ("where is", "elsewhere is", None),
            ("where is", "where isn", None),
            ("where is", "(where is)", Some("where is")),
            ("  where   is ", "where is", Some("where is")),
            ("prod", "production", None),
            ("prod", "pre-prod", Some("prod")),
            ("prod", "pre_prod", None),
            ("drop table", "DROP TABLE users", Some("DROP TABLE")),
            ("c++", "write c++ code", Some("c++")),
            ("c++", "write c++x", None),
            (".*", "anything", None),
            ("a|b", "a", None),
            ("größe", "die GRÖSSE", None),
            ("größe", "die GRÖßE", Some("GRÖßE")),
            ("k", "\u{212a}", Some("\u{212a}")),
        ] {
            assert_eq!(found(&[phrase], text), expected, "{phrase} in {text}");
        }
        assert_eq!(found(&["find", "find the"], "find the file"), Some("find"));
        assert!(Phrases::compile(&[]).unwrap().is_none());
    }

    #[test]
    fn the_longest_list_compiles() {
        let phrases = vec!["ſk".repeat(85); 64];
        assert!(Phrases::compile(&phrases).unwrap().is_some());
    }

    proptest! {
        #[test]
        fn any_phrase_is_found_between_spaces_and_not_inside_a_word(phrase in "\\PC{1,12}") {
            prop_assume!(!phrase.trim().is_empty());
            let list = [phrase.clone()];
            let phrases = Phrases::compile(&list).unwrap().unwrap();
            prop_assert!(phrases.find(&phrase).is_some());
            let between = format!("x {phrase} x");
            prop_assert!(phrases.find(&between).is_some());
            let words: Vec<&str> = phrase.split_whitespace().collect();
            let inside = format!("x{}x", words.join(" "));
            if words.iter().all(|word| word.chars().all(char::is_alphanumeric)) {
                prop_assert!(phrases.find(&inside).is_none());
            }
        }
    }
}
