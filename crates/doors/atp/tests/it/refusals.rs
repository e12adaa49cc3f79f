//! Calls that are refused before the policy is asked.

use proctor_core::json::Json;
use proctor_door_atp::CallStatus;
use proctor_wire::atp::limits::MAX_MESSAGE;

use crate::fixture::{POLICY, TASK, bench, bench_with, json, send, send_raw};

#[tokio::test]
async fn tools_outside_of_the_allowed_ones_do_not_exist_for_the_run() {
    let bench = bench_with(POLICY, |run| run.allowed_tools = Some(vec!["echo".to_owned()]));
    let reply = bench.call("fail", "{}").await;
    assert_eq!(reply["error_code"], "TOOL_NOT_FOUND");
    assert_eq!(reply["error_details"]["available_tools"], json(r#"["echo"]"#));
    assert!(bench.tools.seen.lock().unwrap().is_empty());
    assert_eq!(bench.kinds(), ["observation tool_call_refused", "alarm tool_not_allowed"]);
    let records = bench.records();
    assert!(records[0].0.session.is_some() && records[1].0.session == records[0].0.session);
    assert_eq!(bench.call("echo", "{}").await["status"], "success");
    let (_, tools) = send(bench.door.url(), "GET", "/tools", b"").await;
    assert_eq!(json(&tools)["tools"].as_array().map(<[Json]>::len), Some(1));
    assert_eq!(send(bench.door.url(), "GET", "/tools/fail", b"").await.0, 404);
    assert_eq!(bench.door.finish().await.calls[0].status, CallStatus::NotAllowed);
}

#[tokio::test]
async fn a_task_of_another_run_is_refused_and_an_alarm() {
    let bench = bench();
    for (path, body) in [
        ("/echo", r#"{"task_id":"another","input":{}}"#),
        ("/tools/call", r#"{"tool":"echo","task_id":"another","input":{}}"#),
    ] {
        let (status, reply) = send(bench.door.url(), "POST", path, body.as_bytes()).await;
        assert_eq!((status, json(&reply)["error_code"].as_str()), (200, Some("INVALID_REQUEST")));
    }
    assert!(bench.tools.seen.lock().unwrap().is_empty());
    assert_eq!(bench.kinds(), ["observation tool_call_refused", "alarm foreign_task"].repeat(2));
    assert_eq!(bench.door.finish().await.calls[1].status, CallStatus::ForeignTask);
}

#[tokio::test]
async fn a_call_without_a_task_is_one_of_the_run() {
    let bench = bench();
    let (status, reply) = send(bench.door.url(), "POST", "/echo", br#"{"input":{}}"#).await;
    assert_eq!((status, json(&reply)["status"].as_str()), (200, Some("success")));
}

#[tokio::test]
async fn malformed_bodies_are_refused_and_an_alarm() {
    let bench = bench();
    let deep = format!(r#"{{"input":{}{}}}"#, "[".repeat(500), "]".repeat(500));
    let bodies: [&[u8]; 7] =
        [b"", b"{", b"[]", br#"{"input":{},"input":{}}"#, br#"{"task_id":7}"#, b"\xff\xfe", deep.as_bytes()];
    for body in bodies {
        let (status, reply) = send(bench.door.url(), "POST", "/echo", body).await;
        let reply = json(&reply);
        assert_eq!((status, reply["error_code"].as_str()), (400, Some("INVALID_REQUEST")), "{reply}");
    }
    let (status, _) = send(bench.door.url(), "POST", "/tools/call", br#"{"input":{}}"#).await;
    assert_eq!(status, 400);
    let (status, _) = send(bench.door.url(), "POST", "/echo", br#"{"tool":"purge","input":{}}"#).await;
    assert_eq!(status, 400, "the body names another tool than the path");
    assert!(bench.tools.seen.lock().unwrap().is_empty());
    assert_eq!(bench.kinds(), ["observation tool_call_refused", "alarm malformed"].repeat(9));
    assert!(bench.door.finish().await.calls.iter().all(|call| call.status == CallStatus::Malformed));
}

#[tokio::test]
async fn oversized_bodies_are_refused_before_they_are_read() {
    let bench = bench();
    let length = format!("content-length: {}\r\n", MAX_MESSAGE + 1);
    let (status, reply) = send_raw(bench.door.url(), "POST", "/echo", &length, b"").await;
    assert_eq!((status, json(&reply)["error_code"].as_str()), (413, Some("INVALID_REQUEST")));
    assert_eq!(bench.kinds(), ["observation tool_call_refused", "alarm malformed"]);
    // The longest body that is read.
    let mut body = format!(r#"{{"task_id":"{TASK}","input":""#).into_bytes();
    body.resize(MAX_MESSAGE - 2, b'x');
    body.extend(b"\"}");
    let (status, reply) = send(bench.door.url(), "POST", "/purge", &body).await;
    assert_eq!((status, json(&reply)["error_code"].as_str()), (200, Some("TOOL_ERROR")));
}

#[tokio::test]
async fn more_calls_than_the_run_may_make_are_refused_and_recorded_once() {
    let bench = bench_with(POLICY, |run| run.max_calls = 2);
    for _ in 0..2 {
        assert_eq!(bench.call("echo", "{}").await["status"], "success");
    }
    for _ in 0..3 {
        assert_eq!(bench.call("echo", "{}").await["error_code"], "BUDGET_EXCEEDED");
        assert_eq!(send(bench.door.url(), "POST", "/echo", b"{").await.0, 400);
    }
    assert_eq!(bench.tools.seen.lock().unwrap().len(), 2);
    assert_eq!(bench.kinds()[4..], ["observation tool_call_refused", "alarm too_many_calls"]);
    let finished = bench.door.finish().await;
    assert_eq!((finished.calls.len(), finished.calls_over_limit), (2, 6));
}

#[tokio::test]
async fn paths_without_the_secret_get_nothing() {
    let bench = bench();
    let (origin, secret) = bench.door.url().rsplit_once('/').unwrap();
    assert!(secret.len() == 32 && secret.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let wrong = format!("/{}0/echo", &secret[..31]);
    for path in ["/", "/echo", "/tools/call", "/health", "/records", wrong.as_str()] {
        let (status, body) = send(origin, "POST", path, b"{}").await;
        assert_eq!((status, body.as_str()), (404, ""), "{path}");
        assert_eq!(send(origin, "GET", path, b"").await, (404, String::new()), "{path}");
    }
    assert!(bench.kinds().is_empty());
}

#[test]
fn endpoints_of_other_machines_are_refused() {
    use std::sync::Arc;

    use proctor_core::random::SeededRandomness;
    use proctor_door_atp::{Decider, OpenError, ToolDoor};

    use crate::fixture::{Tools, clock, engine, run};

    let folder = tempfile::tempdir().unwrap();
    let decider = Decider::Engine(engine(folder.path(), POLICY));
    let listener = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let opened = ToolDoor::open(
        listener,
        run(),
        decider,
        Arc::new(Tools::default()),
        clock(),
        &SeededRandomness::new(1),
    );
    assert!(matches!(opened, Err(OpenError::NotLoopback(_))));
}
