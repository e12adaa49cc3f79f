//! Memory recall: searches earlier records of the ledger for facts.

mod fact;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use proctor_clients::ahp::{Fact, MemoryRecallDecision, MemoryRecallEvent};
use proctor_core::json::Json;
use proctor_core::record::RecordKind;
use proctor_core::session::Caller;
use proctor_ledger::Reader;
use proctor_ledger::reader::BodyState;
use proctor_ledger::store::{Filter, Order};
use proctor_policy::advice::{MemoryAdvice, MemorySessions};
use proctor_policy::prepare::redact_text;

use super::AhpDoor;
use proctor_workspace::words::{Words, beginning};

use fact::{MemoryKind, memory_of};

/// Records scanned per recall, and the time limit of the scan.
const MAX_RECORDS: usize = 5000;
const TIME: Duration = Duration::from_millis(2000);
/// Facts per answer, whatever the policy allows, and bytes per fact.
const MAX_RESULTS: usize = 200;
const MAX_FACT_BYTES: usize = 1024;
/// Relevance threshold, as a share of the best score.
const LEAST_SHARE: f32 = 0.25;
/// Confidence of facts that were recalled without a search text.
const UNASKED: f32 = 0.5;

impl AhpDoor {
    /// Answers a recall from earlier records.
    pub(super) fn recall(
        &self,
        caller: &Caller,
        agent: &str,
        session: &str,
        asked: &MemoryRecallEvent,
    ) -> MemoryRecallDecision {
        let until = Instant::now() + TIME;
        let advice = self.advice(caller);
        let (sessions, allowed) = match advice.memory() {
            MemoryAdvice::Allow { sessions, max_results } => (sessions, max_results),
            MemoryAdvice::Block { reason } => return block(reason),
        };
        let engine = self.engine();
        let mut filter = Filter {
            // Whatever else is asked for: never what another principal did.
            principal: Some(engine.principal_text(&caller.principal)),
            kinds: vec![
                RecordKind::Observation,
                RecordKind::Outcome,
                RecordKind::Decision,
                RecordKind::Alarm,
                RecordKind::Retracted,
            ],
            ..Filter::default()
        };
        // Records of the ledger itself have no principal, so nobody without a name gets more than the own session.
        if sessions == MemorySessions::Own || caller.principal.is_empty() {
            match engine.session_of(caller, agent, session) {
                Ok(Some(session)) => filter.session = Some(session),
                Ok(None) => return allow(Vec::new(), false),
                Err(_) => return block("the ledger cannot be read now"),
            }
        }
        let policy = engine.policy();
        let cut = |text: &str| redact_text(&policy, text);
        let Ok((memories, cut_short)) =
            remember(&engine.ledger().reader(), filter, Wanted::of(&asked.memory_type), until, &cut)
        else {
            return block("the ledger cannot be read now");
        };
        let most = usize::try_from(asked.max_results).unwrap_or(usize::MAX);
        let most = most.min(usize::try_from(allowed).unwrap_or(usize::MAX)).min(MAX_RESULTS);
        allow(choose(memories, &asked.query, most), cut_short)
    }
}

fn block(reason: &str) -> MemoryRecallDecision {
    MemoryRecallDecision::Block { reason: reason.to_owned(), metadata: None }
}

fn allow(injected_facts: Vec<Fact>, cut_short: bool) -> MemoryRecallDecision {
    let metadata = cut_short.then(|| Json::object().with("incomplete", true));
    MemoryRecallDecision::Allow { injected_facts, metadata }
}

/// Filter by `memory_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Facts: `semantic`.
    Known,
    /// Outcomes of actions: `procedural`.
    Done,
    /// All events: `episodic`, and any other type.
    All,
}

impl Wanted {
    fn of(memory_type: &str) -> Wanted {
        match memory_type.trim().to_ascii_lowercase().as_str() {
            "semantic" => Wanted::Known,
            "procedural" => Wanted::Done,
            _ => Wanted::All,
        }
    }

    fn has(self, kind: MemoryKind) -> bool {
        match self {
            Wanted::Known => kind == MemoryKind::Known,
            Wanted::Done => kind == MemoryKind::Done,
            Wanted::All => true,
        }
    }
}

/// Redacted memory, with the record that it is from.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Remembered {
    sequence: u64,
    content: String,
}

/// Collects the memories of the newest matching records, newest first and without duplicates. The flag says whether the scan was cut off.
fn remember(
    reader: &Reader,
    filter: Filter,
    wanted: Wanted,
    until: Instant,
    cut: &dyn Fn(&str) -> String,
) -> Result<(Vec<Remembered>, bool), proctor_ledger::ReadError> {
    let mut memories = Vec::new();
    let mut known: HashSet<String> = HashSet::new();
    let mut retracted: HashSet<u64> = HashSet::new();
    for (count, record) in reader.records(filter, Order::Descending).enumerate() {
        let record = record?;
        if count >= MAX_RECORDS || Instant::now() >= until {
            return Ok((memories, true));
        }
        if record.envelope.kind == RecordKind::Retracted {
            retracted.extend(&record.envelope.links);
            continue;
        }
        if retracted.contains(&record.seq) {
            continue;
        }
        // What was erased is forgotten.
        let Some(body) = body(reader, record.seq) else { continue };
        let decided = |sequence: u64| body_of_decision(reader, sequence);
        let Some(memory) = memory_of(&record.envelope, &body, &decided) else { continue };
        if !wanted.has(memory.kind) {
            continue;
        }
        let content = cut(&memory.content);
        let content = beginning(content.trim(), MAX_FACT_BYTES).to_owned();
        if !content.is_empty() && known.insert(content.clone()) {
            memories.push(Remembered { sequence: record.seq, content });
        }
    }
    Ok((memories, false))
}

/// Reads the body of a record: null if it has none, `None` if it was erased or is not JSON.
fn body(reader: &Reader, sequence: u64) -> Option<Json> {
    match reader.body(sequence).ok()? {
        BodyState::Present { bytes, .. } => Json::parse(&bytes).ok(),
        BodyState::None => Some(Json::Null),
        BodyState::Erased => None,
    }
}

fn body_of_decision(reader: &Reader, sequence: u64) -> Json {
    body(reader, sequence).unwrap_or_default()
}

/// Ranks memories by relevance to the query; without a query, by age.
fn choose(memories: Vec<Remembered>, query: &str, most: usize) -> Vec<Fact> {
    let mut words = Words::default();
    words.add(query, 1.0);
    let fact = |memory: Remembered, confidence: f32| Fact {
        content: memory.content,
        source: format!("record {}", memory.sequence),
        confidence,
    };
    if words.is_empty() {
        return memories.into_iter().take(most).map(|memory| fact(memory, UNASKED)).collect();
    }
    let mut scored: Vec<(Remembered, f32)> = memories
        .into_iter()
        .map(|memory| {
            let score = words.score(&words.strengths(&memory.content.to_lowercase()));
            (memory, score)
        })
        .filter(|(_, score)| *score > 0.0)
        .collect();
    // A stable sort: of equal score, the newest stay first.
    scored.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let best = scored.first().map_or(0.0, |(_, score)| *score);
    scored.retain(|(_, score)| *score >= best * LEAST_SHARE);
    scored.into_iter().take(most).map(|(memory, score)| fact(memory, score)).collect()
}

#[cfg(test)]
mod tests;
