//! Search words of a question, and relevance scores of texts.

use proctor_policy::glob;

/// Most words of a question; those with the highest weights stay.
const MAX_WORDS: usize = 16;
/// Most bytes of a question that are read.
const MAX_QUESTION_BYTES: usize = 4096;
/// Longest word, in characters; longer ones are ignored.
const MAX_WORD_CHARS: usize = 128;
/// Most occurrences in one text that are checked for a whole-word match.
const MAX_TRIES: usize = 1024;

/// Stop words.
const STOP_WORDS: &[&str] = &[
    "a", "about", "all", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "does", "find",
    "for", "from", "get", "give", "has", "have", "how", "i", "in", "into", "is", "it", "its", "let", "look",
    "me", "my", "of", "on", "or", "our", "please", "should", "show", "so", "that", "the", "their", "them",
    "then", "there", "these", "they", "this", "to", "up", "us", "use", "used", "uses", "was", "we", "what",
    "when", "where", "which", "who", "why", "will", "with", "would", "you", "your",
];

/// Search words with weights.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Words {
    words: Vec<Word>,
}

#[derive(Debug, Clone, PartialEq)]
struct Word {
    /// Text in lower case.
    text: String,
    weight: f32,
    /// Whether `*` and `?` are wildcards.
    wildcards: bool,
}

impl Words {
    /// Adds the words of a text.
    pub fn add(&mut self, text: &str, weight: f32) {
        let text = beginning(text, MAX_QUESTION_BYTES).to_lowercase();
        for word in text.split(|sign: char| !in_word(sign)) {
            if !STOP_WORDS.contains(&word) {
                self.push(word, weight, false);
            }
        }
    }

    /// Adds the words of a pattern with the wildcards `*` and `?`.
    pub fn add_pattern(&mut self, pattern: &str, weight: f32) {
        let text = beginning(pattern, MAX_QUESTION_BYTES).to_lowercase();
        for word in text.split(|sign: char| !in_word(sign) && sign != '*' && sign != '?') {
            // Wildcards alone would match everything, which is no question.
            if word.chars().any(in_word) {
                self.push(word, weight, !glob::is_literal(word));
            }
        }
    }

    fn push(&mut self, text: &str, weight: f32, wildcards: bool) {
        let text = text.trim_matches('_');
        let chars = text.chars().count();
        // One letter is no word, one ideograph is.
        if chars > MAX_WORD_CHARS || chars == 0 || (chars == 1 && text.is_ascii()) {
            return;
        }
        if let Some(known) = self.words.iter_mut().find(|word| word.text == text) {
            known.weight = known.weight.max(weight);
            return;
        }
        self.words.push(Word { text: text.to_owned(), weight, wildcards });
        if self.words.len() > MAX_WORDS {
            // A stable sort: of equal weight, the earlier stay.
            self.words.sort_by(|one, other| other.weight.total_cmp(&one.weight));
            self.words.truncate(MAX_WORDS);
        }
    }

    /// Whether there are no words.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Texts of the words, in lower case.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|word| word.text.as_str())
    }

    /// Match strength of each word in a lower-case text: 1 as a whole word, less inside another word, 0 if absent.
    pub fn strengths(&self, lower: &str) -> Vec<f32> {
        self.words.iter().map(|word| word.strength(lower)).collect()
    }

    /// Weighted sum of the strengths.
    pub fn weigh(&self, strengths: &[f32]) -> f32 {
        self.words.iter().zip(strengths).map(|(word, strength)| word.weight * strength).sum()
    }

    /// Score from 0 to 1 of a text: share of the words' weights that it has.
    pub fn score(&self, strengths: &[f32]) -> f32 {
        let all: f32 = self.words.iter().map(|word| word.weight).sum();
        if all > 0.0 { (self.weigh(strengths) / all).clamp(0.0, 1.0) } else { 0.0 }
    }
}

impl Word {
    fn strength(&self, lower: &str) -> f32 {
        if self.wildcards {
            let mut words = lower.split(|sign: char| !in_word(sign)).filter(|word| !word.is_empty());
            return if words.any(|word| glob::matches(&self.text, word)) { 1.0 } else { 0.0 };
        }
        let mut inside = 0.0;
        for (at, found) in lower.match_indices(&self.text).take(MAX_TRIES) {
            let before = lower.get(..at).and_then(|text| text.chars().next_back());
            let after = lower.get(at + found.len()..).and_then(|text| text.chars().next());
            if !before.is_some_and(|sign| self.joins(sign)) && !after.is_some_and(|sign| self.joins(sign)) {
                return 1.0;
            }
            inside = 0.5;
        }
        inside
    }

    /// Whether an adjacent character makes the match part of a longer word. `retry` is a whole word in `retry_loop`; but
    /// `parse_frame` is not one in `parse_frame_header`.
    fn joins(&self, sign: char) -> bool {
        sign.is_alphanumeric() || (sign == '_' && self.text.contains('_'))
    }
}

fn in_word(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_'
}

/// Prefix of a text of at most `max` bytes, cut at a character boundary.
pub fn beginning(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Words {
        let mut words = Words::default();
        words.add(text, 1.0);
        words
    }

    #[test]
    fn a_question_is_reduced_to_what_it_is_about() {
        let texts: Vec<String> = words("Where is the Retry loop?").texts().map(str::to_owned).collect();
        assert_eq!(texts, ["retry", "loop"]);
        assert!(words("what is it, and where?").is_empty());
        assert!(words("* ? . -").is_empty());
        let mut pattern = Words::default();
        pattern.add_pattern("** ?", 1.0);
        assert!(pattern.is_empty(), "wildcards alone are no question");
    }

    #[test]
    fn whole_words_are_stronger_than_parts() {
        let strength = |word: &str, text: &str| words(word).strengths(text).first().copied().unwrap();
        for (word, text, expected) in [
            ("retry", "the retry loop", 1.0),
            ("retry", "retry_loop()", 1.0),
            ("retry", "retrying", 0.5),
            ("retry", "loop", 0.0),
            ("parse_frame", "fn parse_frame(", 1.0),
            ("parse_frame", "fn parse_frame_header(", 0.5),
            ("grüße", "viele grüße", 1.0),
        ] {
            assert!((strength(word, text) - expected).abs() < f32::EPSILON, "{word} {text}");
        }
        let mut pattern = Words::default();
        pattern.add_pattern("parse_*", 1.0);
        assert_eq!(pattern.strengths("fn parse_header()"), [1.0]);
        assert_eq!(pattern.strengths("fn reparse_header()"), [0.0]);
    }

    #[test]
    fn a_score_is_the_share_of_the_weights() {
        let mut question = words("frame");
        question.add("error", 3.0);
        for (strengths, expected) in [([1.0, 0.0], 0.25), ([0.0, 1.0], 0.75), ([1.0, 1.0], 1.0)] {
            assert!((question.score(&strengths) - expected).abs() < f32::EPSILON, "{strengths:?}");
        }
    }

    #[test]
    fn a_question_has_a_bounded_number_of_words() {
        let many: String = (0..1000).map(|number| format!("word{number} ")).collect();
        let mut question = words(&many);
        question.add("important", 9.0);
        assert_eq!(question.texts().count(), MAX_WORDS);
        assert!(question.texts().any(|word| word == "important"));
    }

    proptest! {
        #[test]
        fn scores_are_between_0_and_1(question in ".{0,40}", texts in proptest::collection::vec(".{0,40}", 0..6)) {
            let mut words = words(&question);
            words.add_pattern(&question, 2.0);
            for text in texts {
                let score = words.score(&words.strengths(&text.to_lowercase()));
                prop_assert!((0.0..=1.0).contains(&score));
            }
        }

        #[test]
        fn a_beginning_is_never_longer(text in ".{0,20}", max in 0usize..30) {
            prop_assert!(beginning(&text, max).len() <= max);
            prop_assert!(text.starts_with(beginning(&text, max)));
        }
    }
}
