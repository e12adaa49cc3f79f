//! What the ledger promises, tested from outside.

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
