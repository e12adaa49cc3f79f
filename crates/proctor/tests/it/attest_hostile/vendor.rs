//! A model vendor on this machine: says what it is told to say, and remembers what it was asked.

#![allow(dead_code, reason = "each test uses its own part of this")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// A received request, and its number from 0.
pub struct Asked {
    pub number: usize,
    pub path: String,
    pub head: String,
    pub body: Value,
}

type Answer = dyn Fn(&Asked) -> (u16, String) + Send + Sync;

pub struct Vendor {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Vendor {
    /// Starts a vendor that answers with this. It ends with the test.
    pub fn start(answer: impl Fn(&Asked) -> (u16, String) + Send + Sync + 'static) -> Vendor {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let answer: Arc<Answer> = Arc::new(answer);
        let remembered = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (answer, remembered) = (Arc::clone(&answer), Arc::clone(&remembered));
                std::thread::spawn(move || serve_connection(&stream, answer.as_ref(), &remembered));
            }
        });
        Vendor { address, asked }
    }

    /// A judge that always gives this score.
    pub fn judge(score: f64) -> Vendor {
        Vendor::start(move |_| chat(score, "because"))
    }

    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The head and body of each request so far.
    pub fn asked(&self) -> Vec<(String, Value)> {
        self.asked.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

/// The answer of a judge.
pub fn chat(score: f64, why: &str) -> (u16, String) {
    said(&json!({"score": score, "explanation": why}).to_string())
}

/// The answer of a model that says this.
pub fn said(text: &str) -> (u16, String) {
    let reply = json!({
        "id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4.1",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100},
    });
    (200, reply.to_string())
}

fn serve_connection(stream: &TcpStream, answer: &Answer, remembered: &Mutex<Vec<(String, Value)>>) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line == "\r\n" => break,
                Ok(_) => head.push_str(&line),
            }
        }
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
        });
        let mut body = vec![0; length.unwrap_or(0)];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let path = head.split_whitespace().nth(1).unwrap_or_default().to_owned();
        let number = {
            let mut remembered = remembered.lock().unwrap();
            remembered.push((head.clone(), body.clone()));
            remembered.len() - 1
        };
        let (status, text) = answer(&Asked { number, path, head, body });
        let reply = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{text}",
            text.len()
        );
        if (&mut &*stream).write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}
