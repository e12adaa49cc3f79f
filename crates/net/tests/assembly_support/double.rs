//! A gateway that does nothing but what a test wants to see.
#![allow(dead_code, reason = "each test file uses its part")]

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use futures_util::{Stream, StreamExt, stream};
use proctor_net::assembly::services::agent::agent_lifecycle_service_server::{
    AgentLifecycleService, AgentLifecycleServiceServer,
};
use proctor_net::assembly::services::approval::approval_service_server::{
    ApprovalService, ApprovalServiceServer,
};
use proctor_net::assembly::services::audit::audit_service_server::{AuditService, AuditServiceServer};
use proctor_net::assembly::services::invalidation::invalidation_service_server::{
    InvalidationService, InvalidationServiceServer,
};
use proctor_net::assembly::services::policy::policy_service_server::{PolicyService, PolicyServiceServer};
use proctor_net::assembly::services::topology::topology_service_server::{
    TopologyService, TopologyServiceServer,
};
use proctor_net::health::proto::health_check_response::ServingStatus;
use proctor_net::health::proto::health_server::{Health, HealthServer};
use proctor_net::health::proto::{HealthCheckRequest, HealthCheckResponse};
use proctor_net::listen::{self, ListenOptions};
use proctor_net::tls::ServerTls;
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
use proctor_wire::assembly::proto::gateway::v1::{InvalidationEvent, SubscribeRequest, subscribe_request};
use proctor_wire::assembly::proto::policy::v1::{
    BatchCheckRequest, BatchCheckResponse, CheckActionRequest, CheckActionResponse, OpControlMessage,
    OpControlSubscribeRequest,
};
use proctor_wire::assembly::proto::topology::v1::{
    GetAgentTreeRequest, GetAgentTreeResponse, GetLineageRequest, GetLineageResponse, GetTeamMembersRequest,
    GetTeamMembersResponse, ReportEdgeRequest, ReportEdgeResponse, TopologyAgent, TreeNode,
};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};

/// The token that the double gives.
pub(crate) const TOKEN: &str = "token-of-the-double";

/// What the double saw.
#[derive(Default)]
struct Seen {
    registered: Option<RegisterRequest>,
    events: Vec<String>,
    check_tokens: Vec<(String, String)>,
    without_token: Vec<&'static str>,
    asked: Vec<String>,
}

/// A gateway without any sense.
#[derive(Clone)]
pub(crate) struct Double {
    nonce: Vec<u8>,
    seen: Arc<Mutex<Seen>>,
    asked: Arc<Notify>,
    gave_up: Arc<Notify>,
}

impl Default for Double {
    fn default() -> Double {
        Double { nonce: vec![9; 32], seen: Arc::default(), asked: Arc::default(), gave_up: Arc::default() }
    }
}

impl Double {
    pub(crate) fn with_nonce(nonce: Vec<u8>) -> Double {
        Double { nonce, ..Double::default() }
    }

    pub(crate) fn registered(&self) -> RegisterRequest {
        self.seen.lock().unwrap().registered.clone().unwrap()
    }

    pub(crate) fn events(&self) -> Vec<String> {
        self.seen.lock().unwrap().events.clone()
    }

    /// The tokens of checks: in the header, and in the body.
    pub(crate) fn check_tokens(&self) -> Vec<(String, String)> {
        self.seen.lock().unwrap().check_tokens.clone()
    }

    pub(crate) fn calls_without_token(&self) -> Vec<&'static str> {
        self.seen.lock().unwrap().without_token.clone()
    }

    /// Waits until a check with this trace has come.
    pub(crate) async fn asked(&self, trace_id: &str) {
        loop {
            let came = self.asked.notified();
            if self.seen.lock().unwrap().asked.iter().any(|asked| asked == trace_id) {
                return;
            }
            came.await;
        }
    }

    /// Waits until a caller gave up.
    pub(crate) async fn gave_up(&self) {
        self.gave_up.notified().await;
    }

    fn saw<T>(&self, method: &'static str, request: &Request<T>) -> String {
        let token = request.metadata().get("x-aa-credential-token");
        let token = token.map(|token| token.to_str().unwrap().to_owned()).unwrap_or_default();
        if token.is_empty() {
            self.seen.lock().unwrap().without_token.push(method);
        }
        token
    }
}

type Flow<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

fn flow<T: Send + 'static>(items: Vec<T>) -> Response<Flow<T>> {
    Response::new(Box::pin(stream::iter(items.into_iter().map(Ok))))
}

/// Says that it was dropped.
struct Tell(Arc<Notify>);

impl Drop for Tell {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tonic::async_trait]
impl AgentLifecycleService for Double {
    type ControlStreamStream = Flow<ControlCommand>;

    async fn request_challenge(
        &self,
        request: Request<ChallengeRequest>,
    ) -> Result<Response<ChallengeResponse>, Status> {
        self.saw("RequestChallenge", &request);
        Ok(Response::new(ChallengeResponse { nonce: self.nonce.clone(), expires_at_unix_ms: 0 }))
    }

    async fn register(
        &self,
        request: Request<RegisterRequest>,
    ) -> Result<Response<RegisterResponse>, Status> {
        self.saw("Register", &request);
        let request = request.into_inner();
        if !request.possession_proof.is_empty() {
            let agent_id = request.agent_id.clone().unwrap_or_default().agent_id;
            let key = did::bound_key(&agent_id, &request.public_key).unwrap();
            assert_eq!(request.registration_nonce, self.nonce);
            let signature = ed25519_dalek::Signature::from_slice(&request.possession_proof).unwrap();
            key.verify_strict(&self.nonce, &signature).unwrap();
        }
        self.seen.lock().unwrap().registered = Some(request);
        Ok(Response::new(RegisterResponse { credential_token: TOKEN.to_owned(), ..Default::default() }))
    }

    async fn heartbeat(
        &self,
        request: Request<HeartbeatRequest>,
    ) -> Result<Response<HeartbeatResponse>, Status> {
        assert_eq!(self.saw("Heartbeat", &request), request.get_ref().credential_token);
        Ok(Response::new(HeartbeatResponse { should_suspend: true, policy_updated: false }))
    }

    async fn deregister(
        &self,
        request: Request<DeregisterRequest>,
    ) -> Result<Response<DeregisterResponse>, Status> {
        assert_eq!(self.saw("Deregister", &request), request.get_ref().credential_token);
        Ok(Response::new(DeregisterResponse { success: true, ..Default::default() }))
    }

    async fn control_stream(
        &self,
        request: Request<ControlStreamRequest>,
    ) -> Result<Response<Self::ControlStreamStream>, Status> {
        assert_eq!(self.saw("ControlStream", &request), request.get_ref().credential_token);
        let command = Some(control_command::Command::Suspend(SuspendCommand::default()));
        Ok(flow(vec![ControlCommand { command }]))
    }
}

#[tonic::async_trait]
impl PolicyService for Double {
    type OpControlStreamStream = Flow<OpControlMessage>;

    async fn check_action(
        &self,
        request: Request<CheckActionRequest>,
    ) -> Result<Response<CheckActionResponse>, Status> {
        let token = self.saw("CheckAction", &request);
        let request = request.into_inner();
        {
            let mut seen = self.seen.lock().unwrap();
            seen.check_tokens.push((token, request.credential_token.clone()));
            seen.asked.push(request.trace_id.clone());
        }
        self.asked.notify_waiters();
        match request.trace_id.as_str() {
            "never" => {
                let _tell = Tell(Arc::clone(&self.gave_up));
                std::future::pending::<()>().await;
            }
            "refuse" => return Err(Status::invalid_argument("no context")),
            "large answer" => return Ok(Response::new(answered("x".repeat(5 * 1024 * 1024)))),
            _ => {}
        }
        Ok(Response::new(answered(request.trace_id)))
    }

    async fn batch_check(
        &self,
        request: Request<BatchCheckRequest>,
    ) -> Result<Response<BatchCheckResponse>, Status> {
        self.saw("BatchCheck", &request);
        let questions = request.into_inner().requests;
        let responses = questions.into_iter().filter(|question| question.trace_id != "one too few");
        Ok(Response::new(BatchCheckResponse {
            responses: responses.map(|question| answered(question.trace_id)).collect(),
        }))
    }

    async fn op_control_stream(
        &self,
        request: Request<OpControlSubscribeRequest>,
    ) -> Result<Response<Self::OpControlStreamStream>, Status> {
        self.saw("OpControlStream", &request);
        Ok(flow((0..3).map(|sequence| OpControlMessage { sequence, ..Default::default() }).collect()))
    }
}

fn answered(reason: String) -> CheckActionResponse {
    CheckActionResponse { decision: Decision::Redact.into(), reason, ..Default::default() }
}

#[tonic::async_trait]
impl AuditService for Double {
    async fn report_events(
        &self,
        request: Request<ReportEventsRequest>,
    ) -> Result<Response<ReportEventsResponse>, Status> {
        self.saw("ReportEvents", &request);
        let event_ids: Vec<String> =
            request.into_inner().events.into_iter().map(|event| event.event_id).collect();
        self.seen.lock().unwrap().events.extend(event_ids.clone());
        Ok(Response::new(ReportEventsResponse { event_ids }))
    }

    async fn stream_events(
        &self,
        request: Request<Streaming<AuditEvent>>,
    ) -> Result<Response<StreamEventsResponse>, Status> {
        self.saw("StreamEvents", &request);
        let mut events = request.into_inner();
        let mut events_received = 0;
        while let Some(event) = events.message().await? {
            if event.event_id == "stuck" {
                std::future::pending::<()>().await;
            }
            self.seen.lock().unwrap().events.push(event.event_id);
            events_received += 1;
        }
        Ok(Response::new(StreamEventsResponse { events_received }))
    }
}

#[tonic::async_trait]
impl ApprovalService for Double {
    type WatchApprovalsStream = Flow<ApprovalEvent>;

    async fn list_pending(
        &self,
        request: Request<ListPendingRequest>,
    ) -> Result<Response<ListPendingResponse>, Status> {
        self.saw("ListPending", &request);
        let requests = vec![PendingApproval { request_id: "p1".into(), ..Default::default() }];
        Ok(Response::new(ListPendingResponse { requests }))
    }

    async fn decide(&self, request: Request<DecideRequest>) -> Result<Response<DecideResponse>, Status> {
        self.saw("Decide", &request);
        Ok(Response::new(DecideResponse { success: true, ..Default::default() }))
    }

    async fn watch_approvals(
        &self,
        request: Request<WatchApprovalsRequest>,
    ) -> Result<Response<Self::WatchApprovalsStream>, Status> {
        self.saw("WatchApprovals", &request);
        Ok(flow(vec![ApprovalEvent { request_id: "p2".into(), ..Default::default() }]))
    }
}

#[tonic::async_trait]
impl TopologyService for Double {
    async fn get_agent_tree(
        &self,
        request: Request<GetAgentTreeRequest>,
    ) -> Result<Response<GetAgentTreeResponse>, Status> {
        self.saw("GetAgentTree", &request);
        Ok(Response::new(GetAgentTreeResponse { root: Some(TreeNode::default()) }))
    }

    async fn get_lineage(
        &self,
        request: Request<GetLineageRequest>,
    ) -> Result<Response<GetLineageResponse>, Status> {
        self.saw("GetLineage", &request);
        Ok(Response::new(GetLineageResponse { ancestors: vec![TopologyAgent::default()] }))
    }

    async fn get_team_members(
        &self,
        request: Request<GetTeamMembersRequest>,
    ) -> Result<Response<GetTeamMembersResponse>, Status> {
        self.saw("GetTeamMembers", &request);
        Ok(Response::new(GetTeamMembersResponse { members: vec![TopologyAgent::default(); 2] }))
    }

    async fn report_edge(
        &self,
        request: Request<ReportEdgeRequest>,
    ) -> Result<Response<ReportEdgeResponse>, Status> {
        self.saw("ReportEdge", &request);
        Ok(Response::new(ReportEdgeResponse { id: 5 }))
    }
}

#[tonic::async_trait]
impl InvalidationService for Double {
    type SubscribeStream = Flow<InvalidationEvent>;

    async fn subscribe(
        &self,
        request: Request<Streaming<SubscribeRequest>>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        self.saw("Subscribe", &request);
        // Every message of the subscriber lets the double send the next event.
        let events = request.into_inner().map(|message| {
            let message = message?;
            assert_eq!(message.assembly_id, "runtime-1");
            let seq = match message.kind.unwrap() {
                subscribe_request::Kind::Initial(initial) => initial.last_seq_seen + 1,
                subscribe_request::Kind::Ack(ack) => ack.seq + 1,
            };
            Ok(InvalidationEvent { seq, payload: None })
        });
        Ok(Response::new(Box::pin(events)))
    }
}

#[tonic::async_trait]
impl Health for Double {
    type WatchStream = Flow<HealthCheckResponse>;

    async fn check(&self, _: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        Ok(Response::new(HealthCheckResponse { status: ServingStatus::Serving.into() }))
    }

    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        Err(Status::unimplemented("no watching"))
    }
}

fn routes(double: &Double) -> Routes {
    Routes::new(AgentLifecycleServiceServer::new(double.clone()))
        .add_service(PolicyServiceServer::new(double.clone()).max_encoding_message_size(16 * 1024 * 1024))
        .add_service(AuditServiceServer::new(double.clone()))
        .add_service(ApprovalServiceServer::new(double.clone()))
        .add_service(TopologyServiceServer::new(double.clone()))
        .add_service(InvalidationServiceServer::new(double.clone()))
        .add_service(HealthServer::new(double.clone()))
}

/// A double that listens.
pub(crate) struct Gateway {
    pub(crate) endpoint: String,
    pub(crate) double: Double,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
    file: Option<PathBuf>,
    _folder: Option<tempfile::TempDir>,
}

impl Gateway {
    pub(crate) async fn tcp(double: Double, tls: Option<ServerTls>) -> Gateway {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let endpoint = format!("{scheme}://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let app = routes(&double).into_axum_router();
        let options = ListenOptions { tls, ..ListenOptions::default() };
        let serving = listen::serve(listener, app, options, stop.clone());
        let task = tokio::spawn(async move { serving.await.unwrap() });
        Gateway { endpoint, double, stop, task, file: None, _folder: None }
    }

    pub(crate) fn unix(double: Double) -> Gateway {
        let folder = tempfile::tempdir().unwrap();
        let gateway = Gateway::unix_at(double, &folder.path().join("gateway.sock"));
        Gateway { _folder: Some(folder), ..gateway }
    }

    pub(crate) fn unix_at(double: Double, path: &Path) -> Gateway {
        let listener = UnixListener::bind(path).unwrap();
        let incoming = stream::unfold(listener, |listener| async move {
            Some((listener.accept().await.map(|(stream, _)| stream), listener))
        });
        let stop = CancellationToken::new();
        let serving = tonic::transport::Server::builder()
            .add_routes(routes(&double))
            .serve_with_incoming_shutdown(incoming, stop.clone().cancelled_owned());
        let task = tokio::spawn(async move { serving.await.unwrap() });
        let endpoint = format!("unix:{}", path.display());
        Gateway { endpoint, double, stop, task, file: Some(path.to_owned()), _folder: None }
    }

    /// Ends it, connections and all.
    pub(crate) async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap();
        if let Some(file) = self.file {
            std::fs::remove_file(file).unwrap();
        }
    }
}
