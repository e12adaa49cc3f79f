//! One call of a tool: refusals, the decision, the tool itself, and the outcome.

use std::sync::Arc;
use std::time::Duration;

use proctor_core::action::{Action, ActionKind};
use proctor_core::decision::Effect;
use proctor_core::json::Json;
use proctor_core::quoted;
use proctor_engine::Ending;
use proctor_wire::atp::ErrorCode;
use proctor_wire::atp::tool::{Call, Outcome, Reply};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::DOOR;
use crate::backend::{ToolInfo, ToolResult};
use crate::calls::{CallIndex, CallStatus, DecisionRecord, EndedCall};
use crate::decider::{Decided, OutcomeReport, Refusal};
use crate::door::Shared;
use crate::run::{ApprovalAnswer, Question};

/// Longest result that is written into a record; of longer ones only length and digest are. The ledger's own limit is 16 MiB, and a
/// relay carries lines of 4 MiB.
const MAX_RESULT: usize = 1024 * 1024;

/// Tools that are named to an agent that called an unknown one.
const MAX_NAMED_TOOLS: usize = 100;

/// Member that carries arguments which are no object: those of actions always are one.
const WRAPPED: &str = "input";

/// The end of a call, before it is listed.
struct End {
    reply: Reply,
    status: CallStatus,
    decision: Option<DecisionRecord>,
    outcome: Option<u64>,
    changed_input: Option<Json>,
}

impl End {
    fn refused(reply: Reply, status: CallStatus) -> End {
        End { reply, status, decision: None, outcome: None, changed_input: None }
    }
}

impl Shared {
    /// Carries out a call. Returns the reply.
    pub(crate) async fn call(&self, call: &Call) -> Reply {
        let started = Instant::now();
        let index = match self.begin(call).await {
            Ok(index) => index,
            Err(reply) => return *reply,
        };
        let end = self.decide_and_run(call).await;
        self.end(index, started.elapsed(), end)
    }

    /// Refuses a call whose body cannot be read.
    pub(crate) async fn malformed(&self, call: &Call, problem: String) -> Reply {
        let started = Instant::now();
        let index = match self.begin(call).await {
            Ok(index) => index,
            Err(reply) => return *reply,
        };
        let reply = Reply::error(problem.as_str(), ErrorCode::InvalidRequest, None);
        let outcome = self.record_refusal(call, "malformed", problem).await;
        let end = End { outcome, ..End::refused(reply, CallStatus::Malformed) };
        self.end(index, started.elapsed(), end)
    }

    /// The tools that the run may call.
    pub(crate) fn available_tools(&self) -> Vec<ToolInfo> {
        let mut tools = self.backend.tools();
        tools.retain(|tool| self.run.allows(&tool.name));
        tools
    }

    /// Lists a call that begins; the reply of refusal if the run has made as many calls as it may.
    async fn begin(&self, call: &Call) -> Result<CallIndex, Box<Reply>> {
        let begun = self.calls.begin(self.clock.now(), call.clone(), self.run.max_calls);
        let over_limit = match begun {
            Ok(index) => return Ok(index),
            Err(over_limit) => over_limit,
        };
        let problem = format!("the run has made all of its {} tool calls", self.run.max_calls);
        if over_limit.is_first {
            self.record_refusal(call, "too_many_calls", problem.clone()).await;
        }
        Err(Box::new(Reply::error(problem, ErrorCode::BudgetExceeded, None)))
    }

    fn end(&self, index: CallIndex, duration: Duration, end: End) -> Reply {
        let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let reply = end.reply.with_duration_ms(milliseconds);
        let ended = self.calls.end(
            index,
            EndedCall {
                reply: reply.clone(),
                status: end.status,
                duration,
                decision: end.decision,
                outcome: end.outcome,
                changed_input: end.changed_input,
            },
        );
        if let (Some(on_call), Some(ended)) = (&self.run.on_call, ended) {
            on_call(&ended);
        }
        reply
    }

    async fn decide_and_run(&self, call: &Call) -> End {
        if let Some(task_id) = call.task_id.as_ref().filter(|task_id| **task_id != self.run.task_id) {
            let problem = format!("task {} is not the one that this endpoint is for", quoted(task_id));
            let outcome = self.record_refusal(call, "foreign_task", problem.clone()).await;
            let reply = Reply::error(problem, ErrorCode::InvalidRequest, None);
            return End { outcome, ..End::refused(reply, CallStatus::ForeignTask) };
        }
        if !self.run.allows(&call.tool) {
            let problem = format!("tool {} is not allowed in this run", quoted(&call.tool));
            let outcome = self.record_refusal(call, "tool_not_allowed", problem.clone()).await;
            let reply = Reply::error(problem, ErrorCode::ToolNotFound, Some(self.named_tools()));
            return End { outcome, ..End::refused(reply, CallStatus::NotAllowed) };
        }
        let input = call.input.clone().unwrap_or_else(Json::object);
        let decided = self.decider.decide(&self.run, self.action(call, &input)).await;
        let decision = Some(decided.record.clone());
        let is_approved = match decided.record.effect {
            Effect::Allow | Effect::Modify | Effect::Redact => false,
            Effect::Ask => match self.approve(call, &input, &decided).await {
                Ok(()) => true,
                Err(reply) => return End { decision, ..End::refused(*reply, CallStatus::NotApproved) },
            },
            Effect::Deny | Effect::Defer => {
                let reply = refused(&decided, &decided.record.reason);
                return End { decision, ..End::refused(reply, CallStatus::Denied) };
            }
        };
        let (changed_input, (reply, status)) = match changed(&input, &decided) {
            Ok(changed) => {
                let result = self.run_tool(&call.tool, changed.clone().unwrap_or(input)).await;
                (changed, result)
            }
            Err(problem) => {
                let reply = refused(&decided, &problem.to_string());
                (None, (reply, CallStatus::Failed))
            }
        };
        let outcome = self.record_outcome(&decided, &reply, is_approved).await;
        End { reply, status, decision, outcome, changed_input }
    }

    fn action(&self, call: &Call, input: &Json) -> Action {
        Action {
            kind: ActionKind::ToolCall,
            name: self.run.text_without_secrets(&call.tool),
            args: self.run.without_secrets(wrapped(input.clone())),
            door: DOOR.to_owned(),
            ..Action::default()
        }
    }

    /// Asks the run's approvals. The reply of refusal if they do not approve.
    async fn approve(&self, call: &Call, input: &Json, decided: &Decided) -> Result<(), Box<Reply>> {
        let record = &decided.record;
        let question = Question { tool: &call.tool, input, rule: &record.rule, reason: &record.reason };
        let answer = self.run.approvals.as_ref().and_then(|approvals| approvals(&question));
        let Some(ApprovalAnswer { is_approved, reason }) = answer else {
            let problem = format!("an approval is needed, and the run has none: {}", record.reason);
            return Err(Box::new(refused(decided, &problem)));
        };
        let recorded = self.decider.approval(&self.run, record, is_approved, &reason).await;
        if !is_approved {
            return Err(Box::new(refused(decided, &format!("not approved: {reason}"))));
        }
        // What is not on record is not let through.
        recorded.map(|_| ()).map_err(|error| Box::new(refused(decided, &format!("not recorded: {error}"))))
    }

    /// Calls the backend within the time limit.
    async fn run_tool(&self, tool: &str, input: Json) -> (Reply, CallStatus) {
        let stopped = || {
            let reply = Reply::error("the run ended before the tool did", ErrorCode::Timeout, None);
            (reply, CallStatus::Stopped)
        };
        if self.stop.is_cancelled() {
            return stopped();
        }
        let (backend, name) = (Arc::clone(&self.backend), tool.to_owned());
        // A task of its own: a tool that panics fails, and the endpoint goes on.
        let task = tokio::spawn(async move { backend.call(&name, &input).await });
        let running = tokio::time::timeout(self.run.call_timeout, AbortOnDropHandle::new(task));
        let result = tokio::select! {
            result = running => result,
            () = self.stop.cancelled() => return stopped(),
        };
        match result {
            Ok(Ok(ToolResult::Success(output))) => (Reply::success(output), CallStatus::Success),
            Ok(Ok(ToolResult::Failed { error, code, details, output })) => {
                let code = Some(code.unwrap_or(ErrorCode::ToolError));
                let outcome = Outcome::Error { error, code, details, output };
                (Reply { outcome, duration_ms: None }, CallStatus::Failed)
            }
            Ok(Ok(ToolResult::UnknownTool)) => {
                let problem = format!("tool {} does not exist", quoted(tool));
                let reply = Reply::error(problem, ErrorCode::ToolNotFound, Some(self.named_tools()));
                (reply, CallStatus::UnknownTool)
            }
            Ok(Err(_panicked)) => {
                let reply = Reply::error("the tool failed inside", ErrorCode::InternalError, None);
                (reply, CallStatus::Failed)
            }
            Err(_elapsed) => {
                let seconds = self.run.call_timeout.as_secs_f64();
                let problem = format!("the tool took longer than {seconds} s");
                (Reply::error(problem, ErrorCode::Timeout, None), CallStatus::TimedOut)
            }
        }
    }

    fn named_tools(&self) -> Json {
        let tools = self.available_tools();
        let names: Vec<Json> =
            tools.into_iter().take(MAX_NAMED_TOOLS).map(|tool| Json::from(tool.name)).collect();
        Json::object().with("available_tools", names)
    }

    async fn record_outcome(&self, decided: &Decided, reply: &Reply, is_approved: bool) -> Option<u64> {
        let (ending, result) = match &reply.outcome {
            Outcome::Success { output } => (Ending::Ok, output.clone()),
            Outcome::Error { error, code, details, output } => {
                let mut result = Json::object().with("error", error.as_str());
                let code = code.as_ref().map(ErrorCode::as_str);
                for (name, value) in [
                    ("error_code", Json::from(code)),
                    ("error_details", details.clone().into()),
                    ("output", output.clone().into()),
                ] {
                    if !value.is_null() {
                        result.push(name, value);
                    }
                }
                (Ending::Failed, result)
            }
        };
        let result = bounded(self.run.without_secrets(result));
        let (decision, sequence) = decided.record.record?;
        let report = OutcomeReport { decision, sequence, ending, result, is_approved };
        let recorded = self.decider.outcome(&self.run, report).await;
        recorded.map_err(|error| log::warn!("the outcome of a tool call is not on record: {error}")).ok()
    }

    /// Records a call that is refused before the policy is asked.
    async fn record_refusal(&self, call: &Call, code: &'static str, problem: String) -> Option<u64> {
        let mut about = Json::object().with("tool", call.tool.as_str());
        if let Some(task_id) = &call.task_id {
            about.push("task_id", task_id.as_str());
        }
        if let Some(input) = &call.input {
            about.push("input", input.clone());
        }
        let problem = self.run.text_without_secrets(&problem);
        let refusal = Refusal { code, problem, about: bounded(self.run.without_secrets(about)) };
        let recorded = self.decider.refusal(&self.run, refusal).await;
        recorded.map_err(|error| log::warn!("a refused tool call is not on record: {error}")).ok()
    }
}

/// A change of the policy's that the arguments of a call cannot take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the policy's change of {} cannot be made in this call", quoted(.0))]
struct ImpossibleChange(String);

/// The reply to a call that the policy does not let through.
fn refused(decided: &Decided, problem: &str) -> Reply {
    let record = &decided.record;
    let mut details =
        Json::object().with("rule", record.rule.as_str()).with("reason", record.reason.as_str());
    if let Some(milliseconds) = decided.retry_after_ms {
        details.push("retry_after_ms", milliseconds);
    }
    Reply::error(problem, ErrorCode::ToolError, Some(details))
}

/// The input with the changes of a decision; none if there are none. A change that cannot be made is an error: the call must not happen
/// without it.
fn changed(input: &Json, decided: &Decided) -> Result<Option<Json>, ImpossibleChange> {
    if decided.changes.is_empty() {
        return Ok(None);
    }
    let mut holder = Json::object().with("args", wrapped(input.clone()));
    for change in &decided.changes {
        let is_argument = change.path.starts_with("$.args");
        if !is_argument
            || !proctor_policy::json_path::put(&change.path, &mut holder, change.replacement.clone())
        {
            return Err(ImpossibleChange(change.path.clone()));
        }
    }
    let mut args = holder.get("args").cloned().unwrap_or_default();
    if !matches!(input, Json::Object(_)) {
        args = args.get(WRAPPED).cloned().unwrap_or_default();
    }
    Ok(Some(args))
}

/// Arguments of an action: objects as they are, other values as the only member of one.
fn wrapped(input: Json) -> Json {
    match input {
        Json::Object(_) => input,
        other => Json::object().with(WRAPPED, other),
    }
}

/// A value for a record; length and digest instead of one that is too long.
fn bounded(value: Json) -> Json {
    let text = value.to_string();
    if text.len() <= MAX_RESULT {
        return value;
    }
    let digest = proctor_core::digest::Digest::of(text.as_bytes());
    Json::object().with("omitted_bytes", text.len()).with("sha256", digest.to_string())
}

#[cfg(test)]
mod tests;
