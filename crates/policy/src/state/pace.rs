//! How often an action is repeated, and how many actions a minute a principal proposes. Only decisions that carry amounts of the units
//! `repeat` and `pace` are counted, whatever their effect: where no document watches for anomalies, nothing is kept.

use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_core::record::Envelope;
use proctor_core::time::Timestamp;

use super::row::Row;
use crate::question::Pace;

pub(super) const FOLD: &str = "pace";

#[derive(Debug, Default)]
pub(super) struct Paces {}

impl Paces {
    pub(super) fn note(&mut self, envelope: &Envelope, rows: &mut Vec<Row>) {
        let _ = (envelope, rows);
    }

    pub(super) fn repeats(&self, principal: &str, digest: Digest, seconds: u32, now: Timestamp) -> u64 {
        let _ = (principal, digest, seconds, now);
        0
    }

    pub(super) fn pace(&self, principal: &str, now: Timestamp) -> Pace {
        let _ = (principal, now);
        Pace::default()
    }

    pub(super) fn rows(&self, rows: &mut Vec<Row>) {
        let _ = rows;
    }

    pub(super) fn load(&mut self, key: &str, value: &Json) -> Option<()> {
        let _ = (key, value);
        Some(())
    }

    pub(super) fn finish_load(&mut self) {}
}
