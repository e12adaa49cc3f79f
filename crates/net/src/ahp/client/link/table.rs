//! Who waits for what on one connection.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use proctor_core::json::Json;
use tokio::sync::oneshot;

use super::super::error::AhpError;
use super::super::reply::Answer;
use super::Failure;

type Outcome = Result<Answer, Failure>;

/// The messages of one connection that are not settled.
#[derive(Default)]
pub(in super::super) struct Table {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    messages: HashMap<u64, Waiting>,
    /// Requests by their identifiers.
    requests: HashMap<String, u64>,
    last: u64,
    closed: bool,
}

struct Waiting {
    id: Option<String>,
    begun: bool,
    outcome: oneshot::Sender<Outcome>,
}

/// A message's place in the table; it is freed when this is dropped.
pub(in super::super) struct Registered<'a> {
    table: &'a Table,
    serial: u64,
}

impl Registered<'_> {
    pub(super) fn serial(&self) -> u64 {
        self.serial
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.table.state().take(self.serial);
    }
}

impl Table {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_open(&self) -> bool {
        !self.state().closed
    }

    pub(super) fn waiting(&self) -> usize {
        self.state().messages.len()
    }

    /// Takes a place; `id` is none for a notification.
    pub(super) fn register(
        &self,
        id: Option<&str>,
    ) -> Result<(Registered<'_>, oneshot::Receiver<Outcome>), Failure> {
        let mut state = self.state();
        if state.closed {
            return Err(Failure::NotSent);
        }
        state.last = state.last.wrapping_add(1);
        let serial = state.last;
        if let Some(id) = id {
            if state.requests.contains_key(id) {
                return Err(Failure::Failed(AhpError::InvalidId {
                    id: id.to_owned(),
                    problem: "another request with it waits for its answer",
                }));
            }
            state.requests.insert(id.to_owned(), serial);
        }
        let (outcome, receiver) = oneshot::channel();
        state.messages.insert(serial, Waiting { id: id.map(str::to_owned), begun: false, outcome });
        Ok((Registered { table: self, serial }, receiver))
    }

    /// Marks a message as on its way; false if nobody waits for it any more.
    pub(super) fn begin(&self, serial: u64) -> bool {
        self.state().messages.get_mut(&serial).map(|waiting| waiting.begun = true).is_some()
    }

    /// A message was written: a notification has nothing more to wait for.
    pub(super) fn written(&self, serial: u64) {
        let mut state = self.state();
        if state.messages.get(&serial).is_some_and(|waiting| waiting.id.is_none())
            && let Some(waiting) = state.take(serial)
        {
            let _ = waiting.outcome.send(Ok(Ok(Json::Null)));
        }
    }

    /// A reply came; `answer` is read only if somebody waits for it.
    pub(super) fn answer(&self, id: &str, answer: impl FnOnce() -> Answer) {
        let waiting = {
            let mut state = self.state();
            // A reply to what was not sent yet is no reply.
            let serial = state.requests.get(id).copied();
            serial
                .filter(|serial| state.messages.get(serial).is_some_and(|waiting| waiting.begun))
                .and_then(|serial| state.take(serial))
        };
        if let Some(waiting) = waiting {
            let _ = waiting.outcome.send(Ok(answer()));
        }
    }

    /// A message failed.
    pub(super) fn fail(&self, serial: u64, error: AhpError) {
        if let Some(waiting) = self.state().take(serial) {
            let _ = waiting.outcome.send(Err(Failure::Failed(error)));
        }
    }

    /// The connection ended: everybody who waits is told so.
    pub(super) fn close(&self) {
        let messages = {
            let mut state = self.state();
            state.closed = true;
            state.requests.clear();
            std::mem::take(&mut state.messages)
        };
        for waiting in messages.into_values() {
            let failure =
                if waiting.begun { Failure::Failed(AhpError::ConnectionClosed) } else { Failure::NotSent };
            let _ = waiting.outcome.send(Err(failure));
        }
    }
}

impl State {
    fn take(&mut self, serial: u64) -> Option<Waiting> {
        let waiting = self.messages.remove(&serial)?;
        if let Some(id) = &waiting.id {
            self.requests.remove(id);
        }
        Some(waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancelled_call_leaves_nothing_and_is_not_sent() {
        let table = Table::default();
        let (registered, _receiver) = table.register(Some("a")).unwrap();
        let serial = registered.serial();
        drop(registered);
        assert_eq!(table.waiting(), 0);
        assert!(!table.begin(serial));
        assert!(table.register(Some("a")).is_ok());
    }

    #[test]
    fn a_guard_does_not_free_a_later_call_with_the_same_id() {
        let table = Table::default();
        let (first, _) = table.register(Some("a")).unwrap();
        assert!(table.begin(first.serial()));
        table.answer("a", || Ok(Json::Bool(true)));
        let (_second, _receiver) = table.register(Some("a")).unwrap();
        drop(first);
        assert_eq!(table.waiting(), 1);
        assert!(matches!(table.register(Some("a")), Err(Failure::Failed(AhpError::InvalidId { .. }))));
    }

    #[test]
    fn the_end_tells_what_may_have_been_delivered() {
        let table = Table::default();
        let (begun, mut of_begun) = table.register(Some("a")).unwrap();
        let (_queued, mut of_queued) = table.register(None).unwrap();
        assert!(table.begin(begun.serial()));
        table.close();
        assert_eq!(of_begun.try_recv().unwrap(), Err(Failure::Failed(AhpError::ConnectionClosed)));
        assert_eq!(of_queued.try_recv().unwrap(), Err(Failure::NotSent));
        assert_eq!(table.waiting(), 0);
        assert!(matches!(table.register(Some("b")), Err(Failure::NotSent)));
    }
}
