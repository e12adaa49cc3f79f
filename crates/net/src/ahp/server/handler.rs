//! What a harness implements, and what it is told about its callers.

use std::future::{Future, ready};

use proctor_wire::ahp::check::Entry;
use proctor_wire::ahp::rpc::RpcError;
use proctor_wire::ahp::{
    AhpEvent, ConfirmationDecision, ConfirmationEvent, ContextPerceptionDecision, ContextPerceptionEvent,
    Decision, HandshakeRequest, IdleDecision, IdleEvent, IntentDetectionDecision, IntentDetectionEvent,
    MemoryRecallDecision, MemoryRecallEvent, PlanningDecision, PlanningEvent, QueryRequest, QueryResponse,
    RateLimitDecision, RateLimitEvent, ReasoningDecision, ReasoningEvent,
};

/// Decides what agents ask. Only [`EventHandler::handle_event`] has to be written.
///
/// Calls run concurrently. What a method does before its first wait happens in order of arrival on each connection.
pub trait EventHandler: Send + Sync + 'static {
    /// Decides an ordinary action or prompt.
    fn handle_event(
        &self,
        peer: &Peer,
        event: AhpEvent,
    ) -> impl Future<Output = Result<Decision, HandlerError>> + Send;

    /// Takes an event that wants no answer; on its own or from a batch. When it returns the event is safe.
    fn handle_notification(
        &self,
        peer: &Peer,
        entry: Entry,
    ) -> impl Future<Output = Result<(), HandlerError>> + Send {
        let _ = (peer, entry);
        ready(Ok(()))
    }

    /// An agent introduced itself.
    fn handle_handshake(&self, peer: &Peer, request: &HandshakeRequest) {
        let _ = (peer, request);
    }

    /// A message broke a rule of the protocol and was refused.
    fn handle_violation(&self, peer: &Peer, violation: &Violation) {
        let _ = (peer, violation);
    }

    /// Decides on idle work: allowed, unless written otherwise.
    fn handle_idle(
        &self,
        peer: &Peer,
        event: AhpEvent,
        asked: IdleEvent,
    ) -> impl Future<Output = Result<IdleDecision, HandlerError>> + Send {
        let _ = (peer, event, asked);
        ready(Ok(IdleDecision::Allow { metadata: None }))
    }

    /// Decides a confirmation: rejected, unless written otherwise, because an error would be taken for a yes.
    fn handle_confirmation(
        &self,
        peer: &Peer,
        event: AhpEvent,
        asked: ConfirmationEvent,
    ) -> impl Future<Output = Result<ConfirmationDecision, HandlerError>> + Send {
        let _ = (peer, event, asked);
        ready(Err(HandlerError::Unsupported("Confirmation")))
    }

    /// Answers a question.
    fn handle_query(
        &self,
        peer: &Peer,
        query: QueryRequest,
    ) -> impl Future<Output = Result<QueryResponse, HandlerError>> + Send {
        let _ = (peer, query);
        ready(Err(HandlerError::Unsupported("Query")))
    }

    /// Gives context.
    fn handle_context_perception(
        &self,
        peer: &Peer,
        event: AhpEvent,
        asked: ContextPerceptionEvent,
    ) -> impl Future<Output = Result<ContextPerceptionDecision, HandlerError>> + Send {
        let _ = (peer, event, asked);
        ready(Err(HandlerError::Unsupported("Context perception")))
    }

    /// Gives what is remembered.
    fn handle_memory_recall(
        &self,
        peer: &Peer,
        event: AhpEvent,
        asked: MemoryRecallEvent,
    ) -> impl Future<Output = Result<MemoryRecallDecision, HandlerError>> + Send {
        let _ = (peer, event, asked);
        ready(Err(HandlerError::Unsupported("Memory recall")))
    }

    /// Says how to plan.
    fn handle_planning(
        &self,
        peer: &Peer,
        event: AhpEvent,
        asked: PlanningEvent,
    ) -> impl Future<Output = Result<PlanningDecision, HandlerError>> + Send {
        let _ = (peer, event, asked);
        ready(Err(HandlerError::Unsupported("Planning")))
    }

    /// Gives hints for reasoning.
    fn handle_reasoning(
        &self,
        peer: &Peer,
        event: AhpEvent,
        asked: ReasoningEvent,
    ) -> impl Future<Output = Result<ReasoningDecision, HandlerError>> + Send {
        let _ = (peer, event, asked);
        ready(Err(HandlerError::Unsupported("Reasoning")))
    }

    /// Says what to do after a limit was hit.
    fn handle_rate_limit(
        &self,
        peer: &Peer,
        event: AhpEvent,
        asked: RateLimitEvent,
    ) -> impl Future<Output = Result<RateLimitDecision, HandlerError>> + Send {
        let _ = (peer, event, asked);
        ready(Err(HandlerError::Unsupported("Rate limit decisions")))
    }

    /// Says what a prompt is after.
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

/// Who is at the other end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The transport: `stdio`, `unix`, `http`, `websocket` or `grpc`.
    pub transport: &'static str,
    /// Who it is, as far as it was proven.
    pub identity: Identity,
}

impl Peer {
    /// A caller in this very process.
    pub fn this_process() -> Peer {
        Peer { transport: "stdio", identity: Identity::ThisProcess }
    }
}

/// What a caller has proven about itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Identity {
    /// Whoever started this process and holds its standard input.
    ThisProcess,
    /// Anybody on this machine: loopback without credentials.
    Loopback,
    /// The user at the other end of a Unix socket.
    Uid(u32),
    /// The holder of a token or key, by the name that it was issued to.
    Token(String),
    /// The holder of a client certificate, by its subject.
    Certificate(String),
}

/// A message that broke a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The method, if there was one.
    pub method: Option<String>,
    /// The refusal.
    pub error: RpcError,
}

/// Why a handler gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandlerError {
    /// The harness does not answer this kind of question.
    #[error("Capability not supported: {0} not supported")]
    Unsupported(&'static str),
    /// It could not decide.
    #[error("{0}")]
    Failed(String),
}

impl HandlerError {
    /// It could not decide.
    pub fn failed(reason: impl Into<String>) -> HandlerError {
        HandlerError::Failed(reason.into())
    }
}
