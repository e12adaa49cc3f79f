//! Statistics of repeated runs: summaries, intervals, tests of differences, and the rule that decides about a regression.
//!
//! Nothing here does I/O or reads a clock; random draws come from a seed that is an argument.
//!
//! Input that is no sample is defined throughout: values that are not finite, or larger than [`MAGNITUDE`], are left out and counted in
//! [`Summary::ignored`]; what needs two values, and has fewer, is `None`.
//!
//! ```
//! use proctor_runner::statistics::{Comparison, Regression, Rule, TestRuns};
//!
//! let runs = |successes: u32, failures: u32| TestRuns {
//!     name: "answers".to_owned(),
//!     scores: [vec![100.0; successes as usize], vec![0.0; failures as usize]].concat(),
//!     successes,
//!     failures,
//!     ..TestRuns::default()
//! };
//! let comparison = Comparison::new(&[runs(27, 3)], &[runs(9, 21)], &Rule::default());
//! assert!(matches!(comparison.regression, Regression::Shown { .. }));
//! ```

mod comparison;
mod distribution;
mod fisher;
mod holm;
mod permutation;
mod rate;
mod sample;
mod special;
mod summary;
mod welch;

pub use comparison::{
    Comparison, DEFAULT_MARGIN, Effect, InvalidMargin, Quantity, Regression, Rule, SIGNIFICANCE, SuiteEffect,
    TestComparison, TestRuns, Verdict,
};
pub use distribution::{student_t_quantile, student_t_two_sided, student_t_upper};
pub use fisher::fisher_exact;
pub use holm::holm;
pub use permutation::{EXACT_PAIRS, Permutation, paired_permutation};
pub use rate::{SuccessRate, pass_all, pass_any};
pub use sample::MAGNITUDE;
pub use summary::{CONFIDENCE, Interval, Stability, Summary, mean_interval};
pub use welch::{Welch, hedges_g, welch};
