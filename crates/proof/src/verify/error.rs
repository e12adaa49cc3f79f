//! Failures of proofs.

use proctor_wire::agentcli::error::Code;

use crate::certificate::CertificateError;
use crate::detached::DetachedError;
use crate::jwt::JwtError;
use crate::key::KeyError;
use crate::sources::SourceError;
use crate::ssh::SignerError;

/// Proof that was not verified. No variant holds the proof's value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The profile has no method.
    #[error("the proof profile has no `method`: use `jwt`, `detached-signature`, `certificate` or `none`")]
    NoMethod,
    /// A method that nobody here knows.
    #[error("unknown proof method `{0}`: use `jwt`, `detached-signature`, `certificate` or `none`")]
    UnknownMethod(String),
    /// A required proof of a method that verifies nothing.
    #[error("the proof is required, and the method `none` verifies nothing")]
    RequiredWithoutMethod,
    /// A member that the method needs.
    #[error("the proof profile needs `{0}`")]
    Missing(&'static str),
    /// A member that the method cannot check.
    #[error("the method `{method}` cannot check `{member}`: remove it, or use `jwt`")]
    Uncheckable {
        /// Method of the profile.
        method: &'static str,
        /// Member of the profile.
        member: &'static str,
    },
    /// A proof in the manifest itself.
    #[error("a proof cannot be a literal: use `env`, `file` or `command`")]
    LiteralProof,
    /// The profile's key cannot be used.
    #[error("`public_key`: {0}")]
    PublicKey(KeyError),
    /// The proof's value, or a key, cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A token.
    #[error(transparent)]
    Jwt(#[from] JwtError),
    /// A detached signature.
    #[error(transparent)]
    Detached(#[from] DetachedError),
    /// An SSH signature, or its signer.
    #[error(transparent)]
    Ssh(#[from] SignerError),
    /// A certificate.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

impl ProofError {
    /// Detail code: an unusable profile, an unknown method, or a proof that failed.
    pub fn code(&self) -> Code {
        match self {
            ProofError::NoMethod | ProofError::UnknownMethod(_) => Code::UnknownVerifier,
            ProofError::Missing(_)
            | ProofError::Uncheckable { .. }
            | ProofError::LiteralProof
            | ProofError::PublicKey(_) => Code::AuthorizationProofInvalid,
            ProofError::RequiredWithoutMethod
            | ProofError::Source(_)
            | ProofError::Jwt(_)
            | ProofError::Detached(_)
            | ProofError::Ssh(_)
            | ProofError::Certificate(_) => Code::AuthorizationProofFailed,
        }
    }
}
