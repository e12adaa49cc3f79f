//! The tool protocol of the Agent Test Protocol: an HTTP endpoint for the tool calls of one run of an agent.
//!
//! A [`ToolDoor`] serves one run. Each call is an action of that run: the policy decides through a [`Decider`], a [`ToolBackend`](backend::ToolBackend) carries
//! out what is let through, decision and outcome are on record, and the agent gets the protocol's reply.
//!
//! | Module | Purpose |
//! |---|---|
//! | [`ToolDoor`], [`Run`], [`RecordedCall`] | the endpoint, its settings, and the calls that it returns at its end |
//! | [`Decider`] | decisions of this process's engine, or of the owner of the state directory |
//! | [`backend`] | the trait of tools; forwarding to a URL, recordings of it, and their replay |
//!
//! # Replies
//!
//! | Situation | Status | `error_code` | On record |
//! |---|---|---|---|
//! | let through, the tool succeeded | 200 | | decision, outcome `ok` |
//! | let through, the tool failed or is unknown | 200 | as the tool says, `TOOL_NOT_FOUND`, `TIMEOUT` | decision, outcome `failed` |
//! | denied, deferred, or asked and not approved | 200 | `TOOL_ERROR` | decision |
//! | asked and approved by the run's approvals | 200 | as if let through | decision, observation, outcome |
//! | outside of the allowed tools | 200 | `TOOL_NOT_FOUND` | observation with alarm |
//! | task of another run | 200 | `INVALID_REQUEST` | observation with alarm |
//! | more calls than the run may make | 200 | `BUDGET_EXCEEDED` | observation with alarm, for the first one |
//! | malformed, oversized or slow body | 400, 413, 408 | `INVALID_REQUEST` | observation with alarm |
//! | path without the endpoint's unguessable part | 404 without a body | | nothing |
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use proctor_core::json::Json;
//! use proctor_core::random::Randomness;
//! use proctor_core::session::Caller;
//! use proctor_core::time::Clock;
//! use proctor_door_atp::backend::{CallFuture, ToolBackend, ToolInfo, ToolResult};
//! use proctor_door_atp::{Decider, OpenError, RecordedCall, Run, ToolDoor};
//!
//! struct Echo;
//!
//! impl ToolBackend for Echo {
//!     fn call<'a>(&'a self, tool: &'a str, input: &'a Json) -> CallFuture<'a> {
//!         Box::pin(async move {
//!             if tool == "echo" { ToolResult::Success(input.clone()) } else { ToolResult::UnknownTool }
//!         })
//!     }
//!
//!     fn tools(&self) -> Vec<ToolInfo> {
//!         vec![ToolInfo { name: "echo".to_owned(), description: None }]
//!     }
//! }
//!
//! /// Serves the tools of one run while `agent` works with the URL.
//! async fn run(
//!     decider: Decider,
//!     clock: Arc<dyn Clock>,
//!     randomness: &dyn Randomness,
//!     agent: impl AsyncFnOnce(String),
//! ) -> Result<Vec<RecordedCall>, OpenError> {
//!     let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(OpenError::Listener)?;
//!     let caller = Caller { principal: "uid:1000/run-1".to_owned(), ..Caller::default() };
//!     let run = Run::new("task-1", caller, "agent-under-test");
//!     let door = ToolDoor::open(listener, run, decider, Arc::new(Echo), clock, randomness)?;
//!     agent(door.url().to_owned()).await;
//!     Ok(door.finish().await.calls)
//! }
//! ```

pub mod backend;
mod call;
mod calls;
mod decider;
mod door;
mod http;
mod run;

pub use calls::{CallStatus, DecisionRecord, RecordedCall};
pub use decider::{Decider, RecordError, RelayedDecider};
pub use door::{FinishedRun, OpenError, ToolDoor};
pub use run::{ApprovalAnswer, Approvals, OnCall, Question, Run, SecretCutter};

// The name of the door in records.
use proctor_engine::access::TEST_RUNS as DOOR;
