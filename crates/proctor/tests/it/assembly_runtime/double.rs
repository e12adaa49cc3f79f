//! A gateway that does what it is told.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt, stream};
use proctor_net::assembly::services::audit::audit_service_server::{AuditService, AuditServiceServer};
use proctor_net::assembly::services::invalidation::invalidation_service_server::{
    InvalidationService, InvalidationServiceServer,
};
use proctor_net::assembly::services::policy::policy_service_server::{PolicyService, PolicyServiceServer};
use proctor_wire::assembly::proto::audit::v1::{
    AuditEvent, ReportEventsRequest, ReportEventsResponse, StreamEventsResponse,
};
use proctor_wire::assembly::proto::common::v1::Decision;
use proctor_wire::assembly::proto::gateway::v1::{
    self as gateway, ApprovalResolved, InvalidationEvent, SubscribeRequest, invalidation_event::Payload,
    subscribe_request::Kind,
};
use proctor_wire::assembly::proto::policy::v1::{
    BatchCheckRequest, BatchCheckResponse, CheckActionRequest, CheckActionResponse, OpControlMessage,
    OpControlSignal, OpControlSubscribeRequest, RedactInstructions, RedactRule,
};
use tokio::net::UnixListener;
use tokio::sync::{Notify, broadcast, watch};
use tonic::{Request, Response, Status, Streaming};

/// What the double of a gateway saw.
#[derive(Default)]
pub(crate) struct Seen {
    /// Tokens of checks, in the header and in the body, and the agent.
    pub(crate) checks: Vec<(String, String, String)>,
    pub(crate) events: Vec<(String, String)>,
    pub(crate) event_token: String,
    /// Who listens to operations, and with which token.
    pub(crate) subscribed: Option<(OpControlSubscribeRequest, String)>,
    /// What is said first to who listens to operations.
    pub(crate) stopped: Vec<(String, OpControlSignal)>,
    /// The subscriptions to outcomes: name, token, and the last number seen.
    pub(crate) subscriptions: Vec<(String, String, u64)>,
    /// All outcomes there were, with their numbers.
    pub(crate) outcomes: Vec<InvalidationEvent>,
    pub(crate) acknowledged: u64,
    /// Nobody may subscribe to outcomes for now.
    pub(crate) is_away: bool,
    pub(crate) refuse_reports: usize,
}

/// A gateway that does what the trace says.
#[derive(Clone)]
pub(crate) struct Double {
    pub(crate) seen: Arc<watch::Sender<Seen>>,
    operations: broadcast::Sender<OpControlMessage>,
    /// Ends all streams.
    hang_up: broadcast::Sender<()>,
    /// Lets a query named `think` through.
    pub(crate) gate: Arc<Notify>,
}

type Replies<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

fn token<T>(request: &Request<T>) -> String {
    let token = request.metadata().get("x-aa-credential-token");
    token.map(|token| token.to_str().unwrap().to_owned()).unwrap_or_default()
}

#[tonic::async_trait]
impl PolicyService for Double {
    type OpControlStreamStream = Replies<OpControlMessage>;

    async fn check_action(
        &self,
        request: Request<CheckActionRequest>,
    ) -> Result<Response<CheckActionResponse>, Status> {
        let header = token(&request);
        let request = request.into_inner();
        let agent = request.agent_id.unwrap_or_default().agent_id;
        self.seen.send_modify(|seen| seen.checks.push((header, request.credential_token, agent)));
        let mut answer = CheckActionResponse {
            decision: Decision::Allow.into(),
            policy_rule: "of-the-gateway".into(),
            reason: request.trace_id.clone(),
            ..Default::default()
        };
        match request.trace_id.as_str() {
            "never" => std::future::pending().await,
            "think" => self.gate.notified().await,
            "refuse" => return Err(Status::invalid_argument("no context")),
            "busy" => return Err(Status::unavailable("busy")),
            "nothing" => answer.decision = 0,
            "redact" => {
                let rule = RedactRule { field_path: "$.args.key".into(), replacement: "[X]".into() };
                answer.decision = Decision::Redact.into();
                answer.redact = Some(RedactInstructions { rules: vec![rule] });
            }
            trace => match trace.split_once(' ') {
                Some(("ask", approval_id)) => {
                    answer.decision = Decision::Pending.into();
                    answer.approval_id = approval_id.to_owned();
                }
                // The outcome is there, and heard, before the answer.
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
        _: Request<BatchCheckRequest>,
    ) -> Result<Response<BatchCheckResponse>, Status> {
        Err(Status::unimplemented("not asked"))
    }

    async fn op_control_stream(
        &self,
        request: Request<OpControlSubscribeRequest>,
    ) -> Result<Response<Self::OpControlStreamStream>, Status> {
        let token = token(&request);
        let messages = stream::unfold(self.operations.subscribe(), |mut receiver| async move {
            receiver.recv().await.ok().map(|message| (Ok(message), receiver))
        });
        let request = request.into_inner();
        let mut first = Vec::new();
        self.seen.send_modify(|seen| {
            seen.subscribed = Some((request, token));
            first.clone_from(&seen.stopped);
        });
        let first: Vec<_> =
            first.into_iter().map(|(operation, signal)| Ok(operation_message(&operation, signal))).collect();
        Ok(Response::new(Box::pin(stream::iter(first).chain(messages).take_until(self.end()))))
    }
}

#[tonic::async_trait]
impl InvalidationService for Double {
    type SubscribeStream = Replies<InvalidationEvent>;

    async fn subscribe(
        &self,
        request: Request<Streaming<SubscribeRequest>>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        if self.seen.borrow().is_away {
            return Err(Status::unavailable("away"));
        }
        let token = token(&request);
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
        Ok(Response::new(Box::pin(events.take_until(self.end()))))
    }
}

#[tonic::async_trait]
impl AuditService for Double {
    async fn report_events(
        &self,
        request: Request<ReportEventsRequest>,
    ) -> Result<Response<ReportEventsResponse>, Status> {
        let header = token(&request);
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
            seen.event_token = header;
            seen.events.extend(
                events.into_iter().map(|event| (event.event_id, event.agent_id.unwrap_or_default().agent_id)),
            );
        });
        Ok(Response::new(ReportEventsResponse { event_ids }))
    }

    async fn stream_events(
        &self,
        _: Request<Streaming<AuditEvent>>,
    ) -> Result<Response<StreamEventsResponse>, Status> {
        Err(Status::unimplemented("not asked"))
    }
}

impl Double {
    pub(crate) fn listen(path: &Path) -> Double {
        let double = Double {
            seen: Arc::default(),
            operations: broadcast::Sender::new(16),
            hang_up: broadcast::Sender::new(1),
            gate: Arc::default(),
        };
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let listener = UnixListener::bind(path).unwrap();
        let incoming = stream::unfold(listener, |listener| async move {
            Some((listener.accept().await.map(|(stream, _)| stream), listener))
        });
        let serving = tonic::transport::Server::builder()
            .add_service(PolicyServiceServer::new(double.clone()))
            .add_service(AuditServiceServer::new(double.clone()))
            .add_service(InvalidationServiceServer::new(double.clone()))
            .serve_with_incoming(incoming);
        tokio::spawn(serving);
        double
    }

    pub(crate) async fn until(&self, what: impl FnMut(&Seen) -> bool) {
        self.seen.subscribe().wait_for(what).await.unwrap();
    }

    pub(crate) fn tell(&self, op_id: &str, signal: OpControlSignal) {
        self.operations.send(operation_message(op_id, signal)).unwrap();
    }

    /// Decides an approval; gives the number of the event.
    pub(crate) fn decide(&self, approval_id: &str, approved: bool) -> u64 {
        let decision = if approved { gateway::Decision::Approved } else { gateway::Decision::Denied };
        let resolved = ApprovalResolved { request_id: approval_id.to_owned(), decision: decision.into() };
        let mut number = 0;
        self.seen.send_modify(|seen| {
            number = seen.outcomes.len() as u64 + 1;
            let payload = Some(Payload::ApprovalResolved(resolved));
            seen.outcomes.push(InvalidationEvent { seq: number, payload });
        });
        number
    }

    /// Ends all streams.
    pub(crate) fn hang_up(&self) {
        self.hang_up.send(()).unwrap();
    }

    /// Resolves when the streams of now are ended.
    fn end(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut hang_up = self.hang_up.subscribe();
        async move {
            let _ = hang_up.recv().await;
        }
    }
}

fn operation_message(op_id: &str, signal: OpControlSignal) -> OpControlMessage {
    OpControlMessage { op_id: op_id.into(), signal: signal.into(), sequence: 0 }
}

/// A folder with a double in it, and the double's endpoint.
pub(crate) fn with_gateway() -> (tempfile::TempDir, Double, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gateway.sock");
    let double = Double::listen(&path);
    (folder, double, format!("unix:{}", path.display()))
}
