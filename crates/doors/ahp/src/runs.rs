//! The runs that agents report about: each contract is checked against the current state of its run.

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

/// How many observations of a session are looked at for its runs after a restart.
const LOOK_BACK: usize = 5000;
/// Runs of one session that are followed.
const MAX_RUNS: usize = 64;
/// Bytes of the contracts that the runs of one session stand on, and of all sessions together; beyond the latter all are forgotten and
/// read from the ledger again.
const MAX_BYTES: usize = 4 << 20;
const MAX_BYTES_ALL: usize = 32 << 20;

/// The runs of all sessions that reported any.
#[derive(Debug, Default)]
pub(super) struct Runs {
    sessions: HashMap<SessionId, Followed>,
}

/// The runs of one session.
#[derive(Debug, Default)]
struct Followed {
    runs: BTreeMap<String, RunState>,
    /// The size of the last contract of each kind of each run.
    sizes: BTreeMap<(String, &'static str), usize>,
}

impl AhpDoor {
    /// Takes a contract into the state of its run. Gives what is wrong with it, as alarms.
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
                super::aside(|| follow(&self.engine().ledger().reader(), session, Some(LOOK_BACK)));
            let mut runs = lock();
            if runs.sessions.values().map(Followed::bytes).sum::<usize>() > MAX_BYTES_ALL {
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

impl Followed {
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

/// The current state of every run of a session, from its records.
pub fn fold_runs(reader: &Reader, session: SessionId) -> BTreeMap<String, RunState> {
    follow(reader, session, None).runs
}

/// From the session's last contracts, if a number is given; else from all.
fn follow(reader: &Reader, session: SessionId, look_back: Option<usize>) -> Followed {
    let mut followed = Followed::default();
    let filter = Filter { session: Some(session), kinds: vec![RecordKind::Observation], ..Filter::default() };
    let filter = match look_back {
        None => filter,
        // Where the last so many observations begin.
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
