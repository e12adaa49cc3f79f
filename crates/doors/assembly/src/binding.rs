//! Which decision a report is about: the one on the same trace and span. Lately opened ones are remembered; others are looked for among
//! the session's records.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use proctor_core::decision::Effect;
use proctor_core::digest::Digest;
use proctor_core::id::{RecordId, SessionId};
use proctor_core::json::Json;
use proctor_core::record::RecordKind;
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;
use proctor_ledger::reader::BodyState;
use proctor_ledger::store::{Filter, Order};
use proctor_policy::scan::identifier;

use super::check::Span;
use super::{AssemblyDoor, lock};

/// Decisions that are remembered.
const MOST: usize = 65_536;

/// The shortest time between two readings of a trace.
const PAUSE_MICROS: i64 = 1_000_000;

/// Records of a session that are looked through.
const LOOKED_AT: usize = 2_000;

#[derive(Debug, Default)]
pub(super) struct Bindings {
    open: HashMap<Digest, Opened>,
    order: VecDeque<Digest>,
    /// Traces whose earlier records have been read: what is not remembered of them is not there.
    read: HashMap<Digest, Read>,
}

/// When a trace's records were read, and whether something of it was forgotten since.
#[derive(Debug, Clone, Copy)]
struct Read {
    at: Timestamp,
    is_stale: bool,
}

#[derive(Debug, Clone, Copy)]
struct Opened {
    decision: RecordId,
    let_through: bool,
    trace: Digest,
}

impl Bindings {
    /// Remembers a decision. One that let through is not replaced by one that did not.
    pub(super) fn open(&mut self, span: &Span, decision: RecordId, let_through: bool) {
        let Some(key) = key(span) else { return };
        if !let_through && self.open.get(&key).is_some_and(|known| known.let_through) {
            return;
        }
        if self.open.insert(key, Opened { decision, let_through, trace: trace(span) }).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > MOST {
            let Some(oldest) = self.order.pop_front() else { break };
            let forgotten = self.open.remove(&oldest);
            if let Some(read) = forgotten.and_then(|forgotten| self.read.get_mut(&forgotten.trace)) {
                read.is_stale = true;
            }
        }
    }

    fn get(&self, span: &Span) -> Option<Opened> {
        self.open.get(&key(span)?).copied()
    }

    /// Whether a trace's earlier records have still to be read, or to be read again.
    fn begin_reading(&mut self, span: &Span, now: Timestamp) -> bool {
        if self.read.len() >= MOST {
            self.read.clear();
        }
        let read = Read { at: now, is_stale: false };
        match self.read.entry(trace(span)) {
            Entry::Vacant(vacant) => {
                vacant.insert(read);
                true
            }
            Entry::Occupied(mut known) => {
                let is_due = known.get().is_stale && now >= known.get().at.plus_micros(PAUSE_MICROS);
                if is_due {
                    known.insert(read);
                }
                is_due
            }
        }
    }
}

fn trace(span: &Span) -> Digest {
    digest(&[&span.principal, &span.trace])
}

fn key(span: &Span) -> Option<Digest> {
    if span.trace.is_empty() || span.id.is_empty() {
        return None;
    }
    // As records have it, so that a span that was read is the same as one that was heard.
    Some(digest(&[&span.principal, &span.trace, &identifier(&span.id)]))
}

fn digest(parts: &[&str]) -> Digest {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        bytes.extend(part.as_bytes());
    }
    Digest::of(&bytes)
}

impl AssemblyDoor {
    /// The decision that a report is the outcome of.
    pub(super) fn bound(&self, caller: &Caller, agent: &str, span: &Span) -> Option<RecordId> {
        key(span)?;
        let known = lock(&self.inner.bindings).get(span);
        // One that let nothing through may have come after one that did, before a restart.
        if let Some(opened) = known.filter(|opened| opened.let_through) {
            return Some(opened.decision);
        }
        let session = self.engine().session_of(caller, agent, &span.trace).ok().flatten();
        // Once for each trace, and again if something of it was forgotten: a report must not make the gateway read again and again.
        let reads = || lock(&self.inner.bindings).begin_reading(span, self.engine().now());
        if let Some(session) = session.filter(|_| reads()) {
            self.read_session(session, span);
        }
        lock(&self.inner.bindings).get(span).map(|opened| opened.decision)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn span(trace: &str, id: usize) -> Span {
        Span { principal: "agent:a".to_owned(), trace: trace.to_owned(), id: format!("span {id}") }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn a_trace_is_read_again_if_something_of_it_was_forgotten() {
        let mut bindings = Bindings::default();
        let id = RecordId::from_bytes([1; 16]);
        bindings.open(&span("first", 0), id, true);
        assert!(bindings.begin_reading(&span("first", 9), at(0)));
        assert!(!bindings.begin_reading(&span("first", 9), at(9)), "nothing was forgotten");
        for number in 0..MOST {
            assert!(bindings.get(&span("first", 0)).is_some());
            bindings.open(&span("other", number), id, true);
        }
        assert!(bindings.get(&span("first", 0)).is_none());
        assert!(bindings.begin_reading(&span("first", 0), at(10)));
        assert!(!bindings.begin_reading(&span("first", 0), at(10)), "once");
        bindings.open(&span("first", 0), id, true);
        for number in MOST..2 * MOST {
            bindings.open(&span("other", number), id, true);
        }
        assert!(!bindings.begin_reading(&span("first", 0), at(10)), "not again and again");
        assert!(bindings.begin_reading(&span("first", 0), at(11)));
    }
}
