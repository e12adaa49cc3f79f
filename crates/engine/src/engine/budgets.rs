//! Budgets after a decision: thresholds that are passed become alarms, and a suspension that a budget caused ends with its cause.

use std::sync::Arc;

use proctor_core::action::Action;
use proctor_core::id::{ApprovalId, SessionId};
use proctor_core::json::Json;
use proctor_core::record::{Amount, Envelope, RecordKind, claimed};
use proctor_core::session::Caller;
use proctor_facts::normalise;
use proctor_ledger::NotRecorded;
use proctor_policy::budgets::{Crossing, crossings, is_spent};
use proctor_policy::input::Input;
use proctor_policy::policy::Policy;
use proctor_policy::question::Account;

use super::queued::RecordDraft;
use super::reservation::AppendGuard;
use super::{Engine, EngineError, Inner, Notice};

/// Cause of suspensions by a budget.
const BUDGET: &str = "budget";

const HOUR_MICROS: i64 = 3_600_000_000;

impl Engine {
    /// An input that asks about nothing but the caller.
    pub(super) fn blank_input(&self, caller: &Caller) -> Input {
        let now = self.clock.now();
        let action = Action::default();
        Input {
            facts: normalise(&action, None),
            findings: Vec::new(),
            caller: caller.clone(),
            agent: String::new(),
            session: SessionId::new(now, &*self.randomness),
            digest: action.digest(&self.secret, &caller.principal, ""),
            now,
            fresh_approval: ApprovalId::new(now, &*self.randomness),
        }
    }

    /// Lifts a suspension that a budget caused when the budget is open again. Returns the notice that is due once that is on record.
    pub(super) fn end_budget_suspension(
        &self,
        inner: &mut AppendGuard<'_>,
        policy: &Policy,
        caller: &Caller,
    ) -> Option<Notice> {
        let (record, notice) = self.budget_resumed(inner, policy, caller)?;
        drop(self.append(inner, record.envelope, None, Some(self.due())));
        Some(notice)
    }

    fn budget_resumed(
        &self,
        inner: &Inner,
        policy: &Policy,
        caller: &Caller,
    ) -> Option<(RecordDraft, Notice)> {
        let principal = claimed(&caller.principal);
        let agent = inner.state.registry().get(&principal)?;
        if !agent.suspended.iter().any(|(cause, _)| cause == BUDGET) {
            return None;
        }
        let known_as = agent.agent.clone();
        let input = self.blank_input(caller);
        if is_spent(policy, &input, &inner.state.view(caller, input.session, input.digest, input.now)) {
            return None;
        }
        let reason = "the budget is open again".to_owned();
        let mut envelope = self.envelope(RecordKind::Agent);
        envelope.principal.clone_from(&principal);
        envelope.agent = claimed(&known_as);
        envelope.team = claimed(&caller.team);
        envelope.org = claimed(&caller.org);
        "policy".clone_into(&mut envelope.door);
        "resumed".clone_into(&mut envelope.code);
        BUDGET.clone_into(&mut envelope.name);
        envelope.rule.clone_from(&reason);
        Some((RecordDraft::new(envelope, None), Notice::Order { principal, code: "resumed", reason }))
    }

    /// Checks whether an agent's budget has capacity again, outside of a decision.
    pub async fn refresh_budget(self: &Arc<Engine>, caller: &Caller) -> Result<(), EngineError> {
        let caller = &*self.recorded_caller(caller);
        let policy = self.policy();
        let Some(reservation) = self.reserve(self.due()).await else { return Err(NotRecorded::Full.into()) };
        let (queued, notice) = {
            let mut inner = self.lock_for_append(reservation)?;
            let Some((record, notice)) = self.budget_resumed(&inner, &policy, caller) else { return Ok(()) };
            (self.enqueue_locked(&mut inner, vec![record]), notice)
        };
        Ok(self.agents_changed(queued, vec![notice]).await?)
    }

    /// Alarms about thresholds that a decision passes.
    pub(super) fn crossed(
        &self,
        inner: &Inner,
        decided: &Envelope,
        crossings: &[Crossing],
        sequence: u64,
    ) -> Vec<RecordDraft> {
        let records = self.crossing_records(inner, decided, crossings).into_iter();
        records
            .map(|record| RecordDraft {
                envelope: Envelope { links: vec![sequence], ..record.envelope },
                ..record
            })
            .collect()
    }

    /// Alarms for each crossed limit, window and threshold: several documents may have the same limit.
    fn crossing_records(&self, inner: &Inner, about: &Envelope, crossings: &[Crossing]) -> Vec<RecordDraft> {
        let mut records: Vec<RecordDraft> = Vec::new();
        for crossing in crossings {
            let record = self.crossing_record(inner, about, crossing);
            let is_new =
                |new: &RecordDraft| records.iter().all(|known| known.envelope.once != new.envelope.once);
            if let Some(record) = record.filter(is_new) {
                records.push(record);
            }
        }
        records
    }

    /// Alarms about thresholds that these amounts pass.
    pub(super) fn settled_crossings(
        &self,
        inner: &Inner,
        caller: &Caller,
        about: &Envelope,
        added: &[Amount],
    ) -> Vec<RecordDraft> {
        let raised: Vec<Amount> =
            added.iter().filter(|amount| amount.value.is_sign_positive()).cloned().collect();
        if raised.is_empty() {
            return Vec::new();
        }
        let input = self.blank_input(caller);
        let view = inner.state.view(caller, input.session, input.digest, input.now);
        let crossed = crossings(&self.policy(), &input, &view, &raised);
        self.crossing_records(inner, about, &crossed)
    }

    /// Alarm for a crossed threshold, once for each limit and window: amounts that were given back and spent again do not repeat it.
    fn crossing_record(&self, inner: &Inner, about: &Envelope, crossing: &Crossing) -> Option<RecordDraft> {
        let owner = match crossing.account {
            Account::Agent => crossing.above.as_ref().unwrap_or(&about.principal),
            Account::Team => &about.team,
            Account::Org => &about.org,
        };
        let once = format!(
            "budget:{}:{owner}:{}:{}:{}:{}",
            crossing.account.word(),
            crossing.key,
            crossing.limit.normalize(),
            crossing.window_start.micros().div_euclid(HOUR_MICROS),
            crossing.percent
        );
        if self.first_with(inner, &once).is_ok_and(|found| found.is_some()) {
            return None;
        }
        let envelope = Envelope {
            code: "budget_threshold".to_owned(),
            rule: format!("budget.{}", crossing.key),
            once: Some(once),
            ..self.envelope_about(RecordKind::Alarm, about)
        };
        let body = Json::object()
            .with("key", crossing.key.as_str())
            .with("account", crossing.account.word())
            .with("unit", crossing.unit.word())
            .with("percent", crossing.percent)
            .with("spent", crossing.spent.normalize().to_string())
            .with("limit", crossing.limit.normalize().to_string());
        Some(RecordDraft::new(envelope, Some(body.to_string().into_bytes())))
    }
}
