//! Texts of other programs, made fit for messages.

use proctor_policy::scan::{FindingKind, Scanner};
use proctor_policy::truncated::drop_partial_words;

/// Longest text of another program in a message, in characters.
const MAX_CHARACTERS: usize = 400;

/// One line without control characters and secrets, truncated.
pub(crate) fn readable(text: &str) -> String {
    // The scanner sees more than is kept, so that a secret at the end is recognised before the cut.
    let start: String = text
        .chars()
        .take(MAX_CHARACTERS * 4)
        .map(|character| if character.is_control() { ' ' } else { character })
        .collect();
    let cut = redacted(&start);
    if cut.chars().count() > MAX_CHARACTERS {
        let start: String = cut.chars().take(MAX_CHARACTERS).chain(['…']).collect();
        return drop_partial_words(&start);
    }
    cut.trim().to_owned()
}

/// The text without secrets.
pub(crate) fn redacted(text: &str) -> String {
    Scanner::standard().redact_text(text, "$", &|_: FindingKind| false).0
}
