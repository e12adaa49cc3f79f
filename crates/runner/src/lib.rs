//! Test suites for agents: loading, evaluation of assertions, scores.
//!
//! [`suite`] reads a suite with all its mistakes at once, [`checks`] evaluates its assertions on what an agent left behind, [`scoring`] turns
//! the results into points and a verdict, [`statistics`] summarises repeated runs, [`comparison`] compares two results. These modules do no
//! I/O: the environment, files, commands and judges are arguments. [`suite_run`] runs a suite; [`results`] are what it gives.
//!
//! ```
//! use proctor_runner::suite::{LoadOptions, load};
//!
//! let source = b"test_suite: demo\ntests:\n  - {id: a, name: A, task: {description: Say hello}, asertions: []}\n";
//! let options = LoadOptions::new(&|_| None, &|_| None);
//! let mistakes = load(source, &options).unwrap_err();
//! assert_eq!(
//!     mistakes[0].to_string(),
//!     "3:54: $.tests[0]: unknown key `asertions` in a test; did you mean `assertions`?"
//! );
//! ```

pub mod agent;
pub mod agent_check;
pub mod checks;
pub mod comparison;
pub mod execute;
pub mod folder;
pub mod isolation;
pub mod judging;
pub mod recording;
pub mod results;
pub mod run;
pub mod scoring;
pub mod secrets;
mod shares;
pub mod starter;
pub mod statistics;
pub mod suite;
pub mod suite_run;
pub mod supervision;
pub mod tools;
