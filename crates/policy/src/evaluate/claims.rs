//! Claims: what agents of Agent Assembly say of themselves when they register, and nobody has checked: team, organisation, risk tier, parent.

use proctor_core::decision::{Decision, Effect};

use super::Evaluation;
use crate::input::Input;
use crate::question::{AgentStatus, Answer, AnswerSource, Question};

/// The door whose callers register themselves.
const DOOR: &str = "assembly";

/// Whether team and organisation of the caller, its risk tier and its parent are claims.
pub(super) fn are_claims(input: &Input) -> bool {
    input.facts.door == DOOR
}

/// Whether the caller claims anything.
pub(super) fn has_claims(input: &Input, answers: &dyn AnswerSource) -> bool {
    let own = &input.caller;
    if !are_claims(input) {
        return false;
    }
    if !own.team.is_empty() || !own.org.is_empty() || input.facts.depth > 0 {
        return true;
    }
    let question = crate::condition::CallingAgent::ask(input, answers);
    question.and_then(|acting| acting.status).is_some_and(|status| *status != bare(&status))
}

/// The input without the caller's claims.
pub(super) fn without(input: &Input) -> Input {
    let mut bare = input.clone();
    bare.caller.team.clear();
    bare.caller.org.clear();
    bare.facts.depth = 0;
    bare
}

/// Answers about the past without claims.
pub(super) struct WithoutClaims<'a>(pub(super) &'a dyn AnswerSource);

impl AnswerSource for WithoutClaims<'_> {
    fn answer(&self, question: &Question) -> Option<Answer> {
        match self.0.answer(question)? {
            Answer::AgentStatus(Some(status)) => Some(Answer::AgentStatus(Some(Box::new(bare(&status))))),
            answer => Some(answer),
        }
    }
}

/// A status without lineage, risk and team. A stop stays, a claimed parent's too: it is a denial.
fn bare(status: &AgentStatus) -> AgentStatus {
    AgentStatus {
        risk: String::new(),
        parent: String::new(),
        parent_risk: String::new(),
        depth: 0,
        children: 0,
        team_agents: 0,
        above: Vec::new(),
        ..status.clone()
    }
}

/// The stricter of the decisions with and without claims.
pub(super) fn stricter(mut claimed: Evaluation, bare: Evaluation) -> Evaluation {
    match strictness(bare.decision.effect).cmp(&strictness(claimed.decision.effect)) {
        std::cmp::Ordering::Greater => return bare,
        std::cmp::Ordering::Less => return claimed,
        std::cmp::Ordering::Equal => {}
    }
    match claimed.decision.effect {
        Effect::Ask => {
            let (own, other) = (&mut claimed.decision, bare.decision);
            if let Some(problem) = join_asks(own, other) {
                claimed.amounts.retain(|amount| !super::is_of_asks(&amount.unit));
                claimed.decision = Decision::deny(&claimed.decision.rule, problem, claimed.decision.policy);
            }
            claimed
        }
        _ if claimed.decision.changes == bare.decision.changes || bare.decision.changes.is_empty() => claimed,
        _ if claimed.decision.changes.is_empty() => bare,
        _ => {
            let reason = "the action would be changed differently with and without what its agent claims";
            let decision = Decision::deny(&claimed.decision.rule, reason, claimed.decision.policy);
            Evaluation { decision, amounts: Vec::new(), crossings: Vec::new(), ..claimed }
        }
    }
}

/// Joins two questions about the same action; the problem if nobody may decide both.
fn join_asks(own: &mut Decision, other: Decision) -> Option<&'static str> {
    if own.approvers.is_empty() {
        own.approvers = other.approvers;
    } else if !other.approvers.is_empty() {
        own.approvers.retain(|name| other.approvers.contains(name));
        if own.approvers.is_empty() {
            return Some("several rules ask, and nobody may approve for all of them");
        }
    }
    if let (Some(own), Some(other)) = (&mut own.approval, other.approval) {
        own.expires = own.expires.min(other.expires);
    }
    None
}

fn strictness(effect: Effect) -> u8 {
    match effect {
        Effect::Allow => 0,
        Effect::Redact | Effect::Modify => 1,
        Effect::Defer => 2,
        Effect::Ask => 3,
        Effect::Deny => 4,
    }
}

#[cfg(test)]
mod tests;
