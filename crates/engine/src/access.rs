//! Opening a state directory: as its owner, or through the process that owns it.

use std::io::{BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_ledger::{Ledger, OpenError, Options, ReadError, Reader};
use proctor_policy::document::Problem;
use proctor_policy::policy::{Policy, Source};
use proctor_system::{RealPaths, SystemClock, SystemRandomness};

use crate::owner::{self, OwnerError, RelayedDoor};
use crate::policy_files;
use crate::settings::Settings;
use crate::state_dir::{StateDir, StateDirError};
use crate::{Engine, EngineError, Parts};
use proctor_net::lines::{self, Line};

/// Access to the ledger of a state directory: as its owner, or through the owner.
pub enum Access {
    /// The owner is this process.
    Owner(Arc<Engine>),
    /// The owner is another process.
    Relay(Relay),
}

/// A connection to the owner.
pub struct Relay {
    /// Writing half, for requests.
    pub stream: UnixStream,
    /// Reading half, for answers.
    pub answers: BufReader<UnixStream>,
}

/// The mode of a connection that carries single commands; other modes are the names of doors.
pub const COMMAND: &str = "command";

/// The mode of a connection that carries lines of test runs, and the name of their door.
pub const TEST_RUNS: &str = "atp";

/// The policy of test runs when none is configured: the tools that a suite gives its runs, and nothing for anybody else.
const TEST_RUNS_POLICY: &str = r#"version: "1"
default: deny
rules:
  - id: tools-of-test-runs
    when: action.kind == "tool_call" && agent.principal.matches("^uid:[0-9]+/run-[0-9a-f-]{36}$")
    then: allow
"#;

/// Error of opening a state directory.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The directory or its keys cannot be used.
    #[error(transparent)]
    StateDir(#[from] StateDirError),
    /// The ledger cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The policy has mistakes.
    #[error("{}", list(.0))]
    Policy(Vec<Problem>),
    /// The engine did not start.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The owner's socket cannot be made.
    #[error(transparent)]
    Socket(#[from] OwnerError),
    /// The owner refused the connection.
    #[error("{0}")]
    Refused(String),
    /// A process holds the lock and does not answer.
    #[error("{} is owned by a process that does not answer", .0.display())]
    NotAnswering(PathBuf),
}

fn list(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Error of a relayed request.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// The connection broke.
    #[error("the owner is gone: {0}")]
    Gone(std::io::Error),
    /// The line that came back cannot be read.
    #[error(transparent)]
    Unreadable(#[from] LineError),
    /// The owner did not carry the command out.
    #[error("{0}")]
    Refused(String),
}

/// Error of reading a line between owner and relay.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// The line is not JSON.
    #[error("{0}")]
    Json(String),
    /// The line is over the limit.
    #[error("the answer is too long")]
    TooLong,
    /// The connection ended without a line.
    #[error("the connection was closed")]
    Closed,
    /// Reading failed.
    #[error("{0}")]
    Io(std::io::Error),
}

/// The longest line between an owner and its relays: a whole trace with its verdicts.
const MAX_RELAY_LINE: usize = 16 << 20;

/// Time limit of the owner's handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Time limit of a command at the owner.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

impl Access {
    /// Becomes the owner, or connects to it for `mode`: [`COMMAND`], or the name of a door. The owner's policy decides: a relay that was
    /// given another one is refused. `doors` are what the owner serves to relays besides commands.
    pub fn open(
        settings: &Settings,
        mode: &str,
        doors: impl FnOnce(&Arc<Engine>) -> Vec<Box<dyn RelayedDoor>>,
    ) -> Result<Access, AccessError> {
        let state = StateDir::new(&settings.state);
        if state.create(&SystemRandomness)? {
            let key = state.key()?.verifier_key().to_string();
            log::info!("made state directory {} (ledger {key})", settings.state.display());
        }
        // The owner may end between the two attempts, so a few rounds are made.
        for _ in 0..5 {
            match open_ledger(settings, &state) {
                Ok(ledger) => return own(settings, &state, ledger, mode, doors).map(Access::Owner),
                Err(OpenError::Owned { pid }) => match connect(settings, &state, mode) {
                    Ok(relay) => return Ok(Access::Relay(relay)),
                    Err(ConnectError::Refused(refusal)) => return Err(refusal),
                    Err(ConnectError::NotThere(reason)) => {
                        std::thread::sleep(Duration::from_millis(100));
                        let pid = pid.map_or_else(String::new, |pid| format!(" (process {pid})"));
                        log::warn!("the owner{pid} does not answer: {reason}");
                    }
                },
                Err(error) => return Err(error.into()),
            }
        }
        Err(AccessError::NotAnswering(settings.state.clone()))
    }
}

/// Creates the ledger of an existing state directory, unless it has one.
pub fn create_ledger(settings: &Settings) -> Result<(), OpenError> {
    match open_ledger(settings, &StateDir::new(&settings.state)) {
        Ok(ledger) => {
            ledger.close();
            Ok(())
        }
        Err(OpenError::Owned { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

fn open_ledger(settings: &Settings, state: &StateDir) -> Result<Ledger, OpenError> {
    let key = state.key().map_err(|error| OpenError::UnusableKey {
        name: "ledger.key".to_owned(),
        reason: error.to_string(),
    })?;
    let mut options = Options::new(key, Arc::new(SystemClock), Arc::new(SystemRandomness));
    options.durability = settings.durability;
    Ledger::open(state.path(), options)
}

fn own(
    settings: &Settings,
    state: &StateDir,
    ledger: Ledger,
    mode: &str,
    doors: impl FnOnce(&Arc<Engine>) -> Vec<Box<dyn RelayedDoor>>,
) -> Result<Arc<Engine>, AccessError> {
    let parts = Parts {
        ledger,
        policy: match &settings.policy {
            None if mode == TEST_RUNS => test_runs_policy()?,
            _ => load_policy(settings)?,
        },
        secret: state.secret()?,
        clock: Arc::new(SystemClock),
        randomness: Arc::new(SystemRandomness),
        resolver: Some(Box::new(RealPaths)),
        answer: settings.answer,
    };
    let engine = Arc::new(Engine::start(parts)?);
    owner::listen(state, Arc::clone(&engine), doors(&engine))?;
    Ok(engine)
}

/// Loads the configured policy; the closed one if none is configured.
pub fn load_policy(settings: &Settings) -> Result<Policy, AccessError> {
    match &settings.policy {
        Some(path) => policy_files::load(path).map_err(AccessError::Policy),
        None => {
            log::warn!("no policy is configured: every action is denied (see `proctor init`)");
            Ok(Policy::closed())
        }
    }
}

fn test_runs_policy() -> Result<Policy, AccessError> {
    let source = Source::document("policy of test runs", TEST_RUNS_POLICY);
    Policy::compile(vec![source]).map_err(AccessError::Policy)
}

enum ConnectError {
    NotThere(String),
    Refused(AccessError),
}

fn connect(settings: &Settings, state: &StateDir, mode: &str) -> Result<Relay, ConnectError> {
    let not_there = |error: std::io::Error| ConnectError::NotThere(error.to_string());
    let mut stream = owner::connect(&state.socket()).map_err(not_there)?;
    stream.set_read_timeout(Some(HANDSHAKE_TIMEOUT)).map_err(not_there)?;
    let mut hello = Json::object()
        .with("hello", 1u8)
        .with("mode", mode)
        .with("agent", settings.agent.as_str())
        .with("team", settings.team.as_str())
        .with("org", settings.org.as_str());
    if let Some(path) = &settings.policy
        && mode != COMMAND
    {
        let policy = policy_files::load(path)
            .map_err(|problems| ConnectError::Refused(AccessError::Policy(problems)))?;
        hello.push("policy", policy.digest().to_string());
    }
    writeln!(stream, "{hello}").map_err(not_there)?;
    let mut answers = BufReader::new(stream.try_clone().map_err(not_there)?);
    let answer = read_json(&mut answers).map_err(|error| ConnectError::NotThere(error.to_string()))?;
    if answer.get("ok").and_then(Json::as_bool) != Some(true) {
        let reason = answer.get("error").and_then(Json::as_str).unwrap_or("the owner refused");
        return Err(ConnectError::Refused(AccessError::Refused(reason.to_owned())));
    }
    stream.set_read_timeout(None).map_err(not_there)?;
    Ok(Relay { stream, answers })
}

impl Relay {
    /// Sends one command and waits for its answer.
    pub fn command(&mut self, command: &Json) -> Result<Json, RelayError> {
        self.stream.set_read_timeout(Some(COMMAND_TIMEOUT)).map_err(RelayError::Gone)?;
        writeln!(self.stream, "{command}").map_err(RelayError::Gone)?;
        let answer = read_json(&mut self.answers)?;
        match answer.get("error").and_then(Json::as_str) {
            Some(error) => Err(RelayError::Refused(error.to_owned())),
            None => Ok(answer),
        }
    }
}

/// Reads one line of JSON.
pub(crate) fn read_json(input: &mut BufReader<UnixStream>) -> Result<Json, LineError> {
    match lines::read(input, MAX_RELAY_LINE) {
        Ok(Some(Line::Text(line))) => Json::parse(&line).map_err(|error| LineError::Json(error.to_string())),
        Ok(Some(Line::TooLong(_))) => Err(LineError::TooLong),
        Ok(None) => Err(LineError::Closed),
        Err(error) => Err(LineError::Io(error)),
    }
}

/// The caller for a process of this machine: its uid, with the configured agent name.
pub fn local_caller(uid: u32, agent: &str, team: &str, org: &str) -> Caller {
    let principal = if agent.is_empty() { format!("uid:{uid}") } else { format!("uid:{uid}/{agent}") };
    Caller { principal, team: team.to_owned(), org: org.to_owned() }
}

/// Opens an existing ledger for reading; no owner is needed.
pub fn open_reader(path: &Path) -> Result<Reader, ReadError> {
    Reader::open(path)
}
