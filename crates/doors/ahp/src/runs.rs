//! Runs that agents report about: each contract is validated against the current state of its run.

use std::collections::{BTreeMap, HashMap};
use std::sync::PoisonError;

use proctor_clients::ahp::run::{RunState, session_matches};
use proctor_clients::ahp::{AhpEvent, Contract};
use proctor_core::id::SessionId;
use proctor_core::json::Json;
use proctor_core::record::RecordKind;
use proctor_core::session::Caller;
use proctor_ledger::Reader;
use proctor_ledger::reader::BodyState;
use proctor_ledger::store::{Filter, Order};

use super::AhpDoor;

/// Number of latest observations of a session that are replayed after a restart.
const MAX_REPLAYED: usize = 5000;
/// Runs tracked per session.
const MAX_RUNS: usize = 64;
/// Bytes of retained contracts per session, and over all sessions. Beyond the latter half of the sessions are evicted, and replayed from
/// the ledger when needed.
const MAX_BYTES: usize = 4 << 20;
const MAX_BYTES_ALL: usize = 32 << 20;

/// Run states of all sessions in memory.
#[derive(Debug, Default)]
pub(super) struct Runs {
    sessions: HashMap<SessionId, SessionRuns>,
}

/// Run states of one session.
#[derive(Debug, Default)]
struct SessionRuns {
    runs: BTreeMap<String, RunState>,
    /// Size in bytes of the last contract, by run and kind of contract.
    sizes: BTreeMap<(String, &'static str), usize>,
}

impl AhpDoor {
    /// Applies a contract to the state of its run. Returns violations as alarms.
    pub(super) async fn reduce(
        &self,
        caller: &Caller,
        event: &AhpEvent,
        contract: &Contract,
    ) -> Vec<(&'static str, String)> {
        let Ok(session) = self.session(caller, event).await else { return Vec::new() };
        let lock = || self.shared.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if !lock().sessions.contains_key(&session) {
            let followed =
                super::blocking(|| replay(&self.engine().ledger().reader(), session, Some(MAX_REPLAYED)));
            let mut runs = lock();
            if runs.sessions.values().map(SessionRuns::bytes).sum::<usize>() > MAX_BYTES_ALL {
                let mut turn = false;
                runs.sessions.retain(|_, _| {
                    turn = !turn;
                    turn
                });
            }
            runs.sessions.entry(session).or_insert(followed);
        }
        let mut runs = lock();
        let known = runs.sessions.entry(session).or_default();
        known.apply(contract, event.payload.to_string().len(), Some(&event.session_id))
    }
}

impl SessionRuns {
    fn bytes(&self) -> usize {
        self.sizes.values().sum::<usize>() + 1024
    }

    fn apply(
        &mut self,
        contract: &Contract,
        size: usize,
        session: Option<&str>,
    ) -> Vec<(&'static str, String)> {
        let run_id = contract.run_id();
        let kind = match contract {
            Contract::RunLifecycle(_) => "run_lifecycle",
            Contract::TaskList(_) => "task_list",
            Contract::Verification(_) => "verification",
        };
        let place = (run_id.to_owned(), kind);
        let before = self.sizes.get(&place).copied().unwrap_or_default();
        let is_new = !self.runs.contains_key(run_id);
        if (is_new && self.runs.len() >= MAX_RUNS) || self.bytes() - before + size > MAX_BYTES {
            return vec![(
                "too_many_runs",
                format!(
                    "more than {MAX_RUNS} runs or {MAX_BYTES} bytes in one session: `{run_id}` is not followed"
                ),
            )];
        }
        self.sizes.insert(place, size);
        let run = self.runs.entry(run_id.to_owned()).or_default();
        let mismatch = session.and_then(|session| session_matches(session, contract));
        run.apply(contract)
            .into_iter()
            .chain(mismatch)
            .map(|problem| (problem.code, format!("run `{run_id}`: {}", problem.message)))
            .collect()
    }
}

/// Folds the records of a session into the current state of each of its runs.
pub fn fold_runs(reader: &Reader, session: SessionId) -> BTreeMap<String, RunState> {
    replay(reader, session, None).runs
}

/// Replays the contracts in a session's latest observations, or in all of them.
fn replay(reader: &Reader, session: SessionId, latest: Option<usize>) -> SessionRuns {
    let mut followed = SessionRuns::default();
    let filter = Filter { session: Some(session), kinds: vec![RecordKind::Observation], ..Filter::default() };
    let filter = match latest {
        None => filter,
        // Replay runs forward, so the first of the latest observations is looked up first.
        Some(count) => {
            let last = reader.records(filter.clone(), Order::Descending).take(count).last();
            let from = last.and_then(Result::ok).map_or(0, |record| record.seq);
            Filter { seqs: Some(from..u64::MAX), ..filter }
        }
    };
    for record in reader.records(filter, Order::Ascending) {
        let Ok(record) = record else { break };
        let code = record.envelope.code.as_str();
        if !matches!(code, "run_lifecycle" | "task_list" | "verification") {
            continue;
        }
        let Ok(BodyState::Present { bytes, .. }) = reader.body(record.seq) else { continue };
        let Ok(body) = Json::parse(&bytes) else { continue };
        let Some(payload) = body.pointer("/data/payload") else { continue };
        let contract = match code {
            "run_lifecycle" => payload.read().map(Contract::RunLifecycle),
            "task_list" => payload.read().map(Contract::TaskList),
            _ => payload.read().map(Contract::Verification),
        };
        if let Ok(contract) = contract {
            followed.apply(&contract, payload.to_string().len(), None);
        }
    }
    followed
}
