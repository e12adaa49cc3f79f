//! Forwarding to another endpoint, and the replay of what was recorded.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proctor_core::json::Json;
use proctor_door_atp::Decider;
use proctor_door_atp::backend::{Forward, ForwardOptions, Recorder, Replay, ToolBackend, ToolResult};
use proctor_net::tls::ClientTls;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fixture::{TASK, bench, json, open, run, send};

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        std::io::Write::write(&mut *self.0.lock().unwrap(), bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn forward(url: &str, recorder: Option<Arc<Recorder>>) -> Forward {
    Forward::new(ForwardOptions {
        url,
        task_id: TASK,
        tools: Vec::new(),
        connect_timeout: Duration::from_secs(10),
        tls: ClientTls::default(),
        recorder,
    })
    .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_forwarded_recorded_and_replayed() {
    // One endpoint forwards to another one, whose tools are real.
    let behind = bench();
    let buffer = Buffer::default();
    let recorder = Arc::new(Recorder::new(Box::new(buffer.clone()), Arc::new(|value| value)));
    let folder = tempfile::tempdir().unwrap();
    let engine = crate::fixture::engine(folder.path(), crate::fixture::POLICY);
    let backend = forward(behind.door.url(), Some(recorder));
    let door = open(run(), Decider::Engine(engine), Arc::new(backend));
    let call = async |url: &str, tool: &str, input: &str| {
        json(&send(url, "POST", &format!("/{tool}"), format!(r#"{{"input":{input}}}"#).as_bytes()).await.1)
    };
    assert_eq!(call(door.url(), "echo", r#"{"a":1}"#).await["output"], json(r#"{"a":1}"#));
    assert_eq!(call(door.url(), "fail", "{}").await["error"], "the disk is full");
    assert_eq!(call(door.url(), "nothing", "{}").await["error_code"], "TOOL_NOT_FOUND");
    assert_eq!(behind.tools.seen.lock().unwrap().len(), 3);
    drop(door);

    let text = buffer.0.lock().unwrap().clone();
    let replay = Replay::read(text.as_slice(), Arc::new(|value| value)).unwrap();
    let replaying = bench();
    let door = open(run(), Decider::Engine(replaying.engine.clone()), Arc::new(replay));
    assert_eq!(call(door.url(), "echo", r#"{"a":1}"#).await["output"], json(r#"{"a":1}"#));
    assert_eq!(call(door.url(), "fail", "{}").await["error"], "the disk is full");
    let unknown = call(door.url(), "echo", r#"{"a":2}"#).await;
    assert_eq!(
        (unknown["status"].as_str(), unknown["error_code"].as_str()),
        (Some("error"), Some("TOOL_ERROR"))
    );
    assert_eq!(behind.tools.seen.lock().unwrap().len(), 3, "a replay calls nobody");
}

/// A server that gives one answer to every request.
async fn answering(answer: &'static str) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/tools", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0; 4096];
            let _ = stream.read(&mut buffer).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    url
}

async fn result_of(answer: &'static str) -> ToolResult {
    let url = answering(answer).await;
    forward(&url, None).call("x", &Json::object()).await
}

#[tokio::test]
async fn servers_that_misbehave_are_failures() {
    let error = async |answer: &'static str| match result_of(answer).await {
        ToolResult::Failed { error, .. } => error,
        other => panic!("{other:?}"),
    };
    let redirect = "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://example.com/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    assert!(error(redirect).await.contains("redirect"));
    let broken = "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 4\r\nconnection: close\r\n\r\noops";
    assert!(error(broken).await.contains("500"));
    let no_reply = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n[]";
    assert!(error(no_reply).await.contains("cannot be read"));
    let long = "HTTP/1.1 200 OK\r\ncontent-length: 99\r\nconnection: close\r\n\r\n{";
    assert!(error(long).await.contains("did not answer"));
    let missing = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    assert_eq!(result_of(missing).await, ToolResult::UnknownTool);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    assert!(matches!(forward(&url, None).call("x", &Json::object()).await, ToolResult::Failed { .. }));
}
