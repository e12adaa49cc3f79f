//! A connection that reconnects: after a loss the next call connects, repeats the handshake, and is sent.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use proctor_core::json::Json;
use proctor_wire::ahp::method;
use tokio::time::{Instant, sleep_until, timeout};
use uuid::Uuid;

use super::error::{AhpError, Result, millis};
use super::handshake::Handshake;
use super::link::{Failure, Link, LinkLimits};
use super::message::Outgoing;
use super::options::{Backoff, ClientOptions};

/// The address of a stream.
pub(super) enum Target {
    #[cfg(feature = "stdio")]
    Stdio { program: String, args: Vec<String> },
    #[cfg(feature = "unix-socket")]
    UnixSocket { path: std::path::PathBuf },
    #[cfg(feature = "websocket")]
    WebSocket(Box<proctor_net::websocket::client::Target>),
}

impl Target {
    async fn connect(&self, limits: LinkLimits) -> Result<Link> {
        match self {
            #[cfg(feature = "stdio")]
            Target::Stdio { program, args } => {
                let (reader, writer) = proctor_net::stdio::client::spawn(program, args)
                    .map_err(|error| AhpError::Transport(format!("the program `{program}`: {error}")))?;
                Ok(Link::start(reader, writer, limits))
            }
            #[cfg(feature = "unix-socket")]
            Target::UnixSocket { path } => {
                let (reader, writer) = proctor_net::unix::connect(path).await.map_err(|error| {
                    AhpError::Transport(format!("the socket `{}`: {error}", path.display()))
                })?;
                Ok(Link::start(reader, writer, limits))
            }
            #[cfg(feature = "websocket")]
            Target::WebSocket(target) => {
                let (reader, writer) =
                    target.connect().await.map_err(|error| super::websocket::connect_error(&error))?;
                Ok(Link::start(reader, writer, limits))
            }
        }
    }
}

/// The current connection, and the settings to make another one.
pub(super) struct Streamed {
    target: Target,
    limits: LinkLimits,
    connect_timeout: Duration,
    reconnect: Option<Backoff>,
    handshake: Arc<Handshake>,
    /// Held while connecting, so that one attempt serves all callers.
    connecting: tokio::sync::Mutex<Attempts>,
    link: Mutex<Option<Arc<Link>>>,
    /// Connections in a row without a reply, for the backoff.
    fruitless: AtomicU32,
}

#[derive(Default)]
struct Attempts {
    not_before: Option<Instant>,
    last_error: Option<AhpError>,
}

impl Streamed {
    /// Connects for the first time: one attempt.
    pub(super) async fn connect(
        target: Target,
        options: &ClientOptions,
        handshake: Arc<Handshake>,
    ) -> Result<Streamed> {
        #[cfg(feature = "websocket")]
        let ping = matches!(target, Target::WebSocket(_)).then_some(options.ping_every);
        #[cfg(not(feature = "websocket"))]
        let ping = None;
        let streamed = Streamed {
            target,
            limits: LinkLimits {
                write: options.write_timeout,
                close: options.close_timeout,
                ping,
                queue: options.max_in_flight,
            },
            connect_timeout: options.connect_timeout,
            reconnect: options.reconnect,
            handshake,
            connecting: tokio::sync::Mutex::default(),
            link: Mutex::new(None),
            fruitless: AtomicU32::new(0),
        };
        let link = streamed.attempt(options.connect_timeout).await?;
        *streamed.current() = Some(Arc::new(link));
        Ok(streamed)
    }

    /// Sends a message. A message that may have been delivered is never sent again; one of which no byte was written is.
    pub(super) async fn send(&self, message: &Outgoing, deadline: Instant) -> Result<Json> {
        loop {
            let link = self.open_link(message.method != method::HANDSHAKE, deadline).await?;
            match link.send(message).await {
                Ok(answer) => {
                    if message.id.is_some() {
                        self.fruitless.store(0, Ordering::Relaxed);
                    }
                    return answer.map_err(|fault| fault.into_error(message.method));
                }
                Err(Failure::NotSent) => {}
                Err(Failure::Failed(error)) => return Err(error),
            }
        }
    }

    /// The number of calls in flight.
    pub(super) fn waiting(&self) -> usize {
        self.current().as_ref().map_or(0, |link| link.waiting())
    }

    /// Ends the connection. No call may be made any more.
    pub(super) async fn close(&self) {
        // Waits for an attempt to connect; its caller has been cancelled.
        let _attempts = self.connecting.lock().await;
        let link = self.current().take();
        if let Some(link) = link {
            link.close().await;
        }
    }

    fn current(&self) -> std::sync::MutexGuard<'_, Option<Arc<Link>>> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> Option<Arc<Link>> {
        self.current().as_ref().filter(|link| link.is_open()).cloned()
    }

    /// An open connection; a new one repeats the handshake, if there was one before.
    async fn open_link(&self, with_handshake: bool, deadline: Instant) -> Result<Arc<Link>> {
        loop {
            if let Some(link) = self.open() {
                return Ok(link);
            }
            let Some(backoff) = self.reconnect else { return Err(AhpError::ConnectionClosed) };
            let mut attempts = self.connecting.lock().await;
            if let Some(link) = self.open() {
                return Ok(link);
            }
            let now = Instant::now();
            if let Some(not_before) = attempts.not_before.filter(|moment| *moment > now) {
                let last_error = attempts.last_error.clone();
                drop(attempts);
                if not_before >= deadline {
                    return Err(last_error.unwrap_or(AhpError::ConnectionClosed));
                }
                sleep_until(not_before).await;
                continue;
            }
            // Counted before it is made: an attempt that is cancelled was one, too.
            let failures = self.fruitless.fetch_add(1, Ordering::Relaxed).saturating_add(1);
            let within = self.connect_timeout.min(deadline - now);
            let outcome = self.attempt_and_greet(with_handshake, within, deadline).await;
            attempts.not_before = Some(Instant::now() + backoff.after(failures));
            match outcome {
                Ok(link) => {
                    let link = Arc::new(link);
                    *self.current() = Some(Arc::clone(&link));
                    attempts.last_error = None;
                    return Ok(link);
                }
                Err(error) if error.is_final() => return Err(error),
                Err(error) => attempts.last_error = Some(error),
            }
        }
    }

    async fn attempt_and_greet(
        &self,
        with_handshake: bool,
        within: Duration,
        deadline: Instant,
    ) -> Result<Link> {
        let link = self.attempt(within).await?;
        if let Some(capabilities) = self.handshake.capabilities().filter(|_| with_handshake) {
            let request = self.handshake.request(Uuid::new_v4().to_string(), &capabilities)?;
            let within = deadline.saturating_duration_since(Instant::now()).min(self.connect_timeout);
            match timeout(within, link.send(&request)).await {
                Ok(Ok(Ok(result))) => drop(self.handshake.accept(capabilities, &result)?),
                Ok(Ok(Err(fault))) => return Err(fault.into_error(method::HANDSHAKE)),
                Ok(Err(Failure::NotSent)) => return Err(AhpError::ConnectionClosed),
                Ok(Err(Failure::Failed(error))) => return Err(error),
                Err(_) => return Err(AhpError::Timeout { what: "reply", ms: millis(within) }),
            }
        }
        Ok(link)
    }

    async fn attempt(&self, within: Duration) -> Result<Link> {
        timeout(within, self.target.connect(self.limits))
            .await
            .unwrap_or(Err(AhpError::Timeout { what: "connect", ms: millis(within) }))
    }
}
