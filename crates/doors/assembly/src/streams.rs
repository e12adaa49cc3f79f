//! How many streams of one kind somebody has open.

use std::collections::HashMap;

use tonic::Status;

use super::{AssemblyDoor, lock};

/// The most that one agent or person has open of one kind.
pub(super) const MOST: usize = 16;

/// Counted by kind and by whom they are for.
#[derive(Debug, Default)]
pub(super) struct Counts(HashMap<(&'static str, String), usize>);

/// The place of an open stream; free again when it is dropped.
pub(super) struct Slot {
    door: AssemblyDoor,
    key: (&'static str, String),
}

impl AssemblyDoor {
    /// A place for one more stream.
    pub(super) fn slot(&self, kind: &'static str, who: &str) -> Result<Slot, Status> {
        let key = (kind, who.to_owned());
        let mut counts = lock(&self.inner.open_streams);
        let count = counts.0.entry(key.clone()).or_default();
        if *count >= MOST {
            let text = format!("{MOST} streams of this kind are open already: end one of them first");
            return Err(Status::resource_exhausted(text));
        }
        *count += 1;
        drop(counts);
        Ok(Slot { door: self.clone(), key })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut counts = lock(&self.door.inner.open_streams);
        if let Some(count) = counts.0.get_mut(&self.key) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                counts.0.remove(&self.key);
            }
        }
    }
}
