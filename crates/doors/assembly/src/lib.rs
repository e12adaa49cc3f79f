//! The door of Agent Assembly: agents register, ask before they act, report, and are controlled.
//!
//! Messages become words of `core`, the engine answers, and answers become messages again. What is known of agents is in the ledger;
//! here is only what may be lost: challenges, who was seen when, and who listens.

mod action;
mod answer;
mod approvals;
mod audit;
mod binding;
mod challenges;
mod check;
mod control;
mod event_json;
mod identity;
mod invalidation;
mod keys;
mod lifecycle;
mod operations;
mod places;
mod presence;
mod registering;
mod rings;
mod routes;
mod streams;
mod sweep;
mod topology;

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::Stream;
use proctor_core::digest::Digest;
use proctor_core::session::Caller;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use proctor_engine::{Engine, EngineError, Room};

pub use routes::routes;

/// The name of the door in records.
pub const DOOR: &str = "assembly";

/// Who acts when nobody is known, where that is allowed.
pub const ANONYMOUS: &str = "anonymous";

/// How the door is set.
#[derive(Debug, Clone)]
pub struct AssemblySettings {
    /// Whether callers must prove who they are.
    pub mode: AssemblyMode,
    /// Whether an agent must name its team.
    pub tenanted: bool,
    /// Whether agents may decide approvals of others in their team.
    pub agents_approve: bool,
    /// How often agents are to send a heartbeat. Three in a row that do not come make an agent offline.
    pub heartbeat: Duration,
    /// People who may decide approvals: a name, and the digest of a token.
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

/// Whether callers must prove who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AssemblyMode {
    /// Agents are did:key identities that prove to hold their key, and every check needs a token.
    #[default]
    Strict,
    /// Agents may also have free identifiers; checks without a token are those of one principal, `anonymous`.
    Relaxed,
}

/// The door. Cheap to clone.
#[derive(Clone)]
pub struct AssemblyDoor {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Arc<Engine>,
    settings: AssemblySettings,
    challenges: Mutex<challenges::Challenges>,
    presence: Mutex<presence::Presence>,
    bindings: Mutex<binding::Bindings>,
    streams: Mutex<control::Streams>,
    open_streams: Mutex<streams::Counts>,
    keys: Mutex<keys::Keys>,
    rings: Mutex<rings::Rings>,
    swept: Mutex<sweep::Swept>,
    /// Open streams end with it.
    stop: CancellationToken,
}

/// A stream of messages to a caller.
type Replies<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl AssemblyDoor {
    /// A door to an engine.
    pub fn new(engine: Arc<Engine>, settings: AssemblySettings) -> AssemblyDoor {
        AssemblyDoor {
            inner: Arc::new(Inner {
                engine,
                settings,
                challenges: Mutex::default(),
                presence: Mutex::default(),
                bindings: Mutex::default(),
                streams: Mutex::default(),
                open_streams: Mutex::default(),
                keys: Mutex::default(),
                rings: Mutex::default(),
                swept: Mutex::default(),
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

    /// Room in the ledger's queue for one request.
    async fn room(&self) -> Result<Room, Status> {
        let room = self.engine().room(self.engine().due()).await;
        room.ok_or_else(|| Status::unavailable("too many records wait to be written"))
    }

    fn settings(&self) -> &AssemblySettings {
        &self.inner.settings
    }
}

/// The lock; what a panic left behind is still whole, since nothing here is changed in steps.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Who acts when nobody is known.
fn anonymous() -> Caller {
    Caller { principal: ANONYMOUS.to_owned(), ..Caller::default() }
}

/// The status of a call when the ledger or the registry does not answer.
fn unavailable(problem: impl Into<EngineError>) -> Status {
    Status::unavailable(format!("not recorded: {}", problem.into().cause()))
}

/// A stream from a channel.
fn replies<T: Send + 'static>(receiver: tokio::sync::mpsc::Receiver<Result<T, Status>>) -> Replies<T> {
    Box::pin(futures_util::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|item| (item, receiver))
    }))
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
