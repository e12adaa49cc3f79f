//! The socket between an agent's library and its runtime, the runtime's side.
//!
//! Queries of a connection are looked at together and answered strictly in the order of asking, because nothing else says which answer
//! belongs to which query. Connections do not wait for each other. Everything fails closed: a query that takes too long, or whose
//! handler panics or gives no decision, is denied.
//!
//! ```
//! use proctor_net::assembly::runtime::{Listening, RuntimeHandler, RuntimeOptions, serve};
//! use proctor_wire::assembly::proto::audit::v1::AuditEvent;
//! use proctor_wire::assembly::proto::common::v1::Decision;
//! use proctor_wire::assembly::proto::policy::v1::{CheckActionRequest, CheckActionResponse};
//! use tokio_util::sync::CancellationToken;
//!
//! struct Everything;
//!
//! impl RuntimeHandler for Everything {
//!     async fn check(&self, _: CheckActionRequest) -> CheckActionResponse {
//!         CheckActionResponse { decision: Decision::Allow.into(), ..Default::default() }
//!     }
//!     async fn report(&self, _: AuditEvent) {}
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("aa-runtime-agent-1.sock");
//! let listener = Listening::bind(&path).await.unwrap();
//! let stop = CancellationToken::new();
//! # stop.cancel();
//! serve(listener, RuntimeOptions::new("agent-1"), Everything, stop).await;
//! assert!(!path.exists());
//! # });
//! ```

mod connection;
mod decision;
mod framing;

pub use decision::deny;
pub use framing::Framing;

pub use crate::ahp::server::unix::Listening;

use std::sync::Arc;
use std::time::Duration;

use proctor_wire::assembly::frames::ServerFrame;
use proctor_wire::assembly::handshake::PROOF_TIMEOUT;
use proctor_wire::assembly::proto::audit::v1::{AuditEvent, PolicyViolation};
use proctor_wire::assembly::proto::event::v1::ApprovalDecision;
use proctor_wire::assembly::proto::policy::v1::{CheckActionRequest, CheckActionResponse};
use tokio::net::UnixStream;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::ahp::server::accept::{Accepting, Connections};

/// How a socket is served.
///
/// ```
/// use proctor_net::assembly::runtime::{Framing, RuntimeOptions};
///
/// let options = RuntimeOptions { framing: Framing::Bare, ..RuntimeOptions::new("agent-1") };
/// assert_eq!(options.max_connections, 64);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RuntimeOptions {
    /// The agent whose runtime this is: the handshake's key follows from it.
    pub agent_id: String,
    /// What the bytes mean.
    pub framing: Framing,
    /// More connections than this are closed at once.
    pub max_connections: usize,
    /// How long a client may take for its proof.
    pub handshake_timeout: Duration,
    /// How long a query may take before it is denied.
    pub query_timeout: Duration,
    /// How long a client may take to read what it is sent.
    pub write_timeout: Duration,
    /// How long a client may take for a frame that it has begun.
    pub frame_timeout: Duration,
    /// How many queries of one connection may be without an answer; no more is read until one is answered.
    pub max_in_flight: usize,
    /// How long queries in flight have to finish when the server stops.
    pub grace: Duration,
}

impl RuntimeOptions {
    /// What the released libraries expect.
    pub fn new(agent_id: impl Into<String>) -> RuntimeOptions {
        RuntimeOptions {
            agent_id: agent_id.into(),
            framing: Framing::Tagged,
            max_connections: 64,
            handshake_timeout: PROOF_TIMEOUT,
            query_timeout: Duration::from_secs(5),
            write_timeout: Duration::from_secs(10),
            frame_timeout: Duration::from_secs(30),
            max_in_flight: 256,
            grace: Duration::from_secs(30),
        }
    }
}

/// What a client is told unasked.
///
/// ```
/// use proctor_net::assembly::runtime::Push;
/// use proctor_wire::assembly::proto::event::v1::ApprovalDecision;
///
/// let push = Push::ApprovalDecision(ApprovalDecision { approved: true, ..Default::default() });
/// let (sender, mut receiver) = tokio::sync::broadcast::channel(16);
/// sender.send(push.clone()).unwrap();
/// assert_eq!(receiver.try_recv().unwrap(), push);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Push {
    /// The outcome of an approval.
    ApprovalDecision(ApprovalDecision),
    /// A rule was broken.
    ViolationAlert(PolicyViolation),
}

impl From<Push> for ServerFrame {
    fn from(push: Push) -> ServerFrame {
        match push {
            Push::ApprovalDecision(decision) => ServerFrame::ApprovalDecision(decision),
            Push::ViolationAlert(violation) => ServerFrame::ViolationAlert(violation),
        }
    }
}

/// Who decides, and who hears of what happened. See the [module](self) for an example.
pub trait RuntimeHandler: Send + Sync + 'static {
    /// May this be done? The first poll of queries is in the order of asking. What is no decision becomes a denial.
    fn check(&self, request: CheckActionRequest) -> impl Future<Output = CheckActionResponse> + Send;

    /// This happened. Of one connection, one after the other.
    fn report(&self, event: AuditEvent) -> impl Future<Output = ()> + Send;

    /// What all clients are told from now on. Called once for each connection. One that falls behind misses the oldest.
    fn subscribe_pushes(&self) -> Option<broadcast::Receiver<Push>> {
        None
    }

    /// A client sent what a person decided. The released runtime does nothing with it, and so does this.
    fn approval_response(&self, _decision: ApprovalDecision) {}

    /// A connection was closed because of what it did: for a log.
    fn closed(&self, _why: &str) {}
}

/// Serves until `stop` is cancelled; then what is in flight is answered and the file removed.
pub async fn serve<H: RuntimeHandler>(
    listener: Listening,
    options: RuntimeOptions,
    handler: H,
    stop: CancellationToken,
) {
    let connections = Connections::new(options.max_connections, stop.clone());
    let (options, handler) = (Arc::new(options), Arc::new(handler));
    let mut accepting = Accepting::new(|cx: &mut std::task::Context<'_>| listener.poll_accept(cx));
    while let Some(stream) = accepting.next(&stop).await {
        // Others, root among them, and those too many, are closed without a byte.
        if !is_own_user(&stream) {
            continue;
        }
        let Some(place) = connections.admit() else { continue };
        tokio::spawn(connection::converse(stream, Arc::clone(&options), Arc::clone(&handler), place));
    }
    drop(listener);
    connections.finish(options.grace).await;
}

/// Whether our own user calls: the name in the handshake proves nothing, this does.
fn is_own_user(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|caller| caller.uid() == rustix::process::geteuid().as_raw())
}
