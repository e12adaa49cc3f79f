//! Tools endpoints of runs.

use std::net::TcpListener;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use proctor_core::json::Json;
use proctor_door_atp::{
    ApprovalAnswer, Approvals, CallStatus, OnCall, Question, RecordedCall, Run, SecretCutter, ToolDoor,
};
use proctor_runner::secrets::{Emitted, Secrets};
use proctor_runner::suite::{Approval, ApprovalDecision, TestCase};
use proctor_runner::tools::{
    EndpointError, EndpointRun, MAX_CALLS, ServedTools, ToolCall, ToolCallStatus, ToolEndpoint, ToolEndpoints,
};

use crate::store::RunStore;

struct Open {
    door: ToolDoor,
    served: ServedTools,
}

impl ToolEndpoint for Open {
    fn url(&self) -> &str {
        self.door.url()
    }

    fn served(&self) -> ServedTools {
        self.served.clone()
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.door.finish().await;
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
                match &mut value {
                    // Messages are shortened before they come here.
                    Json::String(text) => *text = secrets.cut_shortened(text),
                    value => secrets.cut_json(value, &Emitted::default()),
                }
                value
            });
            let backend = self
                .tools
                .backend(&run.test.settings.mock_tools, run.task_id, &cut_secrets)
                .map_err(failed)?;
            let allowed_tools = self.allowed_tools(run.test);
            let listed = backend.tools().into_iter().map(|tool| tool.name);
            let served = match &allowed_tools {
                // A server does not list its tools: it may have all that the run may call.
                None if self.tools.is_server() => ServedTools::Any,
                Some(allowed) if self.tools.is_server() => {
                    ServedTools::Named(listed.chain(allowed.iter().cloned()).collect())
                }
                _ => ServedTools::Named(listed.collect()),
            };
            let settings = Run {
                allowed_tools,
                max_calls: MAX_CALLS,
                call_timeout: run.call_timeout,
                approvals: approvals(&run.test.settings.approvals),
                on_call: Some(on_call(run.calls, Arc::clone(run.secrets))),
                cut_secrets: Some(cut_secrets),
                ..settings
            };
            let (clock, randomness) = (Arc::clone(&self.clock), &*self.randomness);
            let door =
                ToolDoor::open(listener, settings, decider, backend, clock, randomness).map_err(failed)?;
            let open: Box<dyn ToolEndpoint> = Box::new(Open { door, served });
            Ok(open)
        })
    }
}

impl RunStore {
    /// Tools that a run of the test may call; all if nothing restricts them. A tool server without a policy in front of it is reached only
    /// for tools that the suite names.
    fn allowed_tools(&self, test: &TestCase) -> Option<Vec<String>> {
        let listed = test.settings.constraints.allowed_tools.as_ref().map(|tools| tools.to_vec());
        let mocked = || test.settings.mock_tools.iter().map(|mock| mock.name.clone()).collect();
        listed.or_else(|| self.has_unguarded_server.then(mocked))
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

fn on_call(calls: tokio::sync::mpsc::Sender<ToolCall>, secrets: Arc<Secrets>) -> OnCall {
    Arc::new(move |recorded: &RecordedCall| {
        // Only what the agent sent counts as emitted: outputs are the tool's.
        let (emitted, replied) = (Emitted::default(), Emitted::default());
        let cut = |mut value: Json, found: &Emitted| {
            secrets.cut_json(&mut value, found);
            value
        };
        let (tool, found) = secrets.cut(&recorded.call.tool);
        emitted.add(found);
        let input = cut(recorded.call.input.clone().unwrap_or_else(Json::object), &emitted);
        if recorded.status == CallStatus::Malformed {
            emitted.add(recorded.error().map(|(error, _)| secrets.cut(error).1).unwrap_or_default());
        }
        let call = ToolCall {
            tool: tool.into_owned(),
            input,
            output: recorded.output().map_or(Json::Null, |output| cut(output.clone(), &replied)),
            error: recorded.error().map(|(error, _)| secrets.cut_shortened(error)),
            status: status(recorded.status),
            duration: recorded.duration,
            emitted: emitted.names(),
        };
        // There is room for as many calls as the endpoint lists.
        let _ = calls.try_send(call);
    })
}

fn status(status: CallStatus) -> ToolCallStatus {
    match status {
        CallStatus::Success => ToolCallStatus::Success,
        CallStatus::Failed | CallStatus::TimedOut | CallStatus::Stopped | CallStatus::Unfinished => {
            ToolCallStatus::Failed
        }
        CallStatus::UnknownTool => ToolCallStatus::Unknown,
        CallStatus::Denied | CallStatus::NotApproved => ToolCallStatus::Refused,
        CallStatus::NotAllowed => ToolCallStatus::NotAllowed,
        CallStatus::ForeignTask | CallStatus::TooManyCalls | CallStatus::Malformed => ToolCallStatus::Invalid,
    }
}
