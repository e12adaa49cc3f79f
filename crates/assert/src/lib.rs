//! Assertions on the trace of an agent, each answered with a [`Verdict`].
//!
//! This crate does no I/O and knows no clock. Assertions that need a model (similarity, judgement) say which texts and prompts they
//! need and fold the answers; the caller fetches those.
//!
//! ```
//! use proctor_assert::{Assertion, Tools, Trace, evaluate};
//!
//! let trace = Trace::parse(r#"{"trace_id": "t", "steps": [{"type": "tool_call", "name": "lookup"}], "output": {"message": "done"}}"#).unwrap();
//! let spec = r#"{"check": "required_tools", "tools": ["lookup"]}"#;
//! let assertion = Assertion::new("a", "trace", spec).unwrap();
//! let verdict = evaluate(&trace, &assertion, &Tools::default());
//! assert!(verdict.status.passed());
//! ```

#![expect(
    clippy::result_large_err,
    reason = "a verdict is the answer, not a rare failure: it is made once for an assertion"
)]

mod ascii_classes;
mod check;
mod constraint;
mod content;
mod each;
mod embedding;
mod judge;
mod live;
mod raw;
mod schema;
mod sequence;
mod spec;
mod target;
mod text;
mod threshold;
mod tools;
mod trace;
mod tree;
mod validate;
mod verdict;

pub use check::{Assertion, Check, Compiled, Layer, evaluate, known_members};
pub use embedding::{Similarity, cosine};
pub use judge::{AnswerError, Answers, Judgement, Probe, Prompts, RUBRICS, Rubric, Sample};
pub use live::Live;
pub use raw::normalised;
pub use text::Text;
pub use threshold::{MINIMUM_RUNS, WINDOW, dynamic, is_dynamic};
pub use tools::Tools;
pub use trace::{Head, Metadata, Step, StepKind, Trace};
pub use tree::{TreeReport, inspect_tree};
pub use validate::{Limits, TraceProblem, validate};
pub use verdict::{JudgeMetadata, ProbeResult, Status, ThresholdSource, Verdict};
