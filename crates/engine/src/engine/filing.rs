//! Records that are not decisions: given their place in the queue in order of arrival, then waited for.

use std::time::Instant;

use proctor_core::record::Envelope;
use proctor_ledger::{NotRecorded, Pending, Receipt};

use super::room::Turn;
use super::{Engine, Room, TRIES, Wait, waiting};

/// Records that belong together: all of them are on record, or the caller hears that they are not.
pub struct Filing {
    records: Vec<Filed>,
    pending: Vec<Pending>,
    deadline: Instant,
    refused: Option<NotRecorded>,
}

/// One of them.
#[derive(Debug, Clone)]
pub(super) struct Filed {
    pub envelope: Envelope,
    pub body: Option<Vec<u8>>,
    /// Links to the first record of the filing, whose place is only known when it has one.
    pub about_first: bool,
}

impl Filed {
    pub(super) fn new(envelope: Envelope, body: Option<Vec<u8>>) -> Filed {
        Filed { envelope, body, about_first: false }
    }

    pub(super) fn about_first(envelope: Envelope, body: Option<Vec<u8>>) -> Filed {
        Filed { envelope, body, about_first: true }
    }
}

impl Engine {
    /// Gives records their places in the queue.
    pub(super) fn file(&self, room: Room, records: Vec<Filed>) -> Filing {
        let deadline = Instant::now() + self.answer;
        let mut filing = Filing { records, pending: Vec::new(), deadline, refused: None };
        self.place_after(room, &mut filing, 0, None);
        filing
    }

    /// [`Engine::file`] for a caller that holds the lock.
    pub(super) fn file_under(&self, inner: &mut Turn<'_>, records: Vec<Filed>) -> Filing {
        let deadline = Instant::now() + self.answer;
        let mut filing = Filing { records, pending: Vec::new(), deadline, refused: None };
        self.place_under(inner, &mut filing, 0, None);
        filing
    }

    /// Waits until all are on record. Those that were refused because the state did not hold are tried again.
    pub async fn filed(&self, mut filing: Filing, wait: Wait) -> Result<Vec<Receipt>, NotRecorded> {
        let mut receipts: Vec<Receipt> = Vec::with_capacity(filing.records.len());
        for _ in 0..TRIES * 3 {
            let mut problem = filing.refused.take();
            for pending in std::mem::take(&mut filing.pending) {
                match wait.recorded(pending, filing.deadline).await {
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
                    let room = self.room_for(wait, filing.deadline).await?;
                    self.place_after(room, &mut filing, done, first);
                }
                Some(problem) => return Err(problem),
            }
        }
        Err(NotRecorded::Stale)
    }

    /// Both at once, for a thread.
    pub(super) fn record_all(&self, records: Vec<Filed>) -> Result<Vec<Receipt>, NotRecorded> {
        let room = self.room_blocking(self.due())?;
        waiting::now(self.filed(self.file(room, records), Wait::Thread))
    }

    fn place_after(&self, room: Room, filing: &mut Filing, done: usize, first: Option<u64>) {
        let mut inner = match self.turn(room) {
            Ok(inner) => inner,
            Err(problem) => {
                filing.refused = Some(NotRecorded::Failed(problem.to_string()));
                return;
            }
        };
        self.place_under(&mut inner, filing, done, first);
    }

    fn place_under(&self, inner: &mut Turn<'_>, filing: &mut Filing, done: usize, first: Option<u64>) {
        let first = first.unwrap_or(inner.next);
        for record in filing.records.iter().skip(done) {
            let mut envelope = record.envelope.clone();
            if record.about_first {
                envelope.links = vec![first];
            }
            let pending = self.append(inner, envelope, record.body.clone(), Some(filing.deadline));
            filing.pending.push(pending);
        }
    }
}
