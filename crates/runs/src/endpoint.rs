//! Tools endpoints of runs.

use std::net::TcpListener;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use proctor_core::json::Json;
use proctor_door_atp::{
    ApprovalAnswer, Approvals, CallStatus, OnCall, Question, RecordedCall, Run, SecretCutter, ToolDoor,
};
use proctor_runner::suite::{Approval, ApprovalDecision};
use proctor_runner::tools::{
    EndpointError, EndpointRun, MAX_CALLS, ToolCall, ToolCallStatus, ToolEndpoint, ToolEndpoints,
};

use crate::store::RunStore;

struct Open(ToolDoor);

impl ToolEndpoint for Open {
    fn url(&self) -> &str {
        self.0.url()
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.0.finish().await;
        })
    }
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> EndpointError {
    EndpointError(Box::new(error))
}

impl ToolEndpoints for RunStore {
    fn open<'a>(
        &'a self,
        listener: TcpListener,
        run: EndpointRun<'a>,
    ) -> BoxFuture<'a, Result<Box<dyn ToolEndpoint>, EndpointError>> {
        Box::pin(async move {
            let (decider, settings) = self.run(run.task_id, run.agent).map_err(failed)?;
            let secrets = Arc::clone(run.secrets);
            let cut_secrets: SecretCutter = Arc::new(move |mut value: Json| {
                secrets.cut_json(&mut value, &mut Vec::new());
                value
            });
            let backend =
                self.tools.backend(&run.test.mock_tools, run.task_id, &cut_secrets).map_err(failed)?;
            let allowed = run.test.constraints.allowed_tools.as_ref();
            let settings = Run {
                allowed_tools: allowed.map(|tools| tools.to_vec()),
                max_calls: MAX_CALLS,
                call_timeout: run.call_timeout,
                approvals: approvals(&run.test.approvals),
                on_call: Some(on_call(run.calls, Arc::clone(&cut_secrets))),
                cut_secrets: Some(cut_secrets),
                ..settings
            };
            let (clock, randomness) = (Arc::clone(&self.clock), &*self.randomness);
            let door =
                ToolDoor::open(listener, settings, decider, backend, clock, randomness).map_err(failed)?;
            let open: Box<dyn ToolEndpoint> = Box::new(Open(door));
            Ok(open)
        })
    }
}

/// The suite's answers to questions of the policy; none if it has none.
fn approvals(listed: &Arc<[Approval]>) -> Option<Approvals> {
    if listed.is_empty() {
        return None;
    }
    let listed = Arc::clone(listed);
    Some(Arc::new(move |question: &Question<'_>| {
        let answer = listed.iter().find(|approval| approval.answers(question.tool))?;
        Some(ApprovalAnswer {
            is_approved: answer.decision == ApprovalDecision::Approve,
            reason: answer.reason.clone(),
        })
    }))
}

fn on_call(calls: tokio::sync::mpsc::Sender<ToolCall>, cut_secrets: SecretCutter) -> OnCall {
    Arc::new(move |recorded: &RecordedCall| {
        let text = |text: &str| match cut_secrets(Json::from(text)) {
            Json::String(text) => text,
            _ => String::new(),
        };
        let call = ToolCall {
            tool: text(&recorded.call.tool),
            input: cut_secrets(recorded.call.input.clone().unwrap_or_else(Json::object)),
            output: recorded.output().map_or(Json::Null, |output| cut_secrets(output.clone())),
            error: recorded.error().map(|(error, _)| text(error)),
            status: status(recorded.status),
            duration: recorded.duration,
        };
        // There is room for as many calls as the endpoint lists.
        let _ = calls.try_send(call);
    })
}

fn status(status: CallStatus) -> ToolCallStatus {
    match status {
        CallStatus::Success => ToolCallStatus::Success,
        CallStatus::Failed
        | CallStatus::TimedOut
        | CallStatus::Stopped
        | CallStatus::Unfinished
        | CallStatus::UnknownTool => ToolCallStatus::Failed,
        CallStatus::Denied | CallStatus::NotApproved => ToolCallStatus::Refused,
        CallStatus::NotAllowed => ToolCallStatus::NotAllowed,
        CallStatus::ForeignTask | CallStatus::TooManyCalls | CallStatus::Malformed => ToolCallStatus::Invalid,
    }
}
