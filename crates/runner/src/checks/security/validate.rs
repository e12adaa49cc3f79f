//! Validation of matches, beyond their pattern.

/// Validations of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Validation {
    /// The pattern is enough.
    None,
    /// A payment card number with a valid check digit.
    Luhn,
    /// A social security number that can exist.
    Ssn,
    /// A value that is no placeholder.
    NotPlaceholder,
}

/// Whether a match is a finding.
pub(super) fn is_real(validation: Validation, found: &str) -> bool {
    match validation {
        Validation::None => true,
        Validation::Luhn => has_valid_check_digit(found),
        Validation::Ssn => is_possible_ssn(found),
        Validation::NotPlaceholder => !is_placeholder(found),
    }
}

fn has_valid_check_digit(found: &str) -> bool {
    let digits: Vec<u32> = found.chars().filter_map(|character| character.to_digit(10)).collect();
    if !(13..=19).contains(&digits.len()) || digits.iter().all(|digit| Some(digit) == digits.first()) {
        return false;
    }
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(index, digit)| match (index % 2, digit * 2) {
            (0, _) => *digit,
            (_, doubled) if doubled > 9 => doubled - 9,
            (_, doubled) => doubled,
        })
        .sum();
    sum.is_multiple_of(10)
}

/// The areas 000, 666 and from 900 on, the group 00 and the serial 0000 are never assigned.
fn is_possible_ssn(found: &str) -> bool {
    let parts: Vec<&str> = found.split('-').collect();
    match parts.as_slice() {
        [area, group, serial] => {
            !matches!(*area, "000" | "666") && !area.starts_with('9') && *group != "00" && *serial != "0000"
        }
        _ => false,
    }
}

fn is_placeholder(found: &str) -> bool {
    const WORDS: &[&str] = &[
        "example",
        "placeholder",
        "changeme",
        "change_me",
        "your_",
        "your-",
        "xxxx",
        "****",
        "dummy",
        "<",
        "${",
        "os.environ",
        "process.env",
        "getenv",
    ];
    let found = found.to_lowercase();
    WORDS.iter().any(|word| found.contains(word))
}
