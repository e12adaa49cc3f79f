//! Texts that agents send: which are refused, and how they are repeated.

use super::DEFAULT_MAX_CHARS;
use super::phrases::Phrases;
use super::section::TextSection;

/// Most characters of an agent's text that an answer repeats.
const MAX_QUOTED: usize = 64;

/// Rules of one document about a kind of text.
pub(super) struct TextRule<'a> {
    pub(super) section: &'a TextSection,
    pub(super) refused: Option<&'a Phrases>,
}

/// Reason to refuse a text, if any. `work` names the activity, `noun` the text.
pub(super) fn refusal(rules: &[TextRule<'_>], work: &str, noun: &str, written: &str) -> Option<String> {
    if let Some(closed) = rules.iter().find(|rule| !rule.section.allow) {
        return Some(closed.section.reason_or(|| format!("{work} is not allowed")));
    }
    // The length comes before the phrases, because it bounds the work of looking for them.
    let shortest = rules
        .iter()
        .filter(|rule| rule.section.max_chars.is_some())
        .min_by_key(|rule| rule.section.max_chars);
    let most = shortest.and_then(|rule| rule.section.max_chars).unwrap_or(DEFAULT_MAX_CHARS);
    if written.chars().nth(usize::try_from(most).unwrap_or(usize::MAX)).is_some() {
        let built_in = || format!("the {noun} has more than {most} characters");
        return Some(shortest.map_or_else(built_in, |rule| rule.section.reason_or(built_in)));
    }
    rules.iter().find_map(|rule| {
        let found = rule.refused?.find(written)?;
        Some(rule.section.reason_or(|| format!("the {noun} mentions {}", quoted(found))))
    })
}

impl TextSection {
    /// The document's reason for refusing, or the built-in one.
    pub(super) fn reason_or(&self, built_in: impl FnOnce() -> String) -> String {
        self.reason.clone().unwrap_or_else(built_in)
    }
}

/// The first bytes of a text, at most so many, in whole characters.
pub(super) fn beginning(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

/// An agent's text in backticks, truncated, on one line.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("`");
    for (count, character) in text.chars().enumerate() {
        if count == MAX_QUOTED {
            out.push('…');
            break;
        }
        out.push(if character.is_control() { ' ' } else { character });
    }
    out.push('`');
    out
}

/// The end of a refusal that says what would not be refused.
pub(super) fn allowed_are(names: &[&str]) -> String {
    if names.is_empty() {
        return "the policy leaves none".to_owned();
    }
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    format!("allowed: {}", names.join(", "))
}
