//! Counts of actions per minute and principal, for the present minute and the hour before it.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use proctor_core::json::Json;
use proctor_core::time::Timestamp;

use super::{FOLD, MAX_EXPIRED_PER_RECORD};
use crate::question::ActionsPerMinute;
use crate::state::row::{Items, Row, Text};
use crate::state::{KEPT_MINUTES, minute_of};

/// Minutes before the present one that are looked at.
const HOUR: i64 = 60;

/// Minutes kept: that hour, and the present minute.
const KEPT: usize = 61;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Ring {
    /// The minute in which the principal was first seen.
    first: i64,
    /// The minute of the last count.
    newest: i64,
    /// The counts up to the newest minute, none before the first; at most `KEPT`.
    counts: VecDeque<u64>,
}

#[derive(Debug, Default)]
pub(super) struct MinuteCounts {
    rings: HashMap<Arc<str>, Ring>,
    /// Principals by their newest minute, so that idle ones are found.
    by_newest: BTreeSet<(i64, Arc<str>)>,
}

impl MinuteCounts {
    pub(super) fn note(&mut self, name: &str, time: Timestamp, rows: &mut Vec<Row>) {
        let minute = minute_of(time);
        let known = self.rings.get_key_value(name).map(|(name, _)| Arc::clone(name));
        let is_new = known.is_none();
        let name = known.unwrap_or_else(|| name.into());
        let new = || Ring { first: minute, newest: minute, counts: VecDeque::from([0]) };
        let ring = self.rings.entry(Arc::clone(&name)).or_insert_with(new);
        let newest_before = ring.newest;
        ring.turn_to(minute);
        if let Some(count) = ring.counts.back_mut() {
            *count = count.saturating_add(1);
        }
        rows.push(ring.row(&name));
        if is_new || newest_before != ring.newest {
            self.by_newest.remove(&(newest_before, Arc::clone(&name)));
            self.by_newest.insert((ring.newest, name));
        }
    }

    pub(super) fn actions_per_minute(&self, name: &str, now: Timestamp) -> ActionsPerMinute {
        self.rings
            .get(name)
            .map_or_else(ActionsPerMinute::default, |ring| ring.actions_per_minute(minute_of(now)))
    }

    /// Drops principals without an action in the retention time.
    pub(super) fn expire(&mut self, time: Timestamp, rows: &mut Vec<Row>) {
        for _ in 0..MAX_EXPIRED_PER_RECORD {
            let Some((newest, _)) = self.by_newest.first() else { return };
            if *newest >= minute_of(time).saturating_sub(KEPT_MINUTES) {
                return;
            }
            let Some((_, name)) = self.by_newest.pop_first() else { return };
            self.rings.remove(&name);
            rows.push(Row::delete(FOLD, &row_key(&name)));
        }
    }

    pub(super) fn rows(&self, rows: &mut Vec<Row>) {
        rows.extend(self.rings.iter().map(|(name, ring)| ring.row(name)));
    }

    pub(super) fn load(&mut self, name: &str, value: &Json) -> Option<()> {
        let mut items = Items::of(value)?;
        let ring = Ring { first: items.int()?, newest: items.int()?, counts: items.ints::<u64>()?.into() };
        items.end()?;
        let known = ring.newest.checked_sub(ring.first)?.checked_add(1)?;
        let is_whole = usize::try_from(known).ok()?.min(KEPT) == ring.counts.len() && known > 0;
        (is_whole && self.rings.insert(name.into(), ring).is_none()).then_some(())
    }

    pub(super) fn finish_load(&mut self) {
        self.by_newest = self.rings.iter().map(|(name, ring)| (ring.newest, Arc::clone(name))).collect();
    }
}

impl Ring {
    /// Minutes without a count are zero; a minute before the newest is taken for the newest.
    fn turn_to(&mut self, minute: i64) {
        let passed = minute.saturating_sub(self.newest).max(0);
        for _ in 0..usize::try_from(passed).unwrap_or(KEPT).min(KEPT) {
            self.counts.push_back(0);
            if self.counts.len() > KEPT {
                self.counts.pop_front();
            }
        }
        self.newest = self.newest.max(minute);
    }

    fn actions_per_minute(&self, minute: i64) -> ActionsPerMinute {
        let minute = minute.max(self.newest);
        let minutes = minute.saturating_sub(self.first).min(HOUR);
        let mut rate =
            ActionsPerMinute { minutes: u64::try_from(minutes).unwrap_or(0), ..ActionsPerMinute::default() };
        let mut of = self.newest;
        for count in self.counts.iter().rev() {
            if of == minute {
                rate.current = *count;
            } else if of >= minute.saturating_sub(minutes) {
                rate.sum = rate.sum.saturating_add(*count);
                rate.squares = rate.squares.saturating_add(count.saturating_mul(*count));
            }
            of = of.saturating_sub(1);
        }
        rate
    }

    fn row(&self, name: &str) -> Row {
        let value = Text::new().int(self.first).int(self.newest).list(self.counts.iter().copied(), Text::int);
        Row::put(FOLD, &row_key(name), value)
    }
}

fn row_key(name: &str) -> String {
    format!("m/{name}")
}
