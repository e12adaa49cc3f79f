//! Stops and observe mode.

use proctor_core::decision::{Decision, Effect, Shadow};

use super::Gathered;
use crate::condition::CallingAgent;
use crate::document::{Document, Position};
use crate::glob;
use crate::input::Input;
use crate::question::{AgentStatus, AnswerSource};

/// Asks the registry. A stop is a deny that nothing outweighs.
pub(super) fn judge(
    documents: &[&Document],
    input: &Input,
    answers: &dyn AnswerSource,
    gathered: &mut Gathered<'_>,
) -> Option<Box<AgentStatus>> {
    let mut stop = |rule: &str, reason: &str| {
        if let Some(document) = documents.first() {
            gathered.push(Effect::Deny, rule, reason, document, Position::default());
        }
    };
    let Some(acting) = CallingAgent::ask(input, answers) else {
        stop("registry", "whether this agent is stopped is not known");
        return None;
    };
    if let Some(found) = acting.status.as_ref().and_then(|status| status.stop.as_ref()) {
        stop(&found.rule, &found.reason);
    }
    acting.status
}

/// Observe mode, if a document permits it: the action runs, and the decision it would have got is noted. An agent
/// that is stopped is stopped all the same. Says whether the decision was changed.
pub(super) fn observe(
    decision: &mut Decision,
    documents: &[&Document],
    input: &Input,
    status: Option<&AgentStatus>,
) -> bool {
    let asked = status.is_some_and(|status| status.observe && status.stop.is_none());
    if !asked
        || decision.effect == Effect::Allow
        || !documents.iter().any(|document| permits(document, input, status))
    {
        return false;
    }
    let (rule, reason) = (std::mem::take(&mut decision.rule), std::mem::take(&mut decision.reason));
    decision.reason = format!(
        "observed only: would be {} by `{rule}`: {reason}",
        decision.effect.word().to_ascii_uppercase()
    );
    decision.shadow = Some(Box::new(Shadow { effect: decision.effect, rule, reason }));
    decision.effect = Effect::Allow;
    "observe".clone_into(&mut decision.rule);
    decision.changes.clear();
    decision.approvers.clear();
    decision.approval = None;
    decision.retry_after_ms = None;
    true
}

/// Whether a document lets this agent be only observed: by its identifier or its principal, or, where the document says `name:`, by the name
/// that it registered with, which is what the agent likes.
fn permits(document: &Document, input: &Input, status: Option<&AgentStatus>) -> bool {
    let name = status.map_or("", |status| status.name.as_str());
    let matches = |pattern: &str| match pattern.strip_prefix("name:") {
        Some(pattern) => !name.is_empty() && glob::matches(pattern, name),
        None => [input.agent.as_str(), input.caller.principal.as_str()]
            .iter()
            .any(|own| !own.is_empty() && glob::matches(pattern, own)),
    };
    document.observe.iter().any(|pattern| matches(&pattern.value))
}

#[cfg(test)]
mod tests;
