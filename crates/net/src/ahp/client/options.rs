//! Settings of a client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use proctor_core::time::{Clock, Timestamp};

#[cfg(any(feature = "http", feature = "websocket", feature = "grpc"))]
use super::auth::AuthConfig;

/// How to reach the harness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// A program that the client starts; messages go over its standard input and output, its standard error is this process's.
    #[cfg(feature = "stdio")]
    Stdio {
        /// The program.
        program: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// One POST a message, exactly to this URL.
    #[cfg(feature = "http")]
    Http {
        /// `http://…` or `https://…`
        url: String,
        /// Credentials.
        auth: Option<AuthConfig>,
    },
    /// One WebSocket for all messages.
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
        /// Where it is.
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
    /// How long a call waits for its answer.
    pub timeout_ms: Option<u64>,
}

/// All settings. The default is right for most agents.
#[derive(Clone)]
pub struct ClientOptions {
    /// The session's name; a random one if none.
    pub session_id: Option<String>,
    /// The agent's name; a random one if none.
    pub agent_id: Option<String>,
    /// What the agent is built with.
    pub framework: String,
    /// That one's version.
    pub framework_version: String,
    /// How long connecting may take, including TLS and the WebSocket handshake.
    pub connect_timeout: Duration,
    /// How long writing one message may take. A connection on which it takes longer is given up.
    pub write_timeout: Duration,
    /// How long a call waits for its answer, all in all. None: what the harness advertises, and a little for the way; 10 s until
    /// that is known.
    pub reply_timeout: Option<Duration>,
    /// How long [`AhpClient::close`](super::AhpClient::close) waits for the other side before it ends the connection by force.
    pub close_timeout: Duration,
    /// How to come back after a lost connection; none: not at all.
    pub reconnect: Option<Backoff>,
    /// How many calls may wait for answers at once; more wait for one of them to end.
    pub max_in_flight: usize,
    /// How often a WebSocket is pinged; one that is silent for three times as long is given up.
    pub ping_every: Duration,
    /// Trust and client certificate for `https` and `wss`.
    #[cfg(feature = "tls")]
    pub tls: crate::tls::ClientTls,
    /// Where the timestamps of events come from.
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
            #[cfg(feature = "tls")]
            tls: crate::tls::ClientTls::default(),
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

/// How long to wait between attempts to connect again. Within one call, attempts end with the call's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure.
    pub start: Duration,
    /// Each later wait is twice as long, up to this.
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff { start: Duration::from_millis(50), max: Duration::from_secs(5) }
    }
}

impl Backoff {
    /// The wait after so many failures in a row: between half of the full time and all of it, so that many clients of one harness
    /// do not come back in step.
    #[cfg(any(feature = "stdio", feature = "unix-socket", feature = "websocket"))]
    pub(super) fn after(&self, failures: u32) -> Duration {
        let factor = 1u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        let full = self.start.saturating_mul(factor).min(self.max);
        let random = u32::from(uuid::Uuid::new_v4().as_bytes().first().copied().unwrap_or_default());
        full / 2 + (full / 2) * random / 255
    }
}

/// The machine's own time.
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

#[cfg(all(test, any(feature = "stdio", feature = "unix-socket", feature = "websocket")))]
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
