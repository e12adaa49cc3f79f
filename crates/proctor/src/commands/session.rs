//! `proctor session …`

use std::collections::HashMap;

use proctor_core::action::ActionKind;
use proctor_core::decision::Effect;
use proctor_core::id::SessionId;
use proctor_core::json::Json;
use proctor_core::record::{Amount, Envelope, RecordKind};
use proctor_core::trace::{Step, StepKind, Trace};
use proctor_ledger::Reader;
use proctor_ledger::reader::BodyState;
use proctor_ledger::store::{Field, Filter, Order};

use super::{Context, records};
use crate::access::open_reader;
use crate::cli::SessionCommand;
use crate::doors::ahp::fold_runs;
use crate::failure::{Failure, OK, Outcome};
use crate::output;

pub(super) fn run(context: &Context, command: &SessionCommand) -> Outcome {
    let reader = open_reader(&context.config.state)?;
    match command {
        SessionCommand::List { limit } => list(context, &reader, *limit),
        SessionCommand::Show { id, trace } => {
            let session = find(&reader, id)?;
            if *trace {
                output::data(read_trace(&reader, session)?.to_json())?;
                return Ok(OK);
            }
            show(context, &reader, session)
        }
    }
}

/// The session that a text names: our id, a unique prefix of it, or the claimed id when only one session has it.
pub fn find(reader: &Reader, text: &str) -> Result<SessionId, Failure> {
    if let Ok(id) = text.parse::<SessionId>() {
        return Ok(id);
    }
    let fail = |error: proctor_ledger::ReadError| Failure::from(error.to_string());
    let mut found: Vec<SessionId> = Vec::new();
    if text.len() >= 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
        let ids = reader.values(Field::Session, text, 3).map_err(fail)?;
        found.extend(ids.iter().filter_map(|id| id.parse::<SessionId>().ok()));
    }
    if found.is_empty() {
        let filter = Filter { kinds: vec![RecordKind::Session], ..Filter::default() };
        for record in reader.records(filter, Order::Ascending) {
            let envelope = record.map_err(fail)?.envelope;
            if envelope.code == proctor_core::record::claimed(text)
                && let Some(session) = envelope.session
            {
                found.push(session);
            }
        }
    }
    match found.as_slice() {
        [] => Err(Failure::from(format!("there is no session `{text}`: `proctor session list` shows them"))),
        [one] => Ok(*one),
        several => {
            let ids: Vec<String> = several.iter().take(5).map(ToString::to_string).collect();
            Err(Failure::from(format!("`{text}` can be several sessions: {}", ids.join(", "))))
        }
    }
}

fn list(context: &Context, reader: &Reader, limit: usize) -> Outcome {
    let state = crate::engine::read_state(reader)?;
    let mut sessions: Vec<_> = state.sessions().collect();
    sessions.sort_by_key(|session| std::cmp::Reverse((session.last, session.id)));
    sessions.truncate(limit);
    let claimed = claimed_ids(reader, sessions.iter().map(|session| session.id).collect())?;
    if context.json {
        for session in &sessions {
            output::data(
                Json::object()
                    .with("session_id", session.id.to_string())
                    .with("claimed", claimed.get(&session.id).map_or("", String::as_str))
                    .with("agent", session.agent.as_str())
                    .with("principal", session.principal.as_str())
                    .with("first", session.first.to_string())
                    .with("last", session.last.to_string())
                    .with("let_through", session.let_through)
                    .with("denied", session.denied)
                    .with("asked", session.asked)
                    .with("alarms", session.alarms),
            )?;
        }
        return Ok(OK);
    }
    let mut rows = vec![
        ["SESSION", "CLAIMED", "AGENT", "LAST", "THROUGH", "DENIED", "ASKED", "ALARMS"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for session in &sessions {
        rows.push(vec![
            session.id.to_string(),
            output::shown(
                claimed.get(&session.id).filter(|name| !name.is_empty()).map_or("-", String::as_str),
                24,
            ),
            output::shown(if session.agent.is_empty() { "-" } else { &session.agent }, 24),
            records::clock_time(session.last),
            session.let_through.to_string(),
            session.denied.to_string(),
            session.asked.to_string(),
            session.alarms.to_string(),
        ]);
    }
    if sessions.is_empty() {
        output::note("no sessions yet");
        return Ok(OK);
    }
    output::table(&rows)?;
    Ok(OK)
}

/// What the agents called these sessions.
fn claimed_ids(reader: &Reader, wanted: Vec<SessionId>) -> Result<HashMap<SessionId, String>, Failure> {
    let mut names = HashMap::new();
    for session in wanted {
        let filter = Filter { kinds: vec![RecordKind::Session], session: Some(session), ..Filter::default() };
        if let Some(record) = reader.records(filter, Order::Ascending).next() {
            let record = record.map_err(|error| Failure::from(error.to_string()))?;
            names.insert(session, record.envelope.code);
        }
    }
    Ok(names)
}

fn show(context: &Context, reader: &Reader, session: SessionId) -> Outcome {
    let filter = Filter { session: Some(session), ..Filter::default() };
    let mut any = false;
    for record in reader.records(filter, Order::Ascending) {
        let record = record.map_err(|error| Failure::from(error.to_string()))?;
        any = true;
        if context.json {
            output::data(records::record_json(reader, &record, true))?;
            continue;
        }
        // Columns are of fixed width here: the session may be longer than memory.
        let line = records::line(&record);
        let part = |index: usize| line.get(index).map_or("", String::as_str);
        output::data(format!("{:>8}  {}  {:<11}  {}", part(0), part(1), part(2), part(4)))?;
        let detail = match record.envelope.kind {
            RecordKind::Decision => target(reader, record.seq),
            RecordKind::Alarm => problem(reader, record.seq),
            _ => None,
        };
        if let Some(text) = detail {
            output::data(format!("{:>8}  {}", "", output::dim(&output::shown(&text, 100))))?;
        }
    }
    if !any {
        return Err(Failure::from(format!("there is no session {session}")));
    }
    if !context.json {
        show_runs(reader, session)?;
    }
    Ok(OK)
}

/// The runs that the agent reported about, as they stand now.
fn show_runs(reader: &Reader, session: SessionId) -> Result<(), Failure> {
    for (id, run) in fold_runs(reader, session) {
        let status = run.status.map_or("-", |status| status.name());
        let done = run.tasks.iter().filter(|task| !task.status.is_open()).count();
        let verified = run.verification.as_ref().map_or("not verified", |it| it.status.name());
        let id = output::shown(&id, 40);
        output::data(format!(
            "run {id}: {status}, {done} of {} tasks done, verification: {verified}",
            run.tasks.len()
        ))?;
        for risk in run.verification.iter().flat_map(|it| &it.residual_risks).take(10) {
            output::data(format!("    risk: {}", output::shown(risk, 100)))?;
        }
    }
    Ok(())
}

/// What an alarm is about, in one line.
fn problem(reader: &Reader, sequence: u64) -> Option<String> {
    let BodyState::Present { bytes, .. } = reader.body(sequence).ok()? else { return None };
    Json::parse(&bytes).ok()?.get("problem")?.as_str().map(str::to_owned)
}

/// What the action was about, in one line.
fn target(reader: &Reader, sequence: u64) -> Option<String> {
    let BodyState::Present { bytes, .. } = reader.body(sequence).ok()? else { return None };
    let body = Json::parse(&bytes).ok()?;
    let action = body.pointer("/read_set/action")?;
    let named = ["command", "path", "url", "host", "model", "text"]
        .iter()
        .filter_map(|name| action.get(name)?.as_str())
        .find(|text| !text.is_empty());
    match named {
        Some(text) => Some(text.to_owned()),
        None => action.get("args").filter(|args| !args.is_null()).map(ToString::to_string),
    }
}

/// A session as a trace: what was let through or reported as done, in ledger order.
pub fn read_trace(reader: &Reader, session: SessionId) -> Result<Trace, Failure> {
    let fail = |error: proctor_ledger::ReadError| Failure::from(error.to_string());
    let mut trace = Trace::new(session);
    let filter = Filter { session: Some(session), ..Filter::default() };
    for record in reader.records(filter, Order::Ascending) {
        let record = record.map_err(fail)?;
        let body = match reader.body(record.seq) {
            Ok(BodyState::Present { bytes, .. }) => Json::parse(&bytes).unwrap_or_default(),
            _ => Json::Null,
        };
        let envelope = &record.envelope;
        trace.times = Some((trace.times.map_or(envelope.time, |(first, _)| first), envelope.time));
        if trace.agent.is_empty() {
            trace.agent.clone_from(&envelope.agent);
        }
        match envelope.kind {
            RecordKind::Decision => add_decision(&mut trace, record.seq, &body, envelope),
            RecordKind::Settlement => spend(&mut trace, &envelope.amounts, false),
            RecordKind::Retracted => {
                for link in &envelope.links {
                    if let Ok(at) = trace.steps.binary_search_by_key(link, |step| step.sequence) {
                        trace.steps.remove(at);
                        spend(&mut trace, &reader.envelope(*link).map_err(fail)?.amounts, true);
                    }
                }
            }
            RecordKind::Outcome => add_outcome(&mut trace, &body, envelope),
            RecordKind::Observation if envelope.code == "response" => {
                let data = body.get("data");
                let text = data.and_then(|data| data.as_str().or_else(|| data.get("text")?.as_str()));
                trace.output = text.unwrap_or_default().to_owned();
            }
            _ => {}
        }
    }
    match trace.times {
        Some(_) => Ok(trace),
        None => Err(Failure::from(format!("there is no session {session}"))),
    }
}

/// Adds amounts to what the session used, or takes them away again.
fn spend(trace: &mut Trace, amounts: &[Amount], back: bool) {
    for amount in amounts {
        let sum = match amount.unit.as_str() {
            "tokens" => &mut trace.tokens,
            "usd" => &mut trace.cost_usd,
            _ => continue,
        };
        let value = if back { -amount.value } else { amount.value };
        *sum = Some(sum.unwrap_or_default().saturating_add(value));
    }
}

fn add_outcome(trace: &mut Trace, body: &Json, envelope: &Envelope) {
    let of = envelope.links.first().copied().unwrap_or_default();
    // Steps stand in the order of their sequences.
    let step = trace.steps.binary_search_by_key(&of, |step| step.sequence).ok();
    let Some(step) = step.and_then(|at| trace.steps.get_mut(at)) else { return };
    step.ended = Some(envelope.time);
    let Some(result) = body.get("result") else { return };
    if step.kind == StepKind::LlmCall
        && let Some(text) = response_text(result)
    {
        text.clone_into(&mut trace.output);
    }
    step.result = result.clone();
}

/// What a model answered, in any of the members that agents use.
fn response_text(result: &Json) -> Option<&str> {
    ["response_text", "response", "text", "content"].iter().find_map(|name| result.get(name)?.as_str())
}

fn add_decision(trace: &mut Trace, sequence: u64, body: &Json, envelope: &Envelope) {
    let action = body.pointer("/read_set/action").cloned().unwrap_or_default();
    if !envelope.decision.is_some_and(Effect::lets_through) {
        trace.denied.push(action.with("sequence", sequence));
        return;
    }
    spend(trace, &envelope.amounts, false);
    let kind = match output::member(&action, "kind").parse() {
        Ok(ActionKind::LlmCall) => StepKind::LlmCall,
        Ok(ActionKind::AgentSpawn) => StepKind::AgentCall,
        _ => StepKind::ToolCall,
    };
    // A step has a name, whatever the action did not say.
    let named = ["tool", "name", "model", "kind"].iter().map(|member| output::member(&action, member));
    let name = named.into_iter().find(|name| !name.trim().is_empty()).unwrap_or("action");
    let alias = Some(output::member(&action, "name")).filter(|alias| *alias != name).unwrap_or_default();
    let mut holder = Json::object().with("args", action.get("args").cloned().unwrap_or_default());
    for change in body.pointer("/decision/changes").and_then(Json::as_array).unwrap_or_default() {
        let replacement = change.get("replacement").cloned().unwrap_or_default();
        proctor_policy::json_path::put(output::member(change, "path"), &mut holder, replacement);
    }
    trace.steps.push(Step {
        sequence,
        kind,
        name: name.to_owned(),
        alias: alias.to_owned(),
        args: holder.get("args").cloned().unwrap_or_default(),
        result: Json::Null,
        started: envelope.time,
        ended: None,
    });
}
