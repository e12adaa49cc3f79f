//! Secrets sent as JSON numbers.

use super::super::digits::is_card_number;
use super::super::{Finding, FindingKind, Scanner};

/// A payment card has at least 13 digits; nothing shorter is found in a number but by a pattern.
const SHORTEST: usize = 13;
/// A payment card has at most 19 digits.
const LONGEST_CARD: usize = 19;

/// The findings in a number's literal text, each over the whole number.
///
/// A card number is a whole number, however it is written. A fraction is not taken for one: of random
/// fractions with enough digits, one in ten has a valid check digit.
pub(super) fn scan(scanner: &Scanner, literal: &str) -> Vec<Finding> {
    if literal.len() < SHORTEST && !scanner.has_custom_patterns() {
        return Vec::new();
    }
    let whole = |kind| Finding { kind, offset: 0, end: literal.len() };
    let mut findings: Vec<Finding> = Vec::new();
    for finding in scanner.scan(literal) {
        let is_new = findings.iter().all(|known| known.kind != finding.kind);
        if is_new && finding.kind != FindingKind::CreditCardLuhn {
            findings.push(whole(finding.kind));
        }
    }
    if whole_number_digits(literal).is_some_and(|digits| is_card_number(digits.as_bytes())) {
        findings.push(whole(FindingKind::CreditCardLuhn));
    }
    findings
}

/// The decimal digits of a whole number of at most 19 digits, without sign, fraction and exponent.
fn whole_number_digits(literal: &str) -> Option<String> {
    let unsigned = literal.strip_prefix('-').unwrap_or(literal);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (unsigned, 0),
    };
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{integer}{fraction}");
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    let trailing_zeros = digits.len() - digits.trim_end_matches('0').len();
    // The value is `significant` followed by this many zeros; fewer than none means a fraction.
    let zeros =
        i64::try_from(trailing_zeros).ok()? - i64::try_from(fraction.len()).ok()? + i64::from(exponent);
    let zeros = usize::try_from(zeros).ok()?;
    let fits = significant.len().checked_add(zeros)? <= LONGEST_CARD;
    fits.then(|| format!("{significant}{}", "0".repeat(zeros)))
}
