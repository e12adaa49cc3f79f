//! `Debug` of the messages that carry a credential token, without the token.

use std::fmt;

use super::agent::v1::{ControlStreamRequest, DeregisterRequest, HeartbeatRequest, RegisterResponse};
use super::policy::v1::CheckActionRequest;

/// A placeholder that tells only whether there is a token.
fn shown(token: &str) -> &'static str {
    if token.is_empty() { "" } else { "[secret]" }
}

impl fmt::Debug for RegisterResponse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RegisterResponse")
            .field("credential_token", &shown(&self.credential_token))
            .field("assigned_policy", &self.assigned_policy)
            .field("heartbeat_interval_sec", &self.heartbeat_interval_sec)
            .field("parent_agent_id", &self.parent_agent_id)
            .field("team_id", &self.team_id)
            .field("root_agent_id", &self.root_agent_id)
            .finish()
    }
}

impl fmt::Debug for HeartbeatRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HeartbeatRequest")
            .field("agent_id", &self.agent_id)
            .field("credential_token", &shown(&self.credential_token))
            .field("active_runs", &self.active_runs)
            .field("actions_count", &self.actions_count)
            .finish()
    }
}

impl fmt::Debug for DeregisterRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DeregisterRequest")
            .field("agent_id", &self.agent_id)
            .field("credential_token", &shown(&self.credential_token))
            .field("reason", &self.reason)
            .finish()
    }
}

impl fmt::Debug for ControlStreamRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ControlStreamRequest")
            .field("agent_id", &self.agent_id)
            .field("credential_token", &shown(&self.credential_token))
            .finish()
    }
}

impl fmt::Debug for CheckActionRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CheckActionRequest")
            .field("agent_id", &self.agent_id)
            .field("credential_token", &shown(&self.credential_token))
            .field("trace_id", &self.trace_id)
            .field("span_id", &self.span_id)
            .field("action_type", &self.action_type)
            .field("context", &self.context)
            .field("caller_agent_id", &self.caller_agent_id)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_token_is_ever_shown() {
        let token = || "3f2a-token".to_owned();
        let shown = [
            format!("{:?}", RegisterResponse { credential_token: token(), ..Default::default() }),
            format!("{:?}", HeartbeatRequest { credential_token: token(), ..Default::default() }),
            format!("{:?}", DeregisterRequest { credential_token: token(), ..Default::default() }),
            format!("{:?}", ControlStreamRequest { credential_token: token(), ..Default::default() }),
            format!("{:?}", CheckActionRequest { credential_token: token(), ..Default::default() }),
        ];
        for text in shown {
            assert!(text.contains("[secret]") && !text.contains("3f2a"), "{text}");
        }
    }
}
