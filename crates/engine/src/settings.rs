//! Settings of the engine, from the command line and `proctor.toml`.

pub mod file;

use std::path::PathBuf;
use std::time::Duration;

pub use proctor_ledger::store::Durability;

use crate::workspaces::Workspaces;

/// Settings of a state directory, and the identity that this user acts under.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The state directory.
    pub state: PathBuf,
    /// The policy: a document, or a folder of documents. None: every action is denied.
    pub policy: Option<PathBuf>,
    /// Durability of a committed record.
    pub durability: Durability,
    /// The configured name of the agent that this user runs.
    pub agent: String,
    /// The team of that agent.
    pub team: String,
    /// The organisation of that agent.
    pub org: String,
    /// The workspaces that actions are judged against.
    pub workspaces: Workspaces,
    /// Time limit of an answer; after it the answer is deny.
    pub answer: Duration,
}
