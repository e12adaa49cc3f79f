//! The writer: a bounded queue, one writer thread, and group commit.
//!
//! An append encodes and hashes its record on the caller's thread and queues it. The writer thread takes what is queued,
//! gives each record its sequence, commits the batch in one transaction, and answers the callers. A full queue is
//! backpressure, and there are three ways to meet it:
//!
//! | | When the queue is full |
//! |---|---|
//! | [`Ledger::append`] and its variants | block until the draft's deadline |
//! | [`Ledger::try_append`], [`Ledger::try_append_together`] | refuse at once with [`ReserveError::Full`] |
//! | [`Ledger::reserve`], then [`Ledger::append_reserved`] | waits for a [`Permit`] first, as a future; the append itself never waits |
//!
//! Callers that wait are served in order, blocking ones and futures alike; [`Ledger::finish`] wakes all of them.

mod entry;
mod opening;
mod pending;
mod permit;
mod plan;
mod queue;
mod tree;
mod worker;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use proctor_core::random::Randomness;
use proctor_core::record::{Envelope, LeafError, MAX_LEAF, RecordKind, body_digest};
use proctor_core::time::Clock;

use crate::error::{OpenError, ReadError};
use crate::keys::{SecretKey, VerifierKey};
use crate::lock::OwnerLock;
use crate::merkle::leaf_hash;
use crate::note::{Note, NoteSignature};
use crate::reader::{CommittedSize, Reader};
use crate::store::{Durability, SqliteStore, Store, StoredBody};

pub(crate) use opening::read_checkpoint;
pub use pending::{Pending, Receipt};
pub use permit::{Capacity, Permit, Reserve, ReserveError};
pub use queue::Wake;
pub(crate) use tree::{Tree, tile_bytes};

use entry::{Entry, Item, PreparedRecord};
use pending::Slot;
use permit::Reservation;
use queue::Queue;
use worker::Worker;

/// The most bytes that a body may have.
pub const MAX_BODY: usize = 16 << 20;

/// The most bytes that a `once` key may have. Keys that are made from claimed texts stay far below it, because those are
/// truncated to [`MAX_CLAIMED`](proctor_core::record::MAX_CLAIMED) bytes.
pub const MAX_ONCE: usize = 4096;

/// A record to be appended.
#[derive(Debug)]
pub struct Draft {
    /// The envelope. The ledger fills in the body's digest.
    pub envelope: Envelope,
    /// The body, which is stored beside the envelope and can be erased.
    pub body: Option<Vec<u8>>,
    /// Rows of derived state, written in the same transaction.
    pub rows: Vec<StateRow>,
    /// The moment after which the caller is answered without a record, so that it must not be written any more.
    pub deadline: Option<Instant>,
    /// The sequence that the rows were made for. A draft that would get another one is refused as stale.
    pub seq: Option<u64>,
}

impl Draft {
    /// A draft of an envelope without body, rows and deadline.
    pub fn new(envelope: Envelope) -> Draft {
        Draft { envelope, body: None, rows: Vec::new(), deadline: None, seq: None }
    }
}

/// A row of state that is derived from records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateRow {
    /// The fold that the row belongs to.
    pub fold: &'static str,
    /// The key in the fold.
    pub key: String,
    /// The value; `None` deletes the row.
    pub value: Option<Vec<u8>>,
}

/// Error of recording a draft. Only a deny can be answered without a receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotRecorded {
    /// The deadline passed before the draft was written.
    Deadline,
    /// Writing failed, or the draft cannot be a record.
    Failed(String),
    /// A record with the same `once` key exists.
    Once {
        /// The sequence of that record.
        first: u64,
    },
    /// The queue stayed full until the deadline.
    Full,
    /// The ledger is closed.
    Closed,
    /// The deadline passed while the outcome was not known yet. The draft may be on record; the caller left it there.
    Unknown,
    /// A draft before it failed, on whose effects this one may build: reload the state and decide again.
    Stale,
}

impl NotRecorded {
    /// The cause as a clause of its own, for messages that already say that a write failed.
    pub fn cause(&self) -> String {
        match self {
            NotRecorded::Deadline => "the time to answer was over".to_owned(),
            NotRecorded::Failed(reason) => reason.clone(),
            NotRecorded::Once { first } => format!("record {first} has the same `once` key"),
            NotRecorded::Full => "the ledger could not keep up until the time to answer was over".to_owned(),
            NotRecorded::Closed => "the ledger is closed".to_owned(),
            NotRecorded::Unknown => {
                "it is not known whether this was recorded: the time to answer was over".to_owned()
            }
            NotRecorded::Stale => "a record before it failed".to_owned(),
        }
    }
}

impl std::fmt::Display for NotRecorded {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotRecorded::Unknown => formatter.write_str(&self.cause()),
            _ => write!(formatter, "not recorded: {}", self.cause()),
        }
    }
}

impl std::error::Error for NotRecorded {}

/// Key, clock, randomness and limits of a ledger.
pub struct Options {
    /// The ledger's key, which signs checkpoints. Its name is the ledger's origin.
    pub key: SecretKey,
    /// The clock for retraction and gap records, and for the age of checkpoints.
    pub clock: Arc<dyn Clock>,
    /// The source of salts and of the ids of retraction and gap records.
    pub randomness: Arc<dyn Randomness>,
    /// The durability that a receipt stands for.
    pub durability: Durability,
    /// The most drafts in the queue.
    pub queue_drafts: usize,
    /// The most bytes in the queue.
    pub queue_bytes: usize,
    /// The most drafts in a commit.
    pub batch_records: usize,
    /// The most bytes in a commit.
    pub batch_bytes: usize,
    /// Bytes of the database that the writer keeps in memory.
    pub cache_bytes: usize,
}

/// Bytes of the database in memory: the pages that a busy server writes to in turn.
const DEFAULT_CACHE_BYTES: usize = 32 << 20;

impl Options {
    /// The default limits: a queue of 4096 drafts or 64 MiB, commits of 2048 drafts or 8 MiB, and a cache of 32 MiB.
    pub fn new(key: SecretKey, clock: Arc<dyn Clock>, randomness: Arc<dyn Randomness>) -> Options {
        Options {
            key,
            clock,
            randomness,
            durability: Durability::Process,
            queue_drafts: 4096,
            queue_bytes: 64 << 20,
            batch_records: 2048,
            batch_bytes: 8 << 20,
            cache_bytes: DEFAULT_CACHE_BYTES,
        }
    }
}

/// A ledger that this process owns and writes to.
///
/// Drafts are committed in the order in which they were queued. When a *stateful* draft (one with state rows, or one that
/// was appended for a generation) is not recorded, every stateful draft behind it is refused as
/// [`NotRecorded::Stale`], because it may depend on effects that never happened. [`Ledger::generation`] changes then,
/// which tells the owner of the in-memory state to load it again from its rows.
pub struct Ledger {
    queue: Arc<Queue>,
    store: Arc<dyn Store>,
    committed: Arc<CommittedSize>,
    randomness: Arc<dyn Randomness>,
    key: VerifierKey,
    worker: Arc<Mutex<Worker>>,
    durability: Durability,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Dropped after the writer has ended.
    _lock: Option<OwnerLock>,
}

impl Ledger {
    /// Opens the ledger in a state directory, or makes it: takes the ownership, checks what is stored, and starts
    /// the writer. Nothing is written if something is wrong.
    pub fn open(dir: &Path, options: Options) -> Result<Ledger, OpenError> {
        let lock = opening::prepare(dir, &options)?;
        let store = SqliteStore::open(dir, options.durability)?;
        store.limit_cache(options.cache_bytes)?;
        Ledger::start(Arc::new(store), options, Some(lock))
    }

    /// Opens a ledger that is kept in `store`. The caller sees to it that there is no other writer.
    pub fn with_store(store: Arc<dyn Store>, options: Options) -> Result<Ledger, OpenError> {
        Ledger::start(store, options, None)
    }

    fn start(store: Arc<dyn Store>, options: Options, lock: Option<OwnerLock>) -> Result<Ledger, OpenError> {
        let start = opening::check(store.reader().as_ref(), options.key.verifier_key())?;
        let committed = Arc::new(CommittedSize::new(start.tree.size()));
        let queue = Arc::new(Queue::new(&options));
        let (randomness, key) = (Arc::clone(&options.randomness), options.key.verifier_key().clone());
        let durability = options.durability;
        let worker =
            Worker::new(Arc::clone(&queue), Arc::clone(&store), Arc::clone(&committed), start, options);
        let worker = Arc::new(Mutex::new(worker));
        let (shared, waiting, growing) = (Arc::clone(&worker), Arc::clone(&queue), Arc::clone(&committed));
        let thread = std::thread::Builder::new()
            .name("ledger-writer".to_owned())
            .spawn(move || worker::run(&shared, &waiting, &growing))
            .map_err(|source| OpenError::Io { path: "thread `ledger-writer`".into(), source })?;
        let thread = Mutex::new(Some(thread));
        Ok(Ledger { queue, store, committed, randomness, key, worker, durability, thread, _lock: lock })
    }

    /// Appends a record. Blocks while the queue is full, at most until the draft's deadline.
    pub fn append(&self, draft: Draft) -> Pending {
        self.enqueue(draft, None, None)
    }

    /// Appends a record that was decided on the state of this generation; refused if it is not the present one.
    pub fn append_after(&self, generation: u64, draft: Draft) -> Pending {
        self.enqueue(draft, Some(generation), None)
    }

    /// Appends a record for a generation, and `trailing` records that get the next sequences: all of them are committed,
    /// or none. The receipt is the first one's, and only that one is retracted if its caller gives up. Deadlines and
    /// sequences of the trailing drafts are ignored.
    pub fn append_together(&self, generation: u64, draft: Draft, trailing: Vec<Draft>) -> Pending {
        self.enqueue_together(draft, trailing, Some(generation), None, Wake::Writer)
    }

    /// [`Ledger::append_together`] without waking the writer: the caller calls [`Ledger::commit_inline`] next.
    pub fn append_without_wake(&self, generation: u64, draft: Draft, trailing: Vec<Draft>) -> Pending {
        self.enqueue_together(draft, trailing, Some(generation), None, Wake::Deferred)
    }

    /// Appends a record if the queue has free capacity and no waiting reservation.
    pub fn try_append(&self, draft: Draft) -> Result<Pending, ReserveError> {
        self.try_enqueue(draft, Vec::new(), None)
    }

    /// [`Ledger::append_together`] if the queue has free capacity and no waiting reservation.
    pub fn try_append_together(
        &self,
        generation: u64,
        draft: Draft,
        trailing: Vec<Draft>,
    ) -> Result<Pending, ReserveError> {
        self.try_enqueue(draft, trailing, Some(generation))
    }

    /// Waits for capacity of the queue, as a future. A caller that holds a lock while it appends reserves before it locks.
    pub fn reserve(&self, wanted: Capacity) -> Reserve {
        Reserve::new(Arc::clone(&self.queue), wanted)
    }

    /// Reserves capacity if it is free and no reservation waits.
    pub fn try_reserve(&self, wanted: Capacity) -> Result<Permit, ReserveError> {
        self.queue.try_reserve(wanted.drafts, wanted.cost())
    }

    /// Blocks until capacity is reserved, at most until the deadline; then the error is [`ReserveError::Full`].
    pub fn reserve_until(&self, wanted: Capacity, deadline: Option<Instant>) -> Result<Permit, ReserveError> {
        match self.queue.reserve_or_join(wanted.drafts, wanted.cost())? {
            Reservation::Granted(permit) => Ok(permit),
            Reservation::Queued(waiter) => waiter.wait(&self.queue, deadline),
        }
    }

    /// [`Ledger::append_together`] on reserved capacity: never blocks. A permit without drafts left, or of another ledger,
    /// adds nothing; then this is [`Ledger::try_append_together`].
    pub fn append_reserved(
        &self,
        permit: &mut Permit,
        generation: u64,
        draft: Draft,
        trailing: Vec<Draft>,
        wake: Wake,
    ) -> Result<Pending, ReserveError> {
        if permit.drafts() == 0 || !permit.is_of(&self.queue) {
            return self.try_append_together(generation, draft, trailing);
        }
        Ok(self.queue_entry(draft, trailing, Some(generation), None, |entry| {
            self.queue.push_reserved(permit, entry, Some(generation), wake)
        }))
    }

    /// Commits the queue on the calling thread, unless another thread is committing: for a small commit this is faster than
    /// waking the writer. Where a commit waits for the disk, the writer is woken instead.
    pub fn commit_inline(&self) {
        match self.durability {
            Durability::Process => worker::commit_inline(&self.worker, &self.queue),
            Durability::Power => self.queue.wake_if_not_empty(),
        }
    }

    /// The generation of the state: a number that changes whenever a stateful draft was not recorded.
    pub fn generation(&self) -> u64 {
        self.queue.generation()
    }

    /// Whether a draft would be queued without waiting. The answer may be outdated at once; [`Ledger::reserve`] gives one
    /// that holds.
    pub fn has_room(&self) -> bool {
        self.queue.has_room()
    }

    /// Counts a deny that was answered without a record. The count is written as a `gap` record with the next commit.
    pub fn note_unrecorded(&self) {
        self.queue.note_unrecorded(1);
    }

    /// Counts several such denies, which another process answered.
    pub fn note_unrecorded_many(&self, count: u64) {
        self.queue.note_unrecorded(count);
    }

    /// Whether records can be written: the ledger is open, and its files are those that were opened.
    pub fn check(&self) -> Result<(), NotRecorded> {
        if self.is_closed() {
            return Err(NotRecorded::Closed);
        }
        self.store.check_files().map_err(|error| NotRecorded::Failed(error.to_string()))
    }

    /// Whether the ledger is finished: nothing can be appended any more, and denies are not counted.
    pub fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }

    /// The number of denies that were answered without a record and that no `gap` record counts yet.
    pub fn unrecorded(&self) -> u64 {
        self.queue.unrecorded()
    }

    /// Retracts committed records whose callers were told deny because the answers did not reach them in time. Returns once the
    /// `retracted` records are committed; after an error they follow with a later commit.
    pub fn retract(&self, seqs: Vec<u64>) -> Result<(), NotRecorded> {
        if seqs.is_empty() {
            return Ok(());
        }
        let slot = Arc::new(Slot::new());
        self.queue.push_control(Item::Retract { seqs, slot: Arc::clone(&slot) })?;
        slot.wait(None).unwrap_or(Err(NotRecorded::Closed))
    }

    /// The durability that the ledger was opened with.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// Erases the body of a record: salt and bytes are deleted in the transaction that writes `envelope`, which is
    /// of kind erasure and links to the record.
    pub fn erase(&self, seq: u64, envelope: Envelope) -> Pending {
        self.erase_with(seq, envelope, |entry| self.queue.push(entry, None, Wake::Writer))
    }

    /// [`Ledger::erase`] on reserved capacity: never blocks.
    pub fn erase_reserved(&self, permit: &mut Permit, seq: u64, envelope: Envelope) -> Pending {
        self.erase_with(seq, envelope, |entry| self.queue.push_reserved(permit, entry, None, Wake::Writer))
    }

    fn erase_with(
        &self,
        seq: u64,
        envelope: Envelope,
        push: impl FnOnce(Box<Entry>) -> Result<(), NotRecorded>,
    ) -> Pending {
        if envelope.kind != RecordKind::Erasure || envelope.links != [seq] {
            let reason =
                format!("an erasure record of body {seq} must be of kind `erasure` and link to {seq} alone");
            return Pending::refused(NotRecorded::Failed(reason));
        }
        match self.store.reader().body(seq) {
            Ok(Some(_)) => self.queue_entry(Draft::new(envelope), Vec::new(), None, Some(seq), push),
            Ok(None) => Pending::refused(NotRecorded::Failed(format!(
                "record {seq} has no body, or it is erased already"
            ))),
            Err(error) => Pending::refused(NotRecorded::Failed(error.to_string())),
        }
    }

    /// Signs the present size, after everything that is queued, and returns the note. It is on the disk before it
    /// is returned, whatever the durability: a checkpoint that others have seen cannot be taken back.
    pub fn checkpoint(&self) -> Result<String, NotRecorded> {
        let slot = Arc::new(Slot::new());
        self.queue.push_control(Item::Checkpoint(Arc::clone(&slot)))?;
        slot.wait(None).unwrap_or(Err(NotRecorded::Closed))
    }

    /// Adds a witness's cosignature to the stored checkpoint of this size, and returns the note.
    pub fn add_cosignature(
        &self,
        size: u64,
        signature: NoteSignature,
        witness: &VerifierKey,
    ) -> Result<String, NotRecorded> {
        let stored =
            self.reader().checkpoint(size).map_err(|error| NotRecorded::Failed(error.to_string()))?;
        let text =
            stored.ok_or_else(|| NotRecorded::Failed(format!("there is no checkpoint of {size} records")))?;
        let invalid = |error: crate::note::NoteError| NotRecorded::Failed(error.to_string());
        let mut note = Note::parse(text.as_bytes()).map_err(invalid)?;
        note.add(signature.clone()).map_err(invalid)?;
        note.verify_cosignature(witness).map_err(invalid)?;
        let slot = Arc::new(Slot::new());
        self.queue.push_control(Item::Cosign { size, signature, slot: Arc::clone(&slot) })?;
        slot.wait(None).unwrap_or(Err(NotRecorded::Closed))
    }

    /// A reader of the committed records: each one is visible before its receipt is.
    pub fn reader(&self) -> Reader {
        Reader::of_owner(self.store.reader(), Arc::clone(&self.committed))
    }

    /// The ledger's verifier key.
    pub fn key(&self) -> &VerifierKey {
        &self.key
    }

    /// Writes everything that is queued and signs a last checkpoint. After that nothing can be appended any more.
    pub fn finish(&self) {
        self.queue.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A writer that panicked has refused everything queued; there is nobody left to tell here.
            let _ = thread.join();
        }
    }

    /// Writes all queued drafts, signs a last checkpoint, and releases the ownership.
    pub fn close(self) {
        drop(self);
    }

    fn enqueue(&self, draft: Draft, after: Option<u64>, erase: Option<u64>) -> Pending {
        self.enqueue_together(draft, Vec::new(), after, erase, Wake::Writer)
    }

    fn enqueue_together(
        &self,
        draft: Draft,
        trailing: Vec<Draft>,
        after: Option<u64>,
        erase: Option<u64>,
        wake: Wake,
    ) -> Pending {
        self.queue_entry(draft, trailing, after, erase, |entry| self.queue.push(entry, after, wake))
    }

    fn try_enqueue(
        &self,
        draft: Draft,
        trailing: Vec<Draft>,
        after: Option<u64>,
    ) -> Result<Pending, ReserveError> {
        let mut refusal = None;
        let pending = self.queue_entry(draft, trailing, after, None, |entry| {
            let mut permit =
                self.queue.try_reserve(1, entry.cost()).inspect_err(|error| refusal = Some(*error))?;
            self.queue.push_reserved(&mut permit, entry, after, Wake::Writer)
        });
        refusal.map_or(Ok(pending), Err)
    }

    /// Prepares the drafts and hands the entry to `push`.
    fn queue_entry(
        &self,
        draft: Draft,
        trailing: Vec<Draft>,
        after: Option<u64>,
        erase: Option<u64>,
        push: impl FnOnce(Box<Entry>) -> Result<(), NotRecorded>,
    ) -> Pending {
        let (deadline, seq) = (draft.deadline, draft.seq);
        let prepared = self.prepare(draft).and_then(|record| {
            let trailing =
                trailing.into_iter().map(|draft| self.prepare(draft)).collect::<Result<Vec<_>, _>>()?;
            Ok((record, trailing))
        });
        let (record, trailing) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Pending::refused(NotRecorded::Failed(error.to_string())),
        };
        let has_rows = !record.rows.is_empty() || trailing.iter().any(|record| !record.rows.is_empty());
        let slot = Arc::new(Slot::new());
        let entry = Box::new(Entry {
            record,
            trailing,
            erase,
            deadline,
            seq,
            stateful: after.is_some() || has_rows,
            generation: 0,
            slot: Arc::clone(&slot),
        });
        match push(entry) {
            Ok(()) => Pending::waiting(slot, deadline),
            Err(reason) => Pending::refused(reason),
        }
    }

    /// Encodes and hashes a record on the caller's thread, so that the single writer does only what needs the sequence.
    fn prepare(&self, draft: Draft) -> Result<PreparedRecord, InvalidDraft> {
        let Draft { mut envelope, body, rows, .. } = draft;
        if envelope.once.as_ref().is_some_and(|key| key.len() > MAX_ONCE) {
            return Err(InvalidDraft::OnceTooLong);
        }
        let body = match body {
            Some(bytes) if bytes.len() > MAX_BODY => {
                return Err(InvalidDraft::BodyTooLarge(bytes.len()));
            }
            Some(bytes) => {
                let mut salt = [0; 32];
                self.randomness.fill(&mut salt);
                envelope.body = Some(body_digest(&salt, &bytes));
                Some(StoredBody { salt, bytes })
            }
            None => {
                envelope.body = None;
                None
            }
        };
        let leaf = envelope.to_leaf()?;
        debug_assert!(leaf.len() <= MAX_LEAF, "the leaf's own limit");
        let hash = leaf_hash(&leaf);
        Ok(PreparedRecord { envelope, leaf, hash, body, rows })
    }
}

/// Error of turning a draft into a record.
#[derive(Debug, thiserror::Error)]
enum InvalidDraft {
    #[error("the `once` key has more than {MAX_ONCE} bytes")]
    OnceTooLong,
    #[error("the body has {0} bytes; at most {MAX_BODY} can be stored")]
    BodyTooLarge(usize),
    #[error(transparent)]
    Leaf(#[from] LeafError),
}

impl Drop for Ledger {
    fn drop(&mut self) {
        self.finish();
    }
}

impl From<ReadError> for NotRecorded {
    fn from(error: ReadError) -> NotRecorded {
        NotRecorded::Failed(error.to_string())
    }
}
