//! `proctor harness` in a scratch folder: lines go in, replies come back by their id.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use proctor_core::json::Json;

use crate::support::{Folder, text};

/// Time limit of a reply; only ever reached by a defect.
const PATIENCE: Duration = Duration::from_secs(60);

/// JSON from its text.
pub fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("`{text}`: {error}"))
}

/// An event, of session `s` and agent `coder` unless it says otherwise.
#[derive(Debug, Clone)]
pub struct Event {
    kind: String,
    session: String,
    agent: String,
    depth: u32,
    payload: Json,
    metadata: Option<Json>,
    context: Option<Json>,
}

impl Event {
    pub fn new(kind: &str, payload: &str) -> Event {
        Event {
            kind: kind.to_owned(),
            session: "s".to_owned(),
            agent: "coder".to_owned(),
            depth: 0,
            payload: json(payload),
            metadata: None,
            context: None,
        }
    }

    pub fn session(mut self, session: &str) -> Event {
        session.clone_into(&mut self.session);
        self
    }

    pub fn agent(mut self, agent: &str) -> Event {
        agent.clone_into(&mut self.agent);
        self
    }

    pub fn depth(mut self, depth: u32) -> Event {
        self.depth = depth;
        self
    }

    pub fn metadata(mut self, metadata: Json) -> Event {
        self.metadata = Some(metadata);
        self
    }

    pub fn context(mut self, context: &str) -> Event {
        self.context = Some(json(context));
        self
    }

    pub fn params(&self) -> Json {
        let mut params = Json::object()
            .with("event_type", self.kind.as_str())
            .with("session_id", self.session.as_str())
            .with("agent_id", self.agent.as_str())
            .with("timestamp", "2026-06-02T09:15:00Z")
            .with("depth", self.depth)
            .with("payload", self.payload.clone());
        if let Some(context) = &self.context {
            params.push("context", context.clone());
        }
        if let Some(metadata) = &self.metadata {
            params.push("metadata", metadata.clone());
        }
        params
    }
}

/// The call of a tool, before it runs.
pub fn before(tool: &str, arguments: &str) -> Event {
    Event::new("pre_action", &format!(r#"{{"tool_name":"{tool}","arguments":{arguments}}}"#))
}

/// The same call, after it ran.
pub fn after(tool: &str, arguments: &str) -> Event {
    Event::new(
        "post_action",
        &format!(r#"{{"tool_name":"{tool}","arguments":{arguments},"result":{{"exit_code":0}}}}"#),
    )
}

/// A harness that is running.
pub struct Harness {
    child: Child,
    stdin: Option<ChildStdin>,
    replies: Receiver<Json>,
    said: Receiver<String>,
    /// Replies that came before anybody waited for them.
    early: Vec<Json>,
    next: u64,
}

impl Harness {
    pub fn start(folder: &Folder) -> Harness {
        Harness::start_with(folder, &[])
    }

    pub fn start_with(folder: &Folder, args: &[&str]) -> Harness {
        let mut all = vec!["harness"];
        all.extend(args);
        let mut command = folder.command(&all);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (reply, replies) = sync_channel(10_000);
        let (say, said) = sync_channel(10_000);
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // The last line may be torn by a kill; then it was no reply.
                let Ok(message) = Json::parse(line.as_bytes()) else { continue };
                if reply.send(message).is_err() {
                    return;
                }
            }
        });
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| say.send(line)));
        Harness { child, stdin, replies, said, early: Vec::new(), next: 0 }
    }

    /// Sends a line as it is.
    pub fn send(&mut self, line: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        let sent = stdin.write_all(line).and_then(|()| stdin.write_all(b"\n")).and_then(|()| stdin.flush());
        if let Err(error) = sent {
            // It ends its stderr when it ends, so this is all that it said.
            panic!("{error}; it said: {:?}", self.said.iter().collect::<Vec<String>>());
        }
    }

    /// Sends a request and does not wait for it. Returns its id.
    pub fn begin(&mut self, method: &str, params: &Json) -> Json {
        self.next += 1;
        let id = Json::from(format!("t-{}", self.next));
        self.send(request(&id, method, params).as_bytes());
        id
    }

    /// Waits for the reply with this id, whatever comes before it.
    pub fn reply(&mut self, id: &Json) -> Json {
        if let Some(at) = self.early.iter().position(|reply| reply.get("id") == Some(id)) {
            return self.early.remove(at);
        }
        loop {
            let reply = self
                .replies
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|error| panic!("no reply to {id}: {error}; it said: {:?}", self.heard()));
            if reply.get("id") == Some(id) {
                return reply;
            }
            self.early.push(reply);
        }
    }

    /// The result of the request with this id.
    pub fn result(&mut self, id: &Json) -> Json {
        let reply = self.reply(id);
        assert!(reply.get("error").is_none(), "{reply}");
        reply.get("result").cloned().unwrap_or_else(|| panic!("{reply}"))
    }

    /// Sends a request; returns the whole reply.
    pub fn request(&mut self, method: &str, params: &Json) -> Json {
        let id = self.begin(method, params);
        self.reply(&id)
    }

    /// Sends an event and waits for its decision.
    pub fn ask(&mut self, event: &Event) -> Json {
        let id = self.begin("ahp/event", &event.params());
        self.result(&id)
    }

    /// Asks; returns the word of the decision.
    pub fn word(&mut self, event: &Event) -> String {
        text(&self.ask(event), "decision").to_owned()
    }

    /// Asks for something that must be let through; returns the decision's id.
    pub fn let_through(&mut self, event: &Event) -> String {
        let decision = self.ask(event);
        assert!(["allow", "modify"].contains(&text(&decision, "decision")), "{decision}");
        text(&decision["metadata"], "decision_id").to_owned()
    }

    /// Sends an event that wants no answer.
    pub fn notify(&mut self, event: &Event) {
        let line =
            Json::object().with("jsonrpc", "2.0").with("method", "ahp/event").with("params", event.params());
        self.send(line.to_string().as_bytes());
    }

    /// Asks a question, as session `s` of `coder`.
    pub fn query(&mut self, query_type: &str, payload: &str) -> Json {
        let params = Json::object()
            .with("session_id", "s")
            .with("agent_id", "coder")
            .with("query_type", query_type)
            .with("payload", json(payload));
        let id = self.begin("ahp/query", &params);
        self.result(&id)
    }

    /// Sends events together; returns their decisions.
    pub fn batch(&mut self, events: &[Event]) -> Vec<Json> {
        let events: Vec<Json> = events.iter().map(Event::params).collect();
        let id = self.begin("ahp/batch", &Json::object().with("events", events));
        self.result(&id)["decisions"].as_array().unwrap().to_vec()
    }

    /// Returns when everything that was sent before is on record: messages get their places in order. Itself it is one observation.
    pub fn settle(&mut self) {
        self.query("policy", "null");
    }

    /// Waits until it says something on stderr.
    pub fn wait_for(&self, what: &str) {
        loop {
            match self.said.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(what) => return,
                Ok(_) => {}
                Err(error) => panic!("`{what}` was not said: {error}"),
            }
        }
    }

    /// Lines on standard error so far.
    fn heard(&self) -> Vec<String> {
        self.said.try_iter().collect()
    }

    /// Files of the harness can grow to this many bytes: to a program, a full disk.
    pub fn limit_files(&self, bytes: Option<u64>) {
        let wanted = rustix::process::Rlimit { current: bytes, maximum: None };
        rustix::process::prlimit(Some(self.pid()), rustix::process::Resource::Fsize, wanted).unwrap();
    }

    /// Ends its input; what was sent before is still answered.
    pub fn end_input(&mut self) {
        drop(self.stdin.take());
    }

    /// The process.
    pub fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_raw(self.child.id().cast_signed()).unwrap()
    }

    /// Ends it by ending its input; returns the exit code and what it said on stderr.
    pub fn close(mut self) -> (i32, String) {
        drop(self.stdin.take());
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        let unasked: Vec<Json> = self.early.drain(..).chain(self.replies.iter()).collect();
        assert!(unasked.is_empty(), "answers that nobody waited for: {unasked:?}");
        (code, self.said.iter().collect::<Vec<String>>().join("\n"))
    }

    /// Waits for its end without ending it; returns the exit code.
    pub fn wait(mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap_or(-1)
    }

    /// Kills it with SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        // A test that failed leaves nothing running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The line of a request.
pub fn request(id: &Json, method: &str, params: &Json) -> String {
    Json::object()
        .with("jsonrpc", "2.0")
        .with("id", id.clone())
        .with("method", method)
        .with("params", params.clone())
        .to_string()
}

/// All records, without bodies.
pub fn records(folder: &Folder) -> Vec<Json> {
    folder.json(&["audit", "tail", "--json", "-n", "1000000"])
}

/// All records of a session, with bodies.
pub fn session(folder: &Folder, name: &str) -> Vec<Json> {
    folder.json(&["session", "show", name, "--json"])
}

/// Records of one kind.
pub fn of_kind<'a>(records: &'a [Json], kind: &str) -> Vec<&'a Json> {
    records.iter().filter(|record| text(record, "kind") == kind).collect()
}

/// The codes of all alarms, in order.
pub fn alarms(folder: &Folder) -> Vec<String> {
    of_kind(&records(folder), "alarm").into_iter().map(|alarm| text(alarm, "code").to_owned()).collect()
}

/// The outcomes of a session: the decision's id, how it ended, how it was bound.
pub fn outcomes(folder: &Folder, name: &str) -> Vec<(String, String, String)> {
    let records = session(folder, name);
    let id_of = |sequence: Option<u64>| {
        let decision = records.iter().find(|record| record.get("seq").and_then(Json::as_u64) == sequence);
        decision.map(|record| text(record, "id").to_owned()).unwrap_or_default()
    };
    of_kind(&records, "outcome")
        .into_iter()
        .map(|outcome| {
            let of = outcome["links"].as_array().and_then(<[Json]>::first).and_then(Json::as_u64);
            (id_of(of), text(outcome, "code").to_owned(), text(&outcome["body"], "binding").to_owned())
        })
        .collect()
}

/// Fails if this text is in any file of the state directory.
pub fn assert_not_stored(folder: &Folder, secret: &str) {
    let mut folders = vec![folder.state()];
    while let Some(directory) = folders.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
                assert!(!found, "the secret is in {}", path.display());
            }
        }
    }
}
