//! The words of Proctor: sessions, actions, decisions, outcomes, records, traces; identifiers, time, canonical JSON, digests.
//!
//! This crate does no I/O, knows no clock and no source of randomness of its own, and is deterministic.
//!
//! ```
//! use proctor_core::action::Action;
//! use proctor_core::json::Json;
//! use proctor_core::normalise::normalise;
//!
//! let sent = Json::parse(br#"{"tool": "Bash", "args": {"command": "sudo rm -rf build"}, "cwd": "/repo"}"#).unwrap();
//! let action = Action::from_json(&sent).unwrap();
//! let facts = normalise(&action, None);
//! assert_eq!(facts.tool, "shell");
//! assert!(facts.commands.iter().any(|command| command == "rm -rf build"));
//! assert_eq!(facts.paths, ["/repo/build"]);
//! ```

pub mod action;
pub mod canonical;
pub mod decision;
pub mod digest;
pub mod id;
pub mod json;
pub mod normalise;
pub mod printable;
pub mod random;
pub mod record;
pub mod session;
pub mod time;
pub mod trace;

mod suggest;
pub use suggest::nearest;
