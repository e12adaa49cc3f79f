//! The agents under `examples/`, run as programs.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use bytes::Bytes;
use proctor_clients::atp::client::stdio::{Pipes, execute};
use proctor_wire::atp::{ErrorCode, Event, Request, Response, Status, Strictness};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::support::atp::{Transcript, client, transcript};

fn spawn(program: &Path, arguments: &[&str]) -> Child {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

async fn over_stdio(mut child: Child, request: impl Into<Bytes>) -> Transcript {
    let pipes = Pipes {
        stdin: Box::new(child.stdin.take().unwrap()),
        stdout: Box::new(child.stdout.take().unwrap()),
        stderr: Box::new(child.stderr.take().unwrap()),
    };
    let got = transcript(execute(pipes, request.into())).await;
    assert!(child.wait().await.unwrap().success());
    got
}

const TASK: &str = "0190b0d2-7c11-7d4e-8f3a-111111111111";

fn request() -> String {
    Request::new(TASK, "say hello").to_string()
}

/// Events and response are valid by the document's schemas, and the answer is there.
fn check(got: &Transcript) {
    let texts = got.texts();
    let (response, events) = texts.split_last().unwrap();
    assert!(events.len() >= 2);
    for event in events {
        Event::parse(event.as_bytes(), Strictness::Strict).unwrap();
    }
    let response = Response::parse(response.as_bytes(), Strictness::Strict).unwrap().message;
    assert_eq!((response.status(), response.task_id()), (Status::Completed, TASK));
    assert!(response.to_string().contains("Task: say hello"));
}

fn check_refused(got: &Transcript) {
    let texts = got.texts();
    let response = Response::parse(texts.last().unwrap().as_bytes(), Strictness::Lenient).unwrap().message;
    assert_eq!((response.status(), response.error_code()), (Status::Failed, Some(ErrorCode::InvalidRequest)));
}

#[tokio::test]
async fn the_python_agent_answers() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agents/minimal.py");
    let start = || spawn(Path::new("python3"), &[script.to_str().unwrap()]);
    check(&over_stdio(start(), request()).await);
    for malformed in ["nonsense", "[]", "{}", r#"{"version":"2.0","task_id":"t","task":{"description":"x"}}"#]
    {
        check_refused(&over_stdio(start(), malformed).await);
    }
}

/// Built with the tests of this crate.
fn rust_agent() -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.join("examples/atp_agent")
}

#[tokio::test]
async fn the_rust_agent_answers_on_every_transport() {
    check(&over_stdio(spawn(&rust_agent(), &["stdio"]), request()).await);
    check_refused(&over_stdio(spawn(&rust_agent(), &["stdio"]), "nonsense").await);
    for transport in ["http", "websocket", "grpc"] {
        let mut child = spawn(&rust_agent(), &[transport, "127.0.0.1:0"]);
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).await.unwrap();
        check(&transcript(client(url.trim()).execute(request().into())).await);
        child.kill().await.unwrap();
    }
}
