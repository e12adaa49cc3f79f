//! Masking of secrets in byte streams: whole values, raw or encoded, also across the borders of chunks.
//!
//! A value is found as it is, as hexadecimal digits, inside base64 text of either alphabet and any alignment, and where text was escaped for
//! JSON, shells, URLs or HTML: the stream is searched in several decoded views at once, so that it does not matter which characters a writer
//! escaped. Line breaks, indentation, control characters and terminal sequences within a value do not hide it. Overlapping occurrences are
//! replaced together by one [`MARK`]. The result does not depend on where the chunks were cut.
//!
//! ```
//! use proctor_mask::Masker;
//! let masker = Masker::new(["s3cr3t/value"]).unwrap();
//! assert_eq!(masker.mask_text("a s3cr3t/value, s3cr3t%2fvalue, s3cr3t\\/value"), "a [REDACTED], [REDACTED], [REDACTED]");
//! let masker = Masker::named([("API_KEY", "s3cr3t/value")]).unwrap();
//! assert_eq!(masker.mask_text("a s3cr3t/value"), "a [REDACTED:API_KEY]");
//! ```

mod cursor;
mod decode;
mod patterns;
mod quotes;
mod stream;
#[cfg(test)]
mod tests;
mod views;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use proctor_core::json::Json;

use patterns::Patterns;
pub use stream::MaskStream;

/// Replacement of a masked value that has no name.
pub const MARK: &str = "[REDACTED]";

/// Bytes of all values together that one masker takes: its automaton needs about 300 bytes for each.
pub const MAX_SECRET_BYTES: usize = 1024 * 1024;

/// Masker whose values cannot be searched for. Output must not be shown then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the values to mask are longer than {MAX_SECRET_BYTES} bytes together: present fewer or shorter ones"
)]
pub struct MaskError;

/// Set of secrets to mask. Cloning shares it.
#[derive(Clone)]
pub struct Masker {
    /// Absent when there is nothing to mask.
    patterns: Option<Arc<Patterns>>,
}

impl Masker {
    /// Prepares to mask these values by [`MARK`]. Empty ones are ignored.
    pub fn new<'v>(values: impl IntoIterator<Item = &'v str>) -> Result<Masker, MaskError> {
        Masker::build(values.into_iter().map(|value| (None, value)))
    }

    /// Prepares to mask these values with their names in the replacement. Empty values are ignored.
    pub fn named<'v>(values: impl IntoIterator<Item = (&'v str, &'v str)>) -> Result<Masker, MaskError> {
        Masker::build(values.into_iter().map(|(name, value)| (Some(name), value)))
    }

    fn build<'v>(values: impl Iterator<Item = (Option<&'v str>, &'v str)>) -> Result<Masker, MaskError> {
        let values: Vec<_> = values.collect();
        Ok(Masker { patterns: Patterns::new(&values)?.map(Arc::new) })
    }

    /// Whether there is nothing to mask.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_none()
    }

    /// Masks a stream that arrives in chunks.
    pub fn stream(&self) -> MaskStream {
        MaskStream::new(self.patterns.clone())
    }

    /// Masks a whole text of bytes.
    pub fn mask(&self, bytes: &[u8]) -> Vec<u8> {
        self.mask_noting(bytes, &mut BTreeSet::new())
    }

    /// Masks a whole text of bytes, and adds the names of the values that it had to `found`.
    pub fn mask_noting(&self, bytes: &[u8], found: &mut BTreeSet<String>) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        let mut stream = self.stream();
        stream.push(bytes, &mut out);
        stream.finish(&mut out);
        found.extend(stream.found().map(str::to_owned));
        out
    }

    /// Masks a whole text.
    pub fn mask_text(&self, text: &str) -> String {
        self.mask_text_noting(text, &mut BTreeSet::new()).into_owned()
    }

    /// Masks a whole text, and adds the names of the values that it had to `found`. A text without any stays as it is.
    pub fn mask_text_noting<'t>(&self, text: &'t str, found: &mut BTreeSet<String>) -> Cow<'t, str> {
        let Some(patterns) = &self.patterns else { return Cow::Borrowed(text) };
        if text.len() < patterns.shortest || patterns.is_clean(text.as_bytes()) {
            return Cow::Borrowed(text);
        }
        let masked = self.mask_noting(text.as_bytes(), found);
        if masked == text.as_bytes() {
            return Cow::Borrowed(text);
        }
        // A secret may begin or end inside a character of the text, if an escape was decoded: never fail on that.
        Cow::Owned(String::from_utf8_lossy(&masked).into_owned())
    }

    /// Masks strings, numbers and member names of a JSON value.
    pub fn mask_json(&self, value: &Json) -> Json {
        let mut masked = value.clone();
        self.mask_json_noting(&mut masked, &mut BTreeSet::new());
        masked
    }

    /// Masks strings, numbers and member names of a JSON value, and adds the names of the values that it had to `found`.
    pub fn mask_json_noting(&self, value: &mut Json, found: &mut BTreeSet<String>) {
        if self.is_empty() {
            return;
        }
        match value {
            Json::Null | Json::Bool(_) => {}
            Json::Number(literal) => {
                if let Cow::Owned(masked) = self.mask_text_noting(literal, found) {
                    *value = Json::String(masked);
                }
            }
            Json::String(text) => {
                if let Cow::Owned(masked) = self.mask_text_noting(text, found) {
                    *text = masked;
                }
            }
            Json::Array(items) => items.iter_mut().for_each(|item| self.mask_json_noting(item, found)),
            Json::Object(members) => self.mask_members(members, found),
        }
    }

    fn mask_members(&self, members: &mut [(String, Json)], found: &mut BTreeSet<String>) {
        let mut renamed: Vec<(usize, String)> = Vec::new();
        for (index, (name, member)) in members.iter_mut().enumerate() {
            if let Cow::Owned(masked) = self.mask_text_noting(name, found) {
                renamed.push((index, masked));
            }
            self.mask_json_noting(member, found);
        }
        if renamed.is_empty() {
            return;
        }
        // Names of an object are unique, also after masking.
        let mut names: BTreeSet<String> = members.iter().map(|(name, _)| name.clone()).collect();
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        for (index, masked) in renamed {
            let number = numbers.entry(masked.clone()).or_insert(1);
            let mut shown = masked.clone();
            while !names.insert(shown.clone()) {
                *number += 1;
                shown = format!("{masked} {number}");
            }
            if let Some((name, _)) = members.get_mut(index) {
                *name = shown;
            }
        }
    }
}

impl fmt::Debug for Masker {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Masker").field("is_empty", &self.is_empty()).finish_non_exhaustive()
    }
}
