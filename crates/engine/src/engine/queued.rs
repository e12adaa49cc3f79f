//! Groups of records that are not decisions: queued in order of arrival under the lock, then waited for without it.

use std::time::Instant;

use proctor_core::record::Envelope;
use proctor_ledger::{NotRecorded, Pending, Receipt};

use super::reservation::AppendGuard;
use super::{Engine, QueueReservation, TRIES, Wait, waiting};

/// A queued group of records. Waiting for it succeeds only if all of them are committed.
pub struct QueuedRecords {
    records: Vec<RecordDraft>,
    pending: Vec<Pending>,
    deadline: Instant,
    refused: Option<NotRecorded>,
}

/// A record before it is queued.
#[derive(Debug, Clone)]
pub(super) struct RecordDraft {
    pub envelope: Envelope,
    pub body: Option<Vec<u8>>,
    /// Whether it links to the first record of its group, whose sequence number is known only once that is queued.
    pub about_first: bool,
}

impl RecordDraft {
    pub(super) fn new(envelope: Envelope, body: Option<Vec<u8>>) -> RecordDraft {
        RecordDraft { envelope, body, about_first: false }
    }

    pub(super) fn about_first(envelope: Envelope, body: Option<Vec<u8>>) -> RecordDraft {
        RecordDraft { envelope, body, about_first: true }
    }
}

impl Engine {
    /// Queues a group of records.
    pub(super) fn enqueue(&self, reservation: QueueReservation, records: Vec<RecordDraft>) -> QueuedRecords {
        let deadline = Instant::now() + self.answer;
        let mut queued = QueuedRecords { records, pending: Vec::new(), deadline, refused: None };
        self.enqueue_rest(reservation, &mut queued, 0, None);
        queued
    }

    /// [`Engine::enqueue`] for a caller that holds the lock.
    pub(super) fn enqueue_locked(
        &self,
        inner: &mut AppendGuard<'_>,
        records: Vec<RecordDraft>,
    ) -> QueuedRecords {
        let deadline = Instant::now() + self.answer;
        let mut queued = QueuedRecords { records, pending: Vec::new(), deadline, refused: None };
        self.enqueue_rest_locked(inner, &mut queued, 0, None);
        queued
    }

    /// Waits until the whole group is committed. Records that are refused as stale are queued again.
    pub async fn all_recorded(
        &self,
        mut queued: QueuedRecords,
        wait: Wait,
    ) -> Result<Vec<Receipt>, NotRecorded> {
        let mut receipts: Vec<Receipt> = Vec::with_capacity(queued.records.len());
        for _ in 0..TRIES * 3 {
            let mut problem = queued.refused.take();
            for pending in std::mem::take(&mut queued.pending) {
                match wait.recorded(pending, queued.deadline).await {
                    // After a failure nothing behind it counts: it is refused as stale, and tried again with it.
                    Ok(receipt) => receipts.push(receipt),
                    Err(refused) => {
                        problem = Some(refused);
                        break;
                    }
                }
            }
            match problem {
                None => return Ok(receipts),
                Some(NotRecorded::Stale) => {
                    let (done, first) = (receipts.len(), receipts.first().map(Receipt::seq));
                    let reservation = self.reserve_for(wait, queued.deadline).await?;
                    self.enqueue_rest(reservation, &mut queued, done, first);
                }
                Some(problem) => return Err(problem),
            }
        }
        Err(NotRecorded::Stale)
    }

    /// Queues a group of records and waits for it on the calling thread.
    pub(super) fn record_all(&self, records: Vec<RecordDraft>) -> Result<Vec<Receipt>, NotRecorded> {
        let reservation = self.reserve_blocking(self.due())?;
        waiting::block_on_ready(self.all_recorded(self.enqueue(reservation, records), Wait::Thread))
    }

    fn enqueue_rest(
        &self,
        reservation: QueueReservation,
        queued: &mut QueuedRecords,
        done: usize,
        first: Option<u64>,
    ) {
        let mut inner = match self.lock_for_append(reservation) {
            Ok(inner) => inner,
            Err(problem) => {
                queued.refused = Some(NotRecorded::Failed(problem.to_string()));
                return;
            }
        };
        self.enqueue_rest_locked(&mut inner, queued, done, first);
    }

    fn enqueue_rest_locked(
        &self,
        inner: &mut AppendGuard<'_>,
        queued: &mut QueuedRecords,
        done: usize,
        first: Option<u64>,
    ) {
        let first = first.unwrap_or(inner.next);
        for record in queued.records.iter().skip(done) {
            let mut envelope = record.envelope.clone();
            if record.about_first {
                envelope.links = vec![first];
            }
            let pending = self.append(inner, envelope, record.body.clone(), Some(queued.deadline));
            queued.pending.push(pending);
        }
    }
}
