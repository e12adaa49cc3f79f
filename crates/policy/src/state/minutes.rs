//! Minutes of recent decisions: settlements and retractions name a decision by its sequence, and their amounts are booked where the
//! decision was.

use std::collections::VecDeque;

use proctor_core::json::Json;
use proctor_core::time::Timestamp;

use super::row::{Items, Row, Text};
use super::{KEPT_MINUTES, minute_of};

pub(super) const FOLD: &str = "minute";

/// The most rows kept, for clocks that jump to and fro.
const MOST: usize = 100_000;

/// The most rows that one record drops.
const MAX_EXPIRED_PER_RECORD: usize = 4;

/// Runs of decisions within one minute: the first sequence, and the minute. Oldest first.
#[derive(Debug, Default)]
pub(super) struct Minutes(VecDeque<(u64, i64)>);

impl Minutes {
    pub(super) fn note(&mut self, seq: u64, time: Timestamp, rows: &mut Vec<Row>) {
        let minute = minute_of(time);
        if self.0.back().is_none_or(|(_, last)| *last != minute) {
            self.0.push_back((seq, minute));
            rows.push(row(seq, minute));
        }
        for _ in 0..MAX_EXPIRED_PER_RECORD {
            let Some((seq, oldest)) = self.0.front().copied() else { return };
            if oldest >= minute.saturating_sub(KEPT_MINUTES) && self.0.len() <= MOST {
                return;
            }
            self.0.pop_front();
            rows.push(Row::delete(FOLD, &seq.to_string()));
        }
    }

    /// The minute of the decision with that sequence; `None` if it is too old.
    pub(super) fn of(&self, seq: u64) -> Option<i64> {
        let after = self.0.partition_point(|(first, _)| *first <= seq);
        self.0.get(after.checked_sub(1)?).map(|(_, minute)| *minute)
    }

    pub(super) fn rows(&self, rows: &mut Vec<Row>) {
        rows.extend(self.0.iter().map(|(seq, minute)| row(*seq, *minute)));
    }

    pub(super) fn load(&mut self, key: &str, value: &Json) -> Option<()> {
        let mut items = Items::of(value)?;
        self.0.push_back((key.parse().ok()?, items.int()?));
        items.end()
    }

    pub(super) fn finish_load(&mut self) {
        self.0.make_contiguous().sort_unstable();
    }
}

fn row(seq: u64, minute: i64) -> Row {
    Row::put(FOLD, &seq.to_string(), Text::new().int(minute))
}
