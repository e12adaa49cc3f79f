//! The services of the double.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt, stream};
use proctor_clients::assembly::services::agent::agent_lifecycle_service_server::{
    AgentLifecycleService, AgentLifecycleServiceServer,
};
use proctor_clients::assembly::services::approval::approval_service_server::{
    ApprovalService, ApprovalServiceServer,
};
use proctor_clients::assembly::services::audit::audit_service_server::{AuditService, AuditServiceServer};
use proctor_clients::assembly::services::invalidation::invalidation_service_server::{
    InvalidationService, InvalidationServiceServer,
};
use proctor_clients::assembly::services::policy::policy_service_server::{
    PolicyService, PolicyServiceServer,
};
use proctor_clients::assembly::services::topology::topology_service_server::{
    TopologyService, TopologyServiceServer,
};
use proctor_clients::health::proto::health_check_response::ServingStatus;
use proctor_clients::health::proto::health_server::{Health, HealthServer};
use proctor_clients::health::proto::{HealthCheckRequest, HealthCheckResponse};
use proctor_wire::assembly::did;
use proctor_wire::assembly::proto::agent::v1::{
    ChallengeRequest, ChallengeResponse, ControlCommand, ControlStreamRequest, DeregisterRequest,
    DeregisterResponse, HeartbeatRequest, HeartbeatResponse, RegisterRequest, RegisterResponse,
    SuspendCommand, control_command,
};
use proctor_wire::assembly::proto::approval::v1::{
    ApprovalEvent, DecideRequest, DecideResponse, ListPendingRequest, ListPendingResponse, PendingApproval,
    WatchApprovalsRequest,
};
use proctor_wire::assembly::proto::audit::v1::{
    AuditEvent, ReportEventsRequest, ReportEventsResponse, StreamEventsResponse,
};
use proctor_wire::assembly::proto::common::v1::Decision;
use proctor_wire::assembly::proto::gateway::v1::{
    InvalidationEvent, SubscribeRequest, subscribe_request::Kind,
};
use proctor_wire::assembly::proto::policy::v1::{
    BatchCheckRequest, BatchCheckResponse, CheckActionRequest, CheckActionResponse, OpControlMessage,
    OpControlSubscribeRequest, RedactInstructions, RedactRule,
};
use proctor_wire::assembly::proto::topology::v1::{
    GetAgentTreeRequest, GetAgentTreeResponse, GetLineageRequest, GetLineageResponse, GetTeamMembersRequest,
    GetTeamMembersResponse, ReportEdgeRequest, ReportEdgeResponse, TopologyAgent, TreeNode,
};
use tokio::sync::Notify;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};

use super::{GatewayDouble, RULE, Seen, TOKEN};

/// All services of the double.
pub(super) fn routes(double: &GatewayDouble) -> Routes {
    Routes::new(AgentLifecycleServiceServer::new(double.clone()))
        .add_service(PolicyServiceServer::new(double.clone()).max_encoding_message_size(16 * 1024 * 1024))
        .add_service(AuditServiceServer::new(double.clone()))
        .add_service(ApprovalServiceServer::new(double.clone()))
        .add_service(TopologyServiceServer::new(double.clone()))
        .add_service(InvalidationServiceServer::new(double.clone()))
        .add_service(HealthServer::new(double.clone()))
}

type Replies<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

fn replies<T: Send + 'static>(items: Vec<T>) -> Response<Replies<T>> {
    Response::new(Box::pin(stream::iter(items.into_iter().map(Ok))))
}

/// Notifies when a call's future is dropped.
struct NotifyOnDrop(Arc<Notify>);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tonic::async_trait]
impl AgentLifecycleService for GatewayDouble {
    type ControlStreamStream = Replies<ControlCommand>;

    async fn request_challenge(
        &self,
        request: Request<ChallengeRequest>,
    ) -> Result<Response<ChallengeResponse>, Status> {
        self.note_token("RequestChallenge", &request);
        Ok(Response::new(ChallengeResponse { nonce: self.nonce.clone(), expires_at_unix_ms: 0 }))
    }

    async fn register(
        &self,
        request: Request<RegisterRequest>,
    ) -> Result<Response<RegisterResponse>, Status> {
        self.note_token("Register", &request);
        let request = request.into_inner();
        if !request.possession_proof.is_empty() {
            let agent_id = request.agent_id.clone().unwrap_or_default().agent_id;
            let key = did::bound_key(&agent_id, &request.public_key).unwrap();
            assert_eq!(request.registration_nonce, self.nonce);
            let signature = ed25519_dalek::Signature::from_slice(&request.possession_proof).unwrap();
            key.verify_strict(&self.nonce, &signature).unwrap();
        }
        self.seen.send_modify(|seen| seen.registered = Some(request));
        Ok(Response::new(RegisterResponse { credential_token: TOKEN.to_owned(), ..Default::default() }))
    }

    async fn heartbeat(
        &self,
        request: Request<HeartbeatRequest>,
    ) -> Result<Response<HeartbeatResponse>, Status> {
        assert_eq!(self.note_token("Heartbeat", &request), request.get_ref().credential_token);
        Ok(Response::new(HeartbeatResponse { should_suspend: true, policy_updated: false }))
    }

    async fn deregister(
        &self,
        request: Request<DeregisterRequest>,
    ) -> Result<Response<DeregisterResponse>, Status> {
        assert_eq!(self.note_token("Deregister", &request), request.get_ref().credential_token);
        Ok(Response::new(DeregisterResponse { success: true, ..Default::default() }))
    }

    async fn control_stream(
        &self,
        request: Request<ControlStreamRequest>,
    ) -> Result<Response<Self::ControlStreamStream>, Status> {
        assert_eq!(self.note_token("ControlStream", &request), request.get_ref().credential_token);
        let command = Some(control_command::Command::Suspend(SuspendCommand::default()));
        Ok(replies(vec![ControlCommand { command }]))
    }
}

#[tonic::async_trait]
impl PolicyService for GatewayDouble {
    type OpControlStreamStream = Replies<OpControlMessage>;

    async fn check_action(
        &self,
        request: Request<CheckActionRequest>,
    ) -> Result<Response<CheckActionResponse>, Status> {
        let header = self.note_token("CheckAction", &request);
        let request = request.into_inner();
        let agent = request.agent_id.clone().unwrap_or_default().agent_id;
        self.seen.send_modify(|seen| {
            seen.checks.push((header, request.credential_token.clone(), agent));
            seen.traces.push(request.trace_id.clone());
        });
        let mut answer = self.answer(request.trace_id.clone());
        match request.trace_id.as_str() {
            "never" => {
                let _guard = NotifyOnDrop(Arc::clone(&self.cancelled));
                std::future::pending::<()>().await;
            }
            "think" => self.gate.notified().await,
            "refuse" => return Err(Status::invalid_argument("no context")),
            "busy" => return Err(Status::unavailable("busy")),
            "nothing" => answer.decision = 0,
            "redact" => {
                let rule = RedactRule { field_path: "$.args.key".into(), replacement: "[X]".into() };
                answer.decision = Decision::Redact.into();
                answer.redact = Some(RedactInstructions { rules: vec![rule] });
            }
            "large answer" => answer.reason = "x".repeat(5 * 1024 * 1024),
            trace => match trace.split_once(' ') {
                Some(("ask", approval_id)) => {
                    answer.decision = Decision::Pending.into();
                    answer.approval_id = approval_id.to_owned();
                }
                Some(("fast", approval_id)) => {
                    answer.decision = Decision::Pending.into();
                    answer.approval_id = approval_id.to_owned();
                    let seq = self.decide(approval_id, true);
                    self.until(|seen| seen.acknowledged >= seq).await;
                }
                _ => {}
            },
        }
        Ok(Response::new(answer))
    }

    async fn batch_check(
        &self,
        request: Request<BatchCheckRequest>,
    ) -> Result<Response<BatchCheckResponse>, Status> {
        self.note_token("BatchCheck", &request);
        let checks = request.into_inner().requests;
        let answered = checks.into_iter().filter(|check| check.trace_id != "one too few");
        Ok(Response::new(BatchCheckResponse {
            responses: answered.map(|check| self.answer(check.trace_id)).collect(),
        }))
    }

    async fn op_control_stream(
        &self,
        request: Request<OpControlSubscribeRequest>,
    ) -> Result<Response<Self::OpControlStreamStream>, Status> {
        let token = self.note_token("OpControlStream", &request);
        let messages = stream::unfold(self.operations.subscribe(), |mut receiver| async move {
            receiver.recv().await.ok().map(|message| (Ok(message), receiver))
        });
        let mut first = Vec::new();
        self.seen.send_modify(|seen| {
            seen.subscribed = Some((request.into_inner(), token));
            first.clone_from(&seen.stopped);
        });
        let first = stream::iter(first.into_iter().map(Ok));
        Ok(Response::new(Box::pin(first.chain(messages).take_until(self.hung_up()))))
    }
}

impl GatewayDouble {
    fn answer(&self, reason: String) -> CheckActionResponse {
        CheckActionResponse {
            decision: self.decision.into(),
            policy_rule: RULE.to_owned(),
            reason,
            ..Default::default()
        }
    }
}

#[tonic::async_trait]
impl AuditService for GatewayDouble {
    async fn report_events(
        &self,
        request: Request<ReportEventsRequest>,
    ) -> Result<Response<ReportEventsResponse>, Status> {
        let token = self.note_token("ReportEvents", &request);
        let events = request.into_inner().events;
        let mut refused = false;
        self.seen.send_modify(|seen| {
            refused = seen.refuse_reports > 0;
            seen.refuse_reports = seen.refuse_reports.saturating_sub(1);
        });
        if refused {
            return Err(Status::unavailable("later"));
        }
        if events.iter().any(|event| event.event_id == "foreign") {
            return Err(Status::permission_denied("an event of another agent"));
        }
        let event_ids: Vec<String> = events.iter().map(|event| event.event_id.clone()).collect();
        self.seen.send_modify(|seen| {
            seen.event_token = token;
            seen.events.extend(events.into_iter().map(id_and_agent));
        });
        Ok(Response::new(ReportEventsResponse { event_ids }))
    }

    async fn stream_events(
        &self,
        request: Request<Streaming<AuditEvent>>,
    ) -> Result<Response<StreamEventsResponse>, Status> {
        self.note_token("StreamEvents", &request);
        let mut events = request.into_inner();
        let mut events_received = 0;
        while let Some(event) = events.message().await? {
            if event.event_id == "stuck" {
                std::future::pending::<()>().await;
            }
            self.seen.send_modify(|seen| seen.events.push(id_and_agent(event)));
            events_received += 1;
        }
        Ok(Response::new(StreamEventsResponse { events_received }))
    }
}

fn id_and_agent(event: AuditEvent) -> (String, String) {
    (event.event_id, event.agent_id.unwrap_or_default().agent_id)
}

#[tonic::async_trait]
impl ApprovalService for GatewayDouble {
    type WatchApprovalsStream = Replies<ApprovalEvent>;

    async fn list_pending(
        &self,
        request: Request<ListPendingRequest>,
    ) -> Result<Response<ListPendingResponse>, Status> {
        self.note_token("ListPending", &request);
        let requests = vec![PendingApproval { request_id: "p1".into(), ..Default::default() }];
        Ok(Response::new(ListPendingResponse { requests }))
    }

    async fn decide(&self, request: Request<DecideRequest>) -> Result<Response<DecideResponse>, Status> {
        self.note_token("Decide", &request);
        Ok(Response::new(DecideResponse { success: true, ..Default::default() }))
    }

    async fn watch_approvals(
        &self,
        request: Request<WatchApprovalsRequest>,
    ) -> Result<Response<Self::WatchApprovalsStream>, Status> {
        self.note_token("WatchApprovals", &request);
        Ok(replies(vec![ApprovalEvent { request_id: "p2".into(), ..Default::default() }]))
    }
}

#[tonic::async_trait]
impl TopologyService for GatewayDouble {
    async fn get_agent_tree(
        &self,
        request: Request<GetAgentTreeRequest>,
    ) -> Result<Response<GetAgentTreeResponse>, Status> {
        self.note_token("GetAgentTree", &request);
        Ok(Response::new(GetAgentTreeResponse { root: Some(TreeNode::default()) }))
    }

    async fn get_lineage(
        &self,
        request: Request<GetLineageRequest>,
    ) -> Result<Response<GetLineageResponse>, Status> {
        self.note_token("GetLineage", &request);
        Ok(Response::new(GetLineageResponse { ancestors: vec![TopologyAgent::default()] }))
    }

    async fn get_team_members(
        &self,
        request: Request<GetTeamMembersRequest>,
    ) -> Result<Response<GetTeamMembersResponse>, Status> {
        self.note_token("GetTeamMembers", &request);
        Ok(Response::new(GetTeamMembersResponse { members: vec![TopologyAgent::default(); 2] }))
    }

    async fn report_edge(
        &self,
        request: Request<ReportEdgeRequest>,
    ) -> Result<Response<ReportEdgeResponse>, Status> {
        self.note_token("ReportEdge", &request);
        Ok(Response::new(ReportEdgeResponse { id: 5 }))
    }
}

#[tonic::async_trait]
impl InvalidationService for GatewayDouble {
    type SubscribeStream = Replies<InvalidationEvent>;

    async fn subscribe(
        &self,
        request: Request<Streaming<SubscribeRequest>>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        if self.seen.borrow().is_away {
            return Err(Status::unavailable("away"));
        }
        let token = self.note_token("Subscribe", &request);
        let mut requests = request.into_inner();
        let first = requests.message().await?.unwrap();
        let Some(Kind::Initial(initial)) = first.kind else { panic!("{first:?}") };
        let last = initial.last_seq_seen;
        self.seen.send_modify(|seen| seen.subscriptions.push((first.assembly_id, token, last)));
        let seen = Arc::clone(&self.seen);
        tokio::spawn(async move {
            while let Ok(Some(SubscribeRequest { kind: Some(Kind::Ack(ack)), .. })) = requests.message().await
            {
                seen.send_modify(|seen| seen.acknowledged = seen.acknowledged.max(ack.seq));
            }
        });
        let events = stream::unfold((self.seen.subscribe(), last), |(mut seen, last)| async move {
            let next = |seen: &Seen| seen.outcomes.iter().find(|event| event.seq > last).cloned();
            let event = next(&*seen.wait_for(|seen| next(seen).is_some()).await.ok()?)?;
            let seq = event.seq;
            Some((Ok(event), (seen, seq)))
        });
        Ok(Response::new(Box::pin(events.take_until(self.hung_up()))))
    }
}

#[tonic::async_trait]
impl Health for GatewayDouble {
    type WatchStream = Replies<HealthCheckResponse>;

    async fn check(&self, _: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        Ok(Response::new(HealthCheckResponse { status: ServingStatus::Serving.into() }))
    }

    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        Err(Status::unimplemented("no watching"))
    }
}
