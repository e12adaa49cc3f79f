//! What an assertion needs from outside: a model that judges, a model that turns text into vectors, and a memory of what was
//! judged before.

pub mod local;
pub mod store;
pub mod vendor;
