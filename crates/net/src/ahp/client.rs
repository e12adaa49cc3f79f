//! The agent's side: connect to a harness, introduce yourself, ask before you act.
//!
//! ```no_run
//! use proctor_net::ahp::client::{AhpClient, Result, Transport};
//! use proctor_net::ahp::{Decision, EventType};
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
//! use proctor_net::ahp::AhpEvent;
//! use proctor_net::ahp::client::{AhpClient, ClientOptions, Result, Transport};
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
//! What it promises: calls run concurrently on one connection and may be cancelled at any moment. The death of the harness is
//! noticed at once: calls in flight fail with [`AhpError::ConnectionClosed`], the next call connects and introduces the agent
//! again. A message that the harness may have seen is never sent twice. Connecting, writing and waiting all have limits. Limits
//! that the harness advertises are kept before anything is sent.

mod auth;
#[cfg(any(
    feature = "stdio",
    feature = "unix-socket",
    feature = "websocket",
    feature = "http",
    feature = "grpc"
))]
mod calls;
#[cfg(any(
    feature = "stdio",
    feature = "unix-socket",
    feature = "websocket",
    feature = "http",
    feature = "grpc"
))]
mod channel;
mod error;
#[cfg(any(
    feature = "stdio",
    feature = "unix-socket",
    feature = "websocket",
    feature = "http",
    feature = "grpc"
))]
mod greeting;
#[cfg(feature = "grpc")]
mod grpc;
#[cfg(feature = "http")]
mod http;
#[cfg(any(feature = "stdio", feature = "unix-socket"))]
mod lines;
#[cfg(any(feature = "stdio", feature = "unix-socket", feature = "websocket"))]
mod link;
#[cfg(any(
    feature = "stdio",
    feature = "unix-socket",
    feature = "websocket",
    feature = "http",
    feature = "grpc"
))]
mod message;
mod options;
#[cfg(any(feature = "stdio", feature = "unix-socket", feature = "websocket", feature = "http"))]
mod reply;
#[cfg(any(feature = "stdio", feature = "unix-socket", feature = "websocket"))]
mod streamed;
#[cfg(feature = "websocket")]
mod websocket;

pub use auth::AuthConfig;
#[cfg(any(
    feature = "stdio",
    feature = "unix-socket",
    feature = "websocket",
    feature = "http",
    feature = "grpc"
))]
pub use calls::AhpClient;
pub use error::{AhpError, Result};
pub use options::{Backoff, ClientOptions, Transport, TransportConfig};
