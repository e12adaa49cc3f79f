//! A gateway of Agent Assembly that records its calls and answers as a test scripts it.

mod server;
mod services;

pub use server::GatewayServer;

use std::path::Path;
use std::sync::Arc;

use proctor_wire::assembly::proto::agent::v1::RegisterRequest;
use proctor_wire::assembly::proto::common::v1::Decision;
use proctor_wire::assembly::proto::gateway::v1::{
    self as gateway, ApprovalResolved, InvalidationEvent, invalidation_event::Payload,
};
use proctor_wire::assembly::proto::policy::v1::{
    OpControlMessage, OpControlSignal, OpControlSubscribeRequest,
};
use tokio::sync::{Notify, broadcast, watch};
use tonic::Request;

/// The token that every registration gets.
pub const TOKEN: &str = "token-of-the-double";

/// The rule in every scripted answer.
pub const RULE: &str = "of-the-gateway";

/// Calls that were received, and settings that a test changes while the double runs.
#[derive(Default)]
pub struct Seen {
    /// The last registration.
    pub registered: Option<RegisterRequest>,
    /// Checks: the token of the header, the token of the body, and the agent.
    pub checks: Vec<(String, String, String)>,
    /// The trace ids of checks.
    pub traces: Vec<String>,
    /// Methods that were called without a token.
    pub without_token: Vec<&'static str>,
    /// Reported events: the id, and the agent.
    pub events: Vec<(String, String)>,
    /// The token of the last report.
    pub event_token: String,
    /// The subscriber to operations, and its token.
    pub subscribed: Option<(OpControlSubscribeRequest, String)>,
    /// The first messages to a subscriber to operations.
    pub stopped: Vec<OpControlMessage>,
    /// The subscribers to outcomes: the name, the token, and the last sequence seen.
    pub subscriptions: Vec<(String, String, u64)>,
    /// All outcomes, with their sequences.
    pub outcomes: Vec<InvalidationEvent>,
    /// The highest acknowledged sequence.
    pub acknowledged: u64,
    /// Whether subscriptions to outcomes are refused.
    pub is_away: bool,
    /// The number of reports that will be refused.
    pub refuse_reports: usize,
}

/// A gateway whose answers follow from the trace id of a check:
///
/// | Trace id | Answer |
/// |---|---|
/// | `never` | none; [`GatewayDouble::cancelled`] resolves when the caller cancels |
/// | `think` | after [`GatewayDouble::gate`] was notified |
/// | `refuse`, `busy` | `InvalidArgument`, `Unavailable` |
/// | `nothing` | no decision |
/// | `redact` | redact, with a rule |
/// | `large answer` | 5 MiB |
/// | `ask ID` | pending |
/// | `fast ID` | pending, after the outcome was acknowledged |
/// | any other | the default decision |
///
/// The trace id is the reason of every answer. A batch leaves out the check `one too few`.
#[derive(Clone)]
pub struct GatewayDouble {
    /// The calls so far, and the settings.
    pub seen: Arc<watch::Sender<Seen>>,
    /// Releases a check with the trace id `think`.
    pub gate: Arc<Notify>,
    decision: Decision,
    nonce: Vec<u8>,
    operations: broadcast::Sender<OpControlMessage>,
    hang_up: broadcast::Sender<()>,
    cancelled: Arc<Notify>,
}

impl Default for GatewayDouble {
    fn default() -> GatewayDouble {
        GatewayDouble {
            seen: Arc::default(),
            gate: Arc::default(),
            decision: Decision::Allow,
            nonce: vec![9; 32],
            operations: broadcast::Sender::new(16),
            hang_up: broadcast::Sender::new(1),
            cancelled: Arc::default(),
        }
    }
}

impl GatewayDouble {
    /// A double with this default decision.
    pub fn deciding(decision: Decision) -> GatewayDouble {
        GatewayDouble { decision, ..GatewayDouble::default() }
    }

    /// A double with this challenge.
    pub fn with_nonce(nonce: Vec<u8>) -> GatewayDouble {
        GatewayDouble { nonce, ..GatewayDouble::default() }
    }

    /// A double that listens on a Unix socket until the test ends. The folder is made.
    pub fn listen(path: &Path) -> GatewayDouble {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let double = GatewayDouble::default();
        GatewayServer::unix_at(double.clone(), path).detach();
        double
    }

    /// Waits until the calls so far satisfy a condition.
    pub async fn until(&self, condition: impl FnMut(&Seen) -> bool) {
        self.seen.subscribe().wait_for(condition).await.unwrap();
    }

    /// The last registration.
    pub fn registered(&self) -> RegisterRequest {
        self.seen.borrow().registered.clone().unwrap()
    }

    /// The ids of reported events.
    pub fn events(&self) -> Vec<String> {
        self.seen.borrow().events.iter().map(|(id, _)| id.clone()).collect()
    }

    /// The tokens of checks: in the header, and in the body.
    pub fn check_tokens(&self) -> Vec<(String, String)> {
        self.seen.borrow().checks.iter().map(|(header, body, _)| (header.clone(), body.clone())).collect()
    }

    /// Methods that were called without a token.
    pub fn calls_without_token(&self) -> Vec<&'static str> {
        self.seen.borrow().without_token.clone()
    }

    /// Waits until the caller of a check with the trace id `never` has cancelled it.
    pub async fn cancelled(&self) {
        self.cancelled.notified().await;
    }

    /// Sends a signal to the subscribers to operations.
    pub fn tell(&self, op_id: &str, signal: OpControlSignal) {
        self.operations.send(operation(op_id, signal)).unwrap();
    }

    /// Publishes the outcome of an approval; the sequence of its event.
    pub fn decide(&self, approval_id: &str, approved: bool) -> u64 {
        let decision = if approved { gateway::Decision::Approved } else { gateway::Decision::Denied };
        let resolved = ApprovalResolved { request_id: approval_id.to_owned(), decision: decision.into() };
        let mut seq = 0;
        self.seen.send_modify(|seen| {
            seq = seen.outcomes.len() as u64 + 1;
            let payload = Some(Payload::ApprovalResolved(resolved));
            seen.outcomes.push(InvalidationEvent { seq, payload });
        });
        seq
    }

    /// Publishes an event without content under this sequence.
    pub fn publish(&self, seq: u64) {
        self.seen.send_modify(|seen| seen.outcomes.push(InvalidationEvent { seq, payload: None }));
    }

    /// Ends all open streams.
    pub fn hang_up(&self) {
        self.hang_up.send(()).unwrap();
    }

    /// Resolves at the next [`GatewayDouble::hang_up`].
    fn hung_up(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut hang_up = self.hang_up.subscribe();
        async move {
            let _ = hang_up.recv().await;
        }
    }

    /// The token of a call; notes a call without one.
    fn note_token<T>(&self, method: &'static str, request: &Request<T>) -> String {
        let token = request.metadata().get("x-aa-credential-token");
        let token = token.map(|token| token.to_str().unwrap().to_owned()).unwrap_or_default();
        if token.is_empty() {
            self.seen.send_modify(|seen| seen.without_token.push(method));
        }
        token
    }
}

/// A signal to an operation.
pub fn operation(op_id: &str, signal: OpControlSignal) -> OpControlMessage {
    OpControlMessage { op_id: op_id.to_owned(), signal: signal.into(), sequence: 0 }
}

/// A folder with a double's socket in it, the double, and its endpoint.
pub fn with_gateway() -> (tempfile::TempDir, GatewayDouble, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gateway.sock");
    let double = GatewayDouble::listen(&path);
    (folder, double, format!("unix:{}", path.display()))
}
