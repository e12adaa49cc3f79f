//! A runner on a state directory of its own, with parts that tests control.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proctor_core::id::ApprovalId;
use proctor_core::json::Json;
use proctor_core::record::Envelope;
use proctor_engine::Engine;
use proctor_engine::access::Access;
use proctor_engine::settings::{Durability, Settings};
use proctor_engine::workspaces::Workspaces;
use proctor_flow::run::{
    AgentAnswer, AgentFailure, AgentRequest, AgentRuntime, Authorized, Authorizer, BoxFuture, Cancel,
    Cleanup, EvidenceSigner, Execution, Identities, JOBS, Options, Parts, Presented, Proofs, Recorder,
    Refusal, RelayedJobs, ResolvedIdentity, Runner, RuntimeTimer, Subject, Timer, Verdict,
};
use proctor_identity::session::{Trust, TrustLevel};
use proctor_ledger::reader::BodyState;
use proctor_ledger::store::{Filter, Order};
use proctor_proof::secret::Secret;
use proctor_sandbox::Features;
use proctor_system::{SystemClock, SystemRandomness};
use proctor_wire::agentcli::effective::EffectiveTask;
use proctor_wire::agentcli::error::{Code, Failure};

/// Policy that lets every run of workflow `w` through.
pub(super) const ALLOW: &str = r#"version: "1"
default: deny
rules:
  - id: jobs
    when: (action.kind == "process_exec" || action.kind == "agent_spawn") && agent.principal.startsWith("job:w/")
    then: allow
"#;

/// State directory with an engine.
pub(super) struct World {
    pub(super) folder: tempfile::TempDir,
    pub(super) engine: Arc<Engine>,
}

pub(super) fn settings(state: &Path, policy: Option<PathBuf>) -> Settings {
    Settings {
        state: state.to_owned(),
        policy,
        durability: Durability::Process,
        agent: String::new(),
        team: String::new(),
        org: String::new(),
        workspaces: Workspaces::default(),
        answer: Duration::from_secs(8),
    }
}

impl World {
    pub(super) fn new(policy: Option<&str>) -> World {
        let folder = tempfile::tempdir().unwrap();
        let file = policy.map(|text| {
            let file = folder.path().join("policy.yaml");
            std::fs::write(&file, text).unwrap();
            file
        });
        let settings = settings(&folder.path().join("state"), file);
        let opened = Access::open(&settings, JOBS, |engine| vec![Box::new(RelayedJobs(Arc::clone(engine)))]);
        let Ok(Access::Owner(engine)) = opened else { panic!("a new state directory has no owner") };
        std::fs::create_dir(folder.path().join("work")).unwrap();
        World { folder, engine }
    }

    pub(super) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(super) fn work(&self) -> PathBuf {
        self.folder.path().join("work").canonicalize().unwrap()
    }

    pub(super) fn parts(&self) -> Parts {
        Parts {
            recorder: Recorder::Engine(Arc::clone(&self.engine)),
            proofs: Arc::new(FixedProof(Ok(()))),
            identities: Arc::new(Planted::default()),
            authorizer: Arc::new(Fixed(Verdict::Permit)),
            signer: Arc::new(NoSigner),
            agents: None,
            timer: Arc::new(RuntimeTimer::start()),
            clock: Arc::new(SystemClock),
            randomness: Arc::new(SystemRandomness),
            variables: vec![("PATH".into(), "/usr/bin:/bin".into())],
            directory: self.work(),
            state: self.state(),
            features: Features::all(),
            local_principal: "me@here".to_owned(),
        }
    }

    pub(super) fn runner(&self) -> Runner {
        Runner::new(self.parts()).unwrap()
    }

    /// Decides an approval as an approver would.
    pub(super) fn approve(&self, id: ApprovalId, allowed: bool) {
        let engine = Arc::clone(&self.engine);
        // Deciding blocks its thread.
        let decided =
            std::thread::spawn(move || engine.decide_as("approver:ann", id, allowed, "", &Json::object()));
        decided.join().unwrap().unwrap();
    }

    /// All records: envelopes with their bodies as text.
    pub(super) fn records(&self) -> Vec<(Envelope, String)> {
        let reader = self.engine.ledger().reader();
        let all = reader.records(Filter::default(), Order::Ascending);
        all.map(|record| {
            let record = record.unwrap();
            let body = match reader.body(record.seq).unwrap() {
                BodyState::Present { bytes, .. } => String::from_utf8(bytes).unwrap(),
                _ => String::new(),
            };
            (record.envelope, body)
        })
        .collect()
    }

    /// Kinds and codes of the records of a job, in order.
    pub(super) fn story(&self, job: &str) -> Vec<String> {
        let principal = format!("job:{job}");
        let own = self.records().into_iter().filter(|(envelope, _)| envelope.principal == principal);
        own.map(|(envelope, _)| {
            let effect = envelope.decision.map(|effect| effect.word().to_owned()).unwrap_or_default();
            let code = if envelope.kind.word() == "session" { String::new() } else { envelope.code };
            format!("{} {effect}{code}", envelope.kind.word())
        })
        .collect()
    }

    /// Body of the record that ended the only run of a job.
    pub(super) fn end(&self, job: &str) -> Json {
        let principal = format!("job:{job}");
        let mut ends = self
            .records()
            .into_iter()
            .filter(|(envelope, _)| envelope.principal == principal && envelope.kind.word() == "run");
        let (_, body) = ends.next().expect("an end");
        assert!(ends.next().is_none(), "one end");
        Json::parse(body.as_bytes()).unwrap().get("data").cloned().unwrap()
    }
}

pub(super) async fn exec(runner: &Runner, manifest: &Json, task: &str) -> Result<Execution, Refusal> {
    runner.exec(manifest, None, task, &Options::default(), &mut Cancel::never()).await
}

pub(super) fn code(result: &Result<Execution, Refusal>) -> Option<Code> {
    result.as_ref().err().map(|refusal| refusal.failure.code)
}

/// Manifest with one workflow `w` whose tasks are given as JSON.
pub(super) fn manifest(tasks: &str) -> Json {
    manifest_with(tasks, "")
}

/// Manifest with further top-level members.
pub(super) fn manifest_with(tasks: &str, more: &str) -> Json {
    let comma = if more.is_empty() { "" } else { "," };
    let text = format!(
        r#"{{"version":"0.2","workflows":[{{"id":"w","name":"W","tasks":[{tasks}]}}]{comma}{more}}}"#
    );
    Json::parse(text.as_bytes()).unwrap()
}

/// Shell task that runs a script, with further members.
pub(super) fn script(id: &str, script: &str, more: &str) -> String {
    shell(id, r#""sh""#, &format!(r#"["-c",{}]"#, Json::from(script)), more)
}

pub(super) fn shell(id: &str, program: &str, args: &str, more: &str) -> String {
    let when = if more.contains("\"trigger\"") { "" } else { r#","schedule":{"cron":"0 0 * * *"}"# };
    let more = if more.is_empty() { String::new() } else { format!(",{more}") };
    let shell = if program.is_empty() {
        String::new()
    } else {
        format!(r#","shell":{{"program":{program},"args":{args}}}"#)
    };
    format!(r#"{{"id":"{id}","name":"{id}","target":{{"session_target":"shell"}}{shell}{when}{more}}}"#)
}

/// Proof verifier with a fixed verdict.
pub(super) struct FixedProof(pub Result<(), Code>);

impl Proofs for FixedProof {
    fn verify<'a>(&'a self, _: Subject<'a>) -> BoxFuture<'a, Result<Json, Failure>> {
        let answer = match self.0 {
            Ok(()) => Ok(Json::object().with("verified", true)),
            Err(code) => Err(Failure::new(code, "the proof is no good")),
        };
        Box::pin(async move { answer })
    }
}

/// Authorization provider with a fixed verdict.
pub(super) struct Fixed(pub Verdict);

impl Authorizer for Fixed {
    fn evaluate<'a>(
        &'a self,
        _: Subject<'a>,
        _: Option<&'a dyn ResolvedIdentity>,
        _: &'a Json,
    ) -> BoxFuture<'a, Result<Authorized, Failure>> {
        let verdict = self.0;
        let summary = Json::object().with("provider", "fixed");
        let answer = Authorized { verdict, reason: "because".to_owned(), summary, is_weakened: false };
        Box::pin(async move { Ok(answer) })
    }
}

/// Signer whose key is lost while the task runs.
pub(super) struct NoSigner;

impl EvidenceSigner for NoSigner {
    fn check<'a>(&'a self, _: &'a Json) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async { Ok(()) })
    }

    fn sign<'a>(&'a self, _: &'a Json, _: &'a Json) -> BoxFuture<'a, Result<Json, Failure>> {
        Box::pin(async { Err(Failure::new(Code::EvidenceFailed, "there is no key")) })
    }
}

/// Identity with one planted secret, presented as variable, file and input.
#[derive(Clone, Default)]
pub(super) struct Planted {
    pub(super) secret: String,
    pub(super) trust: Option<TrustLevel>,
    pub(super) as_input: bool,
    /// What was cleaned: whether the run had succeeded.
    pub(super) cleaned: Arc<Mutex<Vec<bool>>>,
}

#[derive(Debug)]
struct PlantedFile(PathBuf, Arc<Mutex<Vec<bool>>>);

impl Cleanup for PlantedFile {
    fn clean(self: Box<Self>, succeeded: bool) {
        std::fs::remove_dir_all(&self.0).unwrap();
        self.1.lock().unwrap().push(succeeded);
    }
}

impl Identities for Planted {
    fn resolve<'a>(&'a self, _: Subject<'a>) -> BoxFuture<'a, Result<Box<dyn ResolvedIdentity>, Failure>> {
        let own: Box<dyn ResolvedIdentity> = Box::new(self.clone());
        Box::pin(async move { Ok(own) })
    }

    fn sweep(&self, _: &Path) {}
}

impl ResolvedIdentity for Planted {
    fn describe(&self) -> Json {
        Json::object().with("provider", "planted").with("careless", self.secret.as_str())
    }

    fn principal(&self) -> Option<String> {
        Some("agent://planted".to_owned())
    }

    fn trust(&self) -> Trust {
        Trust { declared: self.trust, effective: self.trust.unwrap_or(TrustLevel::Supervised) }
    }

    fn token(&self) -> Option<Secret> {
        Some(Secret::new(self.secret.as_str()))
    }

    fn secrets(&self) -> Vec<Secret> {
        vec![Secret::new(self.secret.as_str())]
    }

    fn present<'a>(
        &'a self,
        _: &'a EffectiveTask,
        folder: &'a Path,
    ) -> BoxFuture<'a, Result<Presented, Failure>> {
        let own = folder.join("planted");
        std::fs::create_dir(&own).unwrap();
        let file = own.join("token");
        std::fs::write(&file, &self.secret).unwrap();
        let presented = Presented {
            variables: vec![
                ("TOKEN".to_owned(), Secret::new(self.secret.as_str())),
                ("TOKEN_FILE".to_owned(), Secret::new(file.display().to_string())),
            ],
            stdin: self.as_input.then(|| Secret::new(self.secret.as_str())),
            values: vec![Secret::new(self.secret.as_str())],
            description: Json::Null,
            folder: Some(own.clone()),
            cleanup: Some(Box::new(PlantedFile(own, Arc::clone(&self.cleaned)))),
        };
        Box::pin(async move { Ok(presented) })
    }
}

/// Agents that answer with their prompt, reversed.
pub(super) struct Mirror;

impl AgentRuntime for Mirror {
    fn has(&self, agent_id: &str) -> bool {
        agent_id == "mirror"
    }

    fn run<'a>(&'a self, request: AgentRequest<'a>) -> BoxFuture<'a, Result<AgentAnswer, AgentFailure>> {
        let output: String = request.prompt.chars().rev().collect();
        Box::pin(async move {
            if output.is_empty() {
                std::future::pending::<()>().await;
            }
            Ok(AgentAnswer { is_ok: true, output, ..AgentAnswer::default() })
        })
    }
}

/// Timer whose waits end at once, and are remembered.
#[derive(Default)]
pub(super) struct Jumping {
    now: Mutex<Duration>,
    pub(super) waited: Mutex<Vec<Duration>>,
}

impl Timer for Jumping {
    fn elapsed(&self) -> Duration {
        *self.now.lock().unwrap()
    }

    fn until(&self, time: Duration) -> BoxFuture<'_, ()> {
        let mut now = self.now.lock().unwrap();
        if time > *now {
            self.waited.lock().unwrap().push(time.saturating_sub(*now));
            *now = time;
        }
        Box::pin(std::future::ready(()))
    }
}

/// Identity profile, and the member of a task that refers to it.
pub(super) const PROFILE: &str = r#""identity_profiles":[{"id":"i","provider":"env-bearer","auth":{"mode":"service","provider_config":{"token_env":"T"}}}]"#;
pub(super) const IDENTITY: &str = r#""identity":{"ref":"i"}"#;
