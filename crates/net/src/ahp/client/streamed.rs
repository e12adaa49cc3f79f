//! A connection that comes back: after a loss the next call connects again, greets again, and goes on.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use proctor_core::json::Json;
use proctor_wire::ahp::method;
use tokio::time::{Instant, sleep_until, timeout};
use uuid::Uuid;

use super::error::{AhpError, Result, millis};
use super::greeting::Greeting;
use super::link::{Failure, Link, Times};
use super::message::Outgoing;
use super::options::{Backoff, ClientOptions};

/// Where a stream goes to.
pub(super) enum Dial {
    #[cfg(feature = "stdio")]
    Stdio { program: String, args: Vec<String> },
    #[cfg(feature = "unix-socket")]
    UnixSocket { path: std::path::PathBuf },
    #[cfg(feature = "websocket")]
    WebSocket(Box<super::websocket::Target>),
}

impl Dial {
    async fn connect(&self, times: Times) -> Result<Link> {
        match self {
            #[cfg(feature = "stdio")]
            Dial::Stdio { program, args } => super::lines::stdio::start(program, args, times),
            #[cfg(feature = "unix-socket")]
            Dial::UnixSocket { path } => super::lines::unix(path, times).await,
            #[cfg(feature = "websocket")]
            Dial::WebSocket(target) => target.connect(times).await,
        }
    }
}

/// A connection, and how to get another one.
pub(super) struct Streamed {
    dial: Dial,
    times: Times,
    connect_timeout: Duration,
    reconnect: Option<Backoff>,
    greeting: Arc<Greeting>,
    /// Held while connecting, so that one attempt serves all callers.
    connecting: tokio::sync::Mutex<Attempts>,
    link: Mutex<Option<Arc<Link>>>,
    /// Connections in a row that brought no answer.
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
        dial: Dial,
        options: &ClientOptions,
        greeting: Arc<Greeting>,
    ) -> Result<Streamed> {
        #[cfg(feature = "websocket")]
        let ping = matches!(dial, Dial::WebSocket(_)).then_some(options.ping_every);
        #[cfg(not(feature = "websocket"))]
        let ping = None;
        let streamed = Streamed {
            dial,
            times: Times {
                write: options.write_timeout,
                close: options.close_timeout,
                ping,
                queue: options.max_in_flight,
            },
            connect_timeout: options.connect_timeout,
            reconnect: options.reconnect,
            greeting,
            connecting: tokio::sync::Mutex::default(),
            link: Mutex::new(None),
            fruitless: AtomicU32::new(0),
        };
        let link = streamed.attempt(options.connect_timeout).await?;
        *streamed.current() = Some(Arc::new(link));
        Ok(streamed)
    }

    /// Sends a message. One that may have been delivered is never sent again; one of which nothing was written is.
    pub(super) async fn send(&self, message: &Outgoing, deadline: Instant) -> Result<Json> {
        loop {
            let link = self.open_link(message.method != method::HANDSHAKE, deadline).await?;
            match link.send(message).await {
                Ok(answer) => {
                    if message.id.is_some() {
                        self.fruitless.store(0, Ordering::Relaxed);
                    }
                    return answer.map_err(|fault| fault.of(message.method));
                }
                Err(Failure::NotSent) => {}
                Err(Failure::Failed(error)) => return Err(error),
            }
        }
    }

    /// How many messages wait.
    pub(super) fn waiting(&self) -> usize {
        self.current().as_ref().map_or(0, |link| link.waiting())
    }

    /// Ends the connection. No call may be made any more.
    pub(super) async fn close(&self) {
        // An attempt that is under way ends first; its caller was told already.
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

    /// A connection that works, greeted if the client has greeted before.
    async fn open_link(&self, greet: bool, deadline: Instant) -> Result<Arc<Link>> {
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
            let outcome = self.attempt_and_greet(greet, within, deadline).await;
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

    async fn attempt_and_greet(&self, greet: bool, within: Duration, deadline: Instant) -> Result<Link> {
        let link = self.attempt(within).await?;
        if let Some(capabilities) = self.greeting.capabilities().filter(|_| greet) {
            let hello = self.greeting.request(Uuid::new_v4().to_string(), &capabilities)?;
            let within = deadline.saturating_duration_since(Instant::now()).min(self.connect_timeout);
            match timeout(within, link.send(&hello)).await {
                Ok(Ok(Ok(result))) => drop(self.greeting.accept(capabilities, &result)?),
                Ok(Ok(Err(fault))) => return Err(fault.of(method::HANDSHAKE)),
                Ok(Err(Failure::NotSent)) => return Err(AhpError::ConnectionClosed),
                Ok(Err(Failure::Failed(error))) => return Err(error),
                Err(_) => return Err(AhpError::Timeout { what: "reply", ms: millis(within) }),
            }
        }
        Ok(link)
    }

    async fn attempt(&self, within: Duration) -> Result<Link> {
        timeout(within, self.dial.connect(self.times))
            .await
            .unwrap_or(Err(AhpError::Timeout { what: "connect", ms: millis(within) }))
    }
}
