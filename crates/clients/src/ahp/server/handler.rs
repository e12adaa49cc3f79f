//! The trait of a harness.

use std::future::{Future, ready};

use proctor_net::peer::Peer;
use proctor_wire::ahp::check::Entry;
use proctor_wire::ahp::rpc::RpcError;
use proctor_wire::ahp::{
    AhpEvent, ConfirmationDecision, ConfirmationEvent, ContextPerceptionDecision, ContextPerceptionEvent,
    Decision, HandshakeRequest, IdleDecision, IdleEvent, IntentDetectionDecision, IntentDetectionEvent,
    MemoryRecallDecision, MemoryRecallEvent, PlanningDecision, PlanningEvent, QueryRequest, QueryResponse,
    RateLimitDecision, RateLimitEvent, ReasoningDecision, ReasoningEvent,
};

/// A harness's decisions. Only [`EventHandler::handle_event`] is required.
///
/// Calls run concurrently. Code before the first await point of a method runs in order of arrival on each connection.
pub trait EventHandler: Send + Sync + 'static {
    /// Decides an ordinary action or prompt.
    fn handle_event(
        &self,
        peer: &Peer,
        event: AhpEvent,
    ) -> impl Future<Output = Result<Decision, HandlerError>> + Send;

    /// Records an event without a reply; on its own or from a batch. When it returns the event is recorded.
    fn handle_notification(
        &self,
        peer: &Peer,
        entry: Entry,
    ) -> impl Future<Output = Result<(), HandlerError>> + Send {
        let _ = (peer, entry);
        ready(Ok(()))
    }

    /// Observes a handshake.
    fn handle_handshake(&self, peer: &Peer, request: &HandshakeRequest) {
        let _ = (peer, request);
    }

    /// Observes a message that was refused because it violates the protocol.
    fn handle_violation(&self, peer: &Peer, violation: &Violation) {
        let _ = (peer, violation);
    }

    /// Decides on idle work; the default allows it.
    fn handle_idle(
        &self,
        peer: &Peer,
        event: AhpEvent,
        asked: IdleEvent,
    ) -> impl Future<Output = Result<IdleDecision, HandlerError>> + Send {
        let _ = (peer, event, asked);
        ready(Ok(IdleDecision::Allow { metadata: None }))
    }

    /// Decides a confirmation; the default rejects it, because agents take an error for a yes.
    fn handle_confirmation(
        &self,
        peer: &Peer,
        event: AhpEvent,
        asked: ConfirmationEvent,
    ) -> impl Future<Output = Result<ConfirmationDecision, HandlerError>> + Send {
        let _ = (peer, event, asked);
        ready(Err(HandlerError::Unsupported("Confirmation")))
    }

    /// Answers a query.
    fn handle_query(
        &self,
        peer: &Peer,
        query: QueryRequest,
    ) -> impl Future<Output = Result<QueryResponse, HandlerError>> + Send {
        let _ = (peer, query);
        ready(Err(HandlerError::Unsupported("Query")))
    }

    /// Selects context.
    fn handle_context_perception(
        &self,
        peer: &Peer,
        event: AhpEvent,
        asked: ContextPerceptionEvent,
    ) -> impl Future<Output = Result<ContextPerceptionDecision, HandlerError>> + Send {
        let _ = (peer, event, asked);
        ready(Err(HandlerError::Unsupported("Context perception")))
    }

    /// Recalls memories.
    fn handle_memory_recall(
        &self,
        peer: &Peer,
        event: AhpEvent,
        asked: MemoryRecallEvent,
    ) -> impl Future<Output = Result<MemoryRecallDecision, HandlerError>> + Send {
        let _ = (peer, event, asked);
        ready(Err(HandlerError::Unsupported("Memory recall")))
    }

    /// Advises on planning.
    fn handle_planning(
        &self,
        peer: &Peer,
        event: AhpEvent,
        asked: PlanningEvent,
    ) -> impl Future<Output = Result<PlanningDecision, HandlerError>> + Send {
        let _ = (peer, event, asked);
        ready(Err(HandlerError::Unsupported("Planning")))
    }

    /// Advises on reasoning.
    fn handle_reasoning(
        &self,
        peer: &Peer,
        event: AhpEvent,
        asked: ReasoningEvent,
    ) -> impl Future<Output = Result<ReasoningDecision, HandlerError>> + Send {
        let _ = (peer, event, asked);
        ready(Err(HandlerError::Unsupported("Reasoning")))
    }

    /// Decides how to continue after a rate limit.
    fn handle_rate_limit(
        &self,
        peer: &Peer,
        event: AhpEvent,
        asked: RateLimitEvent,
    ) -> impl Future<Output = Result<RateLimitDecision, HandlerError>> + Send {
        let _ = (peer, event, asked);
        ready(Err(HandlerError::Unsupported("Rate limit decisions")))
    }

    /// Classifies the intent of a prompt.
    fn handle_intent_detection(
        &self,
        peer: &Peer,
        event: AhpEvent,
        asked: IntentDetectionEvent,
    ) -> impl Future<Output = Result<IntentDetectionDecision, HandlerError>> + Send {
        let _ = (peer, event, asked);
        ready(Err(HandlerError::Unsupported("Intent detection")))
    }
}

/// A message that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The method, if there was one.
    pub method: Option<String>,
    /// The refusal.
    pub error: RpcError,
}

/// A handler's failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandlerError {
    /// The harness does not support this kind of question.
    #[error("Capability not supported: {0} not supported")]
    Unsupported(&'static str),
    /// The handler could not decide.
    #[error("{0}")]
    Failed(String),
}

impl HandlerError {
    /// A failure with a reason.
    pub fn failed(reason: impl Into<String>) -> HandlerError {
        HandlerError::Failed(reason.into())
    }
}
