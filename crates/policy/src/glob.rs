//! Patterns for tool names: `*` is any text, `?` is any one character, everything else is itself. ASCII letters match in
//! either case.
//!
//! ```
//! use proctor_policy::glob::Glob;
//! let glob = Glob::new("read_customer_*");
//! assert!(glob.matches("Read_Customer_File"));
//! assert!(!glob.matches("read_file"));
//! assert!(Glob::new("bash").is_literal());
//! ```

/// A pattern for tool names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Glob {
    pattern: String,
    literal: bool,
}

impl Glob {
    /// The pattern; every text is one.
    pub fn new(pattern: &str) -> Glob {
        Glob { pattern: pattern.to_owned(), literal: is_literal(pattern) }
    }

    /// The pattern as it was written.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Whether the pattern matches one name only (in any case).
    pub fn is_literal(&self) -> bool {
        self.literal
    }

    /// Whether the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
        if self.literal { self.pattern.eq_ignore_ascii_case(text) } else { matches(&self.pattern, text) }
    }
}

impl std::fmt::Display for Glob {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.pattern)
    }
}

/// Whether a pattern has neither `*` nor `?`.
pub fn is_literal(pattern: &str) -> bool {
    !pattern.bytes().any(|byte| byte == b'*' || byte == b'?')
}

/// Whether the whole text matches the pattern, without building a [`Glob`].
///
/// A star takes as little as it can, and only the last star seen is ever tried again: what an earlier one took can stay as
/// it is, because the later one could have taken the rest. The work is at most pattern length times text length.
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut pattern_rest = pattern.chars();
    let mut text_rest = text.chars();
    // Where to go on if the present try fails: the pattern after the last star, and the text after one more character.
    let mut retry: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
    loop {
        let mut pattern_next = pattern_rest.clone();
        match pattern_next.next() {
            Some('*') => {
                retry = Some((pattern_next.clone(), text_rest.clone()));
                pattern_rest = pattern_next;
                continue;
            }
            Some(expected) => {
                let mut text_next = text_rest.clone();
                match text_next.next() {
                    Some(found) if expected == '?' || expected.eq_ignore_ascii_case(&found) => {
                        pattern_rest = pattern_next;
                        text_rest = text_next;
                        continue;
                    }
                    Some(_) => {}
                    // The text ran out: taking more of it with the star cannot help.
                    None => return false,
                }
            }
            None if text_rest.as_str().is_empty() => return true,
            None => {}
        }
        let Some((after_star, taken)) = &mut retry else { return false };
        if taken.next().is_none() {
            return false;
        }
        pattern_rest = after_star.clone();
        text_rest = taken.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stars_and_question_marks() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "anything", true),
            ("**", "x", true),
            ("?", "", false),
            ("?", "é", true),
            ("?", "ab", false),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "abcb", false),
            ("*abc", "ababc", true),
            ("*a?c", "abcadc", true),
            ("mcp__*__read", "mcp__files__read", true),
            ("BASH", "bash", true),
            ("É", "é", false),
            ("[ab]", "a", false),
            ("[ab]", "[AB]", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
            assert_eq!(Glob::new(pattern).matches(text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_do_not_explode() {
        let pattern = "*a".repeat(2_000) + "b";
        assert!(!matches(&pattern, &"a".repeat(10_000)));
    }

    /// The definition, slow and obvious.
    fn obvious(pattern: &[char], text: &[char]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some(('*', rest)) => (0..=text.len()).any(|taken| obvious(rest, &text[taken..])),
            Some((expected, rest)) => text.split_first().is_some_and(|(found, text_rest)| {
                (*expected == '?' || expected.eq_ignore_ascii_case(found)) && obvious(rest, text_rest)
            }),
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(pattern in "[abA*?é]{0,8}", text in "[abBé]{0,10}") {
            let pattern_characters: Vec<char> = pattern.chars().collect();
            let text_characters: Vec<char> = text.chars().collect();
            prop_assert_eq!(matches(&pattern, &text), obvious(&pattern_characters, &text_characters));
            prop_assert_eq!(Glob::new(&pattern).matches(&text), matches(&pattern, &text));
        }
    }
}
