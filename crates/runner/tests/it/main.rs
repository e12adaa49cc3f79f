//! Integration tests of the test bench.

mod statistics;
