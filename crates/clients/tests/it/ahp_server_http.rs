//! HTTP: which status and body for what, credentials, and connections that misbehave.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::port::Running;
use crate::support::probe::{Probe, ask, assert_decides, assert_refuses, handshake, request, tell, value};
use proctor_clients::ahp::server::{AhpServer, Identity, http};
use proctor_net::auth::{Credentials, SecretKind};
use proctor_net::listen::ListenOptions;
use serde_json::json;

const JSON: &str = "host: localhost\r\ncontent-type: application/json\r\n";

async fn start(server: &AhpServer<Probe>) -> Running {
    start_with(server, Credentials::none(), ListenOptions::default()).await
}

async fn start_with(server: &AhpServer<Probe>, credentials: Credentials, options: ListenOptions) -> Running {
    Running::start(http::router(server.clone(), Arc::new(credentials)), options).await
}

#[tokio::test]
async fn requests_are_answered_with_200_and_their_own_id() {
    let running = start(&Probe::server()).await;
    let mut client = running.connect().await;
    for id in [json!("s"), json!(""), json!(12), json!(null)] {
        let answer = client.post(ask(id.clone(), "ok")).await;
        assert_eq!(answer.status, 200);
        assert!(answer.head.contains("content-type: application/json\r\n"), "{}", answer.head);
        assert_decides(&value(&answer.body), id, "allow");
    }
    let answer = client.post(handshake(1, "s")).await;
    assert_eq!(value(&answer.body)["result"]["harness_info"]["name"], "ahp-server");
    for (message, id, code) in [
        (request("q", "ahp/other", json!({})), json!("q"), -32601),
        (request("q", "ahp/event", json!({})), json!("q"), -32602),
        (request("q", "ahp/handshake", json!({})), json!("q"), -32602),
        ("[]".to_owned(), json!(null), -32600),
        ("3".to_owned(), json!(null), -32600),
        (r#"{"id":"m","method":"x","params":1}"#.to_owned(), json!("m"), -32600),
        (r#"{"jsonrpc":"2.0","id":"m","method":"x"}"#.to_owned(), json!("m"), -32600),
    ] {
        let answer = client.post(message).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_refuses(&value(&answer.body), id, code);
    }
    for body in [&b"no json"[..], b"\xff", b"", br#"{"a":1,"a":2}"#, "[".repeat(100_000).as_bytes()] {
        let answer = client.post(body).await;
        assert_eq!(answer.status, 400, "{answer:?}");
        assert_refuses(&value(&answer.body), json!(null), -32700);
    }
    running.stop().await;
}

#[tokio::test]
async fn what_is_no_message_of_ours_is_refused_by_status() {
    let running = start(&Probe::server()).await;
    let mut client = running.connect().await;
    for kind in ["", "content-type: text/plain\r\n", "content-type: text/json\r\n", "content-type: json\r\n"]
    {
        let answer = client.post_with("/ahp", &format!("host: localhost\r\n{kind}"), ask(1, "ok")).await;
        assert_eq!(answer.status, 415, "{kind}");
    }
    for kind in ["Application/JSON; charset=utf-8", "application/vnd.ahp+json"] {
        let headers = format!("host: localhost\r\ncontent-type: {kind}\r\n");
        assert_eq!(client.post_with("/ahp", &headers, ask(1, "ok")).await.status, 200, "{kind}");
    }
    for path in ["/", "/ahp/", "/other"] {
        assert_eq!(client.post_with(path, JSON, ask(1, "ok")).await.status, 404, "{path}");
    }
    for verb in ["GET", "PUT", "OPTIONS", "DELETE"] {
        client.write(format!("{verb} /ahp HTTP/1.1\r\n{JSON}\r\n")).await.unwrap();
        let answer = client.answer().await.unwrap();
        assert_eq!(answer.status, 405, "{verb}");
        assert!(answer.head.contains("allow: post"), "{}", answer.head);
    }
    let limit = 2 * 1024 * 1024;
    let message = ask("big", "ok");
    let fits = format!("{message}{}", " ".repeat(limit - message.len()));
    assert_eq!(client.post(&fits).await.status, 200);
    let mut announced = running.connect().await;
    announced
        .write(format!("POST /ahp HTTP/1.1\r\n{JSON}content-length: {}\r\n\r\n", limit + 1))
        .await
        .unwrap();
    assert_eq!(announced.answer().await.unwrap().status, 413);
    let mut chunked = running.connect().await;
    chunked
        .write(format!("POST /ahp HTTP/1.1\r\n{JSON}transfer-encoding: chunked\r\n\r\n{:x}\r\n", limit + 1))
        .await
        .unwrap();
    let _ = chunked.write(vec![b' '; limit + 1]).await;
    assert_eq!(chunked.answer().await.unwrap().status, 413);
    running.stop().await;
}

#[tokio::test]
async fn notifications_are_acknowledged_or_refused() {
    let server = Probe::server();
    let running = start(&server).await;
    let mut client = running.connect().await;
    let answer = client.post(tell("ok")).await;
    assert_eq!((answer.status, answer.body.as_str()), (204, ""));
    let unknown = json!({"jsonrpc": "2.0", "method": "ahp/handshake", "params": {}}).to_string();
    assert_eq!(client.post(unknown).await.status, 204);
    for refused in [
        tell("fail"),
        tell("panic"),
        tell("ok").replace("post_action", "pre_action"),
        tell("ok").replace("\"s\"", "1"),
    ] {
        let answer = client.post(refused).await;
        assert_eq!(answer.status, 200);
        assert_refuses(&value(&answer.body), "", -32603);
    }
    let began = Instant::now();
    assert_eq!(client.post(tell("wait")).await.status, 204);
    assert!(began.elapsed() >= Duration::from_millis(900) && began.elapsed() < Duration::from_secs(5));
    assert_eq!(*server.handler().noticed.borrow(), 1, "the slow one goes on");
    server.handler().gate.add_permits(1);
    server.handler().noticed(2).await;
    running.stop().await;
}

#[tokio::test]
async fn a_notification_survives_its_caller_and_a_stop() {
    let server = Probe::server();
    let running = start(&server).await;
    let mut client = running.connect().await;
    client.send("/ahp", JSON, tell("wait")).await;
    server.handler().begun(1).await;
    drop(client);
    running.stop.cancel();
    tokio::task::yield_now().await;
    server.handler().gate.add_permits(1);
    running.stop().await;
    assert_eq!(*server.handler().noticed.borrow(), 1);
}

#[tokio::test]
async fn failures_are_blocks_and_a_slow_decision_delays_nobody() {
    let server = Probe::server().answer_within(Duration::from_millis(200));
    let running = start(&server).await;
    let mut slow = running.connect().await;
    slow.send("/ahp", JSON, ask("slow", "hang")).await;
    server.handler().begun(1).await;
    let mut quick = running.connect().await;
    assert_decides(&value(&quick.post(ask("quick", "ok")).await.body), "quick", "allow");
    for tool in ["panic", "fail"] {
        assert_decides(&value(&quick.post(ask(tool, tool)).await.body), tool, "block");
    }
    assert_decides(&value(&slow.answer().await.unwrap().body), "slow", "block");
    running.stop().await;
}

#[tokio::test]
async fn callers_show_who_they_are() {
    let server = Probe::server();
    let credentials = Credentials::none()
        .with_secret("build", SecretKind::Bearer, "b-secret".to_owned())
        .with_secret("laptop", SecretKind::ApiKey, "k-secret".to_owned());
    let running = start_with(&server, credentials, ListenOptions::default()).await;
    let mut client = running.connect().await;
    for (target, header, name) in [
        ("/ahp", "authorization: Bearer b-secret\r\n", "build"),
        ("/ahp", "x-api-key: k-secret\r\n", "laptop"),
        ("/ahp?token=b-secret", "", "build"),
        ("/ahp?api_key=k-secret", "", "laptop"),
    ] {
        let headers = format!("host: elsewhere.example\r\ncontent-type: application/json\r\n{header}");
        assert_eq!(client.post_with(target, &headers, ask(1, "ok")).await.status, 200, "{target} {header}");
        let peer = server.handler().peers.lock().unwrap().pop().unwrap();
        assert_eq!((peer.transport, peer.identity), ("http", Identity::Token(name.to_owned())));
    }
    for (target, header) in [
        ("/ahp", ""),
        ("/ahp", "authorization: Bearer wrong\r\n"),
        ("/ahp", "authorization: Bearer k-secret\r\n"),
        ("/ahp?token=wrong-secret", ""),
    ] {
        let answer = client.post_with(target, &format!("{JSON}{header}"), ask(1, "ok")).await;
        assert_eq!(answer.status, 401, "{target} {header}");
        assert!(!answer.body.contains("secret") && !answer.head.contains("secret"), "{answer:?}");
    }
    running.stop().await;
}

#[tokio::test]
async fn web_pages_cannot_call_a_door_without_credentials() {
    let running = start(&Probe::server()).await;
    let mut client = running.connect().await;
    let kind = "content-type: application/json\r\n";
    for headers in ["host: rebound.example\r\n", "host: localhost\r\norigin: https://evil.example\r\n"] {
        let answer = client.post_with("/ahp", &format!("{headers}{kind}"), ask(1, "ok")).await;
        assert_eq!(answer.status, 403, "{headers}");
    }
    running.stop().await;
}

#[tokio::test]
async fn a_stop_answers_what_is_in_flight_and_accepts_no_more() {
    let server = Probe::server();
    let running = start(&server).await;
    let mut idle = running.connect().await;
    assert_eq!(idle.post(ask(1, "ok")).await.status, 200);
    let mut client = running.connect().await;
    client.send("/ahp", JSON, ask("last", "wait")).await;
    server.handler().begun(2).await;
    running.stop.cancel();
    assert!(idle.is_closed().await);
    server.handler().gate.add_permits(1);
    assert_decides(&value(&client.answer().await.unwrap().body), "last", "allow");
    let address = running.address;
    running.stop().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn slow_heads_and_idle_connections_are_closed_and_kept_ones_are_not() {
    let options = ListenOptions {
        header_timeout: Duration::from_millis(200),
        idle: Duration::from_millis(1500),
        ..ListenOptions::default()
    };
    let running = start_with(&Probe::server(), Credentials::none(), options).await;
    let began = Instant::now();
    let mut silent = running.connect().await;
    let mut kept = running.connect().await;
    let mut slow = running.connect().await;
    assert_eq!(kept.post(ask(1, "ok")).await.status, 200);
    slow.write("POST /ahp HTTP/1.1\r\nhost: local").await.unwrap();
    assert!(slow.is_closed().await);
    assert!(began.elapsed() >= Duration::from_millis(200) && began.elapsed() < Duration::from_millis(1400));
    let mut second = running.connect().await;
    assert_eq!(second.post(ask(1, "ok")).await.status, 200);
    second.write("POST").await.unwrap();
    assert!(second.is_closed().await);
    // Longer than a head may take, shorter than a connection may be idle.
    assert_eq!(kept.post(ask(2, "ok")).await.status, 200);
    assert!(silent.is_closed().await);
    assert!(kept.is_closed().await);
    assert!(began.elapsed() >= Duration::from_millis(1500));
    running.stop().await;
}

#[tokio::test]
async fn a_thousand_idle_connections_do_not_disturb_and_the_idlest_gives_way() {
    let options = ListenOptions { max_connections: 1001, ..ListenOptions::default() };
    let running = start_with(&Probe::server(), Credentials::none(), options).await;
    let mut idle = Vec::new();
    for _ in 0..1000 {
        idle.push(running.connect().await);
    }
    let mut last = running.connect().await;
    assert_eq!(last.post(ask(1, "ok")).await.status, 200);
    assert_eq!(running.connect().await.post(ask(1, "ok")).await.status, 200, "one more");
    assert!(idle.remove(0).is_closed().await, "the first that did nothing");
    assert_eq!(idle[500].post(ask(1, "ok")).await.status, 200);
    drop(idle);
    assert_eq!(last.post(ask(1, "ok")).await.status, 200);
    running.stop().await;
}
