//! The floors: what the same exchange costs when nothing is decided and nothing recorded. This program, started again, is each of
//! them.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, ExitCode};

use axum::Router;
use proctor_clients::assembly::services::policy::policy_service_server::{
    PolicyService, PolicyServiceServer,
};
use proctor_net::listen::{ListenOptions, serve};
use proctor_wire::assembly::MAX_GRPC_MESSAGE;
use proctor_wire::assembly::proto::common::v1::Decision;
use proctor_wire::assembly::proto::policy::v1::{
    BatchCheckRequest, BatchCheckResponse, CheckActionRequest, CheckActionResponse, OpControlMessage,
    OpControlSubscribeRequest,
};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use crate::failure::Failure;

/// Set in the environment of a floor's process: `grpc`, or the path of a socket.
const VARIABLE: &str = "ASSEMBLY_BENCH_FLOOR";

/// Prefix of the line by which gateway and floor say that they are ready, before the address.
pub const READY: &str = "server listening on TCP ";

/// A gateway that answers every check at once.
pub fn grpc() -> Result<Command, Failure> {
    this_program("grpc".as_ref())
}

/// A server that sends back what it reads.
pub fn echo(socket: &Path) -> Result<Command, Failure> {
    this_program(socket)
}

fn this_program(role: &Path) -> Result<Command, Failure> {
    let program = std::env::current_exe().map_err(|error| format!("this program's path: {error}"))?;
    let mut command = Command::new(program);
    command.env(VARIABLE, role);
    Ok(command)
}

/// Is a floor, if this process was started as one.
pub fn run() -> Option<ExitCode> {
    let role = std::env::var_os(VARIABLE)?;
    // The bench may be killed; then nobody else would end this.
    std::thread::spawn(|| {
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let outcome = if role == "grpc" { serve_nothing() } else { send_back(Path::new(&role)) };
    Some(match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    })
}

struct Nothing;

#[tonic::async_trait]
impl PolicyService for Nothing {
    async fn check_action(
        &self,
        _: Request<CheckActionRequest>,
    ) -> Result<Response<CheckActionResponse>, Status> {
        Ok(Response::new(CheckActionResponse { decision: Decision::Allow.into(), ..Default::default() }))
    }

    async fn batch_check(
        &self,
        _: Request<BatchCheckRequest>,
    ) -> Result<Response<BatchCheckResponse>, Status> {
        Err(Status::unimplemented("this is a floor"))
    }

    type OpControlStreamStream = futures_util::stream::Pending<Result<OpControlMessage, Status>>;

    async fn op_control_stream(
        &self,
        _: Request<OpControlSubscribeRequest>,
    ) -> Result<Response<Self::OpControlStreamStream>, Status> {
        Err(Status::unimplemented("this is a floor"))
    }
}

/// As the gateway serves.
fn serve_nothing() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no threads: {error}"))?;
    let outcome: std::io::Result<()> = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("gRPC {READY}{}", listener.local_addr()?);
        let service = PolicyServiceServer::new(Nothing)
            .max_decoding_message_size(MAX_GRPC_MESSAGE)
            .max_encoding_message_size(usize::MAX);
        let routes = Router::new().route_service("/assembly.policy.v1.PolicyService/{*method}", service);
        serve(listener, routes, ListenOptions::default(), CancellationToken::new()).await
    });
    Ok(outcome.map_err(|error| error.to_string())?)
}

fn send_back(socket: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| error.to_string();
    let listener = std::os::unix::net::UnixListener::bind(socket).map_err(failed)?;
    println!("socket {READY}{}", socket.display());
    let (mut stream, _) = listener.accept().map_err(failed)?;
    let mut room = vec![0; 64 * 1024];
    loop {
        let count = stream.read(&mut room).map_err(failed)?;
        let Some(read @ [_, ..]) = room.get(..count) else { return Ok(()) };
        stream.write_all(read).map_err(failed)?;
    }
}
