//! Description of a session as the protocol sends it, without credentials.

use proctor_core::json::Json;

use super::{Session, TrustLevel};
use proctor_mask::{MARK, Masker};
use proctor_proof::secret::Secret;

/// Shortest secret that is searched for in a description: shorter ones would match words of the protocol.
const SHORTEST_MASKED: usize = 6;

impl Session {
    /// The session as `resolved_identity`: every leaf of `credentials` is redacted.
    pub fn describe(&self) -> Json {
        let expires_at = self.expires_at.map(|moment| moment.to_string());
        let trust = Json::object()
            .with("declared_level", self.trust.declared.unwrap_or(TrustLevel::Supervised).word())
            .with("effective_level", self.trust.effective.word());
        let subject = Json::object()
            .with("principal", self.subject.principal.clone())
            .with("issuer", self.subject.issuer.clone())
            .with("run_as", self.subject.run_as.clone());
        let types: Vec<Json> = if self.credentials.is_empty() {
            Vec::new()
        } else {
            self.credential_types.iter().map(|word| Json::from(*word)).collect()
        };
        let chain: Vec<Json> = self.chain.iter().map(super::Hop::to_json).collect();
        Json::object()
            .with("provider", self.provider)
            .with("subject", self.masked(&subject))
            .with("instance", self.instance.clone())
            .with("trust", trust)
            .with("delegation_chain", self.masked(&Json::Array(chain)))
            .with("delegation_validation", self.masked(&self.delegation.to_json()))
            .with("credentials", self.redacted_credentials())
            .with("provider_assertions", self.masked(&self.assertions))
            .with(
                "refresh",
                Json::object().with("supported", self.is_refreshable).with("expires_at", expires_at.clone()),
            )
            .with(
                "handoff",
                Json::object()
                    .with("mode", self.handoff.mode.as_str())
                    .with("prepared", self.handoff.is_prepared),
            )
            .with(
                "credential_summary",
                Json::object().with("credential_types", types).with("expires_at", expires_at),
            )
    }

    fn redacted_credentials(&self) -> Json {
        let mut credentials = Json::object();
        for credential in &self.credentials {
            let mut parts = Json::object();
            for (name, _) in &credential.parts {
                parts.push(name, MARK);
            }
            credentials.push(credential.name, parts);
        }
        credentials
    }

    /// Texts that a server or a manifest controls, without the secrets that they may repeat.
    fn masked(&self, value: &Json) -> Json {
        let secrets: Vec<_> =
            self.secrets().into_iter().filter(|secret| secret.expose().len() >= SHORTEST_MASKED).collect();
        match Masker::new(secrets.iter().map(Secret::expose)) {
            Ok(masker) => masker.mask_json(value),
            // Secrets that cannot be searched for: nothing is shown.
            Err(_) => Json::from(MARK),
        }
    }
}
