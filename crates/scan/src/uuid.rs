//! Identifiers that are no payment card: UUIDs, and hexadecimal digests of the usual lengths.

use super::{Finding, FindingKind};

const UUID: usize = 36;
/// Lengths of trace ids, SHA-1 and SHA-256 in hexadecimal.
const DIGESTS: [usize; 3] = [32, 40, 64];
const LONGEST: usize = 64;

/// Whether the finding is a card number that lies in an identifier.
pub(super) fn is_in_identifier(text: &str, finding: &Finding) -> bool {
    if finding.kind != FindingKind::CreditCardLuhn {
        return false;
    }
    let bytes = text.as_bytes();
    let before = bytes.get(..finding.offset).unwrap_or_default();
    let after = bytes.get(finding.end..).unwrap_or_default();
    let is_hex = |byte: &&u8| byte.is_ascii_hexdigit();
    let is_part = |byte: &&u8| byte.is_ascii_hexdigit() || **byte == b'-';
    let left = before.iter().rev().take(LONGEST).take_while(is_part).count();
    let right = after.iter().take(LONGEST).take_while(is_part).count();
    let from = finding.offset - left;
    let run = bytes.get(from..finding.end + right).unwrap_or_default();
    let overlaps =
        |start: usize, length: usize| from + start < finding.end && from + start + length > finding.offset;
    let is_uuid = run
        .windows(UUID)
        .enumerate()
        .any(|(start, window)| overlaps(start, UUID) && is_uuid(window) && stands_alone(run, start, UUID));
    if is_uuid {
        return true;
    }
    let hex_before = before.iter().rev().take(LONGEST).take_while(is_hex).count();
    let hex_after = after.iter().take(LONGEST).take_while(is_hex).count();
    let inside = bytes.get(finding.offset..finding.end).unwrap_or_default();
    let length = hex_before + inside.len() + hex_after;
    inside.iter().all(u8::is_ascii_digit) && DIGESTS.contains(&length)
}

fn is_uuid(window: &[u8]) -> bool {
    window.iter().enumerate().all(|(index, byte)| match index {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

/// Whether no hexadecimal digit touches the window.
fn stands_alone(run: &[u8], start: usize, length: usize) -> bool {
    let is_digit = |at: Option<usize>| at.and_then(|at| run.get(at)).is_some_and(u8::is_ascii_hexdigit);
    !is_digit(start.checked_sub(1)) && !is_digit(start.checked_add(length))
}
