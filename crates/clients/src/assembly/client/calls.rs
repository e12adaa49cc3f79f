//! The calls of all services.

use futures_util::Stream;
use proctor_wire::assembly::MAX_GRPC_MESSAGE;
use proctor_wire::assembly::handshake::Nonce;
use proctor_wire::assembly::proto::agent::v1::{
    ChallengeRequest, ChallengeResponse, ControlCommand, ControlStreamRequest, DeregisterRequest,
    DeregisterResponse, HeartbeatRequest, HeartbeatResponse, RegisterRequest, RegisterResponse,
};
use proctor_wire::assembly::proto::approval::v1::{
    ApprovalEvent, DecideRequest, DecideResponse, ListPendingRequest, ListPendingResponse,
    WatchApprovalsRequest,
};
use proctor_wire::assembly::proto::audit::v1::{
    AuditEvent, ReportEventsRequest, ReportEventsResponse, StreamEventsResponse,
};
use proctor_wire::assembly::proto::gateway::v1::InvalidationEvent;
use proctor_wire::assembly::proto::policy::v1::{
    BatchCheckRequest, BatchCheckResponse, CheckActionRequest, CheckActionResponse, OpControlMessage,
    OpControlSubscribeRequest,
};
use proctor_wire::assembly::proto::topology::v1::{
    GetAgentTreeRequest, GetAgentTreeResponse, GetLineageRequest, GetLineageResponse, GetTeamMembersRequest,
    GetTeamMembersResponse, ReportEdgeRequest, ReportEdgeResponse,
};

use super::streams::{self, Incoming, Invalidations};
use super::{Client, ClientError, Identity, Token, size};
use crate::assembly::services::agent::agent_lifecycle_service_client::AgentLifecycleServiceClient;
use crate::assembly::services::approval::approval_service_client::ApprovalServiceClient;
use crate::assembly::services::audit::audit_service_client::AuditServiceClient;
use crate::assembly::services::invalidation::invalidation_service_client::InvalidationServiceClient;
use crate::assembly::services::policy::policy_service_client::PolicyServiceClient;
use crate::assembly::services::topology::topology_service_client::TopologyServiceClient;
use crate::health::proto::HealthCheckRequest;
use crate::health::proto::health_check_response::ServingStatus;
use crate::health::proto::health_client::HealthClient;

/// The stub of a service over the client's channel, with size limits.
macro_rules! service {
    ($client:expr, $stub:ident) => {
        $stub::new($client.channel.clone())
            .max_decoding_message_size(MAX_GRPC_MESSAGE)
            .max_encoding_message_size(MAX_GRPC_MESSAGE)
    };
}

/// Calls a unary method, or opens a server stream, within the limits.
macro_rules! call {
    ($client:expr, $name:literal, $stub:ident . $method:ident, $request:expr) => {{
        let request = $request;
        let size = size(&request);
        let mut service = service!($client, $stub);
        $client.answer($name, size, service.$method(request)).await
    }};
}

/// Registration.
impl Client {
    /// Registers an agent with the key of `identity`: requests a challenge, signs it, and fills in the id, the key, the proof and the
    /// nonce. The returned token is used from then on.
    pub async fn register(
        &self,
        identity: &Identity,
        mut request: RegisterRequest,
    ) -> Result<RegisterResponse, ClientError> {
        let mut agent_id = request.agent_id.take().unwrap_or_default();
        let (did, public_key) = (identity.did(), identity.public_key());
        for (found, ours) in [(&agent_id.agent_id, &did), (&request.public_key, &public_key)] {
            if !found.is_empty() && found != ours {
                return Err(ClientError::Request {
                    method: "Register",
                    problem: format!("it names `{found}`, the identity is `{ours}`"),
                });
            }
        }
        agent_id.agent_id = did;
        let challenge = ChallengeRequest { agent_id: Some(agent_id.clone()), public_key: public_key.clone() };
        let challenge = self.request_challenge(challenge).await?;
        // Only 32 bytes are signed: a longer challenge could be a message that another protocol accepts.
        let nonce: &Nonce = challenge.nonce.as_slice().try_into().map_err(|_| ClientError::Protocol {
            method: "RequestChallenge",
            problem: format!("the nonce has {} bytes, not 32", challenge.nonce.len()),
        })?;
        request.possession_proof = identity.prove(nonce);
        request.agent_id = Some(agent_id);
        request.public_key = public_key;
        request.registration_nonce = challenge.nonce;
        self.register_plain(request).await
    }

    /// Registers without a proof, for gateways that require none. The returned token is used from then on.
    pub async fn register_plain(&self, request: RegisterRequest) -> Result<RegisterResponse, ClientError> {
        // An older token is not sent.
        let request = tonic::Request::new(request);
        let response = call!(self, "Register", AgentLifecycleServiceClient.register, request)?;
        self.set_token(Token::new(response.credential_token.clone()));
        Ok(response)
    }

    /// Requests a nonce to sign.
    pub async fn request_challenge(
        &self,
        request: ChallengeRequest,
    ) -> Result<ChallengeResponse, ClientError> {
        let request = tonic::Request::new(request);
        call!(self, "RequestChallenge", AgentLifecycleServiceClient.request_challenge, request)
    }

    /// Sends a heartbeat; the answer tells whether the agent is suspended.
    pub async fn heartbeat(&self, mut request: HeartbeatRequest) -> Result<HeartbeatResponse, ClientError> {
        self.fill_token(&mut request.credential_token);
        let own = request.credential_token.clone();
        call!(self, "Heartbeat", AgentLifecycleServiceClient.heartbeat, Client::request_of(request, own))
    }

    /// Deregisters the agent.
    pub async fn deregister(
        &self,
        mut request: DeregisterRequest,
    ) -> Result<DeregisterResponse, ClientError> {
        self.fill_token(&mut request.credential_token);
        let own = request.credential_token.clone();
        call!(self, "Deregister", AgentLifecycleServiceClient.deregister, Client::request_of(request, own))
    }

    /// Subscribes to commands to the agent.
    pub async fn control_stream(
        &self,
        mut request: ControlStreamRequest,
    ) -> Result<Incoming<ControlCommand>, ClientError> {
        self.fill_token(&mut request.credential_token);
        let own = request.credential_token.clone();
        let request = Client::request_of(request, own);
        let stream = call!(self, "ControlStream", AgentLifecycleServiceClient.control_stream, request)?;
        Ok(Incoming::new("ControlStream", stream))
    }
}

/// Decisions.
impl Client {
    /// Requests a decision on an action.
    pub async fn check(&self, mut request: CheckActionRequest) -> Result<CheckActionResponse, ClientError> {
        self.fill_token(&mut request.credential_token);
        let own = request.credential_token.clone();
        call!(self, "CheckAction", PolicyServiceClient.check_action, Client::request_of(request, own))
    }

    /// Requests decisions on several actions; the answers are in their order.
    pub async fn batch_check(
        &self,
        mut request: BatchCheckRequest,
    ) -> Result<BatchCheckResponse, ClientError> {
        for question in &mut request.requests {
            self.fill_token(&mut question.credential_token);
        }
        let asked = request.requests.len();
        let response = call!(self, "BatchCheck", PolicyServiceClient.batch_check, self.request(request))?;
        // With a missing answer, an action would get the decision of another one.
        if response.responses.len() != asked {
            return Err(ClientError::Protocol {
                method: "BatchCheck",
                problem: format!("{} answers to {asked} questions", response.responses.len()),
            });
        }
        Ok(response)
    }

    /// Subscribes to pauses, resumptions and terminations of operations.
    pub async fn op_control_stream(
        &self,
        request: OpControlSubscribeRequest,
    ) -> Result<Incoming<OpControlMessage>, ClientError> {
        let stream =
            call!(self, "OpControlStream", PolicyServiceClient.op_control_stream, self.request(request))?;
        Ok(Incoming::new("OpControlStream", stream))
    }
}

/// Events.
impl Client {
    /// Reports a batch of events.
    pub async fn report_events(
        &self,
        request: ReportEventsRequest,
    ) -> Result<ReportEventsResponse, ClientError> {
        call!(self, "ReportEvents", AuditServiceClient.report_events, self.request(request))
    }

    /// Reports events as a stream. The source has no time limit; the gateway has the time limit of a call for each event, and for its
    /// answer after the last one.
    pub async fn stream_events<S>(&self, events: S) -> Result<StreamEventsResponse, ClientError>
    where
        S: Stream<Item = AuditEvent> + Send + 'static,
    {
        let limit = self.options.call_timeout;
        let (events, waited_for) = streams::watched(events, limit);
        let mut service = service!(self, AuditServiceClient);
        let call = service.stream_events(self.request(events));
        match streams::while_moving(call, waited_for, limit).await {
            Some(Ok(response)) => Ok(response.into_inner()),
            Some(Err(status)) => Err(ClientError::from_status("StreamEvents", &status)),
            None => Err(ClientError::timeout("StreamEvents", limit)),
        }
    }
}

/// Approvals.
impl Client {
    /// Lists pending approvals.
    pub async fn list_pending(&self) -> Result<ListPendingResponse, ClientError> {
        let request = self.request(ListPendingRequest::default());
        call!(self, "ListPending", ApprovalServiceClient.list_pending, request)
    }

    /// Decides a pending approval.
    pub async fn decide(&self, request: DecideRequest) -> Result<DecideResponse, ClientError> {
        call!(self, "Decide", ApprovalServiceClient.decide, self.request(request))
    }

    /// Subscribes to new pending approvals.
    pub async fn watch_approvals(&self) -> Result<Incoming<ApprovalEvent>, ClientError> {
        let request = self.request(WatchApprovalsRequest::default());
        let stream = call!(self, "WatchApprovals", ApprovalServiceClient.watch_approvals, request)?;
        Ok(Incoming::new("WatchApprovals", stream))
    }
}

/// Topology.
impl Client {
    /// The descendants of an agent.
    pub async fn get_agent_tree(
        &self,
        request: GetAgentTreeRequest,
    ) -> Result<GetAgentTreeResponse, ClientError> {
        call!(self, "GetAgentTree", TopologyServiceClient.get_agent_tree, self.request(request))
    }

    /// The ancestors of an agent, itself first.
    pub async fn get_lineage(&self, request: GetLineageRequest) -> Result<GetLineageResponse, ClientError> {
        call!(self, "GetLineage", TopologyServiceClient.get_lineage, self.request(request))
    }

    /// The agents of a team.
    pub async fn get_team_members(
        &self,
        request: GetTeamMembersRequest,
    ) -> Result<GetTeamMembersResponse, ClientError> {
        call!(self, "GetTeamMembers", TopologyServiceClient.get_team_members, self.request(request))
    }

    /// Reports an edge between two agents.
    pub async fn report_edge(&self, request: ReportEdgeRequest) -> Result<ReportEdgeResponse, ClientError> {
        call!(self, "ReportEdge", TopologyServiceClient.report_edge, self.request(request))
    }
}

/// Cache invalidation.
impl Client {
    /// Subscribes to invalidations after `last_seq_seen`, as the subscriber `assembly_id`.
    pub async fn subscribe_invalidations(
        &self,
        assembly_id: &str,
        last_seq_seen: u64,
    ) -> Result<Invalidations, ClientError> {
        let (outgoing, acks) = streams::acknowledging(assembly_id, last_seq_seen);
        let mut service = service!(self, InvalidationServiceClient);
        let stream: tonic::Streaming<InvalidationEvent> =
            self.answer("Subscribe", 0, service.subscribe(self.request(outgoing))).await?;
        Ok(Invalidations::new(assembly_id, acks, Incoming::new("Subscribe", stream)))
    }
}

/// Health.
impl Client {
    /// Whether the gateway reports itself as serving; needs no token.
    pub async fn health(&self) -> Result<bool, ClientError> {
        let request = tonic::Request::new(HealthCheckRequest::default());
        let answer = call!(self, "Health.Check", HealthClient.check, request)?;
        Ok(answer.status() == ServingStatus::Serving)
    }
}
