//! `proctor serve`, `proctor harness` and `proctor demo` from the outside: as agents and people meet them.

pub mod agent;
pub mod crashes;
pub mod credentials;
pub mod demo;
pub mod holding;
pub mod life;
pub mod long;
pub mod relay;
pub mod reload;
pub mod server;
pub mod transports;
pub mod users;
