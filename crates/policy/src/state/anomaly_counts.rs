//! Counts for anomaly detection: repetitions of an action, and actions per minute of a principal. Only decisions that carry amounts of the units
//! `repeat` and `pace` are counted, whatever their effect: where no document watches for anomalies, nothing is kept.
//!
//! Both cost the same however much has happened. A clock that goes back counts as if it stood still: nothing is counted twice or lost.

mod minutes;
mod repeats;

use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_core::record::Envelope;
use proctor_core::time::Timestamp;

use super::row::Row;
use crate::question::ActionsPerMinute;
use minutes::MinuteCounts;
use repeats::Repeats;

pub(super) const FOLD: &str = "pace";

/// The most rows of either sort that one record drops because they are old.
const MAX_EXPIRED_PER_RECORD: usize = 4;

/// Counts of all principals.
#[derive(Debug, Default)]
pub(super) struct AnomalyCounts {
    repeats: Repeats,
    minutes: MinuteCounts,
}

impl AnomalyCounts {
    pub(super) fn note(&mut self, envelope: &Envelope, rows: &mut Vec<Row>) {
        let mut is_watched = false;
        for amount in &envelope.amounts {
            match (amount.unit.as_str(), amount.limit, envelope.action) {
                ("repeat", Some(seconds), Some(digest)) if seconds > 0 => {
                    self.repeats.note(&envelope.principal, digest, seconds, envelope.time, rows);
                    is_watched = true;
                }
                ("pace", ..) => {
                    self.minutes.note(&envelope.principal, envelope.time, rows);
                    is_watched = true;
                }
                _ => {}
            }
        }
        if is_watched {
            self.repeats.expire(envelope.time, rows);
            self.minutes.expire(envelope.time, rows);
        }
    }

    /// Forgets what the principal has repeated.
    pub(super) fn forget_repeats(&mut self, principal: &str, rows: &mut Vec<Row>) {
        self.repeats.forget(principal, rows);
    }

    /// Number of times that the principal proposed the action in the last so many seconds, the part before the present fixed window estimated.
    pub(super) fn repeats(&self, principal: &str, digest: Digest, seconds: u32, now: Timestamp) -> u64 {
        self.repeats.count(principal, digest, seconds, now)
    }

    /// Actions per minute that the principal proposed.
    pub(super) fn actions_per_minute(&self, principal: &str, now: Timestamp) -> ActionsPerMinute {
        self.minutes.actions_per_minute(principal, now)
    }

    pub(super) fn rows(&self, rows: &mut Vec<Row>) {
        self.repeats.rows(rows);
        self.minutes.rows(rows);
    }

    pub(super) fn load(&mut self, key: &str, value: &Json) -> Option<()> {
        match key.split_once('/')? {
            ("r", key) => self.repeats.load(key, value),
            ("m", principal) => self.minutes.load(principal, value),
            _ => None,
        }
    }

    pub(super) fn finish_load(&mut self) {
        self.repeats.finish_load();
        self.minutes.finish_load();
    }
}

#[cfg(test)]
mod tests;
