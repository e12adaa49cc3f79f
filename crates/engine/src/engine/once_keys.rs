//! `once` keys of records that are queued and may not be in the ledger yet.

use std::collections::{HashMap, VecDeque};

use super::{Engine, EngineError, Inner};

/// Keys that are remembered: more than the writer's queue can hold, so that what is forgotten here is in the ledger or refused.
const MOST: usize = 16_384;

/// Cache of the most recently queued keys, with their sequences or another value. Restoring the state clears them: what was queued then has been
/// refused.
pub(super) struct QueuedKeys<V = u64> {
    keys: HashMap<String, V>,
    order: VecDeque<String>,
}

impl<V> Default for QueuedKeys<V> {
    fn default() -> QueuedKeys<V> {
        QueuedKeys { keys: HashMap::new(), order: VecDeque::new() }
    }
}

impl<V> QueuedKeys<V> {
    pub(super) fn get(&self, key: &str) -> Option<&V> {
        self.keys.get(key)
    }

    pub(super) fn note(&mut self, key: String, value: V) {
        if self.keys.insert(key.clone(), value).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > MOST {
            if let Some(oldest) = self.order.pop_front() {
                self.keys.remove(&oldest);
            }
        }
    }
}

impl Engine {
    /// The first record with this key, in the ledger or in the queue.
    pub(super) fn first_with(&self, inner: &Inner, key: &str) -> Result<Option<u64>, EngineError> {
        if let Some(sequence) = inner.queued_keys.keys.get(key) {
            return Ok(Some(*sequence));
        }
        Ok(self.ledger().reader().once(key)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_keys_are_forgotten() {
        let mut queued_keys = QueuedKeys::<u64>::default();
        for number in 0..=MOST as u64 {
            queued_keys.note(number.to_string(), number);
        }
        assert_eq!((queued_keys.keys.len(), queued_keys.order.len()), (MOST, MOST));
        assert_eq!(queued_keys.keys.get("0"), None);
        assert_eq!(queued_keys.keys.get("1"), Some(&1));
    }
}
