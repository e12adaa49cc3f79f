//! Policy evaluation: documents, rules, secrets, budgets, approvals. One evaluation path, synchronous and
//! deterministic. Clock, randomness and the past are arguments, so a decision can be derived again from what it read.
//!
//! ```
//! use proctor_policy::policy::{Policy, Source};
//! let text = "version: \"1\"\ndefault: deny\nrules:\n  - { id: look, when: action.tool == \"file_read\", then: allow }\n";
//! let policy = Policy::compile(vec![Source::document("policy.yaml", text)]).unwrap();
//! assert_eq!(policy.rule_count(), 1);
//! ```

pub mod comparison;
pub mod condition;
pub mod document;
pub mod duration;
pub mod expression;
pub mod lint;
pub mod modules;
pub mod policy;

pub mod input;
pub mod json_path;
pub mod prepare;
pub mod truncated;
pub use proctor_scan as scan;

pub mod calendar;
pub mod glob;
pub mod prices;
pub mod question;
pub mod readset;
pub mod state;

pub mod advice;
pub mod body;
pub mod budgets;
pub mod evaluate;
pub mod explain;
pub mod judge;
