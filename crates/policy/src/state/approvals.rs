//! The approvals that people were asked for, by identifier and by (principal, action).
//!
//! One is *open* until its asker has been told how it ended: it waits, was granted, or was refused; it may have expired in any
//! of these. Closed ones are kept for a week, for people to look at and because the use of a grant may be retracted.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use proctor_core::decision::Effect;
use proctor_core::digest::Digest;
use proctor_core::id::{ApprovalId, SessionId};
use proctor_core::json::Json;
use proctor_core::record::Envelope;
use proctor_core::time::Timestamp;
use rust_decimal::Decimal;

use super::Limits;
use super::row::{Items, Row, Text};
use crate::evaluate::{ASKED_TOKENS, ASKED_USD};
use crate::question::{ApprovalState, ApprovalView, Estimate};

pub(super) const FOLD: &str = "approval";

/// Added to the number of a state whose row has an estimate. Rows of actions without costs are as they always were.
const WITH_ESTIMATE: u8 = 3;

/// Retention of closed and expired approvals.
const KEPT_MICROS: i64 = 7 * 24 * 3_600_000_000;

/// Maximum of rows that one record deletes.
const MAX_EXPIRED_PER_RECORD: usize = 16;

/// Way in which an approval was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// The action was let through.
    Used,
    /// The asker was told that it was refused or had expired.
    Told,
    /// The same action was asked about anew, under another identifier.
    Replaced,
}

/// An approval, for listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalInfo {
    /// Identifier.
    pub id: ApprovalId,
    /// Principal that asked.
    pub principal: Arc<str>,
    /// The agent that asked, as claimed.
    pub agent: String,
    /// The session it asked in.
    pub session: Option<SessionId>,
    /// The canonical tool.
    pub tool: String,
    /// The tool's name as sent, where it differs.
    pub name: String,
    /// The keyed digest of the action.
    pub action: Digest,
    /// Time of the first ask.
    pub asked_at: Timestamp,
    /// Expiry: to deny, or of the grant.
    pub expires: Timestamp,
    /// Decision of an approver.
    pub state: ApprovalState,
    /// Way, time and record of its closing, if it is closed.
    pub closed: Option<(Closing, Timestamp, u64)>,
    /// The sequence of the decision that asked first.
    pub seq_of_ask: u64,
    /// The rule that asked.
    pub rule: String,
    /// Expected cost of the action when it was first asked about; a grant is for no more.
    pub estimate: Estimate,
}

/// Status of an approval, as people and agents are shown it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalStatus {
    /// No approver has decided yet.
    Waiting,
    /// An approver has allowed the action, and the grant is unused.
    Granted,
    /// An approver has refused the action.
    Refused,
    /// The action was let through.
    Used,
    /// The same action was asked about anew, under another identifier.
    Replaced,
    /// The time for a decision, or for the use of the grant, has passed.
    Expired,
}

impl ApprovalStatus {
    /// The word for people and protocols.
    pub const fn word(self) -> &'static str {
        match self {
            ApprovalStatus::Waiting => "waiting",
            ApprovalStatus::Granted => "granted",
            ApprovalStatus::Refused => "refused",
            ApprovalStatus::Used => "used",
            ApprovalStatus::Replaced => "replaced",
            ApprovalStatus::Expired => "expired",
        }
    }
}

impl ApprovalInfo {
    /// Whether an approver can still decide.
    pub fn is_waiting(&self, now: Timestamp) -> bool {
        self.closed.is_none() && self.state == ApprovalState::Waiting && now < self.expires
    }

    /// The status at a time.
    pub fn status(&self, now: Timestamp) -> ApprovalStatus {
        match (&self.closed, &self.state) {
            (Some((Closing::Used, ..)), _) => ApprovalStatus::Used,
            (Some((Closing::Replaced, ..)), _) => ApprovalStatus::Replaced,
            (_, ApprovalState::Refused { .. }) => ApprovalStatus::Refused,
            (_, ApprovalState::Granted { .. }) if now < self.expires => ApprovalStatus::Granted,
            (None, ApprovalState::Waiting) if now < self.expires => ApprovalStatus::Waiting,
            _ => ApprovalStatus::Expired,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Approvals {
    all: BTreeMap<ApprovalId, ApprovalInfo>,
    /// Open ones by what they are for.
    by_action: HashMap<(Arc<str>, Digest), ApprovalId>,
    /// Open ones by when they expire.
    open: BTreeSet<(Timestamp, ApprovalId)>,
    /// Open ones of each principal by when they expire.
    open_by_principal: HashMap<Arc<str>, BTreeSet<(Timestamp, ApprovalId)>>,
    /// Closed ones by when they were closed.
    closed: BTreeSet<(Timestamp, ApprovalId)>,
}

impl Approvals {
    /// A decision that carries an approval: an ask opens it, the others close it.
    pub(super) fn decision(&mut self, limits: Limits, seq: u64, envelope: &Envelope, rows: &mut Vec<Row>) {
        let (Some(id), Some(action), Some(effect)) = (envelope.approval, envelope.action, envelope.decision)
        else {
            return;
        };
        match effect {
            Effect::Ask => self.open(limits, seq, id, action, envelope, rows),
            Effect::Defer => {}
            Effect::Deny => self.close(id, action, envelope, (Closing::Told, envelope.time, seq), rows),
            Effect::Allow | Effect::Modify | Effect::Redact => {
                self.close(id, action, envelope, (Closing::Used, envelope.time, seq), rows);
            }
        }
    }

    fn open(
        &mut self,
        limits: Limits,
        seq: u64,
        id: ApprovalId,
        action: Digest,
        envelope: &Envelope,
        rows: &mut Vec<Row>,
    ) {
        let Some(expires) = envelope.expires else { return };
        // Asking again while it waits changes nothing.
        if self.all.contains_key(&id) {
            return;
        }
        let principal = self.shared_principal(&envelope.principal);
        if let Some(older) = self.by_action.get(&(Arc::clone(&principal), action)).copied() {
            self.close_known(older, (Closing::Replaced, envelope.time, seq), rows);
        }
        if !self.evict(limits, &principal, envelope.time, rows) {
            return;
        }
        let info = ApprovalInfo {
            id,
            principal,
            agent: envelope.agent.clone(),
            session: envelope.session,
            tool: envelope.tool.clone(),
            name: envelope.name.clone(),
            action,
            asked_at: envelope.time,
            expires,
            state: ApprovalState::Waiting,
            closed: None,
            seq_of_ask: seq,
            rule: envelope.rule.clone(),
            estimate: estimate(envelope),
        };
        rows.push(info.row());
        self.index(&info);
        self.all.insert(id, info);
    }

    /// A person's decision. The first one counts; one by the asker, or after expiry, does not.
    pub(super) fn decided(&mut self, envelope: &Envelope, rows: &mut Vec<Row>) {
        let Some(id) = envelope.approval else { return };
        let Some(info) = self.all.get(&id) else { return };
        if !info.is_waiting(envelope.time) || *info.principal == *envelope.principal {
            return;
        }
        let by = envelope.principal.clone();
        let state = match envelope.code.as_str() {
            "allow" => ApprovalState::Granted { by },
            "deny" => ApprovalState::Refused { by, reason: envelope.rule.clone() },
            _ => return,
        };
        let Some(mut info) = self.take(id) else { return };
        info.state = state;
        info.expires = envelope.expires.unwrap_or(info.expires);
        self.put(info, rows);
    }

    /// Undoes what a retracted decision did: an approval that it asked for was never asked for, a grant that it used is
    /// there again, and what the asker was not told is still to be told.
    pub(super) fn retract(&mut self, envelope: &Envelope, rows: &mut Vec<Row>) {
        let (Some(id), Some(seq)) = (envelope.approval, envelope.links.first()) else { return };
        let Some(info) = self.all.get(&id) else { return };
        if envelope.decision == Some(Effect::Ask) && info.seq_of_ask == *seq {
            self.take(id);
            rows.push(Row::delete(FOLD, &id.to_string()));
        } else if matches!(info.closed, Some((Closing::Used | Closing::Told, _, closed_by)) if closed_by == *seq)
        {
            // Another approval for the same action may have been opened since; then that one holds.
            if self.by_action.contains_key(&(Arc::clone(&info.principal), info.action)) {
                return;
            }
            let Some(mut info) = self.take(id) else { return };
            info.closed = None;
            self.put(info, rows);
        }
    }

    /// Drops those that were closed or expired long ago, and the oldest closed ones if there are too many.
    pub(super) fn expire(&mut self, limits: Limits, time: Timestamp, rows: &mut Vec<Row>) {
        let old = time.plus_micros(-KEPT_MICROS);
        for _ in 0..MAX_EXPIRED_PER_RECORD {
            let closed =
                self.closed.first().filter(|(at, _)| *at < old || self.closed.len() > limits.approvals);
            let expired = self.open.first().filter(|(expires, _)| *expires < old);
            let Some((_, id)) = closed.or(expired).copied() else { return };
            self.take(id);
            rows.push(Row::delete(FOLD, &id.to_string()));
        }
    }

    /// The open one for this action of this principal.
    pub(super) fn view(&self, principal: &str, action: Digest) -> Option<ApprovalView> {
        // The key is shared text; without an open one the principal has no entry to share.
        let (principal, _) = self.open_by_principal.get_key_value(principal)?;
        let id = self.by_action.get(&(Arc::clone(principal), action))?;
        let info = self.all.get(id)?;
        Some(ApprovalView {
            id: *id,
            expires: info.expires,
            state: info.state.clone(),
            estimate: info.estimate,
        })
    }

    pub(super) fn list(&self) -> impl Iterator<Item = &ApprovalInfo> {
        self.all.values()
    }

    pub(super) fn get(&self, id: ApprovalId) -> Option<&ApprovalInfo> {
        self.all.get(&id)
    }

    pub(super) fn rows(&self, rows: &mut Vec<Row>) {
        rows.extend(self.all.values().map(ApprovalInfo::row));
    }

    pub(super) fn load(&mut self, key: &str, value: &Json) -> Option<()> {
        let info = read_info(key.parse().ok()?, value)?;
        self.index(&info);
        self.all.insert(info.id, info).is_none().then_some(())
    }

    fn close(
        &mut self,
        id: ApprovalId,
        action: Digest,
        envelope: &Envelope,
        closing: (Closing, Timestamp, u64),
        rows: &mut Vec<Row>,
    ) {
        let matches = self.all.get(&id).is_some_and(|info| {
            info.closed.is_none() && info.action == action && *info.principal == *envelope.principal
        });
        if matches {
            self.close_known(id, closing, rows);
        }
    }

    fn close_known(&mut self, id: ApprovalId, closing: (Closing, Timestamp, u64), rows: &mut Vec<Row>) {
        let Some(mut info) = self.take(id) else { return };
        info.closed = Some(closing);
        self.put(info, rows);
    }

    /// Evicts one expired approval if a limit is reached, of the same principal if that one has too many; false if none has expired.
    fn evict(&mut self, limits: Limits, principal: &Arc<str>, time: Timestamp, rows: &mut Vec<Row>) -> bool {
        let own = self.open_by_principal.get(principal);
        let candidate = if own.is_some_and(|own| own.len() >= limits.approvals_of_principal) {
            own.and_then(BTreeSet::first)
        } else if self.open.len() >= limits.approvals {
            self.open.first()
        } else {
            return true;
        };
        let Some((_, id)) = candidate.filter(|(expires, _)| *expires <= time).copied() else { return false };
        self.take(id);
        rows.push(Row::delete(FOLD, &id.to_string()));
        true
    }

    fn shared_principal(&self, principal: &str) -> Arc<str> {
        self.open_by_principal
            .get_key_value(principal)
            .map_or_else(|| principal.into(), |(shared, _)| Arc::clone(shared))
    }

    fn put(&mut self, info: ApprovalInfo, rows: &mut Vec<Row>) {
        rows.push(info.row());
        self.index(&info);
        self.all.insert(info.id, info);
    }

    fn index(&mut self, info: &ApprovalInfo) {
        if let Some((_, at, _)) = info.closed {
            self.closed.insert((at, info.id));
            return;
        }
        self.by_action.insert((Arc::clone(&info.principal), info.action), info.id);
        self.open.insert((info.expires, info.id));
        self.open_by_principal
            .entry(Arc::clone(&info.principal))
            .or_default()
            .insert((info.expires, info.id));
    }

    /// Removes an approval from all indices.
    fn take(&mut self, id: ApprovalId) -> Option<ApprovalInfo> {
        let info = self.all.remove(&id)?;
        if let Some((_, at, _)) = info.closed {
            self.closed.remove(&(at, id));
            return Some(info);
        }
        self.open.remove(&(info.expires, id));
        let action = (Arc::clone(&info.principal), info.action);
        if self.by_action.get(&action) == Some(&id) {
            self.by_action.remove(&action);
        }
        if let Some(own) = self.open_by_principal.get_mut(&info.principal) {
            own.remove(&(info.expires, id));
            if own.is_empty() {
                self.open_by_principal.remove(&info.principal);
            }
        }
        Some(info)
    }
}

impl ApprovalInfo {
    fn row(&self) -> Row {
        let mut text = Text::new()
            .text(&self.principal)
            .text(&self.agent)
            .text(&self.session.map(|session| session.to_string()).unwrap_or_default())
            .text(&self.tool)
            .text(&self.name)
            .text(&self.action.to_string())
            .int(self.asked_at.micros())
            .int(self.expires.micros())
            .int(self.seq_of_ask)
            .text(&self.rule);
        let state = match &self.state {
            ApprovalState::Waiting => 0u8,
            ApprovalState::Granted { .. } => 1,
            ApprovalState::Refused { .. } => 2,
        };
        text = if self.estimate == Estimate::default() {
            text.int(state)
        } else {
            let Estimate { usd, tokens } = &self.estimate;
            text.int(state + WITH_ESTIMATE).text(&usd.to_string()).text(&tokens.to_string())
        };
        text = match &self.state {
            ApprovalState::Waiting => text,
            ApprovalState::Granted { by } => text.text(by),
            ApprovalState::Refused { by, reason } => text.text(by).text(reason),
        };
        if let Some((closing, at, seq)) = self.closed {
            text = text.int(closing.number()).int(at.micros()).int(seq);
        }
        Row::put(FOLD, &self.id.to_string(), text)
    }
}

fn read_info(id: ApprovalId, value: &Json) -> Option<ApprovalInfo> {
    let mut items = Items::of(value)?;
    let principal = items.text()?.into();
    let agent = items.text()?.to_owned();
    let session = match items.text()? {
        "" => None,
        session => Some(session.parse().ok()?),
    };
    let tool = items.text()?.to_owned();
    let name = items.text()?.to_owned();
    let action = items.text()?.parse().ok()?;
    let asked_at = Timestamp::from_micros(items.int()?);
    let expires = Timestamp::from_micros(items.int()?);
    let seq_of_ask = items.int()?;
    let rule = items.text()?.to_owned();
    let number = items.int::<u8>().filter(|number| *number < 2 * WITH_ESTIMATE)?;
    let estimate = if number < WITH_ESTIMATE {
        Estimate::default()
    } else {
        let mut amount = || Decimal::from_str_exact(items.text()?).ok();
        Estimate { usd: amount()?, tokens: amount()? }
    };
    let state = match number % WITH_ESTIMATE {
        0 => ApprovalState::Waiting,
        1 => ApprovalState::Granted { by: items.text()?.to_owned() },
        _ => ApprovalState::Refused { by: items.text()?.to_owned(), reason: items.text()?.to_owned() },
    };
    let closed = if items.is_at_end() {
        None
    } else {
        let closing = Closing::from_number(items.int()?)?;
        Some((closing, Timestamp::from_micros(items.int()?), items.int()?))
    };
    items.end()?;
    Some(ApprovalInfo {
        id,
        principal,
        agent,
        session,
        tool,
        name,
        action,
        asked_at,
        expires,
        state,
        closed,
        seq_of_ask,
        rule,
        estimate,
    })
}

/// The expected cost that an ask's record says.
fn estimate(envelope: &Envelope) -> Estimate {
    let value = |unit: &str| {
        let own = envelope.amounts.iter().find(|amount| amount.unit == unit);
        own.map_or(Decimal::ZERO, |amount| amount.value)
    };
    Estimate { usd: value(ASKED_USD), tokens: value(ASKED_TOKENS) }
}

impl Closing {
    fn number(self) -> u8 {
        match self {
            Closing::Used => 0,
            Closing::Told => 1,
            Closing::Replaced => 2,
        }
    }

    fn from_number(number: u8) -> Option<Closing> {
        [Closing::Used, Closing::Told, Closing::Replaced]
            .into_iter()
            .find(|closing| closing.number() == number)
    }
}
