//! Pass 4: text too random to be prose.

use std::borrow::Cow;

use super::bytes::{is_ascii_terminator, is_base64, is_hex, is_separated_hex, is_token, run_end, runs};
use super::{Finding, FindingKind};

/// Shortest token that is examined.
const MIN_RUN: usize = 20;
/// The longest token judged as a whole.
const MAX_TOKEN: usize = 64;
/// Hexadecimal text carries at most four bits a byte and never clears the bar; this many digits are a key.
const MIN_HEX: usize = 64;
/// A secret split in two is judged joined, when the parts have this many bytes together.
const MIN_JOINED: usize = 23;
/// Minimum of distinct bytes: fewer cannot reach either threshold, 22 of them carry less than 4.5 bits.
const MIN_DISTINCT: usize = 23;

const HIGH_ENTROPY: f64 = 4.5;
/// The bar for long text that is base64 and little else.
const LONG_ENTROPY: f64 = 4.25;
const LONG_RUN: usize = 40;
const MAX_REPEATED: usize = 3;

type Span = (usize, usize);

/// Finds random text. `may_hold_labels` is false when there is no `[` in the text. `findings` holds those of
/// the earlier passes.
pub(super) fn find(text: &str, may_hold_labels: bool, findings: &mut Vec<Finding>) {
    if text.len() < MIN_RUN {
        return;
    }
    let blanked = if may_hold_labels { blank_labels(text) } else { Cow::Borrowed(text) };
    let text = blanked.as_ref();
    let bytes = text.as_bytes();
    let mut split_secrets = Vec::new();
    let mut previous: Option<Span> = None;
    for token in runs(bytes, is_token) {
        let (start, end) = token;
        if end - start >= MIN_RUN {
            find_in_token(bytes, token, findings);
        }
        if let Some(previous) = previous
            && end - previous.0 > MIN_JOINED
        {
            split_secrets.extend(split_secret(text, previous, token));
        }
        previous = Some(token);
    }
    if !split_secrets.is_empty() {
        report_split_secrets(&split_secrets, findings);
    }
}

/// Scans one run of ASCII without whitespace that is long enough.
fn find_in_token(bytes: &[u8], (start, end): Span, findings: &mut Vec<Finding>) {
    let Some(token) = bytes.get(start..end) else { return };
    let mut report = |from: usize, to: usize| {
        findings.push(Finding {
            kind: FindingKind::GenericHighEntropy,
            offset: start + from,
            end: start + to,
        });
    };
    if token.len() <= MAX_TOKEN && clears_bar(token, &[]) {
        // A token that opens with a terminator would give an empty span: what is cut then reaches to the first
        // terminator after the opening ones.
        let opening = run_end(token, 0, is_ascii_terminator);
        report(0, run_end(token, opening, |byte| !is_ascii_terminator(byte)));
    }
    for (from, to) in runs(token, is_base64).filter(|(from, to)| to - from >= MIN_RUN) {
        let run = token.get(from..to).unwrap_or_default();
        if clears_bar(run, &[]) {
            report(from, to);
        }
        if run.len() >= MIN_HEX {
            for (hex_from, hex_to) in runs(run, is_hex).filter(|(from, to)| to - from >= MIN_HEX) {
                report(from + hex_from, from + hex_to);
            }
        }
    }
    if token.len() > MIN_HEX {
        for (from, to) in runs(token, is_separated_hex).filter(|(from, to)| to - from > MIN_HEX) {
            let run = token.get(from..to).unwrap_or_default();
            let digits = run.iter().filter(|&&byte| is_hex(byte)).count();
            if digits >= MIN_HEX
                && digits < run.len()
                && let Some(first) = run.iter().position(|&byte| is_hex(byte))
                && let Some(last) = run.iter().rposition(|&byte| is_hex(byte))
            {
                report(from + first, from + last + 1);
            }
        }
    }
}

/// Two base64 runs with exactly one whitespace or non-ASCII character between them, which are random together.
fn split_secret(text: &str, before: Span, after: Span) -> Option<(Span, Span)> {
    let mut gap = text.get(before.1..after.0)?.chars();
    if gap.next().is_none() || gap.next().is_some() {
        return None;
    }
    let bytes = text.as_bytes();
    let left = bytes.get(before.0..before.1)?;
    let left_length = left.iter().rev().take_while(|&&byte| is_base64(byte)).take(MAX_TOKEN + 1).count();
    let right = bytes.get(after.0..after.1)?;
    let right_length = right.iter().take_while(|&&byte| is_base64(byte)).take(MAX_TOKEN + 1).count();
    let joined = left_length + right_length;
    if left_length == 0 || right_length == 0 || !(MIN_JOINED..=MAX_TOKEN).contains(&joined) {
        return None;
    }
    let (left_span, right_span) = ((before.1 - left_length, before.1), (after.0, after.0 + right_length));
    let left_run = bytes.get(left_span.0..left_span.1)?;
    let right_run = bytes.get(right_span.0..right_span.1)?;
    clears_bar(left_run, right_run).then_some((left_span, right_span))
}

/// Reports the pairs of which no part overlaps an earlier finding.
fn report_split_secrets(pairs: &[(Span, Span)], findings: &mut Vec<Finding>) {
    let mut covered: Vec<Span> = findings.iter().map(|finding| (finding.offset, finding.end)).collect();
    covered.sort_unstable();
    covered.dedup_by(|next, kept| {
        let overlaps = next.0 < kept.1;
        if overlaps {
            kept.1 = kept.1.max(next.1);
        }
        overlaps
    });
    let is_free = |(start, end): Span| {
        let first_ending_after = covered.partition_point(|span| span.1 <= start);
        covered.get(first_ending_after).is_none_or(|span| span.0 >= end)
    };
    let mut reported_to = 0;
    for &(left, right) in pairs {
        if left.0 >= reported_to && is_free(left) && is_free(right) {
            for (offset, end) in [left, right] {
                findings.push(Finding { kind: FindingKind::GenericHighEntropy, offset, end });
            }
            reported_to = right.1;
        }
    }
}

/// Whether the joined text (all ASCII) is random enough.
fn clears_bar(head: &[u8], tail: &[u8]) -> bool {
    let joined = || head.iter().chain(tail).copied();
    let distinct = joined().fold(0_u128, |seen, byte| seen | 1 << (byte & 0x7F)).count_ones() as usize;
    if distinct < MIN_DISTINCT {
        return false;
    }
    let entropy = shannon_entropy(joined());
    if entropy > HIGH_ENTROPY {
        return true;
    }
    let length = head.len() + tail.len();
    let symbols = joined().filter(|byte| matches!(byte, b'+' | b'/' | b'-' | b'_')).count();
    length >= LONG_RUN
        && entropy > LONG_ENTROPY
        && joined().all(is_base64)
        && symbols <= length / 10
        && longest_repetition(joined()) <= MAX_REPEATED
}

/// Bits a byte.
fn shannon_entropy(ascii: impl Iterator<Item = u8>) -> f64 {
    let mut counts = [0_u32; 128];
    let mut total = 0.0;
    for byte in ascii {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
            total += 1.0;
        }
    }
    counts
        .iter()
        .filter(|&&count| count > 0)
        .map(|&count| {
            let share = f64::from(count) / total;
            -share * share.log2()
        })
        .sum()
}

fn longest_repetition(bytes: impl Iterator<Item = u8>) -> usize {
    let mut longest = 0;
    let mut current = 0;
    let mut previous = None;
    for byte in bytes {
        current = if previous == Some(byte) { current + 1 } else { 1 };
        longest = longest.max(current);
        previous = Some(byte);
    }
    longest
}

const LABEL_OPENING: &str = "[REDACTED";

/// The text with our own labels replaced by as many spaces: a label is not a secret.
fn blank_labels(text: &str) -> Cow<'_, str> {
    let mut blanked: Option<String> = None;
    let mut copied_to = 0;
    for (start, _) in text.match_indices(LABEL_OPENING) {
        let Some(length) = text.get(start..).and_then(label_length) else { continue };
        let target = blanked.get_or_insert_with(|| String::with_capacity(text.len()));
        target.push_str(text.get(copied_to..start).unwrap_or_default());
        target.extend(std::iter::repeat_n(' ', length));
        copied_to = start + length;
    }
    match blanked {
        Some(mut target) => {
            target.push_str(text.get(copied_to..).unwrap_or_default());
            Cow::Owned(target)
        }
        None => Cow::Borrowed(text),
    }
}

/// The length of the label a text starts with.
fn label_length(text: &str) -> Option<usize> {
    let after = text.strip_prefix(LABEL_OPENING)?;
    if after.starts_with(']') {
        return Some(LABEL_OPENING.len() + 1);
    }
    let named = after.strip_prefix(':')?;
    FindingKind::ALL
        .into_iter()
        .find(|kind| named.strip_prefix(kind.name()).is_some_and(|rest| rest.starts_with(']')))
        .map(|kind| kind.replacement().len())
}
