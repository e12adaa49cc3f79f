//! Writing a harness: implement [`EventHandler`], put it into an [`AhpServer`], and run that on any transport.
//!
//! The server keeps the protocol's rules, answers concurrently, and fails closed: a handler that fails, panics or takes too long
//! becomes `block`, or the nearest safe variant, as a *result*, because agents in the field take an error for a permission.
//!
//! ```
//! use proctor_net::ahp::server::{AhpServer, EventHandler, HandlerError, Peer};
//! use proctor_net::ahp::{AhpEvent, Decision, HarnessConfig};
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
mod stream;

#[cfg(any(feature = "http", feature = "websocket", feature = "grpc"))]
pub mod auth;
#[cfg(feature = "grpc")]
pub mod grpc;
#[cfg(feature = "http")]
pub mod http;
#[cfg(all(unix, feature = "unix-socket"))]
pub mod unix;
#[cfg(feature = "websocket")]
pub mod websocket;

#[cfg(any(feature = "unix-socket", feature = "http", feature = "websocket", feature = "grpc"))]
pub(crate) mod accept;
#[cfg(any(feature = "http", feature = "grpc"))]
mod acknowledge;
pub(crate) mod alarm;
mod connection;
mod safe;
#[cfg(feature = "stdio")]
pub mod stdio;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use proctor_core::json::Json;
use proctor_wire::ahp::check::{self, Call, Entry, Limits, Question};
use proctor_wire::ahp::rpc::{self, INTERNAL_ERROR, Id, Message, RpcError, Unreadable};
use proctor_wire::ahp::{
    AhpEvent, BatchResponse, Decision, HandshakeResponse, HarnessConfig, HarnessInfo, PROTOCOL_VERSION,
    QueryResponse,
};
use serde::Serialize;
use tokio::sync::Semaphore;

use crate::budget::{Budget, Share};
use connection::in_order;

pub use handler::{EventHandler, HandlerError, Identity, Peer, Violation};
pub use safe::closed_reply;
pub use stream::StreamLimits;

/// How long a handler may take when the builder does not say.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How many messages are worked on at once, over all connections.
const IN_FLIGHT: usize = 4096;
/// How many messages of all streams together are worked on at once; then none is read.
const STREAMED: usize = 2048;
/// What long messages may take together, while they are read and worked on; one alone may take more.
const MESSAGE_BYTES: usize = 32 * 1024 * 1024;
/// How many messages of one connection are worked on at once; then it is not read further.
const WINDOW: usize = 128;

/// A harness that serves any number of connections. Cheap to clone.
pub struct AhpServer<H> {
    inner: Arc<Inner<H>>,
}

struct Inner<H> {
    handler: H,
    info: HarnessInfo,
    config: HarnessConfig,
    lenient: bool,
    answer_within: Duration,
    window: usize,
    room: Semaphore,
    #[cfg(any(feature = "http", feature = "grpc"))]
    unacknowledged: Arc<Semaphore>,
    budget: Budget,
    messages: Arc<Semaphore>,
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
                window: WINDOW,
                room: Semaphore::new(IN_FLIGHT),
                budget: Budget::new(MESSAGE_BYTES),
                messages: Arc::new(Semaphore::new(STREAMED)),
                #[cfg(any(feature = "http", feature = "grpc"))]
                unacknowledged: Arc::new(Semaphore::new(IN_FLIGHT)),
            }),
        }
    }

    fn change(mut self, change: impl FnOnce(&mut Inner<H>)) -> AhpServer<H> {
        // A builder's server has not been shared yet; one that has been keeps what it has.
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            change(inner);
        }
        self
    }

    /// The name and version that the handshake tells.
    #[must_use]
    pub fn with_info(self, name: impl Into<String>, version: impl Into<String>) -> AhpServer<H> {
        self.change(|inner| (inner.info.name, inner.info.version) = (name.into(), version.into()))
    }

    /// The capabilities that the handshake tells.
    #[must_use]
    pub fn with_capabilities<C: Into<String>>(
        self,
        capabilities: impl IntoIterator<Item = C>,
    ) -> AhpServer<H> {
        self.change(|inner| inner.info.capabilities = capabilities.into_iter().map(Into::into).collect())
    }

    /// The limits that the handshake tells. Depth and batch size are enforced, and so is the time: a handler that takes longer is
    /// answered for.
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

    /// How long a handler may take before the safe variant is answered in its place. Set after [`AhpServer::with_config`], it differs
    /// from what is advertised.
    #[must_use]
    pub fn answer_within(self, time: Duration) -> AhpServer<H> {
        self.change(|inner| inner.answer_within = time)
    }

    /// How many messages of one connection are worked on at once.
    #[must_use]
    pub fn window(self, messages: usize) -> AhpServer<H> {
        self.change(|inner| inner.window = messages.max(1))
    }

    /// How many messages of all streams together (stdio, sockets, WebSocket, gRPC) are worked on at once.
    #[must_use]
    pub fn in_work(self, messages: usize) -> AhpServer<H> {
        self.change(|inner| inner.messages = Arc::new(Semaphore::new(messages.max(1))))
    }

    /// How long a handler may take.
    #[cfg(feature = "http")]
    pub(crate) fn answers_within(&self) -> Duration {
        self.inner.answer_within
    }

    /// How many messages of one connection are worked on at once.
    pub(crate) fn connection_window(&self) -> usize {
        self.inner.window
    }

    /// The handler.
    pub fn handler(&self) -> &H {
        &self.inner.handler
    }

    /// What the handshake tells.
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

    /// Answers one message: the reply's text, or none for a notification.
    ///
    /// Everything that must happen in order of arrival happens before the first wait: a connection that polls the futures of its
    /// messages in order has them decided in order.
    pub async fn handle_text(&self, peer: &Peer, text: &[u8]) -> Option<String> {
        match rpc::read(text) {
            Ok(message) => self.handle_message(peer, message).await,
            Err(unreadable) => Some(self.refuse_unreadable(peer, &unreadable)),
        }
    }

    /// The same, for a message that was read already.
    pub async fn handle_message(&self, peer: &Peer, message: Message) -> Option<String> {
        match message {
            Message::Request { id, method, params } => Some(match self.answer(peer, &method, params).await {
                Ok(result) => reply(&id, &result),
                Err(error) => rpc::refuse(&id, &error),
            }),
            Message::Notification { method, params } => {
                // Nobody is told on transports without replies, but the handler is.
                let _ = self.notify(peer, &method, params).await;
                None
            }
        }
    }

    /// The same, for a message that has its share of the memory.
    pub(crate) async fn handle_admitted(
        &self,
        peer: &Peer,
        message: Message,
        share: Share,
    ) -> Option<String> {
        let reply = self.handle_message(peer, message).await;
        drop(share);
        reply
    }

    /// The messages that streams may have in work at once, over all connections.
    pub(crate) fn messages(&self) -> &Arc<Semaphore> {
        &self.inner.messages
    }

    /// The memory that messages may take, over all connections.
    pub(crate) fn budget(&self) -> &Budget {
        &self.inner.budget
    }

    /// The reply to what is no message.
    pub(crate) fn refuse_unreadable(&self, peer: &Peer, unreadable: &Unreadable) -> String {
        self.violated(peer, None, &unreadable.error);
        rpc::refuse(&unreadable.id, &unreadable.error)
    }

    /// Answers one request: the result as JSON text.
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
                    reason: Some(problem),
                    alternatives: None,
                }))
            }
            Call::Batch(entries) => {
                // Begun in order, then side by side: a batch takes as long as its slowest event, not as all of them.
                let decisions = entries.into_iter().map(|entry| in_order(self.batch_entry(peer, entry)));
                text(&BatchResponse { decisions: join_all(decisions).await })
            }
            // Boxed until the handler has it, and rare kinds altogether: a connection has a window of these futures.
            Call::Event(event, question) => match *question {
                Question::Generic => {
                    let decision = self.guarded(|handler| handler.handle_event(peer, *event)).await;
                    text(&decision.unwrap_or_else(Decision::block))
                }
                _ => Box::pin(self.special(peer, *event, *question)).await,
            },
        }
    }

    /// Takes one notification. It is safe when this returns; a refusal says why not.
    pub async fn notify(&self, peer: &Peer, method: &str, params: Json) -> Result<(), RpcError> {
        let entry = check::notification(method, params, &self.limits())
            .inspect_err(|error| self.violated(peer, Some(method), error))?;
        let Some(entry) = entry.map(Box::new) else { return Ok(()) };
        self.guarded(|handler| handler.handle_notification(peer, *entry))
            .await
            .map_err(|problem| RpcError::new(INTERNAL_ERROR, format!("Handler error: {problem}")))
    }

    /// Tells the handler of a message that broke a rule.
    pub(crate) fn violated(&self, peer: &Peer, method: Option<&str>, error: &RpcError) {
        let violation = Violation { method: method.map(str::to_owned), error: error.clone() };
        self.contained(|handler| handler.handle_violation(peer, &violation));
    }

    /// Tells the handler something; a panic stays here and does not take the connection with it.
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
                    .unwrap_or_else(safe::idle),
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
                text(&decision.unwrap_or_else(safe::confirmation))
            }
            Question::IntentDetection(asked) => {
                self.advised(|handler| handler.handle_intent_detection(peer, event, asked), safe::intent)
                    .await
            }
        }
    }

    /// A kind that a harness need not answer: then, and only then, the reply is an error.
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
            Err(problem) => text(&safe(problem)),
        }
    }

    /// The handler's answer, or why there is none.
    async fn guarded<'a, T, F>(&'a self, handle: impl FnOnce(&'a H) -> F) -> Result<T, String>
    where
        F: Future<Output = Result<T, HandlerError>>,
    {
        self.bounded(handle).await?.map_err(|error| error.to_string())
    }

    /// Runs a handler within the limits of time and number. A panic stays here, also one before the first wait.
    async fn bounded<'a, F: Future>(&'a self, handle: impl FnOnce(&'a H) -> F) -> Result<F::Output, String> {
        let within = self.inner.answer_within;
        let work = async {
            let _permit = self.inner.room.acquire().await.map_err(|_| "the harness is closing".to_owned())?;
            Ok(handle(&self.inner.handler).await)
        };
        match tokio::time::timeout(within, AssertUnwindSafe(work).catch_unwind()).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_panic)) => Err("the harness failed inside".to_owned()),
            Err(_elapsed) => Err(format!("the harness did not decide within {} ms", within.as_millis())),
        }
    }
}

fn text<T: Serialize>(result: &T) -> Result<String, RpcError> {
    serde_json::to_string(result)
        .map_err(|error| RpcError::new(INTERNAL_ERROR, format!("Internal error: {error}")))
}

/// A reply around a result that is JSON text already.
pub(crate) fn reply(id: &Id, result: &str) -> String {
    let id = match id {
        Id::Null => "null".to_owned(),
        Id::Number(literal) => literal.to_string(),
        Id::String(_) => id.to_json().to_string(),
    };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}
