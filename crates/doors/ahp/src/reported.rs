//! What agents report: outcomes of actions and prompts, bound to their decisions.

use std::str::FromStr;

use proctor_clients::ahp::server::HandlerError;
use proctor_clients::ahp::{AhpEvent, EventType};
use proctor_core::action::Action;
use proctor_core::id::{RecordId, SessionId};
use proctor_core::json::Json;
use proctor_core::record::{RecordKind, claimed};
use proctor_core::session::Caller;
use proctor_policy::prepare::prepare;
use rust_decimal::Decimal;

use super::action::{DOOR, arguments, tool_name};
use super::binding::{Binding, Reported, call_digest, canonical};
use super::{AhpDoor, event_json, no_room, not_recorded};
use proctor_engine::{Ending, Outcome, Report, Spent, Wait};

/// The canonical name under which calls to models are decided.
const MODEL_CALL: &str = "llm_call";

impl AhpDoor {
    /// Binds a report to its decision and records it. Nobody asked, or it was denied: an alarm.
    pub(super) async fn reported(&self, caller: &Caller, event: &AhpEvent) -> Result<(), HandlerError> {
        let session = self.session(caller, event).await?;
        self.know(session);
        let said = self.said(event);
        let binding = match self.named(caller, &said, session) {
            Named::Reported => return self.observe(caller, event, None, Vec::new()).await,
            Named::Open(id, sequence) => Some((id, sequence, "decision_id")),
            Named::No => match self.open().bind(session, &said) {
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

    /// The session of an event; it begins if it has not begun.
    pub(super) async fn session(&self, caller: &Caller, event: &AhpEvent) -> Result<SessionId, HandlerError> {
        let room = self.engine().room(self.deadline()).await.ok_or_else(no_room)?;
        let session = self.engine().begin_session(room, caller, &event.agent_id, &event.session_id, DOOR);
        session.map_err(not_recorded)
    }

    /// A report may come in the same breath as its decision, which then has its place in the queue but is not on record yet.
    async fn until_recorded(&self, id: RecordId, sequence: u64) {
        self.engine().until_recorded(id, Some(sequence), self.deadline()).await;
    }

    /// Nobody asked for this: an alarm, and billed in full.
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

    /// The decision that a report names, if it is one of the caller's; the ledger knows those that are not remembered here.
    fn named(&self, caller: &Caller, said: &Reported, session: SessionId) -> Named {
        let Some(id) = said.decision else { return Named::No };
        let reader = self.engine().ledger().reader();
        let Some(sequence) = reader.by_id(&id).ok().flatten() else { return Named::No };
        let Ok(envelope) = reader.envelope(sequence) else { return Named::No };
        let own = envelope.kind == RecordKind::Decision && envelope.principal == claimed(&caller.principal);
        if !own || envelope.session != Some(session) {
            return Named::No;
        }
        let mut open = self.open();
        let is_reported = reader.once(&format!("outcome:{id}")).ok().flatten().is_some();
        if is_reported || !open.claim(id) {
            return Named::Reported;
        }
        open.close(session, sequence);
        Named::Open(id, sequence)
    }

    /// Closes what a session leaves open.
    pub(super) async fn close_open(&self, caller: &Caller, event: &AhpEvent) -> Result<(), HandlerError> {
        let engine = self.engine();
        let session = self.session(caller, event).await?;
        self.know(session);
        let open = self.open().end(session);
        // All of them get their places before the first is waited for: whatever happens to the caller, they are on record.
        let deadline = self.deadline();
        let mut filings = Vec::new();
        for open in open {
            self.until_recorded(open.id, open.sequence).await;
            let Some(room) = engine.room(deadline).await else { break };
            let report = Report::Outcome(Outcome {
                decision: open.id,
                sequence: Some(open.sequence),
                ending: Ending::Unknown,
                result: Json::Null,
                tokens: None,
                cost_usd: None,
                binding: Some("session_end"),
            });
            // One that was reported meanwhile needs no closing.
            filings.extend(engine.file_report(
                room,
                caller,
                &event.agent_id,
                &event.session_id,
                DOOR,
                report,
            ));
        }
        for filing in filings {
            // One that was reported in the same breath needs no closing either.
            let _ = engine.report_filed(filing, Wait::Task).await;
        }
        Ok(())
    }

    /// What a report says about the action that it is about.
    fn said(&self, event: &AhpEvent) -> Reported {
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

/// What became of the decision that a report names.
enum Named {
    /// It names none that is the caller's.
    No,
    /// It waits for its report.
    Open(RecordId, u64),
    /// It was reported before: not done twice without asking, only said twice.
    Reported,
}

/// How it ended, in any of the words that agents use.
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

/// Tokens really used.
fn tokens(payload: &Json) -> Option<u64> {
    let usage = payload.get("usage").unwrap_or(payload);
    let number = |name: &str| usage.get(name).and_then(Json::as_u64);
    number("total_tokens").or_else(|| {
        let parts = ["prompt_tokens", "completion_tokens", "input_tokens", "output_tokens"];
        parts.iter().filter_map(|name| number(name)).reduce(u64::saturating_add)
    })
}

/// Money really spent.
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
