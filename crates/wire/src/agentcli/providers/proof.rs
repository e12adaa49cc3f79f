//! Methods of authorization proofs.

use proctor_core::json::Json;

use super::{listed, words};

/// A method of authorization proofs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProofMethod {
    /// Name in `authorization_proof_profiles[].method`.
    pub name: &'static str,
    /// Whether proofs are verified cryptographically; otherwise a profile cannot require it.
    pub cryptographic: bool,
    /// Sources that the proof's value can come from.
    pub value_sources: &'static [&'static str],
    /// Members of the profile that can hold the keys to trust.
    pub key_sources: &'static [&'static str],
    /// Signature algorithms; the key decides which one.
    pub algorithms: &'static [&'static str],
}

impl ProofMethod {
    /// Capabilities, as a list of methods has them.
    pub fn capabilities(&self) -> Json {
        let binds: &[&str] = if self.cryptographic { &["manifest_digest"] } else { &[] };
        Json::object()
            .with("cryptographic", self.cryptographic)
            .with("value_sources", words(self.value_sources))
            .with("key_sources", words(self.key_sources))
            .with("algorithms", words(self.algorithms))
            .with("binds", words(binds))
    }

    /// Name of the verifier, as `agentcli.authorizationProof.schema` sends it.
    pub fn verifier(&self) -> &'static str {
        self.name
    }

    /// Name and capabilities, as a list of methods has them.
    pub fn to_json(&self) -> Json {
        listed(self.name, self.capabilities())
    }
}

const SOURCES: &[&str] = &["env", "file", "command"];

pub(super) const METHODS: &[ProofMethod] = &[
    ProofMethod { name: "none", cryptographic: false, value_sources: &[], key_sources: &[], algorithms: &[] },
    ProofMethod {
        name: "jwt",
        cryptographic: true,
        value_sources: SOURCES,
        key_sources: &["public_key", "jwks_uri"],
        algorithms: &[
            "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
        ],
    },
    ProofMethod {
        name: "detached-signature",
        cryptographic: true,
        value_sources: SOURCES,
        key_sources: &["public_key", "allowed_signers"],
        algorithms: &["RSA", "ECDSA", "Ed25519", "SSHSIG"],
    },
    ProofMethod {
        name: "certificate",
        cryptographic: true,
        value_sources: SOURCES,
        key_sources: &["ca_certificate", "ca_certificate_from", "public_key"],
        algorithms: &["RSA", "ECDSA", "Ed25519"],
    },
];
