//! Binding a report to the decision that it is about.
//!
//! The protocol's reports do not have to say which decision they follow, so it is found: the decision that the report names; else the
//! same tool and arguments; else the same tool; else, if the report names no action, the oldest open decision of that session and depth.

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

/// Decisions of one session that are remembered; the oldest go first.
pub(crate) const MAX_OPEN: usize = 1024;
/// Sessions, and decisions of all of them, that are remembered; beyond it all are forgotten and read from the ledger again when they
/// speak.
const MAX_SESSIONS: usize = 4096;
const MAX_DECISIONS: usize = 65_536;
/// How far back in a session open decisions are looked for after a restart.
pub(crate) const LOOK_BACK: usize = 2000;
/// How many bytes of bodies are read for it.
const MAX_READ: usize = 8 << 20;

/// A decision whose outcome is not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Open {
    /// The decision's sequence.
    pub sequence: u64,
    /// Its identifier.
    pub id: RecordId,
    /// The canonical tool.
    pub tool: String,
    /// Tool and arguments as asked.
    pub asked: Digest,
    /// Tool and arguments as answered, where that differs.
    pub answered: Option<Digest>,
    /// How deep the agent was.
    pub depth: u32,
    /// Whether it was let through.
    pub let_through: bool,
}

/// What a report says about the action that it is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reported {
    /// The decision that it names.
    pub decision: Option<RecordId>,
    /// The canonical tool; empty if it names none.
    pub tool: String,
    /// Tool and arguments, if it holds any: as sent, and without secrets, which is how the ledger has them.
    pub calls: Vec<Digest>,
    /// How deep the agent was.
    pub depth: u32,
    /// Whether it is about a model's response.
    pub is_response: bool,
}

/// What a report was bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Binding {
    /// One decision, found in this way.
    One(Open, &'static str),
    /// One of several that it could be: the oldest.
    Ambiguous(Open),
    /// None: nobody asked.
    Unasked,
}

/// Open decisions of all sessions.
#[derive(Debug, Default)]
pub(crate) struct OpenDecisions {
    sessions: HashMap<SessionId, VecDeque<Open>>,
    /// Decisions whose reports are on their way into the ledger, which does not show them as closed yet.
    reporting: VecDeque<RecordId>,
    /// Decisions that were added since sessions were last forgotten: at least as many as there are.
    added: usize,
}

impl OpenDecisions {
    /// Whether the session is remembered; if not, it has to be learnt from the ledger first.
    pub(crate) fn knows(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }

    /// Takes in what the ledger says of a session.
    pub(crate) fn learn(&mut self, session: SessionId, mut open: VecDeque<Open>) {
        if self.sessions.len() >= MAX_SESSIONS || self.added > MAX_DECISIONS {
            self.forget_some();
        }
        open.retain(|decision| !self.reporting.contains(&decision.id));
        self.sessions.entry(session).or_insert(open);
    }

    /// Remembers a decision.
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

    /// Finds what a report is about, and closes it.
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

    /// Takes a decision for reporting; false if its report is on its way already.
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

    /// Closes a decision that was found elsewhere, or came to nothing.
    pub(crate) fn close(&mut self, session: SessionId, sequence: u64) {
        if let Some(decisions) = self.sessions.get_mut(&session) {
            decisions.retain(|other| other.sequence != sequence);
        }
    }

    /// Forgets a session, and gives those of its decisions that were let through and never reported.
    pub(crate) fn end(&mut self, session: SessionId) -> Vec<Open> {
        let decisions = self.sessions.insert(session, VecDeque::new()).unwrap_or_default();
        let open: Vec<Open> = decisions.into_iter().filter(|open| open.let_through).collect();
        for decision in &open {
            self.claim(decision.id);
        }
        open
    }

    /// Forgets half of the sessions. Nothing is lost by it: the ledger has everything.
    fn forget_some(&mut self) {
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

/// For a report that names no action: what has been open longest; only if nothing was let through, what was denied last.
fn oldest(decisions: &VecDeque<Open>, depth: u32) -> Binding {
    let mut here = decisions.iter().filter(|open| open.depth == depth);
    let found = here.clone().find(|open| open.let_through).or_else(|| here.next_back());
    found.map_or(Binding::Unasked, |open| Binding::One(open.clone(), "oldest"))
}

/// Among several: those that were let through before those that were not; none if there are none.
fn pick<'a>(candidates: impl Iterator<Item = &'a Open>, how: &'static str) -> Option<Binding> {
    let (through, others): (Vec<&Open>, Vec<&Open>) = candidates.partition(|open| open.let_through);
    match (through.as_slice(), others.as_slice()) {
        ([one], _) => Some(Binding::One((*one).clone(), how)),
        ([oldest, ..], _) => Some(Binding::Ambiguous((*oldest).clone())),
        // Denied, and done all the same: the last of them says it best.
        ([], [.., last]) => Some(Binding::One((*last).clone(), how)),
        ([], []) => None,
    }
}

/// The open decisions of a session as the ledger has them.
pub(crate) fn read_open(reader: &Reader, session: SessionId) -> VecDeque<Open> {
    let filter = Filter {
        session: Some(session),
        kinds: vec![RecordKind::Decision, RecordKind::Outcome, RecordKind::Retracted],
        ..Filter::default()
    };
    let mut closed: HashSet<u64> = HashSet::new();
    let mut open = VecDeque::new();
    let mut bytes_read = 0;
    for record in reader.records(filter, Order::Descending).take(LOOK_BACK) {
        // What cannot be read now is found missing when it is reported, which is an alarm.
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
        let found = remembered(record.seq, envelope.id, envelope.decision, &body);
        let superseded = |open: &VecDeque<Open>| {
            open.iter().any(|later: &Open| !found.let_through && later.asked == found.asked)
        };
        if open.len() < MAX_OPEN && !superseded(&open) {
            open.push_front(found);
        }
    }
    open
}

fn remembered(sequence: u64, id: RecordId, effect: Option<Effect>, body: &Json) -> Open {
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
