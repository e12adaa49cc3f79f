//! The answers to advisory questions, in the protocol's words.

use proctor_clients::ahp::{
    IdleDecision, IntentDetectionDecision, IntentDetectionEvent, PlanningDecision, PlanningEvent,
    PlanningStrategy, RateLimitDecision, RateLimitEvent, RateLimitType, ReasoningDecision, ReasoningEvent,
    ReasoningType, TargetHints,
};
use proctor_core::json::Json;
use proctor_core::time::Timestamp;
use proctor_policy::advice::{Advice, IdleAdvice, PlanningAdvice, RateLimitAdvice, ReasoningAdvice};
use proctor_policy::budgets::Remaining;
use proctor_policy::question::Unit;

pub(super) fn idle(advice: &Advice, now: Timestamp) -> IdleDecision {
    match advice.idle(now) {
        IdleAdvice::Allow => IdleDecision::Allow { metadata: None },
        IdleAdvice::Defer { reason, retry_after_ms } => IdleDecision::Defer {
            reason: Some(reason.to_owned()),
            retry_after_ms: Some(retry_after_ms),
            metadata: None,
        },
    }
}

pub(super) fn intent(advice: &Advice, asked: &IntentDetectionEvent) -> IntentDetectionDecision {
    match advice.intent(&asked.prompt) {
        Some(intent) => {
            let hints = TargetHints {
                target_type: intent.target_type.map(str::to_owned),
                target_name: intent.target_name,
                domain: intent.domain.map(str::to_owned),
            };
            IntentDetectionDecision::Allow {
                detected_intent: intent.name.to_owned(),
                confidence: intent.confidence,
                target_hints: (hints != TargetHints::default()).then_some(hints),
                metadata: None,
            }
        }
        // Nothing is forbidden by not knowing: `block` would stop agents that read it as a generic decision.
        None => IntentDetectionDecision::Allow {
            detected_intent: "unknown".to_owned(),
            confidence: 0.0,
            target_hints: None,
            metadata: Some(Json::object().with("reason", "no rule of `advice.intents` matches")),
        },
    }
}

pub(super) fn planning(advice: &Advice, asked: &PlanningEvent) -> PlanningDecision {
    let offered: Vec<String> = asked.available_strategies.iter().map(strategy_name).collect();
    let offered: Vec<&str> = offered.iter().map(String::as_str).collect();
    match advice.planning(&asked.task_description, &offered) {
        PlanningAdvice::Use { strategy, hints, template } => {
            let hints: Vec<Json> = hints.into_iter().map(Json::from).collect();
            let metadata = (!hints.is_empty()).then(|| Json::object().with("hints", hints.clone()));
            // Hints have no member of their own here, so a plan without a template starts from them.
            let template = template.cloned().or_else(|| metadata.clone());
            PlanningDecision::Allow {
                selected_strategy: strategy_of(strategy),
                planning_template: template,
                metadata,
            }
        }
        PlanningAdvice::Block { reason } => PlanningDecision::Block { reason, metadata: None },
    }
}

pub(super) fn reasoning(advice: &Advice, asked: &ReasoningEvent) -> ReasoningDecision {
    let kind = match &asked.reasoning_type {
        ReasoningType::ChainOfThought => "chain_of_thought".to_owned(),
        ReasoningType::TreeOfThoughts => "tree_of_thoughts".to_owned(),
        ReasoningType::ReAct => "re_act".to_owned(),
        ReasoningType::Reflexion => "reflexion".to_owned(),
        ReasoningType::Other(name) => format!("other:{name}"),
    };
    match advice.reasoning(&kind, &asked.problem_statement) {
        ReasoningAdvice::Allow { hints } => ReasoningDecision::Allow {
            hints: (!hints.is_empty()).then(|| hints.into_iter().map(str::to_owned).collect()),
            metadata: None,
        },
        ReasoningAdvice::Block { reason } => ReasoningDecision::Block { reason, metadata: None },
    }
}

pub(super) fn rate_limit(advice: &Advice, asked: &RateLimitEvent, left: &[Remaining]) -> RateLimitDecision {
    let counted = |unit: Unit| match asked.limit_type {
        RateLimitType::LlmTokenLimit => unit != Unit::Calls,
        _ => true,
    };
    let spent = left.iter().any(|limit| counted(limit.unit) && limit.left().is_zero());
    match advice.rate_limit(asked.retry_after_ms, spent) {
        RateLimitAdvice::Retry { after_ms } => {
            RateLimitDecision::Retry { retry_after_ms: after_ms, metadata: None }
        }
        RateLimitAdvice::Queue => RateLimitDecision::Queue {
            reason: Some("the wait is longer than policy allows".to_owned()),
            metadata: None,
        },
        RateLimitAdvice::Skip { reason } => {
            RateLimitDecision::Skip { reason: reason.to_owned(), metadata: None }
        }
    }
}

fn strategy_name(strategy: &PlanningStrategy) -> String {
    match strategy {
        PlanningStrategy::None => "none".to_owned(),
        PlanningStrategy::StepByStep => "step_by_step".to_owned(),
        PlanningStrategy::TreeOfThoughts => "tree_of_thoughts".to_owned(),
        PlanningStrategy::GraphPlanning => "graph_planning".to_owned(),
        PlanningStrategy::Custom(name) => format!("custom:{name}"),
    }
}

fn strategy_of(name: &str) -> PlanningStrategy {
    match name {
        "none" => PlanningStrategy::None,
        "step_by_step" => PlanningStrategy::StepByStep,
        "tree_of_thoughts" => PlanningStrategy::TreeOfThoughts,
        "graph_planning" => PlanningStrategy::GraphPlanning,
        other => PlanningStrategy::Custom(other.strip_prefix("custom:").unwrap_or(other).to_owned()),
    }
}
