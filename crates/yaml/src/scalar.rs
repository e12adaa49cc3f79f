//! Plain (unquoted) scalars by the core schema of YAML 1.2.

/// The type of a plain scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plain {
    /// `null`, `~` or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, infinities and not-a-number included.
    Number,
    /// A string.
    Text,
}

/// The type of a plain scalar.
///
/// ```
/// use proctor_yaml::scalar::{Plain, resolve};
/// assert_eq!(resolve("0x1F"), Plain::Number);
/// assert_eq!(resolve("yes"), Plain::Text);
/// ```
pub fn resolve(text: &str) -> Plain {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Plain::Null,
        "true" | "True" | "TRUE" => Plain::Bool(true),
        "false" | "False" | "FALSE" => Plain::Bool(false),
        _ if is_number(text) => Plain::Number,
        _ => Plain::Text,
    }
}

/// The JSON literal for a YAML number; `None` for infinities, for what is not a number, and for hexadecimal or octal
/// numbers that do not fit.
pub fn json_number(text: &str) -> Option<String> {
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok().map(|number| number.to_string());
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return u64::from_str_radix(digits, 8).ok().map(|number| number.to_string());
    }
    if !is_number(text) || is_special(text) {
        return None;
    }
    let (sign, magnitude) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let end = magnitude.find(['e', 'E']).unwrap_or(magnitude.len());
    let (digits, exponent) = magnitude.split_at_checked(end)?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!("{sign}{whole}{point}{fraction}{exponent}"))
}

fn is_number(text: &str) -> bool {
    if let Some(digits) = text.strip_prefix("0x") {
        return !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return !digits.is_empty() && digits.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
    }
    is_special(text) || is_decimal(text)
}

fn is_special(text: &str) -> bool {
    matches!(text, ".nan" | ".NaN" | ".NAN")
        || matches!(text.strip_prefix(['-', '+']).unwrap_or(text), ".inf" | ".Inf" | ".INF")
}

fn is_decimal(text: &str) -> bool {
    let magnitude = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (digits, exponent) = match magnitude.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (magnitude, None),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    all_digits(whole)
        && all_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && all_digits(exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_schema_decides_what_a_plain_scalar_is() {
        for text in [
            "0", "-7", "+7", "007", "1.5", "1.", ".5", "1e3", "-1.5E-3", "0x1F", "0o17", ".inf", "-.INF",
            ".nan",
        ] {
            assert_eq!(resolve(text), Plain::Number, "{text}");
        }
        for text in [
            "yes", "on", "09:00", "1_000", "0x", "0xg", "0o8", "1e", ".", "-", "+", "e3", "1.2.3", "--1",
            "nan",
        ] {
            assert_eq!(resolve(text), Plain::Text, "{text}");
        }
        assert_eq!(resolve("Null"), Plain::Null);
        assert_eq!(resolve("TRUE"), Plain::Bool(true));
        assert_eq!(resolve("tRUE"), Plain::Text);
    }

    #[test]
    fn numbers_become_json_literals_without_losing_digits() {
        let cases = [
            ("0.10", "0.10"),
            ("+1", "1"),
            ("007", "7"),
            ("-.5", "-0.5"),
            ("1.", "1"),
            ("1.e3", "1e3"),
            ("0x1F", "31"),
            ("0o17", "15"),
            ("12345678901234567890.123456789", "12345678901234567890.123456789"),
            ("00", "0"),
        ];
        for (yaml, json) in cases {
            assert_eq!(json_number(yaml).as_deref(), Some(json), "{yaml}");
        }
        for text in [".inf", "-.inf", ".nan", "abc", "0xFFFFFFFFFFFFFFFFF"] {
            assert_eq!(json_number(text), None, "{text}");
        }
    }
}
