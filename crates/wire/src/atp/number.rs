//! Numbers as their JSON literals, read without loss.

use proctor_core::json::Json;

/// A JSON number, as its literal text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number<'a>(&'a str);

impl<'a> Number<'a> {
    /// The number of a JSON value, if it is one.
    pub fn of(value: &'a Json) -> Option<Number<'a>> {
        match value {
            Json::Number(literal) => Some(Number(literal)),
            _ => None,
        }
    }

    /// The literal, as it was sent.
    pub fn literal(self) -> &'a str {
        self.0
    }

    /// The nearest double; infinite if the number is beyond all of them.
    pub fn as_f64(self) -> f64 {
        self.0.parse().unwrap_or(f64::NAN)
    }

    /// Whether the number is less than zero. `-0` is not.
    pub fn is_negative(self) -> bool {
        self.0.starts_with('-') && !self.parts().is_zero()
    }

    /// Whether the number is whole, however it is written: JSON Schema calls `1.0` and `1e2` integers.
    pub fn is_integer(self) -> bool {
        let parts = self.parts();
        parts.is_zero() || parts.scale >= 0
    }

    /// The value, if it is a whole number of 64 bits without sign.
    pub fn as_u64(self) -> Option<u64> {
        let parts = self.parts();
        if parts.is_zero() {
            return Some(0);
        }
        if self.0.starts_with('-') || parts.scale < 0 {
            return None;
        }
        let mut value = 0u64;
        for digit in parts.digits().take(parts.significant) {
            value = value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
        }
        value.checked_mul(10u64.checked_pow(u32::try_from(parts.scale).ok()?)?)
    }

    fn parts(self) -> Parts<'a> {
        let text = self.0.strip_prefix('-').unwrap_or(self.0);
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        // An exponent beyond 64 bits acts like the largest one of its sign.
        let limit = if exponent.starts_with('-') { i64::MIN } else { i64::MAX };
        let exponent = exponent.parse().unwrap_or(limit);
        let digits = whole.len() + fraction.len();
        let zeros = fraction.bytes().rev().chain(whole.bytes().rev()).take_while(|digit| *digit == b'0');
        let zeros = zeros.count();
        let shift = i64::try_from(zeros).unwrap_or(i64::MAX);
        let shift = shift.saturating_sub(i64::try_from(fraction.len()).unwrap_or(i64::MAX));
        Parts { whole, fraction, significant: digits - zeros, scale: exponent.saturating_add(shift) }
    }
}

impl From<Number<'_>> for Json {
    fn from(number: Number<'_>) -> Json {
        Json::Number(number.0.into())
    }
}

/// A literal without sign: the first `significant` digits of `whole` and `fraction`, times ten to the power of `scale`.
struct Parts<'a> {
    whole: &'a str,
    fraction: &'a str,
    significant: usize,
    scale: i64,
}

impl<'a> Parts<'a> {
    fn is_zero(&self) -> bool {
        self.significant == 0
    }

    fn digits(&self) -> impl Iterator<Item = u8> + use<'a> {
        self.whole.bytes().chain(self.fraction.bytes())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn integers_in_every_spelling() {
        for (literal, value) in [
            ("0", 0),
            ("-0", 0),
            ("0.0e5", 0),
            ("12", 12),
            ("12.0", 12),
            ("1.2e1", 12),
            ("1200e-2", 12),
            ("1E3", 1000),
        ] {
            assert_eq!(Number(literal).as_u64(), Some(value), "{literal}");
            assert!(Number(literal).is_integer(), "{literal}");
        }
        assert_eq!(Number("18446744073709551615").as_u64(), Some(u64::MAX));
        for literal in ["18446744073709551616", "1e20", "1e99999999999999999999", "-5"] {
            assert_eq!(Number(literal).as_u64(), None, "{literal}");
            assert!(Number(literal).is_integer(), "{literal}");
        }
        for literal in ["0.5", "12.5", "1e-1", "125e-2", "1e-99999999999999999999"] {
            assert_eq!(Number(literal).as_u64(), None, "{literal}");
            assert!(!Number(literal).is_integer(), "{literal}");
        }
        assert!(Number("-0.1").is_negative());
        assert!(!Number("-0.0").is_negative());
        assert!(Number("1e400").as_f64().is_infinite());
    }

    proptest! {
        #[test]
        fn agrees_with_exact_arithmetic(mantissa in 0u64..1_000_000, places in 0usize..6, exponent in -6i32..6) {
            let digits = format!("{mantissa:07}");
            let (whole, fraction) = digits.split_at(7 - places);
            let whole = whole.trim_start_matches('0');
            let whole = if whole.is_empty() { "0" } else { whole };
            let dot = if fraction.is_empty() { "" } else { "." };
            let literal = format!("{whole}{dot}{fraction}e{exponent}");
            let shift = exponent - i32::try_from(places).unwrap();
            let power = 10u64.pow(shift.unsigned_abs());
            let expected = if shift >= 0 {
                Some(mantissa * power)
            } else {
                (mantissa % power == 0).then_some(mantissa / power)
            };
            let number = Number(&literal);
            prop_assert_eq!(number.as_u64(), expected, "{}", literal);
            prop_assert_eq!(number.is_integer(), expected.is_some(), "{}", literal);
        }
    }
}
