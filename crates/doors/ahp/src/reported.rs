//! Reports of agents: outcomes of actions and prompts, bound to their decisions.

use std::str::FromStr;

use proctor_clients::ahp::server::HandlerError;
use proctor_clients::ahp::{AhpEvent, EventType};
use proctor_core::action::Action;
use proctor_core::id::{RecordId, SessionId};
use proctor_core::json::Json;
use proctor_core::record::RecordKind;
use proctor_core::session::Caller;
use proctor_policy::prepare::prepare;
use rust_decimal::Decimal;

use super::action::{DOOR, arguments, tool_name};
use super::binding::{Binding, Reported, call_digest, canonical};
use super::{AhpDoor, event_json, not_recorded, queue_full};
use proctor_engine::{Ending, Outcome, Report, Spent, Wait};

/// Canonical tool name of model calls.
const MODEL_CALL: &str = "llm_call";

impl AhpDoor {
    /// Binds a report to its decision and records it. A report without a decision, or of a denied action, raises an alarm.
    pub(super) async fn reported(&self, caller: &Caller, event: &AhpEvent) -> Result<(), HandlerError> {
        let session = self.session(caller, event).await?;
        self.load_open(session);
        let said = self.read_report(event);
        let binding = match self.named_decision(caller, &said, session) {
            NamedDecision::Reported => return self.observe(caller, event, None, Vec::new()).await,
            NamedDecision::Open(id, sequence) => Some((id, sequence, "decision_id")),
            NamedDecision::None => match self.open().bind(session, &said) {
                Binding::One(open, how) => Some((open.id, open.sequence, how)),
                Binding::Ambiguous(open) => Some((open.id, open.sequence, "ambiguous")),
                Binding::Unasked => None,
            },
        };
        let Some((id, sequence, how)) = binding else { return self.unasked(caller, event, &said).await };
        self.until_recorded(id, sequence).await;
        let payload = &event.payload;
        let report = Report::Outcome(Outcome {
            decision: id,
            sequence: Some(sequence),
            ending: ending(payload),
            result: payload.clone(),
            tokens: tokens(payload),
            cost_usd: cost(payload),
            binding: Some(how),
        });
        self.record(caller, &event.agent_id, &event.session_id, report).await
    }

    /// Looks up the session of an event, starting it if necessary.
    pub(super) async fn session(&self, caller: &Caller, event: &AhpEvent) -> Result<SessionId, HandlerError> {
        let reservation = self.engine().reserve(self.deadline()).await.ok_or_else(queue_full)?;
        let session =
            self.engine().begin_session(reservation, caller, &event.agent_id, &event.session_id, DOOR);
        session.map_err(not_recorded)
    }

    /// Waits for the commit of a decision: its report may arrive while the decision is still queued.
    async fn until_recorded(&self, id: RecordId, sequence: u64) {
        self.engine().until_recorded(id, Some(sequence), self.deadline()).await;
    }

    /// Records a report without a decision: raises an alarm, and charges its full usage to the budget.
    async fn unasked(&self, caller: &Caller, event: &AhpEvent, said: &Reported) -> Result<(), HandlerError> {
        let tool = if said.tool.is_empty() { "an action" } else { &said.tool };
        let report = Report::Observation {
            code: event.event_type.name().to_owned(),
            data: event_json(event, None),
            alarms: vec![("unasked", format!("{tool} was done without asking"))],
            spent: Spent { tokens: tokens(&event.payload), cost_usd: cost(&event.payload) },
        };
        self.record(caller, &event.agent_id, &event.session_id, report).await
    }

    /// Resolves the `decision_id` of a report against the ledger, among the caller's own decisions in this session.
    fn named_decision(&self, caller: &Caller, said: &Reported, session: SessionId) -> NamedDecision {
        let Some(id) = said.decision else { return NamedDecision::None };
        let reader = self.engine().ledger().reader();
        let Some(sequence) = reader.by_id(&id).ok().flatten() else { return NamedDecision::None };
        let Ok(envelope) = reader.envelope(sequence) else { return NamedDecision::None };
        let own = envelope.kind == RecordKind::Decision
            && envelope.principal == self.engine().principal_text(&caller.principal);
        if !own || envelope.session != Some(session) {
            return NamedDecision::None;
        }
        let mut open = self.open();
        let is_reported = reader.once(&format!("outcome:{id}")).ok().flatten().is_some();
        if is_reported || !open.claim(id) {
            return NamedDecision::Reported;
        }
        open.close(session, sequence);
        NamedDecision::Open(id, sequence)
    }

    /// Records an unknown outcome for each open decision of an ended session.
    pub(super) async fn close_open(&self, caller: &Caller, event: &AhpEvent) -> Result<(), HandlerError> {
        let engine = self.engine();
        let session = self.session(caller, event).await?;
        self.load_open(session);
        let open = self.open().end(session);
        // All are queued before the first is awaited: a caller that disconnects cannot cancel some of them.
        let deadline = self.deadline();
        let mut queued = Vec::new();
        for open in open {
            self.until_recorded(open.id, open.sequence).await;
            let Some(reservation) = engine.reserve(deadline).await else { break };
            let report = Report::Outcome(Outcome {
                decision: open.id,
                sequence: Some(open.sequence),
                ending: Ending::Unknown,
                result: Json::Null,
                tokens: None,
                cost_usd: None,
                binding: Some("session_end"),
            });
            // A decision that was reported meanwhile needs no closing.
            queued.extend(engine.enqueue_report(
                reservation,
                caller,
                &event.agent_id,
                &event.session_id,
                DOOR,
                report,
            ));
        }
        for group in queued {
            // The error means that a concurrent report closed the decision.
            let _ = engine.report_recorded(group, Wait::Task).await;
        }
        Ok(())
    }

    /// Reads the identifying parts of a report: decision, tool, arguments, depth.
    fn read_report(&self, event: &AhpEvent) -> Reported {
        let payload = &event.payload;
        let name = tool_name(payload);
        // Agents send the response of a model as a `post_action` without a tool.
        let is_response = event.event_type == EventType::PostResponse
            || (name.is_empty() && payload.get("response_text").is_some());
        let decision = [event.metadata.as_ref(), payload.get("metadata"), Some(payload)]
            .into_iter()
            .flatten()
            .find_map(|place| place.get("decision_id")?.as_str()?.parse::<RecordId>().ok());
        let tool = if is_response { MODEL_CALL.to_owned() } else { canonical(name) };
        let args = arguments(payload);
        let mut calls = Vec::new();
        if !args.is_null() && !is_response {
            calls.push(call_digest(&tool, &args));
            let action = Action { name: name.to_owned(), args, ..Action::default() };
            let cut = prepare(&self.engine().policy(), &action, None);
            let cut = call_digest(&tool, &cut.facts.args);
            if !calls.contains(&cut) {
                calls.push(cut);
            }
        }
        Reported { decision, tool, calls, depth: event.depth, is_response }
    }
}

/// State of the decision that a report names by `decision_id`.
enum NamedDecision {
    /// The report names no decision of the caller.
    None,
    /// The decision has no outcome yet.
    Open(RecordId, u64),
    /// The outcome is recorded or queued: the report is a duplicate, not a second action.
    Reported,
}

/// Reads the ending from any of the members that agents use for it.
fn ending(payload: &Json) -> Ending {
    let places = [payload.get("result"), Some(payload)];
    for place in places.into_iter().flatten() {
        if let Some(success) = place.get("success").and_then(Json::as_bool) {
            return if success { Ending::Ok } else { Ending::Failed };
        }
        if let Some(code) = place.get("exit_code").and_then(Json::as_i64) {
            return if code == 0 { Ending::Ok } else { Ending::Failed };
        }
        if let Some(status) = place.get("status").and_then(Json::as_str) {
            let failed = ["error", "failed", "failure", "timeout", "cancelled", "aborted"];
            return if failed.contains(&status.to_ascii_lowercase().as_str()) {
                Ending::Failed
            } else {
                Ending::Ok
            };
        }
        if place.get("error").is_some_and(|error| !error.is_null()) {
            return Ending::Failed;
        }
    }
    Ending::Ok
}

/// Reads the tokens used.
fn tokens(payload: &Json) -> Option<u64> {
    let usage = payload.get("usage").unwrap_or(payload);
    let number = |name: &str| usage.get(name).and_then(Json::as_u64);
    number("total_tokens").or_else(|| {
        let parts = ["prompt_tokens", "completion_tokens", "input_tokens", "output_tokens"];
        parts.iter().filter_map(|name| number(name)).reduce(u64::saturating_add)
    })
}

/// Reads the cost.
fn cost(payload: &Json) -> Option<Decimal> {
    let usage = payload.get("usage").unwrap_or(&Json::Null);
    let value = usage.get("cost_usd").or_else(|| payload.get("cost_usd"))?;
    let literal = match value {
        Json::Number(literal) => literal,
        Json::String(literal) => literal.as_str(),
        _ => return None,
    };
    Decimal::from_str(literal).ok().filter(|cost| !cost.is_sign_negative())
}
