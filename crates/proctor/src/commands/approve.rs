//! `proctor approve …`: people decide what agents asked for.

use std::path::PathBuf;
use std::time::Duration;

use proctor_core::id::ApprovalId;
use proctor_core::json::Json;
use proctor_core::record::RecordKind;
use proctor_core::time::{Clock, Timestamp};
use proctor_ledger::Reader;
use proctor_ledger::store::Filter;
use proctor_policy::question::ApprovalState;
use proctor_policy::scan::Scanner;
use proctor_policy::state::{ApprovalInfo, ApprovalStatus};

use super::{Context, init, records};
use crate::cli::{ApproveCommand, ApproverDecisionArgs};
use crate::failure::{Failure, OK, Outcome};
use crate::output;
use proctor_engine::access::open_reader;
use proctor_engine::approvers::{ApproverDecision, MAX_REASON, Statement};
use proctor_engine::find_ask;
use proctor_engine::state_dir::{StateDir, read_key};
use proctor_system::SystemClock;

pub(super) fn run(context: &Context, command: ApproveCommand) -> Outcome {
    match command {
        ApproveCommand::List { all } => list(context, all),
        ApproveCommand::Show { id } => show(context, &id),
        ApproveCommand::Allow(arguments) => decide(context, &arguments, ApproverDecision::Allow),
        ApproveCommand::Deny(arguments) => decide(context, &arguments, ApproverDecision::Deny),
        ApproveCommand::Watch => watch(context),
    }
}

fn list(context: &Context, all: bool) -> Outcome {
    let reader = open_reader(&context.config.engine.state)?;
    let state = proctor_engine::read_state(&reader)?;
    let now = SystemClock.now();
    let mut approvals: Vec<&ApprovalInfo> = state.approvals().collect();
    approvals.retain(|approval| all || status(approval, now) == "waiting");
    approvals.sort_by_key(|approval| (approval.asked_at, approval.id));
    if context.json {
        for approval in &approvals {
            output::data(approval_json(approval, now))?;
        }
        return Ok(OK);
    }
    if approvals.is_empty() {
        output::note("nothing waits for a decision");
        return Ok(OK);
    }
    let mut rows =
        vec![["APPROVAL", "STATUS", "TOOL", "AGENT", "PRINCIPAL", "EXPIRES"].map(str::to_owned).to_vec()];
    for approval in &approvals {
        rows.push(vec![
            approval.id.to_string(),
            status(approval, now).to_owned(),
            output::shown(&approval.tool, 30),
            output::shown(if approval.agent.is_empty() { "-" } else { &approval.agent }, 24),
            output::shown(&approval.principal, 30),
            records::clock_time(approval.expires),
        ]);
    }
    output::table(&rows)?;
    Ok(OK)
}

/// Status in lists and in JSON, which have five words: an approval that was closed unused is `refused` or `expired`.
fn status(approval: &ApprovalInfo, now: Timestamp) -> &'static str {
    match approval.status(now) {
        ApprovalStatus::Used => ApprovalStatus::Used.word(),
        _ if matches!(approval.state, ApprovalState::Refused { .. }) => ApprovalStatus::Refused.word(),
        _ if approval.closed.is_some() => ApprovalStatus::Expired.word(),
        other => other.word(),
    }
}

fn approval_json(approval: &ApprovalInfo, now: Timestamp) -> Json {
    let mut out = Json::object()
        .with("approval_id", approval.id.to_string())
        .with("status", status(approval, now))
        .with("tool", approval.tool.as_str())
        .with("agent", approval.agent.as_str())
        .with("principal", &*approval.principal)
        .with("rule", approval.rule.as_str())
        .with("asked_at", approval.asked_at.to_string())
        .with("expires_at", approval.expires.to_string());
    if let Some(session) = approval.session {
        out.push("session_id", session.to_string());
    }
    match &approval.state {
        ApprovalState::Granted { by } => out.push("decided_by", by.as_str()),
        ApprovalState::Refused { by, reason } => {
            out.push("decided_by", by.as_str());
            out.push("decision_reason", reason.as_str());
        }
        ApprovalState::Waiting => {}
    }
    out
}

fn find(reader: &Reader, text: &str) -> Result<ApprovalId, Failure> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let state = proctor_engine::read_state(reader)?;
    let found: Vec<ApprovalId> =
        state.approvals().map(|approval| approval.id).filter(|id| id.to_string().starts_with(text)).collect();
    match found.as_slice() {
        [one] if text.len() >= 4 => Ok(*one),
        [] | [_] => Err(Failure::from(format!(
            "there is no approval `{text}`: `proctor approve list` shows those that wait"
        ))),
        _ => Err(Failure::from(format!("`{text}` can be several approvals"))),
    }
}

fn show(context: &Context, text: &str) -> Outcome {
    let reader = open_reader(&context.config.engine.state)?;
    let id = find(&reader, text)?;
    let ask = find_ask(&reader, id)?.ok_or_else(|| Failure::from(format!("there is no approval {id}")))?;
    let state = proctor_engine::read_state(&reader)?;
    let open = state.approvals().find(|approval| approval.id == id);
    let now = SystemClock.now();
    let action = ask.body.pointer("/read_set/action").cloned().unwrap_or_default();
    let decision = ask.body.get("decision").cloned().unwrap_or_default();
    if context.json {
        let mut out = match &open {
            Some(approval) => approval_json(approval, now),
            None => Json::object().with("approval_id", id.to_string()).with("status", "closed"),
        };
        out.push("reason", output::member(&decision, "reason"));
        out.push("action", action);
        out.push("seq", ask.sequence);
        output::data(out)?;
        return Ok(OK);
    }
    output::data(format!("approval  {id}"))?;
    output::data(format!("status    {}", open.as_ref().map_or("closed", |approval| status(approval, now))))?;
    if let Some(approval) = &open {
        let agent = if approval.agent.is_empty() {
            String::new()
        } else {
            format!(" ({})", output::shown(&approval.agent, 80))
        };
        output::data(format!("asked by  {}{agent}", output::shown(&approval.principal, 80)))?;
        output::data(format!("expires   {}", approval.expires))?;
    }
    output::data(format!("rule      {}", output::member(&decision, "rule")))?;
    output::data(format!("reason    {}", output::shown(output::member(&decision, "reason"), 400)))?;
    for (name, value) in action.as_object().unwrap_or_default() {
        output::data(format!("  {name} = {}", output::shown(&value.to_string(), 400)))?;
    }
    Ok(OK)
}

fn decide(context: &Context, arguments: &ApproverDecisionArgs, decision: ApproverDecision) -> Outcome {
    let reader = open_reader(&context.config.engine.state)?;
    let id = find(&reader, &arguments.id)?;
    drop(reader);
    if arguments.reason.len() > MAX_REASON {
        return Err(Failure::from(format!("a reason has at most {MAX_REASON} bytes")));
    }
    if !Scanner::standard().scan_claimed(&arguments.reason).is_empty() {
        return Err(Failure::from("the reason holds a secret or an address: write it without"));
    }
    let file: PathBuf = match &arguments.credential {
        Some(file) => file.clone(),
        None => init::default_credential()?,
    };
    let key = read_key(&file).map_err(|error| {
        Failure::list([error.to_string(), "an approver credential is made by `proctor init`".to_owned()])
    })?;
    let state = StateDir::new(&context.config.engine.state);
    let statement = Statement {
        ledger: state.key()?.verifier_key().name().to_owned(),
        approval: id,
        decision,
        reason: arguments.reason.clone(),
    };
    let command = Json::object().with("op", "approve").with("signed", statement.sign(&key)?);
    let answer = records::command(context, &command)?;
    if context.json {
        output::data(&answer)?;
    } else {
        let done = if decision == ApproverDecision::Allow { "granted for one use" } else { "refused" };
        output::data(format!("{id} {done} by {}", output::member(&answer, "approver")))?;
    }
    Ok(OK)
}

fn watch(context: &Context) -> Outcome {
    let reader = open_reader(&context.config.engine.state)?;
    let size = reader.size().map_err(|error| Failure::from(error.to_string()))?;
    let filter = Filter {
        seqs: Some(size..u64::MAX),
        kinds: vec![RecordKind::Decision, RecordKind::Approval],
        ..Filter::default()
    };
    let mut follow = reader.follow(filter, || Some(Duration::from_millis(200)));
    while let Some(page) = follow.next_page().map_err(|error| Failure::from(error.to_string()))? {
        for record in page {
            let asks = record.envelope.decision == Some(proctor_core::decision::Effect::Ask);
            if record.envelope.kind == RecordKind::Decision && !asks {
                continue;
            }
            if context.json {
                output::data(records::record_json(&reader, &record, true))?;
            } else {
                let id = record.envelope.approval.map_or_else(String::new, |id| id.to_string());
                output::data(format!("{}  {id}", records::line(&record)))?;
            }
        }
    }
    Ok(OK)
}
