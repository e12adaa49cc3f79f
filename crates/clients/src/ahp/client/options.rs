//! Settings of a client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use proctor_core::time::{Clock, Timestamp};

#[cfg(any(feature = "http", feature = "websocket", feature = "grpc"))]
use super::auth::AuthConfig;

/// The transport and address of a harness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// A program that the client starts; messages are lines on its standard input and output, its standard error is inherited.
    #[cfg(feature = "stdio")]
    Stdio {
        /// The program.
        program: String,
        /// Arguments of the program.
        args: Vec<String>,
    },
    /// HTTP: one POST a message, exactly to this URL.
    #[cfg(feature = "http")]
    Http {
        /// `http://…` or `https://…`
        url: String,
        /// Credentials.
        auth: Option<AuthConfig>,
    },
    /// WebSocket: one connection for all messages.
    #[cfg(feature = "websocket")]
    WebSocket {
        /// `ws://…` or `wss://…`
        url: String,
        /// Credentials.
        auth: Option<AuthConfig>,
    },
    /// A Unix socket.
    #[cfg(feature = "unix-socket")]
    UnixSocket {
        /// The socket file.
        path: std::path::PathBuf,
    },
    /// gRPC.
    #[cfg(feature = "grpc")]
    Grpc {
        /// `http://…` or `https://…`
        url: String,
        /// Credentials.
        auth: Option<AuthConfig>,
    },
}

/// The settings of [`AhpClient::new_with_config`](super::AhpClient::new_with_config).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransportConfig {
    /// Time limit of a call.
    pub timeout_ms: Option<u64>,
}

/// Settings of a client.
#[derive(Clone)]
pub struct ClientOptions {
    /// The session id; random by default.
    pub session_id: Option<String>,
    /// The agent id; random by default.
    pub agent_id: Option<String>,
    /// The agent's framework.
    pub framework: String,
    /// The framework's version.
    pub framework_version: String,
    /// Time limit of connecting, including TLS and the WebSocket handshake.
    pub connect_timeout: Duration,
    /// Time limit of writing one message; after it the connection is closed.
    pub write_timeout: Duration,
    /// Time limit of a call. None: the advertised limit of the harness and 250 ms for transmission; 10 s until that is known.
    pub reply_timeout: Option<Duration>,
    /// Time for a graceful end in [`AhpClient::close`](super::AhpClient::close), before the connection or program is aborted.
    pub close_timeout: Duration,
    /// Backoff of reconnects; none: no reconnects.
    pub reconnect: Option<Backoff>,
    /// The maximum number of calls in flight; further calls are queued.
    pub max_in_flight: usize,
    /// Ping interval of WebSocket and gRPC; a WebSocket that is silent for three intervals is closed.
    pub ping_every: Duration,
    /// Trust and client certificate for `https` and `wss`.
    #[cfg(feature = "listen")]
    pub tls: proctor_net::tls::ClientTls,
    /// The clock of event timestamps.
    pub clock: Arc<dyn Clock>,
}

impl Default for ClientOptions {
    fn default() -> ClientOptions {
        ClientOptions {
            session_id: None,
            agent_id: None,
            framework: "proctor".to_owned(),
            framework_version: env!("CARGO_PKG_VERSION").to_owned(),
            connect_timeout: Duration::from_secs(5),
            write_timeout: Duration::from_secs(5),
            reply_timeout: None,
            close_timeout: Duration::from_secs(5),
            reconnect: Some(Backoff::default()),
            max_in_flight: 1024,
            ping_every: Duration::from_secs(30),
            #[cfg(feature = "listen")]
            tls: proctor_net::tls::ClientTls::default(),
            clock: Arc::new(SystemClock),
        }
    }
}

impl fmt::Debug for ClientOptions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ClientOptions")
            .field("session_id", &self.session_id)
            .field("agent_id", &self.agent_id)
            .field("framework", &self.framework)
            .field("framework_version", &self.framework_version)
            .field("connect_timeout", &self.connect_timeout)
            .field("write_timeout", &self.write_timeout)
            .field("reply_timeout", &self.reply_timeout)
            .field("close_timeout", &self.close_timeout)
            .field("reconnect", &self.reconnect)
            .field("max_in_flight", &self.max_in_flight)
            .finish_non_exhaustive()
    }
}

/// Exponential backoff between attempts to reconnect. Attempts within a call end with its time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first failure.
    pub start: Duration,
    /// The upper bound; each wait is twice as long as the one before.
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff { start: Duration::from_millis(50), max: Duration::from_secs(5) }
    }
}

impl Backoff {
    /// The wait after so many failures in a row, with jitter between half of the full time and all of it, so that the clients of one
    /// harness do not reconnect in step.
    #[cfg(feature = "ahp-stream")]
    pub(super) fn after(&self, failures: u32) -> Duration {
        let factor = 1u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        let full = self.start.saturating_mul(factor).min(self.max);
        let random = u32::from(uuid::Uuid::new_v4().as_bytes().first().copied().unwrap_or_default());
        full / 2 + (full / 2) * random / 255
    }
}

/// The system clock.
struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "an event's timestamp is the agent's word, and decides nothing"
    )]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}

#[cfg(all(test, feature = "ahp-stream"))]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_limit_with_jitter() {
        let backoff = Backoff::default();
        for (failures, full) in [(1, 50), (2, 100), (5, 800), (8, 5000), (40, 5000), (u32::MAX, 5000)] {
            let full = Duration::from_millis(full);
            for _ in 0..20 {
                let wait = backoff.after(failures);
                assert!(wait >= full / 2 && wait <= full, "{failures}: {wait:?}");
            }
        }
    }
}
