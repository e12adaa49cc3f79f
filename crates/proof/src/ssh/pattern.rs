//! Patterns of allowed signers (`PATTERNS` of `ssh_config(5)`): `*`, `?`, lists, and negation.

/// Whether a comma-separated list of patterns matches: one of them does, and none with `!` before it.
pub(super) fn list_matches(patterns: &str, text: &str) -> bool {
    let mut matched = false;
    for pattern in patterns.split(',') {
        match pattern.strip_prefix('!') {
            Some(refused) if matches(refused, text) => return false,
            Some(_) => {}
            None => matched = matched || matches(pattern, text),
        }
    }
    matched
}

/// Whether a pattern matches the whole text. After a mismatch only the last `*` takes one more byte, so the time is at most the product
/// of both lengths.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut read) = (0, 0);
    let mut last_star = None;
    while read < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                last_star = Some((at, read));
                at += 1;
            }
            Some(byte) if *byte == b'?' || text.get(read) == Some(byte) => {
                at += 1;
                read += 1;
            }
            _ => match last_star {
                Some((star, begin)) => {
                    last_star = Some((star, begin + 1));
                    at = star + 1;
                    read = begin + 1;
                }
                None => return false,
            },
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_questions_lists_and_negation() {
        for (patterns, text, expected) in [
            ("*", "", true),
            ("a*c", "abbbc", true),
            ("a*c", "abbbd", false),
            ("*@example.org", "ci@example.org", true),
            ("*@example.org", "ci@example.org.evil", false),
            ("?", "a", true),
            ("?", "", false),
            ("a,b", "b", true),
            ("*,!b", "b", false),
            ("!b,*", "b", false),
            ("!b", "a", false),
            ("!b,*", "a", true),
            ("", "", true),
            ("A", "a", false),
        ] {
            assert_eq!(list_matches(patterns, text), expected, "{patterns} {text}");
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = "a*".repeat(200) + "b";
        assert!(!list_matches(&pattern, &"a".repeat(4000)));
    }
}
