//! Callers and sessions.

use crate::digest::Digest;

/// The caller, as far as it is known for certain: budgets, limits, suspension and grants key on `principal`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Caller {
    /// Holder of the authenticated token, certificate or uid.
    pub principal: String,
    /// The team it belongs to; empty if none.
    pub team: String,
    /// The organisation it belongs to; empty if none.
    pub org: String,
}

/// Key of a session: the principal, and the agent and session that its messages claim.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey {
    /// The principal.
    pub principal: String,
    /// The agent, as claimed.
    pub agent: String,
    /// The session, as claimed.
    pub session: String,
}

impl SessionKey {
    /// A digest that stands for the key. Each part is preceded by its length, so that parts cannot run together.
    pub fn digest(&self) -> Digest {
        let mut bytes = Vec::new();
        for part in [&self.principal, &self.agent, &self.session] {
            bytes.extend_from_slice(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        Digest::of(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cannot_run_together() {
        let key = |principal: &str, agent: &str| SessionKey {
            principal: principal.into(),
            agent: agent.into(),
            session: String::new(),
        };
        assert_ne!(key("ab", "c").digest(), key("a", "bc").digest());
    }
}
