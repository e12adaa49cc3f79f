//! Tests of the client libraries and the AHP server, over every transport.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::result_large_err,
    reason = "a test fails by panicking, and a handshake callback has the signature of its library"
)]

mod support;

mod ahp_client_checks;
mod ahp_client_descriptors;
mod ahp_client_http;
mod ahp_client_reconnect;
mod ahp_client_server;
mod ahp_client_stdio;
mod ahp_client_tls;
mod ahp_client_websocket;
mod ahp_server_http;
mod ahp_server_memory;
mod ahp_server_stdio;
mod ahp_server_stream;
mod ahp_server_tls;
mod ahp_server_unix;
mod ahp_server_websocket;
mod assembly_client;
mod assembly_runtime;
mod atp_agent;
mod atp_examples;
mod atp_grpc;
mod atp_http;
mod atp_rules;
mod atp_stdio;
mod atp_tls;
mod atp_websocket;
mod attest_client;
mod grpc_unix;
