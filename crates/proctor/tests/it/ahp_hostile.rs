//! Hostile input on every transport: that one caller is answered or cut off, memory stays small, and the next caller is served.

pub mod crowds;
pub mod grpc;
pub mod http;
pub mod lines;
pub mod messages;
pub mod websocket;

use crate::ahp_serve::server::{POLICY, Server, decided, post, pre_action, result};
use crate::support::Folder;

/// Memory limit of the server under attack.
const MOST: u64 = 100 << 20;

/// The same for a hundred callers who send as fast as they can and read nothing: each has its window, and all of it is recorded.
const MOST_FOR_A_CROWD: u64 = 128 << 20;

/// Asserts that the server serves another caller, and is still small.
fn assert_well(server: &Server, after: &str) {
    assert_well_below(server, after, MOST);
}

fn assert_well_below(server: &Server, after: &str, most: u64) {
    let answer = server.connect().tool("next", "look");
    assert_eq!(decided(&answer), "allow", "after {after}: {answer}");
    let (status, body) = post(server.http, "/ahp", &[], pre_action("next", "s", "look").as_bytes());
    assert_eq!(status, 200, "after {after}: {body}");
    let answer = result(&proctor_core::json::Json::parse(body.as_bytes()).unwrap());
    assert_eq!(decided(&answer), "allow", "after {after}: {answer}");
    let peak = server.peak();
    assert!(peak < most, "after {after}: {} MiB", peak >> 20);
}

#[test]
fn one_server_outlives_everything() {
    let folder = Folder::with_policy(POLICY);
    let server = Server::start(&folder);
    assert_well(&server, "nothing");
    println!("{} MiB at the start", server.peak() >> 20);
    for (name, attack) in
        lines::attacks().into_iter().chain(http::attacks()).chain(websocket::attacks()).chain(grpc::attacks())
    {
        let before = server.peak();
        let start = std::time::Instant::now();
        attack(&server);
        assert_well(&server, name);
        println!(
            "{name}: {} MiB, {} ms",
            server.peak().saturating_sub(before) >> 20,
            start.elapsed().as_millis()
        );
    }
    println!("{} MiB in the end", server.peak() >> 20);
    server.stop();
    crate::ahp_serve::server::assert_verifies(&folder);
}

/// An attack of a caller.
type Attack = (&'static str, fn(&Server));
