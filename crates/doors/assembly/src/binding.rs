//! Binding of reports to decisions by trace and span. The latest decisions are cached; others are searched for in the session's records.

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

use super::check::Span;
use super::{AssemblyDoor, lock};

/// Capacity of the cache, in decisions.
const MAX_DECISIONS: usize = 65_536;

/// Interval between two scans of a trace, at least.
const SCAN_INTERVAL_MICROS: i64 = 1_000_000;

/// Records of a session that a scan reads at most.
const MAX_SCANNED_RECORDS: usize = 2_000;

#[derive(Debug, Default)]
pub(super) struct Bindings {
    open: HashMap<Digest, Opened>,
    order: VecDeque<Digest>,
    /// Traces whose records have been scanned: a span missing from the cache has no decision.
    scans: HashMap<Digest, Scan>,
}

/// Last scan of a trace's records.
#[derive(Debug, Clone, Copy)]
struct Scan {
    at: Timestamp,
    /// Set when a decision of the trace was evicted since.
    is_stale: bool,
}

#[derive(Debug, Clone, Copy)]
struct Opened {
    /// Record and sequence.
    decision: (RecordId, u64),
    let_through: bool,
    trace: Digest,
}

impl Bindings {
    /// Caches a decision. A decision that let the action through is not replaced by one that did not.
    pub(super) fn open(&mut self, span: &Span, decision: (RecordId, u64), let_through: bool) {
        let Some(key) = key(span) else { return };
        if !let_through && self.open.get(&key).is_some_and(|known| known.let_through) {
            return;
        }
        if self.open.insert(key, Opened { decision, let_through, trace: trace(span) }).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > MAX_DECISIONS {
            let Some(oldest) = self.order.pop_front() else { break };
            let evicted = self.open.remove(&oldest);
            if let Some(scan) = evicted.and_then(|evicted| self.scans.get_mut(&evicted.trace)) {
                scan.is_stale = true;
            }
        }
    }

    fn get(&self, span: &Span) -> Option<Opened> {
        self.open.get(&key(span)?).copied()
    }

    /// Reports whether a trace's records must be scanned, for the first time or again, and marks them as scanned.
    fn begin_scan(&mut self, span: &Span, now: Timestamp) -> bool {
        if self.scans.len() >= MAX_DECISIONS {
            self.scans.clear();
        }
        let scan = Scan { at: now, is_stale: false };
        match self.scans.entry(trace(span)) {
            Entry::Vacant(vacant) => {
                vacant.insert(scan);
                true
            }
            Entry::Occupied(mut known) => {
                let is_due = known.get().is_stale && now >= known.get().at.plus_micros(SCAN_INTERVAL_MICROS);
                if is_due {
                    known.insert(scan);
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
    Some(digest(&[&span.principal, &span.trace, &span.id]))
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
    /// Finds the decision of a report: its record and sequence.
    pub(super) fn bound(&self, caller: &Caller, agent: &str, span: &Span) -> Option<(RecordId, u64)> {
        key(span)?;
        let known = lock(&self.inner.bindings).get(span);
        // A cached denial may follow a decision that let through before a restart, so the ledger is scanned as well.
        if let Some(opened) = known.filter(|opened| opened.let_through) {
            return Some(opened.decision);
        }
        let session = self.engine().session_of(caller, agent, &span.trace).ok().flatten();
        // One scan per trace, repeated only after evictions: reports must not cause unbounded reads.
        let must_scan = || lock(&self.inner.bindings).begin_scan(span, self.engine().now());
        if let Some(session) = session.filter(|_| must_scan()) {
            self.scan_session(session, span);
        }
        lock(&self.inner.bindings).get(span).map(|opened| opened.decision)
    }

    /// Caches the latest decisions of a session from the ledger.
    fn scan_session(&self, session: SessionId, asked: &Span) {
        let reader = self.engine().ledger().reader();
        let filter =
            Filter { session: Some(session), kinds: vec![RecordKind::Decision], ..Filter::default() };
        let records: Vec<_> = reader
            .records(filter, Order::Descending)
            .take(MAX_SCANNED_RECORDS)
            .map_while(Result::ok)
            .collect();
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
            lock(&self.inner.bindings).open(&span, (record.envelope.id, record.seq), let_through);
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
    fn a_trace_is_scanned_again_after_an_eviction() {
        let mut bindings = Bindings::default();
        let id = (RecordId::from_bytes([1; 16]), 7);
        bindings.open(&span("first", 0), id, true);
        assert!(bindings.begin_scan(&span("first", 9), at(0)));
        assert!(!bindings.begin_scan(&span("first", 9), at(9)), "nothing was forgotten");
        for number in 0..MAX_DECISIONS {
            assert!(bindings.get(&span("first", 0)).is_some());
            bindings.open(&span("other", number), id, true);
        }
        assert!(bindings.get(&span("first", 0)).is_none());
        assert!(bindings.begin_scan(&span("first", 0), at(10)));
        assert!(!bindings.begin_scan(&span("first", 0), at(10)), "once");
        bindings.open(&span("first", 0), id, true);
        for number in MAX_DECISIONS..2 * MAX_DECISIONS {
            bindings.open(&span("other", number), id, true);
        }
        assert!(!bindings.begin_scan(&span("first", 0), at(10)), "not again and again");
        assert!(bindings.begin_scan(&span("first", 0), at(11)));
    }
}
