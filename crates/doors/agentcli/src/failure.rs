//! Failures of opening the state directory, as the protocol answers them.

use proctor_engine::access::AccessError;
use proctor_wire::agentcli::error::{Code, Failure};

/// The failure of a command that needs the state directory and cannot open it.
///
/// A policy with mistakes denies: the run is refused as it would be without a policy.
pub fn unopened(error: &AccessError) -> Failure {
    match error {
        AccessError::Policy(_) => Failure::new(
            Code::AuthorizationDenied,
            format!("nothing runs without a policy that is read: {error}"),
        ),
        _ => Failure::new(Code::InternalError, format!("the state directory cannot be opened: {error}")),
    }
}
