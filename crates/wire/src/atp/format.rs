//! The formats that the document's schemas name: `uuid`, `date-time` (RFC 3339) and `uri` (RFC 3986).

mod uri;

pub(super) use uri::is_uri;

/// Whether this is a UUID in its hyphenated form, in either case.
pub(super) fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// A moment's spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DateTime {
    /// RFC 3339.
    Zoned,
    /// RFC 3339 without its offset.
    Local,
    Malformed,
}

/// Classifies a `date-time`. A leap second is only valid at 23:59:60 UTC.
pub(super) fn date_time(text: &str) -> DateTime {
    read_date_time(text.as_bytes()).unwrap_or(DateTime::Malformed)
}

fn read_date_time(text: &[u8]) -> Option<DateTime> {
    let mut text = Cursor(text);
    let year = text.digits(4)?;
    text.one_of(b"-")?;
    let month = text.digits(2)?;
    text.one_of(b"-")?;
    let day = text.digits(2)?;
    if day == 0 || day > days_of_month(year, month)? {
        return None;
    }
    text.one_of(b"Tt")?;
    let hour = text.digits(2)?;
    text.one_of(b":")?;
    let minute = text.digits(2)?;
    text.one_of(b":")?;
    let second = text.digits(2)?;
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    if text.one_of(b".").is_some() {
        text.digits(1)?;
        while text.digits(1).is_some() {}
    }
    let is_leap_second = second == 60;
    let of_day = hour * 60 + minute;
    let (found, utc_minute) = match text.one_of(b"Zz+-") {
        None => (DateTime::Local, of_day),
        Some(b'Z' | b'z') => (DateTime::Zoned, of_day),
        Some(sign) => {
            let offset_hour = text.digits(2)?;
            text.one_of(b":")?;
            let offset_minute = text.digits(2)?;
            if offset_hour > 23 || offset_minute > 59 {
                return None;
            }
            let offset = offset_hour * 60 + offset_minute;
            let shifted = if sign == b'+' { of_day + 24 * 60 - offset } else { of_day + offset };
            (DateTime::Zoned, shifted % (24 * 60))
        }
    };
    let in_order = !is_leap_second || utc_minute == 24 * 60 - 1;
    (text.0.is_empty() && in_order).then_some(found)
}

fn days_of_month(year: u32, month: u32) -> Option<u32> {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => Some(31),
        4 | 6 | 9 | 11 => Some(30),
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => Some(29),
        2 => Some(28),
        _ => None,
    }
}

struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn digits(&mut self, count: usize) -> Option<u32> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        let mut value = 0;
        for digit in digits {
            value = value * 10 + char::from(*digit).to_digit(10)?;
        }
        self.0 = rest;
        Some(value)
    }

    fn one_of(&mut self, allowed: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        allowed.contains(first).then(|| {
            self.0 = rest;
            *first
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids() {
        assert!(is_uuid("550e8400-e29b-41d4-a716-446655440000"));
        assert!(is_uuid("550E8400-E29B-41D4-A716-44665544000F"));
        for other in [
            "",
            "550e8400e29b41d4a716446655440000",
            "550e8400-e29b-41d4-a716-44665544000g",
            "{550e8400-e29b-41d4-a716-446655440000}",
        ] {
            assert!(!is_uuid(other), "{other}");
        }
    }

    #[test]
    fn moments() {
        for zoned in [
            "2025-01-21T10:30:45.123Z",
            "2025-01-21t10:30:45z",
            "2024-02-29T00:00:00+05:30",
            "2025-01-21T10:30:45.123456+00:00",
            "2016-12-31T23:59:60Z",
            "2017-01-01T00:59:60+01:00",
            "2016-12-31T15:59:60-08:00",
        ] {
            assert_eq!(date_time(zoned), DateTime::Zoned, "{zoned}");
        }
        for local in ["2025-01-21T10:30:45", "2025-01-21T10:30:45.123456"] {
            assert_eq!(date_time(local), DateTime::Local, "{local}");
        }
        for malformed in [
            "",
            "2025-01-21",
            "2025-01-21 10:30:45Z",
            "2025-1-21T10:30:45Z",
            "2025-02-29T10:30:45Z",
            "1900-02-29T10:30:45Z",
            "2025-13-01T10:30:45Z",
            "2025-01-00T10:30:45Z",
            "2025-01-21T24:00:00Z",
            "2025-01-21T10:30:45.Z",
            "2025-01-21T10:30:45+0000",
            "2025-01-21T10:30:45+24:00",
            "2025-01-21T10:30:60Z",
            "2025-01-21T10:30:45Z ",
            "2025-01-21T10:30:45Zulu",
            "٢٠٢٥-01-21T10:30:45Z",
        ] {
            assert_eq!(date_time(malformed), DateTime::Malformed, "{malformed}");
        }
    }
}
