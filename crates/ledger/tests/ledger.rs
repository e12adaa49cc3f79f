//! What the ledger promises, tested from outside.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::assigning_clones,
    clippy::unnecessary_wraps,
    clippy::needless_for_each,
    clippy::duration_suboptimal_units,
    unreachable_pub,
    reason = "helpers of tests; a panic is a failed test"
)]

#[path = "ledger/append.rs"]
mod append;
#[path = "ledger/damage.rs"]
mod damage;
#[path = "ledger/erase.rs"]
mod erase;
#[path = "ledger/faults.rs"]
mod faults;
#[path = "ledger/read.rs"]
mod read;
#[path = "ledger/read_only.rs"]
mod read_only;
#[path = "ledger/support.rs"]
mod support;
