//! `proctor manifest`: workflows, with the commands of the agentcli program and Proctor's exit codes.

use proctor_door_agentcli::program::End;
use proctor_wire::agentcli::error::Code;

use super::Context;
use crate::failure::{CHECKS_FAILED, DENIED, FAILED, Failure, NOT_VERIFIED, OK, Outcome};
use crate::programs::agentcli;

pub(super) fn run(context: &Context, words: &[String]) -> Outcome {
    let mut words = words.to_vec();
    if context.json && !words.iter().any(|word| word == "--json") {
        words.push("--json".to_owned());
    }
    let (end, signal) = agentcli::ended("proctor manifest", &words, &context.config)
        .map_err(|error| Failure::from(error.to_string()))?;
    match signal {
        Some(signal) if end != End::Ok => Ok(u8::try_from(128 + signal).unwrap_or(FAILED)),
        _ => Ok(exit_code(end)),
    }
}

fn exit_code(end: End) -> u8 {
    match end {
        End::Ok => OK,
        End::RunFailed => CHECKS_FAILED,
        End::Failed(code) | End::RunRefused(code) => code_of(code),
        End::Unwritten => FAILED,
    }
}

/// Exit code of a detail code. Each one is named: a new one has to find its place.
const fn code_of(code: Code) -> u8 {
    match code {
        // The manifest is wrong, or what ran is.
        Code::ValidationError
        | Code::ParseError
        | Code::ContractViolation
        | Code::UnknownVerifier
        | Code::UnknownAuthorizationProvider
        | Code::UnknownIdentityProvider
        | Code::IdentityProfileInvalid
        | Code::PresentationFormatUnsupported
        | Code::PresentationBindingInvalid
        | Code::PresentationSourceForbidden
        | Code::PresentationTargetUnsupported
        | Code::PresentationTargetInvalid
        | Code::PresentationStdinConflict
        | Code::SandboxPathEscape
        | Code::SandboxPathInvalid => CHECKS_FAILED,
        // It may not run, or not without what it has not got.
        Code::AuthorizationDenied
        | Code::AuthorizationError
        | Code::AuthorizationEscalationRequired
        | Code::ApprovalRequired
        | Code::ApprovalAutoRejected
        | Code::ApprovalScopeMismatch
        | Code::PolicyForbidsApproval
        | Code::TrustLevelInsufficient
        | Code::IdentityResolutionFailed
        | Code::IdentityProviderError
        | Code::ResolutionFailed
        | Code::TokenNotFound
        | Code::TokenFileEmpty
        | Code::TokenFileNotFound
        | Code::TokenRequestFailed
        | Code::PresentationBindingMissing
        | Code::SandboxUnavailable
        | Code::SandboxEnforcementUnavailable => DENIED,
        // A signature, or what is signed, does not hold.
        Code::AuthorizationProofFailed
        | Code::AuthorizationProofInvalid
        | Code::ApprovalSignatureInvalid
        | Code::VerifyFailed
        | Code::EvidenceFailed
        | Code::IdentityDelegationInvalid => NOT_VERIFIED,
        // Called wrongly, or something beside the manifest failed.
        Code::UnknownCommand
        | Code::InvalidArgument
        | Code::InternalError
        | Code::ApprovalLockTimeout
        | Code::ApprovalLogInvalid
        | Code::UnsupportedCapability
        | Code::CapabilityMismatch
        | Code::SchedulerError
        | Code::DelegationError
        | Code::NoRuntime => FAILED,
    }
}
