//! Pass 2: social security and payment card numbers.

use super::bytes::WIDE_DIGIT_LEAD;
use super::{Finding, FindingKind};

/// Most characters of a number that are examined, separators included.
const MAX_WALK: usize = 24;

/// Finds numbers, in ASCII or full-width digits, plain or with single separators between digits.
pub(super) fn find(text: &str, findings: &mut Vec<Finding>) {
    let mut at = 0;
    while let Some(offset) = next_digit(text, at) {
        let walk = Walk::from(text, offset);
        if let Some(kind) = walk.kind() {
            findings.push(Finding { kind, offset, end: walk.end });
        }
        at = walk.end;
    }
}

/// Whether the digits are as many as a payment card has and end in a valid check digit.
pub(super) fn is_card_number(digits: &[u8]) -> bool {
    if !(13..=19).contains(&digits.len()) {
        return false;
    }
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(index, digit)| {
            let value = u32::from(digit.wrapping_sub(b'0'));
            match (index % 2, value) {
                (0, _) => value,
                (_, 0..=4) => value * 2,
                _ => value * 2 - 9,
            }
        })
        .sum();
    sum.is_multiple_of(10)
}

fn next_digit(text: &str, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let rest = text.as_bytes().get(at..)?;
        at += rest.iter().position(|byte| byte.is_ascii_digit() || *byte == WIDE_DIGIT_LEAD)?;
        let character = text.get(at..)?.chars().next()?;
        if matches!(normalised(character), Some(b'0'..=b'9')) {
            return Some(at);
        }
        at += character.len_utf8();
    }
}

/// The ASCII form of a digit or separator.
fn normalised(character: char) -> Option<u8> {
    match character {
        '0'..='9' | ' ' | '-' | '.' => u8::try_from(character).ok(),
        '\u{FF10}'..='\u{FF19}' => u8::try_from(u32::from(character) - 0xFF10 + u32::from(b'0')).ok(),
        '\u{3000}' => Some(b' '),
        '\u{FF0D}' => Some(b'-'),
        '\u{FF0E}' => Some(b'.'),
        _ => None,
    }
}

/// A number as far as it was walked, in ASCII form.
struct Walk {
    normalised: Short,
    digits: Short,
    /// The byte after the last digit.
    end: usize,
}

impl Walk {
    fn from(text: &str, offset: usize) -> Walk {
        let mut walk = Walk { normalised: Short::default(), digits: Short::default(), end: offset };
        let mut separator = None;
        let mut at = offset;
        for character in text.get(offset..).unwrap_or_default().chars().take(MAX_WALK) {
            at += character.len_utf8();
            match normalised(character) {
                Some(digit @ b'0'..=b'9') => {
                    // A separator counts only now that a digit follows it.
                    if let Some(separator) = separator.take() {
                        walk.normalised.push(separator);
                    }
                    walk.normalised.push(digit);
                    walk.digits.push(digit);
                    walk.end = at;
                }
                Some(found) if separator.is_none() => separator = Some(found),
                _ => break,
            }
        }
        walk
    }

    fn kind(&self) -> Option<FindingKind> {
        if is_social_security_number(self.normalised.as_slice()) {
            Some(FindingKind::SsnPattern)
        } else if is_card_number(self.digits.as_slice()) {
            Some(FindingKind::CreditCardLuhn)
        } else {
            None
        }
    }
}

fn is_social_security_number(normalised: &[u8]) -> bool {
    normalised.len() == 11
        && normalised.iter().enumerate().all(|(index, byte)| match index {
            3 | 6 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

/// Buffer of at most [`MAX_WALK`] bytes, without allocation.
#[derive(Default)]
struct Short {
    bytes: [u8; MAX_WALK],
    length: usize,
}

impl Short {
    fn push(&mut self, byte: u8) {
        if let Some(slot) = self.bytes.get_mut(self.length) {
            *slot = byte;
            self.length += 1;
        }
    }

    fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}
