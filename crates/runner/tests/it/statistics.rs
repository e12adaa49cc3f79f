//! Statistics: reference values of SciPy and statsmodels, laws, and simulated comparisons.

mod laws;
mod reference;
mod simulation;
