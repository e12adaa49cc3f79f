//! People's decisions on approvals: checked, recorded once, and held as grants by the state.

use std::time::Instant;

use proctor_core::id::ApprovalId;
use proctor_core::json::Json;
use proctor_core::record::{RecordKind, claimed};
use proctor_core::time::Timestamp;
use proctor_ledger::reader::BodyState;
use proctor_ledger::store::{Filter, Order};
use proctor_ledger::{NotRecorded, Reader};
use proctor_policy::question::ApprovalState;
use proctor_policy::state::ApprovalInfo;

use super::{Engine, EngineError, Notice};
use crate::approvers::{ApprovalOrder, ApproverKeys, CredentialError};

/// Error of deciding an approval.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalRefusal {
    /// No such approval.
    #[error("approval {0} is not known here: `proctor approve list` shows those that wait")]
    Unknown(ApprovalId),
    /// An approver has already decided.
    #[error("approval {0} is already decided")]
    Decided(ApprovalId),
    /// Too late.
    #[error("approval {0} expired at {1}")]
    Expired(ApprovalId, Timestamp),
    /// The asker cannot approve itself.
    #[error("`{0}` asked for this and cannot decide it")]
    OwnRequest(String),
    /// The rule names other approvers.
    #[error("this approval is for {0}")]
    NotNamed(String),
    /// The credential is not good.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// The reason would be stored with a secret in it.
    #[error("the reason holds a secret: write it without")]
    SecretReason,
    /// The ledger did not take it.
    #[error("not recorded: {}", .0.cause())]
    NotRecorded(EngineError),
}

impl Engine {
    /// Carries out a person's signed decision. Returns the order and the sequence of its record.
    pub fn decide_approval(
        &self,
        signed: &str,
        keys: &ApproverKeys,
    ) -> Result<(ApprovalOrder, u64), ApprovalRefusal> {
        let order = keys.check(signed)?;
        let statement = &order.statement;
        // The signed statement is stored as it is.
        if self.without_secrets(&statement.reason) != statement.reason {
            return Err(ApprovalRefusal::SecretReason);
        }
        let body =
            Json::object().with("approver", order.approver.as_str()).with("signed", order.note.as_str());
        let approver = format!("approver:{}", order.approver);
        let allowed = statement.decision.word() == "allow";
        let sequence = self.decide_as(&approver, statement.approval, allowed, &statement.reason, &body)?;
        Ok((order, sequence))
    }

    /// Records the decision of an approver whose credential has been checked: a principal `approver:NAME`, or an agent where agents may
    /// approve. Returns the sequence of its record.
    pub fn decide_as(
        &self,
        approver: &str,
        id: ApprovalId,
        allowed: bool,
        reason: &str,
        body: &Json,
    ) -> Result<u64, ApprovalRefusal> {
        let ask =
            self.find_ask(id).map_err(ApprovalRefusal::NotRecorded)?.ok_or(ApprovalRefusal::Unknown(id))?;
        let named = |name: &String| approver.strip_prefix("approver:") == Some(name.as_str());
        if !ask.approvers.is_empty() && !ask.approvers.iter().any(named) {
            return Err(ApprovalRefusal::NotNamed(ask.approvers.join(", ")));
        }
        let deadline = Instant::now() + self.answer;
        let reservation =
            self.reserve_blocking(deadline).map_err(|full| EngineError::from(NotRecorded::from(full)));
        let guard = reservation.and_then(|reservation| self.lock_for_append(reservation));
        let mut inner = guard.map_err(ApprovalRefusal::NotRecorded)?;
        let info = inner.state.approval(id).ok_or(ApprovalRefusal::Decided(id))?;
        if *info.principal == *approver {
            return Err(ApprovalRefusal::OwnRequest(approver.to_owned()));
        }
        let mut envelope = self.envelope(RecordKind::Approval);
        if info.state != ApprovalState::Waiting {
            return Err(ApprovalRefusal::Decided(id));
        }
        if envelope.time >= info.expires {
            return Err(ApprovalRefusal::Expired(id, info.expires));
        }
        // A grant holds as long as the question was open for, from the moment it is given.
        let wait = info.expires.micros_since(info.asked_at);
        envelope.expires = Some(envelope.time.plus_micros(i64::try_from(wait).unwrap_or(i64::MAX / 4)));
        envelope.session = info.session;
        envelope.principal = claimed(approver);
        envelope.agent = claimed(&info.agent);
        envelope.tool = claimed(&info.tool);
        envelope.approval = Some(id);
        envelope.code = if allowed { "allow" } else { "deny" }.to_owned();
        envelope.rule = claimed(&self.without_secrets(reason));
        envelope.once = Some(format!("approval:{id}"));
        envelope.links = vec![ask.sequence];
        let body = body.to_string().into_bytes();
        let pending = self.append(&mut inner, envelope, Some(body), Some(deadline));
        drop(inner);
        let recorded = pending.wait_or_leave(deadline);
        // Also when it is not known: whoever waits for it looks.
        self.decided.send_modify(|count| *count = count.wrapping_add(1));
        match recorded {
            Ok(receipt) => {
                self.publish(Notice::Decided(id, allowed));
                Ok(receipt.seq())
            }
            Err(NotRecorded::Once { .. }) => Err(ApprovalRefusal::Decided(id)),
            Err(NotRecorded::Unknown) => {
                self.publish(Notice::Decided(id, allowed));
                Err(ApprovalRefusal::NotRecorded(NotRecorded::Unknown.into()))
            }
            Err(problem) => Err(ApprovalRefusal::NotRecorded(problem.into())),
        }
    }

    /// Records once that an approval expired, and notifies subscribers; the asker is told when it asks again.
    pub fn expire(&self, id: ApprovalId) -> Result<(), EngineError> {
        let mut inner = self.lock_for_append(self.try_reserve()?)?;
        let mut envelope = self.envelope(RecordKind::Approval);
        let waits = |info: &&ApprovalInfo| {
            info.state == ApprovalState::Waiting && info.closed.is_none() && envelope.time >= info.expires
        };
        let once = format!("approval:{id}");
        let Some(info) = inner.state.approval(id).filter(waits) else { return Ok(()) };
        if self.first_with(&inner, &once)?.is_some() {
            return Ok(());
        }
        envelope.session = info.session;
        envelope.principal = "policy".to_owned();
        envelope.agent = claimed(&info.agent);
        envelope.tool = claimed(&info.tool);
        envelope.approval = Some(id);
        "expired".clone_into(&mut envelope.code);
        "nobody decided in time".clone_into(&mut envelope.rule);
        envelope.once = Some(once);
        envelope.links = vec![info.seq_of_ask];
        drop(self.append(&mut inner, envelope, None, None));
        self.publish(Notice::Decided(id, false));
        Ok(())
    }

    fn find_ask(&self, id: ApprovalId) -> Result<Option<Ask>, EngineError> {
        find_ask(&self.ledger().reader(), id)
    }
}

/// The first record that asked for an approval.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Sequence of the record.
    pub sequence: u64,
    /// Approvers who may decide; empty: any approver.
    pub approvers: Vec<String>,
    /// The decision record's body.
    pub body: Json,
}

/// Finds the record that asked for an approval.
pub fn find_ask(reader: &Reader, id: ApprovalId) -> Result<Option<Ask>, EngineError> {
    let filter = Filter { approval: Some(id), kinds: vec![RecordKind::Decision], ..Filter::default() };
    let Some(record) = reader.records(filter, Order::Ascending).next() else { return Ok(None) };
    let record = record?;
    let body = match reader.body(record.seq)? {
        BodyState::Present { bytes, .. } => {
            Json::parse(&bytes).map_err(|error| EngineError::AskDamaged { id, reason: error.to_string() })?
        }
        // Who may decide stands in the body; without it nobody may.
        _ => return Err(EngineError::AskErased(id)),
    };
    let named = body.get("decision").and_then(|decision| decision.get("approvers")).and_then(Json::as_array);
    let approvers = named.unwrap_or_default().iter().filter_map(Json::as_str).map(str::to_owned).collect();
    Ok(Some(Ask { sequence: record.seq, approvers, body }))
}
