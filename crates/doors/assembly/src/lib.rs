//! Server side of Agent Assembly: registration, checks, reports, control streams, approvals, topology.
//!
//! Requests are converted to types of `core`, the engine answers, and answers are converted to responses. Durable state is in the ledger;
//! this crate holds only state that may be lost: challenges, heartbeats, replay buffers, open streams.

mod action;
mod answer;
mod approvals;
mod audit;
mod binding;
mod challenges;
mod check;
mod control;
mod event_json;
mod expiry;
mod heartbeats;
mod identity;
mod invalidation;
mod keys;
mod lifecycle;
mod operations;
mod redaction;
mod registering;
mod replay_buffer;
mod routes;
mod streams;
mod topology;

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::Stream;
use proctor_core::digest::Digest;
use proctor_core::session::Caller;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use proctor_engine::{Engine, EngineError, QueueReservation};

pub use routes::routes;

/// Name of the door in records.
pub const DOOR: &str = "assembly";

/// Principal of unauthenticated callers in relaxed mode.
pub const ANONYMOUS: &str = "anonymous";

/// Settings of the door.
#[derive(Debug, Clone)]
pub struct AssemblySettings {
    /// Authentication mode.
    pub mode: AssemblyMode,
    /// Whether an agent must name its team.
    pub tenanted: bool,
    /// Whether agents may decide approvals of others in their team.
    pub agents_approve: bool,
    /// Heartbeat interval. An agent is offline after three missed heartbeats.
    pub heartbeat: Duration,
    /// Approvers: name and token digest.
    pub approvers: Vec<(String, Digest)>,
}

impl Default for AssemblySettings {
    fn default() -> AssemblySettings {
        AssemblySettings {
            mode: AssemblyMode::Strict,
            tenanted: false,
            agents_approve: false,
            heartbeat: Duration::from_secs(30),
            approvers: Vec::new(),
        }
    }
}

/// Authentication mode of callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AssemblyMode {
    /// Agents are did:key identities that prove to hold their key, and every check needs a token.
    #[default]
    Strict,
    /// Agents may also have unauthenticated identifiers; checks without a token share the principal `anonymous`.
    Relaxed,
}

/// Implementation of the gateway's services. Cheap to clone.
#[derive(Clone)]
pub struct AssemblyDoor {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Arc<Engine>,
    settings: AssemblySettings,
    challenges: Mutex<challenges::Challenges>,
    heartbeats: Mutex<heartbeats::Heartbeats>,
    bindings: Mutex<binding::Bindings>,
    streams: Mutex<control::Streams>,
    open_streams: Mutex<streams::Counts>,
    keys: Mutex<keys::Keys>,
    replay_buffers: Mutex<replay_buffer::ReplayBuffers>,
    expiry: Mutex<expiry::ExpiryState>,
    /// Cancels open streams and the expiry task.
    stop: CancellationToken,
}

/// A stream of messages to a caller.
type Replies<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl AssemblyDoor {
    /// Creates a door without background work; `spawn_expiry` starts it.
    pub fn new(engine: Arc<Engine>, settings: AssemblySettings) -> AssemblyDoor {
        AssemblyDoor {
            inner: Arc::new(Inner {
                engine,
                settings,
                challenges: Mutex::default(),
                heartbeats: Mutex::default(),
                bindings: Mutex::default(),
                streams: Mutex::default(),
                open_streams: Mutex::default(),
                keys: Mutex::default(),
                replay_buffers: Mutex::default(),
                expiry: Mutex::default(),
                stop: CancellationToken::new(),
            }),
        }
    }

    /// Ends all streams, so that a server can stop.
    pub fn close(&self) {
        self.inner.stop.cancel();
    }

    fn engine(&self) -> &Arc<Engine> {
        &self.inner.engine
    }

    /// Reserves capacity in the ledger's queue for one request.
    async fn reserve(&self) -> Result<QueueReservation, Status> {
        let reservation = self.engine().reserve(self.engine().due()).await;
        reservation.ok_or_else(|| Status::unavailable("too many records wait to be written"))
    }

    fn settings(&self) -> &AssemblySettings {
        &self.inner.settings
    }
}

/// Locks a mutex, ignoring poisoning: no critical section leaves partial state behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Caller for unauthenticated checks.
fn anonymous() -> Caller {
    Caller { principal: ANONYMOUS.to_owned(), ..Caller::default() }
}

/// Status of a call whose record the ledger did not commit.
fn unavailable(problem: impl Into<EngineError>) -> Status {
    Status::unavailable(format!("not recorded: {}", problem.into().cause()))
}

/// Response stream that reads from a channel.
fn replies<T: Send + 'static>(receiver: tokio::sync::mpsc::Receiver<Result<T, Status>>) -> Replies<T> {
    Box::pin(futures_util::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|item| (item, receiver))
    }))
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
