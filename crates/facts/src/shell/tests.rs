//! Tests of the shell parser.

mod cases;
mod limits;
mod properties;
