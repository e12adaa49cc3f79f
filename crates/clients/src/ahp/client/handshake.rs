//! The handshake: the client's ids and capabilities, and the harness's answer.

use std::sync::{Mutex, PoisonError};

use proctor_core::json::Json;
use proctor_wire::ahp::{
    AgentInfo, HandshakeRequest, HandshakeResponse, HarnessConfig, PROTOCOL_VERSION, method,
};
use uuid::Uuid;

use super::error::{AhpError, Result};
use super::message::Outgoing;
use super::options::ClientOptions;

/// The client's ids, and the last successful handshake.
pub(super) struct Handshake {
    pub(super) session_id: String,
    pub(super) agent_id: String,
    framework: String,
    framework_version: String,
    agreed: Mutex<Option<Agreed>>,
}

#[derive(Clone)]
struct Agreed {
    #[cfg_attr(not(feature = "ahp-stream"), expect(dead_code, reason = "only streams repeat the handshake"))]
    capabilities: Vec<String>,
    response: HandshakeResponse,
}

impl Handshake {
    pub(super) fn new(options: &ClientOptions) -> Handshake {
        let random = || Uuid::new_v4().to_string();
        Handshake {
            session_id: options.session_id.clone().unwrap_or_else(random),
            agent_id: options.agent_id.clone().unwrap_or_else(random),
            framework: options.framework.clone(),
            framework_version: options.framework_version.clone(),
            agreed: Mutex::new(None),
        }
    }

    /// The request.
    pub(super) fn request(&self, id: String, capabilities: &[String]) -> Result<Outgoing> {
        let request = HandshakeRequest {
            protocol_version: PROTOCOL_VERSION.to_owned(),
            agent_info: AgentInfo {
                framework: self.framework.clone(),
                version: self.framework_version.clone(),
                capabilities: capabilities.to_vec(),
            },
            session_id: self.session_id.clone(),
            agent_id: self.agent_id.clone(),
        };
        Outgoing::new(Some(id), method::HANDSHAKE, &request)
    }

    /// Checks and stores the harness's answer.
    pub(super) fn accept(&self, capabilities: Vec<String>, result: &Json) -> Result<HandshakeResponse> {
        let response = result.read::<HandshakeResponse>().map_err(|error| {
            AhpError::Protocol(format!("the answer to the handshake cannot be read: {error}"))
        })?;
        if major(&response.protocol_version) != major(PROTOCOL_VERSION) {
            return Err(AhpError::Protocol(format!(
                "it speaks version `{}`, this client speaks {PROTOCOL_VERSION}",
                shortened(&response.protocol_version)
            )));
        }
        *self.state() = Some(Agreed { capabilities, response: response.clone() });
        Ok(response)
    }

    /// The harness's answer; none before the handshake.
    pub(super) fn agreed(&self) -> Option<HandshakeResponse> {
        self.state().as_ref().map(|agreed| agreed.response.clone())
    }

    /// The harness's limits; none before the handshake.
    pub(super) fn limits(&self) -> Option<HarnessConfig> {
        self.state().as_ref().map(|agreed| agreed.response.config.unwrap_or_default())
    }

    /// The capabilities for a repeated handshake; none if there was no handshake yet.
    #[cfg(feature = "ahp-stream")]
    pub(super) fn capabilities(&self) -> Option<Vec<String>> {
        self.state().as_ref().map(|agreed| agreed.capabilities.clone())
    }

    fn state(&self) -> std::sync::MutexGuard<'_, Option<Agreed>> {
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn major(version: &str) -> &str {
    version.split('.').next().unwrap_or_default()
}

/// A foreign text, truncated for an error message.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(64).collect()
}
