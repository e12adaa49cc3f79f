//! Ledgers, drafts and a store that fails on command.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use proctor_core::id::{RecordId, SessionId};
use proctor_core::random::SeededRandomness;
use proctor_core::record::{Envelope, RecordKind};
use proctor_core::time::{Clock, ManualClock, Timestamp};
use proctor_ledger::fsck::{ExpectedRow, Finding, FsckOptions, Refold, fsck};
use proctor_ledger::keys::{Algorithm, SecretKey};
use proctor_ledger::store::{Batch, SqliteStore, Store, StoreReader};
use proctor_ledger::{Draft, Ledger, Options, StateRow, StoreError};

pub fn key() -> SecretKey {
    SecretKey::from_seed("example.com/ledger", Algorithm::Ed25519, &[7; 32]).unwrap()
}

/// A clock, randomness and envelopes that are the same in every run.
pub struct World {
    pub clock: Arc<ManualClock>,
    pub randomness: Arc<SeededRandomness>,
}

impl World {
    pub fn new(seed: u64) -> World {
        let start = Timestamp::from_micros(1_800_000_000_000_000);
        World { clock: Arc::new(ManualClock::new(start)), randomness: Arc::new(SeededRandomness::new(seed)) }
    }

    pub fn options(&self) -> Options {
        Options::new(key(), self.clock.clone(), self.randomness.clone())
    }

    pub fn open(&self, dir: &Path) -> Ledger {
        Ledger::open(dir, self.options()).unwrap()
    }

    pub fn session(&self) -> SessionId {
        SessionId::new(self.clock.now(), self.randomness.as_ref())
    }

    pub fn envelope(&self, kind: RecordKind) -> Envelope {
        self.clock.advance(10);
        let now = self.clock.now();
        Envelope::new(RecordId::new(now, self.randomness.as_ref()), now, kind)
    }

    pub fn draft(&self, kind: RecordKind) -> Draft {
        Draft::new(self.envelope(kind))
    }

    /// A draft with a row of the fold that [`LastCode`] computes.
    pub fn coded(&self, key: &str, code: &str) -> Draft {
        let mut draft = self.draft(RecordKind::Outcome);
        draft.envelope.principal = key.to_owned();
        draft.envelope.code = code.to_owned();
        draft.rows =
            vec![StateRow { fold: "code", key: key.to_owned(), value: Some(code.as_bytes().to_vec()) }];
        draft
    }

    pub fn once(&self, key: &str) -> Draft {
        let mut draft = self.draft(RecordKind::Observation);
        draft.envelope.once = Some(key.to_owned());
        draft
    }

    /// A ledger on a store that fails on command.
    pub fn with_faults(&self, dir: &Path, change: impl FnOnce(&mut Options)) -> (Ledger, Arc<FaultyStore>) {
        let mut options = self.options();
        change(&mut options);
        self.open(dir).close();
        let store = Arc::new(FaultyStore {
            inner: SqliteStore::open(dir, options.durability).unwrap(),
            faults: Mutex::new(VecDeque::new()),
        });
        (Ledger::with_store(store.clone(), options).unwrap(), store)
    }
}

/// The fold that remembers each principal's last code.
#[derive(Default)]
pub struct LastCode(std::collections::BTreeMap<String, (String, u64)>);

impl Refold for LastCode {
    fn record(&mut self, seq: u64, envelope: &Envelope) {
        if envelope.kind == RecordKind::Outcome && !envelope.principal.is_empty() {
            self.0.insert(envelope.principal.clone(), (envelope.code.clone(), seq));
        }
    }

    fn expected_rows(&mut self) -> Vec<ExpectedRow> {
        let row = |(key, (code, seq)): (&String, &(String, u64))| ExpectedRow {
            row: StateRow { fold: "code", key: key.clone(), value: Some(code.as_bytes().to_vec()) },
            seq: Some(*seq),
        };
        self.0.iter().map(row).collect()
    }
}

/// All checks, with the state rows computed again.
pub fn check(dir: &Path) -> Vec<Finding> {
    let mut refold = LastCode::default();
    fsck(dir, FsckOptions { key: None, refold: Some(&mut refold), progress: None })
}

pub fn assert_in_order(dir: &Path) {
    assert_eq!(check(dir), []);
}

pub enum Fault {
    /// The commit does not happen.
    Fail,
    /// The commit happens, but an error is told.
    CommitAndFail,
    /// The commit happens after the test says so.
    Block { entered: SyncSender<()>, go: Receiver<()> },
}

/// A store that does, for each commit, what was ordered; then what SQLite does.
pub struct FaultyStore {
    inner: SqliteStore,
    faults: Mutex<VecDeque<Fault>>,
}

/// A commit that is stuck until it is let go.
pub struct Stuck {
    entered: Receiver<()>,
    go: SyncSender<()>,
}

impl Stuck {
    pub fn wait_until_stuck(&self) {
        self.entered.recv().unwrap();
    }

    pub fn let_go(&self) {
        self.go.send(()).unwrap();
    }
}

impl FaultyStore {
    pub fn order(&self, fault: Fault) {
        self.faults.lock().unwrap().push_back(fault);
    }

    /// The next commit gets stuck.
    pub fn stick(&self) -> Stuck {
        let (entered_sender, entered) = sync_channel(1);
        let (go, go_receiver) = sync_channel(1);
        self.order(Fault::Block { entered: entered_sender, go: go_receiver });
        Stuck { entered, go }
    }
}

impl Store for FaultyStore {
    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        let fault = self.faults.lock().unwrap().pop_front();
        match fault {
            Some(Fault::Fail) => return Err(StoreError::Full("ordered".to_owned())),
            Some(Fault::CommitAndFail) => {
                self.inner.commit(batch)?;
                return Err(StoreError::Io("ordered".to_owned()));
            }
            Some(Fault::Block { entered, go }) => {
                entered.send(()).unwrap();
                go.recv().unwrap();
            }
            None => {}
        }
        self.inner.commit(batch)
    }

    fn purge(&self) -> Result<bool, StoreError> {
        self.inner.purge()
    }

    fn reader(&self) -> Arc<dyn StoreReader> {
        self.inner.reader()
    }
}
