//! Secrets of a run: values of `context.environment`, which are cut from everything that is kept or shown.
//!
//! ```
//! use proctor_runner::secrets::Secrets;
//!
//! let secrets = Secrets::new([("API_KEY", "s3cr3t-v4lue"), ("REGION", "eu")]);
//! let (text, found) = secrets.cut("key=s3cr3t-v4lue region=eu");
//! assert_eq!(text, "key=[REDACTED:API_KEY] region=eu");
//! assert_eq!(found, ["API_KEY"]);
//! ```

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use proctor_core::json::Json;

/// Shortest value that counts as a secret. Shorter ones stand in ordinary texts by chance.
pub const MIN_SECRET_BYTES: usize = 8;

/// Values to cut, each in the spellings in which programs print them.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    names: Vec<String>,
    /// Name of each pattern, by its number.
    owners: Vec<usize>,
    search: Option<AhoCorasick>,
}

impl Secrets {
    /// Secrets by name and value; values shorter than [`MIN_SECRET_BYTES`] are none.
    pub fn new<'v>(values: impl IntoIterator<Item = (&'v str, &'v str)>) -> Secrets {
        let (mut names, mut owners, mut patterns) = (Vec::new(), Vec::new(), Vec::new());
        for (name, value) in values {
            if value.len() < MIN_SECRET_BYTES {
                continue;
            }
            for spelling in spellings(value) {
                patterns.push(spelling);
                owners.push(names.len());
            }
            names.push(name.to_owned());
        }
        // Building fails only beyond sizes that the limits of a suite do not allow; then everything would have to be cut.
        let search = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&patterns).ok();
        Secrets { search: search.filter(|_| !names.is_empty()), names, owners }
    }

    /// Cuts the secrets of a text, and names those that it had.
    pub fn cut<'t>(&self, text: &'t str) -> (Cow<'t, str>, Vec<&str>) {
        let Some(search) = &self.search else { return (Cow::Borrowed(text), Vec::new()) };
        let (mut out, mut end, mut found) = (String::new(), 0, Vec::new());
        for hit in search.find_iter(text) {
            let name = self.owners.get(hit.pattern().as_usize()).and_then(|owner| self.names.get(*owner));
            let name = name.map_or("", String::as_str);
            out.push_str(text.get(end..hit.start()).unwrap_or_default());
            out.push_str("[REDACTED:");
            out.push_str(name);
            out.push(']');
            end = hit.end();
            if !found.contains(&name) {
                found.push(name);
            }
        }
        if found.is_empty() {
            return (Cow::Borrowed(text), found);
        }
        out.push_str(text.get(end..).unwrap_or_default());
        (Cow::Owned(out), found)
    }

    /// Cuts the secrets of every string and member name of a value; `found` collects the names.
    pub fn cut_json(&self, value: &mut Json, found: &mut Vec<String>) {
        if self.search.is_none() {
            return;
        }
        match value {
            Json::String(text) => self.cut_in_place(text, found),
            Json::Array(items) => items.iter_mut().for_each(|item| self.cut_json(item, found)),
            Json::Object(members) => {
                for (name, member) in members {
                    self.cut_in_place(name, found);
                    self.cut_json(member, found);
                }
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
    }

    fn cut_in_place(&self, text: &mut String, found: &mut Vec<String>) {
        let (cut, names) = self.cut(text);
        for name in names {
            if !found.iter().any(|known| known == name) {
                found.push(name.to_owned());
            }
        }
        if let Cow::Owned(cut) = cut {
            *text = cut;
        }
    }
}

/// The spellings of a value: as it is, escaped as in JSON, percent-encoded, and base64 at each of the three alignments.
fn spellings(value: &str) -> Vec<String> {
    let mut found = vec![value.to_owned()];
    let quoted = Json::from(value).to_string();
    found.push(quoted.trim_matches('"').to_owned());
    found.push(percent_encoded(value, false));
    found.push(percent_encoded(value, true));
    for skipped in 0..3 {
        // In base64 a text looks different depending on what stands before it: the characters that belong to the value alone remain.
        let padded: Vec<u8> = std::iter::repeat_n(0, skipped).chain(value.bytes()).collect();
        for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            let encoded = engine.encode(&padded);
            let first = [0, 2, 3].get(skipped).copied().unwrap_or(0);
            let last = encoded.len() - usize::from(!padded.len().is_multiple_of(3));
            if let Some(inner) = encoded.get(first..last)
                && inner.len() >= MIN_SECRET_BYTES
            {
                found.push(inner.to_owned());
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

fn percent_encoded(value: &str, lower: bool) -> String {
    let mut out = String::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else if lower {
            out.push_str(&format!("%{byte:02x}"));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    const VALUE: &str = "p@ss \"word\"/9";

    fn secrets() -> Secrets {
        Secrets::new([("TOKEN", VALUE), ("SHORT", "abc")])
    }

    #[test]
    fn every_spelling_is_cut() {
        for text in [
            VALUE.to_owned(),
            Json::from(VALUE).to_string(),
            percent_encoded(VALUE, false),
            percent_encoded(VALUE, true),
            STANDARD.encode(VALUE),
            STANDARD.encode(format!("a{VALUE}b")),
            STANDARD.encode(format!("ab{VALUE}")),
        ] {
            let secrets = secrets();
            let (cut, found) = secrets.cut(&text);
            assert_eq!(found, ["TOKEN"], "{text}");
            assert!(cut.contains("[REDACTED:TOKEN]"), "{cut}");
        }
        assert_eq!(secrets().cut("abc stays").0, "abc stays");
    }

    #[test]
    fn json_is_cut_leaf_by_leaf_with_member_names() {
        let mut value = Json::object().with(VALUE, vec![Json::from(format!("x{VALUE}"))]);
        let mut found = Vec::new();
        secrets().cut_json(&mut value, &mut found);
        assert_eq!(value.to_string(), r#"{"[REDACTED:TOKEN]":["x[REDACTED:TOKEN]"]}"#);
        assert_eq!(found, ["TOKEN"]);
    }

    proptest! {
        #[test]
        fn base64_of_any_text_around_a_secret_shows_nothing_of_it(before in ".{0,9}", after in ".{0,9}") {
            let text = STANDARD.encode(format!("{before}{VALUE}{after}"));
            let secrets = secrets();
            prop_assert_eq!(secrets.cut(&text).1, ["TOKEN"]);
        }
    }
}
