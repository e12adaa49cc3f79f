//! Getting at a state directory: as its owner, or through the process that owns it.

use std::io::{BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_ledger::store::Durability as LedgerDurability;
use proctor_ledger::{Ledger, OpenError, Options};
use proctor_net::lines::{self, Line};
use proctor_policy::policy::Policy;

use crate::config::{Config, Durability};
use crate::doors::ahp::AhpDoor;
use crate::engine::{Engine, Parts};
use crate::failure::Failure;
use crate::owner;
use crate::policy_files;
use crate::state_dir::StateDir;
use crate::system::{RealPaths, SystemClock, SystemRandomness};

/// How this process gets at a state directory.
pub enum Access {
    /// It owns it.
    Owner(Owner),
    /// Another process does.
    Relay(Relay),
}

/// What an owner has.
#[derive(Clone)]
pub struct Owner {
    /// Decides and records.
    pub engine: Arc<Engine>,
    /// The door of the Agent Harness Protocol; one, because it knows which decisions are open.
    pub ahp: AhpDoor,
}

/// A connection to the owner.
pub struct Relay {
    /// Where requests go.
    pub stream: UnixStream,
    /// Where answers come from.
    pub answers: BufReader<UnixStream>,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Lines of the gate.
    Gate,
    /// Single commands.
    Command,
    /// Messages of the Agent Harness Protocol.
    Ahp,
}

/// The longest line between an owner and its relays: a whole trace with its verdicts.
const LONGEST: usize = 16 << 20;

/// How long the owner may take to say hello.
const HELLO: Duration = Duration::from_secs(5);

impl Access {
    /// Becomes the owner, or connects to it. The owner's policy decides: a relay that was given another one is refused.
    pub fn open(config: &Config, mode: Mode) -> Result<Access, Failure> {
        let state = StateDir::new(&config.state);
        let made = state.create(&SystemRandomness)?;
        if made {
            let key = state.key()?.verifier_key().to_string();
            crate::output::note(&format!("made state directory {} (ledger {key})", config.state.display()));
        }
        // The owner may end between the two attempts, so a few rounds are made.
        for _ in 0..5 {
            match open_ledger(config, &state) {
                Ok(ledger) => return own(config, &state, ledger),
                Err(OpenError::Owned { pid }) => match connect(config, &state, mode) {
                    Ok(relay) => return Ok(Access::Relay(relay)),
                    Err(Refusal::Refused(reason)) => return Err(Failure::from(reason)),
                    Err(Refusal::NotThere(reason)) => {
                        std::thread::sleep(Duration::from_millis(100));
                        crate::log::say(&format!(
                            "the owner{} does not answer: {reason}",
                            pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
                        ));
                    }
                },
                Err(error) => return Err(Failure::from(error.to_string())),
            }
        }
        Err(Failure::from(format!("{} is owned by a process that does not answer", config.state.display())))
    }
}

/// Makes the ledger of a state directory that is there, unless it has one.
pub fn make_ledger(config: &Config) -> Result<(), Failure> {
    match open_ledger(config, &StateDir::new(&config.state)) {
        Ok(ledger) => {
            ledger.close();
            Ok(())
        }
        // Somebody works with it.
        Err(OpenError::Owned { .. }) => Ok(()),
        Err(error) => Err(Failure::from(error.to_string())),
    }
}

fn open_ledger(config: &Config, state: &StateDir) -> Result<Ledger, OpenError> {
    let key =
        state.key().map_err(|reason| OpenError::UnusableKey { name: "ledger.key".to_owned(), reason })?;
    let mut options = Options::new(key, Arc::new(SystemClock), Arc::new(SystemRandomness));
    options.durability = match config.durability {
        Durability::Process => LedgerDurability::Process,
        Durability::Power => LedgerDurability::Power,
    };
    Ledger::open(state.path(), options)
}

fn own(config: &Config, state: &StateDir, ledger: Ledger) -> Result<Access, Failure> {
    let policy = load_policy(config)?;
    let parts = Parts {
        ledger,
        policy,
        secret: state.secret()?,
        clock: Arc::new(SystemClock),
        randomness: Arc::new(SystemRandomness),
        resolver: Some(Box::new(RealPaths)),
        answer: config.answer,
    };
    let engine = Arc::new(Engine::start(parts)?);
    crate::allocator::keep_for_work();
    let ahp = AhpDoor::new(Arc::clone(&engine), config.ahp.clone());
    let owner = Owner { engine, ahp };
    owner::listen(state, owner.clone())?;
    Ok(Access::Owner(owner))
}

/// The configured policy; the closed one if none is configured.
pub fn load_policy(config: &Config) -> Result<Policy, Failure> {
    match &config.policy {
        Some(path) => policy_files::load(path)
            .map_err(|problems| Failure::list(problems.iter().map(ToString::to_string))),
        None => {
            crate::output::note("no policy is configured: every action is denied (see `proctor init`)");
            Ok(Policy::closed())
        }
    }
}

enum Refusal {
    NotThere(String),
    Refused(String),
}

fn connect(config: &Config, state: &StateDir, mode: Mode) -> Result<Relay, Refusal> {
    let not_there = |error: std::io::Error| Refusal::NotThere(error.to_string());
    let mut stream = owner::connect(&state.socket()).map_err(not_there)?;
    stream.set_read_timeout(Some(HELLO)).map_err(not_there)?;
    let mut hello = Json::object()
        .with("hello", 1u8)
        .with(
            "mode",
            match mode {
                Mode::Gate => "gate",
                Mode::Command => "command",
                Mode::Ahp => "ahp",
            },
        )
        .with("agent", config.agent.as_str())
        .with("team", config.team.as_str())
        .with("org", config.org.as_str());
    if let Some(path) = &config.policy
        && mode != Mode::Command
    {
        let policy = policy_files::load(path).map_err(|problems| {
            Refusal::Refused(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
        })?;
        hello.push("policy", policy.digest().to_string());
    }
    writeln!(stream, "{hello}").map_err(not_there)?;
    let mut answers = BufReader::new(stream.try_clone().map_err(not_there)?);
    let answer = read_json(&mut answers).map_err(Refusal::NotThere)?;
    if answer.get("ok").and_then(Json::as_bool) != Some(true) {
        let reason = answer.get("error").and_then(Json::as_str).unwrap_or("the owner refused");
        return Err(Refusal::Refused(reason.to_owned()));
    }
    stream.set_read_timeout(None).map_err(not_there)?;
    Ok(Relay { stream, answers })
}

impl Relay {
    /// Sends one command and waits for its answer.
    pub fn command(&mut self, command: &Json) -> Result<Json, Failure> {
        let gone = |error: std::io::Error| Failure::from(format!("the owner is gone: {error}"));
        self.stream.set_read_timeout(Some(Duration::from_secs(60))).map_err(gone)?;
        writeln!(self.stream, "{command}").map_err(gone)?;
        let answer = read_json(&mut self.answers)?;
        match answer.get("error").and_then(Json::as_str) {
            Some(error) => Err(Failure::from(error)),
            None => Ok(answer),
        }
    }
}

/// Reads one line of JSON.
pub fn read_json(input: &mut BufReader<UnixStream>) -> Result<Json, String> {
    match lines::read(input, LONGEST) {
        Ok(Some(Line::Text(line))) => Json::parse(&line).map_err(|error| error.to_string()),
        Ok(Some(Line::TooLong(_))) => Err("the answer is too long".to_owned()),
        Ok(None) => Err("the connection was closed".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Who acts when this user runs a command: the uid, with the configured agent name.
pub fn local_caller(uid: u32, agent: &str, team: &str, org: &str) -> Caller {
    let principal = if agent.is_empty() { format!("uid:{uid}") } else { format!("uid:{uid}/{agent}") };
    Caller { principal, team: team.to_owned(), org: org.to_owned() }
}

/// A reader on a state directory that exists.
pub fn open_reader(path: &Path) -> Result<proctor_ledger::Reader, Failure> {
    proctor_ledger::Reader::open(path).map_err(|error| Failure::from(error.to_string()))
}
