//! Capacity of the ledger's queue, reserved before the engine's lock is taken: nobody waits for the writer while others cannot decide.

use std::ops::{Deref, DerefMut};
use std::sync::MutexGuard;
use std::time::Instant;

use proctor_ledger::{Capacity, NotRecorded, Permit, ReserveError};

use super::{Engine, EngineError, Inner, Wait};

/// The capacity that one request reserves: a decision appends at most three times (session, resumption, decision), a report a few times
/// more. The rest is given back as soon as the lock is released.
const REQUEST: Capacity = Capacity { drafts: 16, bytes: 16 << 10 };

/// The right to append the records of one request at once. Callers get it in the order in which they ask.
#[derive(Debug)]
pub struct Room {
    permit: Permit,
}

/// The engine's lock, together with the capacity that is needed to append under it.
pub(super) struct Turn<'a> {
    pub(super) inner: MutexGuard<'a, Inner>,
    pub(super) permit: Permit,
}

impl Turn<'_> {
    /// Releases the lock, and keeps what is left of the room.
    pub(super) fn release(self) -> Room {
        Room { permit: self.permit }
    }
}

impl Deref for Turn<'_> {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl DerefMut for Turn<'_> {
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.inner
    }
}

impl Engine {
    /// Waits, as a task, until the ledger's queue has room for a request. None if it does not before the deadline, or is closed.
    pub async fn room(&self, deadline: Instant) -> Option<Room> {
        let reserved = tokio::time::timeout_at(deadline.into(), self.ledger.reserve(REQUEST)).await;
        Some(Room { permit: reserved.ok()?.ok()? })
    }

    /// Room for a request, if the queue has some at once.
    pub fn room_now(&self) -> Result<Room, EngineError> {
        let permit = self.ledger.try_reserve(REQUEST).map_err(NotRecorded::from)?;
        Ok(Room { permit })
    }

    /// Blocks the thread until the ledger's queue has room for a request, at most until the deadline.
    pub(super) fn room_blocking(&self, deadline: Instant) -> Result<Room, ReserveError> {
        Ok(Room { permit: self.ledger.reserve_until(REQUEST, Some(deadline))? })
    }

    /// Waits for room as the caller waits.
    pub(super) async fn room_for(&self, wait: Wait, deadline: Instant) -> Result<Room, NotRecorded> {
        match wait {
            Wait::Thread => self.room_blocking(deadline).map_err(NotRecorded::from),
            Wait::Task => self.room(deadline).await.ok_or(NotRecorded::Full),
        }
    }

    /// Takes the lock, with the state as the ledger has it, for a caller that has room.
    pub(super) fn turn(&self, room: Room) -> Result<Turn<'_>, EngineError> {
        Ok(Turn { inner: self.lock()?, permit: room.permit })
    }

    /// The deadline of an answer that is asked for now.
    pub fn due(&self) -> Instant {
        Instant::now() + self.answer
    }
}
