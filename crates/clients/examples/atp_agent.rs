//! A minimal agent of the Agent Test Protocol, served on the transport of its first argument.
//!
//! ```console
//! atp_agent stdio
//! atp_agent http 127.0.0.1:8080
//! atp_agent websocket 127.0.0.1:8080
//! atp_agent grpc 127.0.0.1:8080
//! ```
//!
//! Port 0 is any free one. The first line of output is the URL for `proctor test --agent`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program of its own")]

use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use proctor_clients::atp::agent::{Agent, AgentServer, Events, grpc, http, websocket};
use proctor_core::time::{Clock, Timestamp};
use proctor_net::auth::Credentials;
use proctor_net::listen::{ListenOptions, serve};
use proctor_wire::atp::artifact::FileArtifact;
use proctor_wire::atp::event::{Payload, Progress};
use proctor_wire::atp::{Artifact, Request, Response, Status};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Repeats the description of its task as a file.
struct Minimal;

impl Agent for Minimal {
    async fn execute(&self, request: Request, events: Events) -> Response {
        let progress =
            |message| Payload::Progress(Progress { message: Some(message), ..Progress::default() });
        // A caller that does not listen is no reason to stop.
        let _ = events.send(&progress("started")).await;
        let content = format!("Task: {}\n", request.description());
        let artifact = FileArtifact {
            path: "answer.txt",
            content_type: Some("text/plain"),
            size_bytes: Some(content.len() as u64),
            content_hash: None,
            content: Some(&content),
        };
        let _ = events.send(&progress("done")).await;
        Response::new(request.task_id(), Status::Completed).with_artifact(&Artifact::File(artifact))
    }
}

struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the only clock of this program")]
    fn now(&self) -> Timestamp {
        let since_1970 =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let server = AgentServer::new(Minimal, Arc::new(SystemClock));
    // Without credentials only programs on this machine are served.
    let local = Arc::new(Credentials::none());
    let served = match arguments.as_slice() {
        ["stdio"] => server.run_stdio().await.map_err(Into::into),
        ["http", address] => listen("http", address, http::router(server, local)).await,
        ["websocket", address] => listen("ws", address, websocket::router(server, local)).await,
        ["grpc", address] => listen("grpc", address, grpc::routes(server, local)).await,
        _ => {
            eprintln!("usage: atp_agent stdio | (http | websocket | grpc) ADDRESS:PORT");
            return ExitCode::FAILURE;
        }
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("atp_agent: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn listen(scheme: &str, address: &str, app: axum::Router) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(address).await?;
    println!("{scheme}://{}", listener.local_addr()?);
    std::io::stdout().flush()?;
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.cancel();
        }
    });
    Ok(serve(listener, app, ListenOptions::default(), shutdown).await?)
}
