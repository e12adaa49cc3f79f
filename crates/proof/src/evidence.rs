//! Evidence of runs: a payload with hashes of what ran, in an envelope that is signed with an SSH key.
//!
//! The signature is over the envelope's canonical text without its member `signature`, so that
//! `ssh-keygen -Y verify -n agentcli` accepts it.

use proctor_core::json::Json;
use proctor_core::time::Timestamp;
use proctor_wire::agentcli::canonical::{self, NotCanonical};
use proctor_wire::agentcli::error::Code;

use crate::ssh::{
    self, AllowedSigners, DEFAULT_NAMESPACE, PrivateKey, PrivateKeyError, Request, SignerError,
};

/// Name of the payload's schema.
pub const PAYLOAD_SCHEMA: &str = "agentcli.evidence.payload";
/// Name of the envelope's schema.
pub const ENVELOPE_SCHEMA: &str = "agentcli.evidence.envelope";
/// Method of the provider `ssh`.
pub const SSH_METHOD: &str = "ssh-signature";
const VERSION: u8 = 1;

/// Parts of a payload. They are hashes, names and decisions: nothing in them is a secret, which the caller sees to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Payload {
    /// Id of the run.
    pub execution_id: String,
    /// End of the run, RFC 3339.
    pub timestamp: String,
    /// `workflow_id` and `task_id`.
    pub source: Json,
    /// Digest of the manifest.
    pub manifest_digest: String,
    /// Hash of the effective task.
    pub effective_task_hash: String,
    /// Identity as the manifest declares it.
    pub declared_identity: Json,
    /// Identity as it was resolved, redacted.
    pub resolved_identity: Json,
    /// Summary of the verified proof.
    pub authorization_proof: Json,
    /// Decision of the authorization provider.
    pub authorization: Json,
    /// Who acted, and on whose behalf.
    pub actor_context: Json,
    /// Effective contract.
    pub contract: Json,
    /// Hashes of program, arguments and environment.
    pub command: Json,
    /// Result of the run: exit, hashes and sizes of its output.
    pub result: Json,
    /// Result of the verification command.
    pub verify: Json,
    /// Free context of the manifest's evidence block.
    pub compliance_context: Json,
}

impl Payload {
    /// Payload as it is signed.
    pub fn to_json(&self) -> Json {
        let bindings = Json::object()
            .with("manifest_digest", self.manifest_digest.as_str())
            .with("effective_task_hash", self.effective_task_hash.as_str());
        Json::object()
            .with("schema", PAYLOAD_SCHEMA)
            .with("version", VERSION)
            .with("execution_id", self.execution_id.as_str())
            .with("timestamp", self.timestamp.as_str())
            .with("source", self.source.clone())
            .with("bindings", bindings)
            .with("declared_identity", self.declared_identity.clone())
            .with("resolved_identity", self.resolved_identity.clone())
            .with("authorization_proof", self.authorization_proof.clone())
            .with("authorization", self.authorization.clone())
            .with("actor_context", self.actor_context.clone())
            .with("contract", self.contract.clone())
            .with("command", self.command.clone())
            .with("result", self.result.clone())
            .with("verify", self.verify.clone())
            .with("compliance_context", self.compliance_context.clone())
    }
}

/// Evidence that cannot be made or is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// A value without a canonical text.
    #[error("the evidence has no canonical text: {0}")]
    NotCanonical(#[from] NotCanonical),
    /// The private key, or signing with it.
    #[error("the evidence cannot be signed: {0}")]
    Key(#[from] PrivateKeyError),
    /// An envelope of another schema, version or method, or without a member.
    #[error("the envelope's member `{0}` is absent or has another value than version {VERSION} prescribes")]
    Envelope(&'static str),
    /// The payload's digest differs.
    #[error("the payload was changed: its digest is not the envelope's")]
    PayloadChanged,
    /// The signature was made by another key than the envelope names.
    #[error("the envelope names another key than the one that signed it")]
    OtherKey,
    /// The signature or its signer.
    #[error(transparent)]
    Signer(#[from] SignerError),
}

impl EvidenceError {
    /// Detail code.
    pub fn code(&self) -> Code {
        Code::EvidenceFailed
    }
}

/// Signs a payload; the answer is the envelope.
///
/// `payload_format` is the manifest's wish (`canonical-json` or `json`): the payload is in the envelope as JSON either way, and the digest
/// is of its canonical text.
pub fn sign(
    payload: &Json,
    payload_format: &str,
    principal: &str,
    key: &PrivateKey,
) -> Result<Json, EvidenceError> {
    let unsigned = Json::object()
        .with("schema", ENVELOPE_SCHEMA)
        .with("version", VERSION)
        .with("method", SSH_METHOD)
        .with("key_fingerprint", key.public().fingerprint())
        .with("principal", principal)
        .with("namespace", DEFAULT_NAMESPACE)
        .with("payload_format", payload_format)
        .with("payload_digest", canonical::digest(payload)?)
        .with("signed_payload", payload.clone());
    let signature = ssh::sign(DEFAULT_NAMESPACE, canonical::text(&unsigned)?.as_bytes(), key)?;
    Ok(unsigned.with("signature", signature))
}

/// Text that an envelope's signature covers: its canonical form without `signature`.
pub fn signed_text(envelope: &Json) -> Result<String, EvidenceError> {
    let members = envelope.as_object().ok_or(EvidenceError::Envelope("schema"))?;
    let unsigned = members.iter().filter(|(name, _)| name != "signature").cloned().collect();
    Ok(canonical::text(&Json::Object(unsigned))?)
}

/// Verifies an envelope against allowed signers: shape, payload, signature, and that the named key signed for the named principal.
pub fn verify(envelope: &Json, signers: &AllowedSigners, now: Timestamp) -> Result<(), EvidenceError> {
    let text =
        |name: &'static str| envelope.get(name).and_then(Json::as_str).ok_or(EvidenceError::Envelope(name));
    let fixed = [("schema", ENVELOPE_SCHEMA), ("method", SSH_METHOD), ("namespace", DEFAULT_NAMESPACE)];
    for (name, value) in fixed {
        if text(name)? != value {
            return Err(EvidenceError::Envelope(name));
        }
    }
    if envelope.get("version").and_then(Json::as_u64) != Some(u64::from(VERSION)) {
        return Err(EvidenceError::Envelope("version"));
    }
    let payload = envelope.get("signed_payload").ok_or(EvidenceError::Envelope("signed_payload"))?;
    if canonical::digest(payload)? != text("payload_digest")? {
        return Err(EvidenceError::PayloadChanged);
    }
    let request = Request { principal: text("principal")?, namespace: DEFAULT_NAMESPACE, now };
    let signer = ssh::verify(signers, &request, signed_text(envelope)?.as_bytes(), text("signature")?)?;
    if signer.key().fingerprint() != text("key_fingerprint")? {
        return Err(EvidenceError::OtherKey);
    }
    Ok(())
}
