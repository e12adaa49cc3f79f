//! Counts of identical actions per principal.
//!
//! Time is cut into fixed windows. What was proposed in the last so many seconds is what was proposed in the present window, and of the
//! one before it the share that still lies within reach.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_core::time::Timestamp;

use super::{FOLD, MAX_EXPIRED_PER_RECORD};
use crate::state::row::{Items, Row, Text};

/// The most different actions that are counted for one principal; beyond it the one that was proposed longest ago is forgotten.
pub(super) const MOST_ACTIONS: usize = 1024;

/// Rows are kept so long after they have ceased to matter, for clocks that go back a little.
const SLACK_SECONDS: i64 = 3600;

const SECOND: i64 = 1_000_000;

/// An action, and the length of the windows in seconds.
type Key = (Digest, u32);

/// Two adjacent windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Windows {
    /// The number of the present window since the epoch.
    index: i64,
    previous: u64,
    current: u64,
    /// Time of the latest proposal of the action.
    last: Timestamp,
}

#[derive(Debug, Default)]
struct Principal {
    windows: HashMap<Key, Windows>,
    by_last: BTreeSet<(Timestamp, Key)>,
}

#[derive(Debug, Default)]
pub(super) struct Repeats {
    principals: HashMap<Arc<str>, Principal>,
    /// Actions by the second in which they cease to matter.
    by_end: BTreeSet<(i64, Arc<str>, Key)>,
}

impl Repeats {
    pub(super) fn note(
        &mut self,
        name: &str,
        digest: Digest,
        seconds: u32,
        time: Timestamp,
        rows: &mut Vec<Row>,
    ) {
        let known = self.principals.get_key_value(name).map(|(name, _)| Arc::clone(name));
        let name = known.unwrap_or_else(|| name.into());
        let key = (digest, seconds);
        let before = self.principals.get(&name).and_then(|principal| principal.windows.get(&key)).copied();
        let mut after = Windows::at(before, seconds, time);
        after.current = after.current.saturating_add(1);
        after.last = after.last.max(time);
        rows.push(after.row(&name, key));
        if before.map(|before| before.end(seconds)) != Some(after.end(seconds)) {
            if let Some(before) = before {
                self.by_end.remove(&(before.end(seconds), Arc::clone(&name), key));
            }
            self.by_end.insert((after.end(seconds), Arc::clone(&name), key));
        }
        let principal = self.principals.entry(Arc::clone(&name)).or_default();
        if let Some(before) = before {
            principal.by_last.remove(&(before.last, key));
        }
        // Making room first: what was just proposed is never what is forgotten.
        let oldest =
            if principal.by_last.len() >= MOST_ACTIONS { principal.by_last.pop_first() } else { None };
        principal.by_last.insert((after.last, key));
        principal.windows.insert(key, after);
        if let Some((_, oldest)) = oldest
            && let Some(windows) = principal.windows.remove(&oldest)
        {
            self.by_end.remove(&(windows.end(oldest.1), Arc::clone(&name), oldest));
            rows.push(Row::delete(FOLD, &row_key(&name, oldest)));
        }
    }

    pub(super) fn forget(&mut self, name: &str, rows: &mut Vec<Row>) {
        let Some((name, principal)) = self.principals.remove_entry(name) else { return };
        let mut keys: Vec<(Key, Windows)> = principal.windows.into_iter().collect();
        keys.sort_unstable_by_key(|(key, _)| *key);
        for (key, windows) in keys {
            self.by_end.remove(&(windows.end(key.1), Arc::clone(&name), key));
            rows.push(Row::delete(FOLD, &row_key(&name, key)));
        }
    }

    pub(super) fn count(&self, name: &str, digest: Digest, seconds: u32, now: Timestamp) -> u64 {
        let principal = self.principals.get(name);
        let Some(windows) = principal.and_then(|principal| principal.windows.get(&(digest, seconds))) else {
            return 0;
        };
        Windows::at(Some(*windows), seconds, now).estimate(seconds, now)
    }

    /// Drops windows that nothing can ask about any more.
    pub(super) fn expire(&mut self, time: Timestamp, rows: &mut Vec<Row>) {
        let now = time.micros().div_euclid(SECOND);
        for _ in 0..MAX_EXPIRED_PER_RECORD {
            let Some((end, ..)) = self.by_end.first() else { return };
            if end.saturating_add(SLACK_SECONDS) > now {
                return;
            }
            let Some((_, name, key)) = self.by_end.pop_first() else { return };
            rows.push(Row::delete(FOLD, &row_key(&name, key)));
            let Some(principal) = self.principals.get_mut(&name) else { continue };
            if let Some(windows) = principal.windows.remove(&key) {
                principal.by_last.remove(&(windows.last, key));
            }
            if principal.windows.is_empty() {
                self.principals.remove(&name);
            }
        }
    }

    pub(super) fn rows(&self, rows: &mut Vec<Row>) {
        for (name, principal) in &self.principals {
            rows.extend(principal.windows.iter().map(|(key, windows)| windows.row(name, *key)));
        }
    }

    /// A row, by its key without the sort.
    pub(super) fn load(&mut self, key: &str, value: &Json) -> Option<()> {
        let (seconds, rest) = key.split_once('/')?;
        let (digest, name) = rest.split_once('/')?;
        let key = (digest.parse().ok()?, seconds.parse().ok().filter(|seconds| *seconds > 0)?);
        let mut items = Items::of(value)?;
        let windows = Windows {
            index: items.int()?,
            previous: items.int()?,
            current: items.int()?,
            last: Timestamp::from_micros(items.int()?),
        };
        items.end()?;
        let principal = self.principals.entry(name.into()).or_default();
        principal.windows.insert(key, windows).is_none().then_some(())
    }

    pub(super) fn finish_load(&mut self) {
        for (name, principal) in &mut self.principals {
            for (key, windows) in &principal.windows {
                principal.by_last.insert((windows.last, *key));
                self.by_end.insert((windows.end(key.1), Arc::clone(name), *key));
            }
        }
    }
}

impl Windows {
    /// The windows as of a moment. One before the present window is taken for the beginning of that window.
    fn at(known: Option<Windows>, seconds: u32, time: Timestamp) -> Windows {
        let index = time.micros().div_euclid(micros(seconds));
        match known {
            Some(known) if index <= known.index => known,
            Some(known) if index == known.index.saturating_add(1) => {
                Windows { index, previous: known.current, current: 0, ..known }
            }
            Some(known) => Windows { index, previous: 0, current: 0, ..known },
            None => Windows { index, previous: 0, current: 0, last: time },
        }
    }

    /// Rounded down.
    fn estimate(self, seconds: u32, now: Timestamp) -> u64 {
        let length = micros(seconds);
        let into = now.micros().saturating_sub(self.index.saturating_mul(length)).clamp(0, length);
        let left = u128::try_from(length - into).unwrap_or(0);
        let of = u128::try_from(length).unwrap_or(1).max(1);
        let share = u128::from(self.previous) * left / of;
        u64::try_from(share).unwrap_or(u64::MAX).saturating_add(self.current)
    }

    /// The second from which on neither window counts.
    fn end(self, seconds: u32) -> i64 {
        self.index.saturating_add(2).saturating_mul(i64::from(seconds))
    }

    fn row(&self, name: &str, key: Key) -> Row {
        let value = Text::new().int(self.index).int(self.previous).int(self.current).int(self.last.micros());
        Row::put(FOLD, &row_key(name, key), value)
    }
}

fn micros(seconds: u32) -> i64 {
    i64::from(seconds.max(1)) * SECOND
}

fn row_key(name: &str, (digest, seconds): Key) -> String {
    format!("r/{seconds}/{digest}/{name}")
}
