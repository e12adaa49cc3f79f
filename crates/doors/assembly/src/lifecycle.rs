//! `AgentLifecycleService`: challenge, registration, heartbeat, deregistration, orders.

use proctor_clients::assembly::services::agent::agent_lifecycle_service_server::AgentLifecycleService;
use proctor_core::digest::Digest;
use proctor_core::hex;
use proctor_policy::state::AgentInfo;
use proctor_wire::assembly::did;
use proctor_wire::assembly::proto::agent::v1::{
    ChallengeRequest, ChallengeResponse, ControlCommand, ControlStreamRequest, DeregisterRequest,
    DeregisterResponse, HeartbeatRequest, HeartbeatResponse, RegisterRequest, RegisterResponse,
};
use proctor_wire::assembly::proto::common::v1::AgentId;
use tonic::{Request, Response, Status};

use super::identity::{caller_of, check_names, did_status, principal};
use super::registering::{self, Proof, Refusal};
use super::{AssemblyDoor, AssemblyMode, DOOR, Replies, lock, unavailable};
use proctor_engine::orders::registry_key;
use proctor_engine::{AgentEvent, EngineError};

#[tonic::async_trait]
impl AgentLifecycleService for AssemblyDoor {
    async fn request_challenge(
        &self,
        request: Request<ChallengeRequest>,
    ) -> Result<Response<ChallengeResponse>, Status> {
        let request = request.into_inner();
        let id =
            request.agent_id.as_ref().ok_or_else(|| Status::invalid_argument("`agent_id` is missing"))?;
        check_names(id)?;
        did::bound_key(&id.agent_id, &request.public_key).map_err(did_status)?;
        let nonce = self.engine().random_bytes::<32>();
        let expires =
            lock(&self.inner.challenges).open(nonce, &id.agent_id, &request.public_key, self.engine().now());
        Ok(Response::new(ChallengeResponse {
            nonce: nonce.to_vec(),
            expires_at_unix_ms: expires.micros().div_euclid(1000),
        }))
    }

    async fn register(
        &self,
        request: Request<RegisterRequest>,
    ) -> Result<Response<RegisterResponse>, Status> {
        let request = request.into_inner();
        let id = request.agent_id.clone().ok_or_else(|| Status::invalid_argument("`agent_id` is missing"))?;
        let proof = self.proof(&request, &id)?;
        let token = uuid_text(self.engine().random_bytes::<16>());
        let digest = Digest::of(token.as_bytes());
        let policy = self.engine().policy().digest();
        let reservation = self.reserve().await?;
        let change = self.engine().change_agents(reservation, |registry, _| {
            let mut keys = lock(&self.inner.keys);
            let events = registering::events(
                self.engine(),
                registry,
                &mut keys,
                &request,
                &id,
                proof,
                (digest, policy),
            )?;
            keys.add(self.engine(), &id);
            Ok::<_, Refusal>((events, ()))
        });
        let (queued, notices, ()) = change.map_err(|refusal| refusal.0)?;
        self.engine().agents_changed(queued, notices).await.map_err(unavailable)?;
        let agent = self.token_holder(&token).map_err(unavailable)?.ok_or_else(|| {
            Status::resource_exhausted("the registry is full: deregister agents that are gone")
        })?;
        self.record_heartbeat(&agent).await;
        self.registered(agent, token).map(Response::new)
    }

    async fn heartbeat(
        &self,
        request: Request<HeartbeatRequest>,
    ) -> Result<Response<HeartbeatResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let agent = self.authenticated(request.agent_id.as_ref(), &request.credential_token, &metadata)?;
        self.record_heartbeat(&agent).await;
        // A budget may be open again although nobody has asked for anything.
        self.engine().refresh_budget(&caller_of(&agent)).await.map_err(unavailable)?;
        let policy = self.engine().policy().digest();
        let policy_updated = agent.told != Some(policy);
        if policy_updated {
            let event = AgentEvent { policy: Some(policy), ..AgentEvent::about(&agent, "told", DOOR) };
            self.record_agents(vec![event]).await?;
        }
        let should_suspend = self
            .engine()
            .look_up(|registry| registry.stop(&agent.principal).is_some())
            .map_err(unavailable)?;
        Ok(Response::new(HeartbeatResponse { policy_updated, should_suspend }))
    }

    async fn deregister(
        &self,
        request: Request<DeregisterRequest>,
    ) -> Result<Response<DeregisterResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let agent = self.authenticated(request.agent_id.as_ref(), &request.credential_token, &metadata)?;
        let event = AgentEvent { reason: request.reason, ..AgentEvent::about(&agent, "deregistered", DOOR) };
        self.record_agents(vec![event]).await?;
        Ok(Response::new(DeregisterResponse { success: true, agent_id: agent.agent }))
    }

    type ControlStreamStream = Replies<ControlCommand>;

    async fn control_stream(
        &self,
        request: Request<ControlStreamRequest>,
    ) -> Result<Response<Replies<ControlCommand>>, Status> {
        let (metadata, _, request) = request.into_parts();
        let agent = self.authenticated(request.agent_id.as_ref(), &request.credential_token, &metadata)?;
        self.record_heartbeat(&agent).await;
        Ok(Response::new(self.orders(agent)))
    }
}

impl AssemblyDoor {
    /// Verifies the caller's proof of possession of the agent's key. In relaxed mode an agent without a key needs no proof.
    fn proof(&self, request: &RegisterRequest, id: &AgentId) -> Result<Proof, Status> {
        check_names(id)?;
        let is_free = did::decode(&id.agent_id) == Err(did::DidError::NotDidKey);
        if is_free && self.settings().mode == AssemblyMode::Relaxed {
            if id.agent_id.is_empty() {
                return Err(Status::invalid_argument("`agent_id.agent_id` is empty"));
            }
            self.check_tenancy(id)?;
            return Ok(Proof::None);
        }
        let key = did::bound_key(&id.agent_id, &request.public_key).map_err(did_status)?;
        self.check_tenancy(id)?;
        if request.registration_nonce.is_empty() && request.possession_proof.is_empty() {
            let is_known = self.engine().look_up(|registry| {
                registry.get(&principal(self.engine(), id)).is_some_and(AgentInfo::is_registered)
            });
            if is_known.map_err(unavailable)? {
                return Err(Status::already_exists(
                    "this agent is registered; a proof of its key gets it a new token",
                ));
            }
        }
        let (nonce, now) = (&request.registration_nonce, self.engine().now());
        if !lock(&self.inner.challenges).consume(nonce, &id.agent_id, &request.public_key, now) {
            return Err(Status::unauthenticated(
                "the nonce is unknown, used, expired or another agent's: request a challenge first",
            ));
        }
        did::verify_possession(&key, nonce, &request.possession_proof).map_err(did_status)?;
        Ok(Proof::Given)
    }

    fn check_tenancy(&self, id: &AgentId) -> Result<(), Status> {
        if self.settings().tenanted && id.team_id.is_empty() {
            return Err(Status::failed_precondition("`agent_id.team_id` is needed here"));
        }
        Ok(())
    }

    fn registered(&self, agent: AgentInfo, token: String) -> Result<RegisterResponse, Status> {
        let root = self
            .engine()
            .look_up(|registry| {
                let lineage = registry.lineage(&agent.principal);
                lineage.last().map(|root| registry_key(&root.org, &root.team, &root.agent))
            })
            .map_err(unavailable)?;
        let parent =
            agent.registration.as_ref().map(|own| own.parent.clone()).filter(|parent| !parent.is_empty());
        let parent_agent_id = match parent {
            Some(parent) => {
                let known =
                    self.engine().look_up(|registry| registry.get(&parent).map(|agent| agent.agent.clone()));
                known.map_err(unavailable)?
            }
            None => None,
        };
        Ok(RegisterResponse {
            credential_token: token,
            assigned_policy: self.assigned_policy(&agent),
            heartbeat_interval_sec: i64::try_from(self.settings().heartbeat.as_secs()).unwrap_or(30),
            parent_agent_id,
            team_id: Some(agent.team).filter(|team| !team.is_empty()),
            root_agent_id: root.map(Into::into),
        })
    }

    /// Names the most specific policy document for an agent, with the digest of the whole policy.
    fn assigned_policy(&self, agent: &AgentInfo) -> String {
        let policy = self.engine().policy();
        let digest = policy.digest();
        match policy.documents_for(&caller_of(agent)).last() {
            Some(document) => format!("{}@sha256:{digest}", document.title()),
            None => format!("closed@sha256:{digest}"),
        }
    }

    /// Processes a heartbeat, and records that an offline agent is back online.
    pub(super) async fn record_heartbeat(&self, agent: &AgentInfo) {
        if self.has_returned(agent) {
            self.record_online(agent).await;
        }
    }

    /// Updates the heartbeat of an agent. Returns whether the agent is recorded as offline.
    pub(super) fn has_returned(&self, agent: &AgentInfo) -> bool {
        lock(&self.inner.heartbeats).beat(&agent.principal, self.engine().now(), agent.is_offline)
    }

    /// Records that an agent is back online.
    pub(super) async fn record_online(&self, agent: &AgentInfo) {
        // If this cannot be recorded, the next heartbeat tries again.
        if self.record_agents(vec![AgentEvent::about(agent, "online", DOOR)]).await.is_err() {
            lock(&self.inner.heartbeats).untrack(&agent.principal);
        }
    }

    /// Records registry events, and notifies subscribers.
    pub(super) async fn record_agents(&self, events: Vec<AgentEvent>) -> Result<(), Status> {
        let reservation = self.reserve().await?;
        let placed = self.engine().change_agents(reservation, |_, _| Ok::<_, EngineError>((events, ())));
        let (queued, notices, ()) = placed.map_err(unavailable)?;
        self.engine().agents_changed(queued, notices).await.map_err(unavailable)
    }
}

/// A random UUID of version 4.
fn uuid_text(mut bytes: [u8; 16]) -> String {
    let [_, _, _, _, _, _, version, _, variant, ..] = &mut bytes;
    *version = (*version & 0x0f) | 0x40;
    *variant = (*variant & 0x3f) | 0x80;
    let digits = hex::encode(bytes);
    let part = |range: std::ops::Range<usize>| digits.get(range).unwrap_or_default();
    [part(0..8), part(8..12), part(12..16), part(16..20), part(20..32)].join("-")
}
