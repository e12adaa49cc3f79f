//! Session memory, and the list of sessions.

use std::collections::{BTreeSet, HashMap};

use proctor_core::decision::Effect;
use proctor_core::id::SessionId;
use proctor_core::json::Json;
use proctor_core::record::{Envelope, RUN_ENDED, RecordKind};
use proctor_core::time::Timestamp;

use super::history::{Event, History, Retention};
use super::row::{Items, Row, Text};
use super::{KEPT_MINUTES, Limits, minute_of, sets_taints};

pub(super) const FOLD: &str = "session";

/// The row that says up to when sessions may have been forgotten.
const FORGOTTEN_KEY: &str = "forgotten";

/// Sessions that one record makes forgotten at most. A record adds fewer entries than the sessions that are idle longest have together, except where
/// they have nothing but their summaries; the next records go on.
const FORGOTTEN_AT_ONCE: usize = 8;

/// A session has one bucket for all its time.
const WHOLE_SESSION: i64 = 0;

/// A session, for listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// Our identifier.
    pub id: SessionId,
    /// Principal of the session.
    pub principal: String,
    /// The agent, as claimed.
    pub agent: String,
    /// Time of the first record.
    pub first: Timestamp,
    /// Time of the latest decision or alarm.
    pub last: Timestamp,
    /// Actions let through.
    pub let_through: u64,
    /// Actions denied.
    pub denied: u64,
    /// Actions that a person was asked about.
    pub asked: u64,
    /// Actions deferred.
    pub deferred: u64,
    /// Alarms raised.
    pub alarms: u64,
    /// Whether more happened in it than can be remembered.
    pub overflowed: bool,
}

#[derive(Debug)]
struct Session {
    info: SessionInfo,
    history: History,
}

#[derive(Debug, Default)]
pub(super) struct Sessions {
    known: HashMap<SessionId, Session>,
    /// Minute of the latest record, so that the longest idle session is first.
    by_last: BTreeSet<(i64, SessionId)>,
    /// The number of sessions, and of tools and taints in all of them.
    entries: usize,
    /// Sessions that were made at or before this moment (milliseconds, as in their identifiers) may have been forgotten.
    forgotten: Option<i64>,
}

impl Sessions {
    pub(super) fn apply(&mut self, limits: Limits, seq: u64, envelope: &Envelope, rows: &mut Vec<Row>) {
        let Some(id) = envelope.session else { return };
        let counts = matches!(envelope.kind, RecordKind::Decision | RecordKind::Alarm | RecordKind::Session);
        if envelope.kind == RecordKind::Retracted {
            self.retract(limits, id, envelope, rows);
        } else if envelope.kind == RecordKind::Run && envelope.code == RUN_ENDED {
            // A test run asks nothing about its past once it has ended.
            self.forget(id, rows);
        } else if counts || sets_taints(envelope) {
            self.note(limits, seq, id, envelope, rows);
        }
        self.expire(limits, envelope.time, id, rows);
    }

    fn note(&mut self, limits: Limits, seq: u64, id: SessionId, envelope: &Envelope, rows: &mut Vec<Row>) {
        let prefix = id.to_string();
        let retention = retention(limits, &prefix);
        let overflowed = self.may_be_forgotten(id);
        let (by_last, entries) = (&mut self.by_last, &mut self.entries);
        let session = self.known.entry(id).or_insert_with(|| {
            by_last.insert((minute_of(envelope.time), id));
            *entries += 1;
            Session { info: new_info(id, envelope, overflowed), history: History::default() }
        });
        let entries_before = session.history.entries();
        let info = &mut session.info;
        let (before, last) = (minute_of(info.last), info.last.max(envelope.time));
        if minute_of(last) != before {
            by_last.remove(&(before, id));
            by_last.insert((minute_of(last), id));
        }
        info.last = last;
        info.first = info.first.min(envelope.time);
        match envelope.kind {
            RecordKind::Decision => {
                let Some(effect) = envelope.decision else { return rows.push(info.row(&prefix)) };
                let counter = info.counter(effect);
                *counter = counter.saturating_add(1);
                if session.history.record(retention, event(seq, envelope), rows).is_err() {
                    info.overflowed = true;
                }
            }
            RecordKind::Alarm => info.alarms = info.alarms.saturating_add(1),
            _ => {}
        }
        if sets_taints(envelope) {
            for taint in &envelope.taints {
                if session.history.set_taint(retention, taint, WHOLE_SESSION, rows).is_err() {
                    info.overflowed = true;
                }
            }
        }
        self.entries = (self.entries + session.history.entries()).saturating_sub(entries_before);
        rows.push(info.row(&prefix));
    }

    /// Counts a decision that let through as a deny; one that asked or deferred likewise.
    fn retract(&mut self, limits: Limits, id: SessionId, envelope: &Envelope, rows: &mut Vec<Row>) {
        let Some(session) = self.known.get_mut(&id) else { return };
        let entries_before = session.history.entries();
        let (Some(effect), Some(seq)) = (envelope.decision, envelope.links.first()) else { return };
        let prefix = id.to_string();
        let info = &mut session.info;
        let counter = info.counter(effect);
        if *counter > 0 {
            *counter -= 1;
            info.denied = info.denied.saturating_add(1);
        }
        if effect.lets_through() {
            let retention = retention(limits, &prefix);
            session.history.retract(retention, event(*seq, envelope), rows);
            for taint in &envelope.taints {
                session.history.clear_taint(retention, taint, WHOLE_SESSION, rows);
            }
        }
        self.entries = (self.entries + session.history.entries()).saturating_sub(entries_before);
        rows.push(info.row(&prefix));
    }

    /// Forgets one session that has been idle for too long, or those idle longest if there are too many of them or too much in them; never the
    /// one that this record is about.
    fn expire(&mut self, limits: Limits, time: Timestamp, current: SessionId, rows: &mut Vec<Row>) {
        for _ in 0..FORGOTTEN_AT_ONCE {
            let Some((minute, id)) = self.by_last.iter().find(|(_, id)| *id != current).copied() else {
                return;
            };
            let is_idle = minute < minute_of(time).saturating_sub(KEPT_MINUTES);
            if !is_idle && !self.are_too_many(limits) {
                return;
            }
            self.by_last.remove(&(minute, id));
            if self.forget(id, rows) {
                let forgotten = Some(made_at(id)).max(self.forgotten);
                if forgotten != self.forgotten {
                    self.forgotten = forgotten;
                    rows.extend(self.forgotten_row());
                }
            }
            if !self.are_too_many(limits) {
                return;
            }
        }
    }

    fn are_too_many(&self, limits: Limits) -> bool {
        self.known.len() > limits.sessions || self.entries > limits.session_entries
    }

    /// Removes a session with its rows. Returns whether it was here.
    fn forget(&mut self, id: SessionId, rows: &mut Vec<Row>) -> bool {
        let Some(session) = self.known.remove(&id) else { return false };
        self.by_last.remove(&(minute_of(session.info.last), id));
        self.entries = self.entries.saturating_sub(session.history.entries() + 1);
        rows.push(Row::delete(FOLD, &id.to_string()));
        let mut keys: Vec<&str> = session.history.row_keys().collect();
        keys.sort_unstable();
        rows.extend(keys.into_iter().map(|key| Row::delete(FOLD, key)));
        true
    }

    /// Whether a session that is not here may have been here once.
    fn may_be_forgotten(&self, id: SessionId) -> bool {
        self.forgotten.is_some_and(|moment| made_at(id) <= moment)
    }

    pub(super) fn counts(&self, id: SessionId, pattern: &str) -> (u64, u64) {
        self.known.get(&id).map_or((0, 0), |session| session.history.counts(pattern, i64::MIN))
    }

    pub(super) fn last(&self, id: SessionId, pattern: &str) -> Option<Timestamp> {
        self.known.get(&id)?.history.last(pattern, i64::MIN, |_| WHOLE_SESSION)
    }

    pub(super) fn is_tainted(&self, id: SessionId, name: &str) -> bool {
        self.known.get(&id).is_some_and(|session| session.history.is_tainted(name, i64::MIN))
    }

    pub(super) fn overflowed(&self, id: SessionId) -> bool {
        self.known.get(&id).map_or_else(|| self.may_be_forgotten(id), |session| session.info.overflowed)
    }

    pub(super) fn list(&self) -> impl Iterator<Item = &SessionInfo> {
        self.known.values().map(|session| &session.info)
    }

    pub(super) fn get(&self, id: SessionId) -> Option<&SessionInfo> {
        self.known.get(&id).map(|session| &session.info)
    }

    pub(super) fn rows(&self, rows: &mut Vec<Row>) {
        rows.extend(self.forgotten_row());
        for session in self.known.values() {
            rows.push(session.info.row(&session.info.id.to_string()));
            session.history.rows(FOLD, rows);
        }
    }

    fn forgotten_row(&self) -> Option<Row> {
        self.forgotten.map(|moment| Row::put(FOLD, FORGOTTEN_KEY, Text::new().int(moment)))
    }

    pub(super) fn load(&mut self, key: &str, value: &Json) -> Option<()> {
        if key == FORGOTTEN_KEY {
            let mut items = Items::of(value)?;
            self.forgotten = Some(items.int()?);
            return items.end();
        }
        let (prefix, rest) = (key.get(..36)?, key.get(36..)?);
        let id: SessionId = prefix.parse().ok()?;
        let session = self
            .known
            .entry(id)
            .or_insert_with(|| Session { info: missing_info(id), history: History::default() });
        if rest.is_empty() {
            session.info = read_info(id, value)?;
            Some(())
        } else {
            session.history.load(prefix, rest, value)
        }
    }

    /// Ends loading, when all rows are read. Fails with a session that has rows but no summary.
    pub(super) fn finish_load(&mut self) -> Result<(), MissingSummary> {
        if let Some(found) = self.known.values().find(|session| session.info == missing_info(session.info.id))
        {
            return Err(MissingSummary(found.info.id));
        }
        self.entries = self.known.values().map(|session| session.history.entries() + 1).sum();
        self.by_last =
            self.known.values().map(|session| (minute_of(session.info.last), session.info.id)).collect();
        Ok(())
    }
}

/// A session with rows of its past but without the row of its summary.
pub(super) struct MissingSummary(pub(super) SessionId);

impl SessionInfo {
    fn counter(&mut self, effect: Effect) -> &mut u64 {
        match effect {
            Effect::Allow | Effect::Modify | Effect::Redact => &mut self.let_through,
            Effect::Deny => &mut self.denied,
            Effect::Ask => &mut self.asked,
            Effect::Defer => &mut self.deferred,
        }
    }

    fn row(&self, key: &str) -> Row {
        let text = Text::new()
            .text(&self.principal)
            .text(&self.agent)
            .int(self.first.micros())
            .int(self.last.micros())
            .int(self.let_through)
            .int(self.denied)
            .int(self.asked)
            .int(self.deferred)
            .int(self.alarms)
            .int(u8::from(self.overflowed));
        Row::put(FOLD, key, text)
    }
}

fn read_info(id: SessionId, value: &Json) -> Option<SessionInfo> {
    let mut items = Items::of(value)?;
    let info = SessionInfo {
        id,
        principal: items.text()?.to_owned(),
        agent: items.text()?.to_owned(),
        first: Timestamp::from_micros(items.int()?),
        last: Timestamp::from_micros(items.int()?),
        let_through: items.int()?,
        denied: items.int()?,
        asked: items.int()?,
        deferred: items.int()?,
        alarms: items.int()?,
        overflowed: items.int::<u8>()? != 0,
    };
    items.end()?;
    Some(info)
}

fn new_info(id: SessionId, envelope: &Envelope, overflowed: bool) -> SessionInfo {
    SessionInfo {
        principal: envelope.principal.clone(),
        agent: envelope.agent.clone(),
        first: envelope.time,
        last: envelope.time,
        overflowed,
        ..missing_info(id)
    }
}

/// Placeholder for a session whose own row has not been read. No real one has a first record after its last.
fn missing_info(id: SessionId) -> SessionInfo {
    SessionInfo {
        id,
        principal: String::new(),
        agent: String::new(),
        first: Timestamp::MAX,
        last: Timestamp::from_micros(i64::MIN),
        let_through: 0,
        denied: 0,
        asked: 0,
        deferred: 0,
        alarms: 0,
        overflowed: false,
    }
}

fn retention(limits: Limits, prefix: &str) -> Retention<'_> {
    Retention {
        fold: FOLD,
        prefix,
        max_tools: limits.session_tools,
        max_taints: limits.session_taints,
        keep_from: i64::MIN,
    }
}

fn event(seq: u64, envelope: &Envelope) -> Event<'_> {
    Event {
        seq,
        time: envelope.time,
        hour: WHOLE_SESSION,
        tool: &envelope.tool,
        name: &envelope.name,
        let_through: envelope.decision.is_some_and(Effect::lets_through),
    }
}

/// Creation time of an identifier, in milliseconds: the first six bytes of a UUIDv7.
fn made_at(id: SessionId) -> i64 {
    id.as_bytes().iter().take(6).fold(0, |moment, byte| moment << 8 | i64::from(*byte))
}
