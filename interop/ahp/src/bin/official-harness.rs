//! A harness on the official crate: `official-harness [--allow-all] stdio|http|websocket|unix PATH`.

use std::path::Path;
use std::sync::Arc;

use a3s_ahp::server::EventHandler;
use interop_ahp::official::{AllowAll, Scripted, serve_http, serve_unix, serve_websocket, server};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let allow_all = arguments.first().is_some_and(|first| first == "--allow-all");
    if allow_all {
        arguments.remove(0);
    }
    let handler: Arc<dyn EventHandler> =
        if allow_all { Arc::new(AllowAll) } else { Arc::new(Scripted::default()) };
    let server = server(handler);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["stdio"] => server.run_stdio().await?,
        ["http"] => serve_http(server).await?,
        ["websocket"] => serve_websocket(server).await?,
        ["unix", path] => serve_unix(server, Path::new(path)).await?,
        other => {
            return Err(format!(
                "usage: official-harness [--allow-all] stdio|http|websocket|unix PATH, not {other:?}"
            )
            .into());
        }
    }
    Ok(())
}
