//! The leaf: the RFC 8785 JSON of an envelope. Its members are fixed, so both directions are written out by hand: the
//! encoder here, and [`LeafView`], which accepts the encoder's spelling and nothing else.

mod view;

use super::{Envelope, MAX_LEAF, Registration};
use crate::canonical;

pub use view::LeafView;

/// A leaf that cannot be written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeafError {
    /// The leaf is longer than an entry bundle can say.
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
