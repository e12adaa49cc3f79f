//! Ledgers, drafts and a store that fails on command.

use std::path::Path;
use std::sync::Arc;

use proctor_core::id::{RecordId, SessionId};
use proctor_core::random::SeededRandomness;
use proctor_core::record::{Envelope, RecordKind};
use proctor_core::time::{Clock, ManualClock, Timestamp};
use proctor_ledger::fsck::{Damage, ExpectedRow, FsckOptions, Refold, fsck};
use proctor_ledger::keys::{Algorithm, SecretKey};
use proctor_ledger::{Draft, Ledger, Options, StateRow};

pub use proctor_test_forges::store::{Fault, FaultyStore};

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
        let store = Arc::new(FaultyStore::open(dir, options.durability).unwrap());
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
pub fn check(dir: &Path) -> Vec<Damage> {
    let mut refold = LastCode::default();
    fsck(dir, FsckOptions { key: None, refold: Some(&mut refold), progress: None })
}

pub fn assert_in_order(dir: &Path) {
    assert_eq!(check(dir), []);
}
