//! A store that fails or blocks on command.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use proctor_ledger::StoreError;
use proctor_ledger::store::{Batch, Durability, SqliteStore, Store, StoreReader};

/// Fault of one commit.
#[derive(Debug)]
pub enum Fault {
    /// The commit does not happen.
    Fail,
    /// The commit happens, but an error is told.
    CommitAndFail,
    /// The commit happens after the test says so.
    Block {
        /// Told when the commit begins.
        entered: SyncSender<()>,
        /// Signal on which the commit goes on; also if the sender is gone.
        go: Receiver<()>,
    },
}

/// SQLite store with a queue of faults, one for each commit.
pub struct FaultyStore {
    inner: SqliteStore,
    faults: Mutex<VecDeque<Fault>>,
}

/// Commit that blocks until it is released.
#[derive(Debug)]
pub struct Stuck {
    entered: Receiver<()>,
    go: SyncSender<()>,
}

impl Stuck {
    /// Waits until the commit has begun.
    pub fn wait_until_stuck(&self) {
        let _begun = self.entered.recv();
    }

    /// Releases the commit.
    pub fn let_go(&self) {
        let _released = self.go.send(());
    }
}

impl FaultyStore {
    /// Opens the store of an existing ledger.
    pub fn open(dir: &Path, durability: Durability) -> Result<FaultyStore, StoreError> {
        Ok(FaultyStore { inner: SqliteStore::open(dir, durability)?, faults: Mutex::default() })
    }

    /// Orders a fault for the next commit that has none.
    pub fn order(&self, fault: Fault) {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).push_back(fault);
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
        let fault = self.faults.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        match fault {
            Some(Fault::Fail) => return Err(StoreError::Full("ordered".to_owned())),
            Some(Fault::CommitAndFail) => {
                self.inner.commit(batch)?;
                return Err(StoreError::Io("ordered".to_owned()));
            }
            Some(Fault::Block { entered, go }) => {
                // A test that has ended waits for nothing.
                let _begun = entered.send(());
                let _released = go.recv();
            }
            None => {}
        }
        self.inner.commit(batch)
    }

    fn purge(&self) -> Result<bool, StoreError> {
        self.inner.purge()
    }

    fn check_files(&self) -> Result<(), StoreError> {
        self.inner.check_files()
    }

    fn reader(&self) -> Arc<dyn StoreReader> {
        self.inner.reader()
    }
}
