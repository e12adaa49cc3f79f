//! Bundles: export, verification, proof files, and what a forger without keys can do to them.

mod leaves;
mod ledger_source;
mod mutations;
mod proofs;
mod refusals;
mod roundtrip;
mod speed;
