//! One line of allowed signers: principals, options, key.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::Entry;
use crate::ssh::public::SshPublicKey;

const BLANK: [char; 2] = [' ', '\t'];

/// Reads a line that is neither empty nor a comment; none if it has a mistake.
pub(super) fn parse(line: &str, number: usize, zone: &TimeZone) -> Option<Entry> {
    let (principals, rest) = first_field(line)?;
    let (options, key) = match key(rest) {
        Some(key) => (Options::default(), key),
        None => {
            let (options, rest) = rest.split_at_checked(options_end(rest)?)?;
            (Options::parse(options, zone)?, key(rest.trim_start_matches(BLANK))?)
        }
    };
    Some(Entry {
        line: number,
        principals: principals.to_owned(),
        is_authority: options.is_authority,
        namespaces: options.namespaces,
        valid_after: options.valid_after,
        valid_before: options.valid_before,
        key,
    })
}

/// Principals: up to white space, or between quotes where they begin with one.
fn first_field(line: &str) -> Option<(&str, &str)> {
    let (field, rest) = match line.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?,
        None => line.split_once(BLANK)?,
    };
    (!field.is_empty()).then(|| (field, rest.trim_start_matches(BLANK)))
}

/// Key type and base64; a comment may follow.
fn key(text: &str) -> Option<SshPublicKey> {
    let mut words = text.split(BLANK).filter(|word| !word.is_empty());
    let type_name = words.next()?;
    let blob = STANDARD.decode(words.next()?).ok()?;
    let key = SshPublicKey::from_blob(&blob).ok()?;
    (key.type_name() == type_name).then_some(key)
}

/// End of the options: white space outside of quotes.
fn options_end(text: &str) -> Option<usize> {
    let mut is_quoted = false;
    let mut bytes = text.bytes().enumerate().peekable();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' if bytes.peek().is_some_and(|(_, next)| *next == b'"') => {
                bytes.next();
            }
            b'"' => is_quoted = !is_quoted,
            b' ' | b'\t' if !is_quoted => return Some(at),
            _ => {}
        }
    }
    None
}

#[derive(Debug, Default)]
struct Options {
    is_authority: bool,
    namespaces: Option<String>,
    valid_after: Option<i64>,
    valid_before: Option<i64>,
}

impl Options {
    /// Reads comma-separated options. An unknown one, or one given twice, makes the line unusable: it may have been a restriction.
    fn parse(text: &str, zone: &TimeZone) -> Option<Options> {
        let mut options = Options::default();
        let mut rest = text;
        loop {
            rest = options.read_one(rest, zone)?;
            if rest.is_empty() {
                break;
            }
            rest = rest.strip_prefix(',').filter(|next| !next.is_empty())?;
        }
        match (options.valid_after, options.valid_before) {
            (Some(after), Some(before)) if before <= after => None,
            _ => Some(options),
        }
    }

    fn read_one<'a>(&mut self, text: &'a str, zone: &TimeZone) -> Option<&'a str> {
        if let Some(rest) = strip_name(text, "cert-authority") {
            self.is_authority = true;
            return Some(rest);
        }
        if let Some(rest) = strip_name(text, "namespaces=") {
            let (value, rest) = quoted(rest)?;
            return self.namespaces.replace(value).is_none().then_some(rest);
        }
        if let Some(rest) = strip_name(text, "valid-after=") {
            let (value, rest) = quoted(rest)?;
            return self.valid_after.replace(seconds(&value, zone)?).is_none().then_some(rest);
        }
        let (value, rest) = quoted(strip_name(text, "valid-before=")?)?;
        self.valid_before.replace(seconds(&value, zone)?).is_none().then_some(rest)
    }
}

fn strip_name<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then_some(rest)
}

/// Text between quotes, in which `\"` is a quote.
fn quoted(text: &str) -> Option<(String, &str)> {
    let body = text.strip_prefix('"')?;
    let mut value = String::new();
    let mut characters = body.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, body.get(at + 1..)?)),
            '\\' if characters.peek().is_some_and(|(_, next)| *next == '"') => {
                characters.next();
                value.push('"');
            }
            other => value.push(other),
        }
    }
    None
}

/// `YYYYMMDD[HHMM[SS]]`, in UTC with `Z` or `UTC` behind it, else in the zone; seconds since 1970.
fn seconds(text: &str, zone: &TimeZone) -> Option<i64> {
    let upper = text.to_ascii_uppercase();
    let (digits, zone) = match upper.strip_suffix('Z').or_else(|| upper.strip_suffix("UTC")) {
        Some(digits) => (digits, TimeZone::UTC),
        None => (upper.as_str(), zone.clone()),
    };
    if ![8, 12, 14].contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number =
        |from: usize, to: usize| digits.get(from..to).map_or(Some(0), |part| part.parse::<i8>().ok());
    let year = digits.get(..4)?.parse::<i16>().ok()?;
    let civil = DateTime::new(
        year,
        number(4, 6)?,
        number(6, 8)?,
        number(8, 10)?,
        number(10, 12)?,
        number(12, 14)?,
        0,
    );
    let moment = civil.ok()?.to_zoned(zone).ok()?.timestamp().as_second();
    // OpenSSH takes zero for "no time given", and refuses it.
    (moment > 0).then_some(moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_their_zone() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        for (text, expected) in [
            ("20260101Z", Some(1_767_225_600)),
            ("20260101", Some(1_767_225_600 - 7200)),
            ("202601010130Z", Some(1_767_225_600 + 5400)),
            ("20260101013007utc", Some(1_767_225_600 + 5407)),
            ("2026010101300", None),
            ("20261301", None),
            ("2026-01-01", None),
            ("19700101Z", None),
            ("", None),
            ("Z", None),
        ] {
            assert_eq!(seconds(text, &zone), expected, "{text}");
        }
    }

    #[test]
    fn options_are_all_understood_or_the_line_is_refused() {
        let read = |text| Options::parse(text, &TimeZone::UTC);
        let options = read(r#"Cert-Authority,namespaces="a,b\"c",valid-before="20260101Z""#).unwrap();
        assert!(options.is_authority);
        assert_eq!(options.namespaces.as_deref(), Some("a,b\"c"));
        for wrong in [
            "cert-authorityx",
            "no-touch-required",
            "namespaces=a",
            r#"namespaces="a"#,
            r#"namespaces="a",namespaces="b""#,
            r#"namespaces="a","#,
            r#"valid-after="20260101Z",valid-before="20250101Z""#,
            r#"valid-after="soon""#,
            "",
        ] {
            assert!(read(wrong).is_none(), "{wrong}");
        }
    }
}
