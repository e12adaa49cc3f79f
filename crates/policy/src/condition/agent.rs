//! Status of the calling agent in the registry, as rules, modules and sections see it.

use proctor_core::json::Json;
use proctor_core::record::claimed;
use proctor_facts::Facts;

use super::NEVER_MICROS;
use crate::input::Input;
use crate::question::{AgentStatus, Answer, AnswerSource, Question};

/// Calling agent: unknown to the registry, or with its status.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallingAgent {
    /// Status, as answered.
    pub(crate) status: Option<Box<AgentStatus>>,
}

impl CallingAgent {
    /// Asks the registry, with the same question for all members, so that a read-set holds it once. `None` if there is no answer.
    pub(crate) fn ask(input: &Input, answers: &dyn AnswerSource) -> Option<CallingAgent> {
        match answers.answer(&Question::AgentStatus(operation(&input.facts))) {
            Some(Answer::AgentStatus(status)) => Some(CallingAgent { status }),
            _ => None,
        }
    }

    pub(crate) fn is_registered(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.registered_at.is_some())
    }

    pub(crate) fn risk(&self) -> &str {
        self.status.as_ref().map_or("", |status| &status.risk)
    }

    pub(crate) fn parent(&self) -> &str {
        self.status.as_ref().map_or("", |status| &status.parent)
    }

    pub(crate) fn parent_risk(&self) -> &str {
        self.status.as_ref().map_or("", |status| &status.parent_risk)
    }

    /// The depth that it is registered with; of one that is not, the depth that the action claims.
    pub(crate) fn depth(&self, input: &Input) -> u32 {
        match &self.status {
            Some(status) if status.registered_at.is_some() => status.depth,
            _ => input.facts.depth,
        }
    }

    pub(crate) fn children(&self) -> u64 {
        self.status.as_ref().map_or(0, |status| status.children)
    }

    pub(crate) fn team_agents(&self) -> u64 {
        self.status.as_ref().map_or(0, |status| status.team_agents)
    }

    /// Time since registration in microseconds; a hundred years without one.
    pub(crate) fn age_micros(&self, input: &Input) -> i64 {
        let registered_at = self.status.as_ref().and_then(|status| status.registered_at);
        registered_at.map_or(NEVER_MICROS, |registered_at| {
            i64::try_from(input.now.micros_since(registered_at)).unwrap_or(i64::MAX)
        })
    }
}

/// The operation that an action belongs to, as records name it: what `operation` says, else `trace:span`; empty if it names none.
fn operation(facts: &Facts) -> String {
    let member = |name: &str| facts.metadata.get(name).and_then(Json::as_str).filter(|text| !text.is_empty());
    if let Some(operation) = member("operation") {
        return claimed(operation);
    }
    match (member("trace_id"), member("span_id")) {
        (Some(trace), Some(span)) => claimed(&format!("{trace}:{span}")),
        _ => String::new(),
    }
}
