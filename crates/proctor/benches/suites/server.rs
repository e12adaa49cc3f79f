//! An agent behind HTTP, as threads of this program, and a bare client for it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::floor;

/// An agent on 127.0.0.1, for as long as this program runs.
pub struct Server {
    port: u16,
}

impl Server {
    /// Starts to listen.
    pub fn start() -> Result<Server, Failure> {
        let failed = |error: std::io::Error| format!("the HTTP agent: {error}");
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || serve(&stream));
            }
        });
        Ok(Server { port })
    }

    /// Its address, with a path: nothing else is tried then.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/execute", self.port)
    }

    /// Time of each of `count` requests of a bare client that keeps its connection.
    pub fn bare(&self, count: usize) -> Result<Duration, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("a runtime: {error}"))?;
        let url = self.url();
        let took = runtime.block_on(async {
            let client = reqwest::Client::builder().no_proxy().build()?;
            let post = || client.post(&url).header("content-type", "application/json").body(floor::request());
            // The first one connects; Proctor's slope does not have that either.
            post().send().await?.bytes().await?;
            let begin = Instant::now();
            for _ in 0..count {
                let _: serde_json::Value = post().send().await?.json().await?;
            }
            Ok::<_, reqwest::Error>(begin.elapsed())
        });
        let took = took.map_err(|error| format!("the bare client: {error}"))?;
        Ok(took / u32::try_from(count).unwrap_or(u32::MAX))
    }
}

fn serve(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let mut input = BufReader::new(stream);
    let mut output = stream;
    while let Some(request) = read_request(&mut input) {
        let body = floor::response(floor::task_id(&request));
        let reply = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        if output.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

/// Body of the next request on a connection.
fn read_request(input: &mut BufReader<&TcpStream>) -> Option<String> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if input.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    String::from_utf8(body).ok()
}
