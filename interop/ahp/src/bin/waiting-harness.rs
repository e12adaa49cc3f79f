//! A harness on our own server trait whose answers wait:
//! `waiting-harness --callers N|--milliseconds N stdio|http|grpc|unix PATH`. HTTP serves WebSockets as well.

use std::path::Path;
use std::time::Duration;

use interop_ahp::waiting::{Waiting, serve_grpc, serve_http, serve_unix};
use proctor_clients::ahp::server::AhpServer;
use tokio::sync::Barrier;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (how, number, mode) = match arguments.as_slice() {
        [how, number, mode @ ..] => (*how, number.parse::<usize>()?, mode),
        _ => {
            return Err(
                "usage: waiting-harness --callers N|--milliseconds N stdio|http|grpc|unix PATH".into()
            );
        }
    };
    let handler = match how {
        "--callers" => Waiting::ForCallers(Barrier::new(number)),
        _ => Waiting::ForTime(Duration::from_millis(u64::try_from(number)?)),
    };
    let server = AhpServer::new(handler);
    match mode {
        ["stdio"] => server.run_stdio().await?,
        ["http"] => serve_http(server).await?,
        ["grpc"] => serve_grpc(server).await?,
        ["unix", path] => serve_unix(server, Path::new(path)).await?,
        other => return Err(format!("no such transport: {other:?}").into()),
    }
    Ok(())
}
