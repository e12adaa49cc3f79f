//! The leaf's text. Its members are fixed, so both directions are written out; the reader takes the one spelling that the
//! writer gives and nothing else.

use rust_decimal::Decimal;

use super::{Amount, Envelope, MAX_LEAF, RecordKind, Registration};
use crate::canonical;
use crate::time::Timestamp;

/// A leaf that cannot be written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeafError {
    /// More bytes than an entry bundle can say.
    #[error("a leaf of {0} bytes is over the limit of {MAX_LEAF}")]
    TooLarge(usize),
    /// A number that readers with doubles would misread.
    #[error("`{0}` is beyond ±2^53")]
    Number(&'static str),
    /// The bytes are not the canonical form of an envelope of this version.
    #[error("not a record of version 1: {problem} at byte {at}")]
    Malformed {
        /// Description of the problem.
        problem: &'static str,
        /// Position.
        at: usize,
    },
}

const MAX_SAFE: i64 = 1 << 53;

pub(super) fn encode(envelope: &Envelope) -> Result<Vec<u8>, LeafError> {
    let mut out = Writer { text: String::with_capacity(512) };
    let e = envelope;
    // Members in the order that RFC 8785 gives them.
    out.optional("action", e.action.map(|digest| digest.to_string()));
    out.text("agent", &e.agent);
    if !e.amounts.is_empty() {
        out.name("amounts");
        out.list(&e.amounts, |out, amount| {
            out.push('{');
            if let Some(limit) = amount.limit {
                out.push_str("\"limit\":");
                out.push_str(&limit.to_string());
                out.push(',');
            }
            out.push_str("\"unit\":");
            canonical::string(&amount.unit, out);
            out.push_str(",\"value\":");
            canonical::string(&amount.value.normalize().to_string(), out);
            out.push('}');
        });
    }
    out.optional("approval", e.approval.map(|id| id.to_string()));
    out.optional("body", e.body.map(|digest| digest.to_string()));
    out.text("code", &e.code);
    out.text("decision", e.decision.map_or("", |effect| effect.word()));
    out.text("door", &e.door);
    if let Some(expires) = e.expires {
        out.integer("expires", expires.micros())?;
    }
    out.text("id", &e.id.to_string());
    out.text("kind", e.kind.word());
    if !e.links.is_empty() {
        out.name("links");
        if e.links.iter().any(|link| *link > MAX_SAFE as u64) {
            return Err(LeafError::Number("links"));
        }
        out.list(&e.links, |out, link| out.push_str(&link.to_string()));
    }
    out.text("name", &e.name);
    out.optional("once", e.once.clone());
    out.text("org", &e.org);
    out.optional("policy", e.policy.map(|digest| digest.to_string()));
    out.text("principal", &e.principal);
    if let Some(registration) = &e.registration {
        out.name("registration");
        out.text.push_str(&registration_text(registration)?);
    }
    out.text("rule", &e.rule);
    out.optional("session", e.session.map(|id| id.to_string()));
    if !e.taints.is_empty() {
        out.name("taints");
        out.list(&e.taints, |out, taint| canonical::string(taint, out));
    }
    out.text("team", &e.team);
    out.integer("time", e.time.micros())?;
    out.text("tool", &e.tool);
    out.integer("v", 1)?;
    out.text.push('}');
    if out.text.len() > MAX_LEAF {
        return Err(LeafError::TooLarge(out.text.len()));
    }
    Ok(out.text.into_bytes())
}

fn registration_text(registration: &Registration) -> Result<String, LeafError> {
    let mut out = Writer { text: String::with_capacity(256) };
    let r = registration;
    out.integer("depth", r.depth.into())?;
    if let Some(most) = r.max_child_depth {
        out.integer("max_child_depth", most.into())?;
    }
    out.text("name", &r.name);
    if r.observe {
        out.name("observe");
        out.text.push_str("true");
    }
    out.text("parent", &r.parent);
    out.text("reason", &r.reason);
    out.text("risk", &r.risk);
    out.optional("token", r.token.map(|digest| digest.to_string()));
    out.text("tool", &r.tool);
    out.text.push('}');
    Ok(out.text)
}

struct Writer {
    text: String,
}

impl Writer {
    fn name(&mut self, name: &str) {
        self.text.push(if self.text.is_empty() { '{' } else { ',' });
        self.text.push('"');
        self.text.push_str(name);
        self.text.push_str("\":");
    }

    /// Empty texts are left out.
    fn text(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.name(name);
            canonical::string(value, &mut self.text);
        }
    }

    fn optional(&mut self, name: &str, value: Option<String>) {
        if let Some(value) = value {
            self.name(name);
            canonical::string(&value, &mut self.text);
        }
    }

    fn integer(&mut self, name: &'static str, value: i64) -> Result<(), LeafError> {
        if !(-MAX_SAFE..=MAX_SAFE).contains(&value) {
            return Err(LeafError::Number(name));
        }
        self.name(name);
        self.text.push_str(&value.to_string());
        Ok(())
    }

    fn list<T>(&mut self, items: &[T], write: impl Fn(&mut String, &T)) {
        self.text.push('[');
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.text.push(',');
            }
            write(&mut self.text, item);
        }
        self.text.push(']');
    }
}

pub(super) fn decode(leaf: &[u8]) -> Result<Envelope, LeafError> {
    if leaf.len() > MAX_LEAF {
        return Err(LeafError::TooLarge(leaf.len()));
    }
    let text = std::str::from_utf8(leaf)
        .map_err(|error| LeafError::Malformed { problem: "invalid UTF-8", at: error.valid_up_to() })?;
    let mut reader = Reader { text, at: 0, first: true };
    let envelope =
        reader.envelope().ok_or(LeafError::Malformed { problem: "unexpected text", at: reader.at })?;
    // The reader is lenient about escapes and number spelling; the writer is not.
    if encode(&envelope)? != leaf {
        return Err(LeafError::Malformed { problem: "not the canonical form", at: 0 });
    }
    Ok(envelope)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    first: bool,
}

impl Reader<'_> {
    fn envelope(&mut self) -> Option<Envelope> {
        let action = self.parsed("action")?;
        let agent = self.text("agent")?;
        let amounts = self.list("amounts", Reader::amount)?;
        let approval = self.parsed("approval")?;
        let body = self.parsed("body")?;
        let code = self.text("code")?;
        let decision = self.parsed("decision")?;
        let door = self.text("door")?;
        let expires = self.integer("expires")?.map(Timestamp::from_micros);
        let id = self.parsed("id")??;
        let kind = self.parsed::<RecordKind>("kind")??;
        let links = self.list("links", |reader| u64::try_from(reader.number()?).ok())?;
        let name = self.text("name")?;
        let once = if self.member("once") { Some(self.string()?) } else { None };
        let org = self.text("org")?;
        let policy = self.parsed("policy")?;
        let principal = self.text("principal")?;
        let registration = if self.member("registration") { Some(self.registration()?) } else { None };
        let rule = self.text("rule")?;
        let session = self.parsed("session")?;
        let taints = self.list("taints", Reader::string)?;
        let team = self.text("team")?;
        let time = Timestamp::from_micros(self.integer("time")??);
        let tool = self.text("tool")?;
        let version = self.integer("v")??;
        if version != 1 || !self.take("}") || self.at != self.text.len() {
            return None;
        }
        Some(Envelope {
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
            taints,
            amounts,
            action,
            approval,
            expires,
            code,
            once,
            links,
            policy,
            body,
            registration,
        })
    }

    /// Whether the next member is the named one; if so it is entered.
    fn member(&mut self, name: &str) -> bool {
        let before = self.at;
        let found = self.take(if self.first { "{" } else { "," })
            && self.take("\"")
            && self.take(name)
            && self.take("\":");
        if found {
            self.first = false;
        } else {
            self.at = before;
        }
        found
    }

    fn text(&mut self, name: &str) -> Option<String> {
        if self.member(name) { self.string() } else { Some(String::new()) }
    }

    /// `None`: malformed. `Some(None)`: absent.
    fn parsed<T: std::str::FromStr>(&mut self, name: &str) -> Option<Option<T>> {
        if !self.member(name) {
            return Some(None);
        }
        Some(Some(self.string()?.parse().ok()?))
    }

    fn integer(&mut self, name: &str) -> Option<Option<i64>> {
        if !self.member(name) {
            return Some(None);
        }
        Some(Some(self.number()?))
    }

    fn list<T>(&mut self, name: &str, item: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut items = Vec::new();
        if !self.member(name) {
            return Some(items);
        }
        if !self.take("[") {
            return None;
        }
        loop {
            items.push(item(self)?);
            if self.take("]") {
                return Some(items);
            }
            if !self.take(",") {
                return None;
            }
        }
    }

    fn amount(&mut self) -> Option<Amount> {
        if !self.take("{") {
            return None;
        }
        let mut limit = None;
        if self.take("\"limit\":") {
            limit = Some(u32::try_from(self.number()?).ok()?);
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
        let value = Decimal::from_str_exact(&self.string()?).ok()?;
        if !self.take("}") {
            return None;
        }
        Some(Amount { unit, value, limit })
    }

    fn registration(&mut self) -> Option<Box<Registration>> {
        self.first = true;
        let depth = u32::try_from(self.integer("depth")??).ok()?;
        let max_child_depth = match self.integer("max_child_depth")? {
            Some(most) => Some(u32::try_from(most).ok()?),
            None => None,
        };
        let name = self.text("name")?;
        let observe = self.member("observe");
        if observe && !self.take("true") {
            return None;
        }
        let parent = self.text("parent")?;
        let reason = self.text("reason")?;
        let risk = self.text("risk")?;
        let token = self.parsed("token")?;
        let tool = self.text("tool")?;
        let registration =
            Registration { token, name, risk, parent, depth, max_child_depth, observe, reason, tool };
        self.take("}").then(|| Box::new(registration))
    }

    fn number(&mut self) -> Option<i64> {
        let rest = self.text.get(self.at..)?;
        let length = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'-').count();
        self.at += length;
        rest.get(..length)?.parse().ok()
    }

    fn string(&mut self) -> Option<String> {
        if !self.take("\"") {
            return None;
        }
        let rest = self.text.get(self.at..)?;
        let plain = rest.bytes().position(|byte| byte == b'"' || byte == b'\\')?;
        if rest.as_bytes().get(plain) == Some(&b'"') {
            self.at += plain + 1;
            return Some(rest.get(..plain)?.to_owned());
        }
        // Escapes are rare: find the end, and let the JSON reader decode them.
        let mut escaped = false;
        let end = rest.bytes().position(|byte| {
            let is_end = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            is_end
        })?;
        let literal = self.text.get(self.at - 1..=self.at + end)?;
        self.at += end + 1;
        match crate::json::Json::parse(literal.as_bytes()) {
            Ok(crate::json::Json::String(text)) => Some(text),
            _ => None,
        }
    }

    fn take(&mut self, expected: &str) -> bool {
        let found = self.text.get(self.at..).is_some_and(|rest| rest.starts_with(expected));
        if found {
            self.at += expected.len();
        }
        found
    }
}
