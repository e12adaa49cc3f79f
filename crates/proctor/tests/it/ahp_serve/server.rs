//! A server under test, and callers that speak to it without any library of ours.

#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use proctor_core::json::Json;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Folder, text};

/// Timeout of the tests: longer than any step takes on a slow machine.
pub const LONG: Duration = Duration::from_secs(60);

/// Policy of the tests' agents.
pub const POLICY: &str = r#"
version: "1"
default: deny
rules:
  - { id: looking, when: action.tool == "look", then: allow }
  - { id: no-wiping, when: action.tool == "wipe", then: deny, reason: nothing is wiped here }
  - { id: short-searches, when: action.tool == "search", then: modify, set: { /args/limit: 10 } }
  - { id: searches, when: action.tool == "search", then: allow }
  - { id: publishing, when: action.tool == "publish" || action.tool == "confirmation", then: ask, expires: 10m }
"#;

/// `proctor serve`, running.
pub struct Server {
    pub child: Child,
    /// Announcement of the server when it is ready.
    pub announced: Json,
    pub http: SocketAddr,
    pub grpc: SocketAddr,
    pub socket: PathBuf,
    stdout: BufReader<ChildStdout>,
    stderr: Arc<Mutex<Vec<u8>>>,
    listening: Option<JoinHandle<()>>,
}

/// The flags that let the kernel choose the ports.
pub const ANY_PORT: [&str; 6] = ["serve", "--json", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"];

impl Server {
    pub fn start(folder: &Folder) -> Server {
        Server::spawn(folder.command(&ANY_PORT))
    }

    pub fn spawn(mut command: Command) -> Server {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let (kept, mut said) = (Arc::clone(&stderr), child.stderr.take().unwrap());
        let listening = std::thread::spawn(move || {
            let mut piece = [0u8; 4096];
            while let Ok(length @ 1..) = said.read(&mut piece) {
                kept.lock().unwrap().extend_from_slice(&piece[..length]);
            }
        });
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let announced = Json::parse(line.as_bytes()).unwrap_or_else(|error| {
            panic!("`{line}`: {error}: {}", String::from_utf8_lossy(&stderr.lock().unwrap()))
        });
        Server {
            http: text(&announced, "http").parse().unwrap(),
            grpc: text(&announced, "grpc").parse().unwrap(),
            socket: PathBuf::from(text(&announced, "ahp_socket")),
            child,
            announced,
            stdout,
            stderr,
            listening: Some(listening),
        }
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id().cast_signed()).unwrap(), signal).unwrap();
    }

    /// Ends it with a signal: how it ended, what else it printed, and what it said.
    pub fn end(mut self, signal: Signal) -> (ExitStatus, String, String) {
        self.signal(signal);
        self.ended()
    }

    /// Waits until it has ended.
    pub fn ended(&mut self) -> (ExitStatus, String, String) {
        let status = wait(&mut self.child);
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        self.listening.take().unwrap().join().unwrap();
        (status, rest, self.said())
    }

    pub fn stop(self) {
        let (status, rest, said) = self.end(Signal::TERM);
        assert_eq!((status.code(), rest.as_str()), (Some(143), ""), "{said}");
    }

    /// Standard error of the server so far.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&self.stderr.lock().unwrap()).into_owned()
    }

    /// The most memory that it has used so far, in bytes.
    pub fn peak(&self) -> u64 {
        peak(self.child.id()).unwrap()
    }

    pub fn connect(&self) -> Caller {
        Caller::connect(&self.socket)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for the end of a process that is about to end.
pub fn wait(child: &mut Child) -> ExitStatus {
    until("the process ends", || child.try_wait().unwrap())
}

/// Retries until the attempt returns a value.
pub fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(start.elapsed() < LONG, "it did not happen: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The most memory that a process has used so far, in bytes, without the pages of its program file, which callers do not cause; none if it
/// has ended.
pub fn peak(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let size = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024)
    };
    Some(size("VmHWM:")?.saturating_sub(size("RssFile:")?))
}

/// Runs a command to its end: what it printed, and the most memory that was seen.
pub fn measured(mut command: Command) -> (Output, u64) {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let watching = std::thread::spawn(move || {
        let mut most = 0;
        // A process that has ended, but was not waited for, has no memory any more: then this ends.
        while let Some(now) = peak(pid) {
            most = most.max(now);
            std::thread::sleep(Duration::from_millis(1));
        }
        most
    });
    let output = child.wait_with_output().unwrap();
    (output, watching.join().unwrap())
}

/// A caller on the Unix socket: lines, written by hand.
pub struct Caller {
    pub stream: UnixStream,
    pub lines: BufReader<UnixStream>,
}

impl Caller {
    pub fn connect(path: &Path) -> Caller {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_write_timeout(Some(LONG)).unwrap();
        Caller { lines: BufReader::new(stream.try_clone().unwrap()), stream }
    }

    pub fn send(&mut self, line: &str) {
        self.stream.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// The next answer; none at the end.
    pub fn next(&mut self) -> Option<Json> {
        let mut line = String::new();
        if self.lines.read_line(&mut line).unwrap() == 0 {
            return None;
        }
        Some(Json::parse(line.as_bytes()).unwrap_or_else(|error| panic!("`{line}`: {error}")))
    }

    pub fn ask(&mut self, line: &str) -> Json {
        self.send(line);
        self.next().unwrap()
    }

    /// Asks for a tool; returns the answer's result.
    pub fn tool(&mut self, id: &str, tool: &str) -> Json {
        result(&self.ask(&pre_action(id, "s", tool)))
    }
}

/// The result of an answer.
pub fn result(answer: &Json) -> Json {
    answer.get("result").unwrap_or_else(|| panic!("no result: {answer}")).clone()
}

/// The decision of a result.
pub fn decided(result: &Json) -> &str {
    text(result, "decision")
}

pub fn decision_id(result: &Json) -> String {
    let id = result.pointer("/metadata/decision_id").and_then(Json::as_str);
    id.unwrap_or_else(|| panic!("no decision id: {result}")).to_owned()
}

fn params(kind: &str, session: &str, payload: &str) -> String {
    format!(
        r#"{{"event_type":"{kind}","session_id":"{session}","agent_id":"hand","timestamp":"2026-06-02T09:15:00Z","depth":0,"payload":{payload}}}"#
    )
}

/// An event that wants an answer.
pub fn request(id: &str, kind: &str, session: &str, payload: &str) -> String {
    let params = params(kind, session, payload);
    format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"ahp/event","params":{params}}}"#)
}

/// An event that wants none.
pub fn notification(kind: &str, session: &str, payload: &str) -> String {
    let params = params(kind, session, payload);
    format!(r#"{{"jsonrpc":"2.0","method":"ahp/event","params":{params}}}"#)
}

pub fn pre_action(id: &str, session: &str, tool: &str) -> String {
    request(id, "pre_action", session, &format!(r#"{{"tool_name":"{tool}","arguments":{{"of":"{id}"}}}}"#))
}

pub fn confirmation(id: &str) -> String {
    let payload = r#"{"session_id":"s","confirmation_type":"cost_confirm","message":"spend it?","options":["yes","no"]}"#;
    request(id, "confirmation", "s", payload)
}

/// Sends a request by hand; returns the status and the body.
pub fn post(address: SocketAddr, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.write_all(post_head(path, headers, body.len()).as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    response(&mut stream)
}

pub fn post_head(path: &str, headers: &[(&str, &str)], length: usize) -> String {
    let mut head = format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n"
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head + "\r\n"
}

/// Reads a response up to the end of the connection.
pub fn response(stream: &mut TcpStream) -> (u16, String) {
    let mut bytes = Vec::new();
    // A server that refuses a body may end the connection before it has read it.
    let _ = stream.read_to_end(&mut bytes);
    let all = String::from_utf8_lossy(&bytes).into_owned();
    let status = all.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    let body = all.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, body.to_owned())
}

/// The records of a kind, oldest first; empty: of all kinds.
pub fn records(folder: &Folder, kind: &str) -> Vec<Json> {
    let mut args = vec!["audit", "tail", "--json", "-n", "100000000"];
    if !kind.is_empty() {
        args.extend(["--kind", kind]);
    }
    folder.json(&args)
}

/// Exports and verifies; everything must be right.
pub fn assert_verifies(folder: &Folder) {
    let (report, _) = folder.verify(None);
    assert_eq!(report.pointer("/derivation/different").and_then(Json::as_u64), Some(0), "{report}");
}
