//! Which decision a report is about: the one on the same trace and span. Lately opened ones are remembered; others are looked for among
//! the session's records.

use std::collections::{HashMap, HashSet, VecDeque};

use proctor_core::decision::Effect;
use proctor_core::digest::Digest;
use proctor_core::id::{RecordId, SessionId};
use proctor_core::json::Json;
use proctor_core::record::RecordKind;
use proctor_core::session::Caller;
use proctor_ledger::reader::BodyState;
use proctor_ledger::store::{Filter, Order};
use proctor_policy::scan::identifier;

use super::check::Span;
use super::{AssemblyDoor, lock};

/// Decisions that are remembered.
const MOST: usize = 65_536;

/// Records of a session that are looked through.
const LOOKED_AT: usize = 2_000;

#[derive(Debug, Default)]
pub(super) struct Bindings {
    open: HashMap<Digest, Opened>,
    order: VecDeque<Digest>,
    /// Sessions whose earlier records have been read: what is not remembered of them is not there.
    read: HashSet<SessionId>,
}

#[derive(Debug, Clone, Copy)]
struct Opened {
    decision: RecordId,
    let_through: bool,
}

impl Bindings {
    /// Remembers a decision. One that let through is not replaced by one that did not.
    pub(super) fn open(&mut self, span: &Span, decision: RecordId, let_through: bool) {
        let Some(key) = key(span) else { return };
        if !let_through && self.open.get(&key).is_some_and(|known| known.let_through) {
            return;
        }
        if self.open.insert(key, Opened { decision, let_through }).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > MOST {
            if let Some(oldest) = self.order.pop_front() {
                self.open.remove(&oldest);
            }
        }
    }

    fn get(&self, span: &Span) -> Option<RecordId> {
        self.open.get(&key(span)?).map(|opened| opened.decision)
    }

    /// Whether a session's earlier records have still to be read.
    fn begin_reading(&mut self, session: SessionId) -> bool {
        if self.read.len() >= MOST {
            self.read.clear();
        }
        self.read.insert(session)
    }
}

fn key(span: &Span) -> Option<Digest> {
    if span.trace.is_empty() || span.id.is_empty() {
        return None;
    }
    // As records have it, so that a span that was read is the same as one that was heard.
    let id = identifier(&span.id);
    let parts = [&span.principal, &span.trace, &id];
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        bytes.extend(part.as_bytes());
    }
    Some(Digest::of(&bytes))
}

impl AssemblyDoor {
    /// The decision that a report is the outcome of.
    pub(super) fn bound(&self, caller: &Caller, agent: &str, span: &Span) -> Option<RecordId> {
        key(span)?;
        if let Some(decision) = lock(&self.inner.bindings).get(span) {
            return Some(decision);
        }
        let session = self.engine().session_of(caller, agent, &span.trace).ok().flatten()?;
        // Once for each session: a report must not make the gateway read again and again.
        if !lock(&self.inner.bindings).begin_reading(session) {
            return None;
        }
        self.read_session(session, span);
        lock(&self.inner.bindings).get(span)
    }

    /// Remembers the last decisions of a session, as the ledger has them.
    fn read_session(&self, session: SessionId, asked: &Span) {
        let reader = self.engine().ledger().reader();
        let filter =
            Filter { session: Some(session), kinds: vec![RecordKind::Decision], ..Filter::default() };
        let records: Vec<_> =
            reader.records(filter, Order::Descending).take(LOOKED_AT).map_while(Result::ok).collect();
        for record in records.into_iter().rev() {
            let Ok(BodyState::Present { bytes, .. }) = reader.body(record.seq) else { continue };
            let Ok(body) = Json::parse(&bytes) else { continue };
            let metadata = body.get("read_set").and_then(|set| set.get("action")?.get("metadata"));
            let Some(id) = metadata.and_then(|metadata| metadata.get("span_id")).and_then(Json::as_str)
            else {
                continue;
            };
            let let_through = record.envelope.decision.is_some_and(Effect::lets_through);
            let span = Span { id: id.to_owned(), ..asked.clone() };
            lock(&self.inner.bindings).open(&span, record.envelope.id, let_through);
        }
    }
}
