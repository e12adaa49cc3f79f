//! Byte classes and searches shared by the passes.

/// Whitespace in the ASCII range.
const WHITESPACE: u8 = 1;
/// Ends a secret: whitespace or closing punctuation.
const TERMINATOR: u8 = 2;
/// ASCII and not whitespace.
const TOKEN: u8 = 4;
/// A letter, a digit or one of `+/_-`.
const BASE64: u8 = 8;
/// A hexadecimal digit.
const HEX: u8 = 16;
/// A hexadecimal digit, `:` or `-`.
const SEPARATED_HEX: u8 = 32;

const CLASSES: [u8; 256] = classes();

#[expect(
    clippy::indexing_slicing,
    reason = "both indices are below 256, and the table is built by the compiler"
)]
const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte: u8 = 0;
    while byte < 128 {
        let mut class = match byte {
            b'\t'..=b'\r' | b' ' => WHITESPACE | TERMINATOR,
            b'"' | b'\'' | b',' | b';' | b')' | b']' | b'}' => TOKEN | TERMINATOR,
            b'+' | b'/' | b'_' => TOKEN | BASE64,
            b'-' => TOKEN | BASE64 | SEPARATED_HEX,
            b':' => TOKEN | SEPARATED_HEX,
            _ => TOKEN,
        };
        if byte.is_ascii_alphanumeric() {
            class |= BASE64;
        }
        if byte.is_ascii_hexdigit() {
            class |= HEX | SEPARATED_HEX;
        }
        table[byte as usize] = class;
        byte += 1;
    }
    table
}

#[inline]
fn class_of(byte: u8) -> u8 {
    CLASSES.get(usize::from(byte)).copied().unwrap_or(0)
}

/// Whether the byte is ASCII and not whitespace.
#[inline]
pub(super) fn is_token(byte: u8) -> bool {
    class_of(byte) & TOKEN != 0
}

/// Whether the byte is a letter, a digit or one of `+/_-`.
#[inline]
pub(super) fn is_base64(byte: u8) -> bool {
    class_of(byte) & BASE64 != 0
}

/// Whether the byte is a hexadecimal digit.
#[inline]
pub(super) fn is_hex(byte: u8) -> bool {
    class_of(byte) & HEX != 0
}

/// Whether the byte is a hexadecimal digit, `:` or `-`.
#[inline]
pub(super) fn is_separated_hex(byte: u8) -> bool {
    class_of(byte) & SEPARATED_HEX != 0
}

/// Whether the byte is an ASCII terminator.
#[inline]
pub(super) fn is_ascii_terminator(byte: u8) -> bool {
    class_of(byte) & TERMINATOR != 0
}

/// Whether the character ends a secret.
pub(super) fn is_terminator(character: char) -> bool {
    u8::try_from(character)
        .ok()
        .filter(u8::is_ascii)
        .map_or_else(|| character.is_whitespace(), is_ascii_terminator)
}

/// The first position at or after `from` where `run` does not hold, or the end.
#[inline]
pub(super) fn run_end(bytes: &[u8], from: usize, run: impl Fn(u8) -> bool) -> usize {
    bytes
        .get(from..)
        .and_then(|rest| rest.iter().position(|&byte| !run(byte)))
        .map_or(bytes.len(), |length| from + length)
}

/// The maximal runs of bytes for which `run` holds, as offsets.
pub(super) fn runs(bytes: &[u8], run: impl Fn(u8) -> bool + Copy) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = run_end(bytes, at, |byte| !run(byte));
        let end = run_end(bytes, start, run);
        at = end;
        (start < end).then_some((start, end))
    })
}

/// Search for the next position with a property, cached: questions at rising positions cost one walk in all.
pub(super) struct Next<'t, F> {
    text: &'t str,
    find: F,
    asked_from: usize,
    answer: Option<usize>,
}

impl<'t, F: Fn(&str) -> Option<usize>> Next<'t, F> {
    /// A search over `text`; `find` returns the first such position in the rest of the text.
    pub(super) fn new(text: &'t str, find: F) -> Self {
        Next { text, find, asked_from: usize::MAX, answer: None }
    }

    /// The first such position at or after `from`.
    pub(super) fn at_or_after(&mut self, from: usize) -> Option<usize> {
        let known = self.asked_from <= from && self.answer.is_none_or(|answer| from <= answer);
        if !known {
            self.asked_from = from;
            self.answer =
                self.text.get(from..).and_then(|rest| (self.find)(rest)).map(|distance| from + distance);
        }
        self.answer
    }
}

/// The first terminator of a text, for [`Next`].
pub(super) fn first_terminator(text: &str) -> Option<usize> {
    text.find(is_terminator)
}

/// Byte classes that occur in a text, so that passes without a possible finding are skipped.
#[derive(Debug, Clone, Copy)]
pub(super) struct Summary {
    ascii_digits: usize,
    may_hold_wide_digits: bool,
    /// Whether there is an `@`.
    pub(super) has_at_sign: bool,
    /// Whether there is a `[`.
    pub(super) has_opening_bracket: bool,
}

impl Summary {
    /// Summarises a text in one pass over its bytes, without a branch.
    pub(super) fn of(text: &str) -> Summary {
        let (mut wide, mut at, mut bracket) = (false, false, false);
        let mut ascii_digits = 0;
        for chunk in text.as_bytes().chunks(128) {
            // A chunk's count fits in one byte, which lets the compiler count many bytes at once.
            let mut digits: u8 = 0;
            for &byte in chunk {
                digits = digits.wrapping_add(u8::from(byte.is_ascii_digit()));
                wide |= byte == WIDE_DIGIT_LEAD;
                at |= byte == b'@';
                bracket |= byte == b'[';
            }
            ascii_digits += usize::from(digits);
        }
        Summary { ascii_digits, may_hold_wide_digits: wide, has_at_sign: at, has_opening_bracket: bracket }
    }

    /// Whether there are digits enough for the shortest number we look for.
    pub(super) fn may_hold_digit_secret(self) -> bool {
        self.may_hold_wide_digits || self.ascii_digits >= SHORTEST_DIGIT_SECRET
    }
}

/// The first byte of every full-width digit in UTF-8.
pub(super) const WIDE_DIGIT_LEAD: u8 = 0xEF;
/// A social security number has nine digits.
const SHORTEST_DIGIT_SECRET: usize = 9;
