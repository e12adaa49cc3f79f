//! The Agent Harness Protocol, version 2.4: an agent asks a harness before it acts.

pub mod check;
mod context;
mod decision;
mod durable;
mod error;
mod event;
mod payload;
pub mod rpc;
pub mod run;
mod session;

pub use check::{Call, Contract, Entry, Limits, Question};
pub use context::{EventContext, Fact, MemorySummary, SessionStats};
pub use decision::{
    ConfirmationDecision, ContextPerceptionDecision, Decision, FileContentSnippet, IdleDecision,
    InjectedContext, IntentDetectionDecision, MemoryRecallDecision, Metadata, PlanningDecision,
    ProjectSummary, RateLimitDecision, ReasoningDecision, TargetHints,
};
pub use durable::{
    ArtifactRef, EvidenceRef, RunLifecycleEvent, RunStatus, TaskItem, TaskListEvent, TaskStatus,
    VerificationCheck, VerificationEvent, VerificationStatus,
};
pub use error::MessageError;
pub use event::{AhpEvent, EventType};
pub use payload::{
    ConfirmationEvent, ConfirmationType, ContextPerceptionEvent, HeartbeatEvent, HistoryItem, IdleEvent,
    IntentDetectionEvent, MemoryRecallEvent, PerceptionConstraints, PerceptionContext, PerceptionDomain,
    PerceptionFreshness, PerceptionIntent, PerceptionModality, PerceptionTarget, PerceptionUrgency,
    PlanningEvent, PlanningStrategy, RateLimitEvent, RateLimitType, ReasoningEvent, ReasoningType,
    SuccessEvent, TimeRange,
};
pub use rpc::{Id, Message, RpcError};
pub use session::{
    AgentInfo, BatchRequest, BatchResponse, HandshakeRequest, HandshakeResponse, HarnessConfig, HarnessInfo,
    QueryRequest, QueryResponse,
};

/// The version that both sides say in the handshake.
pub const PROTOCOL_VERSION: &str = "2.4";

/// The four methods.
pub mod method {
    /// Negotiates version, capabilities and limits.
    pub const HANDSHAKE: &str = "ahp/handshake";
    /// Method of an event.
    pub const EVENT: &str = "ahp/event";
    /// Method of a query.
    pub const QUERY: &str = "ahp/query";
    /// Several events that get generic decisions.
    pub const BATCH: &str = "ahp/batch";
}
