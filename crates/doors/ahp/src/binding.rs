//! Binding a report to the decision that it is about.
//!
//! Reports need not name their decision, so it is searched for: by the `decision_id` of the report; else by tool and arguments; else by
//! tool; else, if the report names no action, the oldest open decision of that session and depth.

use std::collections::{HashMap, HashSet, VecDeque};

use proctor_core::canonical;
use proctor_core::decision::Effect;
use proctor_core::digest::Digest;
use proctor_core::id::{RecordId, SessionId};
use proctor_core::json::Json;
use proctor_core::record::RecordKind;
use proctor_facts::tool::canonical_name;
use proctor_ledger::Reader;
use proctor_ledger::reader::BodyState;
use proctor_ledger::store::{Filter, Order};

/// Capacity of open decisions per session; the oldest are evicted first.
pub(crate) const MAX_OPEN: usize = 1024;
/// Capacity of sessions, and of decisions over all sessions. Beyond it half of the sessions are evicted, and loaded from the ledger again
/// when needed.
const MAX_SESSIONS: usize = 4096;
const MAX_DECISIONS: usize = 65_536;
/// Number of latest records of a session that are scanned for open decisions after a restart.
pub(crate) const MAX_SCANNED_RECORDS: usize = 2000;
/// Bytes of record bodies that this scan reads at most.
const MAX_READ: usize = 8 << 20;

/// Decision without a recorded outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Open {
    pub sequence: u64,
    pub id: RecordId,
    /// The canonical tool.
    pub tool: String,
    /// Tool and arguments as asked.
    pub asked: Digest,
    /// Tool and arguments as answered, where that differs.
    pub answered: Option<Digest>,
    /// Nesting depth of the agent.
    pub depth: u32,
    pub let_through: bool,
}

/// Identifying parts of a report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reported {
    /// `decision_id`, if the report has one.
    pub decision: Option<RecordId>,
    /// Canonical tool; empty if the report names none.
    pub tool: String,
    /// Digests of tool and arguments, if the report has any: as sent, and redacted as in the ledger.
    pub calls: Vec<Digest>,
    /// Nesting depth of the agent.
    pub depth: u32,
    /// Whether the report is about a model's response.
    pub is_response: bool,
}

/// Result of binding a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Binding {
    /// The bound decision, and the criterion that matched.
    One(Open, &'static str),
    /// The oldest of several matches.
    Ambiguous(Open),
    /// No decision: the action was not proposed first.
    Unasked,
}

/// Open decisions of all sessions.
#[derive(Debug, Default)]
pub(crate) struct OpenDecisions {
    sessions: HashMap<SessionId, VecDeque<Open>>,
    /// Decisions whose outcome is queued but not committed, so that the ledger still shows them as open.
    reporting: VecDeque<RecordId>,
    /// Upper bound of the number of open decisions: counts additions since the last eviction.
    added: usize,
}

impl OpenDecisions {
    /// Reports whether the session is in memory; if not, it has to be loaded from the ledger first.
    pub(crate) fn contains(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }

    /// Inserts the open decisions of a session that were loaded from the ledger.
    pub(crate) fn insert_loaded(&mut self, session: SessionId, mut open: VecDeque<Open>) {
        if self.sessions.len() >= MAX_SESSIONS || self.added > MAX_DECISIONS {
            self.evict_half();
        }
        open.retain(|decision| !self.reporting.contains(&decision.id));
        self.sessions.entry(session).or_insert(open);
    }

    /// Adds an open decision.
    pub(crate) fn add(&mut self, session: SessionId, open: Open) {
        self.added += 1;
        let decisions = self.sessions.entry(session).or_default();
        // Asking again replaces the earlier answer to the same question.
        decisions.retain(|earlier| {
            earlier.sequence != open.sequence && (earlier.let_through || earlier.asked != open.asked)
        });
        decisions.push_back(open);
        if decisions.len() > MAX_OPEN {
            decisions.pop_front();
        }
    }

    /// Finds the decision of a report, and closes it.
    pub(crate) fn bind(&mut self, session: SessionId, reported: &Reported) -> Binding {
        let Some(decisions) = self.sessions.get_mut(&session) else { return Binding::Unasked };
        let binding = find(decisions, reported);
        if let Binding::One(open, _) | Binding::Ambiguous(open) = &binding {
            let (sequence, id) = (open.sequence, open.id);
            decisions.retain(|other| other.sequence != sequence);
            self.claim(id);
        }
        binding
    }

    /// Claims a decision for one outcome; false if an outcome is queued already.
    pub(crate) fn claim(&mut self, id: RecordId) -> bool {
        if self.reporting.contains(&id) {
            return false;
        }
        self.reporting.push_back(id);
        if self.reporting.len() > MAX_OPEN {
            self.reporting.pop_front();
        }
        true
    }

    /// Removes a decision that was reported by identifier, or was not recorded.
    pub(crate) fn close(&mut self, session: SessionId, sequence: u64) {
        if let Some(decisions) = self.sessions.get_mut(&session) {
            decisions.retain(|other| other.sequence != sequence);
        }
    }

    /// Removes a session, and returns those of its decisions that were let through and never reported.
    pub(crate) fn end(&mut self, session: SessionId) -> Vec<Open> {
        let decisions = self.sessions.insert(session, VecDeque::new()).unwrap_or_default();
        let open: Vec<Open> = decisions.into_iter().filter(|open| open.let_through).collect();
        for decision in &open {
            self.claim(decision.id);
        }
        open
    }

    /// Evicts every second session; they are loaded from the ledger again when needed.
    fn evict_half(&mut self) {
        let mut turn = false;
        self.sessions.retain(|_, _| {
            turn = !turn;
            turn
        });
        self.added = self.sessions.values().map(VecDeque::len).sum();
    }
}

/// The digest of a call, for comparing: the canonical tool and the arguments.
pub(crate) fn call_digest(tool: &str, args: &Json) -> Digest {
    Digest::of(canonical::claimed(&Json::object().with("args", args.clone()).with("tool", tool)).as_bytes())
}

fn find(decisions: &VecDeque<Open>, reported: &Reported) -> Binding {
    if let Some(id) = reported.decision
        && let Some(open) = decisions.iter().find(|open| open.id == id)
    {
        return Binding::One(open.clone(), "decision_id");
    }
    if !reported.calls.is_empty() {
        let same = |open: &&Open| {
            reported.calls.iter().any(|call| open.asked == *call || open.answered == Some(*call))
        };
        if let Some(binding) = pick(decisions.iter().filter(same), "arguments") {
            return binding;
        }
    }
    if !reported.tool.is_empty() {
        let same = |open: &&Open| open.tool == reported.tool;
        let found = pick(decisions.iter().filter(same), "tool");
        // A response names no action: it belongs to the call to a model, or to whatever is open.
        if found.is_some() || !reported.is_response {
            return found.unwrap_or(Binding::Unasked);
        }
    }
    oldest(decisions, reported.depth)
}

/// Picks the decision of a report that names no action: the oldest that was let through, else the latest denied one.
fn oldest(decisions: &VecDeque<Open>, depth: u32) -> Binding {
    let mut here = decisions.iter().filter(|open| open.depth == depth);
    let found = here.clone().find(|open| open.let_through).or_else(|| here.next_back());
    found.map_or(Binding::Unasked, |open| Binding::One(open.clone(), "oldest"))
}

/// Picks among several candidates, preferring those that were let through.
fn pick<'a>(candidates: impl Iterator<Item = &'a Open>, how: &'static str) -> Option<Binding> {
    let (through, others): (Vec<&Open>, Vec<&Open>) = candidates.partition(|open| open.let_through);
    match (through.as_slice(), others.as_slice()) {
        ([one], _) => Some(Binding::One((*one).clone(), how)),
        ([oldest, ..], _) => Some(Binding::Ambiguous((*oldest).clone())),
        // All candidates were denied: bind to the latest.
        ([], [.., last]) => Some(Binding::One((*last).clone(), how)),
        ([], []) => None,
    }
}

/// Reads the open decisions of a session from the ledger.
pub(crate) fn read_open(reader: &Reader, session: SessionId) -> VecDeque<Open> {
    let filter = Filter {
        session: Some(session),
        kinds: vec![RecordKind::Decision, RecordKind::Outcome, RecordKind::Retracted],
        ..Filter::default()
    };
    let mut closed: HashSet<u64> = HashSet::new();
    let mut open = VecDeque::new();
    let mut bytes_read = 0;
    for record in reader.records(filter, Order::Descending).take(MAX_SCANNED_RECORDS) {
        // An unreadable decision stays unknown, so its report raises an alarm.
        let Ok(record) = record else { break };
        let envelope = &record.envelope;
        if envelope.kind != RecordKind::Decision {
            closed.extend(envelope.links.first());
            continue;
        }
        let is_ours = envelope.door == super::action::DOOR && envelope.tool != super::action::CONFIRMATION;
        if closed.contains(&record.seq) || !is_ours {
            continue;
        }
        let Ok(BodyState::Present { bytes, .. }) = reader.body(record.seq) else { continue };
        bytes_read += bytes.len();
        if bytes_read > MAX_READ {
            break;
        }
        let Ok(body) = Json::parse(&bytes) else { continue };
        let found = open_from_record(record.seq, envelope.id, envelope.decision, &body);
        let superseded = |open: &VecDeque<Open>| {
            open.iter().any(|later: &Open| !found.let_through && later.asked == found.asked)
        };
        if open.len() < MAX_OPEN && !superseded(&open) {
            open.push_front(found);
        }
    }
    open
}

fn open_from_record(sequence: u64, id: RecordId, effect: Option<Effect>, body: &Json) -> Open {
    let action = body.pointer("/read_set/action").cloned().unwrap_or_default();
    let tool = action.get("tool").and_then(Json::as_str).unwrap_or_default().to_owned();
    let args = action.get("args").cloned().unwrap_or_default();
    let mut holder = Json::object().with("args", args.clone());
    let mut changed = false;
    for change in body.pointer("/decision/changes").and_then(Json::as_array).unwrap_or_default() {
        let path = change.get("path").and_then(Json::as_str).unwrap_or_default();
        let replacement = change.get("replacement").cloned().unwrap_or_default();
        changed |= proctor_policy::json_path::put(path, &mut holder, replacement);
    }
    let answered = changed.then(|| call_digest(&tool, holder.get("args").unwrap_or(&Json::Null)));
    let depth = action.get("depth").and_then(Json::as_u64).and_then(|depth| u32::try_from(depth).ok());
    Open {
        sequence,
        id,
        asked: call_digest(&tool, &args),
        answered,
        tool,
        depth: depth.unwrap_or_default(),
        let_through: effect.is_some_and(Effect::lets_through),
    }
}

/// The canonical name of a tool, as decisions have it.
pub(crate) fn canonical(tool: &str) -> String {
    if tool.is_empty() { String::new() } else { canonical_name(tool) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(sequence: u64, tool: &str, args: &str, let_through: bool) -> Open {
        let digest = call_digest(tool, &Json::from(args));
        let id = RecordId::new(
            proctor_core::time::Timestamp::from_micros(0),
            &proctor_core::random::SeededRandomness::new(sequence),
        );
        Open { sequence, id, tool: tool.into(), asked: digest, answered: None, depth: 0, let_through }
    }

    fn reported(tool: &str, args: Option<&str>) -> Reported {
        let calls = args.map(|args| call_digest(tool, &Json::from(args))).into_iter().collect();
        Reported { tool: tool.into(), calls, ..Reported::default() }
    }

    #[test]
    fn a_report_is_bound_by_what_it_says() {
        let decisions: VecDeque<Open> =
            [open(1, "shell", "ls", true), open(2, "shell", "pwd", true), open(3, "shell", "rm", false)]
                .into();
        let one = |binding: Binding| match binding {
            Binding::One(open, how) => (open.sequence, how),
            other => panic!("{other:?}"),
        };
        assert_eq!(one(find(&decisions, &reported("shell", Some("pwd")))), (2, "arguments"));
        assert_eq!(one(find(&decisions, &reported("shell", Some("rm")))), (3, "arguments"));
        let named = Reported { decision: Some(decisions[0].id), ..reported("shell", Some("pwd")) };
        assert_eq!(one(find(&decisions, &named)), (1, "decision_id"));
        assert!(
            matches!(find(&decisions, &reported("shell", None)), Binding::Ambiguous(open) if open.sequence == 1)
        );
        assert_eq!(find(&decisions, &reported("fetch", Some("x"))), Binding::Unasked);
        assert_eq!(one(find(&decisions, &Reported::default())), (1, "oldest"));
        assert_eq!(find(&decisions, &Reported { depth: 1, ..Reported::default() }), Binding::Unasked);
        // A response goes to the call to a model, else to what has been open longest.
        let response = Reported { tool: "llm_call".into(), is_response: true, ..Reported::default() };
        assert_eq!(one(find(&decisions, &response)), (1, "oldest"));
        let only_denied: VecDeque<Open> = [open(3, "shell", "rm", false)].into();
        assert_eq!(one(find(&only_denied, &Reported::default())), (3, "oldest"));
    }

    #[test]
    fn what_was_changed_is_bound_by_what_was_answered() {
        let mut changed = open(1, "shell", "git push", true);
        changed.answered = Some(call_digest("shell", &Json::from("git push --dry-run")));
        let decisions: VecDeque<Open> = [changed].into();
        let binding = find(&decisions, &reported("shell", Some("git push --dry-run")));
        assert!(matches!(binding, Binding::One(_, "arguments")));
    }
}
