//! Cedar policies.
//!
//! The principal is `Agent::"<principal>"`, the action `Action::"<kind>"`, the resource `Path` for a file operation, `Host` for a
//! network call, `Model` for a call to a model and `Tool` for everything else. `context` is the record. Cedar has no floats:
//! `context.action.cost_usd` is a `decimal`, rounded up to four places; other numbers that are not whole, or too large, are
//! texts; arrays are sets; a JSON null is left out.
//!
//! A permit allows, a forbid denies, or asks with `@effect("ask")`; no match is no opinion. `@id` names the rule (else
//! `policy0`, `policy1`, …), `@reason` gives the reason. A policy that could not be evaluated denies, a permit too.

mod check;
mod context;
mod query;

use std::collections::BTreeMap;

use cedar_policy::{
    ActionConstraint, Authorizer, Context, ContextCreationError, Effect as CedarEffect, Entities, EntityId,
    EntityTypeName, EntityUid, Policy, PolicySet, Request, RequestValidationError,
};

use proctor_core::action::ActionKind;
use proctor_core::decision::Effect;

use super::{Engine, ModuleProblem, Opinion, truncate};
use crate::input::Input;
use crate::question::AnswerSource;

pub use query::{CedarAnswer, CedarFailure, CedarQuery, CedarRequest};

/// Cedar policies, compiled once and sorted by the kinds of action that they apply to.
#[derive(Debug)]
pub struct CedarModule {
    by_kind: Vec<(ActionKind, Slice)>,
    names: BTreeMap<String, PolicyOutcome>,
    types: Types,
}

/// The policies that can apply to one kind of action, and what they read of it.
#[derive(Debug, Default)]
struct Slice {
    policies: PolicySet,
    reads: context::Reads,
    size: usize,
}

/// Outcome of a policy that applies.
#[derive(Debug)]
struct PolicyOutcome {
    order: usize,
    effect: Effect,
    rule: String,
    reason: String,
}

#[derive(Debug)]
struct Types {
    agent: EntityTypeName,
    action: EntityTypeName,
    tool: EntityTypeName,
    path: EntityTypeName,
    host: EntityTypeName,
    model: EntityTypeName,
}

impl CedarModule {
    /// Compiles a file of policies.
    pub fn compile(file: &str, text: &str) -> Result<CedarModule, Vec<ModuleProblem>> {
        let policies = check::parse(file, text)?;
        let types = types().ok_or_else(|| {
            vec![ModuleProblem::at(file, text, 0, "entity types are not available".to_owned())]
        })?;
        let mut names = BTreeMap::new();
        let mut by_kind: Vec<(ActionKind, Slice)> =
            ActionKind::ALL.into_iter().map(|kind| (kind, Slice::default())).collect();
        for (order, checked) in policies.into_iter().enumerate() {
            names.insert(checked.policy.id().to_string(), outcome_of(order, &checked.policy));
            for (kind, slice) in &mut by_kind {
                if applies(&checked.policy, *kind) {
                    slice.reads.merge(&checked.reads);
                    slice.size += 1;
                    if let Err(error) = slice.policies.add(checked.policy.clone()) {
                        return Err(vec![ModuleProblem::at(file, text, checked.offset, error.to_string())]);
                    }
                }
            }
        }
        Ok(CedarModule { by_kind, names, types })
    }

    fn request(
        &self,
        input: &Input,
        answers: &dyn AnswerSource,
        reads: &context::Reads,
    ) -> Result<Request, RequestError> {
        let facts = &input.facts;
        let (resource_type, resource) = match facts.kind {
            ActionKind::FileOperation => (&self.types.path, &facts.path),
            ActionKind::NetworkCall => (&self.types.host, &facts.host),
            ActionKind::LlmCall => (&self.types.model, &facts.model),
            _ => (&self.types.tool, &facts.tool),
        };
        let entity = |kind: &EntityTypeName, id: &str| {
            EntityUid::from_type_name_and_id(kind.clone(), EntityId::new(id))
        };
        let context = Context::from_pairs(context::pairs(input, answers, reads)).map_err(Box::new)?;
        Ok(Request::new(
            entity(&self.types.agent, &input.caller.principal),
            entity(&self.types.action, facts.kind.word()),
            entity(resource_type, resource),
            context,
            None,
        )
        .map_err(Box::new)?)
    }
}

impl Engine for CedarModule {
    fn evaluate(&self, input: &Input, answers: &dyn AnswerSource) -> Vec<Opinion> {
        let Some((_, slice)) = self.by_kind.iter().find(|(kind, _)| *kind == input.facts.kind) else {
            return vec![refusal("cedar", "the kind of the action is unknown")];
        };
        if slice.size == 0 {
            return Vec::new();
        }
        let request = match self.request(input, answers, &slice.reads) {
            Ok(request) => request,
            Err(error) => {
                return vec![refusal("cedar", &format!("the action cannot be shown to Cedar: {error}"))];
            }
        };
        let response = Authorizer::new().is_authorized(&request, &slice.policies, &Entities::empty());
        let mut opinions: Vec<(usize, Opinion)> = Vec::new();
        for id in response.diagnostics().reason() {
            let id: &str = id.as_ref();
            opinions.push(match self.names.get(id) {
                Some(outcome) => (
                    outcome.order,
                    Opinion {
                        effect: outcome.effect,
                        rule: outcome.rule.clone(),
                        reason: outcome.reason.clone(),
                    },
                ),
                None => (usize::MAX, refusal("cedar", "a policy is unknown")),
            });
        }
        for error in response.diagnostics().errors() {
            let cedar_policy::AuthorizationError::PolicyEvaluationError(error) = error;
            let id: &str = error.policy_id().as_ref();
            let (order, rule) = self
                .names
                .get(id)
                .map_or((usize::MAX, "cedar"), |outcome| (outcome.order, outcome.rule.as_str()));
            opinions.push((
                order,
                refusal(rule, &format!("the policy could not be evaluated: {}", error.inner())),
            ));
        }
        // Cedar's own decision is not asked for: it denies what nothing permits, and here that is no opinion.
        opinions.sort_by(|left, right| {
            (left.0, &left.1.rule, &left.1.reason).cmp(&(right.0, &right.1.rule, &right.1.reason))
        });
        opinions.into_iter().map(|(_, opinion)| opinion).collect()
    }
}

/// An action that Cedar's request cannot hold.
#[derive(Debug, thiserror::Error)]
enum RequestError {
    #[error(transparent)]
    Context(#[from] Box<ContextCreationError>),
    #[error(transparent)]
    Request(#[from] Box<RequestValidationError>),
}

fn types() -> Option<Types> {
    let name = |name: &str| name.parse::<EntityTypeName>().ok();
    Some(Types {
        agent: name("Agent")?,
        action: name("Action")?,
        tool: name("Tool")?,
        path: name("Path")?,
        host: name("Host")?,
        model: name("Model")?,
    })
}

fn outcome_of(order: usize, policy: &Policy) -> PolicyOutcome {
    let effect = match (policy.effect(), policy.annotation("effect")) {
        (CedarEffect::Permit, _) => Effect::Allow,
        (CedarEffect::Forbid, Some("ask")) => Effect::Ask,
        (CedarEffect::Forbid, _) => Effect::Deny,
    };
    PolicyOutcome {
        order,
        effect,
        rule: policy.annotation("id").map_or_else(|| policy.id().to_string(), str::to_owned),
        reason: policy.annotation("reason").map(truncate).unwrap_or_default(),
    }
}

/// Whether a policy can apply to that kind of action. There are no groups of actions, so that `in` is equality.
fn applies(policy: &Policy, kind: ActionKind) -> bool {
    match policy.action_constraint() {
        ActionConstraint::Any => true,
        ActionConstraint::Eq(action) => action.id().unescaped() == kind.word(),
        ActionConstraint::In(actions) => actions.iter().any(|action| action.id().unescaped() == kind.word()),
    }
}

fn refusal(rule: &str, reason: &str) -> Opinion {
    Opinion { effect: Effect::Deny, rule: rule.to_owned(), reason: truncate(reason) }
}
