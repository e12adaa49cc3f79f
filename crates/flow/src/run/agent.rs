//! Prompt tasks: handed to the configured agent.

use std::time::{Duration, Instant};

use proctor_core::json::Json;
use proctor_mask::Masker;
use proctor_wire::agentcli::effective::EffectiveTask;
use proctor_wire::agentcli::error::{Code, Failure};

use super::Cancel;
use super::capture::Captured;
use super::parts::{AgentAnswer, AgentRequest, AgentRuntime};
use super::read::{agent_id, integer, member, text};

/// Answer of an agent, or the way its run ended without one.
#[derive(Debug, Default)]
pub(super) struct Answered {
    pub(super) is_ok: bool,
    pub(super) is_timed_out: bool,
    pub(super) is_cancelled: bool,
    pub(super) stdout: Captured,
    pub(super) stderr: Captured,
    pub(super) answer: AgentAnswer,
    pub(super) took: Duration,
}

/// The agent of a task, or the refusal that there is none.
pub(super) fn runtime<'a>(
    agents: Option<&'a dyn AgentRuntime>,
    task: &EffectiveTask,
) -> Result<&'a dyn AgentRuntime, Failure> {
    let id = agent_id(&task.task);
    agents.filter(|agents| agents.has(id)).ok_or_else(|| {
        let message =
            format!("no agent is configured for `{id}`: name its address under `[flow.agent.{id}]`");
        Failure::new(Code::NoRuntime, message)
    })
}

/// Hands the prompt over and waits for the answer, within the time limit.
pub(super) async fn run(
    runtime: &dyn AgentRuntime,
    task: &EffectiveTask,
    execution_id: &str,
    timeout: Duration,
    masker: &Masker,
    cancel: &mut Cancel,
) -> Answered {
    let begun = Instant::now();
    let (prompt, hints) = (prompt(&task.task), hints(task));
    let request =
        AgentRequest { agent_id: agent_id(&task.task), execution_id, prompt: &prompt, task: &hints, timeout };
    let mut answered = tokio::select! {
        answer = tokio::time::timeout(timeout, runtime.run(request)) => match answer {
            Ok(Ok(answer)) => Answered { is_ok: answer.is_ok, answer, ..Answered::default() },
            Ok(Err(failure)) => {
                let answer = AgentAnswer { error: failure.to_string(), ..AgentAnswer::default() };
                Answered { answer, ..Answered::default() }
            }
            Err(_elapsed) => Answered { is_timed_out: true, ..Answered::default() },
        },
        () = cancel.cancelled() => Answered { is_cancelled: true, ..Answered::default() },
    };
    answered.took = begun.elapsed();
    answered.stdout.add(&masker.mask(answered.answer.output.as_bytes()));
    answered.stderr.add(&masker.mask(answered.answer.error.as_bytes()));
    answered
}

/// The prompt, followed by what `intent` says: an agent that reads nothing but the prompt has to know, too.
fn prompt(task: &Json) -> String {
    let intent = member(task, "intent");
    let mut prompt = text(task, "prompt").unwrap_or_default().to_owned();
    if intent.and_then(|intent| text(intent, "mode")) == Some("plan") {
        prompt.push_str("\n\n[Plan only: describe the steps, and carry out none of them.]");
    }
    if intent.and_then(|intent| member(intent, "read_only")) == Some(&Json::Bool(true)) {
        prompt.push_str("\n\n[Read only: change nothing.]");
    }
    prompt
}

/// The task as its agent gets it: with the merged model policy, and the budget of context items as the limit of the context.
fn hints(task: &EffectiveTask) -> Json {
    let members = task.task.as_object().unwrap_or_default();
    let is_replaced = |name: &str| name == "model_policy" || name == "context";
    let mut hints = Json::Object(members.iter().filter(|(name, _)| !is_replaced(name)).cloned().collect());
    let has_values =
        |block: &Json| block.as_object().unwrap_or_default().iter().any(|(_, value)| !value.is_null());
    if has_values(&task.model_policy) {
        hints.push("model_policy", task.model_policy.clone());
    }
    let mut context = member(&task.task, "context").cloned().unwrap_or_else(Json::object);
    let limit = member(&task.task, "budgets").and_then(|budgets| integer(budgets, "max_context_items"));
    if let Some(limit) = limit.filter(|_| member(&context, "limit").is_none()) {
        context = Json::object().with("retrieval", context.get("retrieval").cloned()).with("limit", limit);
    }
    if has_values(&context) {
        hints.push("context", context);
    }
    hints
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctor_wire::agentcli::effective::select;

    #[test]
    fn agents_get_intent_model_and_context_as_declared() {
        let manifest = r#"{"version":"0.2","workflows":[{"id":"w","name":"W","model_policy":{"provider":"p","model":"m"},"tasks":[{"id":"t","name":"T",
            "target":{"session_target":"isolated"},"prompt":"go","schedule":{"cron":"0 9 * * *"},"model_policy":{"model":"own"},
            "intent":{"mode":"plan","read_only":true},"context":{"retrieval":"recent"},"budgets":{"max_context_items":3}}]}]}"#;
        let task = select(&Json::parse(manifest.as_bytes()).unwrap(), None, "t").unwrap();
        let text = prompt(&task.task);
        assert!(
            text.starts_with("go\n\n[Plan only") && text.ends_with("[Read only: change nothing.]"),
            "{text}"
        );
        let hints = hints(&task);
        assert_eq!(hints["model_policy"].to_string(), r#"{"provider":"p","model":"own","thinking":null}"#);
        assert_eq!(hints["context"].to_string(), r#"{"retrieval":"recent","limit":3}"#);
        assert_eq!(hints["prompt"], "go");
    }
}
