//! The leaf decoder: borrows texts from the leaf, so that verifying a bundle allocates nothing for a usual record.

use std::borrow::Cow;
use std::str::FromStr;

use rust_decimal::Decimal;

use super::{LeafError, MAX_SAFE};
use crate::canonical;
use crate::decision::Effect;
use crate::digest::Digest;
use crate::id::{ApprovalId, RecordId, SessionId};
use crate::json::Json;
use crate::record::{Amount, Envelope, MAX_LEAF, RecordKind, Registration};
use crate::time::Timestamp;

/// A decoded leaf that borrows its texts. Parsing checks the whole leaf, lists included; only the canonical form is
/// accepted, so that one record has one leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of `Envelope`")]
pub struct LeafView<'a> {
    pub id: RecordId,
    pub time: Timestamp,
    pub kind: RecordKind,
    pub session: Option<SessionId>,
    pub principal: Cow<'a, str>,
    pub agent: Cow<'a, str>,
    pub team: Cow<'a, str>,
    pub org: Cow<'a, str>,
    pub door: Cow<'a, str>,
    pub tool: Cow<'a, str>,
    pub name: Cow<'a, str>,
    pub decision: Option<Effect>,
    pub rule: Cow<'a, str>,
    pub action: Option<Digest>,
    pub approval: Option<ApprovalId>,
    pub expires: Option<Timestamp>,
    pub code: Cow<'a, str>,
    pub once: Option<Cow<'a, str>>,
    pub policy: Option<Digest>,
    pub body: Option<Digest>,
    pub registration: Option<Box<Registration>>,
    /// The checked text between the brackets of each list; empty if the list is absent.
    amounts: &'a str,
    links: &'a str,
    taints: &'a str,
}

impl<'a> LeafView<'a> {
    /// Decodes a leaf.
    pub fn parse(leaf: &'a [u8]) -> Result<LeafView<'a>, LeafError> {
        if leaf.len() > MAX_LEAF {
            return Err(LeafError::TooLarge(leaf.len()));
        }
        let text = std::str::from_utf8(leaf)
            .map_err(|error| LeafError::Malformed { problem: "invalid UTF-8", at: error.valid_up_to() })?;
        let mut parser = Parser::new(text);
        let Some(view) = parser.leaf() else {
            let at = text.len() - parser.rest.len();
            return Err(LeafError::Malformed { problem: "unexpected text", at });
        };
        if let Some(member) = parser.unsafe_number {
            return Err(LeafError::Number(member));
        }
        if !parser.canonical {
            return Err(LeafError::Malformed { problem: "not the canonical form", at: 0 });
        }
        Ok(view)
    }

    /// The sequences that the record links to.
    pub fn links(&self) -> impl Iterator<Item = u64> + use<'a> {
        self.links.split(',').filter_map(|link| link.parse().ok())
    }

    fn taints(&self) -> impl Iterator<Item = String> + use<'a> {
        items(self.taints, |parser| parser.string().map(Cow::into_owned))
    }

    fn amounts(&self) -> impl Iterator<Item = Amount> + use<'a> {
        items(self.amounts, |parser| {
            let (limit, unit, value) = parser.amount()?;
            Some(Amount { unit: unit.into_owned(), value: Decimal::from_str_exact(&value).ok()?, limit })
        })
    }
}

impl From<LeafView<'_>> for Envelope {
    fn from(view: LeafView<'_>) -> Envelope {
        Envelope {
            taints: view.taints().collect(),
            amounts: view.amounts().collect(),
            links: view.links().collect(),
            id: view.id,
            time: view.time,
            kind: view.kind,
            session: view.session,
            principal: view.principal.into_owned(),
            agent: view.agent.into_owned(),
            team: view.team.into_owned(),
            org: view.org.into_owned(),
            door: view.door.into_owned(),
            tool: view.tool.into_owned(),
            name: view.name.into_owned(),
            decision: view.decision,
            rule: view.rule.into_owned(),
            action: view.action,
            approval: view.approval,
            expires: view.expires,
            code: view.code.into_owned(),
            once: view.once.map(Cow::into_owned),
            policy: view.policy,
            body: view.body,
            registration: view.registration,
        }
    }
}

/// Decodes the items of a list that was checked before; none is left out.
fn items<'a, T>(
    list: &'a str,
    mut item: impl FnMut(&mut Parser<'a>) -> Option<T>,
) -> impl Iterator<Item = T> {
    let mut parser = Parser::new(list);
    std::iter::from_fn(move || {
        if parser.rest.is_empty() {
            return None;
        }
        let item = item(&mut parser);
        parser.take(",");
        item
    })
}

/// Every method returns `None` at text that cannot be an envelope. Another spelling of the same envelope is read to the
/// end and noted in `canonical`, so that the error can tell the two apart.
struct Parser<'a> {
    rest: &'a str,
    /// Whether the next member is the first one of its object.
    first: bool,
    canonical: bool,
    /// The first member with an integer beyond ±2^53.
    unsafe_number: Option<&'static str>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parser<'a> {
        Parser { rest: text, first: true, canonical: true, unsafe_number: None }
    }

    fn leaf(&mut self) -> Option<LeafView<'a>> {
        // RFC 8785 sorts members by name, so each one has to be asked for once.
        let action = self.digest(",\"action\":")?;
        let agent = self.text(",\"agent\":")?;
        let amounts = self.list(",\"amounts\":", |parser| parser.amount().map(drop))?;
        let approval = self.uuid(",\"approval\":")?.map(ApprovalId::from_bytes);
        let body = self.digest(",\"body\":")?;
        let code = self.text(",\"code\":")?;
        let decision = self.word(",\"decision\":")?;
        let door = self.text(",\"door\":")?;
        let expires = self.integer_member(",\"expires\":", "expires")?.map(Timestamp::from_micros);
        let id = RecordId::from_bytes(self.uuid(",\"id\":")??);
        let kind = self.word(",\"kind\":")??;
        let links = self.list(",\"links\":", |parser| {
            let link = parser.integer("links")?;
            (link >= 0).then_some(())
        })?;
        let name = self.text(",\"name\":")?;
        let once = if self.member(",\"once\":") { Some(self.string()?) } else { None };
        let org = self.text(",\"org\":")?;
        let policy = self.digest(",\"policy\":")?;
        let principal = self.text(",\"principal\":")?;
        let registration = if self.member(",\"registration\":") { Some(self.registration()?) } else { None };
        let rule = self.text(",\"rule\":")?;
        let session = self.uuid(",\"session\":")?.map(SessionId::from_bytes);
        let taints = self.list(",\"taints\":", |parser| parser.string().map(drop))?;
        let team = self.text(",\"team\":")?;
        let time = Timestamp::from_micros(self.integer_member(",\"time\":", "time")??);
        let tool = self.text(",\"tool\":")?;
        let version = self.integer_member(",\"v\":", "v")??;
        if version != 1 || !self.take("}") || !self.rest.is_empty() {
            return None;
        }
        Some(LeafView {
            id,
            time,
            kind,
            session,
            principal,
            agent,
            team,
            org,
            door,
            tool,
            name,
            decision,
            rule,
            action,
            approval,
            expires,
            code,
            once,
            policy,
            body,
            registration,
            amounts,
            links,
            taints,
        })
    }

    /// Whether the next member is the one with this name, which is written with the comma before it, so that one comparison
    /// finds it; if so, its value is next.
    fn member(&mut self, name: &str) -> bool {
        let rest = if self.first {
            self.rest.strip_prefix("{").and_then(|rest| rest.strip_prefix(name.strip_prefix(",")?))
        } else {
            self.rest.strip_prefix(name)
        };
        let Some(rest) = rest else { return false };
        self.rest = rest;
        self.first = false;
        true
    }

    fn take(&mut self, expected: &str) -> bool {
        let rest = self.rest.strip_prefix(expected);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// A text that is left out when it is empty.
    fn text(&mut self, name: &str) -> Option<Cow<'a, str>> {
        if !self.member(name) {
            return Some(Cow::Borrowed(""));
        }
        let text = self.string()?;
        self.canonical &= !text.is_empty();
        Some(text)
    }

    /// `None`: malformed. `Some(None)`: absent. The same holds for all members below.
    fn word<T: FromStr>(&mut self, name: &str) -> Option<Option<T>> {
        if !self.member(name) {
            return Some(None);
        }
        self.string()?.parse().ok().map(Some)
    }

    fn digest(&mut self, name: &str) -> Option<Option<Digest>> {
        if !self.member(name) {
            return Some(None);
        }
        self.fixed(|digits: &[u8; 64]| {
            let mut bytes = [0; 32];
            decode_hex(digits, &mut bytes).map(|()| Some(Digest::from_bytes(bytes)))
        })
    }

    fn uuid(&mut self, name: &str) -> Option<Option<[u8; 16]>> {
        if !self.member(name) {
            return Some(None);
        }
        self.fixed(|text| decode_uuid(text).map(Some))
    }

    /// A string of `N` bytes. The usual one is not searched for its end.
    fn fixed<const N: usize, T>(&mut self, decode: impl Fn(&[u8; N]) -> Option<T>) -> Option<T> {
        if let Some(after) = self.rest.strip_prefix("\"")
            && let Some((text, [b'"', ..])) = after.as_bytes().split_first_chunk::<N>()
            && let Some(value) = decode(text)
        {
            self.rest = after.get(N + 1..)?;
            return Some(value);
        }
        decode(self.string()?.as_bytes().try_into().ok()?)
    }

    fn integer_member(&mut self, name: &str, member: &'static str) -> Option<Option<i64>> {
        if !self.member(name) {
            return Some(None);
        }
        self.integer(member).map(Some)
    }

    fn integer(&mut self, member: &'static str) -> Option<i64> {
        let length = self.rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'-').count();
        let (spelled, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        let value = spelled.parse().ok()?;
        self.canonical &= !matches!(spelled.as_bytes(), [b'0', _, ..] | [b'-', b'0', ..]);
        if !(-MAX_SAFE..=MAX_SAFE).contains(&value) {
            self.unsafe_number.get_or_insert(member);
        }
        Some(value)
    }

    fn string(&mut self) -> Option<Cow<'a, str>> {
        let after = self.rest.strip_prefix("\"")?;
        let end = after.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
        if let Some(end) = end
            && after.as_bytes().get(end) == Some(&b'"')
        {
            self.rest = after.get(end + 1..)?;
            return after.get(..end).map(Cow::Borrowed);
        }
        self.escaped_string(after)
    }

    /// A string with escapes, which is rare: the JSON reader decodes it.
    #[cold]
    fn escaped_string(&mut self, after: &'a str) -> Option<Cow<'a, str>> {
        // The parser stays behind the opening quote if the string has no end.
        let opening = self.rest;
        self.rest = after;
        let mut escaped = false;
        let end = after.bytes().position(|byte| {
            let is_end = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            is_end
        })?;
        let (literal, rest) = opening.split_at_checked(end + 2)?;
        self.rest = rest;
        let (content, _) = after.split_at_checked(end)?;
        if !content.contains('\\') {
            // Control characters that are not escaped: the same text, spelled otherwise.
            self.canonical = false;
            return Some(Cow::Borrowed(content));
        }
        let Ok(Json::String(text)) = Json::parse(literal.as_bytes()) else { return None };
        let mut spelled = String::with_capacity(literal.len());
        canonical::string(&text, &mut spelled);
        self.canonical &= spelled == literal;
        Some(Cow::Owned(text))
    }

    /// The text between the brackets of a list that is left out when it is empty.
    fn list(&mut self, name: &str, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<&'a str> {
        if !self.member(name) {
            return Some("");
        }
        if !self.take("[") {
            return None;
        }
        let begin = self.rest;
        loop {
            item(self)?;
            let end = begin.len() - self.rest.len();
            if self.take("]") {
                return begin.get(..end);
            }
            if !self.take(",") {
                return None;
            }
        }
    }

    /// Limit, unit and value, which is checked to be a decimal.
    fn amount(&mut self) -> Option<(Option<u32>, Cow<'a, str>, Cow<'a, str>)> {
        if !self.take("{") {
            return None;
        }
        let mut limit = None;
        if self.take("\"limit\":") {
            limit = Some(u32::try_from(self.integer("limit")?).ok()?);
            if !self.take(",") {
                return None;
            }
        }
        if !self.take("\"unit\":") {
            return None;
        }
        let unit = self.string()?;
        if !self.take(",\"value\":") {
            return None;
        }
        let value = self.string()?;
        if !is_plain_decimal(value.as_bytes()) {
            let decimal = Decimal::from_str_exact(&value).ok()?;
            self.canonical &= decimal.normalize().to_string() == value;
        }
        self.take("}").then_some((limit, unit, value))
    }

    fn registration(&mut self) -> Option<Box<Registration>> {
        self.first = true;
        let depth = u32::try_from(self.integer_member(",\"depth\":", "depth")??).ok()?;
        let max_child_depth = match self.integer_member(",\"max_child_depth\":", "max_child_depth")? {
            Some(most) => Some(u32::try_from(most).ok()?),
            None => None,
        };
        let name = self.text(",\"name\":")?.into_owned();
        let observe = self.member(",\"observe\":");
        if observe && !self.take("true") {
            return None;
        }
        let parent = self.text(",\"parent\":")?.into_owned();
        let reason = self.text(",\"reason\":")?.into_owned();
        let risk = self.text(",\"risk\":")?.into_owned();
        let token = self.digest(",\"token\":")?;
        let tool = self.text(",\"tool\":")?.into_owned();
        let registration =
            Registration { token, name, risk, parent, depth, max_child_depth, observe, reason, tool };
        self.take("}").then(|| Box::new(registration))
    }
}

/// Whether this is a decimal in its canonical spelling, of a length at which nothing is rounded. Other canonical
/// decimals exist; they are compared with what the encoder would write.
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

fn decode_uuid(text: &[u8; 36]) -> Option<[u8; 16]> {
    // The first character, the length, and the first byte of each group of digits; hyphens stand between them.
    const GROUPS: [(usize, usize, usize); 5] = [(0, 8, 0), (9, 4, 4), (14, 4, 6), (19, 4, 8), (24, 12, 10)];
    let hyphens = [8, 13, 18, 23].into_iter().all(|at: usize| text.get(at) == Some(&b'-'));
    let mut bytes = [0; 16];
    for (from, length, byte) in GROUPS {
        decode_hex(text.get(from..from + length)?, bytes.get_mut(byte..byte + length / 2)?)?;
    }
    hyphens.then_some(bytes)
}

/// Decodes lower-case hexadecimal digits.
fn decode_hex(digits: &[u8], bytes: &mut [u8]) -> Option<()> {
    let (pairs, _) = digits.as_chunks::<2>();
    // A byte that is no digit has bits outside its nibble, so one test after the loop is enough.
    let mut wrong = 0;
    for ([high, low], byte) in pairs.iter().zip(bytes) {
        let (high, low) = (hex_value(*high), hex_value(*low));
        wrong |= high | low;
        *byte = high << 4 | low & 0x0f;
    }
    (wrong & 0xf0 == 0).then_some(())
}

/// The value of a lower-case hexadecimal digit, or 255. A table, because most of a leaf is digits.
fn hex_value(digit: u8) -> u8 {
    #[expect(clippy::indexing_slicing, reason = "the compiler evaluates it")]
    const VALUES: [u8; 256] = {
        let mut values = [0xff; 256];
        let mut value = 0u8;
        while value < 16 {
            values[b"0123456789abcdef"[value as usize] as usize] = value;
            value += 1;
        }
        values
    };
    VALUES.get(usize::from(digit)).copied().unwrap_or(0xff)
}
