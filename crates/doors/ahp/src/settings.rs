//! Settings of the door.

use std::path::PathBuf;
use std::time::Duration;

use proctor_core::session::Caller;
use proctor_engine::tokens::Token;

/// Settings of the Agent Harness Protocol's door.
#[derive(Debug, Clone)]
pub struct AhpSettings {
    /// Time limit of an answer; after it the answer is `block`.
    pub answer: Duration,
    /// Delay of an `ask` answer, so that an approver can decide first.
    pub hold: Duration,
    /// The Unix socket; none: in the state directory.
    pub socket: Option<PathBuf>,
    /// Events at most this deep.
    pub max_depth: u32,
    /// Maximum of events in a batch.
    pub batch_size: u64,
    /// Whether events may lack `timestamp` and `depth`.
    pub lenient: bool,
    /// The folder that context comes from.
    pub workspace: PathBuf,
    /// The configured name of the agent that this user runs.
    pub agent: String,
    /// The caller on standard input.
    pub this_user: Caller,
    /// The tokens of network callers.
    pub tokens: Vec<Token>,
}

impl AhpSettings {
    /// The defaults, for a workspace.
    pub fn new(workspace: PathBuf) -> AhpSettings {
        AhpSettings {
            answer: Duration::from_secs(8),
            hold: Duration::ZERO,
            socket: None,
            max_depth: 10,
            batch_size: 100,
            lenient: false,
            workspace,
            agent: String::new(),
            this_user: Caller::default(),
            tokens: Vec::new(),
        }
    }
}
