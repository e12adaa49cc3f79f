//! `proctor serve`, `proctor harness` and `proctor demo` from the outside: as agents and people meet them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    unreachable_pub,
    reason = "a test fails by panicking"
)]

#[path = "ahp_serve/agent.rs"]
mod agent;
#[path = "ahp_serve/crashes.rs"]
mod crashes;
#[path = "ahp_serve/credentials.rs"]
mod credentials;
#[path = "ahp_serve/demo.rs"]
mod demo;
#[path = "ahp_serve/holding.rs"]
mod holding;
#[path = "ahp_serve/life.rs"]
mod life;
#[path = "ahp_serve/long.rs"]
mod long;
#[path = "ahp_serve/relay.rs"]
mod relay;
#[path = "ahp_serve/reload.rs"]
mod reload;
#[path = "ahp_serve/server.rs"]
mod server;
#[path = "ahp_serve/transports.rs"]
mod transports;

mod support;
