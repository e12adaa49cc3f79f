//! The Attest engine from the outside: every promise of its protocol, as a client sees it.

pub mod batches;
pub mod command_line;
pub mod envelope;
pub mod history;
pub mod methods;
pub mod records;
pub mod validation;
