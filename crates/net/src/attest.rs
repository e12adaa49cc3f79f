//! The caller's side of the Attest protocol: find an engine, start it, hand it traces and assertions.
//!
//! ```no_run
//! use proctor_net::attest::{AttestClient, Discovery, EngineOptions};
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
//! use proctor_net::attest::{ClientError, EngineBuilder, EngineOptions, LogLevel};
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
//! What it promises: calls run concurrently and may be cancelled at any moment; answers find their call by its id, and what fits
//! no call is counted and left out, so that a late answer is never taken for another one's. The engine's standard error is read
//! all the time: an engine that talks much never blocks. Its death is noticed at once: everybody who waits is told, with the exit
//! status and its last words. Waiting for a free place, writing and waiting for the answer together have one limit. No engine
//! survives its client.

mod client;
mod discovery;
mod error;
mod inbox;
mod link;
mod messages;
mod options;
mod process;
mod table;
mod tail;

pub use client::{AttestClient, Ending, ShutdownReport};
pub use discovery::{Discovery, ENGINE_VERSION, Found, Looked, NotFound, Place};
pub use error::{ClientError, EngineEnd, Stage};
pub use inbox::{Diagnostics, Notification};
pub use messages::{EngineError, InitializeResult, PROTOCOL_VERSION, ShutdownResult};
pub use options::{EngineBuilder, EngineOptions, LogLevel};
