//! Whether the agent may act at all now, and whether it is only observed.

use proctor_core::decision::{Decision, Effect, Shadow};

use super::Gathered;
use crate::condition::Acting;
use crate::document::{Document, Position};
use crate::glob;
use crate::input::Input;
use crate::question::{Memory, Standing};

/// Asks the registry. A stop is a deny that nothing outweighs.
pub(super) fn judge(
    documents: &[&Document],
    input: &Input,
    memory: &dyn Memory,
    gathered: &mut Gathered<'_>,
) -> Option<Box<Standing>> {
    let mut stop = |rule: &str, reason: &str| {
        if let Some(document) = documents.first() {
            gathered.say(Effect::Deny, rule, reason, document, Position::default());
        }
    };
    let Some(acting) = Acting::ask(input, memory) else {
        stop("registry", "whether this agent is stopped is not known");
        return None;
    };
    if let Some(found) = acting.standing.as_ref().and_then(|standing| standing.stop.as_ref()) {
        stop(&found.rule, &found.reason);
    }
    acting.standing
}

/// What an agent that is only observed gets, if a document lets it be: the action runs, and what it would have got is noted. One
/// that is stopped is stopped all the same. Says whether the decision was changed.
pub(super) fn observe(
    decision: &mut Decision,
    documents: &[&Document],
    input: &Input,
    standing: Option<&Standing>,
) -> bool {
    let asked = standing.is_some_and(|standing| standing.observe && standing.stop.is_none());
    if !asked
        || decision.effect == Effect::Allow
        || !documents.iter().any(|document| permits(document, input, standing))
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
fn permits(document: &Document, input: &Input, standing: Option<&Standing>) -> bool {
    let name = standing.map_or("", |standing| standing.name.as_str());
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
