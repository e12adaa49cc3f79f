//! The endpoint of a run.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use proctor_core::random::Randomness;
use proctor_core::time::Clock;
use proctor_net::listen::{ListenOptions, serve};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backend::ToolBackend;
use crate::calls::{Calls, RecordedCall};
use crate::decider::Decider;
use crate::http;
use crate::run::Run;

/// Connections of one agent; more are closed at once.
const MAX_CONNECTIONS: usize = 64;

/// Requests that are handled at a time; others wait. Each holds a message of up to 16 MiB.
pub(crate) const MAX_IN_FLIGHT: usize = 32;

/// Random bytes of the path: 128 bits cannot be guessed within a run.
const SECRET_BYTES: usize = 16;

/// Time for stopped calls to record their outcome. The ledger's own deadline is shorter, unless it is stuck.
const RECORDING_GRACE: Duration = Duration::from_secs(10);

/// Time for replies of ended calls to be sent when the run ends.
const REPLY_GRACE: Duration = Duration::from_secs(1);

/// An endpoint for the tool calls of one run. Dropping it stops it without waiting.
pub struct ToolDoor {
    shared: Arc<Shared>,
    url: String,
    server: JoinHandle<io::Result<()>>,
}

/// The calls of a run that has ended.
#[derive(Debug)]
pub struct FinishedRun {
    /// All calls in order of arrival, including those that were refused.
    pub calls: Vec<RecordedCall>,
    /// Number of calls after the last one that the run may make. They are not in the list.
    pub calls_over_limit: u64,
}

/// Error of opening an endpoint.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Other machines could call the tools.
    #[error("`{0}` can be reached from other machines: listen on 127.0.0.1 or [::1]")]
    NotLoopback(SocketAddr),
    /// The operating system refused.
    #[error("the listener of the tools endpoint cannot be used: {0}")]
    Listener(io::Error),
}

/// State that all requests share.
pub(crate) struct Shared {
    pub(crate) run: Run,
    pub(crate) decider: Decider,
    pub(crate) backend: Arc<dyn ToolBackend>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) calls: Calls,
    /// First segment of every path that is served.
    pub(crate) secret: String,
    pub(crate) in_flight: Arc<Semaphore>,
    pub(crate) tasks: TaskTracker,
    /// Cancelled when calls in flight must end.
    pub(crate) stop: CancellationToken,
    shutdown: CancellationToken,
}

impl ToolDoor {
    /// Serves a run's tools on a listener of this machine. Must be called in a runtime.
    pub fn open(
        listener: std::net::TcpListener,
        run: Run,
        decider: Decider,
        backend: Arc<dyn ToolBackend>,
        clock: Arc<dyn Clock>,
        randomness: &dyn Randomness,
    ) -> Result<ToolDoor, OpenError> {
        let address = listener.local_addr().map_err(OpenError::Listener)?;
        if !address.ip().to_canonical().is_loopback() {
            return Err(OpenError::NotLoopback(address));
        }
        listener.set_nonblocking(true).map_err(OpenError::Listener)?;
        let listener = tokio::net::TcpListener::from_std(listener).map_err(OpenError::Listener)?;
        let mut bytes = [0; SECRET_BYTES];
        randomness.fill(&mut bytes);
        let secret = proctor_core::hex::encode(bytes);
        let url = format!("http://{address}/{secret}");
        let shutdown = CancellationToken::new();
        let options = ListenOptions {
            max_connections: MAX_CONNECTIONS,
            // Calls in flight are waited for before the server is told to stop.
            grace: REPLY_GRACE,
            ..ListenOptions::default()
        };
        let shared = Arc::new(Shared {
            run,
            decider,
            backend,
            clock,
            calls: Calls::default(),
            secret,
            in_flight: Arc::new(Semaphore::new(MAX_IN_FLIGHT)),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            shutdown: shutdown.clone(),
        });
        let app = http::router(Arc::clone(&shared));
        let server = tokio::spawn(serve(listener, app, options, shutdown));
        Ok(ToolDoor { shared, url, server })
    }

    /// The `tools_endpoint` of the run's request, without a slash at its end. It is a secret of the run.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Ends the run: no new calls are taken, calls in flight get the run's grace period, then their tools are stopped and the outcome is
    /// recorded. Returns all calls.
    pub async fn finish(mut self) -> FinishedRun {
        let shared = Arc::clone(&self.shared);
        // Waiters for a permit are refused, those who have one end.
        shared.in_flight.close();
        shared.tasks.close();
        if tokio::time::timeout(shared.run.grace, shared.until_idle()).await.is_err() {
            shared.stop.cancel();
            if tokio::time::timeout(RECORDING_GRACE, shared.until_idle()).await.is_err() {
                log::warn!("a tool call of task `{}` did not end in time", shared.run.task_id);
            }
        }
        shared.shutdown.cancel();
        let limit = REPLY_GRACE * 3;
        if tokio::time::timeout(limit, &mut self.server).await.is_err() {
            log::warn!("the tools endpoint of task `{}` did not stop in time", shared.run.task_id);
        }
        let (calls, calls_over_limit) = shared.calls.take();
        FinishedRun { calls, calls_over_limit }
    }
}

impl Shared {
    /// Waits until no request is being handled, once no new ones are admitted.
    async fn until_idle(&self) {
        loop {
            self.tasks.wait().await;
            // A request that was admitted just before may not have its task yet; it has its permit.
            if self.in_flight.available_permits() >= MAX_IN_FLIGHT {
                return;
            }
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for ToolDoor {
    fn drop(&mut self) {
        self.shared.in_flight.close();
        self.shared.stop.cancel();
        self.shared.shutdown.cancel();
    }
}
