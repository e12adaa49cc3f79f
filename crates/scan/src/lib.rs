//! Finds secrets and personal data in text and in JSON, and cuts them out.
//!
//! Five passes, in this order: literal prefixes and the operator's own patterns, digit runs, e-mail
//! addresses, high entropy, storage account keys. Every pass walks the text a bounded number of times, so a
//! scan costs time linear in the length of the text, whatever the text is.
//!
//! [`Scanner::scan`] is the published algorithm and nothing else. What is written is cut by [`Scanner::scan_claimed`], which adds rules of
//! our own and takes away what is known to be no secret.

mod additional;
mod bytes;
mod custom;
mod digits;
mod email;
mod entropy;
mod identifier;
mod json;
mod kind;
mod literals;
mod path;
mod redaction;
mod uuid;

#[cfg(test)]
mod identifier_tests;

fn begins_key(text: &str, at: usize) -> bool {
    text.as_bytes().get(at..at + 3).is_some_and(|start| start.eq_ignore_ascii_case(b"sk-"))
}

fn is_inside_word(text: &str, at: usize) -> bool {
    at.checked_sub(1).and_then(|before| text.as_bytes().get(before)).is_some_and(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};

pub use custom::{PatternError, PatternProblem};
pub use identifier::unkeyed;
pub use identifier::{Identifiers, identifier};
pub use json::{JsonFinding, MAX_JSON_DEPTH, MAX_REPORTED_FINDINGS};
pub use kind::FindingKind;
pub use path::{json_path_child, json_path_index};
pub use redaction::{REDACTED_WHOLE, leading_kind, redact};

use bytes::Summary;
use custom::CustomPatterns;

/// A finding: its kind, and its position in UTF-8 byte offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding {
    /// Kind of secret.
    pub kind: FindingKind,
    /// The first byte of the finding.
    pub offset: usize,
    /// The byte after the last byte of the finding.
    pub end: usize,
}

/// A compiled scanner: immutable, shared between threads, cheap to clone.
#[derive(Debug, Clone)]
pub struct Scanner {
    custom: Arc<CustomPatterns>,
}

impl Scanner {
    /// Compiles a scanner that also reports every match of `sensitive_patterns` as [`FindingKind::Custom`].
    ///
    /// A pattern that matches the empty text finds nothing there; more than a thousand matches of one pattern
    /// make the rest of the text one finding.
    pub fn new(sensitive_patterns: &[String]) -> Result<Scanner, PatternError> {
        Ok(Scanner { custom: Arc::new(CustomPatterns::compile(sensitive_patterns)?) })
    }

    /// The scanner without patterns of the operator's own.
    pub fn standard() -> &'static Scanner {
        static STANDARD: LazyLock<Scanner> =
            LazyLock::new(|| Scanner { custom: Arc::new(CustomPatterns::none()) });
        &STANDARD
    }

    /// The findings by which actions are judged and cut: those of [`Scanner::scan`] and of the additional rules, with two exceptions. An
    /// `sk-` inside a word (`task-`, `risk-`) begins no key: cutting there would break ordinary names, and hide what follows them from
    /// rules. The digits of a UUID or a digest are no payment card.
    pub fn scan_claimed(&self, text: &str) -> Vec<Finding> {
        let mut findings = self.scan(text);
        findings.retain_mut(|finding| {
            if uuid::is_in_identifier(text, finding) {
                return false;
            }
            if !matches!(finding.kind, FindingKind::OpenAiKey | FindingKind::AnthropicKey)
                || !is_inside_word(text, finding.offset)
            {
                return true;
            }
            // A key may still stand later in the same span.
            let later = (finding.offset + 1..finding.end)
                .find(|at| begins_key(text, *at) && !is_inside_word(text, *at));
            finding.offset = later.unwrap_or(finding.offset);
            later.is_some()
        });
        let published = findings.len();
        additional::find(text, &mut findings);
        if findings.len() > published {
            drop_known(&mut findings, published);
            findings.sort_by_key(|finding| finding.offset);
            merge_same_kind(&mut findings);
        }
        findings
    }

    /// All findings in `text`, in the order of their offsets. Findings of different kinds may overlap;
    /// findings of the same kind do not. Nothing is allocated when nothing is found.
    pub fn scan(&self, text: &str) -> Vec<Finding> {
        let mut findings = Vec::new();
        let summary = Summary::of(text);
        let account_keys = literals::find(text, &mut findings);
        self.custom.find(text, &mut findings);
        if summary.may_hold_digit_secret() {
            digits::find(text, &mut findings);
        }
        if summary.has_at_sign {
            email::find(text, &mut findings);
        }
        entropy::find(text, summary.has_opening_bracket, &mut findings);
        findings.extend(account_keys);
        if findings.len() > 1 {
            findings.sort_by_key(|finding| finding.offset);
            merge_same_kind(&mut findings);
        }
        findings
    }

    /// Whether the operator has patterns of their own.
    pub fn has_custom_patterns(&self) -> bool {
        !self.custom.is_empty()
    }
}

impl Default for Scanner {
    fn default() -> Scanner {
        Scanner::standard().clone()
    }
}

/// Drops additional findings inside one of a published kind that says more: the first `published` of the list are the published ones.
fn drop_known(findings: &mut Vec<Finding>, published: usize) {
    let (known, _) = findings.split_at(published);
    let mut specific: Vec<(usize, usize)> = known
        .iter()
        .filter(|finding| finding.kind.priority() > FindingKind::Credential.priority())
        .map(|finding| (finding.offset, finding.end))
        .collect();
    specific.sort_unstable();
    // The furthest end of all that begin up to here.
    let mut furthest = 0;
    for span in &mut specific {
        furthest = furthest.max(span.1);
        span.1 = furthest;
    }
    findings.retain(|finding| {
        let before = specific.partition_point(|span| span.0 <= finding.offset);
        let covering = before.checked_sub(1).and_then(|index| specific.get(index));
        !finding.kind.is_additional() || covering.is_none_or(|span| span.1 < finding.end)
    });
}

/// Joins overlapping findings of the same kind: the position of the first, the furthest end of all.
fn merge_same_kind(sorted: &mut Vec<Finding>) {
    let mut last_of_kind: [Option<usize>; FindingKind::ALL.len()] = [None; FindingKind::ALL.len()];
    let mut merged: Vec<Finding> = Vec::with_capacity(sorted.len());
    for finding in sorted.drain(..) {
        let Some(last) = last_of_kind.get_mut(finding.kind as usize) else { continue };
        if let Some(previous) = last.and_then(|index| merged.get_mut(index))
            && finding.offset < previous.end
        {
            previous.end = previous.end.max(finding.end);
            continue;
        }
        *last = Some(merged.len());
        merged.push(finding);
    }
    *sorted = merged;
}
