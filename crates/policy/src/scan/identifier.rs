//! Identifiers of traces and the like, as they may be written.

use proctor_core::digest::Digest;

use super::Scanner;

/// No digits, which could be taken for those of a card, and no letters that known keys begin with (`AKIA`, `ASIA`, `sk-`).
const LETTERS: &[u8; 16] = b"bcdefghjlmnopqrt";

/// An identifier as records hold it: itself, or, if the scanner would take it or a part of it for a secret, a text that stands for it. Many
/// identifiers are random and look like secrets; cutting them would make different ones the same.
///
/// ```
/// use proctor_policy::scan::identifier;
/// assert_eq!(identifier("trace-1:span-2"), "trace-1:span-2");
/// let long = identifier("xVqagxaeniraz0UNXJfRrQ2wS9kLmN4p:job");
/// assert!(long.starts_with("id-") && long.len() == 35);
/// assert_eq!(identifier(&long), long);
/// ```
pub fn identifier(text: &str) -> String {
    if Scanner::standard().scan(text).is_empty() {
        return text.to_owned();
    }
    let digest = Digest::of(text.as_bytes());
    let letter = |half: u8| LETTERS.get(usize::from(half & 15)).map_or('b', |letter| char::from(*letter));
    let letters = digest.as_bytes().iter().take(16).flat_map(|byte| [letter(byte >> 4), letter(*byte)]);
    "id-".chars().chain(letters).collect()
}
