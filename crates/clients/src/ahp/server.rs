//! A harness: an [`EventHandler`] in an [`AhpServer`], which runs on any transport.
//!
//! The server enforces the protocol's rules, handles messages concurrently, and fails closed: when a handler fails, panics or times out,
//! the reply is `block`, or the nearest safe variant, as a *result*, because agents in the field take an error for a permission.
//!
//! ```
//! use proctor_clients::ahp::server::{AhpServer, EventHandler, HandlerError, Peer};
//! use proctor_clients::ahp::{AhpEvent, Decision, HarnessConfig};
//!
//! struct NoDeletes;
//!
//! impl EventHandler for NoDeletes {
//!     async fn handle_event(&self, _peer: &Peer, event: AhpEvent) -> Result<Decision, HandlerError> {
//!         if event.payload["tool_name"] == "rm" {
//!             return Ok(Decision::block("deleting needs a person"));
//!         }
//!         Ok(Decision::allow())
//!     }
//! }
//!
//! let server = AhpServer::new(NoDeletes)
//!     .with_info("no-deletes", "1.0.0")
//!     .with_capabilities(["pre_action", "batch"])
//!     .with_config(HarnessConfig { timeout_ms: Some(8_000), batch_size: Some(100), max_depth: Some(10) });
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let line = br#"{"jsonrpc":"2.0","id":"1","method":"ahp/event","params":{"event_type":"pre_action","session_id":"s",
//!     "agent_id":"a","timestamp":"","depth":0,"payload":{"tool_name":"rm"}}}"#;
//! let reply = server.handle_text(&Peer::this_process(), line).await.unwrap();
//! assert!(reply.contains(r#""decision":"block""#));
//! # });
//! ```

mod handler;
mod text;

#[cfg(feature = "grpc")]
pub mod grpc;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "websocket")]
pub mod websocket;

#[cfg(any(feature = "http", feature = "grpc"))]
mod acknowledge;
mod safe;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use proctor_core::json::Json;
use proctor_net::budget::{MemoryBudget, Reservation};
use proctor_net::connection::{Bounds, first_poll_unconstrained};
use proctor_wire::ahp::check::{self, Call, Entry, Limits, Question};
use proctor_wire::ahp::rpc::{self, INTERNAL_ERROR, Id, Message, RpcError, Unreadable};
use proctor_wire::ahp::{
    AhpEvent, BatchResponse, Decision, HandshakeResponse, HarnessConfig, HarnessInfo, PROTOCOL_VERSION,
    QueryResponse,
};
use serde::Serialize;
use tokio::sync::Semaphore;

pub use handler::{EventHandler, HandlerError, Violation};
pub use proctor_net::peer::{Identity, Peer};
pub use proctor_net::stream::StreamLimits;
pub use safe::closed_reply;

/// The default time limit of a handler.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Messages that are handled concurrently, over all connections.
const IN_FLIGHT: usize = 4096;
/// Messages of all streams that are handled concurrently; then none is read.
const STREAMED: usize = 2048;
/// Memory of long messages, while they are read and handled.
const MESSAGE_BYTES: usize = 32 * 1024 * 1024;
/// Messages of one connection that are handled concurrently; then it is not read further.
const WINDOW: usize = 128;

/// A harness that serves any number of connections. Clones share it.
pub struct AhpServer<H> {
    inner: Arc<Inner<H>>,
}

struct Inner<H> {
    handler: H,
    info: HarnessInfo,
    config: HarnessConfig,
    lenient: bool,
    answer_within: Duration,
    /// Permits for handlers.
    handlers: Semaphore,
    #[cfg(any(feature = "http", feature = "grpc"))]
    unacknowledged: Arc<Semaphore>,
    bounds: Bounds,
}

impl<H> Clone for AhpServer<H> {
    fn clone(&self) -> AhpServer<H> {
        AhpServer { inner: Arc::clone(&self.inner) }
    }
}

impl<H: EventHandler> AhpServer<H> {
    /// A server with the protocol's default identity, capabilities and limits.
    pub fn new(handler: H) -> AhpServer<H> {
        let capabilities = [
            "pre_action",
            "post_action",
            "pre_prompt",
            "query",
            "batch",
            "run_lifecycle",
            "task_list",
            "verification",
        ];
        AhpServer {
            inner: Arc::new(Inner {
                handler,
                info: HarnessInfo {
                    name: "ahp-server".to_owned(),
                    version: "2.4.0".to_owned(),
                    capabilities: capabilities.map(str::to_owned).to_vec(),
                },
                config: HarnessConfig {
                    timeout_ms: Some(10_000),
                    batch_size: Some(100),
                    max_depth: Some(10),
                },
                lenient: false,
                answer_within: ANSWER_WITHIN,
                handlers: Semaphore::new(IN_FLIGHT),
                bounds: Bounds {
                    window: WINDOW,
                    messages: Arc::new(Semaphore::new(STREAMED)),
                    unfinished: MemoryBudget::new(MESSAGE_BYTES),
                    memory: MemoryBudget::new(MESSAGE_BYTES),
                },
                #[cfg(any(feature = "http", feature = "grpc"))]
                unacknowledged: Arc::new(Semaphore::new(IN_FLIGHT)),
            }),
        }
    }

    fn change(mut self, change: impl FnOnce(&mut Inner<H>)) -> AhpServer<H> {
        // Settings are changed before the server is cloned; afterwards they are fixed.
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            change(inner);
        }
        self
    }

    /// The name and version in the handshake.
    #[must_use]
    pub fn with_info(self, name: impl Into<String>, version: impl Into<String>) -> AhpServer<H> {
        self.change(|inner| (inner.info.name, inner.info.version) = (name.into(), version.into()))
    }

    /// The capabilities in the handshake.
    #[must_use]
    pub fn with_capabilities<C: Into<String>>(
        self,
        capabilities: impl IntoIterator<Item = C>,
    ) -> AhpServer<H> {
        self.change(|inner| inner.info.capabilities = capabilities.into_iter().map(Into::into).collect())
    }

    /// The limits in the handshake. Depth and batch size are enforced, and so is the time limit of handlers.
    #[must_use]
    pub fn with_config(self, config: HarnessConfig) -> AhpServer<H> {
        self.change(|inner| {
            inner.config = config;
            inner.answer_within = config.timeout_ms.map_or(ANSWER_WITHIN, Duration::from_millis);
        })
    }

    /// Accepts events without `timestamp` and `depth`, as agents of older dialects send them.
    #[must_use]
    pub fn lenient(self, lenient: bool) -> AhpServer<H> {
        self.change(|inner| inner.lenient = lenient)
    }

    /// The time limit of a handler, after which the safe variant is the reply. Set after [`AhpServer::with_config`], it differs from the
    /// advertised one.
    #[must_use]
    pub fn answer_within(self, time: Duration) -> AhpServer<H> {
        self.change(|inner| inner.answer_within = time)
    }

    /// The number of messages of one connection that are handled concurrently.
    #[must_use]
    pub fn window(self, messages: usize) -> AhpServer<H> {
        self.change(|inner| inner.bounds.window = messages.max(1))
    }

    /// The number of messages of all streams (stdio, sockets, WebSocket, gRPC) that are handled concurrently.
    #[must_use]
    pub fn in_work(self, messages: usize) -> AhpServer<H> {
        self.change(|inner| inner.bounds.messages = Arc::new(Semaphore::new(messages.max(1))))
    }

    /// The memory of long messages, while they are read and while they are handled. Servers of one process share it.
    #[must_use]
    pub fn with_memory(self, unfinished: &MemoryBudget, in_work: &MemoryBudget) -> AhpServer<H> {
        self.change(|inner| {
            inner.bounds.unfinished = unfinished.clone();
            inner.bounds.memory = in_work.clone();
        })
    }

    /// The handler.
    pub fn handler(&self) -> &H {
        &self.inner.handler
    }

    /// The limits in the handshake.
    pub fn config(&self) -> HarnessConfig {
        self.inner.config
    }

    fn limits(&self) -> Limits {
        Limits {
            max_depth: self.inner.config.max_depth,
            batch_size: self.inner.config.batch_size,
            lenient: self.inner.lenient,
        }
    }

    /// Handles the text of one message: the reply, or none for a notification.
    ///
    /// Everything that must happen in order of arrival happens before the first await point: messages whose futures are first polled in
    /// order are decided in order.
    pub async fn handle_text(&self, peer: &Peer, text: &[u8]) -> Option<String> {
        match rpc::read(text) {
            Ok(message) => self.handle_message(peer, message).await,
            Err(unreadable) => Some(self.refuse_unreadable(peer, &unreadable)),
        }
    }

    /// Handles a parsed message.
    pub async fn handle_message(&self, peer: &Peer, message: Message) -> Option<String> {
        match message {
            Message::Request { id, method, params } => Some(match self.answer(peer, &method, params).await {
                Ok(result) => reply(&id, &result),
                Err(error) => rpc::refuse(&id, &error),
            }),
            Message::Notification { method, params } => {
                // These transports have no reply to a notification; the handler is told of violations.
                let _ = self.notify(peer, &method, params).await;
                None
            }
        }
    }

    /// Handles a parsed message and holds its memory until then.
    pub(crate) async fn handle_admitted(
        &self,
        peer: &Peer,
        message: Message,
        reservation: Reservation,
    ) -> Option<String> {
        let reply = self.handle_message(peer, message).await;
        drop(reservation);
        reply
    }

    /// The reply to text that is no message.
    pub(crate) fn refuse_unreadable(&self, peer: &Peer, unreadable: &Unreadable) -> String {
        self.violated(peer, None, &unreadable.error);
        rpc::refuse(&unreadable.id, &unreadable.error)
    }

    /// Handles one request: the result as JSON text.
    pub async fn answer(&self, peer: &Peer, method: &str, params: Json) -> Result<String, RpcError> {
        let call = check::request(method, params, &self.limits())
            .inspect_err(|error| self.violated(peer, Some(method), error))?;
        match call {
            Call::Handshake(request) => {
                self.contained(|handler| handler.handle_handshake(peer, &request));
                text(&self.welcome())
            }
            Call::Query(query) => {
                let answer = Box::pin(self.guarded(|handler| handler.handle_query(peer, query))).await;
                text(&answer.unwrap_or_else(|problem| QueryResponse {
                    answer: Json::Null,
                    reason: Some(problem.to_string()),
                    alternatives: None,
                }))
            }
            Call::Batch(entries) => {
                // Started in order, then concurrently: a batch takes as long as its slowest event.
                let decisions =
                    entries.into_iter().map(|entry| first_poll_unconstrained(self.batch_entry(peer, entry)));
                text(&BatchResponse { decisions: join_all(decisions).await })
            }
            // Rare kinds are boxed: a connection holds a window of these futures, and their size is that of the largest kind.
            Call::Event(event, question) => match *question {
                Question::Generic => {
                    let decision = self.guarded(|handler| handler.handle_event(peer, *event)).await;
                    text(&decision.unwrap_or_else(Decision::block))
                }
                _ => Box::pin(self.special(peer, *event, *question)).await,
            },
        }
    }

    /// Handles one notification. It is recorded when this returns without a refusal.
    pub async fn notify(&self, peer: &Peer, method: &str, params: Json) -> Result<(), RpcError> {
        let entry = check::notification(method, params, &self.limits())
            .inspect_err(|error| self.violated(peer, Some(method), error))?;
        let Some(entry) = entry.map(Box::new) else { return Ok(()) };
        self.guarded(|handler| handler.handle_notification(peer, *entry))
            .await
            .map_err(|problem| RpcError::new(INTERNAL_ERROR, format!("Handler error: {problem}")))
    }

    /// Reports a protocol violation to the handler.
    pub(crate) fn violated(&self, peer: &Peer, method: Option<&str>, error: &RpcError) {
        let violation = Violation { method: method.map(str::to_owned), error: error.clone() };
        self.contained(|handler| handler.handle_violation(peer, &violation));
    }

    /// Calls the handler synchronously; a panic does not end the connection.
    fn contained(&self, tell: impl FnOnce(&H)) {
        let _ = std::panic::catch_unwind(AssertUnwindSafe(|| tell(&self.inner.handler)));
    }

    fn welcome(&self) -> HandshakeResponse {
        HandshakeResponse {
            protocol_version: PROTOCOL_VERSION.to_owned(),
            harness_info: self.inner.info.clone(),
            session_token: None,
            config: Some(self.inner.config),
        }
    }

    async fn batch_entry(&self, peer: &Peer, entry: Entry) -> Decision {
        if entry.event.event_type.is_blocking() {
            let decision = self.guarded(|handler| handler.handle_event(peer, entry.event)).await;
            return decision.unwrap_or_else(Decision::block);
        }
        match self.guarded(|handler| handler.handle_notification(peer, entry)).await {
            Ok(()) => Decision::allow(),
            Err(problem) => Decision::block(problem),
        }
    }

    async fn special(&self, peer: &Peer, event: AhpEvent, question: Question) -> Result<String, RpcError> {
        match question {
            Question::Generic => {
                let decision = self.guarded(|handler| handler.handle_event(peer, event)).await;
                text(&decision.unwrap_or_else(Decision::block))
            }
            Question::Idle(idle) => text(
                &self
                    .guarded(|handler| handler.handle_idle(peer, event, idle))
                    .await
                    .unwrap_or_else(|undecided| safe::idle(undecided.into())),
            ),
            Question::ContextPerception(asked) => {
                self.advised(|handler| handler.handle_context_perception(peer, event, asked), safe::context)
                    .await
            }
            Question::MemoryRecall(asked) => {
                self.advised(|handler| handler.handle_memory_recall(peer, event, asked), safe::memory).await
            }
            Question::Planning(asked) => {
                self.advised(|handler| handler.handle_planning(peer, event, asked), safe::planning).await
            }
            Question::Reasoning(asked) => {
                self.advised(|handler| handler.handle_reasoning(peer, event, asked), safe::reasoning).await
            }
            Question::RateLimit(asked) => {
                self.advised(|handler| handler.handle_rate_limit(peer, event, asked), safe::rate_limit).await
            }
            Question::Confirmation(asked) => {
                let decision = self.guarded(|handler| handler.handle_confirmation(peer, event, asked)).await;
                text(&decision.unwrap_or_else(|undecided| safe::confirmation(undecided.into())))
            }
            Question::IntentDetection(asked) => {
                self.advised(|handler| handler.handle_intent_detection(peer, event, asked), safe::intent)
                    .await
            }
        }
    }

    /// Handles an optional kind of question: only an unsupported kind is answered with an error.
    async fn advised<'a, D, F>(
        &'a self,
        handle: impl FnOnce(&'a H) -> F,
        safe: impl FnOnce(String) -> D,
    ) -> Result<String, RpcError>
    where
        D: Serialize,
        F: Future<Output = Result<D, HandlerError>>,
    {
        match self.bounded(handle).await {
            Ok(Ok(decision)) => text(&decision),
            Ok(Err(error @ HandlerError::Unsupported(_))) => {
                Err(RpcError::new(INTERNAL_ERROR, format!("Handler error: {error}")))
            }
            Ok(Err(error)) => text(&safe(error.to_string())),
            Err(undecided) => text(&safe(undecided.to_string())),
        }
    }

    /// The handler's answer, or the reason of the safe variant.
    async fn guarded<'a, T, F>(&'a self, handle: impl FnOnce(&'a H) -> F) -> Result<T, Undecided>
    where
        F: Future<Output = Result<T, HandlerError>>,
    {
        self.bounded(handle).await?.map_err(Undecided::Handler)
    }

    /// Runs a handler within the limits of time and concurrency. Panics are caught, also those before the first await point.
    async fn bounded<'a, F: Future>(
        &'a self,
        handle: impl FnOnce(&'a H) -> F,
    ) -> Result<F::Output, Undecided> {
        let within = self.inner.answer_within;
        let work = async {
            let _permit = self.inner.handlers.acquire().await.map_err(|_| Undecided::Closing)?;
            Ok(handle(&self.inner.handler).await)
        };
        match tokio::time::timeout(within, AssertUnwindSafe(work).catch_unwind()).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_panic)) => Err(Undecided::Panicked),
            Err(_elapsed) => Err(Undecided::TimedOut(within)),
        }
    }
}

/// A handler's failure to decide; its text is the reason in the reply.
#[derive(Debug, thiserror::Error)]
enum Undecided {
    #[error("{0}")]
    Handler(HandlerError),
    #[error("the harness failed inside")]
    Panicked,
    #[error("the harness did not decide within {} ms", .0.as_millis())]
    TimedOut(Duration),
    #[error("the harness is closing")]
    Closing,
}

impl From<Undecided> for String {
    fn from(undecided: Undecided) -> String {
        undecided.to_string()
    }
}

fn text<T: Serialize>(result: &T) -> Result<String, RpcError> {
    serde_json::to_string(result)
        .map_err(|error| RpcError::new(INTERNAL_ERROR, format!("Internal error: {error}")))
}

/// The envelope around a result that is JSON text.
pub(crate) fn reply(id: &Id, result: &str) -> String {
    let id = match id {
        Id::Null => "null".to_owned(),
        Id::Number(literal) => literal.to_string(),
        Id::String(_) => id.to_json().to_string(),
    };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}
