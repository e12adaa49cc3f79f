//! Identifiers of agents, sessions, traces and the like, as they may be written.

use hmac::{Hmac, KeyInit, Mac};
use proctor_core::digest::Digest;
use sha2::Sha256;

use super::Scanner;

/// No digits, which could be taken for those of a card, and no letters that known keys begin with (`AKIA`, `ASIA`, `sk-`).
const LETTERS: &[u8; 16] = b"bcdefghjlmnopqrt";
const PREFIX: &str = "id-";
const LENGTH: usize = 32;

/// Identifiers as records hold them: a text itself, or, if the scanner would take it or a part of it for a secret, one that stands for it.
/// Many identifiers are random and look like secrets; cutting them would make different ones the same. What stands for one is a keyed
/// digest: without the key, a short identifier could be found by trying.
///
/// ```
/// use proctor_scan::{Identifiers, Scanner};
/// let identifiers = Identifiers::new(Scanner::standard(), &[7; 32]);
/// assert_eq!(identifiers.text("trace-1:span-2"), "trace-1:span-2");
/// let long = identifiers.text("xVqagxaeniraz0UNXJfRrQ2wS9kLmN4p:job");
/// assert!(long.starts_with("id-") && long.len() == 35);
/// assert_eq!(identifiers.text(&long), long);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Identifiers<'a> {
    scanner: &'a Scanner,
    key: &'a [u8; 32],
}

impl<'a> Identifiers<'a> {
    /// Identifiers that this scanner judges, with the key of their digests.
    pub fn new(scanner: &'a Scanner, key: &'a [u8; 32]) -> Identifiers<'a> {
        Identifiers { scanner, key }
    }

    /// The identifier as records hold it.
    pub fn text(&self, identifier: &str) -> String {
        if is_digest(identifier)
            || is_public_key(identifier)
            || self.scanner.scan_claimed(identifier).is_empty()
        {
            return identifier.to_owned();
        }
        self.digest(identifier)
    }

    /// A name made of identifiers with `/` between them (`agent:org/team/id`): each is an identifier of its own, with what stands before
    /// its first colon.
    pub fn name(&self, name: &str) -> String {
        if self.scanner.scan_claimed(name).is_empty() {
            return name.to_owned();
        }
        let pieces: Vec<String> = name
            .split('/')
            .map(|piece| match piece.split_once(':') {
                Some((kind, rest)) if is_kind(kind) => format!("{kind}:{}", self.text(rest)),
                _ => self.text(piece),
            })
            .collect();
        let cut = pieces.join("/");
        // A secret that reaches over the signs leaves nothing but the whole.
        if cut == name && !has_public_key(name) { self.digest(name) } else { cut }
    }

    /// Whether a record's text stands for the identifier: it is one of the forms that records were ever given.
    pub fn stands_for(&self, recorded: &str, identifier: &str) -> bool {
        recorded == identifier
            || (is_digest(recorded)
                && (recorded == self.digest(identifier) || recorded == unkeyed(identifier)))
    }

    fn digest(&self, identifier: &str) -> String {
        // INVARIANT: HMAC takes keys of any length, so this cannot fail; a digest without the key would still be a digest.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(self.key) else { return unkeyed(identifier) };
        mac.update(b"identifier\0");
        mac.update(identifier.as_bytes());
        in_letters(&mac.finalize().into_bytes())
    }
}

/// An identifier as records of earlier versions hold it: under the built-in patterns, without a key.
pub fn identifier(text: &str) -> String {
    if Scanner::standard().scan(text).is_empty() { text.to_owned() } else { unkeyed(text) }
}

/// What stood for an identifier in records of earlier versions.
pub fn unkeyed(identifier: &str) -> String {
    in_letters(Digest::of(identifier.as_bytes()).as_bytes())
}

fn in_letters(digest: &[u8]) -> String {
    let letter = |half: u8| LETTERS.get(usize::from(half & 15)).map_or('b', |letter| char::from(*letter));
    let letters = digest.iter().take(LENGTH / 2).flat_map(|byte| [letter(byte >> 4), letter(*byte)]);
    PREFIX.chars().chain(letters).collect()
}

/// Whether a text is a digest that stands for an identifier.
fn is_digest(text: &str) -> bool {
    text.strip_prefix(PREFIX).is_some_and(|letters| {
        letters.len() == LENGTH && letters.bytes().all(|letter| LETTERS.contains(&letter))
    })
}

/// Whether a text is the public key of an agent: random, and no secret.
fn is_public_key(text: &str) -> bool {
    text.strip_prefix("did:key:z6Mk")
        .is_some_and(|key| key.len() == 44 && key.bytes().all(|letter| letter.is_ascii_alphanumeric()))
}

fn has_public_key(name: &str) -> bool {
    name.split('/').any(|piece| {
        is_public_key(piece) || piece.split_once(':').is_some_and(|(_, rest)| is_public_key(rest))
    })
}

fn is_kind(text: &str) -> bool {
    matches!(text, "agent" | "uid" | "cert" | "job" | "approver")
}
