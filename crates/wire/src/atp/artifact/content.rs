//! Claims about content: its size and its hash.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use proctor_core::digest::Digest;

/// Size and hash that an artifact claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Claims<'a> {
    /// `size_bytes`.
    pub size_bytes: Option<u64>,
    /// `content_hash`.
    pub content_hash: Option<&'a str>,
}

/// The content that claims are checked against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content<'a> {
    /// Inline content: text, or base64 of bytes. Claims hold if they hold for one of the two.
    Inline(&'a str),
    /// The bytes of a file.
    Bytes(&'a [u8]),
}

/// Claims that do not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mismatches {
    /// `size_bytes` is another.
    pub size: bool,
    /// `content_hash` is another.
    pub hash: bool,
    /// `content_hash` is not `sha256:`, so that it was not checked.
    pub hash_not_checked: bool,
}

impl Mismatches {
    /// Whether a claim was shown to be wrong.
    pub fn is_wrong(self) -> bool {
        self.size || self.hash
    }
}

/// Base64 in either alphabet, padded or not: agents use all of them.
const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Checks an artifact's claims against its content.
pub fn check_content(claims: Claims<'_>, content: Content<'_>) -> Mismatches {
    if claims == Claims::default() {
        return Mismatches::default();
    }
    match content {
        Content::Bytes(bytes) => check_bytes(claims, bytes),
        Content::Inline(text) => {
            let as_text = check_bytes(claims, text.as_bytes());
            if !as_text.is_wrong() {
                return as_text;
            }
            match decode(text).map(|bytes| check_bytes(claims, &bytes)) {
                Some(decoded) if !decoded.is_wrong() => decoded,
                // A size that fits only the text and a hash that fits only the bytes contradict each other: the hash decides.
                Some(decoded) => {
                    let size = as_text.size && decoded.size;
                    let hash = (as_text.hash && decoded.hash) || (!size && (as_text.hash || decoded.hash));
                    Mismatches { size, hash, ..as_text }
                }
                None => as_text,
            }
        }
    }
}

/// Checks an artifact's claims against a size and a digest that were measured while a file was read.
pub fn check_measured(claims: Claims<'_>, size: u64, digest: impl FnOnce() -> Digest) -> Mismatches {
    let mut found = Mismatches {
        size: claims.size_bytes.is_some_and(|claimed| claimed != size),
        ..Mismatches::default()
    };
    if let Some(hash) = claims.content_hash {
        match hash.split_once(':') {
            Some((algorithm, value)) if algorithm.eq_ignore_ascii_case("sha256") => {
                found.hash = !value.eq_ignore_ascii_case(&digest().to_string());
            }
            _ => found.hash_not_checked = true,
        }
    }
    found
}

fn check_bytes(claims: Claims<'_>, bytes: &[u8]) -> Mismatches {
    check_measured(claims, bytes.len() as u64, || Digest::of(bytes))
}

/// The bytes that a text is base64 of, line ends ignored.
fn decode(text: &str) -> Option<Vec<u8>> {
    let compact: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    STANDARD.decode(&compact).or_else(|_| URL_SAFE.decode(&compact)).ok()
}
