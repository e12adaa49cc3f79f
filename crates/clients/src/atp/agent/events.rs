//! Events of an execution, on their way to the caller.

use std::sync::{Arc, Mutex, PoisonError};

use proctor_core::time::Clock;
use proctor_wire::atp::limits::MAX_MESSAGE;
use proctor_wire::atp::{Event, Payload};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Events that wait for the transport; then the agent waits.
const UNSENT: usize = 64;

/// Sender of the events of one execution. Clones share its sequence.
#[derive(Clone)]
pub struct Events {
    sender: Sender<String>,
    shared: Arc<Shared>,
}

struct Shared {
    task_id: String,
    clock: Arc<dyn Clock>,
    next_sequence: Mutex<u64>,
}

/// An event that was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// The execution has ended, or its caller has gone away.
    #[error("nobody receives the events of this execution any more")]
    Closed,
    /// The event is longer than a message may be.
    #[error("an event is at most {MAX_MESSAGE} bytes long")]
    TooLong,
}

impl Events {
    pub(super) fn new(task_id: &str, clock: Arc<dyn Clock>) -> (Events, Receiver<String>) {
        let (sender, receiver) = channel(UNSENT);
        let shared = Shared { task_id: task_id.to_owned(), clock, next_sequence: Mutex::new(0) };
        (Events { sender, shared: Arc::new(shared) }, receiver)
    }

    /// Sends an event, with the next sequence number and the present time. Waits while the caller reads more slowly than the agent
    /// sends.
    pub async fn send(&self, payload: &Payload<'_>) -> Result<(), EventError> {
        let permit = self.sender.reserve().await.map_err(|_| EventError::Closed)?;
        let shared = &self.shared;
        // Held until the event is in the queue: two tasks that send at once do so in the order of their numbers.
        let mut sequence = shared.next_sequence.lock().unwrap_or_else(PoisonError::into_inner);
        let event = Event::new(&shared.task_id, *sequence, shared.clock.now(), payload);
        let text = event.to_string();
        if text.len() > MAX_MESSAGE {
            return Err(EventError::TooLong);
        }
        *sequence += 1;
        permit.send(text);
        Ok(())
    }
}
