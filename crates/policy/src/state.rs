//! State that decisions are made from: a pure fold over envelopes.
//!
//! [`State::apply`] is the only way the state changes, and it looks at nothing but the envelope and its sequence. It gives the
//! rows that changed; all rows together are the state, and [`State::load`] makes the same state of them again.
//!
//! # What the records say
//!
//! * `decision`: remembered for its session and, for 24 hours, for its principal. If it lets through, its amounts are charged:
//!   `usd`, `tokens` and `calls` to principal, team and organisation and to the registered agents above the principal, `rate` to the
//!   bucket of (principal, tool, limit). With an approval: an ask opens it, a let-through uses it up, a deny closes it.
//! * `settlement`: what an action cost more than its estimate is charged at the settlement's own minute; what it cost less is
//!   given back at the minute of the decision it links to (`links[0]`), never more than was booked there. So no window of time
//!   ever counts less than what was spent in it. What is less and links to nothing that is remembered is not given back; nor is it
//!   to an agent above that was not there, or not above, at the decision.
//! * `approval`: `approval` is the identifier, `code` is `allow` or `deny`, `principal` the approver, `rule` the reason, `expires`
//!   until when the grant holds (absent: as before). The first one counts, if it comes before expiry and not from the asker.
//! * `retracted`: a copy of the decision's envelope with its own `id` and `time`, `kind` `retracted`, `links` the sequence of the
//!   decision, and without `once` and `body`. From then on the decision counts as a deny.
//! * `alarm` and `session` are counted in the list of sessions. Taints of a record that is not a decision are set.

mod agents;
mod anomaly_counts;
mod approvals;
mod history;
mod meters;
mod minutes;
mod rates;
mod registry;
mod row;
mod sessions;
mod view;

use proctor_core::decision::Effect;
use proctor_core::digest::Digest;
use proctor_core::id::{ApprovalId, SessionId};
use proctor_core::json::Json;
use proctor_core::record::{Envelope, RecordKind};
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;

use meters::Sums;

pub use approvals::{ApprovalInfo, ApprovalStatus, Closing};
pub use registry::{AgentInfo, Registry};
pub use row::{Row, StateDamage};
pub use sessions::SessionInfo;
pub use view::StateView;

/// Retention of spending, idle sessions and the minutes of decisions: 33 days, a month and a bit.
const KEPT_MINUTES: i64 = 33 * 24 * 60;

/// Bounds of the state. An overflow denies every action whose decision asks for the part concerned.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Different tools in one session.
    session_tools: usize,
    /// Different taints in one session.
    session_taints: usize,
    /// Different tools of one principal in 24 hours.
    agent_tools: usize,
    /// Different taints of one principal in 24 hours.
    agent_taints: usize,
    /// Sessions; beyond it the one that was idle longest is forgotten.
    sessions: usize,
    /// Sessions, and tools and taints of all of them; beyond it the session that was idle longest is forgotten.
    session_entries: usize,
    /// Open approvals; and as many closed ones.
    approvals: usize,
    /// Open approvals of one principal.
    approvals_of_principal: usize,
}

const LIMITS: Limits = Limits {
    session_tools: 512,
    session_taints: 256,
    agent_tools: 2048,
    agent_taints: 1024,
    sessions: 32_768,
    session_entries: 65_536,
    approvals: 100_000,
    approvals_of_principal: 10_000,
};

/// The state of all sessions, principals, accounts and approvals.
#[derive(Debug)]
pub struct State {
    limits: Limits,
    sessions: sessions::Sessions,
    agents: agents::Agents,
    meters: meters::Meters,
    rates: rates::Rates,
    approvals: approvals::Approvals,
    minutes: minutes::Minutes,
    registry: registry::Registry,
    anomaly_counts: anomaly_counts::AnomalyCounts,
}

impl Default for State {
    fn default() -> State {
        State::with_limits(LIMITS)
    }
}

/// Whether a record is an ask that uses up a rate limit. Asks of earlier versions carry no such amount, and change nothing.
fn is_charged_ask(envelope: &Envelope) -> bool {
    envelope.decision == Some(Effect::Ask) && envelope.amounts.iter().any(|amount| amount.unit == "rate")
}

impl State {
    /// The names of all folds, for reading rows back.
    pub const FOLDS: [&str; 8] = [
        sessions::FOLD,
        agents::FOLD,
        meters::FOLD,
        rates::FOLD,
        approvals::FOLD,
        minutes::FOLD,
        registry::FOLD,
        anomaly_counts::FOLD,
    ];

    /// The state before the first record.
    pub fn new() -> State {
        State::default()
    }

    fn with_limits(limits: Limits) -> State {
        State {
            limits,
            sessions: sessions::Sessions::default(),
            agents: agents::Agents::default(),
            meters: meters::Meters::default(),
            rates: rates::Rates::default(),
            approvals: approvals::Approvals::default(),
            minutes: minutes::Minutes::default(),
            registry: registry::Registry::default(),
            anomaly_counts: anomaly_counts::AnomalyCounts::default(),
        }
    }

    /// Applies a record. Returns the rows that changed, in order; if a key is there twice, the later one counts.
    pub fn apply(&mut self, seq: u64, envelope: &Envelope) -> Vec<Row> {
        let mut rows = Vec::with_capacity(8);
        let linked_minute = envelope.links.first().and_then(|link| self.minutes.of(*link));
        self.sessions.apply(self.limits, seq, envelope, &mut rows);
        let linked_hour = linked_minute.map(|minute| minute.div_euclid(60));
        self.agents.apply(self.limits, seq, envelope, linked_hour, &mut rows);
        match envelope.kind {
            RecordKind::Decision => self.decision(seq, envelope, &mut rows),
            RecordKind::Settlement => self.settlement(envelope, linked_minute, &mut rows),
            RecordKind::Retracted => self.retracted(envelope, linked_minute, &mut rows),
            RecordKind::Approval => self.approvals.decided(envelope, &mut rows),
            RecordKind::Agent => {
                self.registry.apply(seq, envelope, &mut rows);
                // An operator who lets an agent go on lets it begin anew.
                if envelope.code == "resumed" && envelope.name == "operator" {
                    self.anomaly_counts.forget_repeats(&envelope.principal, &mut rows);
                }
            }
            _ => {}
        }
        self.meters.expire(envelope.time, &mut rows);
        self.approvals.expire(self.limits, envelope.time, &mut rows);
        rows
    }

    fn decision(&mut self, seq: u64, envelope: &Envelope, rows: &mut Vec<Row>) {
        self.minutes.note(seq, envelope.time, rows);
        self.anomaly_counts.note(envelope, rows);
        if envelope.decision.is_some_and(Effect::lets_through) {
            let above = self.registry.payers(&envelope.principal, None);
            let sums = Sums::of(&envelope.amounts).raised();
            self.meters.book(envelope, &above, minute_of(envelope.time), sums, rows);
            self.rates.charge(envelope, rows);
        } else if is_charged_ask(envelope) {
            self.rates.charge(envelope, rows);
        }
        self.approvals.decision(self.limits, seq, envelope, rows);
    }

    fn settlement(&mut self, envelope: &Envelope, linked_minute: Option<i64>, rows: &mut Vec<Row>) {
        let sums = Sums::of(&envelope.amounts);
        let above = self.registry.payers(&envelope.principal, None);
        self.meters.book(envelope, &above, minute_of(envelope.time), sums.raised(), rows);
        if let Some(minute) = linked_minute {
            let above = self.registry.payers(&envelope.principal, envelope.links.first().copied());
            self.meters.book(envelope, &above, minute, sums.lowered(), rows);
        }
    }

    fn retracted(&mut self, envelope: &Envelope, linked_minute: Option<i64>, rows: &mut Vec<Row>) {
        if envelope.decision.is_some_and(Effect::lets_through) {
            if let Some(minute) = linked_minute {
                let above = self.registry.payers(&envelope.principal, envelope.links.first().copied());
                let sums = Sums::of(&envelope.amounts).raised().negated();
                self.meters.book(envelope, &above, minute, sums, rows);
            }
            self.rates.retract(envelope, rows);
        } else if is_charged_ask(envelope) {
            self.rates.retract(envelope, rows);
        }
        self.approvals.retract(envelope, rows);
    }

    /// Answers about the past for one action.
    pub fn view<'a>(
        &'a self,
        caller: &'a Caller,
        session: SessionId,
        digest: Digest,
        now: Timestamp,
    ) -> StateView<'a> {
        StateView::new(self, caller, session, digest, now)
    }

    /// All approvals that are kept, open and closed, in the order of their identifiers.
    pub fn approvals(&self) -> impl Iterator<Item = &ApprovalInfo> {
        self.approvals.list()
    }

    /// Approval by its identifier.
    pub fn approval(&self, id: ApprovalId) -> Option<&ApprovalInfo> {
        self.approvals.get(id)
    }

    /// All sessions that are remembered, in no particular order.
    pub fn sessions(&self) -> impl Iterator<Item = &SessionInfo> {
        self.sessions.list()
    }

    /// Session by its identifier.
    pub fn session(&self, id: SessionId) -> Option<&SessionInfo> {
        self.sessions.get(id)
    }

    /// The agents that are registered, and those that are stopped.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// All rows, sorted by fold and key.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        self.sessions.rows(&mut rows);
        self.agents.rows(&mut rows);
        self.meters.rows(&mut rows);
        self.rates.rows(&mut rows);
        self.approvals.rows(&mut rows);
        self.minutes.rows(&mut rows);
        self.registry.rows(&mut rows);
        self.anomaly_counts.rows(&mut rows);
        rows.sort_unstable_by(|left, right| (left.fold, &left.key).cmp(&(right.fold, &right.key)));
        rows
    }

    /// The state that these rows (fold, key, value) are, in any order.
    pub fn load<F, K, V>(rows: impl Iterator<Item = (F, K, V)>) -> Result<State, StateDamage>
    where
        F: AsRef<str>,
        K: AsRef<str>,
        V: AsRef<[u8]>,
    {
        State::load_with_limits(LIMITS, rows)
    }

    fn load_with_limits<F, K, V>(
        limits: Limits,
        rows: impl Iterator<Item = (F, K, V)>,
    ) -> Result<State, StateDamage>
    where
        F: AsRef<str>,
        K: AsRef<str>,
        V: AsRef<[u8]>,
    {
        let mut state = State::with_limits(limits);
        for (fold, key, value) in rows {
            let (fold, key) = (fold.as_ref(), key.as_ref());
            let damage = |problem| StateDamage { fold: fold.to_owned(), key: key.to_owned(), problem };
            let value = Json::parse(value.as_ref()).map_err(|_| damage("a value is not JSON"))?;
            let read = match fold {
                sessions::FOLD => state.sessions.load(key, &value),
                agents::FOLD => state.agents.load(key, &value),
                meters::FOLD => state.meters.load(key, &value),
                rates::FOLD => state.rates.load(key, &value),
                approvals::FOLD => state.approvals.load(key, &value),
                minutes::FOLD => state.minutes.load(key, &value),
                registry::FOLD => state.registry.load(key, &value),
                anomaly_counts::FOLD => state.anomaly_counts.load(key, &value),
                _ => return Err(damage("an unknown fold")),
            };
            read.ok_or_else(|| damage("an unreadable value"))?;
        }
        let no_summary = |sessions::MissingSummary(id)| StateDamage {
            fold: sessions::FOLD.to_owned(),
            key: id.to_string(),
            problem: "no row of its own",
        };
        state.sessions.finish_load().map_err(no_summary)?;
        state.agents.finish_load();
        state.meters.finish_load();
        state.minutes.finish_load();
        state.registry.finish_load();
        state.anomaly_counts.finish_load();
        Ok(state)
    }
}

/// Decisions set their taints when they let through, other records always.
fn sets_taints(envelope: &Envelope) -> bool {
    !envelope.taints.is_empty()
        && match envelope.kind {
            RecordKind::Decision => envelope.decision.is_some_and(Effect::lets_through),
            RecordKind::Retracted => false,
            _ => true,
        }
}

fn minute_of(time: Timestamp) -> i64 {
    time.micros().div_euclid(60_000_000)
}

fn hour_of(time: Timestamp) -> i64 {
    time.micros().div_euclid(3_600_000_000)
}

#[cfg(test)]
mod tests;
