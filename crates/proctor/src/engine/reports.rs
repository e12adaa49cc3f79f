//! What agents report after a decision: outcomes, with actual amounts, and observations.

use proctor_core::decision::Effect;
use proctor_core::id::RecordId;
use proctor_core::json::Json;
use proctor_core::record::{Amount, Envelope, RecordKind, claimed};
use proctor_core::session::{Caller, SessionKey};
use proctor_ledger::{NotRecorded, Receipt};
use rust_decimal::Decimal;

use super::Engine;

/// Something that an agent reports.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// What became of an action.
    Outcome {
        /// The decision that it was let through by.
        decision: RecordId,
        /// Whether it succeeded.
        ok: bool,
        /// What it gave.
        result: Json,
        /// Tokens really used.
        tokens: Option<u64>,
        /// Money really spent.
        cost_usd: Option<Decimal>,
    },
    /// Anything else.
    Observation {
        /// What kind of thing.
        code: String,
        /// The thing itself.
        data: Json,
    },
}

impl Engine {
    /// Records a report; secrets are cut like everywhere else. Gives the receipt of the record.
    pub fn report(
        &self,
        caller: &Caller,
        agent: &str,
        session: &str,
        door: &str,
        report: Report,
    ) -> Result<Receipt, String> {
        let key = SessionKey {
            principal: caller.principal.clone(),
            agent: agent.to_owned(),
            session: session.to_owned(),
        };
        match report {
            Report::Observation { code, data } => self.observation(caller, &key, door, &code, &data),
            Report::Outcome { decision, ok, result, tokens, cost_usd } => {
                self.outcome(caller, door, decision, ok, &result, tokens, cost_usd)
            }
        }
    }

    fn observation(
        &self,
        caller: &Caller,
        key: &SessionKey,
        door: &str,
        code: &str,
        data: &Json,
    ) -> Result<Receipt, String> {
        let mut inner = self.lock()?;
        let session = self.session(&mut inner, key, caller, door)?;
        let mut envelope = self.envelope(RecordKind::Observation);
        envelope.session = Some(session);
        envelope.principal = claimed(&caller.principal);
        envelope.team = claimed(&caller.team);
        envelope.org = claimed(&caller.org);
        envelope.agent = claimed(&self.without_secrets(&key.agent));
        envelope.door = claimed(door);
        envelope.code = claimed(&self.without_secrets(code));
        let data = proctor_policy::prepare::cut_json(&self.policy(), data);
        let body = Json::object().with("data", data).to_string().into_bytes();
        drop(inner);
        let receipts = self.record_all(&[(envelope, Some(body))]).map_err(|problem| problem.to_string())?;
        receipts.into_iter().next().ok_or_else(|| "nothing was recorded".to_owned())
    }

    #[expect(clippy::too_many_arguments, reason = "they are the members of one report")]
    fn outcome(
        &self,
        caller: &Caller,
        door: &str,
        decision: RecordId,
        ok: bool,
        result: &Json,
        tokens: Option<u64>,
        cost_usd: Option<Decimal>,
    ) -> Result<Receipt, String> {
        let reader = self.ledger().reader();
        let stranger = || format!("decision {decision} is not one of yours");
        let sequence = reader.by_id(&decision).map_err(|error| error.to_string())?.ok_or_else(stranger)?;
        let asked = reader.envelope(sequence).map_err(|error| error.to_string())?;
        if asked.kind != RecordKind::Decision || asked.principal != claimed(&caller.principal) {
            return Err(stranger());
        }
        let mut envelope = self.envelope(RecordKind::Outcome);
        envelope.session = asked.session;
        envelope.principal.clone_from(&asked.principal);
        envelope.team.clone_from(&asked.team);
        envelope.org.clone_from(&asked.org);
        envelope.agent.clone_from(&asked.agent);
        envelope.door = claimed(door);
        envelope.tool.clone_from(&asked.tool);
        envelope.name.clone_from(&asked.name);
        envelope.code = if ok { "ok" } else { "failed" }.to_owned();
        envelope.links = vec![sequence];
        // One outcome for one decision.
        envelope.once = Some(format!("outcome:{decision}"));
        if let Some(first) = envelope.once.as_ref().and_then(|key| reader.once(key).ok().flatten()) {
            return Err(format!("the outcome of {decision} is on record already, at {first}"));
        }
        let result = proctor_policy::prepare::cut_json(&self.policy(), result);
        let body = Json::object().with("result", result).to_string().into_bytes();
        // What was denied and done all the same is billed in full, and an alarm.
        let denied = !asked.decision.is_some_and(Effect::lets_through);
        let reserved = if denied { Vec::new() } else { asked.amounts };
        let amounts = differences(&reserved, tokens, cost_usd);
        let mut records = vec![(envelope.clone(), Some(body))];
        if !amounts.is_empty() {
            let once = Some(format!("settlement:{decision}"));
            records.push((self.beside(&envelope, RecordKind::Settlement, "", once, amounts), None));
        }
        if denied {
            records
                .push((self.beside(&envelope, RecordKind::Alarm, "denied_but_done", None, Vec::new()), None));
        }
        // All of them are on record before the agent hears of it.
        match self.record_all(&records).map(|receipts| receipts.into_iter().next()) {
            Ok(Some(receipt)) => Ok(receipt),
            Ok(None) => Err("nothing was recorded".to_owned()),
            Err(NotRecorded::Once { first }) => {
                Err(format!("the outcome of {decision} is on record already, at {first}"))
            }
            Err(problem) => Err(problem.to_string()),
        }
    }

    /// A record about the same thing as another.
    fn beside(
        &self,
        envelope: &Envelope,
        kind: RecordKind,
        code: &str,
        once: Option<String>,
        amounts: Vec<Amount>,
    ) -> Envelope {
        let own = self.envelope(kind);
        Envelope {
            id: own.id,
            time: own.time,
            kind,
            code: code.to_owned(),
            once,
            amounts,
            ..envelope.clone()
        }
    }
}

impl Engine {
    /// Erases the body of a record. Gives the sequence of the erasure's own record.
    pub fn erase(&self, sequence: u64, by: &str, reason: &str) -> Result<u64, String> {
        let mut inner = self.lock()?;
        let mut envelope = self.envelope(RecordKind::Erasure);
        envelope.principal = claimed(by);
        envelope.links = vec![sequence];
        "erased".clone_into(&mut envelope.code);
        envelope.rule = claimed(&self.without_secrets(reason));
        let pending = self.ledger().erase(sequence, envelope);
        if pending.refusal().is_none() {
            inner.next += 1;
        }
        drop(inner);
        pending.wait().map(|receipt| receipt.seq()).map_err(|problem| problem.to_string())
    }
}

/// Actual minus reserved, for each unit that was reported.
fn differences(reserved: &[Amount], tokens: Option<u64>, cost_usd: Option<Decimal>) -> Vec<Amount> {
    let before = |unit: &str| {
        reserved.iter().find(|amount| amount.unit == unit).map_or(Decimal::ZERO, |amount| amount.value)
    };
    let reported = [("tokens", tokens.map(Decimal::from)), ("usd", cost_usd)];
    reported
        .into_iter()
        .filter_map(|(unit, actual)| {
            let value = actual?.checked_sub(before(unit))?.normalize();
            (!value.is_zero()).then(|| Amount { unit: unit.to_owned(), value, limit: None })
        })
        .collect()
}
