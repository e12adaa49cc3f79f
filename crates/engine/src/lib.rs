//! The engine of Proctor as a library: policy, state and ledger put together.
//!
//! An [`Engine`] owns a ledger. A door hands it a [`Proposal`]; the engine takes a decision on the state of that moment, queues the record,
//! and gives an [`Answer`] once the ledger has it: an answer that lets an action through can only be built from a receipt. Everything else
//! that doors need is here, too: reports bound to decisions, approvals, the agent registry, budgets, recorded sessions as traces, and the
//! re-derivation of a bundle's decisions. Transports, protocols and the command line are not.
//!
//! | Module | Purpose |
//! |---|---|
//! | [`Engine`], [`Proposal`], [`Answer`] | one decision: from what an agent proposes to what it is answered |
//! | [`access`], [`owner`] | the single owner of a state directory, and relays to it over its Unix socket |
//! | [`state_dir`], [`settings`], [`tokens`], [`approvers`] | files, settings and credentials |
//! | [`policy_files`], [`policy_watch`] | policy sources from files, and hot reload |
//! | [`orders`] | operators' orders to agents and operations |
//! | [`traces`], [`rederive`] | reads of the ledger: sessions as traces, decisions derived again |
//!
//! # Opening
//!
//! [`access::Access::open`] is for programs: it takes the lock of the state directory, reads policy and credentials, and uses the system's
//! clock and randomness; if another process is the owner, it returns a relay to that process. [`Engine::start`] takes its [`Parts`] as they
//! are: for tests, and for programs with a clock or a ledger of their own. [`Engine::finish`] commits what is queued, signs a
//! checkpoint and ends the writer; dropping the engine does it too.
//!
//! # Threads and tasks
//!
//! Nothing waits under the engine's lock. Capacity of the ledger's queue is reserved before, and the commit is awaited after it.
//!
//! | Request | From a thread | From a task (tokio) |
//! |---|---|---|
//! | a decision | [`Engine::submit`], [`Engine::deliver`] | [`Engine::reserve`], [`Engine::submit_until`], [`Engine::deliver_waiting`] inside [`to_its_end`] |
//! | a report | [`Engine::report`] | [`Engine::enqueue_report`], [`Engine::report_recorded`] |
//! | what is not a message of the protocol | [`Engine::refuse_malformed`] | [`Engine::enqueue_malformed`], [`Engine::malformed_refused`] |
//!
//! # Example
//!
//! Opens a state directory, decides an action under the policy of a file, and prints the record:
//!
//! ```
//! use std::time::Duration;
//!
//! use proctor_core::action::Action;
//! use proctor_engine::access::{Access, COMMAND, local_caller};
//! use proctor_engine::settings::{Durability, Settings};
//! use proctor_engine::workspaces::Workspaces;
//! use proctor_engine::Proposal;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let (state, policy) = (folder.path().join("state"), folder.path().join("policy.yaml"));
//! std::fs::write(&policy, "version: \"1\"\ndefault: allow\n")?;
//! let (durability, answer) = (Durability::Process, Duration::from_secs(8));
//! let (agent, team, org) = (String::new(), String::new(), String::new());
//! let workspaces = Workspaces::default();
//! let settings = Settings { state, policy: Some(policy), durability, agent, team, org, workspaces, answer };
//! let Access::Owner(engine) = Access::open(&settings, COMMAND, |_| Vec::new())? else {
//!     return Err("another process owns the state directory".into());
//! };
//! let action = Action { name: "deploy".to_owned(), ..Action::default() };
//! let caller = local_caller(1000, "ci", "", "");
//! let proposal = Proposal { action, caller, agent: "ci".to_owned(), session: "nightly".to_owned() };
//! let answer = engine.deliver(engine.submit(proposal));
//! let (id, sequence) = answer.record().ok_or("a deny that is not on record")?;
//! println!("{} by record {sequence} ({id})", answer.decision().effect.word());
//! # assert_eq!(answer.decision().effect.word(), "allow");
//! engine.finish();
//! # Ok(())
//! # }
//! ```

pub mod access;
pub mod approvers;
mod engine;
mod error;
pub mod orders;
pub mod owner;
pub mod policy_files;
pub mod policy_watch;
pub mod rederive;
pub mod relayed;
pub mod settings;
pub mod state_dir;
pub mod tokens;
pub mod traces;
mod turns;
pub mod workspaces;

pub use engine::*;
pub use error::EngineError;
