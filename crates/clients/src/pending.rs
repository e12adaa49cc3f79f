//! Table of the calls of one connection that wait for a reply.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Calls in flight: `K` is the identifier on the wire, `M` the encoded message, `T` the outcome.
#[derive(Debug)]
pub(crate) struct PendingCalls<K, M, T> {
    state: Mutex<State<K, M, T>>,
}

#[derive(Debug)]
struct State<K, M, T> {
    calls: HashMap<u64, Call<K, M, T>>,
    /// Serial numbers by identifier. Notifications have none.
    by_id: HashMap<K, u64>,
    last_serial: u64,
    closed: bool,
}

#[derive(Debug)]
struct Call<K, M, T> {
    id: Option<K>,
    /// The message until the writer takes it. It is kept here so that a cancelled call leaves nothing behind.
    message: Option<M>,
    stage: CallStage,
    outcome: oneshot::Sender<T>,
}

/// The progress of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallStage {
    /// No byte of the message was written.
    Queued,
    /// The message is being written; the peer may have seen a part of it.
    Writing,
    /// The message was written completely.
    Written,
}

/// A call that was not registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RegisterError {
    #[error("the connection is closed")]
    Closed,
    #[error("another call with this identifier waits for its reply")]
    DuplicateId,
}

/// A registered call; dropping this removes it from the table.
#[derive(Debug)]
pub(crate) struct Registration<'a, K: Eq + Hash, M, T> {
    table: &'a PendingCalls<K, M, T>,
    serial: u64,
}

/// A registered call and the receiver of its outcome.
type Registered<'a, K, M, T> = (Registration<'a, K, M, T>, oneshot::Receiver<T>);

impl<K: Eq + Hash, M, T> Registration<'_, K, M, T> {
    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    /// The progress of the call; `Written` once it was answered.
    #[cfg(feature = "stdio")]
    pub(crate) fn stage(&self) -> CallStage {
        self.table.state().calls.get(&self.serial).map_or(CallStage::Written, |call| call.stage)
    }
}

impl<K: Eq + Hash, M, T> Drop for Registration<'_, K, M, T> {
    fn drop(&mut self) {
        self.table.state().take(self.serial);
    }
}

impl<K: Eq + Hash, M, T> Default for PendingCalls<K, M, T> {
    fn default() -> Self {
        let state = State { calls: HashMap::new(), by_id: HashMap::new(), last_serial: 0, closed: false };
        PendingCalls { state: Mutex::new(state) }
    }
}

impl<K: Eq + Hash, M, T> PendingCalls<K, M, T> {
    fn state(&self) -> MutexGuard<'_, State<K, M, T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.state().closed
    }

    /// The number of calls in the table.
    pub(crate) fn len(&self) -> usize {
        self.state().calls.len()
    }

    /// Adds a call; `id` is none for a notification.
    pub(crate) fn register(&self, id: Option<K>, message: M) -> Result<Registered<'_, K, M, T>, RegisterError>
    where
        K: Clone,
    {
        let mut state = self.state();
        if state.closed {
            return Err(RegisterError::Closed);
        }
        if id.as_ref().is_some_and(|id| state.by_id.contains_key(id)) {
            return Err(RegisterError::DuplicateId);
        }
        state.last_serial = state.last_serial.wrapping_add(1);
        let serial = state.last_serial;
        if let Some(id) = id.clone() {
            state.by_id.insert(id, serial);
        }
        let (outcome, receiver) = oneshot::channel();
        state.calls.insert(serial, Call { id, message: Some(message), stage: CallStage::Queued, outcome });
        Ok((Registration { table: self, serial }, receiver))
    }

    /// Takes the message of a call for writing; none if the call was cancelled.
    pub(crate) fn start(&self, serial: u64) -> Option<M> {
        let mut state = self.state();
        let call = state.calls.get_mut(&serial)?;
        call.stage = CallStage::Writing;
        call.message.take()
    }

    /// Notes that the message was written; false if no reply follows, because it is a notification or was cancelled.
    pub(crate) fn written(&self, serial: u64) -> bool {
        let mut state = self.state();
        let Some(call) = state.calls.get_mut(&serial) else { return false };
        call.stage = CallStage::Written;
        call.id.is_some()
    }

    /// Settles the call that a reply belongs to; false if there is none. A reply to a call that was not sent yet is none.
    pub(crate) fn answer(&self, id: &K, outcome: impl FnOnce() -> T) -> bool {
        let call = {
            let mut state = self.state();
            let serial = state.by_id.get(id).copied();
            serial
                .filter(|serial| state.calls.get(serial).is_some_and(Call::is_started))
                .and_then(|serial| state.take(serial))
        };
        // Outside of the lock: reading the reply may take long.
        call.is_some_and(|call| call.outcome.send(outcome()).is_ok())
    }

    /// Settles the only call that waits for a reply, for a reply whose identifier could not be read. With several such calls it is
    /// unknown whose reply it was, and they keep waiting.
    #[cfg(feature = "stdio")]
    pub(crate) fn answer_only_call(&self, outcome: impl FnOnce() -> T) {
        let mut state = self.state();
        let mut started = state.calls.iter().filter(|(_, call)| call.is_started()).map(|(serial, _)| *serial);
        if let (Some(serial), None) = (started.next(), started.next()) {
            drop(started);
            if let Some(call) = state.take(serial) {
                let _ = call.outcome.send(outcome());
            }
        }
    }

    /// Settles one call, with or without a reply.
    pub(crate) fn settle(&self, serial: u64, outcome: T) {
        if let Some(call) = self.state().take(serial) {
            let _ = call.outcome.send(outcome);
        }
    }

    /// Closes the table and settles every call by its progress.
    pub(crate) fn close(&self, outcome: impl Fn(CallStage) -> T) {
        let calls = {
            let mut state = self.state();
            state.closed = true;
            state.by_id.clear();
            std::mem::take(&mut state.calls)
        };
        for call in calls.into_values() {
            let _ = call.outcome.send(outcome(call.stage));
        }
    }
}

impl<K: Eq + Hash, M, T> State<K, M, T> {
    fn take(&mut self, serial: u64) -> Option<Call<K, M, T>> {
        let call = self.calls.remove(&serial)?;
        if let Some(id) = &call.id {
            self.by_id.remove(id);
        }
        Some(call)
    }
}

impl<K, M, T> Call<K, M, T> {
    fn is_started(&self) -> bool {
        self.stage != CallStage::Queued
    }
}

#[cfg(test)]
mod tests;
