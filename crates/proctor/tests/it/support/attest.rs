//! `attest-engine` as its clients see it: a child process under that name, lines in, lines out.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::binary;

/// Time limit of a reply; only ever reached by a defect.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// No reply is longer, with its end.
pub const LONGEST_REPLY: usize = 60 * 1024;

/// A scratch folder with the program under its other name, a home and a cache.
pub struct Place {
    pub dir: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Place {
        let place = Place { dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir(place.path("home")).unwrap();
        std::fs::create_dir(place.path("work")).unwrap();
        std::os::unix::fs::symlink(binary(), place.path("attest-engine")).unwrap();
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn cache(&self) -> PathBuf {
        self.path("cache")
    }

    pub fn database(&self) -> PathBuf {
        self.cache().join("attest.db")
    }

    /// The program, with nothing of the surrounding environment that it would look at.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.path("attest-engine"));
        command.args(args).current_dir(self.path("work"));
        for (name, _) in std::env::vars() {
            let upper = name.to_uppercase();
            if upper.starts_with("ATTEST_") || upper.starts_with("PROCTOR_") || upper.ends_with("_PROXY") {
                command.env_remove(name);
            }
        }
        command.env("HOME", self.path("home")).env("ATTEST_CACHE_DIR", self.cache());
        command.env("XDG_CONFIG_HOME", self.path("config"));
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).stdin(Stdio::null()).output().unwrap()
    }

    /// An engine that has not been spoken to.
    pub fn start(&self, variables: &[(&str, &str)]) -> Engine {
        let mut command = self.command(&["--log-level=debug"]);
        command.envs(variables.iter().copied());
        Engine::spawn(command)
    }

    /// An engine after `initialize`.
    pub fn ready(&self, variables: &[(&str, &str)]) -> Engine {
        let mut engine = self.start(variables);
        engine.initialize();
        engine
    }

    /// The history: trace, assertion, type, score and status of each row, oldest first.
    pub fn rows(&self) -> Vec<(String, String, String, f64, String)> {
        rows(&self.database())
    }
}

/// The rows of a history file, oldest first.
pub fn rows(file: &Path) -> Vec<(String, String, String, f64, String)> {
    let connection = rusqlite::Connection::open(file).unwrap();
    connection.busy_timeout(PATIENCE).unwrap();
    let query =
        "SELECT trace_id, assertion_id, assertion_type, score, status FROM assertion_history ORDER BY id";
    let mut statement = connection.prepare(query).unwrap();
    let rows = statement
        .query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))
        .unwrap();
    rows.map(Result::unwrap).collect()
}

/// An engine that is running. Both its outputs are read all the time.
pub struct Engine {
    pub child: Child,
    pub stdin: Option<ChildStdin>,
    replies: Receiver<Vec<u8>>,
    said: Receiver<Vec<u8>>,
    next: i64,
    /// Length limit of a line; clients that read long ones raise it.
    pub longest: usize,
}

impl Engine {
    pub fn spawn(mut command: Command) -> Engine {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut stderr = child.stderr.take().unwrap();
        let (reply, replies) = channel();
        let (say, said) = channel();
        std::thread::spawn(move || {
            loop {
                let mut line = Vec::new();
                match stdout.read_until(b'\n', &mut line) {
                    Ok(count) if count > 0 && reply.send(line).is_ok() => {}
                    _ => return,
                }
            }
        });
        std::thread::spawn(move || {
            let mut all = Vec::new();
            let _ = stderr.read_to_end(&mut all);
            let _ = say.send(all);
        });
        Engine { child, stdin, replies, said, next: 0, longest: LONGEST_REPLY }
    }

    /// Sends bytes as they are.
    pub fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("its input has ended");
        stdin.write_all(bytes).and_then(|()| stdin.flush()).expect("the engine does not read");
    }

    /// Sends a line as it is.
    pub fn send(&mut self, line: impl AsRef<[u8]>) {
        let mut line = line.as_ref().to_vec();
        line.push(b'\n');
        self.write(&line);
    }

    /// The next line, checked for what holds for every one.
    pub fn receive(&mut self) -> Value {
        match self.replies.recv_timeout(PATIENCE) {
            Ok(line) => reply_within(&line, self.longest),
            Err(error) => panic!("no reply: {error}; it said {}", self.heard()),
        }
    }

    /// The next line as it is.
    pub fn receive_raw(&mut self) -> Vec<u8> {
        self.replies.recv_timeout(PATIENCE).expect("no line")
    }

    /// Sends a line as it is; returns the whole reply.
    pub fn exchange(&mut self, line: impl AsRef<[u8]>) -> Value {
        self.send(line);
        self.receive()
    }

    /// Sends a request; returns its number.
    pub fn begin(&mut self, method: &str, params: &Value) -> i64 {
        self.next += 1;
        self.send(request(self.next, method, params));
        self.next
    }

    /// Sends a request; returns the whole reply.
    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.begin(method, params);
        let reply = self.receive();
        assert_eq!(reply["id"], id, "{reply}");
        reply
    }

    /// Sends a request that must succeed; returns the result.
    pub fn result(&mut self, method: &str, params: &Value) -> Value {
        let reply = self.ask(method, params);
        assert!(reply.get("error").is_none(), "{method}: {reply}");
        reply["result"].clone()
    }

    /// Sends a request that must be refused; returns the code and what was said.
    pub fn refusal(&mut self, method: &str, params: &Value) -> (i64, String) {
        let reply = self.ask(method, params);
        let error = reply.get("error").unwrap_or_else(|| panic!("{method} is not refused: {reply}"));
        (error["code"].as_i64().unwrap(), error.to_string())
    }

    pub fn initialize(&mut self) -> Value {
        self.result("initialize", &json!({"protocol_version": 1, "required_capabilities": ["layers_1_4"]}))
    }

    /// Evaluates; returns the results.
    pub fn evaluate(&mut self, trace: &Value, assertions: &Value) -> Vec<Value> {
        let result = self.result("evaluate_batch", &json!({"trace": trace, "assertions": assertions}));
        result["results"].as_array().unwrap().clone()
    }

    /// Evaluates one assertion.
    pub fn verdict(&mut self, trace: &Value, assertion: Value) -> Value {
        let results = self.evaluate(trace, &json!([assertion]));
        assert_eq!(results.len(), 1, "{results:?}");
        results.into_iter().next().unwrap()
    }

    /// The session goes on: a small batch is answered.
    pub fn assert_well(&mut self, after: &str) {
        let found = self.verdict(&trace("well"), contains("well", "hello"));
        assert_eq!(found["status"], "pass", "after {after}: {found}");
    }

    pub fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_raw(self.child.id().cast_signed()).unwrap()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.pid(), signal).unwrap();
    }

    /// Resident memory of the engine, in bytes.
    pub fn resident(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The most that it ever was.
    pub fn peak(&self) -> u64 {
        self.memory("VmHWM:")
    }

    fn memory(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kilobytes * 1024
    }

    /// Waits for its end without ending it; returns the exit code and what it said on stderr. No reply may be left.
    pub fn wait(mut self) -> (i32, String) {
        let code = self.end();
        let unasked: Vec<_> = self.replies.iter().map(|line| reply(&line)).collect();
        assert!(unasked.is_empty(), "lines that nobody asked for: {unasked:?}");
        (code, self.heard())
    }

    /// Ends its input and waits; returns the exit code and what it said on stderr.
    pub fn close(mut self) -> (i32, String) {
        drop(self.stdin.take());
        self.wait()
    }

    fn end(&mut self) -> i32 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            assert!(Instant::now() < deadline, "the engine does not end");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn heard(&mut self) -> String {
        match self.said.recv_timeout(Duration::from_secs(2)) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => String::new(),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // A test that failed leaves nothing running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A line as a reply, checked for what holds for every one.
pub fn reply(line: &[u8]) -> Value {
    reply_within(line, LONGEST_REPLY)
}

fn reply_within(line: &[u8], longest: usize) -> Value {
    let shown = || String::from_utf8_lossy(&line[..line.len().min(400)]).into_owned();
    assert!(line.ends_with(b"\n"), "a torn line: {}", shown());
    assert!(line.len() <= longest, "{} bytes: {}", line.len(), shown());
    let reply: Value = serde_json::from_slice(line).unwrap_or_else(|error| panic!("{error}: {}", shown()));
    assert_eq!(reply["jsonrpc"], "2.0", "{reply}");
    assert!(reply["id"].is_i64() || reply["id"].is_u64(), "{reply}");
    assert_eq!(reply.as_object().unwrap().len(), 3, "{reply}");
    match reply.get("error") {
        None => assert!(reply["result"].is_object(), "{reply}"),
        Some(error) => {
            assert!(error["code"].is_i64() && error["message"].is_string(), "{reply}");
            let data = &error["data"];
            assert!(data["error_type"].is_string() && data["retryable"].is_boolean(), "{reply}");
            assert!(!data["detail"].as_str().unwrap().is_empty(), "{reply}");
        }
    }
    reply
}

/// The line of a request, without its end.
pub fn request(id: i64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// A small trace.
pub fn trace(id: &str) -> Value {
    json!({
        "schema_version": 1,
        "trace_id": id,
        "agent_id": "agent",
        "input": {"question": "?"},
        "steps": [
            {"type": "llm_call", "name": "think", "args": {"model": "m"}, "result": {"completion": "c"}},
            {"type": "tool_call", "name": "search", "args": {"query": "q"}, "result": {"found": 3}},
            {"type": "tool_call", "name": "answer", "args": {}, "result": null},
        ],
        "output": {"message": "hello world", "structured": {"answer": 42}},
        "metadata": {"total_tokens": 100, "cost_usd": 0.01, "latency_ms": 250, "model": "m"},
        "parent_trace_id": null,
    })
}

/// An assertion on the message of [`trace`].
pub fn contains(id: &str, value: &str) -> Value {
    content(id, &json!({"target": "output.message", "check": "contains", "value": value}))
}

pub fn content(id: &str, spec: &Value) -> Value {
    assertion(id, "content", spec)
}

pub fn assertion(id: &str, kind: &str, spec: &Value) -> Value {
    json!({"assertion_id": id, "type": kind, "spec": spec})
}
