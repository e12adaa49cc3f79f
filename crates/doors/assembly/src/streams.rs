//! Limit on open streams per kind and caller.

use std::collections::HashMap;

use tonic::Status;

use super::{AssemblyDoor, lock};

/// Open streams of one kind per agent or approver.
pub(super) const MAX_STREAMS: usize = 16;

/// Open streams, by kind and caller.
#[derive(Debug, Default)]
pub(super) struct Counts(HashMap<(&'static str, String), usize>);

/// Guard of an open stream; dropping it releases the slot.
pub(super) struct Slot {
    door: AssemblyDoor,
    key: (&'static str, String),
}

impl AssemblyDoor {
    /// Acquires a slot for one more stream.
    pub(super) fn slot(&self, kind: &'static str, who: &str) -> Result<Slot, Status> {
        let key = (kind, who.to_owned());
        let mut counts = lock(&self.inner.open_streams);
        let count = counts.0.entry(key.clone()).or_default();
        if *count >= MAX_STREAMS {
            let text = format!("{MAX_STREAMS} streams of this kind are open already: end one of them first");
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
