//! A gateway in a folder of its own, with a clock that tests set and agents that hold keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use ed25519_dalek::{Signer, SigningKey};
use proctor_clients::assembly::services::agent::agent_lifecycle_service_server::AgentLifecycleService;
use proctor_clients::assembly::services::policy::policy_service_server::PolicyService;
use proctor_core::random::SeededRandomness;
use proctor_core::time::{Clock, Timestamp};
use proctor_ledger::{Ledger, Options};
use proctor_policy::policy::{Policy, Source};
use proctor_wire::assembly::did;
use proctor_wire::assembly::proto::agent::v1::{
    ChallengeRequest, HeartbeatRequest, HeartbeatResponse, RegisterRequest, RegisterResponse,
};
use proctor_wire::assembly::proto::common::v1::AgentId;
use proctor_wire::assembly::proto::policy::v1::action_context::Action as Context;
use proctor_wire::assembly::proto::policy::v1::{
    ActionContext, CheckActionRequest, CheckActionResponse, LlmCallContext, ToolCallContext,
};
use tonic::{Request, Status};

use super::{AssemblyDoor, AssemblySettings};
use proctor_engine::state_dir::StateDir;
use proctor_engine::{Engine, Parts, Reload};
use proctor_system::SystemRandomness;

/// 2026-03-02 12:00:00 UTC, a Monday.
pub(crate) const NOON: i64 = 1_772_452_800_000_000;

/// Clock that tests set.
#[derive(Debug)]
pub(crate) struct HandClock(AtomicI64);

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

impl HandClock {
    pub(crate) fn pass(&self, time: Duration) {
        self.0.fetch_add(i64::try_from(time.as_micros()).unwrap(), Ordering::SeqCst);
    }
}

/// A gateway and what it is made of.
pub(crate) struct Gateway {
    folder: tempfile::TempDir,
    pub clock: Arc<HandClock>,
    randomness: Arc<SeededRandomness>,
    policy: String,
    settings: AssemblySettings,
    pub door: AssemblyDoor,
}

impl Gateway {
    pub(crate) fn new(policy: &str) -> Gateway {
        Gateway::with(policy, AssemblySettings::default(), 1)
    }

    pub(crate) fn with(policy: &str, settings: AssemblySettings, seed: u64) -> Gateway {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(HandClock(AtomicI64::new(NOON)));
        let randomness = Arc::new(SeededRandomness::new(seed));
        StateDir::new(&folder.path().join("state")).create(&SystemRandomness).unwrap();
        let door = open(&folder, &clock, &randomness, policy, &settings);
        Gateway { folder, clock, randomness, policy: policy.to_owned(), settings, door }
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.door.engine()
    }

    /// Ends the gateway as an orderly stop does, and starts it on the same state.
    pub(crate) async fn restart(&mut self) {
        self.door.close();
        self.engine().finish();
        // Streams hold the door until their tasks have noticed.
        while Arc::strong_count(self.door.engine()) > 1 || Arc::strong_count(&self.door.inner) > 1 {
            tokio::task::yield_now().await;
        }
        // The old door holds the lock on the state directory until it is gone.
        let placeholder = Gateway::with("default: deny\n", AssemblySettings::default(), 0);
        drop(std::mem::replace(&mut self.door, placeholder.door.clone()));
        self.door = open(&self.folder, &self.clock, &self.randomness, &self.policy, &self.settings);
    }

    /// Simulates a crash: restarts on a copy of the disk, without closing the ledger.
    pub(crate) async fn crash(&mut self) {
        let folder = tempfile::tempdir().unwrap();
        copy(self.folder.path(), folder.path());
        let old = std::mem::replace(&mut self.folder, folder);
        self.restart().await;
        drop(old);
    }

    /// Puts another policy into force.
    pub(crate) fn reload(&mut self, policy: &str) {
        let compiled = Policy::compile(vec![Source::document("policy.yaml", policy)]);
        assert_eq!(self.engine().reload(compiled), Reload::Loaded);
        policy.clone_into(&mut self.policy);
    }

    pub(crate) async fn register(&self, agent: &mut Agent) -> Result<RegisterResponse, Status> {
        let request = agent.registration(&self.door).await?;
        let response = self.door.register(Request::new(request)).await?.into_inner();
        agent.token.clone_from(&response.credential_token);
        Ok(response)
    }

    pub(crate) async fn check(&self, agent: &Agent, context: Context) -> CheckActionResponse {
        let request = agent.asking(context);
        self.door.check_action(Request::new(request)).await.unwrap().into_inner()
    }

    pub(crate) async fn tool(&self, agent: &Agent, name: &str, args: &str) -> CheckActionResponse {
        self.check(agent, tool(name, args)).await
    }

    pub(crate) async fn heartbeat(&self, agent: &Agent) -> Result<HeartbeatResponse, Status> {
        let request = HeartbeatRequest {
            agent_id: Some(agent.id()),
            credential_token: agent.token.clone(),
            ..HeartbeatRequest::default()
        };
        self.door.heartbeat(Request::new(request)).await.map(tonic::Response::into_inner)
    }
}

/// Copies a folder as it would be after a crash, without shared-memory files of the database.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir(&target).unwrap();
            std::fs::set_permissions(&target, entry.metadata().unwrap().permissions()).unwrap();
            copy(&source, &target);
        } else if entry.file_type().unwrap().is_file() && !source.to_string_lossy().ends_with("-shm") {
            std::fs::copy(&source, &target).unwrap();
        }
    }
}

fn open(
    folder: &tempfile::TempDir,
    clock: &Arc<HandClock>,
    randomness: &Arc<SeededRandomness>,
    policy: &str,
    settings: &AssemblySettings,
) -> AssemblyDoor {
    let state = StateDir::new(&folder.path().join("state"));
    let options = Options::new(state.key().unwrap(), Arc::clone(clock) as _, Arc::clone(randomness) as _);
    let parts = Parts {
        ledger: Ledger::open(state.path(), options).unwrap(),
        policy: Policy::compile(vec![Source::document("policy.yaml", policy)]).unwrap(),
        secret: [7; 32],
        clock: Arc::clone(clock) as _,
        randomness: Arc::clone(randomness) as _,
        resolver: None,
        answer: Duration::from_secs(30),
    };
    AssemblyDoor::new(Arc::new(Engine::start(parts).unwrap()), settings.clone())
}

/// An agent that holds a key.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    pub key: SigningKey,
    pub token: String,
    pub team: String,
    pub request: RegisterRequest,
}

impl Agent {
    pub(crate) fn new(seed: u8) -> Agent {
        Agent {
            key: SigningKey::from_bytes(&[seed; 32]),
            token: String::new(),
            team: "ml".to_owned(),
            request: RegisterRequest { name: format!("agent {seed}"), ..RegisterRequest::default() },
        }
    }

    pub(crate) fn child_of(seed: u8, parent: &Agent) -> Agent {
        let mut agent = Agent::new(seed);
        agent.request.parent_agent_id = Some(parent.did());
        agent
    }

    pub(crate) fn did(&self) -> String {
        did::encode(self.key.verifying_key().as_bytes())
    }

    pub(crate) fn principal(&self) -> String {
        format!("agent:{}", self.did())
    }

    pub(crate) fn public_key(&self) -> String {
        did::key_text(self.key.verifying_key().as_bytes())
    }

    pub(crate) fn id(&self) -> AgentId {
        AgentId { org_id: "acme".to_owned(), team_id: self.team.clone(), agent_id: self.did() }
    }

    /// A registration with a fresh challenge, signed.
    pub(crate) async fn registration(&self, door: &AssemblyDoor) -> Result<RegisterRequest, Status> {
        let challenge = ChallengeRequest { agent_id: Some(self.id()), public_key: self.public_key() };
        let nonce = door.request_challenge(Request::new(challenge)).await?.into_inner().nonce;
        Ok(RegisterRequest {
            agent_id: Some(self.id()),
            public_key: self.public_key(),
            possession_proof: self.key.sign(&nonce).to_bytes().to_vec(),
            registration_nonce: nonce,
            ..self.request.clone()
        })
    }

    pub(crate) fn asking(&self, context: Context) -> CheckActionRequest {
        CheckActionRequest {
            agent_id: Some(self.id()),
            credential_token: self.token.clone(),
            trace_id: "trace".to_owned(),
            span_id: "span".to_owned(),
            context: Some(ActionContext { action: Some(context) }),
            ..CheckActionRequest::default()
        }
    }
}

pub(crate) fn tool(name: &str, args: &str) -> Context {
    Context::ToolCall(ToolCallContext {
        tool_name: name.to_owned(),
        tool_source: "mcp".to_owned(),
        args_json: args.as_bytes().to_vec(),
        target_url: String::new(),
    })
}

pub(crate) fn llm(model: &str, tokens: i32) -> Context {
    Context::LlmCall(LlmCallContext { model: model.to_owned(), prompt_tokens: tokens, contains_pii: false })
}
