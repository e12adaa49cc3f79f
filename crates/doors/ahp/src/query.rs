//! Queries of agents: `may_i`, the policy, the remaining budget, the state of an approval.

use proctor_clients::ahp::server::HandlerError;
use proctor_clients::ahp::{AhpEvent, EventType, QueryRequest, QueryResponse};
use proctor_core::decision::Effect;
use proctor_core::id::ApprovalId;
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_policy::question::ApprovalState;

use super::{AhpDoor, action};
use crate::failed;
use proctor_engine::Proposal;

/// Query types, with the synonyms that agents use for them.
const QUESTIONS: [(&str, &[&str]); 4] = [
    ("may_i", &["should_i_proceed", "can_i", "is_allowed"]),
    ("policy", &["what_is_the_policy", "rules"]),
    ("budget", &["budget_left", "remaining_budget"]),
    ("approval", &["approval_status"]),
];

impl AhpDoor {
    /// Answers a query without changing the state.
    pub(super) fn answer_query(
        &self,
        caller: &Caller,
        query: &QueryRequest,
    ) -> Result<QueryResponse, HandlerError> {
        let asked = query.query_type.trim().to_ascii_lowercase();
        let question =
            QUESTIONS.iter().find(|(name, others)| *name == asked || others.contains(&asked.as_str()));
        match question.map(|(name, _)| *name) {
            Some("may_i") => self.may_i(caller, query),
            Some("policy") => Ok(self.policy_in_words()),
            Some("budget") => self.budget_left(caller, &query.payload),
            Some("approval") => self.approval_status(caller, &query.payload),
            _ => Ok(QueryResponse {
                answer: Json::Null,
                reason: Some(format!("`{}` is no question that is answered here", query.query_type)),
                alternatives: Some(QUESTIONS.iter().map(|(name, _)| (*name).to_owned()).collect()),
            }),
        }
    }

    /// Evaluates the action of the payload without recording a decision. The payload is read as that of a `pre_action`.
    fn may_i(&self, caller: &Caller, query: &QueryRequest) -> Result<QueryResponse, HandlerError> {
        let event = AhpEvent {
            event_type: EventType::PreAction,
            session_id: query.session_id.clone(),
            agent_id: query.agent_id.clone(),
            timestamp: String::new(),
            depth: 0,
            payload: query.payload.clone(),
            context: None,
            metadata: None,
        };
        let read = match action::of_action(&event) {
            Ok(read) => read,
            Err(problem) => {
                return Ok(QueryResponse {
                    answer: Json::Bool(false),
                    reason: Some(problem.to_string()),
                    alternatives: None,
                });
            }
        };
        let proposal = Proposal {
            action: read.action,
            caller: caller.clone(),
            agent: query.agent_id.clone(),
            session: query.session_id.clone(),
        };
        let decision = self.engine().consider(&proposal).map_err(failed)?;
        let alternatives = match decision.effect {
            Effect::Ask => Some(vec!["ask with `pre_action`: a person then decides".to_owned()]),
            Effect::Modify | Effect::Redact => {
                Some(vec!["ask with `pre_action`: the answer holds what may run instead".to_owned()])
            }
            Effect::Defer => Some(vec!["ask again later".to_owned()]),
            Effect::Allow | Effect::Deny => None,
        };
        let mut reason = format!("{} by `{}`", decision.effect.word(), decision.rule);
        if !decision.reason.is_empty() {
            reason.push_str(&format!(": {}", decision.reason));
        }
        Ok(QueryResponse {
            // What may only run changed may not run as it is.
            answer: Json::Bool(decision.effect == Effect::Allow),
            reason: Some(reason),
            alternatives,
        })
    }

    fn policy_in_words(&self) -> QueryResponse {
        let policy = self.engine().policy();
        let documents = policy.documents().iter().map(|document| {
            let rules = document.rules.as_deref().unwrap_or_default().iter().map(|rule| {
                Json::object()
                    .with("id", rule.id.as_str())
                    .with("then", rule.then.word())
                    .with("reason", rule.reason.as_str())
            });
            let default = document.default.as_ref().map(|default| default.value.word());
            Json::object()
                .with("file", document.file.as_str())
                .with("default", default)
                .with("rules", rules.collect::<Vec<Json>>())
        });
        let answer = Json::object()
            .with("digest", policy.digest().to_string())
            .with("documents", documents.collect::<Vec<Json>>());
        QueryResponse { answer, reason: None, alternatives: None }
    }

    fn budget_left(&self, caller: &Caller, payload: &Json) -> Result<QueryResponse, HandlerError> {
        let unit = payload.get("unit").and_then(Json::as_str);
        let left = self.engine().budgets(caller).map_err(failed)?;
        let limits: Vec<Json> = left
            .iter()
            .filter(|limit| unit.is_none_or(|unit| limit.unit.word() == unit))
            .map(|limit| {
                Json::object()
                    .with("limit", limit.key.as_str())
                    .with("account", limit.account.word())
                    .with("unit", limit.unit.word())
                    .with("most", Json::Number(limit.most.normalize().to_string().into()))
                    .with("spent", Json::Number(limit.spent.normalize().to_string().into()))
                    .with("left", Json::Number(limit.left().normalize().to_string().into()))
            })
            .collect();
        let reason = if limits.is_empty() { Some("no budget limits this".to_owned()) } else { None };
        Ok(QueryResponse { answer: Json::object().with("limits", limits), reason, alternatives: None })
    }

    fn approval_status(&self, caller: &Caller, payload: &Json) -> Result<QueryResponse, HandlerError> {
        let text = payload.as_str().or_else(|| payload.get("approval_id")?.as_str()).unwrap_or_default();
        let nothing =
            |reason: String| QueryResponse { answer: Json::Null, reason: Some(reason), alternatives: None };
        let Ok(id) = text.parse::<ApprovalId>() else {
            return Ok(nothing("`approval_id` is not the identifier of an approval".to_owned()));
        };
        let info = self.engine().approval(id).map_err(failed)?;
        // What others asked for is nobody's business.
        let Some(info) = info.filter(|info| *info.principal == *caller.principal) else {
            return Ok(nothing(format!("approval {id} is not one of yours")));
        };
        let status = info.status(self.engine().now()).word();
        let answer = Json::object()
            .with("approval_id", id.to_string())
            .with("status", status)
            .with("tool", info.tool.as_str())
            .with("expires_at", info.expires.to_string());
        let reason = match &info.state {
            ApprovalState::Granted { by } => Some(format!("granted by `{by}`")),
            ApprovalState::Refused { by, reason } => Some(format!("refused by `{by}`: {reason}")),
            ApprovalState::Waiting => None,
        };
        Ok(QueryResponse { answer, reason, alternatives: None })
    }
}
