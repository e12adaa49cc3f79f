//! Reservations of ledger queue capacity, made before the engine's lock is taken: no caller waits for the writer while it holds the lock.

use std::ops::{Deref, DerefMut};
use std::sync::MutexGuard;
use std::time::Instant;

use proctor_ledger::{Capacity, NotRecorded, Permit, ReserveError};

use super::{Engine, EngineError, Inner, Wait};

/// The capacity that one request reserves: a decision appends at most three times (session, resumption, decision), a report a few times
/// more. The rest is given back as soon as the lock is released.
const REQUEST: Capacity = Capacity { drafts: 16, bytes: 16 << 10 };

/// A reservation of queue capacity for the records of one request. Reservations are granted in FIFO order.
#[derive(Debug)]
pub struct QueueReservation {
    permit: Permit,
}

/// The engine's lock, held together with the reserved capacity for the appends under it.
pub(super) struct AppendGuard<'a> {
    pub(super) inner: MutexGuard<'a, Inner>,
    pub(super) permit: Permit,
}

impl AppendGuard<'_> {
    /// Releases the lock and keeps the rest of the reservation.
    pub(super) fn release(self) -> QueueReservation {
        QueueReservation { permit: self.permit }
    }
}

impl Deref for AppendGuard<'_> {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl DerefMut for AppendGuard<'_> {
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.inner
    }
}

impl Engine {
    /// Reserves capacity for a request, waiting as a task. `None` if the deadline passes first, or the queue is closed.
    pub async fn reserve(&self, deadline: Instant) -> Option<QueueReservation> {
        let reserved = tokio::time::timeout_at(deadline.into(), self.ledger.reserve(REQUEST)).await;
        Some(QueueReservation { permit: reserved.ok()?.ok()? })
    }

    /// Reserves capacity for a request without waiting; an error if the queue is full.
    pub fn try_reserve(&self) -> Result<QueueReservation, EngineError> {
        let permit = self.ledger.try_reserve(REQUEST).map_err(NotRecorded::from)?;
        Ok(QueueReservation { permit })
    }

    /// Reserves capacity for a request, blocking the thread at most until the deadline.
    pub(super) fn reserve_blocking(&self, deadline: Instant) -> Result<QueueReservation, ReserveError> {
        Ok(QueueReservation { permit: self.ledger.reserve_until(REQUEST, Some(deadline))? })
    }

    /// Reserves capacity, waiting as a thread or as a task.
    pub(super) async fn reserve_for(
        &self,
        wait: Wait,
        deadline: Instant,
    ) -> Result<QueueReservation, NotRecorded> {
        match wait {
            Wait::Thread => self.reserve_blocking(deadline).map_err(NotRecorded::from),
            Wait::Task => self.reserve(deadline).await.ok_or(NotRecorded::Full),
        }
    }

    /// Takes the lock, with the state brought up to the ledger, for the holder of a reservation.
    pub(super) fn lock_for_append(
        &self,
        reservation: QueueReservation,
    ) -> Result<AppendGuard<'_>, EngineError> {
        Ok(AppendGuard { inner: self.lock()?, permit: reservation.permit })
    }

    /// The deadline of an answer that is asked for now.
    pub fn due(&self) -> Instant {
        Instant::now() + self.answer
    }
}
