//! Routes of released platforms.

use proctor_core::json::Json;

use crate::fixture::{TASK, bench, json, send};

#[tokio::test]
async fn released_agents_are_served() {
    let bench = bench();
    let url = bench.door.url();
    let body = format!(r#"{{"tool":"echo","input":{{"a":1}},"task_id":"{TASK}"}}"#);
    let (status, reply) = send(url, "POST", "/tools/call", body.as_bytes()).await;
    let reply = json(&reply);
    assert_eq!(
        (status, reply["tool"].as_str(), reply["status"].as_str()),
        (200, Some("echo"), Some("success"))
    );
    assert_eq!(send(url, "GET", "/health", b"").await, (200, r#"{"status":"healthy"}"#.to_owned()));
    let (_, tools) = send(url, "GET", "/tools", b"").await;
    assert_eq!(json(&tools)["tools"].as_array().map(<[Json]>::len), Some(8));
    let (status, tool) = send(url, "GET", "/tools/echo", b"").await;
    assert_eq!((status, json(&tool)["description"].as_str()), (200, Some("does echo")));
    let (status, missing) = send(url, "GET", "/tools/nothing", b"").await;
    assert_eq!((status, json(&missing)["detail"].as_str()), (404, Some("Tool not found: nothing")));
    assert_eq!(bench.kinds(), ["decision allow", "outcome ok"]);
}

#[tokio::test]
async fn records_are_listed_and_clearing_them_hides_nothing_from_the_supervisor() {
    let bench = bench();
    for tool in ["echo", "fail", "echo"] {
        bench.call(tool, r#"{"a":1}"#).await;
    }
    let url = bench.door.url();
    let total = |text: &str| json(text)["total"].as_u64();
    let (_, all) = send(url, "GET", "/records", b"").await;
    assert_eq!(total(&all), Some(3));
    assert_eq!(json(&all).pointer("/records/1/error"), Some(&Json::from("the disk is full")));
    assert_eq!(total(&send(url, "GET", "/records?tool=echo", b"").await.1), Some(2));
    assert_eq!(total(&send(url, "GET", "/records?task_id=other", b"").await.1), Some(0));
    assert_eq!(total(&send(url, "GET", "/records?limit=1", b"").await.1), Some(1));
    assert_eq!(send(url, "GET", "/records?limit=x", b"").await.0, 400);
    assert_eq!(send(url, "DELETE", "/records", b"").await, (200, r#"{"cleared":3}"#.to_owned()));
    assert_eq!(total(&send(url, "GET", "/records", b"").await.1), Some(0));
    assert_eq!(bench.kinds().len(), 6);
    assert_eq!(bench.door.finish().await.calls.len(), 3);
}

#[tokio::test]
async fn wrong_methods_and_paths_are_named() {
    let bench = bench();
    let url = bench.door.url();
    assert_eq!(send(url, "GET", "/echo", b"").await.0, 405);
    assert_eq!(send(url, "PUT", "/tools/echo", b"{}").await.0, 405);
    assert_eq!(send(url, "POST", "/a/b/c", b"{}").await.0, 404);
    assert_eq!(send(url, "POST", "", b"{}").await.0, 404);
    assert_eq!(send(url, "POST", "/%zz", b"{}").await.0, 400);
    assert!(bench.kinds().is_empty());
}
