//! Secrets of a run: values that its agent is given, which are cut from everything that is kept or shown.
//!
//! Bytes of an agent's process are cut as they come, before anything reads them ([`Secrets::reader`]); messages of agents elsewhere, results
//! and records as a whole. Which spellings are found, is up to [`proctor_mask`].
//!
//! ```
//! use proctor_runner::secrets::Secrets;
//!
//! let secrets = Secrets::new([("API_KEY", "s3cr3t-v4lue"), ("REGION", "eu")]);
//! let (text, found) = secrets.cut("key=s3cr3t-v4lue region=eu");
//! assert_eq!(text, "key=[REDACTED:API_KEY] region=eu");
//! assert_eq!(found, ["API_KEY"]);
//! ```

mod reader;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use proctor_core::json::Json;
use proctor_mask::{MARK, Masker};

pub use reader::CutReader;

/// Shortest value that counts as a secret. Shorter ones stand in ordinary texts by chance.
pub const MIN_SECRET_BYTES: usize = 8;

/// Values to cut, in all spellings in which programs print them.
#[derive(Debug, Clone)]
pub struct Secrets {
    /// None if there are too many values to search for: nothing is shown then.
    masker: Option<Masker>,
}

impl Default for Secrets {
    fn default() -> Secrets {
        Secrets::new([])
    }
}

impl Secrets {
    /// Secrets by name and value; values shorter than [`MIN_SECRET_BYTES`] are none.
    pub fn new<'v>(values: impl IntoIterator<Item = (&'v str, &'v str)>) -> Secrets {
        let long = values.into_iter().filter(|(_, value)| value.trim().len() >= MIN_SECRET_BYTES);
        Secrets { masker: Masker::named(long).ok() }
    }

    /// Whether there is nothing to cut.
    pub fn is_empty(&self) -> bool {
        self.masker.as_ref().is_some_and(Masker::is_empty)
    }

    /// Cuts the secrets of a text, and names those that it had.
    pub fn cut<'t>(&self, text: &'t str) -> (Cow<'t, str>, Vec<String>) {
        let mut found = BTreeSet::new();
        let cut = match &self.masker {
            Some(masker) => masker.mask_text_noting(text, &mut found),
            None => Cow::Borrowed(MARK),
        };
        (cut, found.into_iter().collect())
    }

    /// Cuts the secrets of a text that was shortened at `…`: also their beginnings there.
    pub fn cut_shortened(&self, text: &str) -> String {
        let (cut, _) = self.cut(text);
        let Some(masker) = self.masker.as_ref().filter(|masker| !masker.is_empty()) else {
            return cut.into_owned();
        };
        let Some((start, last)) = cut.rsplit_once('…') else { return cut.into_owned() };
        let mut out = Vec::new();
        for part in start.split('…') {
            let mut stream = masker.stream();
            stream.push(part.as_bytes(), &mut out);
            stream.finish_cut_off(&mut out);
            out.extend_from_slice("…".as_bytes());
        }
        out.extend_from_slice(last.as_bytes());
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Cuts the secrets of every string, number and member name of a value.
    pub fn cut_json(&self, value: &mut Json, emitted: &Emitted) {
        match &self.masker {
            Some(masker) if masker.is_empty() => {}
            Some(masker) => {
                let mut found = BTreeSet::new();
                masker.mask_json_noting(value, &mut found);
                emitted.add(found);
            }
            None => *value = Json::from(MARK),
        }
    }

    /// Cuts the secrets of a text in its place.
    pub fn cut_text(&self, text: &mut String) {
        if let (Cow::Owned(cut), _) = self.cut(text) {
            *text = cut;
        }
    }

    /// Cuts the secrets of a message; none if there is nothing to cut.
    pub fn cut_message(&self, message: &[u8], emitted: &Emitted) -> Option<Vec<u8>> {
        let Some(masker) = &self.masker else { return Some(MARK.as_bytes().to_vec()) };
        if masker.is_empty() {
            return None;
        }
        let (mut stream, mut out) = (masker.stream().of_json_lines(), Vec::with_capacity(message.len()));
        stream.push(message, &mut out);
        stream.finish(&mut out);
        emitted.add(stream.found().map(str::to_owned));
        Some(out)
    }

    /// Looks for secrets in at most `limit` bytes. What cannot be read is over.
    pub fn look_in(&self, mut input: impl Read, limit: u64, emitted: &Emitted) {
        let Some(masker) = self.masker.as_ref().filter(|masker| !masker.is_empty()) else { return };
        let (mut stream, mut out) = (masker.stream(), Vec::new());
        let (mut buffer, mut left) = (vec![0; 64 * 1024], limit);
        while left > 0 {
            let Ok(length) = input.read(&mut buffer) else { break };
            let length = length.min(usize::try_from(left).unwrap_or(usize::MAX));
            let Some(chunk) = buffer.get(..length).filter(|chunk| !chunk.is_empty()) else { break };
            stream.push(chunk, &mut out);
            out.clear();
            left = left.saturating_sub(length as u64);
        }
        stream.finish(&mut out);
        emitted.add(stream.found().map(str::to_owned));
    }

    /// A reader that cuts the secrets of the bytes that it passes on.
    pub fn reader<R>(&self, inner: R, emitted: &Emitted) -> CutReader<R> {
        CutReader::new(inner, self.masker.as_ref().map(Masker::stream), emitted.clone())
    }
}

/// Names of the secrets that an agent emitted. Cloning shares them.
#[derive(Debug, Clone, Default)]
pub struct Emitted(Arc<Mutex<BTreeSet<String>>>);

impl Emitted {
    /// Adds names.
    pub fn add(&self, names: impl IntoIterator<Item = String>) {
        let mut names = names.into_iter().peekable();
        if names.peek().is_some() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(names);
        }
    }

    /// The names, in alphabetical order.
    pub fn names(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// The reason for which an agent that emitted secrets fails.
pub(crate) fn emission(names: &[String]) -> String {
    format!("the agent emitted the secret {}", names.join(", "))
}

#[cfg(test)]
mod tests;
