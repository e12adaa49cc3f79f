//! Cuts findings out of a text.

use super::{Finding, FindingKind};

/// Replacement of a whole text that cannot be redacted in parts.
pub const REDACTED_WHOLE: &str = "[REDACTED]";

/// The text with every finding replaced by its label. Findings that overlap are replaced together, under the
/// label of the highest priority. A finding that does not fit the text makes the whole text `[REDACTED]`.
pub fn redact(text: &str, findings: &[Finding]) -> String {
    if findings.is_empty() {
        return text.to_owned();
    }
    // Every span is checked before spans are joined: joining could hide one that does not fit.
    let all_fit = findings.iter().all(|finding| text.get(finding.offset..finding.end).is_some());
    let cut = if all_fit { replace_spans(text, &joined(findings)) } else { None };
    cut.unwrap_or_else(|| REDACTED_WHOLE.to_owned())
}

/// The kind that labels a position where all of `kinds` were found: the highest priority, the first of equals.
pub fn leading_kind(kinds: impl IntoIterator<Item = FindingKind>) -> Option<FindingKind> {
    kinds.into_iter().reduce(
        |leading, kind| {
            if kind.priority() > leading.priority() { kind } else { leading }
        },
    )
}

/// The findings in order, those that overlap joined into one.
fn joined(findings: &[Finding]) -> Vec<Finding> {
    let mut sorted = findings.to_vec();
    sorted.sort_by_key(|finding| (finding.offset, finding.end));
    sorted.dedup_by(|next, kept| {
        let overlaps = next.offset < kept.end;
        if overlaps {
            kept.end = kept.end.max(next.end);
            if next.kind.priority() > kept.kind.priority() {
                kept.kind = next.kind;
            }
        }
        overlaps
    });
    sorted
}

/// Replaces spans that do not overlap; `None` if one does not fit the text.
fn replace_spans(text: &str, spans: &[Finding]) -> Option<String> {
    let mut redacted = String::with_capacity(text.len());
    let mut copied_to = 0;
    for span in spans {
        redacted.push_str(text.get(copied_to..span.offset)?);
        redacted.push_str(span.kind.replacement());
        copied_to = span.end;
    }
    redacted.push_str(text.get(copied_to..)?);
    Some(redacted)
}
