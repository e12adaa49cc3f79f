//! Reading of a leaf only what a bundle's rules need, without allocating.
//!
//! [`Envelope::from_leaf`] says what a leaf is. The scanner here recognises the common spelling of leaves and nothing
//! else; whatever it does not recognise is left to `from_leaf`. So it may be narrower, but never wider: that is its law,
//! and [`fuzz_leaf`] checks it.

use std::str::FromStr;

use proctor_core::decision::Effect;
use proctor_core::digest::Digest;
use proctor_core::record::{Envelope, LeafError, MAX_LEAF, RecordKind};

/// The code of a policy record that names the policy that stayed in force, and holds no sources.
const REFUSED: &[u8] = b"refused";

/// The largest number in an envelope: beyond it, readers with doubles would see another one.
const MAX_SAFE: u64 = 1 << 53;

/// What the rules of a bundle ask of a record. The same value is filled again for each record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) id: [u8; 16],
    pub(super) kind: RecordKind,
    pub(super) body: Option<[u8; 32]>,
    pub(super) policy: Option<[u8; 32]>,
    /// Half of the SHA-256 of the `once` key.
    pub(super) once: Option<[u8; 16]>,
    pub(super) links: Vec<u64>,
    /// Whether the code is that of a refused policy.
    pub(super) refused: bool,
}

impl Facts {
    pub(super) const fn new() -> Facts {
        Facts {
            id: [0; 16],
            kind: RecordKind::Gap,
            body: None,
            policy: None,
            once: None,
            links: Vec::new(),
            refused: false,
        }
    }

    /// Fills in what this leaf says; refuses every leaf that is not canonical.
    pub(super) fn read(&mut self, leaf: &[u8]) -> Result<(), LeafError> {
        if leaf.len() <= MAX_LEAF && std::str::from_utf8(leaf).is_ok() && scan(self, leaf).is_some() {
            return Ok(());
        }
        self.take(&Envelope::from_leaf(leaf)?);
        Ok(())
    }

    fn take(&mut self, envelope: &Envelope) {
        self.id = *envelope.id.as_bytes();
        self.kind = envelope.kind;
        self.body = envelope.body.map(|digest| *digest.as_bytes());
        self.policy = envelope.policy.map(|digest| *digest.as_bytes());
        self.once = envelope.once.as_ref().map(|key| key_digest(key.as_bytes()));
        self.links.clear();
        self.links.extend_from_slice(&envelope.links);
        self.refused = envelope.code.as_bytes() == REFUSED;
    }

    /// Whether this is the record of a policy that came into force, which holds its sources.
    pub(super) fn loads_policy(&self) -> bool {
        self.kind == RecordKind::Policy && !self.refused && self.body.is_some()
    }
}

/// Checks the scanner's law on any bytes: what it accepts, `from_leaf` accepts with the same facts.
pub(super) fn fuzz_leaf(data: &[u8]) -> Result<(), String> {
    let mut scanned = Facts::new();
    if std::str::from_utf8(data).is_err() || scan(&mut scanned, data).is_none() {
        return Ok(());
    }
    let envelope = Envelope::from_leaf(data).map_err(|error| format!("scanned, but refused: {error}"))?;
    let mut taken = Facts::new();
    taken.take(&envelope);
    if scanned == taken { Ok(()) } else { Err(format!("scanned as {scanned:?}, but is {taken:?}")) }
}

fn key_digest(key: &[u8]) -> [u8; 16] {
    let digest = Digest::of(key);
    let (half, _) = digest.as_bytes().split_first_chunk::<16>().unwrap_or((&[0; 16], &[]));
    *half
}

/// Reads valid UTF-8 as a leaf in its common spelling; none says nothing about the leaf.
fn scan(facts: &mut Facts, leaf: &[u8]) -> Option<()> {
    let mut at = Scanner { rest: leaf.strip_prefix(b"{")?, first: true };
    at.optional(b"\"action\":\"", |at| at.digest().map(drop))?;
    at.optional(b"\"agent\":\"", Scanner::filled)?;
    at.optional(b"\"amounts\":[", |at| at.list(Scanner::amount))?;
    at.optional(b"\"approval\":\"", |at| at.uuid().map(drop))?;
    facts.body = at.optional(b"\"body\":\"", Scanner::digest)?;
    facts.refused = at.optional(b"\"code\":\"", Scanner::filled)? == Some(REFUSED);
    at.optional(b"\"decision\":\"", |at| Effect::from_str(at.word()?).ok())?;
    at.optional(b"\"door\":\"", Scanner::filled)?;
    at.optional(b"\"expires\":", Scanner::integer)?;
    facts.id = at.optional(b"\"id\":\"", Scanner::uuid)??;
    facts.kind = at.optional(b"\"kind\":\"", |at| RecordKind::from_str(at.word()?).ok())??;
    facts.links.clear();
    let links = &mut facts.links;
    at.optional(b"\"links\":[", |at| {
        at.list(|at| {
            links.push(at.number()?);
            Some(())
        })
    })?;
    at.optional(b"\"name\":\"", Scanner::filled)?;
    facts.once = at.optional(b"\"once\":\"", Scanner::string)?.map(key_digest);
    at.optional(b"\"org\":\"", Scanner::filled)?;
    facts.policy = at.optional(b"\"policy\":\"", Scanner::digest)?;
    at.optional(b"\"principal\":\"", Scanner::filled)?;
    at.optional(b"\"rule\":\"", Scanner::filled)?;
    at.optional(b"\"session\":\"", |at| at.uuid().map(drop))?;
    at.optional(b"\"taints\":[", |at| {
        at.list(|at| {
            at.take(b"\"")?;
            at.string().map(drop)
        })
    })?;
    at.optional(b"\"team\":\"", Scanner::filled)?;
    at.optional(b"\"time\":", Scanner::integer)??;
    at.optional(b"\"tool\":\"", Scanner::filled)?;
    (at.rest == b",\"v\":1}").then_some(())
}

struct Scanner<'a> {
    rest: &'a [u8],
    first: bool,
}

impl<'a> Scanner<'a> {
    /// The member that begins so, if it is the next one. `None`: not recognised. `Some(None)`: absent.
    #[expect(
        clippy::option_option,
        reason = "absent and not recognised are two answers; `?` takes the second"
    )]
    fn optional<T>(&mut self, begin: &[u8], value: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        let after = if self.first { Some(self.rest) } else { self.rest.strip_prefix(b",") };
        let Some(rest) = after.and_then(|rest| rest.strip_prefix(begin)) else { return Some(None) };
        self.rest = rest;
        self.first = false;
        value(self).map(Some)
    }

    fn take(&mut self, expected: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(expected)?;
        Some(())
    }

    /// A string without escapes, up to and with its closing quote.
    fn string(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))?;
        let (text, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest.strip_prefix(b"\"")?;
        Some(text)
    }

    /// A string that is not empty: empty ones are left out of leaves.
    fn filled(&mut self) -> Option<&'a [u8]> {
        self.string().filter(|text| !text.is_empty())
    }

    fn word(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.string()?).ok()
    }

    fn digest(&mut self) -> Option<[u8; 32]> {
        let (digits, rest) = self.rest.split_first_chunk::<64>()?;
        self.rest = rest.strip_prefix(b"\"")?;
        let mut bytes = [0; 32];
        decode_hex(digits, &mut bytes)?;
        Some(bytes)
    }

    fn uuid(&mut self) -> Option<[u8; 16]> {
        let (text, rest) = self.rest.split_first_chunk::<36>()?;
        self.rest = rest.strip_prefix(b"\"")?;
        let mut digits = [0; 32];
        let mut filled = 0;
        for (index, byte) in text.iter().enumerate() {
            if matches!(index, 8 | 13 | 18 | 23) {
                if *byte != b'-' {
                    return None;
                }
                continue;
            }
            *digits.get_mut(filled)? = *byte;
            filled += 1;
        }
        let mut bytes = [0; 16];
        decode_hex(&digits, &mut bytes)?;
        Some(bytes)
    }

    /// An integer within ±2⁵³ in its one spelling; its value is not needed.
    fn integer(&mut self) -> Option<()> {
        if let Some(rest) = self.rest.strip_prefix(b"-") {
            self.rest = rest;
            return (self.number()? != 0).then_some(());
        }
        self.number().map(drop)
    }

    /// A whole number up to 2⁵³ in its one spelling.
    fn number(&mut self) -> Option<u64> {
        let length = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at_checked(length)?;
        if digits.is_empty() || digits.len() > 16 || (digits.len() > 1 && digits.first() == Some(&b'0')) {
            return None;
        }
        self.rest = rest;
        let value = digits.iter().fold(0, |value: u64, digit| value * 10 + u64::from(digit - b'0'));
        (value <= MAX_SAFE).then_some(value)
    }

    /// Items with commas between them, up to and with the closing bracket.
    fn list(&mut self, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        loop {
            item(self)?;
            if self.take(b"]").is_some() {
                return Some(());
            }
            self.take(b",")?;
        }
    }

    fn amount(&mut self) -> Option<()> {
        self.take(b"{")?;
        if self.take(b"\"limit\":").is_some() {
            u32::try_from(self.number()?).ok()?;
            self.take(b",")?;
        }
        self.take(b"\"unit\":\"")?;
        self.string()?;
        self.take(b",\"value\":\"")?;
        let value = self.string()?;
        self.take(b"}")?;
        is_plain_decimal(value).then_some(())
    }
}

/// Whether this is a decimal in its one spelling, of a length at which nothing is rounded.
fn is_plain_decimal(text: &[u8]) -> bool {
    let unsigned = text.strip_prefix(b"-").unwrap_or(text);
    if unsigned.is_empty() || unsigned.len() > 18 || text == b"-0" {
        return false;
    }
    let mut parts = unsigned.split(|byte| *byte == b'.');
    let (whole, fraction, surplus) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let no_leading_zero = whole == b"0" || whole.first() != Some(&b'0');
    let right_fraction = fraction.is_none_or(|part| digits(part) && part.last() != Some(&b'0'));
    digits(whole) && no_leading_zero && right_fraction && surplus.is_none()
}

/// Decodes lower-case hexadecimal digits.
fn decode_hex(digits: &[u8], bytes: &mut [u8]) -> Option<()> {
    let (pairs, _) = digits.as_chunks::<2>();
    // Every digit sets bits of its own where it is none, so one look at the end is enough.
    let mut wrong = 0;
    for ([high, low], byte) in pairs.iter().zip(bytes) {
        let (high, low) = (hex_value(*high), hex_value(*low));
        wrong |= high | low;
        *byte = high << 4 | low & 0x0f;
    }
    (wrong & 0xf0 == 0).then_some(())
}

/// The value of a lower-case hexadecimal digit, or 255.
const fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => 0xff,
    }
}
