//! The agent's side: an [`Agent`] in an [`AgentServer`], which runs on every transport of the protocol.
//!
//! The server reads requests, numbers and dates the events, and answers for the agent where it cannot: a malformed or too large request
//! is a failed response with `INVALID_REQUEST`, a panic one with `INTERNAL_ERROR`. When the caller goes away, the agent's future is
//! dropped.
//!
//! ```
//! use std::sync::Arc;
//!
//! use proctor_clients::atp::agent::{Agent, AgentServer, Events, Outgoing};
//! use proctor_core::json::Json;
//! use proctor_core::time::{ManualClock, Timestamp};
//! use proctor_wire::atp::event::{Payload, Progress};
//! use proctor_wire::atp::{Request, Response, Status};
//!
//! struct Echo;
//!
//! impl Agent for Echo {
//!     async fn execute(&self, request: Request, events: Events) -> Response {
//!         let progress = Progress { message: Some("listening"), ..Progress::default() };
//!         let _ = events.send(&Payload::Progress(progress)).await;
//!         let said = Json::object().with("said", request.description());
//!         let artifact = Json::object().with("type", "structured").with("name", "echo").with("data", said);
//!         Response::new(request.task_id(), Status::Completed).with_member("artifacts", vec![artifact])
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let clock = Arc::new(ManualClock::new(Timestamp::from_micros(0)));
//! let server = AgentServer::new(Echo, clock);
//! let request = br#"{"version":"1.0","task_id":"t-1","task":{"description":"hello"}}"#;
//! let mut execution = server.begin(request).unwrap();
//! assert!(matches!(execution.next().await, Some(Outgoing::Event(text)) if text.contains("progress")));
//! assert!(matches!(execution.next().await, Some(Outgoing::Response(text)) if text.contains("hello")));
//! assert!(execution.next().await.is_none());
//! assert!(server.begin(b"{}").unwrap_err().response.contains("INVALID_REQUEST"));
//! # });
//! ```

mod events;
mod execution;
mod refusal;

#[cfg(feature = "grpc")]
pub mod grpc;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "stdio")]
mod stdio;
#[cfg(feature = "websocket")]
pub mod websocket;

pub use events::{EventError, Events};
pub use execution::{Execution, Outgoing};
pub use refusal::{Reason, Refusal};

use std::sync::Arc;

use proctor_core::time::Clock;
use proctor_wire::atp::{Request, Response, Strictness};
use tokio::sync::Semaphore;

/// Executions at the same time, unless set otherwise. Further ones are refused, not queued: their time limits have begun.
const MAX_RUNNING: usize = 256;
/// Bytes of a request, unless set otherwise. Descriptions have at most 100,000 characters; the rest is input data.
const MAX_REQUEST: usize = 4 * 1024 * 1024;

/// The work of an agent.
pub trait Agent: Send + Sync + 'static {
    /// Executes a task. Calls run concurrently; the future is dropped when the caller goes away.
    ///
    /// The response gets the task id of the request, whatever it says.
    fn execute(&self, request: Request, events: Events) -> impl Future<Output = Response> + Send;
}

/// An agent that serves any number of callers. Clones share it.
pub struct AgentServer<A> {
    inner: Arc<Inner<A>>,
}

struct Inner<A> {
    agent: A,
    clock: Arc<dyn Clock>,
    running: Arc<Semaphore>,
    max_request: usize,
}

impl<A> Clone for AgentServer<A> {
    fn clone(&self) -> AgentServer<A> {
        AgentServer { inner: Arc::clone(&self.inner) }
    }
}

impl<A: Agent> AgentServer<A> {
    /// A server of `agent`; the clock dates its events.
    pub fn new(agent: A, clock: Arc<dyn Clock>) -> AgentServer<A> {
        let running = Arc::new(Semaphore::new(MAX_RUNNING));
        AgentServer { inner: Arc::new(Inner { agent, clock, running, max_request: MAX_REQUEST }) }
    }

    /// Sets the bytes of the longest request, and the number of executions at the same time.
    #[must_use]
    pub fn with_limits(mut self, max_request: usize, max_running: usize) -> AgentServer<A> {
        // Settings are changed before the server is cloned; afterwards they are fixed.
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.max_request = max_request;
            inner.running = Arc::new(Semaphore::new(max_running.min(Semaphore::MAX_PERMITS)));
        }
        self
    }

    /// Reads a request and begins its execution, which goes on while [`Execution::next`] is called.
    pub fn begin(&self, text: &[u8]) -> Result<Execution, Refusal> {
        if text.len() > self.inner.max_request {
            return Err(self.too_large());
        }
        let read = Request::parse(text, Strictness::Lenient);
        let request = read.map_err(|error| Refusal::invalid(text, &error))?.message;
        let Ok(permit) = Arc::clone(&self.inner.running).try_acquire_owned() else {
            return Err(Refusal::busy(request.task_id()));
        };
        let task_id = request.task_id().to_owned();
        let (events, sent) = Events::new(&task_id, Arc::clone(&self.inner.clock));
        let inner = Arc::clone(&self.inner);
        // The permit is given back when the execution ends or is dropped.
        let work = async move {
            let _permit = permit;
            inner.agent.execute(request, events).await
        };
        Ok(Execution::new(task_id, work, sent))
    }

    fn too_large(&self) -> Refusal {
        Refusal::too_large(self.inner.max_request)
    }
}
