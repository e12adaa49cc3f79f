//! The owner's Unix socket: other processes on the same state directory relay their requests here.

use std::io::{BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_ledger::NotRecorded;
use proctor_ledger::note::{NoteError, NoteSignature};
use proctor_policy::body::sources_of;
use proctor_system::private::{self, PrivateError};

use crate::access::{local_caller, read_json};
use crate::approvers::{ApproverKeys, CredentialError};
use crate::orders::{self, Order, OrderError};
use crate::policy_watch;
use crate::relayed::{OwnDenies, RelayConnection, RelayConnections};
use crate::settings::Durability;
use crate::state_dir::StateDir;
use crate::turns::{Entered, MAX_RELAYS, Turns};
use crate::{AcceptRefusal, ApprovalRefusal, Engine, EngineError, Report, Spent};

/// Connections that are served at a time, those of commands and handshakes included; a further one is told to come again.
const MAX_CONNECTIONS: usize = MAX_RELAYS + 32;

/// Longest socket path that every system takes.
const MAX_SOCKET_PATH: usize = 100;

/// Time limit of a relay's handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause before another attempt to connect to an owner that has not accepted the connections before.
const FULL_PAUSE: Duration = Duration::from_millis(10);

/// Time that an ending process waits for relayed commands to be answered.
const LAST_COMMANDS: Duration = Duration::from_secs(2);

/// A door that relays reach over the owner's socket.
pub trait RelayedDoor: Send + Sync {
    /// The mode that a relay asks for.
    fn mode(&self) -> &'static str;

    /// Serves one connection until it ends.
    fn serve(&self, caller: Caller, input: BufReader<UnixStream>, output: UnixStream);

    /// [`RelayedDoor::serve`] for a door that notes its decisions with the connection, so that those which do not arrive are retracted.
    fn serve_relay(
        &self,
        connection: &RelayConnection,
        caller: Caller,
        input: BufReader<UnixStream>,
        output: UnixStream,
    ) {
        let _ = connection;
        self.serve(caller, input, output);
    }

    /// Carries out a single command of this door's; `None` if it has none of that name.
    fn command(&self, name: &str, command: &Json) -> Option<Json> {
        let _ = (name, command);
        None
    }
}

/// Error of making the owner's socket.
#[derive(Debug, thiserror::Error)]
pub enum OwnerError {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The socket or its link.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The folder of a long socket path is not private.
    #[error(transparent)]
    Folder(#[from] PrivateError),
}

/// Refusal of a relay's handshake.
#[derive(Debug, thiserror::Error)]
enum HandshakeError {
    /// The relay has another policy.
    #[error("the owner's policy is {owner}, the one given here is {asked}: use the same policy for both")]
    Policy {
        /// Digest of the policy in force.
        owner: Digest,
        /// Digest that the relay has.
        asked: String,
    },
    /// The relay asks for more durability than the owner gives.
    #[error(
        "the owner (process {pid}) records with durability `process`, and `power` is asked for here: start the owner with `power`, too"
    )]
    Durability {
        /// The owner's process id.
        pid: u32,
    },
    /// No door of this name.
    #[error("the owner has no door `{0}`: use the same version of Proctor for both")]
    Mode(String),
}

/// Error of a relayed command.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The command is unknown.
    #[error("unknown command `{0}`")]
    Unknown(String),
    /// A member is missing or cannot be read.
    #[error("`{member}` {problem}")]
    Member {
        /// The member.
        member: &'static str,
        /// Description of the mistake.
        problem: &'static str,
    },
    /// A signature line cannot be read.
    #[error(transparent)]
    Note(#[from] NoteError),
    /// The file of approvers cannot be used.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// The approval was not decided.
    #[error(transparent)]
    Approval(#[from] ApprovalRefusal),
    /// The policy was not accepted.
    #[error(transparent)]
    Policy(#[from] AcceptRefusal),
    /// The order was not carried out.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The engine did not record it.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The ledger did not take it.
    #[error(transparent)]
    NotRecorded(#[from] NotRecorded),
}

/// Starts listening. The lock on the state directory is held, so a socket file that lies there is stale.
pub(crate) fn listen(
    state: &StateDir,
    engine: Arc<Engine>,
    doors: Vec<Box<dyn RelayedDoor>>,
    policy: Option<PathBuf>,
) -> Result<(), OwnerError> {
    let link = state.socket();
    let path = socket_path(&link);
    let describe = |source: std::io::Error| OwnerError::Io { path: path.clone(), source };
    let _ = std::fs::remove_file(&path);
    if path != link {
        let _ = std::fs::remove_file(&link);
        if let Some(folder) = path.parent() {
            private::create_folder(folder)?;
        }
        std::os::unix::fs::symlink(&path, &link).map_err(describe)?;
    }
    let listener = UnixListener::bind(&path).map_err(describe)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(describe)?;
    let connections = RelayConnections::default();
    let turns = Turns::default();
    let owner = Arc::new(Owner { state: state.clone(), engine, doors, policy, connections, turns });
    std::thread::Builder::new()
        .name("owner".to_owned())
        .spawn(move || accept(&listener, &owner))
        .map_err(describe)?;
    Ok(())
}

/// The path that the owner's socket is bound to: one that is too long goes to a folder of this user's, under a digest.
pub fn socket_path(link: &Path) -> PathBuf {
    let absolute = std::path::absolute(link).unwrap_or_else(|_| link.to_owned());
    if absolute.as_os_str().len() <= MAX_SOCKET_PATH {
        return absolute;
    }
    let folder = match std::env::var_os("XDG_RUNTIME_DIR").filter(|value| !value.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => std::env::temp_dir().join(format!("proctor-{}", rustix::process::getuid().as_raw())),
    };
    let digest = Digest::of(absolute.as_os_str().as_encoded_bytes()).to_string();
    let short: String = digest.chars().take(32).collect();
    folder.join(format!("proctor-{short}.sock"))
}

/// Connects to the owner until the moment given. The link in the state directory names the socket, and the peer must be this user or root.
pub(crate) fn connect(link: &Path, until: Instant) -> std::io::Result<UnixStream> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
    let path = std::fs::read_link(link).unwrap_or_else(|_| socket_path(link));
    let address = SocketAddrUnix::new(path)?;
    // A blocking connect waits for as long as an owner that hangs does not accept.
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    loop {
        match rustix::net::connect(&socket, &address) {
            Err(rustix::io::Errno::AGAIN) if Instant::now() < until => std::thread::sleep(FULL_PAUSE),
            Err(rustix::io::Errno::INTR) => {}
            connected => break connected?,
        }
    }
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    let peer = rustix::net::sockopt::socket_peercred(&stream)?.uid;
    if peer != rustix::process::getuid() && !peer.is_root() {
        return Err(std::io::Error::new(
            std::io::ErrorKind::PermissionDenied,
            "the socket belongs to another user",
        ));
    }
    Ok(stream)
}

/// State that all connections share.
struct Owner {
    state: StateDir,
    engine: Arc<Engine>,
    doors: Vec<Box<dyn RelayedDoor>>,
    /// The files of the policy.
    policy: Option<PathBuf>,
    connections: RelayConnections,
    /// The relays that doors serve, and those that wait for their turn.
    turns: Turns<Relayed>,
}

/// A relay after its handshake's first half.
struct Relayed {
    uid: u32,
    hello: Json,
    input: BufReader<UnixStream>,
}

impl Relayed {
    /// Whether the other end is closed: the relay has stopped waiting.
    fn is_gone(&self) -> bool {
        use rustix::net::{RecvFlags, recv};
        let mut byte = [0u8; 1];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        recv(self.input.get_ref(), &mut byte, flags).is_ok_and(|(read, _)| read == 0)
    }
}

/// Refuses a connection in its handshake.
fn refuse(mut stream: &UnixStream, error: &str) {
    let answer = Json::object().with("ok", false).with("error", error);
    // One write for the whole line: half an answer is none.
    let _ = stream.write_all(format!("{answer}\n").as_bytes());
}

/// Tells a process that it may connect again in a moment.
fn refuse_for_now(mut stream: &UnixStream) {
    let answer = Json::object()
        .with("ok", false)
        .with("busy", true)
        .with("error", "the owner serves as many processes as it can: try again");
    let _ = stream.write_all(format!("{answer}\n").as_bytes());
}

fn accept(listener: &UnixListener, owner: &Arc<Owner>) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            // Out of descriptors, or the peer is gone already: a pause lets others close theirs.
            Err(_) => {
                std::thread::sleep(Duration::from_millis(50));
                continue;
            }
        };
        if open.fetch_add(1, Ordering::SeqCst) >= MAX_CONNECTIONS {
            open.fetch_sub(1, Ordering::SeqCst);
            refuse_for_now(&stream);
            continue;
        }
        let (owner, counted) = (Arc::clone(owner), Arc::clone(&open));
        let spawned = std::thread::Builder::new().name("relay".to_owned()).spawn(move || {
            // A panic ends one connection, and is on stderr.
            let _ = catch_unwind(AssertUnwindSafe(|| owner.serve(stream)));
            counted.fetch_sub(1, Ordering::SeqCst);
        });
        if spawned.is_err() {
            open.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Owner {
    fn serve(&self, stream: UnixStream) {
        let Ok(peer) = rustix::net::sockopt::socket_peercred(&stream) else { return };
        let uid = peer.uid.as_raw();
        if uid != rustix::process::getuid().as_raw() && uid != 0 {
            return;
        }
        let _ = stream.set_read_timeout(Some(HANDSHAKE_TIMEOUT));
        let mut input = BufReader::new(stream);
        let Ok(hello) = read_json(&mut input) else { return };
        let _ = input.get_ref().set_read_timeout(None);
        if let Err(refusal) = self.check(&hello) {
            return refuse(input.get_ref(), &refusal.to_string());
        }
        let mode = hello.get("mode").and_then(Json::as_str).unwrap_or_default();
        if mode == crate::access::COMMAND {
            return self.serve_commands(&hello, input);
        }
        // Lines for a door that this owner does not have must not be taken for commands.
        if self.door(mode).is_none() {
            let mode = proctor_core::printable::shown(mode, 100);
            return refuse(input.get_ref(), &HandshakeError::Mode(mode).to_string());
        }
        let relay = Relayed { uid, hello, input };
        let queued = |relay: &Relayed| {
            let line = format!("{}\n", Json::object().with("queued", true));
            let _ = relay.input.get_ref().write_all(line.as_bytes());
        };
        match self.turns.enter(relay, queued, Relayed::is_gone) {
            Entered::Now(relay) => self.serve_in_turn(relay),
            // A thread that serves another relay now takes it over.
            Entered::Queued => {}
            Entered::Full(relay) => refuse_for_now(relay.input.get_ref()),
        }
    }

    fn door(&self, mode: &str) -> Option<&dyn RelayedDoor> {
        self.doors.iter().find(|door| door.mode() == mode).map(AsRef::as_ref)
    }

    /// Serves a relay, and after it those that wait.
    fn serve_in_turn(&self, first: Relayed) {
        let mut relay = Some(first);
        while let Some(next) = relay {
            let _ = catch_unwind(AssertUnwindSafe(|| self.serve_relay(next)));
            relay = self.turns.leave();
        }
    }

    fn serve_relay(&self, relay: Relayed) {
        // The relay tells its denies on its next connection.
        if relay.is_gone() {
            return;
        }
        let Relayed { uid, hello, input } = relay;
        // The policy may have changed while it waited.
        if let Err(refusal) = self.check(&hello) {
            return refuse(input.get_ref(), &refusal.to_string());
        }
        let text = |name: &str| hello.get(name).and_then(Json::as_str).unwrap_or_default();
        let Some(door) = self.door(text("mode")) else { return };
        let Ok(writing) = input.get_ref().try_clone() else { return };
        self.connections.settle(&self.engine, &OwnDenies::from_hello(&hello));
        let answer = hello.get("answer_ms").and_then(Json::as_u64).map(Duration::from_millis);
        let connection = self.connections.add(answer);
        let handshake = self.handshake().with("connection", connection.id());
        if writeln!(&writing, "{handshake}").is_err() {
            return;
        }
        let caller = local_caller(uid, text("agent"), text("team"), text("org"));
        door.serve_relay(&connection, caller, input, writing);
    }

    fn serve_commands(&self, hello: &Json, mut input: BufReader<UnixStream>) {
        let Ok(mut writing) = input.get_ref().try_clone() else { return };
        self.connections.settle(&self.engine, &OwnDenies::from_hello(hello));
        if writeln!(writing, "{}", self.handshake()).is_err() {
            return;
        }
        while let Ok(command) = read_json(&mut input) {
            let _running = RunningCommand::begin();
            let answer = self.run(&command);
            // One write for the whole line: half an answer is none.
            if writing.write_all(format!("{answer}\n").as_bytes()).is_err() {
                return;
            }
        }
    }

    fn handshake(&self) -> Json {
        Json::object()
            .with("ok", true)
            .with("pid", std::process::id())
            .with("policy", self.engine.policy().digest().to_string())
    }

    /// Compares what a relay asks for with what the owner does.
    fn check(&self, hello: &Json) -> Result<(), HandshakeError> {
        if hello.get("power").and_then(Json::as_bool) == Some(true)
            && self.engine.ledger().durability() == Durability::Process
        {
            return Err(HandshakeError::Durability { pid: std::process::id() });
        }
        let Some(asked) = hello.get("policy").and_then(Json::as_str) else { return Ok(()) };
        // A relay that has read a weaker policy is served under the one that stays in force.
        let waits = || self.engine.waiting_policy().is_some_and(|waiting| waiting.to_string() == asked);
        let is_other = || asked != self.engine.policy().digest().to_string() && !waits();
        // The files may have changed since the last look.
        if is_other()
            && let Some(path) = &self.policy
        {
            policy_watch::look_again(path, &self.engine);
        }
        if is_other() {
            let owner = self.engine.policy().digest();
            return Err(HandshakeError::Policy { owner, asked: asked.to_owned() });
        }
        Ok(())
    }

    fn run(&self, command: &Json) -> Json {
        let name = command.get("op").and_then(Json::as_str).unwrap_or_default();
        if let Some(answer) = self.doors.iter().find_map(|door| door.command(name, command)) {
            return answer;
        }
        let answer = run(command, &self.state, &self.engine);
        answer.unwrap_or_else(|error| Json::object().with("error", error.to_string()))
    }
}

/// The number of commands of other processes that are being carried out, and its changes.
static RUNNING: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

/// Counts one command for as long as it lives.
struct RunningCommand;

impl RunningCommand {
    fn begin() -> RunningCommand {
        *RUNNING.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        RunningCommand
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        *RUNNING.0.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        RUNNING.1.notify_all();
    }
}

/// Waits until commands of other processes are answered, at most two seconds, before this process ends.
pub fn drain_commands() {
    let running = RUNNING.0.lock().unwrap_or_else(PoisonError::into_inner);
    drop(RUNNING.1.wait_timeout_while(running, LAST_COMMANDS, |running| *running > 0));
}

/// Carries out a command; those that run in the owner's own process come here too.
pub fn run(command: &Json, state: &StateDir, engine: &Engine) -> Result<Json, CommandError> {
    let text = |name: &str| command.get(name).and_then(Json::as_str).unwrap_or_default();
    let uid = rustix::process::getuid().as_raw();
    let by = format!("uid:{uid}");
    match text("op") {
        "approve" => approve(text("signed"), state, engine),
        "accept_policy" => accept_policy(command, state, engine),
        "erase" => {
            let sequence = engine.erase(number(command, "seq")?, text("by"), text("reason"))?;
            Ok(Json::object().with("seq", sequence))
        }
        "checkpoint" => Ok(Json::object().with("note", engine.ledger().checkpoint()?)),
        "cosign" => cosign(command, engine),
        "agent" => {
            let order = Order::from_word(text("order"))
                .ok_or_else(|| OrderError::UnknownOrder(text("order").to_owned()))?;
            Ok(orders::order(engine, text("agent"), order, text("reason"), &by)?)
        }
        "operation" => Ok(orders::operate(engine, text("operation"), text("order"), text("reason"), &by)?),
        "observe" => {
            let caller = local_caller(uid, text("as"), text("team"), text("org"));
            let data = command.get("data").cloned().unwrap_or_default();
            let report = Report::Observation {
                code: text("code").to_owned(),
                data,
                alarms: Vec::new(),
                spent: Spent::default(),
            };
            let receipt = engine.report(&caller, text("agent"), text("session"), text("door"), report)?;
            Ok(Json::object().with("seq", receipt.seq()))
        }
        other => Err(CommandError::Unknown(other.to_owned())),
    }
}

fn number(command: &Json, member: &'static str) -> Result<u64, CommandError> {
    let found = command.get(member).and_then(Json::as_u64);
    found.ok_or(CommandError::Member { member, problem: "is missing" })
}

fn approve(signed: &str, state: &StateDir, engine: &Engine) -> Result<Json, CommandError> {
    let keys = ApproverKeys::read(&state.approvers_file(), engine.ledger().key().name())?;
    let (order, sequence) = engine.decide_approval(signed, &keys)?;
    Ok(Json::object()
        .with("approval_id", order.statement.approval.to_string())
        .with("verdict", order.statement.decision.word())
        .with("approver", order.approver)
        .with("seq", sequence))
}

fn accept_policy(command: &Json, state: &StateDir, engine: &Engine) -> Result<Json, CommandError> {
    let keys = ApproverKeys::read(&state.approvers_file(), engine.ledger().key().name())?;
    let signed = command.get("signed").and_then(Json::as_str).unwrap_or_default();
    let sources = sources_of(command)
        .map_err(|_| CommandError::Member { member: "sources", problem: "cannot be read" })?;
    let (approver, sequence) = engine.accept_policy(signed, sources, &keys)?;
    Ok(Json::object()
        .with("policy", engine.policy().digest().to_string())
        .with("approver", approver)
        .with("seq", sequence))
}

fn cosign(command: &Json, engine: &Engine) -> Result<Json, CommandError> {
    let text = |name: &str| command.get(name).and_then(Json::as_str).unwrap_or_default();
    let size = number(command, "size")?;
    let signature = NoteSignature::parse(text("line"))?;
    let witness = text("witness")
        .parse()
        .map_err(|_| CommandError::Member { member: "witness", problem: "is not a verifier key" })?;
    Ok(Json::object().with("note", engine.ledger().add_cosignature(size, signature, &witness)?))
}
