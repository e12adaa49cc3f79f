//! A connection to the gateway, with the released clients on it.

use aa_proto::assembly::agent::v1::agent_lifecycle_service_client::AgentLifecycleServiceClient;
use aa_proto::assembly::agent::v1::{ChallengeRequest, HeartbeatRequest, HeartbeatResponse, RegisterRequest};
use aa_proto::assembly::approval::v1::approval_service_client::ApprovalServiceClient;
use aa_proto::assembly::approval::v1::{ApprovalDecisionType, DecideRequest, DecideResponse};
use aa_proto::assembly::audit::v1::audit_service_client::AuditServiceClient;
use aa_proto::assembly::common::v1::Decision;
use aa_proto::assembly::gateway::v1::invalidation_service_client::InvalidationServiceClient;
use aa_proto::assembly::policy::v1::action_context::Action;
use aa_proto::assembly::policy::v1::policy_service_client::PolicyServiceClient;
use aa_proto::assembly::policy::v1::{CheckActionRequest, CheckActionResponse};
use aa_proto::assembly::topology::v1::topology_service_client::TopologyServiceClient;
use tonic::transport::Channel;
use tonic::{Request, Status};
use tonic_health::pb::health_client::HealthClient;

use crate::actions::question;
use crate::agent::Agent;

/// A connection.
#[derive(Clone)]
pub struct Link {
    channel: Channel,
}

impl Link {
    /// On this channel.
    pub fn new(channel: Channel) -> Link {
        Link { channel }
    }

    /// Registration, heartbeats, control.
    pub fn lifecycle(&self) -> AgentLifecycleServiceClient<Channel> {
        AgentLifecycleServiceClient::new(self.channel.clone())
    }

    /// Checks of actions.
    pub fn policy(&self) -> PolicyServiceClient<Channel> {
        PolicyServiceClient::new(self.channel.clone())
    }

    /// Reports of what happened.
    pub fn audit(&self) -> AuditServiceClient<Channel> {
        AuditServiceClient::new(self.channel.clone())
    }

    /// Approvals.
    pub fn approvals(&self) -> ApprovalServiceClient<Channel> {
        ApprovalServiceClient::new(self.channel.clone())
    }

    /// Client of the topology service.
    pub fn topology(&self) -> TopologyServiceClient<Channel> {
        TopologyServiceClient::new(self.channel.clone())
    }

    /// Client of the invalidation service.
    pub fn invalidations(&self) -> InvalidationServiceClient<Channel> {
        InvalidationServiceClient::new(self.channel.clone())
    }

    /// Whether the gateway is well.
    pub fn health(&self) -> HealthClient<Channel> {
        HealthClient::new(self.channel.clone())
    }

    /// A new agent of this team, registered.
    pub async fn register(&self, team: &str) -> Agent {
        let agent = Agent::new(team);
        self.register_as(agent, |_| {}).await.expect("the agent is registered")
    }

    /// A new agent of this team that another one started.
    pub async fn register_child(&self, team: &str, parent: &Agent) -> Agent {
        let parent = parent.id.agent_id.clone();
        let with_parent = |request: &mut RegisterRequest| request.parent_agent_id = Some(parent);
        self.register_as(Agent::new(team), with_parent).await.expect("the child is registered")
    }

    /// Registers an agent, with a change to its request.
    pub async fn register_as(
        &self,
        mut agent: Agent,
        change: impl FnOnce(&mut RegisterRequest),
    ) -> Result<Agent, Status> {
        let mut request = self.registration(&agent).await?;
        change(&mut request);
        agent.token = self.lifecycle().register(request).await?.into_inner().credential_token;
        Ok(agent)
    }

    /// A registration that is complete: a challenge has been asked for and answered.
    pub async fn registration(&self, agent: &Agent) -> Result<RegisterRequest, Status> {
        let challenge = ChallengeRequest { agent_id: Some(agent.id.clone()), public_key: agent.public_key() };
        let nonce = self.lifecycle().request_challenge(challenge).await?.into_inner().nonce;
        Ok(RegisterRequest {
            agent_id: Some(agent.id.clone()),
            name: "example".into(),
            framework: "interop".into(),
            version: "1.0.0".into(),
            public_key: agent.public_key(),
            possession_proof: agent.proof(&nonce),
            registration_nonce: nonce,
            ..RegisterRequest::default()
        })
    }

    /// A heartbeat.
    pub async fn heartbeat(&self, agent: &Agent) -> Result<HeartbeatResponse, Status> {
        let beat = HeartbeatRequest {
            agent_id: Some(agent.id.clone()),
            credential_token: agent.token.clone(),
            active_runs: 1,
            actions_count: 2,
        };
        Ok(self.lifecycle().heartbeat(beat).await?.into_inner())
    }

    /// The answer to a question.
    pub async fn ask(&self, question: CheckActionRequest) -> Result<CheckActionResponse, Status> {
        Ok(self.policy().check_action(question).await?.into_inner())
    }

    /// The answer to an agent that wants to do this.
    pub async fn check(&self, agent: &Agent, action: Action) -> CheckActionResponse {
        self.ask(question(agent, action)).await.expect("an answer")
    }

    /// The decision alone.
    pub async fn decision(&self, agent: &Agent, action: Action) -> Decision {
        self.check(agent, action).await.decision()
    }

    /// Decides an approval with this token.
    pub async fn decide(
        &self,
        token: &str,
        approval: &str,
        decision: ApprovalDecisionType,
    ) -> Result<DecideResponse, Status> {
        let request = DecideRequest {
            request_id: approval.into(),
            decision: decision.into(),
            decided_by: "somebody".into(),
            reason: "looked at".into(),
        };
        Ok(self.approvals().decide(bearing(token, request)).await?.into_inner())
    }
}

/// A message with a token beside it.
pub fn bearing<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("x-aa-credential-token", token.parse().expect("a token of ASCII"));
    request
}

/// The same, the way that other gRPC clients do it.
pub fn bearing_as_bearer<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let value = format!("Bearer {token}").parse().expect("a token of ASCII");
    request.metadata_mut().insert("authorization", value);
    request
}
