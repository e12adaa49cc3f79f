//! Hot reload: a valid policy comes into force and is recorded; an invalid one changes nothing and says so.

use proctor_core::json::Json;
use proctor_core::record::RecordKind;
use proctor_policy::document::Problem;
use proctor_policy::policy::Policy;

use super::queued::RecordDraft;
use super::{Engine, EngineError};

/// Result of a policy reload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reload {
    /// The sources are the ones in force.
    Unchanged,
    /// The new policy is in force.
    Loaded,
    /// The old policy stays.
    Refused(Vec<Problem>),
    /// The new policy is weaker, by these changes: the old one stays until an approver accepts it. Empty if that was told before.
    Weaker(Vec<String>),
    /// The ledger did not take the record, so the old policy stays.
    NotRecorded(EngineError),
}

impl Engine {
    /// Excludes other reloads. Taken before the files are read: of two threads the one that read last must also be the last to store, or a
    /// policy that was replaced would come back.
    pub(crate) fn begin_reload(&self) -> std::sync::MutexGuard<'_, ()> {
        self.reloading.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Puts a freshly read policy into force.
    pub fn reload(&self, read: Result<Policy, Vec<Problem>>) -> Reload {
        match read {
            Ok(policy) if policy.digest() == self.policy().digest() => {
                self.unchanged();
                Reload::Unchanged
            }
            Ok(policy) => self.load(policy).unwrap_or_else(Reload::NotRecorded),
            Err(problems) => {
                self.record_refusal(&problems);
                Reload::Refused(problems)
            }
        }
    }

    fn record_refusal(&self, problems: &[Problem]) {
        let mut envelope = self.envelope(RecordKind::Policy);
        "refused".clone_into(&mut envelope.code);
        envelope.policy = Some(self.policy().digest());
        let listed =
            problems.iter().take(100).map(|problem| Json::from(problem.to_string())).collect::<Vec<_>>();
        let body = Json::object().with("problems", listed).to_string().into_bytes();
        if let Err(problem) = self.record_all(vec![RecordDraft::new(envelope, Some(body))]) {
            log::warn!("the refused policy is not on record: {problem}");
        }
    }
}
