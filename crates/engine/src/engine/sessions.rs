//! Lookup of the session that a message belongs to: found in the ledger, or begun.

use std::collections::HashMap;

use proctor_core::digest::Digest;
use proctor_core::id::SessionId;
use proctor_core::record::{RecordKind, claimed};
use proctor_core::session::{Caller, SessionKey};
use proctor_ledger::Wake;

use super::queued::RecordDraft;
use super::reservation::AppendGuard;
use super::{Engine, EngineError};
use crate::orders::agent_text;

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
                envelope.principal = claimed(&key.principal);
                envelope.team = claimed(&caller.team);
                envelope.org = claimed(&caller.org);
                envelope.agent = claimed(&agent_text(&key.agent));
                envelope.door = claimed(door);
                envelope.code = claimed(&self.without_secrets(&key.session));
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

    /// Cuts secrets from a claimed text, as it may be recorded.
    pub fn without_secrets(&self, text: &str) -> String {
        proctor_policy::prepare::redact_text(&self.policy(), text)
    }
}
