//! Lookup of the session that a message belongs to: found in the ledger, or begun.

use std::borrow::Cow;
use std::collections::HashMap;

use proctor_core::digest::Digest;
use proctor_core::id::SessionId;
use proctor_core::record::{RecordKind, claimed};
use proctor_core::session::{Caller, SessionKey};
use proctor_ledger::Wake;

use super::queued::RecordDraft;
use super::reservation::AppendGuard;
use super::{Engine, EngineError};

/// The sessions that were seen lately; a cache of what the ledger knows.
#[derive(Default)]
pub(super) struct Sessions(HashMap<Digest, SessionId>);

/// The cache is cleared at this size.
const MAX_CACHED: usize = 16_384;

impl Engine {
    /// Our identifier of the session; the first message of a session begins it with a record.
    pub(super) fn session(
        &self,
        inner: &mut AppendGuard<'_>,
        key: &SessionKey,
        caller: &Caller,
        door: &str,
        wake: Wake,
    ) -> Result<SessionId, EngineError> {
        let digest = key.digest();
        if let Some(session) = inner.sessions.0.get(&digest) {
            return Ok(*session);
        }
        let once = format!("session:{digest}");
        let session = match self.recorded_session(&once)? {
            Some(session) => session,
            None => {
                let mut envelope = self.envelope(RecordKind::Session);
                let session = SessionId::new(envelope.time, &*self.randomness);
                envelope.session = Some(session);
                envelope.principal = claimed(&caller.principal);
                envelope.team = claimed(&caller.team);
                envelope.org = claimed(&caller.org);
                envelope.agent = self.agent_text(&key.agent);
                envelope.door = claimed(door);
                envelope.code = self.identifier(&key.session);
                envelope.once = Some(once);
                // If this fails, so does the decision behind it in the queue, and both are taken again.
                let begun = RecordDraft::new(envelope, None);
                drop(self.append_together(inner, begun, Vec::new(), Some(self.due()), wake));
                session
            }
        };
        if inner.sessions.0.len() >= MAX_CACHED {
            inner.sessions.0.clear();
        }
        inner.sessions.0.insert(digest, session);
        Ok(session)
    }

    pub(super) fn recorded_session(&self, once: &str) -> Result<Option<SessionId>, EngineError> {
        let reader = self.ledger().reader();
        let Some(sequence) = reader.once(once)? else { return Ok(None) };
        let envelope = reader.envelope(sequence)?;
        Ok(envelope.session)
    }

    /// An identifier as records hold it: itself, or, if a pattern of the policy takes it for a secret, a keyed digest, always the same.
    pub fn identifier(&self, text: &str) -> String {
        claimed(&self.policy().identifiers(&self.secret).text(text))
    }

    /// An agent's identifier as records hold it. A public key is no secret, although it looks like one.
    pub fn agent_text(&self, agent: &str) -> String {
        if proctor_wire::assembly::did::decode(agent).is_ok() {
            return agent.to_owned();
        }
        self.identifier(agent)
    }

    /// Whether what a record holds stands for an identifier.
    pub fn stands_for(&self, recorded: &str, identifier: &str) -> bool {
        recorded == claimed(identifier)
            || self.policy().identifiers(&self.secret).stands_for(recorded, identifier)
    }

    /// The principal as records hold it.
    pub fn principal_text(&self, principal: &str) -> String {
        claimed(&self.policy().identifiers(&self.secret).name(principal))
    }

    /// The caller as records and the state name it.
    pub(super) fn recorded_caller<'c>(&self, caller: &'c Caller) -> Cow<'c, Caller> {
        let policy = self.policy();
        let identifiers = policy.identifiers(&self.secret);
        let principal = identifiers.name(&caller.principal);
        let team = identifiers.text(&caller.team);
        let org = identifiers.text(&caller.org);
        if principal == caller.principal && team == caller.team && org == caller.org {
            return Cow::Borrowed(caller);
        }
        Cow::Owned(Caller { principal, team, org })
    }

    /// Cuts secrets from a claimed text, as it may be recorded.
    pub fn without_secrets(&self, text: &str) -> String {
        proctor_policy::prepare::redact_text(&self.policy(), text)
    }
}
