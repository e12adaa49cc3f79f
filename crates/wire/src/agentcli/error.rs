//! Codes of failures: detail codes, their types, and the JSON-RPC codes that carry them.

use proctor_core::json::Json;

use super::finding::Validation;

/// The line is not JSON.
pub const PARSE_ERROR: i32 = -32700;
/// The message is JSON, but no request.
pub const INVALID_REQUEST: i32 = -32600;
/// No such method.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// Parameters or the manifest are at fault.
pub const INVALID_PARAMS: i32 = -32602;
/// A failure inside the server.
pub const INTERNAL_ERROR: i32 = -32603;
/// A failure with a detail code.
pub const APPLICATION_ERROR: i32 = -32000;

/// Classes of failures: the closed list of `error_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorType {
    /// A manifest, or a condition that it sets, does not hold.
    ValidationError,
    /// The command or method does not exist.
    UnknownCommand,
    /// An argument is at fault.
    InvalidArgument,
    /// A text cannot be parsed.
    ParseError,
    /// A failure inside the server.
    InternalError,
}

impl ErrorType {
    /// The word that is sent.
    pub const fn word(self) -> &'static str {
        match self {
            ErrorType::ValidationError => "validation_error",
            ErrorType::UnknownCommand => "unknown_command",
            ErrorType::InvalidArgument => "invalid_argument",
            ErrorType::ParseError => "parse_error",
            ErrorType::InternalError => "internal_error",
        }
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// Detail codes of failures: a closed list.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// All codes.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// The word that is sent.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Code::$name => $word,)*
                }
            }
        }
    };
}

codes! {
    /// The manifest has errors.
    ValidationError = "validation_error",
    /// The command or method does not exist.
    UnknownCommand = "unknown_command",
    /// An argument is missing or unfit.
    InvalidArgument = "invalid_argument",
    /// A text cannot be parsed.
    ParseError = "parse_error",
    /// A failure inside the server.
    InternalError = "internal_error",
    /// The task needs an approval that it does not have.
    ApprovalRequired = "approval_required",
    /// The task's approval policy rejects every run.
    ApprovalAutoRejected = "approval_auto_rejected",
    /// The signature of an approval does not verify.
    ApprovalSignatureInvalid = "approval_signature_invalid",
    /// The approver is outside of the scope that the task names.
    ApprovalScopeMismatch = "approval_scope_mismatch",
    /// The lock of the approvals was not free in time.
    ApprovalLockTimeout = "approval_lock_timeout",
    /// The log of approvals cannot be read.
    ApprovalLogInvalid = "approval_log_invalid",
    /// Policy forbids to approve this task.
    PolicyForbidsApproval = "policy_forbids_approval",
    /// The authorization proof does not verify.
    AuthorizationProofFailed = "authorization_proof_failed",
    /// The authorization proof cannot be read.
    AuthorizationProofInvalid = "authorization_proof_invalid",
    /// The proof method is unknown.
    UnknownVerifier = "unknown_verifier",
    /// Authorization was denied.
    AuthorizationDenied = "authorization_denied",
    /// Authorization depends on an escalation.
    AuthorizationEscalationRequired = "authorization_escalation_required",
    /// The authorization provider failed.
    AuthorizationError = "authorization_error",
    /// The authorization provider is unknown.
    UnknownAuthorizationProvider = "unknown_authorization_provider",
    /// The identity cannot be resolved.
    IdentityResolutionFailed = "identity_resolution_failed",
    /// The identity profile does not fit its provider.
    IdentityProfileInvalid = "identity_profile_invalid",
    /// The delegation chain breaks its policy.
    IdentityDelegationInvalid = "identity_delegation_invalid",
    /// The identity provider is unknown.
    UnknownIdentityProvider = "unknown_identity_provider",
    /// The identity provider failed.
    IdentityProviderError = "identity_provider_error",
    /// A value source cannot be resolved.
    ResolutionFailed = "resolution_failed",
    /// The token is not where the profile says.
    TokenNotFound = "token_not_found",
    /// The token file is empty.
    TokenFileEmpty = "token_file_empty",
    /// The token file does not exist.
    TokenFileNotFound = "token_file_not_found",
    /// The token endpoint refused or failed.
    TokenRequestFailed = "token_request_failed",
    /// The format of a presentation binding is not supported.
    PresentationFormatUnsupported = "presentation_format_unsupported",
    /// A presentation binding is malformed.
    PresentationBindingInvalid = "presentation_binding_invalid",
    /// A presentation binding names a source that must not be presented.
    PresentationSourceForbidden = "presentation_source_forbidden",
    /// The source of a required presentation binding has no value.
    PresentationBindingMissing = "presentation_binding_missing",
    /// The kind of a presentation target is not supported.
    PresentationTargetUnsupported = "presentation_target_unsupported",
    /// A presentation target is malformed.
    PresentationTargetInvalid = "presentation_target_invalid",
    /// Two presentation bindings, or a binding and the task, claim standard input.
    PresentationStdinConflict = "presentation_stdin_conflict",
    /// The evidence could not be made.
    EvidenceFailed = "evidence_failed",
    /// The verify command failed.
    VerifyFailed = "verify_failed",
    /// There is no sandbox.
    SandboxUnavailable = "sandbox_unavailable",
    /// The sandbox cannot enforce what the contract demands.
    SandboxEnforcementUnavailable = "sandbox_enforcement_unavailable",
    /// A path leads out of the sandbox.
    SandboxPathEscape = "sandbox_path_escape",
    /// A path of the sandbox is malformed.
    SandboxPathInvalid = "sandbox_path_invalid",
    /// The run broke its contract.
    ContractViolation = "contract_violation",
    /// The effective trust level is below the required one.
    TrustLevelInsufficient = "trust_level_insufficient",
    /// The target lacks a capability that the manifest needs.
    UnsupportedCapability = "unsupported_capability",
    /// Capabilities of both sides do not fit.
    CapabilityMismatch = "capability_mismatch",
    /// The scheduler failed.
    SchedulerError = "scheduler_error",
    /// A task could not be handed to the scheduler.
    DelegationError = "delegation_error",
    /// There is no runtime for the task.
    NoRuntime = "no_runtime",
}

impl Code {
    /// The code of a word; unknown words are [`Code::InternalError`].
    pub fn of_word(word: &str) -> Code {
        Code::ALL.iter().copied().find(|code| code.word() == word).unwrap_or(Code::InternalError)
    }

    /// The class of failure that the code belongs to.
    pub const fn error_type(self) -> ErrorType {
        match self {
            Code::UnknownCommand => ErrorType::UnknownCommand,
            Code::InvalidArgument | Code::NoRuntime | Code::UnsupportedCapability => {
                ErrorType::InvalidArgument
            }
            Code::ParseError => ErrorType::ParseError,
            Code::InternalError | Code::ApprovalLockTimeout | Code::SchedulerError => {
                ErrorType::InternalError
            }
            _ => ErrorType::ValidationError,
        }
    }

    /// The JSON-RPC code of a failed method. A line that is not JSON has a code of its own, [`PARSE_ERROR`].
    pub const fn rpc_code(self) -> i32 {
        match (self, self.error_type()) {
            (Code::ValidationError, _) | (_, ErrorType::InvalidArgument | ErrorType::ParseError) => {
                INVALID_PARAMS
            }
            (_, ErrorType::UnknownCommand) => METHOD_NOT_FOUND,
            (_, ErrorType::InternalError) => INTERNAL_ERROR,
            (_, ErrorType::ValidationError) => APPLICATION_ERROR,
        }
    }
}

/// The failure of a command or method.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The detail code.
    pub code: Code,
    /// Description for people, without secrets.
    pub message: String,
    /// Findings, where the manifest is at fault.
    pub validation: Option<Validation>,
}

impl Failure {
    /// A failure without findings.
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into(), validation: None }
    }

    /// An argument that is missing or unfit.
    pub fn invalid_argument(message: impl Into<String>) -> Failure {
        Failure::new(Code::InvalidArgument, message)
    }

    /// A manifest with errors.
    pub fn invalid_manifest(validation: Validation) -> Failure {
        let message = match validation.errors.first() {
            Some(first) => format!("manifest validation failed: {} at {}", first.message, first.path),
            None => "manifest validation failed".to_owned(),
        };
        Failure { code: Code::ValidationError, message, validation: Some(validation) }
    }

    /// The `data` of an error reply: `code`, `error_type`, and `validation` where there is one.
    pub fn to_data(&self) -> Json {
        let mut data =
            Json::object().with("code", self.code.word()).with("error_type", self.code.error_type().word());
        if let Some(validation) = &self.validation {
            data.push("validation", validation.to_json());
        }
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agentcli::finding::Finding;

    #[test]
    fn detail_codes_belong_to_the_documented_types() {
        for code in Code::ALL {
            let expected = match code.word() {
                own @ ("validation_error" | "unknown_command" | "invalid_argument" | "parse_error"
                | "internal_error") => own,
                "no_runtime" | "unsupported_capability" => "invalid_argument",
                "approval_lock_timeout" | "scheduler_error" => "internal_error",
                _ => "validation_error",
            };
            assert_eq!(code.error_type().word(), expected, "{code:?}");
            assert_eq!(Code::of_word(code.word()), *code);
        }
        assert_eq!(Code::ALL.len(), 49);
        assert_eq!(Code::of_word("nothing_like_it"), Code::InternalError);
    }

    #[test]
    fn rpc_codes_follow_the_type() {
        for (code, number) in [
            (Code::ValidationError, -32602),
            (Code::InvalidArgument, -32602),
            (Code::ParseError, -32602),
            (Code::UnsupportedCapability, -32602),
            (Code::NoRuntime, -32602),
            (Code::UnknownCommand, -32601),
            (Code::InternalError, -32603),
            (Code::SchedulerError, -32603),
            (Code::ApprovalLockTimeout, -32603),
            (Code::TokenNotFound, -32000),
            (Code::AuthorizationProofFailed, -32000),
            (Code::IdentityDelegationInvalid, -32000),
        ] {
            assert_eq!(code.rpc_code(), number, "{code:?}");
        }
    }

    #[test]
    fn data_carries_the_validation() {
        let validation = Validation {
            errors: vec![Finding::new("$.version", "version", "must be a version")],
            warnings: vec![],
        };
        let data = Failure::invalid_manifest(validation).to_data();
        assert_eq!(
            data.to_string(),
            concat!(
                r#"{"code":"validation_error","error_type":"validation_error","validation":{"ok":false,"#,
                r#""errors":[{"path":"$.version","message":"must be a version","code":"version"}],"warnings":[]}}"#
            )
        );
    }
}
