//! An engine in a temporary folder, tools that count their calls, and an HTTP client without a library.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proctor_core::json::Json;
use proctor_core::random::SeededRandomness;
use proctor_core::record::{Envelope, RecordKind};
use proctor_core::session::Caller;
use proctor_core::time::{ManualClock, Timestamp};
use proctor_door_atp::backend::{CallFuture, ToolBackend, ToolInfo, ToolResult};
use proctor_door_atp::{Decider, Run, ToolDoor};
use proctor_engine::{Engine, Parts};
use proctor_ledger::keys::{Algorithm, SecretKey};
use proctor_ledger::reader::BodyState;
use proctor_ledger::store::{Filter, Order};
use proctor_ledger::{Ledger, Options};
use proctor_policy::policy::{Policy, Source};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

pub(crate) const TASK: &str = "6f9e8c1a-0b1d-4f6e-9d55-0c7b7c3a4e10";

pub(crate) const POLICY: &str = r#"
version: "1"
default: allow
rules:
  - { id: no-purging, when: 'action.tool == "purge"', then: deny, reason: Nothing is purged. }
  - { id: ask-mail, when: 'action.tool == "mail"', then: ask, reason: Mail leaves the house. }
  - { id: short, when: 'action.tool == "limited"', then: modify, set: { /args/limit: 5 } }
"#;

pub(crate) fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::from_micros(1_800_000_000_000_000)))
}

pub(crate) fn engine(folder: &std::path::Path, policy: &str) -> Arc<Engine> {
    let randomness = Arc::new(SeededRandomness::new(7));
    let key = SecretKey::from_seed("example.com/ledger", Algorithm::Ed25519, &[7; 32]).unwrap();
    let parts = Parts {
        ledger: Ledger::open(folder, Options::new(key, clock(), randomness.clone())).unwrap(),
        policy: Policy::compile(vec![Source::document("policy.yaml", policy)]).unwrap(),
        secret: [1; 32],
        clock: clock(),
        randomness,
        resolver: None,
        answer: Duration::from_secs(30),
    };
    Arc::new(Engine::start(parts).unwrap())
}

/// Tools that return their input, fail, panic or wait, and remember what they were called with.
#[derive(Default)]
pub(crate) struct Tools {
    pub(crate) seen: Mutex<Vec<(String, Json)>>,
    /// Told when `wait` or `hang` has begun.
    pub(crate) begun: Notify,
    /// Lets `wait` go on.
    pub(crate) go_on: Notify,
}

const NAMES: [&str; 8] = ["echo", "purge", "mail", "limited", "fail", "panic", "wait", "hang"];

impl ToolBackend for Tools {
    fn call<'a>(&'a self, tool: &'a str, input: &'a Json) -> CallFuture<'a> {
        Box::pin(async move {
            self.seen.lock().unwrap().push((tool.to_owned(), input.clone()));
            match tool {
                "fail" => ToolResult::Failed {
                    error: "the disk is full".to_owned(),
                    code: None,
                    details: None,
                    output: Some("half".into()),
                },
                "panic" => panic!("a tool with a defect"),
                "wait" => {
                    self.begun.notify_one();
                    self.go_on.notified().await;
                    ToolResult::Success(input.clone())
                }
                "hang" => {
                    self.begun.notify_one();
                    std::future::pending().await
                }
                known if NAMES.contains(&known) => ToolResult::Success(input.clone()),
                _ => ToolResult::UnknownTool,
            }
        })
    }

    fn tools(&self) -> Vec<ToolInfo> {
        NAMES
            .iter()
            .map(|name| ToolInfo { name: (*name).to_owned(), description: Some(format!("does {name}")) })
            .collect()
    }
}

/// A run with its engine and its endpoint.
pub(crate) struct Bench {
    pub(crate) engine: Arc<Engine>,
    pub(crate) tools: Arc<Tools>,
    pub(crate) door: ToolDoor,
    _folder: tempfile::TempDir,
}

pub(crate) fn run() -> Run {
    let caller = Caller { principal: "uid:1000/run-1".to_owned(), ..Caller::default() };
    Run::new(TASK, caller, "agent")
}

pub(crate) fn bench() -> Bench {
    bench_with(POLICY, |_| {})
}

pub(crate) fn bench_with(policy: &str, change: impl FnOnce(&mut Run)) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(folder.path(), policy);
    let tools = Arc::new(Tools::default());
    let mut run = run();
    change(&mut run);
    let door = open(run, Decider::Engine(engine.clone()), tools.clone());
    Bench { engine, tools, door, _folder: folder }
}

pub(crate) fn open(run: Run, decider: Decider, backend: Arc<dyn ToolBackend>) -> ToolDoor {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    ToolDoor::open(listener, run, decider, backend, clock(), &SeededRandomness::new(3)).unwrap()
}

impl Bench {
    /// Calls a tool by the document's route; the reply.
    pub(crate) async fn call(&self, tool: &str, input: &str) -> Json {
        let body = format!(r#"{{"task_id":"{TASK}","input":{input}}}"#);
        let (status, reply) = send(self.door.url(), "POST", &format!("/{tool}"), body.as_bytes()).await;
        assert_eq!(status, 200, "{reply}");
        json(&reply)
    }

    /// All records after the first one, which is that of the policy.
    pub(crate) fn records(&self) -> Vec<(Envelope, Json)> {
        records(&self.engine)
    }

    /// Kinds and codes of all records but policy and session.
    pub(crate) fn kinds(&self) -> Vec<String> {
        kinds(&self.engine)
    }
}

pub(crate) fn records(engine: &Engine) -> Vec<(Envelope, Json)> {
    let reader = engine.ledger().reader();
    let records = reader.records(Filter::default(), Order::Ascending).map(Result::unwrap);
    records
        .filter(|record| !matches!(record.envelope.kind, RecordKind::Policy | RecordKind::Session))
        .map(|record| {
            let body = match reader.body(record.seq).unwrap() {
                BodyState::Present { bytes, .. } => Json::parse(&bytes).unwrap(),
                _ => Json::Null,
            };
            (record.envelope, body)
        })
        .collect()
}

pub(crate) fn kinds(engine: &Engine) -> Vec<String> {
    let word = |envelope: &Envelope| match envelope.decision {
        Some(effect) => format!("{} {effect}", envelope.kind),
        None => format!("{} {}", envelope.kind, envelope.code),
    };
    records(engine).iter().map(|(envelope, _)| word(envelope)).collect()
}

pub(crate) fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Sends one request below an endpoint; status and body of the answer.
pub(crate) async fn send(url: &str, method: &str, path: &str, body: &[u8]) -> (u16, String) {
    let head = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    send_raw(url, method, path, &head, body).await
}

pub(crate) async fn send_raw(
    url: &str,
    method: &str,
    path: &str,
    headers: &str,
    body: &[u8],
) -> (u16, String) {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, base) = rest.split_once('/').unwrap_or((rest, ""));
    let base = if base.is_empty() { String::new() } else { format!("/{base}") };
    let mut stream = TcpStream::connect(host).await.unwrap();
    let head =
        format!("{method} {base}{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    // A server that refuses a body does not read it.
    let _ = stream.write_all(body).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(!head.to_ascii_lowercase().contains("transfer-encoding"), "{head}");
    (status, body.to_owned())
}
