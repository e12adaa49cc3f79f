//! The Agent Harness Protocol, judged by its official crate: that crate's client against our server, our client against that crate's
//! server, and the means to measure both with one driver.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of this is for tests, which fail by panicking"
)]

pub mod bench;
pub mod official;
pub mod ours;
pub mod policies;
pub mod process;
pub mod samples;
pub mod supervised;
pub mod waiting;
pub mod wire;

/// The gRPC service, as its file says it.
#[allow(missing_docs, clippy::pedantic, clippy::allow_attributes_without_reason, reason = "generated")]
pub mod grpc {
    tonic::include_proto!("proctor.ahp.v1");
}

/// The transports that the official client has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Standard input and output of a program.
    Stdio,
    /// A Unix socket.
    Unix,
    /// HTTP.
    Http,
    /// A WebSocket.
    WebSocket,
}

/// Declares a test for each function on each transport.
#[macro_export]
macro_rules! on_every_transport {
    ($($promise:ident),+ $(,)?) => {
        $crate::on_every_transport!(@ stdio Stdio: $($promise)+);
        $crate::on_every_transport!(@ unix Unix: $($promise)+);
        $crate::on_every_transport!(@ http Http: $($promise)+);
        $crate::on_every_transport!(@ websocket WebSocket: $($promise)+);
    };
    (@ $module:ident $way:ident: $($promise:ident)+) => {
        mod $module { $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                super::$promise($crate::Way::$way).await;
            }
        )+ }
    };
}
