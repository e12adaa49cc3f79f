//! The calls.

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
use super::greeting::{Greeting, shortened};
use super::message::Outgoing;
use super::options::{ClientOptions, Transport, TransportConfig};

/// How long a call waits until the harness has said how long it takes.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// What a call waits longer than the harness says that it takes: an answer that is given in the last moment still arrives.
const ON_THE_WAY: Duration = Duration::from_millis(250);
/// No call waits longer, whatever it is told.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// An agent's connection to its harness. Cheap to clone; all clones share the connection, which ends with the last of them.
///
/// Every call can be cancelled at any moment by dropping its future.
#[derive(Clone)]
pub struct AhpClient {
    inner: Arc<Inner>,
    id: Option<String>,
    timeout: Option<Duration>,
}

struct Inner {
    channel: Channel,
    greeting: Arc<Greeting>,
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
        let greeting = Arc::new(Greeting::new(&options));
        let channel = Channel::connect(transport, &options, &greeting).await?;
        let in_flight = Semaphore::new(options.max_in_flight.clamp(1, Semaphore::MAX_PERMITS));
        let closed = CancellationToken::new();
        let inner = Arc::new(Inner { channel, greeting, options, in_flight, closed });
        Ok(AhpClient { inner, id: None, timeout: None })
    }

    /// The same client with this identifier for its requests, where the agent wants to choose it; otherwise it is random. Only one
    /// request with it can wait at a time.
    #[must_use]
    pub fn with_id(&self, id: impl Into<String>) -> AhpClient {
        AhpClient { id: Some(id.into()), ..self.clone() }
    }

    /// The same client with this time for each call.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> AhpClient {
        AhpClient { timeout: Some(timeout), ..self.clone() }
    }

    /// The session's name, as the harness hears it.
    pub fn session_id(&self) -> &str {
        &self.inner.greeting.session_id
    }

    /// The agent's name, as the harness hears it.
    pub fn agent_id(&self) -> &str {
        &self.inner.greeting.agent_id
    }

    /// What the harness said in the last handshake; none before it.
    pub fn harness(&self) -> Option<HandshakeResponse> {
        self.inner.greeting.agreed()
    }

    /// How many calls wait for an answer.
    pub fn in_flight(&self) -> usize {
        let options = &self.inner.options;
        let taken = options.max_in_flight.clamp(1, Semaphore::MAX_PERMITS);
        taken.saturating_sub(self.inner.in_flight.available_permits()).max(self.inner.channel.waiting())
    }

    /// Introduces the agent. Must come before all other calls; after a lost connection it is repeated by itself.
    pub async fn handshake(&self, capabilities: Vec<String>) -> Result<HandshakeResponse> {
        let request = self.inner.greeting.request(self.request_id()?, &capabilities)?;
        let result = self.inner.deliver(&request, self.reply_timeout()).await?;
        self.inner.greeting.accept(capabilities, &result)
    }

    /// Sends an event with the client's own names and depth 0. Returns the harness's decision as it came; for a kind that wants no
    /// decision, `allow` as soon as it is sent.
    pub async fn send_event(&self, kind: EventType, payload: impl Into<Json>) -> Result<Json> {
        self.send_event_full_value(&self.event(kind, payload.into())).await
    }

    /// The same, with the answer read as a generic decision.
    pub async fn send_event_decision(&self, kind: EventType, payload: impl Into<Json>) -> Result<Decision> {
        self.send_typed_event(kind, payload).await
    }

    /// The same, with the answer read as any type of decision.
    pub async fn send_typed_event<T: DeserializeOwned>(
        &self,
        kind: EventType,
        payload: impl Into<Json>,
    ) -> Result<T> {
        self.send_typed_event_full(&self.event(kind, payload.into())).await
    }

    /// Sends the caller's event untouched.
    pub async fn send_event_full(&self, event: &AhpEvent) -> Result<Decision> {
        self.send_typed_event_full(event).await
    }

    /// The same, with the answer as it came.
    pub async fn send_event_full_value(&self, event: &AhpEvent) -> Result<Json> {
        if event.event_type.is_blocking() {
            self.check(event)?;
            return self.call(method::EVENT, event).await;
        }
        self.notify_full(event).await?;
        Ok(local_allow())
    }

    /// The same, with the answer read as any type of decision.
    pub async fn send_typed_event_full<T: DeserializeOwned>(&self, event: &AhpEvent) -> Result<T> {
        if !event.event_type.is_blocking() {
            // Read before anything is sent: the only answer there can be is known.
            let decision = read(&local_allow())?;
            self.notify_full(event).await?;
            return Ok(decision);
        }
        read(&self.send_event_full_value(event).await?)
    }

    /// Sends an event that wants no decision. Returns when it is written; over HTTP and gRPC, when the harness has accepted it.
    pub async fn notify(&self, kind: EventType, payload: impl Into<Json>) -> Result<()> {
        self.notify_full(&self.event(kind, payload.into())).await
    }

    /// The same with the caller's event untouched.
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

    /// Sends several events that get generic decisions, in one message. The decisions come in the same order.
    pub async fn send_batch(&self, events: Vec<AhpEvent>) -> Result<BatchResponse> {
        let limits = self.inner.greeting.limits().ok_or(AhpError::NotHandshaken)?;
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

    /// Asks the harness something.
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

    /// Ends the connection, for all clones: calls in flight fail with [`AhpError::ConnectionClosed`], and so do all later ones. A
    /// started program gets the end of its input, and is ended by force if it does not go.
    pub async fn close(&self) -> Result<()> {
        self.inner.closed.cancel();
        self.inner.channel.close().await;
        Ok(())
    }

    /// An event with the client's own names.
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

    /// What the harness would refuse, and on most transports without a word.
    fn check(&self, event: &AhpEvent) -> Result<()> {
        let limits = self.inner.greeting.limits().ok_or(AhpError::NotHandshaken)?;
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
        if self.inner.greeting.limits().is_none() {
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
        let advertised = || self.inner.greeting.limits().and_then(|limits| limits.timeout_ms);
        self.timeout
            .or(self.inner.options.reply_timeout)
            .or_else(|| advertised().map(|ms| Duration::from_millis(ms).saturating_add(ON_THE_WAY)))
            .unwrap_or(REPLY_TIMEOUT)
            .min(LONGEST)
    }
}

impl Inner {
    async fn deliver(&self, message: &Outgoing, within: Duration) -> Result<Json> {
        // The envelope around the params is small, but the identifier may not be.
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

/// The answer to events that want none.
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
