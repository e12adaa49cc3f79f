//! The end of a run, and callers that go away.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use proctor_door_atp::{CallStatus, RecordedCall};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::fixture::{POLICY, TASK, bench_with, json, send};

/// Far longer than a test takes: a run that waits this long is noticed.
const LONG: Duration = Duration::from_secs(600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hanging_call_is_stopped_when_the_run_ends_and_has_an_outcome() {
    let bench = bench_with(POLICY, |run| (run.grace, run.call_timeout) = (Duration::from_millis(50), LONG));
    let url = bench.door.url().to_owned();
    let body = format!(r#"{{"task_id":"{TASK}","input":{{}}}}"#);
    let agent = tokio::spawn(async move { send(&url, "POST", "/hang", body.as_bytes()).await });
    bench.tools.begun.notified().await;
    let started = Instant::now();
    let (engine, origin) = (bench.engine.clone(), bench.door.url().to_owned());
    let calls = bench.door.finish().await.calls;
    assert!(started.elapsed() < LONG / 10);
    assert_eq!((calls.len(), calls[0].status), (1, CallStatus::Stopped));
    assert_eq!(crate::fixture::kinds(&engine), ["decision allow", "outcome failed"]);
    let (status, reply) = agent.await.unwrap();
    assert_eq!((status, json(&reply)["error_code"].as_str()), (200, Some("TIMEOUT")));
    let address = origin.strip_prefix("http://").unwrap().split('/').next().unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_in_flight_is_waited_for() {
    let bench = bench_with(POLICY, |run| run.grace = LONG);
    let url = bench.door.url().to_owned();
    let agent = tokio::spawn(async move { send(&url, "POST", "/wait", b"{}").await });
    bench.tools.begun.notified().await;
    let (tools, finishing) = (bench.tools.clone(), tokio::spawn(bench.door.finish()));
    tools.go_on.notify_one();
    assert_eq!(finishing.await.unwrap().calls[0].status, CallStatus::Success);
    assert_eq!(json(&agent.await.unwrap().1)["status"], "success");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_goes_away_leaves_a_complete_record() {
    let ended: Arc<Mutex<Vec<CallStatus>>> = Arc::default();
    let seen = Arc::clone(&ended);
    let bench = bench_with(POLICY, move |run| {
        run.grace = LONG;
        run.on_call = Some(Arc::new(move |call: &RecordedCall| seen.lock().unwrap().push(call.status)));
    });
    let rest = bench.door.url().strip_prefix("http://").unwrap();
    let (host, secret) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request = format!("POST /{secret}/wait HTTP/1.1\r\nhost: {host}\r\ncontent-length: 2\r\n\r\n{{}}");
    stream.write_all(request.as_bytes()).await.unwrap();
    bench.tools.begun.notified().await;
    drop(stream);
    let (tools, engine, finishing) =
        (bench.tools.clone(), bench.engine.clone(), tokio::spawn(bench.door.finish()));
    tools.go_on.notify_one();
    assert_eq!(finishing.await.unwrap().calls[0].status, CallStatus::Success);
    assert_eq!(crate::fixture::kinds(&engine), ["decision allow", "outcome ok"]);
    assert_eq!(*ended.lock().unwrap(), [CallStatus::Success]);
}

#[tokio::test]
async fn a_run_that_ends_takes_no_new_calls() {
    let bench = bench_with(POLICY, |run| run.grace = Duration::from_millis(1));
    let url = bench.door.url().to_owned();
    let host = url.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
    let calls = bench.door.finish().await.calls;
    assert!(calls.is_empty());
    assert!(TcpStream::connect(host).await.is_err());
}
