//! The memory of each principal's last 24 hours, over all its sessions.
//!
//! Counts stand in buckets of whole hours (UTC), and an answer takes the present hour's bucket and the 24 before it: it covers
//! at least the last 24 hours and at most 25.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use proctor_core::decision::Effect;
use proctor_core::json::Json;
use proctor_core::record::{Envelope, RecordKind};
use proctor_core::time::Timestamp;

use super::history::{Event, History, Retention};
use super::row::{Items, Row, Text, quoted, unquote};
use super::{Limits, hour_of, sets_taints};

pub(super) const FOLD: &str = "agent";

/// Buckets so many hours before the present one still count.
const WINDOW_HOURS: i64 = 24;

/// Buckets older than this are dropped; one hour more than is needed, for clocks that are set back a little.
const KEPT_HOURS: i64 = WINDOW_HOURS + 1;

/// The most rows that one record drops.
const MAX_EXPIRED_PER_RECORD: usize = 16;

#[derive(Debug, Default)]
struct Agent {
    history: History,
    /// The last hour in which an entry was dropped at a limit.
    overflow: Option<i64>,
}

#[derive(Debug, Default)]
pub(super) struct Agents {
    agents: HashMap<Box<str>, Agent>,
    /// The newest hour of each row, so that old rows are found.
    by_hour: BTreeSet<(i64, Arc<str>)>,
}

impl Agents {
    /// `retracted_hour` is the hour of the decision that a retraction is about, if it is known.
    pub(super) fn apply(
        &mut self,
        limits: Limits,
        seq: u64,
        envelope: &Envelope,
        retracted_hour: Option<i64>,
        rows: &mut Vec<Row>,
    ) {
        if envelope.kind == RecordKind::Retracted {
            if let Some(hour) = retracted_hour {
                self.retract(limits, hour, envelope, rows);
            }
        } else if envelope.kind == RecordKind::Decision && envelope.decision.is_some()
            || sets_taints(envelope)
        {
            self.note(limits, seq, envelope, rows);
        }
        self.expire(hour_of(envelope.time), rows);
    }

    fn note(&mut self, limits: Limits, seq: u64, envelope: &Envelope, rows: &mut Vec<Row>) {
        let hour = hour_of(envelope.time);
        let prefix = quoted(&envelope.principal);
        let retention = retention(limits, &prefix, hour);
        if !self.agents.contains_key(envelope.principal.as_str()) {
            self.agents.insert(envelope.principal.as_str().into(), Agent::default());
        }
        let Some(agent) = self.agents.get_mut(envelope.principal.as_str()) else { return };
        let mut is_full = false;
        let mut changes = Vec::new();
        if envelope.kind == RecordKind::Decision {
            match agent.history.record(retention, event(seq, hour, envelope), rows) {
                Ok(changed) => changes.push(changed),
                Err(_) => is_full = true,
            }
        }
        if sets_taints(envelope) {
            for taint in &envelope.taints {
                match agent.history.set_taint(retention, taint, hour, rows) {
                    Ok(changed) => changes.push(changed),
                    Err(_) => is_full = true,
                }
            }
        }
        for changed in changes.into_iter().filter(|changed| changed.newest_before != Some(changed.newest)) {
            if let Some(before) = changed.newest_before {
                self.by_hour.remove(&(before, Arc::clone(&changed.row_key)));
            }
            self.by_hour.insert((changed.newest, changed.row_key));
        }
        if is_full && agent.overflow < Some(hour) {
            let key: Arc<str> = prefix.as_str().into();
            if let Some(before) = agent.overflow.replace(hour) {
                self.by_hour.remove(&(before, Arc::clone(&key)));
            }
            rows.push(overflow_row(&prefix, hour));
            self.by_hour.insert((hour, key));
        }
    }

    fn retract(&mut self, limits: Limits, hour: i64, envelope: &Envelope, rows: &mut Vec<Row>) {
        let (Some(effect), Some(seq)) = (envelope.decision, envelope.links.first()) else { return };
        let Some(agent) = self.agents.get_mut(envelope.principal.as_str()) else { return };
        if effect.lets_through() {
            let prefix = quoted(&envelope.principal);
            let retention = retention(limits, &prefix, hour);
            agent.history.retract(retention, event(*seq, hour, envelope), rows);
            for taint in &envelope.taints {
                agent.history.clear_taint(retention, taint, hour, rows);
            }
        }
    }

    /// Drops rows whose every bucket is old.
    fn expire(&mut self, hour: i64, rows: &mut Vec<Row>) {
        for _ in 0..MAX_EXPIRED_PER_RECORD {
            let Some((newest, _)) = self.by_hour.first() else { return };
            if *newest >= hour.saturating_sub(KEPT_HOURS) {
                return;
            }
            let Some((_, key)) = self.by_hour.pop_first() else { return };
            rows.push(Row::delete(FOLD, &key));
            let Some((principal, rest)) = unquote(&key) else { continue };
            let Some(agent) = self.agents.get_mut(principal.as_str()) else { continue };
            if rest.is_empty() {
                agent.overflow = None;
            } else {
                agent.history.forget(rest);
            }
            if agent.history.is_empty() && agent.overflow.is_none() {
                self.agents.remove(principal.as_str());
            }
        }
    }

    pub(super) fn counts(&self, principal: &str, pattern: &str, now: Timestamp) -> (u64, u64) {
        self.agents.get(principal).map_or((0, 0), |agent| agent.history.counts(pattern, window(now)))
    }

    pub(super) fn last(&self, principal: &str, pattern: &str, now: Timestamp) -> Option<Timestamp> {
        self.agents.get(principal)?.history.last(pattern, window(now), hour_of)
    }

    pub(super) fn is_tainted(&self, principal: &str, name: &str, now: Timestamp) -> bool {
        self.agents.get(principal).is_some_and(|agent| agent.history.is_tainted(name, window(now)))
    }

    pub(super) fn overflowed(&self, principal: &str, now: Timestamp) -> bool {
        let overflow = self.agents.get(principal).and_then(|agent| agent.overflow);
        overflow.is_some_and(|hour| hour >= window(now))
    }

    pub(super) fn rows(&self, rows: &mut Vec<Row>) {
        for (principal, agent) in &self.agents {
            rows.extend(agent.overflow.map(|hour| overflow_row(&quoted(principal), hour)));
            agent.history.rows(FOLD, rows);
        }
    }

    pub(super) fn load(&mut self, key: &str, value: &Json) -> Option<()> {
        let (principal, rest) = unquote(key)?;
        let agent = self.agents.entry(principal.as_str().into()).or_default();
        if rest.is_empty() {
            let mut items = Items::of(value)?;
            agent.overflow = Some(items.int()?);
            items.end()
        } else {
            agent.history.load(&quoted(&principal), rest, value)
        }
    }

    pub(super) fn finish_load(&mut self) {
        for (principal, agent) in &self.agents {
            self.by_hour.extend(agent.history.newest_hours().map(|(key, hour)| (hour, key)));
            self.by_hour.extend(agent.overflow.map(|hour| (hour, quoted(principal).into())));
        }
    }
}

fn window(now: Timestamp) -> i64 {
    hour_of(now).saturating_sub(WINDOW_HOURS)
}

fn overflow_row(prefix: &str, hour: i64) -> Row {
    Row::put(FOLD, prefix, Text::new().int(hour))
}

fn retention(limits: Limits, prefix: &str, hour: i64) -> Retention<'_> {
    Retention {
        fold: FOLD,
        prefix,
        max_tools: limits.agent_tools,
        max_taints: limits.agent_taints,
        keep_from: hour.saturating_sub(KEPT_HOURS),
    }
}

fn event(seq: u64, hour: i64, envelope: &Envelope) -> Event<'_> {
    Event {
        seq,
        time: envelope.time,
        hour,
        tool: &envelope.tool,
        name: &envelope.name,
        let_through: envelope.decision.is_some_and(Effect::lets_through),
    }
}
