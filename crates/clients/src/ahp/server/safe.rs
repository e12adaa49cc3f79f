//! The safe variant of each family of decisions, for harnesses that could not decide.

use proctor_core::json::Json;
use proctor_wire::ahp::rpc::{self, Message, RpcError};
use proctor_wire::ahp::{
    BatchResponse, ConfirmationDecision, ContextPerceptionDecision, Decision, EventType, IdleDecision,
    IntentDetectionDecision, MemoryRecallDecision, PlanningDecision, QueryResponse, RateLimitDecision,
    ReasoningDecision, method,
};
use serde::Serialize;

/// The reason of replies while the memory for messages is exhausted.
const OVERLOADED: &str = "the harness is overloaded";

/// The reply to a message while the memory for messages is exhausted.
pub(super) fn overloaded(message: &Message) -> Option<String> {
    closed_reply(message, OVERLOADED)
}

/// The result of a request while the memory for messages is exhausted.
#[cfg(feature = "grpc")]
pub(super) fn overloaded_result(method: &str, params: &Json) -> Result<String, RpcError> {
    closed_result(method, params, OVERLOADED)
}

/// The reply to a request that cannot be decided: `block`, or the nearest safe variant, as a result. None for notifications.
///
/// ```
/// use proctor_clients::ahp::rpc;
/// use proctor_clients::ahp::server::closed_reply;
///
/// let line = br#"{"jsonrpc":"2.0","id":7,"method":"ahp/event","params":{"event_type":"confirmation"}}"#;
/// let reply = closed_reply(&rpc::read(line).unwrap(), "nobody is there").unwrap();
/// assert!(reply.contains(r#""decision":"reject","reason":"nobody is there""#));
/// ```
pub fn closed_reply(message: &Message, reason: &str) -> Option<String> {
    let Message::Request { id, method, params } = message else { return None };
    Some(match closed_result(method, params, reason) {
        Ok(result) => super::reply(id, &result),
        Err(error) => rpc::refuse(id, &error),
    })
}

/// The result of a request that cannot be decided.
fn closed_result(method: &str, params: &Json, reason: &str) -> Result<String, RpcError> {
    let kind = params.get("event_type").and_then(|kind| kind.read::<EventType>().ok());
    let reason = reason.to_owned();
    match (method, kind) {
        (method::EVENT, Some(EventType::Idle)) => text(&idle(reason)),
        (method::EVENT, Some(EventType::RateLimit)) => text(&rate_limit(reason)),
        (method::EVENT, Some(EventType::Confirmation)) => text(&confirmation(reason)),
        (method::QUERY, _) => {
            text(&QueryResponse { answer: Json::Null, reason: Some(reason), alternatives: None })
        }
        (method::BATCH, _) => {
            let events = params.get("events").and_then(Json::as_array).map_or(0, <[Json]>::len);
            text(&BatchResponse { decisions: vec![Decision::block(reason); events] })
        }
        // A handshake decides nothing, so an error is safe.
        (method::HANDSHAKE, _) => Err(RpcError::new(rpc::INTERNAL_ERROR, reason)),
        // All other families have `block` with a reason.
        _ => text(&Decision::block(reason)),
    }
}

fn text<T: Serialize>(result: &T) -> Result<String, RpcError> {
    super::text(result)
}

/// Retry interval in the safe variant of idle decisions.
const RETRY_AFTER_MS: u64 = 1000;

pub(super) fn idle(reason: String) -> IdleDecision {
    IdleDecision::Defer { reason: Some(reason), retry_after_ms: Some(RETRY_AFTER_MS), metadata: None }
}

pub(super) fn context(reason: String) -> ContextPerceptionDecision {
    ContextPerceptionDecision::Block { reason, metadata: None }
}

pub(super) fn memory(reason: String) -> MemoryRecallDecision {
    MemoryRecallDecision::Block { reason, metadata: None }
}

pub(super) fn planning(reason: String) -> PlanningDecision {
    PlanningDecision::Block { reason, metadata: None }
}

pub(super) fn reasoning(reason: String) -> ReasoningDecision {
    ReasoningDecision::Block { reason, metadata: None }
}

pub(super) fn rate_limit(reason: String) -> RateLimitDecision {
    RateLimitDecision::Skip { reason, metadata: None }
}

pub(super) fn confirmation(reason: String) -> ConfirmationDecision {
    ConfirmationDecision::Reject { reason, metadata: None }
}

pub(super) fn intent(reason: String) -> IntentDetectionDecision {
    IntentDetectionDecision::Block { reason, metadata: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_gets_a_safe_reply_as_a_result() {
        for kind in EventType::ALL.into_iter().filter(|kind| kind.is_blocking()) {
            let line = format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"ahp/event","params":{{"event_type":"{kind}"}}}}"#
            );
            let reply = closed_reply(&rpc::read(line.as_bytes()).unwrap(), "gone").unwrap();
            let reply = Json::parse(reply.as_bytes()).unwrap();
            let word = reply["result"]["decision"].as_str().unwrap().to_owned();
            assert!(["block", "defer", "skip", "reject"].contains(&word.as_str()), "{kind}: {word}");
            assert_eq!(reply["result"]["reason"].as_str(), Some("gone"));
        }
        let batch = br#"{"jsonrpc":"2.0","id":"b","method":"ahp/batch","params":{"events":[{},{}]}}"#;
        let reply = closed_reply(&rpc::read(batch).unwrap(), "gone").unwrap();
        assert_eq!(reply.matches("block").count(), 2);
    }
}
