//! HTTP server on loopback that answers as it is told and keeps the requests.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Answer of the server.
#[derive(Clone)]
pub(crate) enum Answer {
    /// Status, further header lines, body.
    Reply(u16, &'static str, String),
    /// No answer at all; the connection stays open.
    Silence,
    /// A body without end.
    Endless,
    /// The connection is closed at once.
    Close,
}

pub(crate) fn ok(body: &str) -> Answer {
    Answer::Reply(200, "", body.to_owned())
}

pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) authority: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Answers the requests one after the other; the last answer repeats.
    pub(crate) async fn new(answers: Vec<Answer>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            let mut number = 0;
            while let Ok((stream, _)) = listener.accept().await {
                let answer = answers.get(number).or(answers.last()).cloned().unwrap();
                number += 1;
                tokio::spawn(serve(stream, answer, Arc::clone(&seen)));
            }
        });
        Server { url: format!("http://{authority}"), authority, requests }
    }

    /// The requests as they came.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, answer: Answer, seen: Arc<Mutex<Vec<String>>>) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().unwrap())
            });
            if body.len() >= length.unwrap_or(0) {
                break;
            }
        }
        match stream.read(&mut buffer).await {
            Ok(count) if count > 0 => request.extend_from_slice(&buffer[..count]),
            _ => return,
        }
    }
    seen.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
    match answer {
        Answer::Close => {}
        Answer::Silence => {
            let _ = stream.read(&mut buffer).await;
        }
        Answer::Endless => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
            let chunk = format!("4000\r\n{}\r\n", "x".repeat(0x4000));
            while stream.write_all(chunk.as_bytes()).await.is_ok() {}
        }
        Answer::Reply(status, headers, body) => {
            let head = format!(
                "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n",
                body.len()
            );
            let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    }
}
