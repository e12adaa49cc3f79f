//! The client's calls.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use proctor_core::json::Json;
use proctor_wire::ahp::rpc::MAX_ID;
use proctor_wire::ahp::{
    AhpEvent, BatchResponse, Decision, EventType, HandshakeResponse, QueryRequest, QueryResponse,
    RunLifecycleEvent, TaskListEvent, VerificationEvent, method,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::channel::Channel;
use super::error::{AhpError, Result, millis};
use super::handshake::{Handshake, shortened};
use super::message::Outgoing;
use super::options::{ClientOptions, Transport, TransportConfig};

/// Time limit of a call before the harness has advertised one.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// Allowance for transmission on top of the advertised time limit.
const TRANSMISSION: Duration = Duration::from_millis(250);
/// Upper bound of time limits.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// An agent's connection to its harness. Clones share the connection, which ends with the last of them.
///
/// Dropping a call's future cancels the call.
#[derive(Clone)]
pub struct AhpClient {
    inner: Arc<Inner>,
    id: Option<String>,
    timeout: Option<Duration>,
}

struct Inner {
    channel: Channel,
    handshake: Arc<Handshake>,
    options: ClientOptions,
    in_flight: Semaphore,
    closed: CancellationToken,
}

impl AhpClient {
    /// Connects, with the default settings.
    pub async fn new(transport: Transport) -> Result<AhpClient> {
        AhpClient::connect(transport, ClientOptions::default()).await
    }

    /// Connects, with the settings that the protocol's document names.
    pub async fn new_with_config(transport: Transport, config: TransportConfig) -> Result<AhpClient> {
        let reply_timeout = config.timeout_ms.map(Duration::from_millis);
        AhpClient::connect(transport, ClientOptions { reply_timeout, ..ClientOptions::default() }).await
    }

    /// Connects, with all settings. HTTP connects with the first call.
    pub async fn connect(transport: Transport, options: ClientOptions) -> Result<AhpClient> {
        let handshake = Arc::new(Handshake::new(&options));
        let channel = Channel::connect(transport, &options, &handshake).await?;
        let in_flight = Semaphore::new(options.max_in_flight.clamp(1, Semaphore::MAX_PERMITS));
        let closed = CancellationToken::new();
        let inner = Arc::new(Inner { channel, handshake, options, in_flight, closed });
        Ok(AhpClient { inner, id: None, timeout: None })
    }

    /// A clone that uses this identifier for its requests; the default is random. Only one request with it can be in flight.
    #[must_use]
    pub fn with_id(&self, id: impl Into<String>) -> AhpClient {
        AhpClient { id: Some(id.into()), ..self.clone() }
    }

    /// A clone with this time limit for each call.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> AhpClient {
        AhpClient { timeout: Some(timeout), ..self.clone() }
    }

    /// The session id of all events.
    pub fn session_id(&self) -> &str {
        &self.inner.handshake.session_id
    }

    /// The agent id of all events.
    pub fn agent_id(&self) -> &str {
        &self.inner.handshake.agent_id
    }

    /// The harness's answer to the last handshake; none before it.
    pub fn harness(&self) -> Option<HandshakeResponse> {
        self.inner.handshake.agreed()
    }

    /// The number of calls in flight.
    pub fn in_flight(&self) -> usize {
        let options = &self.inner.options;
        let taken = options.max_in_flight.clamp(1, Semaphore::MAX_PERMITS);
        taken.saturating_sub(self.inner.in_flight.available_permits()).max(self.inner.channel.waiting())
    }

    /// Performs the handshake. Must precede all other calls; it is repeated automatically after a reconnect.
    pub async fn handshake(&self, capabilities: Vec<String>) -> Result<HandshakeResponse> {
        let request = self.inner.handshake.request(self.request_id()?, &capabilities)?;
        let result = self.inner.deliver(&request, self.reply_timeout()).await?;
        self.inner.handshake.accept(capabilities, &result)
    }

    /// Sends an event with the client's ids and depth 0. Returns the decision as JSON; for a kind without a decision, `allow` as soon
    /// as it is sent.
    pub async fn send_event(&self, kind: EventType, payload: impl Into<Json>) -> Result<Json> {
        self.send_event_full_value(&self.event(kind, payload.into())).await
    }

    /// Sends an event; returns a generic decision.
    pub async fn send_event_decision(&self, kind: EventType, payload: impl Into<Json>) -> Result<Decision> {
        self.send_typed_event(kind, payload).await
    }

    /// Sends an event; returns the decision as any type.
    pub async fn send_typed_event<T: DeserializeOwned>(
        &self,
        kind: EventType,
        payload: impl Into<Json>,
    ) -> Result<T> {
        self.send_typed_event_full(&self.event(kind, payload.into())).await
    }

    /// Sends a complete event; returns a generic decision.
    pub async fn send_event_full(&self, event: &AhpEvent) -> Result<Decision> {
        self.send_typed_event_full(event).await
    }

    /// Sends a complete event; returns the decision as JSON.
    pub async fn send_event_full_value(&self, event: &AhpEvent) -> Result<Json> {
        if event.event_type.is_blocking() {
            self.check(event)?;
            return self.call(method::EVENT, event).await;
        }
        self.notify_full(event).await?;
        Ok(local_allow())
    }

    /// Sends a complete event; returns the decision as any type.
    pub async fn send_typed_event_full<T: DeserializeOwned>(&self, event: &AhpEvent) -> Result<T> {
        if !event.event_type.is_blocking() {
            // Before anything is sent: the only possible answer is known.
            let decision = read(&local_allow())?;
            self.notify_full(event).await?;
            return Ok(decision);
        }
        read(&self.send_event_full_value(event).await?)
    }

    /// Sends an event without a decision. Returns when it is written; over HTTP and gRPC, when the harness has accepted it.
    pub async fn notify(&self, kind: EventType, payload: impl Into<Json>) -> Result<()> {
        self.notify_full(&self.event(kind, payload.into())).await
    }

    /// Sends a complete event without a decision.
    pub async fn notify_full(&self, event: &AhpEvent) -> Result<()> {
        let kind = event.event_type;
        if kind.is_blocking() {
            let problem = "it waits for a decision: use `send_event`".to_owned();
            return Err(AhpError::InvalidEvent { kind, problem });
        }
        self.check(event)?;
        let message = Outgoing::new(None, method::EVENT, event)?;
        self.inner.deliver(&message, self.reply_timeout()).await.map(drop)
    }

    /// Sends several events with generic decisions in one message. The decisions are in the same order.
    pub async fn send_batch(&self, events: Vec<AhpEvent>) -> Result<BatchResponse> {
        let limits = self.inner.handshake.limits().ok_or(AhpError::NotHandshaken)?;
        if let Some(event) = events.iter().find(|event| !event.event_type.is_batchable()) {
            return Err(AhpError::NotBatchable(event.event_type));
        }
        if let Some(max) = limits.batch_size.filter(|max| u64::try_from(events.len()).is_ok_and(|n| n > *max))
        {
            return Err(AhpError::BatchTooLarge { events: events.len(), max });
        }
        events.iter().try_for_each(|event| self.check(event))?;
        let count = events.len();
        let request = proctor_wire::ahp::BatchRequest { events };
        let response: BatchResponse = read(&self.call(method::BATCH, &request).await?)?;
        if response.decisions.len() != count {
            return Err(AhpError::Protocol(format!(
                "{} decisions for a batch of {count} events",
                response.decisions.len()
            )));
        }
        Ok(response)
    }

    /// Sends a query.
    pub async fn query(
        &self,
        query_type: impl Into<String>,
        payload: impl Into<Json>,
    ) -> Result<QueryResponse> {
        let request = QueryRequest {
            session_id: self.session_id().to_owned(),
            agent_id: self.agent_id().to_owned(),
            query_type: query_type.into(),
            payload: payload.into(),
        };
        read(&self.call(method::QUERY, &request).await?)
    }

    /// Closes the connection of all clones: calls in flight fail with [`AhpError::ConnectionClosed`], and so do all later ones. The
    /// standard input of a started program is closed, and the program is killed if it does not exit in time.
    pub async fn close(&self) -> Result<()> {
        self.inner.closed.cancel();
        self.inner.channel.close().await;
        Ok(())
    }

    /// An event with the client's ids.
    fn event(&self, event_type: EventType, payload: Json) -> AhpEvent {
        AhpEvent {
            event_type,
            session_id: self.session_id().to_owned(),
            agent_id: self.agent_id().to_owned(),
            timestamp: self.inner.options.clock.now().to_string(),
            depth: 0,
            payload,
            context: None,
            metadata: None,
        }
    }

    /// Checks that an event is valid and within the harness's limits. Most transports would lose the refusal of a notification.
    fn check(&self, event: &AhpEvent) -> Result<()> {
        let limits = self.inner.handshake.limits().ok_or(AhpError::NotHandshaken)?;
        if let Some(max) = limits.max_depth.filter(|max| event.depth > *max) {
            return Err(AhpError::TooDeep { depth: event.depth, max });
        }
        let kind = event.event_type;
        let invalid = |problem: String| AhpError::InvalidEvent { kind, problem };
        if event.metadata.as_ref().is_some_and(|metadata| !matches!(metadata, Json::Object(_) | Json::Null)) {
            return Err(invalid("its metadata is no object".to_owned()));
        }
        match kind {
            EventType::RunLifecycle => event.payload.read::<RunLifecycleEvent>().map(drop),
            EventType::TaskList => event.payload.read::<TaskListEvent>().map(drop),
            EventType::Verification => event.payload.read::<VerificationEvent>().map(drop),
            _ => Ok(()),
        }
        .map_err(|error| invalid(error.to_string()))
    }

    async fn call<P: Serialize + ?Sized>(&self, method: &'static str, params: &P) -> Result<Json> {
        if self.inner.handshake.limits().is_none() {
            return Err(AhpError::NotHandshaken);
        }
        let message = Outgoing::new(Some(self.request_id()?), method, params)?;
        self.inner.deliver(&message, self.reply_timeout()).await
    }

    fn request_id(&self) -> Result<String> {
        match &self.id {
            None => Ok(Uuid::new_v4().to_string()),
            Some(id) if id.len() <= MAX_ID => Ok(id.clone()),
            Some(id) => {
                Err(AhpError::InvalidId { id: shortened(id), problem: "it is longer than 4096 bytes" })
            }
        }
    }

    fn reply_timeout(&self) -> Duration {
        let advertised = || self.inner.handshake.limits().and_then(|limits| limits.timeout_ms);
        self.timeout
            .or(self.inner.options.reply_timeout)
            .or_else(|| advertised().map(|ms| Duration::from_millis(ms).saturating_add(TRANSMISSION)))
            .unwrap_or(REPLY_TIMEOUT)
            .min(MAX_TIMEOUT)
    }
}

impl Inner {
    async fn deliver(&self, message: &Outgoing, within: Duration) -> Result<Json> {
        // The envelope around the params is small; the identifier may be long.
        let bytes = message.params.len() + message.id.as_ref().map_or(0, String::len) + 128;
        let max = self.channel.max_message();
        if bytes > max {
            return Err(AhpError::TooLarge { bytes, max });
        }
        let deadline = Instant::now() + within;
        let delivered = timeout_at(deadline, async {
            let _permit = self.in_flight.acquire().await.map_err(|_| AhpError::ConnectionClosed)?;
            self.channel.send(message, deadline).await
        });
        tokio::select! {
            biased;
            () = self.closed.cancelled() => Err(AhpError::ConnectionClosed),
            outcome = delivered => {
                outcome.unwrap_or(Err(AhpError::Timeout { what: "reply", ms: millis(within) }))
            }
        }
    }
}

/// The result of events without a decision.
fn local_allow() -> Json {
    Json::object().with("decision", "allow")
}

fn read<T: DeserializeOwned>(result: &Json) -> Result<T> {
    result
        .read()
        .map_err(|error| AhpError::Serialization(format!("the answer is not of the wanted type: {error}")))
}

impl fmt::Debug for AhpClient {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AhpClient")
            .field("session_id", &self.session_id())
            .field("agent_id", &self.agent_id())
            .finish_non_exhaustive()
    }
}
