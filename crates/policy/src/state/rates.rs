//! Leaky buckets: how much of an hourly limit is used up. Each principal, tool and limit has its own.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use proctor_core::json::Json;
use proctor_core::record::Envelope;
use proctor_core::time::Timestamp;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::hour_of;
use super::row::{Items, Row, Text, quoted};

pub(super) const FOLD: &str = "rate";

/// Levels are kept in parts of a call that a bucket with a limit of one loses in a microsecond, so that draining never
/// rounds.
const PARTS_PER_CALL: u64 = 3_600_000_000;

/// The most rows that one record drops.
const MAX_EXPIRED_PER_RECORD: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bucket {
    limit: u32,
    /// Amount at `at`.
    parts: u64,
    at: Timestamp,
}

#[derive(Debug, Default)]
pub(super) struct Rates {
    buckets: HashMap<Arc<str>, Bucket>,
    /// Buckets by the hour in which they are empty at the latest.
    by_hour: BTreeSet<(i64, Arc<str>)>,
}

impl Rates {
    /// Charges a decision that let through, or that asks.
    pub(super) fn charge(&mut self, envelope: &Envelope, rows: &mut Vec<Row>) {
        for (limit, parts) in charges(envelope) {
            let key = key(&envelope.principal, &envelope.tool, limit);
            let (key, before) = match self.buckets.get_key_value(key.as_str()) {
                Some((key, bucket)) => (Arc::clone(key), Some(*bucket)),
                None => (Arc::from(key), None),
            };
            let mut after = before.unwrap_or(Bucket { limit, parts: 0, at: envelope.time });
            after.parts = after.drained(envelope.time).saturating_add(parts);
            after.at = after.at.max(envelope.time);
            self.put(key, before, after, rows);
        }
        self.expire(envelope.time, rows);
    }

    /// Refunds the charge of a decision.
    pub(super) fn retract(&mut self, envelope: &Envelope, rows: &mut Vec<Row>) {
        for (limit, parts) in charges(envelope) {
            let key = key(&envelope.principal, &envelope.tool, limit);
            let Some((key, before)) = self.buckets.get_key_value(key.as_str()) else { continue };
            let (key, before) = (Arc::clone(key), *before);
            self.put(key, Some(before), Bucket { parts: before.parts.saturating_sub(parts), ..before }, rows);
        }
    }

    /// The level in millionths of a call, rounded up.
    pub(super) fn level(&self, principal: &str, tool: &str, limit: u32, now: Timestamp) -> u64 {
        let bucket = self.buckets.get(key(principal, tool, limit).as_str());
        bucket.map_or(0, |bucket| bucket.drained(now).div_ceil(PARTS_PER_CALL / 1_000_000))
    }

    pub(super) fn rows(&self, rows: &mut Vec<Row>) {
        rows.extend(self.buckets.iter().map(|(key, bucket)| bucket.row(key)));
    }

    pub(super) fn load(&mut self, key: &str, value: &Json) -> Option<()> {
        let mut items = Items::of(value)?;
        let bucket =
            Bucket { limit: items.int()?, parts: items.int()?, at: Timestamp::from_micros(items.int()?) };
        items.end()?;
        let key: Arc<str> = key.into();
        self.by_hour.insert((bucket.empty_hour(), Arc::clone(&key)));
        self.buckets.insert(key, bucket).is_none().then_some(())
    }

    fn put(&mut self, key: Arc<str>, before: Option<Bucket>, after: Bucket, rows: &mut Vec<Row>) {
        rows.push(after.row(&key));
        let (hour_before, hour_after) = (before.map(Bucket::empty_hour), after.empty_hour());
        if hour_before != Some(hour_after) {
            if let Some(hour) = hour_before {
                self.by_hour.remove(&(hour, Arc::clone(&key)));
            }
            self.by_hour.insert((hour_after, Arc::clone(&key)));
        }
        self.buckets.insert(key, after);
    }

    /// Drops buckets that have been empty for an hour.
    fn expire(&mut self, time: Timestamp, rows: &mut Vec<Row>) {
        for _ in 0..MAX_EXPIRED_PER_RECORD {
            let Some((hour, _)) = self.by_hour.first() else { return };
            if *hour >= hour_of(time).saturating_sub(1) {
                return;
            }
            let Some((_, key)) = self.by_hour.pop_first() else { return };
            self.buckets.remove(&key);
            rows.push(Row::delete(FOLD, &key));
        }
    }
}

impl Bucket {
    fn drained(self, now: Timestamp) -> u64 {
        let lost = u128::from(now.micros_since(self.at)) * u128::from(self.limit);
        self.parts.saturating_sub(u64::try_from(lost).unwrap_or(u64::MAX))
    }

    fn empty_hour(self) -> i64 {
        let micros = self.parts.div_ceil(u64::from(self.limit.max(1)));
        hour_of(self.at.plus_micros(i64::try_from(micros).unwrap_or(i64::MAX)))
    }

    fn row(&self, key: &str) -> Row {
        Row::put(FOLD, key, Text::new().int(self.limit).int(self.parts).int(self.at.micros()))
    }
}

/// The limits that a record charges, and how much. A limit of zero lets nothing through, so it needs no bucket.
fn charges(envelope: &Envelope) -> impl Iterator<Item = (u32, u64)> {
    envelope.amounts.iter().filter(|amount| amount.unit == "rate").filter_map(|amount| {
        let limit = amount.limit.filter(|limit| *limit > 0)?;
        let parts = amount.value.checked_mul(Decimal::from(PARTS_PER_CALL))?.ceil().to_u64()?;
        Some((limit, parts))
    })
}

fn key(principal: &str, tool: &str, limit: u32) -> String {
    let mut key = quoted(principal);
    proctor_core::canonical::string(tool, &mut key);
    key.push_str(&limit.to_string());
    key
}
