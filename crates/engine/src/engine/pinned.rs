//! The pinned policy: the last one on record. Where there are approvers, a weaker one comes into force only when one of them accepts it.
//!
//! The record of a policy holds its sources whole, so the pinned policy is in force after a restart too, whatever the files say by then.

use std::path::PathBuf;
use std::sync::{Arc, MutexGuard, PoisonError};

use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_core::record::{RecordKind, claimed};
use proctor_ledger::reader::BodyState;
use proctor_ledger::store::{Filter, Order};
use proctor_ledger::{NotRecorded, Reader};
use proctor_policy::body::{policy_from_body, policy_json};
use proctor_policy::comparison::weaker_changes;
use proctor_policy::document::Problem;
use proctor_policy::policy::{Policy, Source};

use super::queued::RecordDraft;
use super::{Engine, EngineError, Notice, Reload};
use crate::access::built_in_policy;
use crate::approvers::{ApproverKeys, CredentialError};

/// The most alarms about weaker policies that one process records: an agent may write as many files as it likes.
const MAX_ALARMS: u32 = 64;

/// Code of the alarm about a weaker policy.
const ALARM: &str = "policy_weaker";

/// Condition under which a weaker policy may come into force.
#[derive(Debug, Clone, Default)]
pub struct PolicyGuard {
    /// File of approvers; none: a weaker policy is loaded, with an alarm.
    pub approvers: Option<PathBuf>,
}

impl PolicyGuard {
    /// Whether there is an approver. A file that cannot be read may name one.
    fn knows_approver(&self) -> bool {
        let Some(file) = &self.approvers else { return false };
        ApproverKeys::read(file, "").map_or(true, |keys| keys.names_somebody())
    }
}

/// Error of accepting a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AcceptRefusal {
    /// The credential is not good.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// The policy has mistakes.
    #[error("{}", .0.first().map_or_else(String::new, ToString::to_string))]
    Policy(Vec<Problem>),
    /// The sources are not those that were signed.
    #[error("policy {found} was sent, but {signed} was accepted: run `proctor policy accept` again")]
    Other {
        /// Digest of the sources.
        found: Digest,
        /// Digest in the statement.
        signed: Digest,
    },
    /// Another policy was loaded since the statement was signed.
    #[error("the policy in force changed meanwhile: run `proctor policy accept` again")]
    Outdated,
    /// The ledger did not take it.
    #[error("not recorded: {}", .0.cause())]
    NotRecorded(EngineError),
}

/// The last policy on record.
pub struct PinnedPolicy {
    /// Sequence of the record.
    pub sequence: u64,
    /// Digest of the policy.
    pub digest: Digest,
    /// The record's body; none if it was erased.
    body: Option<Vec<u8>>,
    /// Whether an approver was known when it was recorded.
    approver_known: bool,
}

impl PinnedPolicy {
    /// The policy; none if its sources were erased, or do not compile any more.
    pub fn compile(&self) -> Option<Policy> {
        policy_from_body(self.body.as_deref()?).ok().filter(|policy| policy.digest() == self.digest)
    }
}

/// Finds the last policy on record, without the closed one, which stands for none, and the built-in one.
pub fn pinned_policy(reader: &Reader) -> Result<Option<PinnedPolicy>, EngineError> {
    let without_files = [Policy::closed().digest(), built_in_policy()];
    let filter = Filter { kinds: vec![RecordKind::Policy], ..Filter::default() };
    for record in reader.records(filter, Order::Descending) {
        let record = record?;
        let digest = record.envelope.policy.filter(|_| record.envelope.code.starts_with("loaded"));
        let Some(digest) = digest.filter(|digest| !without_files.contains(digest)) else { continue };
        let body = match reader.body(record.seq)? {
            BodyState::Present { bytes, .. } => Some(bytes),
            _ => None,
        };
        let read = body.as_deref().and_then(|body| Json::parse(body).ok());
        let known = read.and_then(|body| body.get("approver_known")?.as_bool());
        // Erasing the record must not take the protection away.
        let approver_known = known.unwrap_or(body.is_none());
        return Ok(Some(PinnedPolicy { sequence: record.seq, digest, body, approver_known }));
    }
    Ok(None)
}

/// The last policy on record, compiled.
struct Last {
    sequence: u64,
    digest: Digest,
    policy: Option<Arc<Policy>>,
    approver_known: bool,
}

/// State of the guard.
#[derive(Default)]
pub(super) struct Pinned {
    last: Option<Last>,
    /// A weaker policy that waits for an approver.
    waiting: Option<Digest>,
    alarms: u32,
}

impl Pinned {
    /// The changes by which a policy is weaker than the pinned one.
    fn weaker(&self, policy: &Policy) -> Vec<String> {
        match &self.last {
            None => Vec::new(),
            Some(last) if last.digest == policy.digest() => Vec::new(),
            Some(Last { policy: Some(last), .. }) => weaker_changes(last, policy),
            Some(_) => {
                vec!["the policy on record cannot be read, so nothing can be compared with it".to_owned()]
            }
        }
    }
}

impl Engine {
    /// Puts the policy that the engine was given into force, or the pinned one in its place.
    pub(super) fn begin_policy(&self) -> Result<(), EngineError> {
        let given = self.policy();
        self.pinned().last = pinned_policy(&self.ledger.reader())?.map(|found| {
            let is_given = found.digest == given.digest();
            let policy = if is_given { Some(Arc::clone(&given)) } else { found.compile().map(Arc::new) };
            let PinnedPolicy { sequence, digest, approver_known, .. } = found;
            Last { sequence, digest, policy, approver_known }
        });
        let recorded = self.recorded_policy()?;
        if recorded == Some(given.digest()) {
            return Ok(());
        }
        let changes = self.weaker(&given);
        if changes.is_empty() || !self.is_guarded() {
            self.record_policy(&given, &changes)?;
            log_weaker(&changes);
            return Ok(());
        }
        let in_force = self.pinned().last.as_ref().and_then(|last| last.policy.clone());
        let in_force = in_force.unwrap_or_else(|| Arc::new(Policy::closed()));
        self.policy.store(Arc::clone(&in_force));
        if recorded != Some(in_force.digest()) {
            self.record_policy(&in_force, &[])?;
        }
        let (digest, in_force) = (given.digest(), in_force.digest());
        let changes = self.hold_back(digest, changes);
        if !changes.is_empty() {
            log::warn!(
                "policy {digest} is weaker, so {in_force} stays in force until `proctor policy accept`:"
            );
            for change in &changes {
                log::warn!("{change}");
            }
        }
        Ok(())
    }

    /// Puts a changed policy into force, unless it is weaker and has to be accepted.
    pub(super) fn load(&self, policy: Policy) -> Result<Reload, EngineError> {
        let policy = Arc::new(policy);
        let changes = self.weaker(&policy);
        if !changes.is_empty() && self.is_guarded() {
            return Ok(Reload::Weaker(self.hold_back(policy.digest(), changes)));
        }
        // Recorded first: no decision may rest on a policy that the ledger does not hold.
        self.record_policy(&policy, &changes)?;
        log_weaker(&changes);
        self.put_in_force(policy);
        Ok(Reload::Loaded)
    }

    /// Puts a policy into force that an approver accepts. Returns the approver's name and the sequence of the record.
    pub fn accept_policy(
        &self,
        signed: &str,
        sources: Vec<Source>,
        keys: &ApproverKeys,
    ) -> Result<(String, u64), AcceptRefusal> {
        let _reload = self.begin_reload();
        let (statement, approver) = keys.check_policy(signed)?;
        let policy = Arc::new(Policy::compile(sources).map_err(AcceptRefusal::Policy)?);
        if policy.digest() != statement.to {
            return Err(AcceptRefusal::Other { found: policy.digest(), signed: statement.to });
        }
        let (replaced, changes) = {
            let pinned = self.pinned();
            (pinned.last.as_ref().map(|last| (last.sequence, last.digest)), pinned.weaker(&policy))
        };
        if replaced != Some((statement.after, statement.from)) {
            return Err(AcceptRefusal::Outdated);
        }
        let accepted = Json::object()
            .with("approver", approver.as_str())
            .with("signed", signed)
            .with("from", statement.from.to_string())
            .with("changes", texts(&changes));
        let principal = format!("approver:{approver}");
        let sequence = self
            .record_as("loaded_accepted", &principal, &policy, Some(("accepted", accepted)), &[])
            .map_err(AcceptRefusal::NotRecorded)?;
        self.put_in_force(policy);
        Ok((approver, sequence))
    }

    /// Digest of a weaker policy that waits for an approver.
    pub fn waiting_policy(&self) -> Option<Digest> {
        self.pinned().waiting
    }

    /// The files hold the policy in force again.
    pub(crate) fn unchanged(&self) {
        self.pinned().waiting = None;
    }

    fn put_in_force(&self, policy: Arc<Policy>) {
        self.pinned().waiting = None;
        self.policy.store(policy);
        self.publish(Notice::Policy);
    }

    /// The changes by which a policy is weaker than the pinned one.
    fn weaker(&self, policy: &Policy) -> Vec<String> {
        if Engine::is_without_files(policy) { Vec::new() } else { self.pinned().weaker(policy) }
    }

    /// Whether a policy comes from no file: the closed one, and the one that this program brings along.
    fn is_without_files(policy: &Policy) -> bool {
        policy.sources().is_empty() || policy.digest() == built_in_policy()
    }

    /// Whether a weaker policy has to be accepted. An approver that was known once is not forgotten when the file is gone.
    fn is_guarded(&self) -> bool {
        let was_known = || self.pinned().last.as_ref().is_some_and(|last| last.approver_known);
        self.guard.approvers.is_some() && (self.guard.knows_approver() || was_known())
    }

    /// Notes that a weaker policy waits, with an alarm. Returns the changes, or none if that was told before.
    fn hold_back(&self, digest: Digest, changes: Vec<String>) -> Vec<String> {
        let (pinned_at, in_force) = {
            let mut pinned = self.pinned();
            if pinned.waiting.replace(digest) == Some(digest) || pinned.alarms >= MAX_ALARMS {
                return Vec::new();
            }
            pinned.alarms += 1;
            (pinned.last.as_ref().map_or(0, |last| last.sequence), self.policy().digest())
        };
        let mut alarm = self.alarm_about_policy(digest, in_force, &changes);
        // Once for each policy, however often the process is started again.
        alarm.envelope.once = Some(format!("{ALARM}:{pinned_at}:{digest}"));
        match self.record_all(vec![alarm]) {
            Ok(_) | Err(NotRecorded::Once { .. }) => {}
            Err(problem) => log::warn!("the alarm about a weaker policy is not on record: {problem}"),
        }
        changes
    }

    fn alarm_about_policy(&self, digest: Digest, in_force: Digest, changes: &[String]) -> RecordDraft {
        let mut envelope = self.envelope(RecordKind::Alarm);
        ALARM.clone_into(&mut envelope.code);
        let body = Json::object()
            .with("policy", digest.to_string())
            .with("in_force", in_force.to_string())
            .with("changes", texts(changes));
        RecordDraft::new(envelope, Some(body.to_string().into_bytes()))
    }

    /// Records a policy that comes into force, with an alarm if it is weaker than the one before.
    fn record_policy(&self, policy: &Arc<Policy>, weaker: &[String]) -> Result<u64, EngineError> {
        let code = if policy.weakenings().is_empty() { "loaded" } else { "loaded_weaker" };
        self.record_as(code, "", policy, None, weaker)
    }

    fn record_as(
        &self,
        code: &str,
        principal: &str,
        policy: &Arc<Policy>,
        member: Option<(&str, Json)>,
        weaker: &[String],
    ) -> Result<u64, EngineError> {
        let mut envelope = self.envelope(RecordKind::Policy);
        envelope.policy = Some(policy.digest());
        envelope.principal = claimed(principal);
        code.clone_into(&mut envelope.code);
        let mut body = policy_json(policy);
        let approver_known = self.is_guarded();
        if approver_known {
            body.push("approver_known", true);
        }
        if let Some((name, value)) = member {
            body.push(name, value);
        }
        let mut records = vec![RecordDraft::new(envelope, Some(body.to_string().into_bytes()))];
        if !weaker.is_empty() {
            let alarm = self.alarm_about_policy(policy.digest(), policy.digest(), weaker);
            records.push(RecordDraft::about_first(alarm.envelope, alarm.body));
        }
        let receipts = self.record_all(records).map_err(EngineError::PolicyNotRecorded)?;
        let sequence =
            receipts.first().map(proctor_ledger::Receipt::seq).ok_or(EngineError::NothingRecorded)?;
        if !Engine::is_without_files(policy) {
            let digest = policy.digest();
            self.pinned().last =
                Some(Last { sequence, digest, policy: Some(Arc::clone(policy)), approver_known });
        }
        Ok(sequence)
    }

    /// The digest of the last policy on record, a closed or built-in one included.
    fn recorded_policy(&self) -> Result<Option<Digest>, EngineError> {
        let filter = Filter { kinds: vec![RecordKind::Policy], ..Filter::default() };
        for record in self.ledger.reader().records(filter, Order::Descending) {
            let record = record?;
            if record.envelope.code.starts_with("loaded") {
                return Ok(record.envelope.policy);
            }
        }
        Ok(None)
    }

    fn pinned(&self) -> MutexGuard<'_, Pinned> {
        // Only whole values are put into it.
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn texts(changes: &[String]) -> Vec<Json> {
    changes.iter().map(|change| Json::from(change.as_str())).collect()
}

fn log_weaker(changes: &[String]) {
    if !changes.is_empty() {
        log::warn!(
            "the changed policy is weaker than the one before, and no approver is registered to accept it:"
        );
        for change in changes {
            log::warn!("{change}");
        }
    }
}

#[cfg(test)]
mod tests;
