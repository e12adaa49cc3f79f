//! Authentication by tokens of agents and approvers.

use proctor_core::digest::Digest;
use proctor_core::session::Caller;
use proctor_policy::state::AgentInfo;
use proctor_wire::assembly::did;
use proctor_wire::assembly::proto::common::v1::{AgentId, AgentIdentityAssurance};
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

use super::{AssemblyDoor, AssemblyMode, anonymous};
use proctor_engine::{Engine, EngineError};

/// Length limit of identifiers, teams and organisations, in bytes.
const MAX_NAME: usize = 256;

/// Holder of a metadata token.
#[derive(Debug, Clone)]
pub(super) enum Holder {
    Agent(Box<AgentInfo>),
    /// Approver, by name.
    Approver(String),
}

/// First sixteen bytes of a SHA-256 digest.
pub(super) fn half(bytes: &[u8]) -> [u8; 16] {
    let digest = *Digest::of(bytes).as_bytes();
    let mut key = [0; 16];
    key.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
    key
}

/// Principal of an agent: its key if it has one, else the names that it claims.
pub(super) fn principal(engine: &Engine, id: &AgentId) -> String {
    if did::decode(&id.agent_id).is_ok() {
        format!("agent:{}", id.agent_id)
    } else {
        // As records name it: who is looked up must be who was recorded.
        engine.principal_text(&format!("agent:{}/{}/{}", id.org_id, id.team_id, id.agent_id))
    }
}

/// Rejects names that are too long, hold control characters, or hold a `/`.
pub(super) fn check_names(id: &AgentId) -> Result<(), Status> {
    for (what, name) in [("org_id", &id.org_id), ("team_id", &id.team_id), ("agent_id", &id.agent_id)] {
        if name.len() > MAX_NAME {
            return Err(Status::invalid_argument(format!(
                "`{what}` has {} bytes, at most {MAX_NAME} allowed",
                name.len()
            )));
        }
        if name.chars().any(char::is_control) {
            return Err(Status::invalid_argument(format!("`{what}` holds a control character")));
        }
        // Two different agents must not have one name together.
        if name.contains('/') {
            return Err(Status::invalid_argument(format!("`{what}` holds a `/`")));
        }
    }
    Ok(())
}

/// Token in a call's metadata.
pub(super) fn shown_token(metadata: &MetadataMap) -> Option<&str> {
    let text = |name: &str| metadata.get(name).and_then(|value| value.to_str().ok());
    let bearer = || text("authorization").and_then(|value| value.strip_prefix("Bearer "));
    text("x-aa-credential-token").or_else(bearer).map(str::trim).filter(|token| !token.is_empty())
}

pub(super) fn caller_of(agent: &AgentInfo) -> Caller {
    Caller { principal: agent.principal.clone(), team: agent.team.clone(), org: agent.org.clone() }
}

impl AssemblyDoor {
    /// Looks up the agent that a token was issued to.
    pub(super) fn token_holder(&self, token: &str) -> Result<Option<AgentInfo>, EngineError> {
        if token.is_empty() {
            return Ok(None);
        }
        let digest = Digest::of(token.as_bytes());
        self.engine().look_up(|registry| registry.by_token(&digest).cloned())
    }

    /// Reports whether an agent's token is still valid. If the state is unavailable the token counts as valid until the next check.
    pub(super) fn is_still_held(&self, agent: &AgentInfo) -> bool {
        let token = |agent: &AgentInfo| agent.registration.as_ref().and_then(|own| own.token);
        let looked = self.engine().look_up(|registry| {
            let now = registry.get(&agent.principal);
            now.is_some_and(|now| !now.is_deregistered && token(now) == token(agent))
        });
        looked.unwrap_or(true)
    }

    /// Authenticates a call by the token in its metadata.
    pub(super) fn holder(&self, metadata: &MetadataMap) -> Result<Holder, Status> {
        let token = shown_token(metadata).ok_or_else(|| {
            Status::unauthenticated("no token: send `x-aa-credential-token` or `authorization: Bearer`")
        })?;
        let digest = Digest::of(token.as_bytes());
        if let Some((name, _)) = self.settings().approvers.iter().find(|(_, known)| *known == digest) {
            return Ok(Holder::Approver(name.clone()));
        }
        match self.token_holder(token).map_err(super::unavailable)? {
            Some(agent) => Ok(Holder::Agent(Box::new(agent))),
            None => Err(Status::unauthenticated("the token is not known")),
        }
    }

    /// Authenticates a call that only agents may make.
    pub(super) fn agent_holder(&self, metadata: &MetadataMap) -> Result<Box<AgentInfo>, Status> {
        match self.holder(metadata)? {
            Holder::Agent(agent) => Ok(agent),
            Holder::Approver(_) => Err(Status::permission_denied("this is for agents, not for approvers")),
        }
    }

    /// Authenticates an agent by its claimed identity and its token, from the message or the metadata.
    pub(super) fn authenticated(
        &self,
        claimed: Option<&AgentId>,
        token: &str,
        metadata: &MetadataMap,
    ) -> Result<AgentInfo, Status> {
        let claimed = claimed.ok_or_else(|| Status::invalid_argument("`agent_id` is missing"))?;
        let token = if token.is_empty() { shown_token(metadata).unwrap_or_default() } else { token };
        let refused = || Status::unauthenticated("the token is not that of this agent");
        if token.is_empty() {
            return Err(Status::unauthenticated("the credential token is empty"));
        }
        let holder = self.token_holder(token).map_err(super::unavailable)?.ok_or_else(refused)?;
        if is_claimed(self.engine(), &holder, claimed) { Ok(holder) } else { Err(refused()) }
    }
}

/// Reports whether claimed names match an agent's registration. Empty names are not claimed.
pub(super) fn is_claimed(engine: &Engine, agent: &AgentInfo, id: &AgentId) -> bool {
    let same = |claimed: &str, own: &str| claimed.is_empty() || engine.stands_for(own, claimed);
    engine.stands_for(&agent.agent, &id.agent_id)
        && same(&id.team_id, &agent.team)
        && same(&id.org_id, &agent.org)
}

/// Status that ends a stream whose token was revoked.
pub(super) fn void_token() -> Status {
    Status::unauthenticated("this token is void: it was replaced, or the agent has deregistered")
}

/// Authenticated origin of a check.
#[derive(Debug, Clone)]
pub(super) struct Asker {
    pub caller: Caller,
    /// Agent identifier, as registered or as claimed.
    pub agent: String,
    /// Session of checks without a trace.
    pub default_session: String,
    pub depth: u32,
    pub assurance: AgentIdentityAssurance,
    /// Agent that is recorded as offline and has just returned.
    pub returned: Option<Box<AgentInfo>>,
}

/// Authentication failure of a check.
#[derive(Debug, Clone)]
pub(super) struct AuthFailure {
    pub reason: &'static str,
    pub assurance: AgentIdentityAssurance,
}

/// Rule that authentication failures name.
pub(super) const IDENTITY_RULE: &str = "a2a_identity_verification";

impl AssemblyDoor {
    /// Authenticates a check: the agent that the token was issued to, or the anonymous principal in relaxed mode.
    pub(super) fn asker(
        &self,
        claimed: Option<&AgentId>,
        token: &str,
    ) -> Result<Result<Asker, AuthFailure>, EngineError> {
        let claimed = claimed.filter(|id| !id.agent_id.is_empty());
        let assurance = match claimed {
            None => AgentIdentityAssurance::Unattributed,
            Some(_) => AgentIdentityAssurance::Asserted,
        };
        let fail = |reason: &'static str| Ok(Err(AuthFailure { reason, assurance }));
        if let Some(agent) = self.token_holder(token)? {
            if claimed.is_some_and(|id| !is_claimed(self.engine(), &agent, id)) {
                return fail("credential token registered to a different agent");
            }
            let returned = self.has_returned(&agent).then(|| Box::new(agent.clone()));
            let asker = Asker {
                caller: caller_of(&agent),
                default_session: format!("registration {}", agent.registered_seq),
                depth: agent.registration.as_ref().map_or(0, |registration| registration.depth),
                agent: agent.agent,
                assurance: AgentIdentityAssurance::Bound,
                returned,
            };
            return Ok(Ok(asker));
        }
        let wrong = if token.is_empty() { "missing credential token" } else { "credential token mismatch" };
        let is_registered = match claimed {
            None => false,
            Some(id) => {
                let principal = principal(self.engine(), id);
                self.engine().look_up(|registry| {
                    registry.get(&principal).is_some_and(|agent| agent.registration.is_some())
                })?
            }
        };
        if self.settings().mode == AssemblyMode::Strict || is_registered {
            return fail(wrong);
        }
        let asker = Asker {
            caller: anonymous(),
            agent: claimed.map_or_else(String::new, |id| id.agent_id.clone()),
            default_session: "anonymous".to_owned(),
            depth: 0,
            assurance,
            returned: None,
        };
        Ok(Ok(asker))
    }
}

/// Maps an identity error to a gRPC status.
pub(super) fn did_status(problem: did::DidError) -> Status {
    let code = match problem {
        did::DidError::Mismatch | did::DidError::NotEd25519 | did::DidError::Proof => Code::Unauthenticated,
        _ => Code::InvalidArgument,
    };
    Status::new(code, problem.to_string())
}
