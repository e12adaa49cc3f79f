//! The Agent Test Protocol, version 1.0: requests, responses and events of agents under test, and the protocol's rules.
//!
//! Messages are kept as the JSON that was sent: unknown members, member order and number literals survive reading and writing. The only
//! normalisation is that a known optional member with the value `null` is removed.
//!
//! [`Strictness::Lenient`] is for runs: deviations of released agents are counted warnings, everything else is a problem with its JSON
//! path. [`Strictness::Strict`] gives the verdict of the document's JSON Schemas with formats asserted, plus its version rule.
//!
//! ```
//! use proctor_wire::atp::{Response, Status, Strictness, WarningKind};
//!
//! let text = br#"{"task_id": "t-1", "status": "completed", "artifacts": [{"type": "structured", "name": "n", "data": {"x": 1.50}}]}"#;
//! let read = Response::parse(text, Strictness::Lenient).unwrap();
//! assert_eq!(read.message.status(), Status::Completed);
//! assert_eq!(read.warnings.count(WarningKind::NoVersion), 1);
//! assert!(read.message.to_string().contains("1.50"));
//!
//! let invalid = br#"{"task_id": "t-1", "status": "completed", "artifacts": [{"type": "file", "path": "../x"}], "metrics": {}}"#;
//! let error = Response::parse(invalid, Strictness::Lenient).unwrap_err();
//! assert!(error.to_string().contains("$.artifacts[0].path"));
//! ```

pub mod artifact;
pub mod conversation;
pub mod event;
pub mod limits;
pub mod schema;
pub mod tool;
pub mod validate;

mod check;
mod error_code;
mod findings;
mod format;
mod media_type;
mod metrics;
mod number;
mod object;
mod path;
mod read;
mod request;
mod response;
mod version;

pub use artifact::Artifact;
pub use conversation::{Conversation, Source, Transcript};
pub use error_code::ErrorCode;
pub use event::{Event, EventType, Payload};
pub use findings::{Findings, Problem, ProblemKind, Problems, Warning, WarningKind, Warnings};
pub use media_type::{MEDIA_TYPE, MediaType};
pub use metrics::Metrics;
pub use number::Number;
pub use read::{Read, ReadError, parse_json};
pub use request::{Constraints, Context, ExpectedArtifact, Request};
pub use response::{Response, Status};
pub use version::Version;

/// The version of the protocol that messages of ours carry.
pub const VERSION: &str = "1.0";

/// The set of rules that a message is read under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// For runs: what released agents send is a warning, limits and path rules are enforced.
    Lenient,
    /// For validation: the document's JSON Schemas with formats asserted. Limits and path rules beyond the schemas are warnings.
    Strict,
}
