//! Writing: one owner, one writer thread, many records to a commit.

mod opening;
mod pending;
mod plan;
mod queue;
mod tree;
mod worker;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use proctor_core::random::Randomness;
use proctor_core::record::{Envelope, MAX_LEAF, RecordKind, body_digest};
use proctor_core::time::Clock;

use crate::error::{OpenError, ReadError};
use crate::keys::{SecretKey, VerifierKey};
use crate::lock::OwnerLock;
use crate::merkle::leaf_hash;
use crate::note::{Note, NoteSignature};
use crate::reader::{Growth, Reader};
use crate::store::{Durability, SqliteStore, Store, StoredBody};

pub(crate) use opening::read_checkpoint;
pub use pending::{Pending, Receipt};
pub(crate) use tree::{Tree, tile_bytes};

use pending::Slot;
use queue::{Entry, Item, Queue, Ready, Wake};
use worker::Worker;

/// The most bytes that a body may have.
pub const MAX_BODY: usize = 16 << 20;

/// The most bytes that a once key may have; what is made from claimed texts is cut long before.
pub const MAX_ONCE: usize = 4096;

/// A record that is to be appended.
#[derive(Debug)]
pub struct Draft {
    /// What is recorded. The ledger fills in the body's digest.
    pub envelope: Envelope,
    /// What is stored beside it and can be erased.
    pub body: Option<Vec<u8>>,
    /// State that follows from it, written in the same transaction.
    pub rows: Vec<StateRow>,
    /// When its caller has to answer. After that it is not recorded.
    pub deadline: Option<Instant>,
    /// The sequence that its rows were made for. If it would get another one it is refused as stale.
    pub seq: Option<u64>,
}

impl Draft {
    /// A draft of an envelope alone.
    pub fn new(envelope: Envelope) -> Draft {
        Draft { envelope, body: None, rows: Vec::new(), deadline: None, seq: None }
    }
}

/// A row of state that is derived from records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateRow {
    /// Which fold it belongs to.
    pub fold: &'static str,
    /// Its key in the fold.
    pub key: String,
    /// Its value; `None` deletes it.
    pub value: Option<Vec<u8>>,
}

/// Why a draft was not recorded. Only a deny can be answered without a receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotRecorded {
    /// The deadline passed before the draft was written.
    Deadline,
    /// Writing failed, or the draft cannot be a record.
    Failed(String),
    /// There is a record with the same `once` key.
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
    /// The cause as a clause of its own, for messages that already say that something was not recorded.
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

/// Tells what state rows follow from a retraction: the ledger stores rows, but does not know what they mean.
pub trait Retract: Send {
    /// The rows that undo what the record `seq` did, given the rows as they are.
    fn rows(
        &self,
        seq: u64,
        envelope: &Envelope,
        state: &dyn Fn(&str, &str) -> Option<Vec<u8>>,
    ) -> Vec<StateRow>;
}

/// How a ledger is opened.
pub struct Options {
    /// The ledger's key, which signs checkpoints. Its name is the ledger's origin.
    pub key: SecretKey,
    /// Where the ledger's own records get their time from.
    pub clock: Arc<dyn Clock>,
    /// Where salts and the ledger's own identifiers come from.
    pub randomness: Arc<dyn Randomness>,
    /// What a receipt promises.
    pub durability: Durability,
    /// What state rows follow when a record is retracted; none if absent.
    pub retract: Option<Box<dyn Retract>>,
    /// Drafts that may wait.
    pub queue_drafts: usize,
    /// Bytes of drafts that may wait.
    pub queue_bytes: usize,
    /// Records to a commit.
    pub batch_records: usize,
    /// Bytes to a commit.
    pub batch_bytes: usize,
}

impl Options {
    /// The usual bounds: 4096 drafts or 64 MiB wait, 2048 records or 8 MiB are committed at once.
    pub fn new(key: SecretKey, clock: Arc<dyn Clock>, randomness: Arc<dyn Randomness>) -> Options {
        Options {
            key,
            clock,
            randomness,
            durability: Durability::Process,
            retract: None,
            queue_drafts: 4096,
            queue_bytes: 64 << 20,
            batch_records: 2048,
            batch_bytes: 8 << 20,
        }
    }
}

/// A ledger that this process owns and writes to.
///
/// Drafts are committed in the order in which they got their place in the queue. When a draft that carries state
/// rows, or was appended with [`Ledger::append_after`], is not recorded, then everything queued behind it that
/// does the same is refused as [`NotRecorded::Stale`], because it may build on effects that never happened;
/// [`Ledger::generation`] changes, which tells the owner of the in-memory state to load it again from its rows.
pub struct Ledger {
    queue: Arc<Queue>,
    store: Arc<dyn Store>,
    growth: Arc<Growth>,
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
        let store = Arc::new(SqliteStore::open(dir, options.durability)?);
        Ledger::start(store, options, Some(lock))
    }

    /// Opens a ledger that is kept in `store`. The caller sees to it that there is no other writer.
    pub fn with_store(store: Arc<dyn Store>, options: Options) -> Result<Ledger, OpenError> {
        Ledger::start(store, options, None)
    }

    fn start(store: Arc<dyn Store>, options: Options, lock: Option<OwnerLock>) -> Result<Ledger, OpenError> {
        let start = opening::check(store.reader().as_ref(), options.key.verifier_key())?;
        let growth = Arc::new(Growth::new(start.tree.size()));
        let queue = Arc::new(Queue::new(&options));
        let (randomness, key) = (Arc::clone(&options.randomness), options.key.verifier_key().clone());
        let durability = options.durability;
        let worker = Worker::new(Arc::clone(&queue), Arc::clone(&store), Arc::clone(&growth), start, options);
        let worker = Arc::new(Mutex::new(worker));
        let (shared, waiting, growing) = (Arc::clone(&worker), Arc::clone(&queue), Arc::clone(&growth));
        let thread = std::thread::Builder::new()
            .name("ledger-writer".to_owned())
            .spawn(move || worker::run(&shared, &waiting, &growing))
            .map_err(|source| OpenError::Io { path: "thread `ledger-writer`".into(), source })?;
        let thread = Mutex::new(Some(thread));
        Ok(Ledger { queue, store, growth, randomness, key, worker, durability, thread, _lock: lock })
    }

    /// Appends a record. Blocks while the queue is full, at most until the draft's deadline.
    pub fn append(&self, draft: Draft) -> Pending {
        self.enqueue(draft, None, None)
    }

    /// Appends a record that was decided on the state of this generation; refused if it is not the present one.
    pub fn append_after(&self, generation: u64, draft: Draft) -> Pending {
        self.enqueue(draft, Some(generation), None)
    }

    /// The same, with records that stand right behind it: all of them are committed together, or none is. The receipt is the first one's,
    /// and only that one is retracted if its caller gives up. Deadlines and sequences of the others are not looked at.
    pub fn append_together(&self, generation: u64, draft: Draft, behind: Vec<Draft>) -> Pending {
        self.enqueue_together(draft, behind, Some(generation), None, Wake::Writer)
    }

    /// The same, without waking the writer: the caller calls [`Ledger::help`] next.
    pub fn append_quietly(&self, generation: u64, draft: Draft, behind: Vec<Draft>) -> Pending {
        self.enqueue_together(draft, behind, Some(generation), None, Wake::Nobody)
    }

    /// Writes what waits on this very thread, unless it is being written already. It blocks for a small commit. Where a commit waits for the
    /// disk the writer does it.
    pub fn help(&self) {
        match self.durability {
            Durability::Process => worker::help(&self.worker, &self.queue),
            Durability::Power => self.queue.wake_for_the_rest(),
        }
    }

    /// Changes whenever a draft that others may build on was not recorded.
    pub fn generation(&self) -> u64 {
        self.queue.generation()
    }

    /// Whether a draft would get its place at once. A task that must not block asks before it appends, and waits elsewhere.
    pub fn has_room(&self) -> bool {
        self.queue.has_room()
    }

    /// Counts a deny that was answered without a record. The number becomes a `gap` record when the ledger can
    /// write again.
    pub fn note_unrecorded(&self) {
        self.queue.note_unrecorded();
    }

    /// Erases the body of a record: salt and bytes are deleted in the transaction that writes `envelope`, which is
    /// of kind erasure and links to the record.
    pub fn erase(&self, seq: u64, envelope: Envelope) -> Pending {
        if envelope.kind != RecordKind::Erasure || envelope.links != [seq] {
            let reason =
                format!("an erasure record of body {seq} must be of kind `erasure` and link to {seq} alone");
            return Pending::refused(NotRecorded::Failed(reason));
        }
        match self.store.reader().body(seq) {
            Ok(Some(_)) => self.enqueue(Draft::new(envelope), None, Some(seq)),
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

    /// A reader that sees each record once its receipt is there.
    pub fn reader(&self) -> Reader {
        Reader::of_owner(self.store.reader(), Arc::clone(&self.growth))
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

    /// Writes everything that is queued, signs a last checkpoint, and gives up the ownership.
    pub fn close(self) {
        drop(self);
    }

    fn enqueue(&self, draft: Draft, after: Option<u64>, erase: Option<u64>) -> Pending {
        self.enqueue_together(draft, Vec::new(), after, erase, Wake::Writer)
    }

    fn enqueue_together(
        &self,
        draft: Draft,
        behind: Vec<Draft>,
        after: Option<u64>,
        erase: Option<u64>,
        wake: Wake,
    ) -> Pending {
        let (deadline, seq) = (draft.deadline, draft.seq);
        let ready = self.ready(draft).and_then(|record| {
            let behind = behind.into_iter().map(|draft| self.ready(draft)).collect::<Result<Vec<_>, _>>()?;
            Ok((record, behind))
        });
        let (record, behind) = match ready {
            Ok(ready) => ready,
            Err(reason) => return Pending::refused(NotRecorded::Failed(reason)),
        };
        let has_rows = !record.rows.is_empty() || behind.iter().any(|record| !record.rows.is_empty());
        let slot = Arc::new(Slot::new());
        let entry = Box::new(Entry {
            record,
            behind,
            erase,
            deadline,
            seq,
            stateful: after.is_some() || has_rows,
            generation: 0,
            slot: Arc::clone(&slot),
        });
        match self.queue.push(entry, after, wake) {
            Ok(()) => Pending::waiting(slot, deadline),
            Err(reason) => Pending::refused(reason),
        }
    }

    /// Everything that can be done before the sequence is known is done here, on the caller's thread.
    fn ready(&self, draft: Draft) -> Result<Ready, String> {
        let Draft { mut envelope, body, rows, .. } = draft;
        if envelope.once.as_ref().is_some_and(|key| key.len() > MAX_ONCE) {
            return Err(format!("the `once` key has more than {MAX_ONCE} bytes"));
        }
        let body = match body {
            Some(bytes) if bytes.len() > MAX_BODY => {
                return Err(format!("the body has {} bytes; at most {MAX_BODY} can be stored", bytes.len()));
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
        let leaf = envelope.to_leaf().map_err(|error| error.to_string())?;
        debug_assert!(leaf.len() <= MAX_LEAF, "the leaf's own limit");
        let hash = leaf_hash(&leaf);
        Ok(Ready { envelope, leaf, hash, body, rows })
    }
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
