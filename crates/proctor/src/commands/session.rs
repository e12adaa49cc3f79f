//! `proctor session …`

use std::collections::HashMap;

use proctor_core::id::SessionId;
use proctor_core::json::Json;
use proctor_core::record::RecordKind;
use proctor_ledger::Reader;
use proctor_ledger::reader::BodyState;
use proctor_ledger::store::{Filter, Order};

use super::{Context, records};
use crate::cli::SessionCommand;
use crate::failure::{Failure, OK, Outcome};
use crate::output;
use proctor_door_ahp::fold_runs;
use proctor_engine::access::open_reader;
use proctor_engine::traces::{find_session, read_trace};

pub(super) fn run(context: &Context, command: &SessionCommand) -> Outcome {
    let reader = open_reader(&context.config.engine.state)?;
    match command {
        SessionCommand::List { limit } => list(context, &reader, *limit),
        SessionCommand::Show { id, trace } => {
            let session = find_session(&reader, id)?;
            if *trace {
                output::data(read_trace(&reader, session)?.to_json())?;
                return Ok(OK);
            }
            show(context, &reader, session)
        }
    }
}

fn list(context: &Context, reader: &Reader, limit: usize) -> Outcome {
    let state = proctor_engine::read_state(reader)?;
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
        output::note(
            "no sessions of agents yet (runs of suites: `proctor runs list`; of workflows: `proctor manifest audit`)",
        );
        return Ok(OK);
    }
    output::table(&rows)?;
    Ok(OK)
}

/// Session names that the agents claimed.
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
        output::data(records::line_of_session(&record))?;
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
        return Err(Failure::from(format!(
            "there is no session `{session}`: `proctor session list` shows them"
        )));
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

/// Summary of an alarm in one line.
fn problem(reader: &Reader, sequence: u64) -> Option<String> {
    let BodyState::Present { bytes, .. } = reader.body(sequence).ok()? else { return None };
    Json::parse(&bytes).ok()?.get("problem")?.as_str().map(str::to_owned)
}

/// Summary of an action in one line.
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
