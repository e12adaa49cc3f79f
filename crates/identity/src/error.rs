//! Failures of resolving an identity. No variant holds a credential, a URL or an answer of a server.

use proctor_proof::jwt::JwtError;
use proctor_proof::sources::{FetchError, SourceError};
use proctor_wire::agentcli::error::Code;

use crate::delegation::DelegationValidation;

/// Identity that cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The profile names no provider that exists.
    #[error("the identity provider is unknown: choose one that `identity providers` lists")]
    UnknownProvider,
    /// The profile lacks a setting, or has an unfit one.
    #[error("the identity profile cannot be used: {0}")]
    Profile(String),
    /// The profile asks for a feature that does not exist here.
    #[error("{0}")]
    Unsupported(&'static str),
    /// A value of the profile is not where it should be.
    #[error("the {setting} cannot be resolved: {source}")]
    Source {
        /// Setting that needs the value.
        setting: &'static str,
        /// Cause.
        source: SourceError,
    },
    /// The server could not be asked.
    #[error("the token request failed: {0}")]
    Exchange(#[from] FetchError),
    /// The server refused.
    #[error("the token request failed: the server answered with status {status}{}", .word.map(|word| format!(" and error `{word}`")).unwrap_or_default())]
    Refused {
        /// HTTP status.
        status: u16,
        /// Error word of the protocol, if the server sent a known one.
        word: Option<&'static str>,
    },
    /// The server's answer cannot be used.
    #[error("the token request failed: the server's answer {0}")]
    Answer(&'static str),
    /// The key or token is not what the profile describes.
    #[error("the credential does not fit the profile: {0}")]
    Credential(&'static str),
    /// The JWT-SVID does not verify.
    #[error("the JWT-SVID is not accepted: {0}")]
    Svid(#[from] JwtError),
    /// The delegation chain breaks its policy.
    #[error("the delegation chain is not valid: {}", .0.errors.join("; "))]
    Delegation(DelegationValidation),
}

impl IdentityError {
    /// Profile that cannot be used.
    pub(crate) fn profile(problem: impl Into<String>) -> IdentityError {
        IdentityError::Profile(problem.into())
    }

    /// Setting whose value source failed.
    pub(crate) fn source(setting: &'static str) -> impl Fn(SourceError) -> IdentityError {
        move |source| IdentityError::Source { setting, source }
    }

    /// Detail code of the protocol.
    pub fn code(&self) -> Code {
        match self {
            IdentityError::UnknownProvider => Code::UnknownIdentityProvider,
            IdentityError::Profile(_) | IdentityError::Exchange(FetchError::Address(_)) => {
                Code::IdentityProfileInvalid
            }
            IdentityError::Unsupported(_) => Code::UnsupportedCapability,
            IdentityError::Source { source, .. } => source_code(source),
            IdentityError::Exchange(_) | IdentityError::Refused { .. } | IdentityError::Answer(_) => {
                Code::TokenRequestFailed
            }
            IdentityError::Credential(_) | IdentityError::Svid(_) => Code::IdentityResolutionFailed,
            IdentityError::Delegation(_) => Code::IdentityDelegationInvalid,
        }
    }
}

fn source_code(error: &SourceError) -> Code {
    match error {
        SourceError::Malformed => Code::IdentityProfileInvalid,
        SourceError::VariableUnset(_) | SourceError::Empty => Code::TokenNotFound,
        SourceError::FileNotFound(_) => Code::TokenFileNotFound,
        SourceError::FileEmpty(_) => Code::TokenFileEmpty,
        SourceError::CommandRefused(_) => Code::AuthorizationDenied,
        SourceError::FileUnreadable { .. }
        | SourceError::TooLong(_)
        | SourceError::NotText
        | SourceError::CommandsNotAllowed
        | SourceError::CommandFailed(_)
        | SourceError::CommandTimeout(_) => Code::IdentityResolutionFailed,
    }
}
