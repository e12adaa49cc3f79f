//! Pass 3: e-mail addresses.

use super::bytes::{Next, first_terminator};
use super::{Finding, FindingKind};

const MAX_LOCAL_BYTES: usize = 64;
const MAX_DOMAIN_BYTES: usize = 255;
const MIN_DOMAIN_BYTES: usize = 3;

/// Finds every `@` with a short local part before it and a dotted domain after it.
pub(super) fn find(text: &str, findings: &mut Vec<Finding>) {
    let mut terminators = Next::new(text, first_terminator);
    let mut dots = Next::new(text, |rest| rest.find('.'));
    let mut previous_at = 0;
    let mut offset = 0;
    for (at, _) in text.match_indices('@') {
        // Only what follows the sign before is new: a long row of signs is walked once.
        if let Some(start) = text.get(previous_at..at).and_then(after_last_delimiter) {
            offset = previous_at + start;
        }
        previous_at = at;
        if !(1..=MAX_LOCAL_BYTES).contains(&(at - offset)) {
            continue;
        }
        let domain = at + 1;
        let unbounded_end = terminators.at_or_after(domain).unwrap_or(text.len());
        let end = text.floor_char_boundary(unbounded_end.min(domain + MAX_DOMAIN_BYTES));
        let has_dot = dots.at_or_after(domain).is_some_and(|dot| dot < end);
        if has_dot && end - domain >= MIN_DOMAIN_BYTES {
            findings.push(Finding { kind: FindingKind::EmailAddress, offset, end });
        }
    }
}

fn after_last_delimiter(text: &str) -> Option<usize> {
    let (place, delimiter) =
        text.char_indices().rfind(|&(_, character)| is_local_part_delimiter(character))?;
    Some(place + delimiter.len_utf8())
}

fn is_local_part_delimiter(character: char) -> bool {
    matches!(character, '<' | ',' | ';' | '"' | '\'') || character.is_whitespace()
}
