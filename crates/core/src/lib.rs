//! Shared types of Proctor: sessions, actions, decisions, outcomes, records, traces; identifiers, time, canonical JSON, digests.
//!
//! The crate does no I/O and is deterministic: clock and randomness are arguments.
//!
//! ```
//! use proctor_core::action::Action;
//! use proctor_core::json::Json;
//!
//! let sent = Json::parse(br#"{"tool": "Bash", "args": {"command": "ls"}, "cwd": "/repo"}"#).unwrap();
//! let action = Action::from_json(&sent).unwrap();
//! assert_eq!(action.name, "Bash");
//! assert_eq!(action.to_json().get("cwd").and_then(Json::as_str), Some("/repo"));
//! ```

pub mod action;
pub mod canonical;
pub mod decision;
pub mod digest;
pub mod id;
pub mod json;
pub mod printable;
pub mod random;
pub mod record;
pub mod session;
pub mod time;
pub mod trace;

mod message;
/// Hexadecimal encoding for all crates.
pub use hex;
pub use message::{nearest, quoted};
