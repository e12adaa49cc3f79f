//! Test suites: typed form and loading.
//!
//! [`load`] reads YAML or JSON and either returns a [`Suite`] in which every default is applied, or every mistake with its position.
//!
//! ```
//! use proctor_runner::suite::{LoadOptions, load};
//!
//! let source = br#"
//! test_suite: smoke
//! defaults: {timeout_seconds: 20}
//! tests:
//!   - id: one
//!     name: Says hello
//!     task: {description: "Greet ${NAME:nobody}"}
//!     assertions: [{type: contains, config: {pattern: hello}}]
//! "#;
//! let loaded = load(source, &LoadOptions::new(&|_| None, &|_| None)).unwrap();
//! let test = &loaded.suite.tests[0];
//! assert_eq!(test.task.description, "Greet nobody");
//! assert_eq!(test.settings.constraints.timeout_seconds, 20);
//! ```

mod agents;
mod assertions;
mod attest;
mod behavior;
mod case;
mod commands;
mod composite;
mod keys;
mod locate;
mod mock_tools;
mod model;
mod object;
mod path;
mod problem;
mod read;
mod reader;
pub mod schema;
mod select;
mod settings;
mod substitute;
mod words;

use proctor_yaml::Limits;

pub use locate::locate;
pub use mock_tools::{MatchKind, MockReply, MockRule, MockStatus, MockTool};
pub use model::{
    Agent, AgentKind, Approval, ApprovalDecision, AttestAssertion, Command, Constraints, FileItem,
    FileSource, HttpAgent, ProcessAgent, RemoteAgent, SecretValue, Suite, Task, TestCase, TestSettings,
};
pub use problem::Problem;
pub use proctor_yaml::Position;
pub use read::load;
pub use select::{Partition, PartitionError, TagFilter};
pub use words::{WordsError, shell_sign, split_words};

pub(crate) use case::NO_ASSERTIONS;

/// Limits of a suite. 10,000 tests are about 4 MB and 230,000 values; twice that is left for longer descriptions.
pub const SUITE_LIMITS: Limits = Limits {
    source_bytes: 16 << 20,
    depth: 64,
    nodes: 1_000_000,
    text_bytes: 16 << 20,
    errors: problem::MAX_PROBLEMS,
};

/// Arguments of [`load`].
#[derive(Clone, Copy)]
pub struct LoadOptions<'o> {
    /// Bounds of the source.
    pub limits: Limits,
    /// Values of environment variables, for `${NAME}`.
    pub environment: &'o dyn Fn(&str) -> Option<String>,
    /// A search for secrets in descriptions.
    pub scan: &'o dyn Fn(&str) -> Option<SecretFinding>,
    /// The kind of entry at a path of the suite; see [`locate`](locate()).
    pub paths: &'o dyn Fn(&str) -> PathKind,
}

/// Kind of entry at a path that a suite names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// Nothing, or nothing that can be reached.
    Missing,
    /// Not looked at.
    Unknown,
}

impl PathKind {
    /// The kind of entry at a path of the file system.
    pub fn of(path: &std::path::Path) -> PathKind {
        match path.metadata() {
            Ok(found) if found.is_dir() => PathKind::Folder,
            Ok(_) => PathKind::File,
            Err(_) => PathKind::Missing,
        }
    }
}

impl<'o> LoadOptions<'o> {
    /// Options with [`SUITE_LIMITS`].
    pub fn new(
        environment: &'o dyn Fn(&str) -> Option<String>,
        scan: &'o dyn Fn(&str) -> Option<SecretFinding>,
    ) -> LoadOptions<'o> {
        LoadOptions { limits: SUITE_LIMITS, environment, scan, paths: &|_| PathKind::Unknown }
    }

    /// The same options, with a look at the files that the suite names: those that are missing are mistakes.
    #[must_use]
    pub fn with_paths(self, paths: &'o dyn Fn(&str) -> PathKind) -> LoadOptions<'o> {
        LoadOptions { paths, ..self }
    }
}

/// A secret found in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretFinding {
    /// Kind of secret, for the message.
    pub kind: String,
    /// Byte offset of its start.
    pub offset: usize,
}

/// A loaded suite.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The suite.
    pub suite: Suite,
    /// Doubtful parts that do not prevent its use, by position.
    pub warnings: Vec<Problem>,
}

#[cfg(test)]
mod tests;
