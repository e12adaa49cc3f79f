//! The life of a connection: many calls at once, cancelled calls, slow and dying harnesses, coming back.

use std::time::{Duration, Instant};

use crate::support::harness::{Harness, UnixPeer, eventually, quick};
use proctor_clients::ahp::EventType;
use proctor_clients::ahp::client::{AhpClient, AhpError, Backoff, ClientOptions, Transport};
use proctor_core::json::Json;
use serde_json::json;

async fn connected(options: ClientOptions) -> (Harness, AhpClient, UnixPeer) {
    let harness = Harness::new();
    let client = AhpClient::connect(harness.transport(), options).await.unwrap();
    let mut peer = harness.accept().await;
    let (greeted, _) = tokio::join!(client.handshake(vec!["pre_action".to_owned()]), peer.greet("{}"));
    greeted.unwrap();
    (harness, client, peer)
}

fn ask(client: &AhpClient, payload: serde_json::Value) -> tokio::task::JoinHandle<Result<Json, AhpError>> {
    let client = client.clone();
    tokio::spawn(async move { client.send_event(EventType::PreAction, payload).await })
}

/// Ends a connection, and returns when the client knows.
async fn lose(client: &AhpClient, mut peer: UnixPeer) {
    let lost = ask(client, json!({"call": "lost"}));
    peer.next().await.unwrap();
    drop(peer);
    assert_eq!(lost.await.unwrap().unwrap_err(), AhpError::ConnectionClosed);
}

const ALLOW: &str = r#"{"decision":"allow"}"#;

#[tokio::test]
async fn replies_find_their_calls_in_any_order_among_64() {
    let (_harness, client, mut peer) = connected(quick()).await;
    let calls: Vec<_> = (0..64).map(|n| ask(&client, json!({ "n": n }))).collect();
    let mut requests = Vec::new();
    for _ in 0..64 {
        requests.push(peer.next().await.unwrap());
    }
    assert_eq!(client.in_flight(), 64);
    for request in requests.iter().rev() {
        let answer =
            format!(r#"{{"decision":"allow","metadata":{{"n":{}}}}}"#, request["params"]["payload"]["n"]);
        peer.result(request, &answer).await;
    }
    for (n, call) in calls.into_iter().enumerate() {
        let answer = call.await.unwrap().unwrap();
        assert_eq!(answer["metadata"]["n"].as_u64(), u64::try_from(n).ok());
    }
    assert_eq!(client.in_flight(), 0);
}

#[tokio::test]
async fn no_more_calls_than_allowed_are_in_flight() {
    let (_harness, client, mut peer) = connected(ClientOptions { max_in_flight: 2, ..quick() }).await;
    let _held = [ask(&client, json!({})), ask(&client, json!({}))];
    let first = peer.next().await.unwrap();
    peer.next().await.unwrap();
    let hurried = client.with_timeout(Duration::from_millis(50));
    assert!(matches!(
        hurried.send_event(EventType::PreAction, json!({})).await.unwrap_err(),
        AhpError::Timeout { what: "reply", ms: 50 }
    ));
    peer.result(&first, ALLOW).await;
    let third = ask(&client, json!({"third": true}));
    let request = peer.next().await.unwrap();
    assert_eq!(request["params"]["payload"]["third"].as_bool(), Some(true));
    peer.result(&request, ALLOW).await;
    third.await.unwrap().unwrap();
}

/// With 10 s to wait, the end of the harness is known in less than one.
#[tokio::test]
async fn the_death_of_the_harness_is_noticed_at_once() {
    let (_harness, client, mut peer) = connected(quick()).await;
    let calls: Vec<_> = (0..10).map(|_| ask(&client, json!({}))).collect();
    for _ in 0..10 {
        peer.next().await.unwrap();
    }
    let started = Instant::now();
    drop(peer);
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap_err(), AhpError::ConnectionClosed);
    }
    assert!(started.elapsed() < Duration::from_secs(1));
    assert_eq!(client.in_flight(), 0);
}

/// The next call after a restart connects and introduces the agent again; what the old harness may have seen is not sent again.
#[tokio::test]
async fn a_restarted_harness_is_greeted_again_and_nothing_is_sent_twice() {
    let (mut harness, client, peer) = connected(quick()).await;
    lose(&client, peer).await;
    harness.restart();
    let call = ask(&client, json!({"call": "second"}));
    let mut peer = harness.accept().await;
    let hello = peer.greet(r#"{"max_depth":0}"#).await;
    assert_eq!(hello["params"]["agent_info"]["capabilities"].to_string(), r#"["pre_action"]"#);
    assert_eq!(hello["params"]["session_id"], client.session_id());
    let request = peer.next().await.unwrap();
    assert_eq!(request["params"]["payload"]["call"], "second");
    peer.result(&request, ALLOW).await;
    call.await.unwrap().unwrap();
    // The new harness's limits count.
    assert_eq!(client.harness().unwrap().config.unwrap().max_depth, Some(0));
}

#[tokio::test]
async fn a_call_waits_for_a_harness_that_is_down_until_it_is_back_or_time_is_up() {
    let (mut harness, client, peer) = connected(quick()).await;
    lose(&client, peer).await;
    std::fs::remove_file(harness.path()).unwrap();
    let started = Instant::now();
    let hurried = client.with_timeout(Duration::from_millis(300));
    let error = hurried.send_event(EventType::PreAction, json!({})).await.unwrap_err();
    assert!(matches!(error, AhpError::Transport(_)), "{error:?}");
    assert!(started.elapsed() < Duration::from_secs(2));
    let patient = ask(&client, json!({"patient": true}));
    let notice = {
        let client = client.clone();
        tokio::spawn(async move { client.notify(EventType::PostAction, json!({})).await })
    };
    tokio::task::yield_now().await;
    std::fs::write(harness.path(), "").unwrap();
    harness.restart();
    let mut peer = harness.accept().await;
    peer.greet("{}").await;
    for _ in 0..2 {
        let message = peer.next().await.unwrap();
        if message.get("id").is_some() {
            peer.result(&message, ALLOW).await;
        }
    }
    patient.await.unwrap().unwrap();
    notice.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_harness_that_refuses_the_second_greeting_ends_the_call() {
    let (mut harness, client, peer) = connected(quick()).await;
    lose(&client, peer).await;
    harness.restart();
    let call = ask(&client, json!({}));
    let mut peer = harness.accept().await;
    let hello = peer.next().await.unwrap();
    let refusal = format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32000,"message":"Unsupported protocol version: 2.4"}}}}"#,
        hello["id"]
    );
    peer.line(refusal).await;
    let error = call.await.unwrap().unwrap_err();
    assert!(matches!(error, AhpError::Rpc { method: "ahp/handshake", code: -32000, .. }), "{error:?}");
}

#[tokio::test]
async fn without_reconnecting_a_lost_connection_stays_lost() {
    let (harness, client, peer) = connected(ClientOptions { reconnect: None, ..quick() }).await;
    lose(&client, peer).await;
    let error = client.send_event(EventType::PreAction, json!({})).await.unwrap_err();
    assert_eq!(error, AhpError::ConnectionClosed);
    drop(harness);
}

/// A harness that accepts and hangs up is not run against without pause.
#[tokio::test]
async fn a_harness_that_hangs_up_is_called_back_ever_more_slowly() {
    let backoff = Backoff { start: Duration::from_millis(40), max: Duration::from_millis(200) };
    let (harness, client, peer) = connected(ClientOptions { reconnect: Some(backoff), ..quick() }).await;
    lose(&client, peer).await;
    let hanging_up = async {
        let mut times = 0u32;
        loop {
            drop(harness.accept().await);
            times += 1;
            assert!(times < 40, "called too often");
        }
    };
    let hurried = client.with_timeout(Duration::from_millis(800));
    tokio::select! {
        () = hanging_up => {}
        outcome = hurried.send_event(EventType::PreAction, json!({})) => {
            assert!(outcome.is_err());
        }
    }
}

#[tokio::test]
async fn cancelled_calls_leave_nothing_behind() {
    let (_harness, client, mut peer) = connected(quick()).await;
    // The harness reads, and never answers.
    let (count, seen) = tokio::sync::watch::channel(0u32);
    let reading = tokio::spawn(async move {
        while let Some(message) = peer.next().await {
            if message["params"]["payload"]["last"].as_bool() == Some(true) {
                peer.result(&message, ALLOW).await;
            }
            count.send_modify(|count| *count += 1);
        }
    });
    for n in 0..20_000u32 {
        let call = client.send_event(EventType::PreAction, json!({}));
        if n % 2 == 0 {
            // Dropped as soon as it waits.
            assert!(futures_util::FutureExt::now_or_never(call).is_none());
        } else {
            tokio::select! {
                biased;
                _ = call => panic!("nobody answers"),
                () = tokio::task::yield_now() => {}
            }
        }
    }
    assert_eq!(client.in_flight(), 0);
    // No message was torn: the harness read each one, and goes on.
    client.send_event(EventType::PreAction, json!({"last": true})).await.unwrap();
    assert!(*seen.borrow() > 0);
    assert_eq!(client.in_flight(), 0);
    client.close().await.unwrap();
    reading.await.unwrap();
}

/// A harness that stops reading: writing has a limit, and nobody waits longer than said.
#[tokio::test]
async fn a_harness_that_stops_reading_freezes_nobody() {
    let (_harness, client, peer) = connected(quick()).await;
    let started = Instant::now();
    let large = ask(&client, json!({"text": "x".repeat(3 * 1024 * 1024)}));
    let client = client.with_timeout(Duration::from_millis(1500));
    let others: Vec<_> = (0..5).map(|_| ask(&client, json!({}))).collect();
    assert_eq!(large.await.unwrap().unwrap_err(), AhpError::Timeout { what: "write", ms: 300 });
    assert!(started.elapsed() < Duration::from_secs(2));
    for call in others {
        // They are sent on a new connection, which is never answered.
        assert!(call.await.unwrap().is_err());
    }
    assert!(started.elapsed() < Duration::from_secs(4));
    assert_eq!(client.in_flight(), 0);
    drop(peer);
}

/// Of a message that waited behind another one nothing was written: it goes out on the next connection.
#[tokio::test]
async fn what_was_not_begun_is_sent_on_the_next_connection() {
    let options = ClientOptions { write_timeout: Duration::from_secs(20), ..quick() };
    let (harness, client, mut peer) = connected(options).await;
    let large = ask(&client, json!({"text": "x".repeat(3 * 1024 * 1024)}));
    // The large one is on its way when its first byte is here.
    tokio::io::AsyncBufReadExt::fill_buf(&mut peer.reader).await.unwrap();
    let queued = ask(&client, json!({"queued": true}));
    eventually("both wait", || client.in_flight() == 2).await;
    drop(peer);
    assert_eq!(large.await.unwrap().unwrap_err(), AhpError::ConnectionClosed);
    let mut peer = harness.accept().await;
    peer.greet("{}").await;
    let request = peer.next().await.unwrap();
    assert_eq!(request["params"]["payload"]["queued"].as_bool(), Some(true));
    peer.result(&request, ALLOW).await;
    queued.await.unwrap().unwrap();
}

#[tokio::test]
async fn closing_ends_calls_and_connection_for_good() {
    let (_harness, client, mut peer) = connected(quick()).await;
    let waiting = ask(&client, json!({}));
    peer.next().await.unwrap();
    client.clone().close().await.unwrap();
    assert_eq!(peer.next().await, None);
    assert_eq!(waiting.await.unwrap().unwrap_err(), AhpError::ConnectionClosed);
    let closed = AhpError::ConnectionClosed;
    assert_eq!(client.send_event(EventType::PreAction, json!({})).await.unwrap_err(), closed);
    assert_eq!(client.notify(EventType::PostAction, json!({})).await.unwrap_err(), closed);
    assert_eq!(client.handshake(vec![]).await.unwrap_err(), closed);
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_socket_that_is_not_there_is_reported() {
    let path = std::path::PathBuf::from("/nonexistent/harness.sock");
    let error = AhpClient::connect(Transport::UnixSocket { path }, quick()).await.unwrap_err();
    assert!(
        matches!(&error, AhpError::Transport(text) if text.contains("/nonexistent/harness.sock")),
        "{error}"
    );
}
