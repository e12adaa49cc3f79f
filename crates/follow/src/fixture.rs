//! Test ledgers: one behind a real engine, and records of any kind.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proctor_core::action::{Action, ActionKind};
use proctor_core::decision::Effect;
use proctor_core::id::RecordId;
use proctor_core::json::Json;
use proctor_core::record::{Envelope, RecordKind, Registration};
use proctor_core::session::Caller;
use proctor_core::time::{Clock, Timestamp};
use proctor_ledger::{Draft, Ledger, Options};
use proctor_policy::policy::{Policy, Source};

use proctor_engine::state_dir::StateDir;
use proctor_engine::{Engine, Parts, Proposal};
use proctor_system::{SystemClock, SystemRandomness};

/// A secret as the scanner knows it; it must not appear anywhere.
pub(crate) const SECRET: &str = "AKIAQ7W3ERTY5UIOP2XZ";

const POLICY: &str = r#"
version: "1"
default: deny
rules:
  - id: looking-is-fine
    when: action.tool == "look"
    then: allow
  - id: publish-is-asked
    when: action.tool == "publish"
    then: ask
data:
  credential_action: redact_only
"#;

/// A ledger in a folder of its own; gone with it.
pub(crate) struct Fixture {
    /// Holds the state directory, and whatever a test puts there.
    pub folder: tempfile::TempDir,
}

impl Fixture {
    pub(crate) fn new() -> Fixture {
        Fixture { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn state(&self) -> StateDir {
        let state = StateDir::new(&self.folder.path().join("state"));
        state.create(&SystemRandomness).unwrap();
        state
    }

    /// The folder of the log.
    pub(crate) fn audit(&self) -> std::path::PathBuf {
        self.folder.path().join("audit")
    }

    /// The ledger alone.
    pub(crate) fn ledger(&self) -> Ledger {
        let options =
            Options::new(self.state().key().unwrap(), Arc::new(SystemClock), Arc::new(SystemRandomness));
        Ledger::open(self.state().path(), options).unwrap()
    }

    /// An engine with the ledger.
    pub(crate) fn engine(&self) -> Engine {
        Engine::start(Parts {
            ledger: self.ledger(),
            policy: Policy::compile(vec![Source::document("policy.yaml", POLICY)]).unwrap(),
            secret: [7; 32],
            clock: Arc::new(SystemClock),
            randomness: Arc::new(SystemRandomness),
            resolver: None,
            answer: Duration::from_secs(30),
        })
        .unwrap()
    }
}

/// Has the engine decide a tool call; what it has to be.
pub(crate) fn decide(engine: &Engine, tool: &str, argument: &str, expected: Effect) {
    let metadata = Json::object()
        .with("trace_id", "trace-1")
        .with("span_id", "span-1")
        .with("action_type", "TOOL_CALL")
        .with("assurance", "bound");
    let action = Action {
        kind: ActionKind::ToolCall,
        name: tool.to_owned(),
        args: Json::object().with("text", argument),
        metadata,
        ..Action::default()
    };
    decide_on(engine, action, expected);
}

/// Decides any action, and checks its effect.
pub(crate) fn decide_on(engine: &Engine, action: Action, expected: Effect) {
    let proposal = Proposal {
        action: Action { door: "assembly".to_owned(), ..action },
        caller: Caller { principal: "agent:a".to_owned(), team: "t".to_owned(), org: "o".to_owned() },
        agent: "did:key:zA".to_owned(),
        session: "s".to_owned(),
    };
    let answer = engine.deliver(engine.submit(proposal));
    assert_eq!(answer.decision().effect, expected, "{}", answer.decision().reason);
}

/// An envelope of the agent `agent:a`.
pub(crate) fn envelope(kind: RecordKind, code: &str) -> Envelope {
    let now: Timestamp = SystemClock.now();
    let mut envelope = Envelope::new(RecordId::new(now, &SystemRandomness), now, kind);
    envelope.principal = "agent:a".to_owned();
    envelope.agent = "did:key:zA".to_owned();
    envelope.team = "t".to_owned();
    envelope.org = "o".to_owned();
    envelope.door = "assembly".to_owned();
    envelope.code = code.to_owned();
    envelope
}

/// A registration of an agent that `parent` has started.
pub(crate) fn registered(agent: &str, parent: &str, depth: u32) -> Envelope {
    let mut envelope = envelope(RecordKind::Agent, "registered");
    envelope.principal = format!("agent:{agent}");
    envelope.agent = format!("did:key:z{}", agent.to_uppercase());
    envelope.registration = Some(Box::new(Registration {
        parent: parent.to_owned(),
        depth,
        reason: "to help".to_owned(),
        tool: "spawn".to_owned(),
        ..Registration::default()
    }));
    envelope
}

/// Appends a record and waits for it.
pub(crate) fn append(ledger: &Ledger, envelope: Envelope, body: Option<&str>) -> u64 {
    let draft = Draft { body: body.map(|text| text.as_bytes().to_vec()), ..Draft::new(envelope) };
    ledger.append(draft).wait().unwrap().seq()
}

/// The lines of the log.
pub(crate) fn lines(audit: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(audit.join("gateway-default.jsonl")).unwrap();
    text.lines().map(str::to_owned).collect()
}
