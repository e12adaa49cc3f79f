//! Budgets after a decision: thresholds that are passed become alarms, and a suspension that a budget caused ends with its cause.

use std::time::Instant;

use proctor_core::action::Action;
use proctor_core::id::{ApprovalId, SessionId};
use proctor_core::json::Json;
use proctor_core::normalise::normalise;
use proctor_core::record::{Amount, Envelope, RecordKind, claimed};
use proctor_core::session::Caller;
use proctor_policy::budgets::{Crossing, crossings, is_spent};
use proctor_policy::input::Input;
use proctor_policy::policy::Policy;
use proctor_policy::question::Account;

use super::filing::Filed;
use super::{Engine, Inner, Notice};

/// The cause of a suspension that a budget gives.
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

    /// Whoever was suspended because a budget was used up goes on when it is open again.
    pub(super) fn end_budget_suspension(&self, inner: &mut Inner, policy: &Policy, caller: &Caller) {
        let principal = claimed(&caller.principal);
        let Some(agent) = inner.state.registry().get(&principal) else { return };
        if !agent.suspended.iter().any(|(cause, _)| cause == BUDGET) {
            return;
        }
        let agent_text = agent.agent.clone();
        let input = self.blank_input(caller);
        if is_spent(policy, &input, &inner.state.view(caller, input.session, input.digest, input.now)) {
            return;
        }
        let reason = "the budget is open again".to_owned();
        let mut envelope = self.envelope(RecordKind::Agent);
        envelope.principal.clone_from(&principal);
        envelope.agent = claimed(&agent_text);
        envelope.team = claimed(&caller.team);
        envelope.org = claimed(&caller.org);
        "policy".clone_into(&mut envelope.door);
        "resumed".clone_into(&mut envelope.code);
        BUDGET.clone_into(&mut envelope.name);
        envelope.rule.clone_from(&reason);
        drop(self.append(inner, envelope, None, Some(Instant::now() + self.answer)));
        self.tell(Notice::Order { principal, code: "resumed", reason });
    }

    /// Looks whether an agent's budget is open again, outside of a decision.
    pub fn refresh_budget(&self, caller: &Caller) -> Result<(), String> {
        let policy = self.policy();
        self.end_budget_suspension(&mut *self.lock()?, &policy, caller);
        Ok(())
    }

    /// Alarms about thresholds that a decision has passed, right behind it in the queue.
    pub(super) fn note_crossings(
        &self,
        inner: &mut Inner,
        decided: &Envelope,
        crossings: &[Crossing],
        sequence: u64,
    ) {
        for crossing in crossings {
            let Some(filed) = self.crossing_record(inner, decided, crossing) else { continue };
            let envelope = Envelope { links: vec![sequence], ..filed.envelope };
            drop(self.append(inner, envelope, filed.body, Some(Instant::now() + self.answer)));
        }
    }

    /// Alarms about thresholds that these amounts pass.
    pub(super) fn settled_crossings(
        &self,
        inner: &Inner,
        caller: &Caller,
        about: &Envelope,
        added: &[Amount],
    ) -> Vec<Filed> {
        let raised: Vec<Amount> =
            added.iter().filter(|amount| amount.value.is_sign_positive()).cloned().collect();
        if raised.is_empty() {
            return Vec::new();
        }
        let input = self.blank_input(caller);
        let view = inner.state.view(caller, input.session, input.digest, input.now);
        let crossed = crossings(&self.policy(), &input, &view, &raised);
        crossed.iter().filter_map(|crossing| self.crossing_record(inner, about, crossing)).collect()
    }

    /// Once for each limit, window and threshold: what was given back and spent again is no news.
    fn crossing_record(&self, inner: &Inner, about: &Envelope, crossing: &Crossing) -> Option<Filed> {
        let owner = match crossing.account {
            Account::Agent => &about.principal,
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
        let own = self.envelope(RecordKind::Alarm);
        let envelope = Envelope {
            session: about.session,
            principal: about.principal.clone(),
            agent: about.agent.clone(),
            team: about.team.clone(),
            org: about.org.clone(),
            door: about.door.clone(),
            code: "budget_threshold".to_owned(),
            rule: format!("budget.{}", crossing.key),
            once: Some(once),
            ..own
        };
        let body = Json::object()
            .with("key", crossing.key.as_str())
            .with("account", crossing.account.word())
            .with("unit", crossing.unit.word())
            .with("percent", crossing.percent)
            .with("spent", crossing.spent.normalize().to_string())
            .with("limit", crossing.limit.normalize().to_string());
        Some(Filed::new(envelope, Some(body.to_string().into_bytes())))
    }
}
