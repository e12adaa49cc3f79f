//! The runtime's side of the socket between an agent's library and its runtime.
//!
//! Queries of a connection are handled concurrently and answered strictly in order, because answers carry no identifier. Connections are
//! independent. Everything fails closed: a query that times out, or whose handler panics or gives no decision, is denied.
//!
//! ```
//! use proctor_clients::assembly::runtime::{UnixSocket, RuntimeHandler, RuntimeOptions, serve};
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
//! let socket = UnixSocket::bind(&path).await.unwrap();
//! let stop = CancellationToken::new();
//! # stop.cancel();
//! serve(socket, RuntimeOptions::new("agent-1"), Everything, stop).await;
//! assert!(!path.exists());
//! # });
//! ```

mod connection;
mod decision;
mod framing;

pub use decision::deny;
pub use framing::{Framing, UnknownFraming};

pub use proctor_net::unix::UnixSocket;

use std::sync::Arc;
use std::time::Duration;

use proctor_net::accept::{AcceptLoop, ConnectionSet};
use proctor_wire::assembly::frames::ServerFrame;
use proctor_wire::assembly::handshake::PROOF_TIMEOUT;
use proctor_wire::assembly::proto::audit::v1::{AuditEvent, PolicyViolation};
use proctor_wire::assembly::proto::event::v1::ApprovalDecision;
use proctor_wire::assembly::proto::policy::v1::{CheckActionRequest, CheckActionResponse};
use tokio::net::UnixStream;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// Settings of the runtime's socket.
///
/// ```
/// use proctor_clients::assembly::runtime::{Framing, RuntimeOptions};
///
/// let options = RuntimeOptions { framing: Framing::Bare, ..RuntimeOptions::new("agent-1") };
/// assert_eq!(options.max_connections, 64);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RuntimeOptions {
    /// The agent of this runtime; the handshake's key is derived from it.
    pub agent_id: String,
    /// The framing of messages.
    pub framing: Framing,
    /// Connections over this number are closed at once.
    pub max_connections: usize,
    /// Time for a client's handshake proof.
    pub handshake_timeout: Duration,
    /// Time limit of a query, after which it is denied.
    pub query_timeout: Duration,
    /// Time for a client to read some output.
    pub write_timeout: Duration,
    /// Time for a client to complete a frame.
    pub frame_timeout: Duration,
    /// Queries of one connection in flight; nothing is read while there are as many.
    pub max_in_flight: usize,
    /// Time for queries in flight to finish when the server stops.
    pub grace: Duration,
}

impl RuntimeOptions {
    /// The settings that released libraries expect.
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

/// A message that the runtime sends unasked.
///
/// ```
/// use proctor_clients::assembly::runtime::Push;
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

/// The decisions and observers of a runtime. See the [module](self) for an example.
pub trait RuntimeHandler: Send + Sync + 'static {
    /// Decides a query. Queries are first polled in order of arrival. An answer without a decision becomes a denial.
    fn check(&self, request: CheckActionRequest) -> impl Future<Output = CheckActionResponse> + Send;

    /// Records an event. Events of one connection are recorded one after the other.
    fn report(&self, event: AuditEvent) -> impl Future<Output = ()> + Send;

    /// A subscription to pushes, made once for each connection. A connection that falls behind misses the oldest pushes.
    fn subscribe_pushes(&self) -> Option<broadcast::Receiver<Push>> {
        None
    }

    /// Observes a decision of a person. Ignored by default, as in the released runtime.
    fn approval_response(&self, _decision: ApprovalDecision) {}

    /// Logs a connection that was closed for a violation.
    fn closed(&self, _why: &str) {}
}

/// Serves until `stop` is cancelled; then queries in flight are answered and the file is removed.
pub async fn serve<H: RuntimeHandler>(
    socket: UnixSocket,
    options: RuntimeOptions,
    handler: H,
    stop: CancellationToken,
) {
    let connections = ConnectionSet::new(options.max_connections, stop.clone());
    let (options, handler) = (Arc::new(options), Arc::new(handler));
    let mut accepting = AcceptLoop::new(|cx: &mut std::task::Context<'_>| socket.poll_accept(cx));
    while let Some(stream) = accepting.next(&stop).await {
        // Other users, root among them, are disconnected without a byte.
        if !is_own_user(&stream) {
            continue;
        }
        let Some(slot) = connections.admit() else { continue };
        tokio::spawn(connection::serve_connection(stream, Arc::clone(&options), Arc::clone(&handler), slot));
    }
    drop(socket);
    connections.finish(options.grace).await;
}

/// Whether the peer is our own user. The agent's name in the handshake proves nothing; the kernel's word does.
fn is_own_user(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|caller| caller.uid() == rustix::process::geteuid().as_raw())
}
