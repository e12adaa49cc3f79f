//! Which decision a report is about: the one on the same trace and span. Lately opened ones are remembered; others are looked for among
//! the session's records.

use std::collections::{HashMap, VecDeque};

use proctor_core::decision::Effect;
use proctor_core::digest::Digest;
use proctor_core::id::RecordId;
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
    open: HashMap<Digest, RecordId>,
    order: VecDeque<Digest>,
}

impl Bindings {
    pub(super) fn open(&mut self, span: &Span, decision: RecordId) {
        let Some(key) = key(span) else { return };
        if self.open.insert(key, decision).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > MOST {
            if let Some(oldest) = self.order.pop_front() {
                self.open.remove(&oldest);
            }
        }
    }

    fn get(&self, span: &Span) -> Option<RecordId> {
        self.open.get(&key(span)?).copied()
    }
}

fn key(span: &Span) -> Option<Digest> {
    if span.trace.is_empty() || span.id.is_empty() {
        return None;
    }
    let parts = [&span.principal, &span.trace, &span.id];
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
        let reader = self.engine().ledger().reader();
        let filter =
            Filter { session: Some(session), kinds: vec![RecordKind::Decision], ..Filter::default() };
        let span_id = identifier(&span.id);
        let mut denied = None;
        for record in reader.records(filter, Order::Descending).take(LOOKED_AT) {
            let record = record.ok()?;
            let Ok(BodyState::Present { bytes, .. }) = reader.body(record.seq) else { continue };
            let Ok(body) = Json::parse(&bytes) else { continue };
            let metadata = body.get("read_set").and_then(|set| set.get("action")?.get("metadata"));
            if metadata.and_then(|metadata| metadata.get("span_id")).and_then(Json::as_str)
                != Some(span_id.as_str())
            {
                continue;
            }
            if record.envelope.decision.is_some_and(Effect::lets_through) {
                return Some(record.envelope.id);
            }
            denied = denied.or(Some(record.envelope.id));
        }
        // Nothing was let through: it was done all the same.
        denied
    }
}
