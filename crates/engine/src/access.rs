//! Opening a state directory: as its owner, or through the process that owns it.

use std::io::{BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_ledger::{Ledger, OpenError, Options, ReadError, Reader};
use proctor_policy::document::Problem;
use proctor_policy::policy::{Policy, Source, sources_digest};
use proctor_system::{RealPaths, SystemClock, SystemRandomness};

use crate::owner::{self, OwnerError, RelayedDoor};
use crate::policy_files;
use crate::relayed::OwnDenies;
use crate::settings::{Durability, Settings};
use crate::state_dir::{StateDir, StateDirError};
use crate::turns::MAX_RELAYS;
use crate::{Engine, EngineError, Parts, PolicyGuard};
use proctor_net::budget;
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
    /// The owner's name of this connection.
    pub connection: String,
}

/// Request for access to a state directory.
#[derive(Debug, Clone, Default)]
pub struct Opening<'a> {
    /// [`COMMAND`], or the name of a door.
    pub mode: &'a str,
    /// The moment after which an owner is not waited for any more; none: ten seconds from now.
    pub until: Option<Instant>,
    /// Denies that this process answered by itself since it last reached an owner.
    pub denies: OwnDenies,
    /// Whether a weaker policy is loaded with an alarm, also where there are approvers.
    pub loads_weaker: bool,
}

/// The mode of a connection that carries single commands; other modes are the names of doors.
pub const COMMAND: &str = "command";

/// The mode of a connection that carries lines of test runs, and the name of their door.
pub const TEST_RUNS: &str = "atp";

/// Bytes of the database that a suite run keeps in memory: it appends, and reads little of what it has written. With the usual cache its memory
/// would grow with the number of tests.
const TEST_RUNS_CACHE: usize = 1 << 20;

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
    #[error("{} is owned by {}, which did not answer within {} ms", path.display(), process(*pid), waited.as_millis())]
    NotAnswering {
        /// The state directory.
        path: PathBuf,
        /// The owner's process id, when it could be read.
        pid: Option<u32>,
        /// The time that it was waited for.
        waited: Duration,
    },
    /// The owner serves others, and this process's turn did not come.
    #[error(
        "{} is owned by {}, which serves {MAX_RELAYS} other processes; none of them ended within {} ms",
        path.display(), process(*pid), waited.as_millis()
    )]
    Busy {
        /// The state directory.
        path: PathBuf,
        /// The owner's process id, when it could be read.
        pid: Option<u32>,
        /// The time that was waited.
        waited: Duration,
    },
    /// A process holds the lock and cannot be connected to.
    #[error("{} is owned by {}, which cannot be reached: {reason}", path.display(), process(*pid))]
    Unreachable {
        /// The state directory.
        path: PathBuf,
        /// The owner's process id, when it could be read.
        pid: Option<u32>,
        /// The last attempt's error.
        reason: String,
    },
}

impl AccessError {
    /// Whether another process owns the directory and could not be asked in time: a later attempt may succeed.
    pub fn is_unreached(&self) -> bool {
        matches!(
            self,
            AccessError::NotAnswering { .. } | AccessError::Busy { .. } | AccessError::Unreachable { .. }
        )
    }
}

fn process(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
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

/// Time in which an owner must be reached by a process that names no moment.
const REACH_TIMEOUT: Duration = Duration::from_secs(10);

/// The shortest time limit of a handshake, however little time is left.
const SHORTEST_HANDSHAKE: Duration = Duration::from_millis(50);

/// Attempts to reach one owner that cannot be connected to.
const ATTEMPTS: usize = 5;

/// Pause between two attempts.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);

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
        Access::open_within(settings, &Opening { mode, ..Opening::default() }, doors)
    }

    /// [`Access::open`] with a time limit, for a process that may have denies to tell the owner of.
    pub fn open_within(
        settings: &Settings,
        opening: &Opening<'_>,
        doors: impl FnOnce(&Arc<Engine>) -> Vec<Box<dyn RelayedDoor>>,
    ) -> Result<Access, AccessError> {
        let state = StateDir::new(&settings.state);
        // A policy with mistakes must not leave a new state directory behind.
        let mut policy = match &settings.policy {
            Some(_) if !state.exists() => Some(load_policy(settings)?),
            _ => None,
        };
        if state.create(&SystemRandomness)? {
            let key = state.key()?.verifier_key().to_string();
            log::info!("made state directory {} (ledger {key})", settings.state.display());
        }
        // One limit for everything that reaching an owner takes: connecting, waiting for a turn, handshakes, further attempts.
        let start = Instant::now();
        let until = opening.until.unwrap_or(start + REACH_TIMEOUT);
        let path = || settings.state.clone();
        // The owner may end between the two attempts, so a few rounds are made; a new owner is a new reason to try, since
        // short-lived commands take turns at the lock.
        let mut owner = None;
        let mut attempts = 0;
        loop {
            let (pid, reason) = match open_ledger(settings, &state, opening.mode) {
                Ok(ledger) => {
                    let policy = match (policy.take(), &settings.policy) {
                        (Some(policy), _) => policy,
                        (None, None) if opening.mode == TEST_RUNS => test_runs_policy()?,
                        // Commands ask for no decision, so that nobody misses a policy.
                        (None, None) if opening.mode == COMMAND => Policy::closed(),
                        (None, _) => load_policy(settings)?,
                    };
                    let guard = policy_guard(&state, opening);
                    let engine = own(settings, &state, (ledger, policy, guard), doors)?;
                    engine.ledger().note_unrecorded_many(opening.denies.count);
                    return Ok(Access::Owner(engine));
                }
                Err(OpenError::Owned { pid }) => match connect(settings, &state, opening, until) {
                    Ok(relay) => return Ok(Access::Relay(relay)),
                    Err(ConnectError::Refused(refusal)) => return Err(refusal),
                    Err(ConnectError::Silent) => {
                        return Err(AccessError::NotAnswering { path: path(), pid, waited: start.elapsed() });
                    }
                    Err(ConnectError::Busy) if until <= Instant::now() => {
                        return Err(AccessError::Busy { path: path(), pid, waited: start.elapsed() });
                    }
                    // An owner that asks to come again is alive: this attempt does not count.
                    Err(ConnectError::Busy) => {
                        std::thread::sleep(BETWEEN_ATTEMPTS);
                        continue;
                    }
                    Err(ConnectError::NotThere(reason)) => (pid, reason),
                },
                Err(error) => return Err(error.into()),
            };
            attempts = if owner == Some(pid) { attempts + 1 } else { 1 };
            owner = Some(pid);
            if attempts == ATTEMPTS || until <= Instant::now() {
                return Err(AccessError::Unreachable { path: path(), pid, reason });
            }
            std::thread::sleep(BETWEEN_ATTEMPTS);
        }
    }
}

/// Creates the ledger of an existing state directory, unless it has one.
pub fn create_ledger(settings: &Settings) -> Result<(), OpenError> {
    match open_ledger(settings, &StateDir::new(&settings.state), COMMAND) {
        Ok(ledger) => {
            ledger.close();
            Ok(())
        }
        Err(OpenError::Owned { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

fn open_ledger(settings: &Settings, state: &StateDir, mode: &str) -> Result<Ledger, OpenError> {
    let key = state.key().map_err(|error| OpenError::UnusableKey {
        name: "ledger.key".to_owned(),
        reason: error.to_string(),
    })?;
    let mut options = Options::new(key, Arc::new(SystemClock), Arc::new(SystemRandomness));
    options.durability = settings.durability;
    if mode == TEST_RUNS {
        options.cache_bytes = TEST_RUNS_CACHE;
    }
    let ledger = Ledger::open(state.path(), options)?;
    state.ledger_made();
    Ok(ledger)
}

fn own(
    settings: &Settings,
    state: &StateDir,
    (ledger, policy, guard): (Ledger, Policy, PolicyGuard),
    doors: impl FnOnce(&Arc<Engine>) -> Vec<Box<dyn RelayedDoor>>,
) -> Result<Arc<Engine>, AccessError> {
    let parts = Parts {
        ledger,
        policy,
        secret: state.secret()?,
        clock: Arc::new(SystemClock),
        randomness: Arc::new(SystemRandomness),
        resolver: Some(Box::new(RealPaths)),
        answer: settings.answer,
    };
    let engine = Arc::new(Engine::start_guarded(parts, guard)?.with_workspaces(settings.workspaces.clone()));
    owner::listen(state, Arc::clone(&engine), doors(&engine), settings.policy.clone())?;
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

fn policy_guard(state: &StateDir, opening: &Opening<'_>) -> PolicyGuard {
    PolicyGuard { approvers: (!opening.loads_weaker).then(|| state.approvers_file()) }
}

/// Digest of the policy of test runs: it is no file that somebody could change, so it is not compared with others.
pub(crate) fn built_in_policy() -> Digest {
    sources_digest(&test_runs_sources())
}

fn test_runs_sources() -> Vec<Source> {
    vec![Source::document("policy of test runs", TEST_RUNS_POLICY)]
}

fn test_runs_policy() -> Result<Policy, AccessError> {
    Policy::compile(test_runs_sources()).map_err(AccessError::Policy)
}

enum ConnectError {
    /// The owner took the connection, and did not answer in time.
    Silent,
    /// The owner serves others, and this process has to wait for longer than it can.
    Busy,
    /// The owner cannot be connected to, or closed the connection.
    NotThere(String),
    /// The owner answered with a refusal.
    Refused(AccessError),
}

fn connect(
    settings: &Settings,
    state: &StateDir,
    opening: &Opening<'_>,
    until: Instant,
) -> Result<Relay, ConnectError> {
    let not_there = |error: std::io::Error| ConnectError::NotThere(error.to_string());
    let mode = opening.mode;
    let mut hello = Json::object()
        .with("hello", 1u8)
        .with("mode", mode)
        .with("agent", settings.agent.as_str())
        .with("team", settings.team.as_str())
        .with("org", settings.org.as_str());
    if mode != COMMAND {
        hello.push("answer_ms", u64::try_from(settings.answer.as_millis()).unwrap_or(u64::MAX));
        hello.push("power", settings.durability == Durability::Power);
    }
    opening.denies.add_to(&mut hello);
    if let Some(path) = &settings.policy
        && mode != COMMAND
    {
        let policy = policy_files::load(path)
            .map_err(|problems| ConnectError::Refused(AccessError::Policy(problems)))?;
        hello.push("policy", policy.digest().to_string());
    }
    let mut stream = owner::connect(&state.socket(), until).map_err(not_there)?;
    let limit = || until.saturating_duration_since(Instant::now()).max(SHORTEST_HANDSHAKE);
    stream.set_write_timeout(Some(limit())).map_err(not_there)?;
    writeln!(stream, "{hello}").map_err(not_there)?;
    let mut answers = BufReader::new(stream.try_clone().map_err(not_there)?);
    let mut is_queued = false;
    let answer = loop {
        stream.set_read_timeout(Some(limit())).map_err(not_there)?;
        let answer = read_json(&mut answers).map_err(|error| match error {
            LineError::Io(error) if is_timeout(&error) && is_queued => ConnectError::Busy,
            LineError::Io(error) if is_timeout(&error) => ConnectError::Silent,
            other => ConnectError::NotThere(other.to_string()),
        })?;
        if answer.get("queued").and_then(Json::as_bool) != Some(true) {
            break answer;
        }
        is_queued = true;
    };
    if answer.get("busy").and_then(Json::as_bool) == Some(true) {
        return Err(ConnectError::Busy);
    }
    if answer.get("ok").and_then(Json::as_bool) != Some(true) {
        let reason = answer.get("error").and_then(Json::as_str).unwrap_or("the owner refused");
        return Err(ConnectError::Refused(AccessError::Refused(reason.to_owned())));
    }
    stream.set_read_timeout(None).map_err(not_there)?;
    stream.set_write_timeout(None).map_err(not_there)?;
    let connection = answer.get("connection").and_then(Json::as_str).unwrap_or_default().to_owned();
    Ok(Relay { stream, answers, connection })
}

/// Whether a read ended because its time limit passed.
pub fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
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
    match lines::read_within(input, MAX_RELAY_LINE, budget::unfinished()) {
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

/// Principal of the holder of a token.
pub fn token_principal(name: &str) -> String {
    format!("agent:{name}")
}

/// Opens an existing ledger for reading; no owner is needed.
pub fn open_reader(path: &Path) -> Result<Reader, ReadError> {
    Reader::open(path)
}
