//! Statistics: reference values of SciPy and statsmodels, laws, and simulated comparisons.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking, and prints what it counted"
)]

mod laws;
mod reference;
mod simulation;
