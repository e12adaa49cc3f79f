//! Receipts, and the one-shot slot through which the writer answers a caller.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::Thread;
use std::time::Instant;

use proctor_core::id::RecordId;
use proctor_core::time::Timestamp;

use super::NotRecorded;

/// The proof, within this program, that a record is committed with the durability that the ledger was opened with.
///
/// Only the ledger can make one. A decision can only be answered with the receipt of its record: whatever builds
/// an answer other than deny takes a `Receipt` as argument, so that no path can answer first and record later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    seq: u64,
    id: RecordId,
    size: u64,
    time: Timestamp,
}

impl Receipt {
    pub(super) fn new(seq: u64, id: RecordId, size: u64, time: Timestamp) -> Receipt {
        Receipt { seq, id, size, time }
    }

    /// The record's sequence.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The record's identifier.
    pub fn id(&self) -> RecordId {
        self.id
    }

    /// The size of the ledger after the commit.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The record's time.
    pub fn time(&self) -> Timestamp {
        self.time
    }
}

/// A queued draft: a future, or a blocking wait, for its receipt.
///
/// Dropping it leaves the draft in the queue: it is recorded, but not reported. A task that stops awaiting
/// because the time to answer is over calls [`Pending::give_up`] where the caller is told something else than what the record says, and
/// [`Pending::leave`] where the record may stand.
#[derive(Debug)]
pub struct Pending {
    state: PendingState,
    deadline: Option<Instant>,
}

#[derive(Debug)]
enum PendingState {
    Refused(NotRecorded),
    Queued(Arc<Slot<Receipt>>),
}

impl Pending {
    /// A draft that was not even queued.
    pub fn refused(reason: NotRecorded) -> Pending {
        Pending { state: PendingState::Refused(reason), deadline: None }
    }

    pub(super) fn waiting(slot: Arc<Slot<Receipt>>, deadline: Option<Instant>) -> Pending {
        Pending { state: PendingState::Queued(slot), deadline }
    }

    /// Cause for which the draft was not queued at all; none if it was. Its effects hold for the next
    /// decision only once it has.
    pub fn refusal(&self) -> Option<&NotRecorded> {
        match &self.state {
            PendingState::Refused(reason) => Some(reason),
            PendingState::Queued(_) => None,
        }
    }

    /// Blocks until the draft is recorded or refused, at most until its deadline.
    pub fn wait(self) -> Result<Receipt, NotRecorded> {
        let deadline = self.deadline;
        self.wait_at_most(deadline)
    }

    /// Blocks until the draft is recorded or refused, at most until this moment.
    pub fn wait_until(self, deadline: Instant) -> Result<Receipt, NotRecorded> {
        self.wait_at_most(Some(deadline))
    }

    /// Stops waiting: the answer if there is one by now, else [`NotRecorded::Deadline`]. In the latter case the
    /// record, should it still be written, is followed by one that retracts it.
    pub fn give_up(self) -> Result<Receipt, NotRecorded> {
        match self.state {
            PendingState::Refused(reason) => Err(reason),
            PendingState::Queued(slot) => slot.give_up().unwrap_or(Err(NotRecorded::Deadline)),
        }
    }

    /// Stops waiting, and lets the record stand if it is written: the answer if there is one by now, else [`NotRecorded::Unknown`].
    pub fn leave(self) -> Result<Receipt, NotRecorded> {
        match self.state {
            PendingState::Refused(reason) => Err(reason),
            PendingState::Queued(slot) => slot.leave().unwrap_or(Err(NotRecorded::Unknown)),
        }
    }

    /// Blocks until the draft is recorded or refused, at most until this moment; then it is left.
    pub fn wait_or_leave(self, deadline: Instant) -> Result<Receipt, NotRecorded> {
        match self.state {
            PendingState::Refused(reason) => Err(reason),
            PendingState::Queued(slot) => {
                slot.wait_then(Some(deadline), Slot::leave).unwrap_or(Err(NotRecorded::Unknown))
            }
        }
    }

    fn wait_at_most(self, deadline: Option<Instant>) -> Result<Receipt, NotRecorded> {
        match self.state {
            PendingState::Refused(reason) => Err(reason),
            PendingState::Queued(slot) => slot.wait(deadline).unwrap_or(Err(NotRecorded::Deadline)),
        }
    }
}

impl Future for Pending {
    type Output = Result<Receipt, NotRecorded>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &self.state {
            PendingState::Refused(reason) => Poll::Ready(Err(reason.clone())),
            PendingState::Queued(slot) => slot.poll(context.waker()),
        }
    }
}

/// A one-shot channel for the writer's answer. Exactly one of two things happens: the answer is taken, or the
/// caller gives up before it is there.
#[derive(Debug)]
pub(super) struct Slot<T> {
    state: Mutex<SlotState<T>>,
}

#[derive(Debug)]
enum SlotState<T> {
    Waiting(Waiter),
    Answered(Result<T, NotRecorded>),
    GivenUp,
}

#[derive(Debug)]
enum Waiter {
    None,
    Thread(Thread),
    Task(Waker),
}

impl<T> Slot<T> {
    pub(super) fn new() -> Slot<T> {
        Slot { state: Mutex::new(SlotState::Waiting(Waiter::None)) }
    }

    fn lock(&self) -> MutexGuard<'_, SlotState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the answer and wakes the caller; false if the caller has given up.
    pub(super) fn answer(&self, answer: Result<T, NotRecorded>) -> bool {
        let mut state = self.lock();
        if matches!(*state, SlotState::GivenUp) {
            return false;
        }
        let before = std::mem::replace(&mut *state, SlotState::Answered(answer));
        drop(state);
        match before {
            SlotState::Waiting(Waiter::Thread(thread)) => thread.unpark(),
            SlotState::Waiting(Waiter::Task(waker)) => waker.wake(),
            _ => {}
        }
        true
    }

    /// Whether the caller has given up.
    pub(super) fn is_given_up(&self) -> bool {
        matches!(*self.lock(), SlotState::GivenUp)
    }

    /// Blocks until the answer is there; none if the deadline passes before, and then it has been given up.
    pub(super) fn wait(&self, deadline: Option<Instant>) -> Option<Result<T, NotRecorded>> {
        self.wait_then(deadline, Slot::give_up)
    }

    /// Blocks until the answer is there; if the deadline passes before, it is left or given up.
    fn wait_then(
        &self,
        deadline: Option<Instant>,
        end: impl FnOnce(&Slot<T>) -> Option<Result<T, NotRecorded>>,
    ) -> Option<Result<T, NotRecorded>> {
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return end(self);
            }
            {
                let mut state = self.lock();
                if !matches!(*state, SlotState::Waiting(_)) {
                    return take(&mut state);
                }
                *state = SlotState::Waiting(Waiter::Thread(std::thread::current()));
            }
            match left {
                Some(left) => std::thread::park_timeout(left),
                None => std::thread::park(),
            }
        }
    }

    /// The answer if it is there. If not, it will be refused.
    pub(super) fn give_up(&self) -> Option<Result<T, NotRecorded>> {
        take(&mut self.lock())
    }

    /// Takes the answer if it has arrived; a later one will be dropped.
    fn leave(&self) -> Option<Result<T, NotRecorded>> {
        let mut state = self.lock();
        if let SlotState::Waiting(waiter) = &mut *state {
            *waiter = Waiter::None;
            return None;
        }
        take(&mut state)
    }

    pub(super) fn poll(&self, waker: &Waker) -> Poll<Result<T, NotRecorded>> {
        let mut state = self.lock();
        match &mut *state {
            SlotState::Waiting(Waiter::Task(known)) if known.will_wake(waker) => Poll::Pending,
            SlotState::Waiting(waiter) => {
                *waiter = Waiter::Task(waker.clone());
                Poll::Pending
            }
            _ => Poll::Ready(take(&mut state).unwrap_or(Err(NotRecorded::Deadline))),
        }
    }
}

/// Takes the answer if it has arrived, and ends the waiting.
fn take<T>(state: &mut SlotState<T>) -> Option<Result<T, NotRecorded>> {
    match std::mem::replace(state, SlotState::GivenUp) {
        SlotState::Answered(answer) => Some(answer),
        SlotState::Waiting(_) | SlotState::GivenUp => None,
    }
}
