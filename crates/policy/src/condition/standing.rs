//! What the registry knows of the agent that acts, as everything that judges an action sees it.

use proctor_core::json::Json;
use proctor_core::record::claimed;
use proctor_facts::Facts;

use super::NEVER_MICROS;
use crate::input::Input;
use crate::question::{Answer, Memory, Question, Standing};

/// What the registry says of the agent that acts: nothing, or its standing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Acting {
    /// As answered.
    pub(crate) standing: Option<Box<Standing>>,
}

impl Acting {
    /// Asks the registry. Everybody asks the same question, so that a read-set holds it once. `None`: there is no answer.
    pub(crate) fn ask(input: &Input, memory: &dyn Memory) -> Option<Acting> {
        match memory.answer(&Question::Standing(operation(&input.facts))) {
            Some(Answer::Standing(standing)) => Some(Acting { standing }),
            _ => None,
        }
    }

    pub(crate) fn is_registered(&self) -> bool {
        self.standing.as_ref().is_some_and(|standing| standing.registered_at.is_some())
    }

    pub(crate) fn risk(&self) -> &str {
        self.standing.as_ref().map_or("", |standing| &standing.risk)
    }

    pub(crate) fn parent(&self) -> &str {
        self.standing.as_ref().map_or("", |standing| &standing.parent)
    }

    pub(crate) fn parent_risk(&self) -> &str {
        self.standing.as_ref().map_or("", |standing| &standing.parent_risk)
    }

    /// The depth that it is registered with; of one that is not, the depth that the action claims.
    pub(crate) fn depth(&self, input: &Input) -> u32 {
        match &self.standing {
            Some(standing) if standing.registered_at.is_some() => standing.depth,
            _ => input.facts.depth,
        }
    }

    pub(crate) fn children(&self) -> u64 {
        self.standing.as_ref().map_or(0, |standing| standing.children)
    }

    pub(crate) fn team_agents(&self) -> u64 {
        self.standing.as_ref().map_or(0, |standing| standing.team_agents)
    }

    /// How long ago it registered, in microseconds; of one that did not, a hundred years.
    pub(crate) fn age_micros(&self, input: &Input) -> i64 {
        let registered_at = self.standing.as_ref().and_then(|standing| standing.registered_at);
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
