//! Client of a harness: connects, performs the handshake, and requests decisions.
//!
//! ```no_run
//! use proctor_clients::ahp::client::{AhpClient, Result, Transport};
//! use proctor_clients::ahp::{Decision, EventType};
//!
//! # #[cfg(feature = "stdio")]
//! # async fn example() -> Result<()> {
//! let client = AhpClient::new(Transport::Stdio {
//!     program: "python3".into(),
//!     args: vec!["harness.py".into()],
//! })
//! .await?;
//! client.handshake(vec!["pre_action".to_string()]).await?;
//!
//! let decision = client
//!     .send_event_decision(EventType::PreAction, serde_json::json!({ "tool_name": "bash" }))
//!     .await?;
//! match decision {
//!     Decision::Allow { .. } => { /* act */ }
//!     other => { /* do not act: anything else, and every error, is no permission */ }
//! }
//! client.close().await
//! # }
//! ```
//!
//! With settings, and with a prebuilt event:
//!
//! ```no_run
//! use std::time::Duration;
//! use proctor_clients::ahp::AhpEvent;
//! use proctor_clients::ahp::client::{AhpClient, ClientOptions, Result, Transport};
//!
//! # #[cfg(feature = "unix-socket")]
//! # async fn example(event: &AhpEvent) -> Result<()> {
//! let options = ClientOptions {
//!     session_id: Some("release-42".to_owned()),
//!     reply_timeout: Some(Duration::from_secs(3)),
//!     ..ClientOptions::default()
//! };
//! let client = AhpClient::connect(Transport::UnixSocket { path: "/run/proctor.sock".into() }, options).await?;
//! client.handshake(Vec::new()).await?;
//! let decision = client.with_id("step-7").send_event_full(event).await?;
//! # Ok(())
//! # }
//! ```
//!
//! Guarantees: calls run concurrently on one connection and may be cancelled at any moment. When the connection is lost, calls in flight
//! fail at once with [`AhpError::ConnectionClosed`], and the next call reconnects and repeats the handshake. A message that the harness
//! may have seen is never sent twice. Connecting, writing and waiting have time limits. Limits that the harness advertises are checked
//! before anything is sent.

mod auth;
#[cfg(feature = "ahp-client")]
mod calls;
#[cfg(feature = "ahp-client")]
mod channel;
mod error;
#[cfg(feature = "grpc")]
mod grpc;
#[cfg(feature = "ahp-client")]
mod handshake;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "ahp-stream")]
mod link;
#[cfg(feature = "ahp-client")]
mod message;
mod options;
#[cfg(any(feature = "ahp-stream", feature = "http"))]
mod reply;
#[cfg(feature = "ahp-stream")]
mod streamed;
#[cfg(feature = "websocket")]
mod websocket;

pub use auth::AuthConfig;
#[cfg(feature = "ahp-client")]
pub use calls::AhpClient;
pub use error::{AhpError, Result};
pub use options::{Backoff, ClientOptions, Transport, TransportConfig};
