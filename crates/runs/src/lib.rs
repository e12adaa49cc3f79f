//! Test runs on record: the store that a suite run writes to, its tools endpoints, and the history that is read back.
//!
//! A suite run has an identifier. Its records stand in three places of the ledger:
//!
//! | Session | Records of kind `run` |
//! |---|---|
//! | the suite run | `suite_started`, `ended` |
//! | the suite run's tests | `test_ended`, once for each test |
//! | each run, named by its task id | `started`, `events` in blocks, `ended`; decisions and outcomes of its tool calls |
//!
//! Each run is a principal of its own, so that it neither uses nor fills the budgets, rates and memory of production.

mod backend;
pub mod earlier;
mod endpoint;
pub mod history;
mod judges;
mod keys;
mod recorder;
mod store;

pub use backend::{ToolSource, ToolSourceError};
pub use earlier::EarlierError;
pub use history::{HistoryError, SuiteRun};
pub use judges::EngineJudges;
pub use store::{DeciderSource, OpenError, RunStore, SuiteRunStart};
