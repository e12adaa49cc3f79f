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
    for (at, _) in text.match_indices('@') {
        let Some(offset) = local_part_start(text, at) else { continue };
        let domain = at + 1;
        let unbounded_end = terminators.at_or_after(domain).unwrap_or(text.len());
        let end = text.floor_char_boundary(unbounded_end.min(domain + MAX_DOMAIN_BYTES));
        let has_dot = dots.at_or_after(domain).is_some_and(|dot| dot < end);
        if has_dot && end - domain >= MIN_DOMAIN_BYTES {
            findings.push(Finding { kind: FindingKind::EmailAddress, offset, end });
        }
    }
}

/// Where the local part before the `@` at `at` starts, unless it is empty or too long.
fn local_part_start(text: &str, at: usize) -> Option<usize> {
    let mut start = at;
    for (place, character) in text.get(..at)?.char_indices().rev() {
        if is_local_part_delimiter(character) {
            break;
        }
        if at - place > MAX_LOCAL_BYTES {
            return None;
        }
        start = place;
    }
    (start < at).then_some(start)
}

fn is_local_part_delimiter(character: char) -> bool {
    matches!(character, '<' | ',' | ';' | '"' | '\'') || character.is_whitespace()
}
