//! Client of the Attest protocol: finds an engine, starts it, and sends it traces and assertions.
//!
//! ```no_run
//! use proctor_clients::attest::{AttestClient, Discovery, EngineOptions};
//! use serde_json::json;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let discovery = Discovery::new(
//!     |name| std::env::var_os(name),
//!     std::env::home_dir(),
//!     std::env::current_dir()?,
//!     std::env::var_os("PATH"),
//! );
//! let engine = discovery.find()?;
//! let client = AttestClient::spawn(&engine.path, [""; 0], EngineOptions::default()).await?;
//!
//! let trace = json!({ "trace_id": "t-1", "output": { "message": "refunded" } });
//! let assertions = json!([{
//!     "assertion_id": "a-1",
//!     "type": "content",
//!     "spec": { "target": "output.message", "check": "contains", "value": "refund" },
//! }]);
//! let results = client.evaluate_batch(&trace, &assertions).await?;
//!
//! let report = client.shutdown().await?;
//! assert!(report.status.success());
//! # Ok(())
//! # }
//! ```
//!
//! With more settings:
//!
//! ```no_run
//! use std::time::Duration;
//! use proctor_clients::attest::{ClientError, EngineBuilder, EngineOptions, LogLevel};
//!
//! # async fn example() -> Result<(), ClientError> {
//! let client = EngineBuilder::new("/opt/attest/attest-engine")
//!     .env("ATTEST_JUDGE_PROVIDER", "ollama")
//!     .options(EngineOptions {
//!         log_level: LogLevel::Debug,
//!         required_capabilities: vec!["layers_1_4".to_owned(), "trace_tree".to_owned()],
//!         request_timeout: Duration::from_secs(120),
//!         ..EngineOptions::default()
//!     })
//!     .start()
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! Guarantees: calls run concurrently and may be cancelled at any moment. Answers are matched to calls by id; answers without a call are
//! counted and ignored, so that a late answer is never taken for another one's. The engine's standard error is drained, so that
//! verbose engines never block. When the engine exits, all calls fail at once, with the exit status and the end of its standard error.
//! One time limit covers queueing, writing and waiting for the answer. No engine survives its client.

mod client;
mod discovery;
mod error;
mod link;
mod messages;
mod notifications;
mod options;
mod process;
mod tail;

pub use client::{AttestClient, Ending, ShutdownReport};
pub use discovery::{Discovery, ENGINE_VERSION, Found, Location, NotFound, RejectReason, Rejected};
pub use error::{ClientError, EngineEnd, Stage};
pub use messages::{EngineError, InitializeResult, PROTOCOL_VERSION, ShutdownResult};
pub use notifications::{Diagnostics, Notification};
pub use options::{EngineBuilder, EngineOptions, LogLevel};
