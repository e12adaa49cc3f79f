//! Resolved identity of a task: subject, trust, delegation chain and credentials.

mod describe;
mod lookup;
#[cfg(test)]
mod tests;

use proctor_core::json::Json;
use proctor_core::time::Timestamp;
use proctor_proof::secret::Secret;
use proctor_wire::agentcli::error::Code;

use crate::delegation::{DelegationValidation, Hop};

pub use lookup::{Lookup, LookupError};

/// Levels of trust, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrustLevel {
    /// No autonomy.
    Untrusted,
    /// Few actions.
    Restricted,
    /// Actions under supervision.
    Supervised,
    /// All actions.
    Autonomous,
}

impl TrustLevel {
    /// The level of a word.
    pub fn of_word(word: &str) -> Option<TrustLevel> {
        [TrustLevel::Untrusted, TrustLevel::Restricted, TrustLevel::Supervised, TrustLevel::Autonomous]
            .into_iter()
            .find(|level| level.word() == word)
    }

    /// The word of the level.
    pub const fn word(self) -> &'static str {
        match self {
            TrustLevel::Untrusted => "untrusted",
            TrustLevel::Restricted => "restricted",
            TrustLevel::Supervised => "supervised",
            TrustLevel::Autonomous => "autonomous",
        }
    }
}

/// Trust of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trust {
    /// Level that the manifest declares.
    pub declared: Option<TrustLevel>,
    /// Level that counts: the declared one, `supervised` without one, and never above `max_autonomy`.
    pub effective: TrustLevel,
}

impl Trust {
    /// Reads the block `trust` of a merged identity.
    pub fn from_json(trust: Option<&Json>) -> Trust {
        let word = |value: Option<&Json>| value.and_then(Json::as_str).and_then(TrustLevel::of_word);
        let declared = word(trust.and_then(|trust| trust.get("level")));
        let ceiling = word(trust.and_then(|trust| trust.pointer("/constraints/max_autonomy")));
        let level = declared.unwrap_or(TrustLevel::Supervised);
        Trust { declared, effective: ceiling.map_or(level, |ceiling| level.min(ceiling)) }
    }
}

/// Subject of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subject {
    /// Principal: the manifest's, else the provider's.
    pub principal: Option<String>,
    /// Issuer: the manifest's, else the provider's.
    pub issuer: Option<String>,
    /// Account that the task runs as.
    pub run_as: Option<String>,
}

/// Credential of a session, under its name in `credentials`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Name, for example `access_token`.
    pub name: &'static str,
    /// Parts: `value`, and what else belongs to it.
    pub parts: Vec<(&'static str, Secret)>,
}

impl Credential {
    /// A credential that is one value.
    pub fn new(name: &'static str, value: Secret) -> Credential {
        Credential { name, parts: vec![("value", value)] }
    }

    /// The credential with one more part.
    #[must_use]
    pub fn with(mut self, name: &'static str, part: Secret) -> Credential {
        self.parts.push((name, part));
        self
    }
}

/// Handoff of credentials to the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handoff {
    /// Word of `presentation.handoff`.
    pub mode: String,
    /// Whether the credentials are the narrower ones that the mode asks for.
    pub is_prepared: bool,
}

/// Resolved identity. `Debug` and descriptions hold no credential.
#[derive(Debug, Clone)]
pub struct Session {
    /// Provider's name.
    pub provider: &'static str,
    /// Subject.
    pub subject: Subject,
    /// Instance of the task, if the caller named one.
    pub instance: Option<String>,
    /// Trust.
    pub trust: Trust,
    /// Delegation chain, origin first.
    pub chain: Vec<Hop>,
    /// Verdict on the chain.
    pub delegation: DelegationValidation,
    /// Credentials; empty if there are none, or if they were optional and could not be resolved.
    pub credentials: Vec<Credential>,
    /// Facts that the provider states about itself, without credentials.
    pub assertions: Json,
    /// Whether the provider can refresh credentials.
    pub is_refreshable: bool,
    /// Expiry of the credentials.
    pub expires_at: Option<Timestamp>,
    /// Handoff.
    pub handoff: Handoff,
    /// Code of the failure that `auth.required: false` turned into this empty session.
    pub unresolved: Option<Code>,
    /// Whether `auth.required` is false.
    pub is_optional: bool,
    /// Kinds of credentials that the provider's sessions hold.
    pub(crate) credential_types: &'static [&'static str],
    /// Secrets that were used to get the credentials, to be masked like them.
    pub(crate) used: Vec<Secret>,
}

impl Session {
    /// Principal of the session.
    pub fn principal(&self) -> Option<&str> {
        self.subject.principal.as_deref()
    }

    /// All secrets of the session, for masking: credentials, and what was used to get them.
    pub fn secrets(&self) -> Vec<Secret> {
        let parts = self.credentials.iter().flat_map(|credential| &credential.parts);
        let hidden =
            self.chain.iter().filter(|hop| hop.is_hidden).map(|hop| Secret::new(hop.principal.as_str()));
        parts.map(|(_, part)| part.clone()).chain(self.used.iter().cloned()).chain(hidden).collect()
    }
}
