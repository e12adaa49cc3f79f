//! The owner's socket: other `proctor` processes on the same state directory talk to the owner here.

use std::io::{BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proctor_core::digest::Digest;
use proctor_core::json::Json;

use proctor_ledger::note::NoteSignature;

use proctor_clients::ahp::server::{Peer, StreamLimits};

use crate::access::{Owner, local_caller, read_json};
use crate::agents::{self, Order};
use crate::approver::ApproverKeys;
use crate::doors::ahp::AhpDoor;
use crate::engine::{Engine, Report, Spent};
use crate::gate;
use crate::state_dir::StateDir;

/// Connections at a time; more are closed at once.
const MAX_CONNECTIONS: usize = 64;

/// Longest socket path that every system takes.
const MAX_SOCKET_PATH: usize = 100;

/// Starts listening. The lock on the state directory is held, so a socket that lies there belongs to nobody.
pub fn listen(state: &StateDir, owner: Owner) -> Result<(), String> {
    let link = state.socket();
    let path = socket_path(&link);
    let describe = |error: std::io::Error| format!("{}: {error}", path.display());
    let _ = std::fs::remove_file(&path);
    if path != link {
        let _ = std::fs::remove_file(&link);
        if let Some(folder) = path.parent() {
            private_folder(folder)?;
        }
        std::os::unix::fs::symlink(&path, &link).map_err(describe)?;
    }
    let listener = UnixListener::bind(&path).map_err(describe)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(describe)?;
    let state = state.clone();
    std::thread::Builder::new()
        .name("owner".to_owned())
        .spawn(move || accept(&listener, &state, &owner))
        .map_err(|error| error.to_string())?;
    Ok(())
}

/// Where the owner's socket lies: a path that is too long goes to a folder of this user's, under a digest.
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

/// Connects to the owner. The link in the state directory says where it listens, and whoever answers must be this user or root.
pub fn connect(link: &Path) -> std::io::Result<UnixStream> {
    let path = std::fs::read_link(link).unwrap_or_else(|_| socket_path(link));
    let stream = UnixStream::connect(path)?;
    let peer = rustix::net::sockopt::socket_peercred(&stream)?.uid;
    if peer != rustix::process::getuid() && !peer.is_root() {
        return Err(std::io::Error::new(
            std::io::ErrorKind::PermissionDenied,
            "the socket belongs to another user",
        ));
    }
    Ok(stream)
}

/// Makes a folder that only this user can use; one that others can is refused.
pub fn private_folder(folder: &Path) -> Result<(), String> {
    let describe = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(describe)?;
    let found = std::fs::symlink_metadata(folder).map_err(describe)?;
    if !found.is_dir() || found.uid() != rustix::process::getuid().as_raw() || found.mode() & 0o022 != 0 {
        return Err(format!("{}: others can write there, so no socket is put into it", folder.display()));
    }
    Ok(())
}

fn accept(listener: &UnixListener, state: &StateDir, owner: &Owner) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            // Out of descriptors, or the peer is gone already: the next one may fare better.
            Err(_) => {
                std::thread::sleep(Duration::from_millis(50));
                continue;
            }
        };
        if open.fetch_add(1, Ordering::SeqCst) >= MAX_CONNECTIONS {
            open.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        let (state, owner, counted) = (state.clone(), owner.clone(), Arc::clone(&open));
        let spawned = std::thread::Builder::new().name("relay".to_owned()).spawn(move || {
            serve(&stream, &state, &owner);
            counted.fetch_sub(1, Ordering::SeqCst);
        });
        if spawned.is_err() {
            open.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

fn serve(stream: &UnixStream, state: &StateDir, owner: &Owner) {
    let engine = &owner.engine;
    let Ok(peer) = rustix::net::sockopt::socket_peercred(stream) else { return };
    let uid = peer.uid.as_raw();
    let own = rustix::process::getuid().as_raw();
    if uid != own && uid != 0 {
        return;
    }
    let (Ok(reading), Ok(mut writing)) = (stream.try_clone(), stream.try_clone()) else { return };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
    let mut input = BufReader::new(reading);
    let Ok(hello) = read_json(&mut input) else { return };
    let _ = stream.set_read_timeout(None);
    let policy = engine.policy().digest();
    if let Some(asked) = hello.get("policy").and_then(Json::as_str)
        && asked != policy.to_string()
    {
        let error = format!(
            "the owner's policy is {policy}, the one given here is {asked}: use the same, or leave `--policy` out"
        );
        let _ = writeln!(writing, "{}", Json::object().with("ok", false).with("error", error));
        return;
    }
    let greeting =
        Json::object().with("ok", true).with("pid", std::process::id()).with("policy", policy.to_string());
    if writeln!(writing, "{greeting}").is_err() {
        return;
    }
    let text = |name: &str| hello.get(name).and_then(Json::as_str).unwrap_or_default();
    if text("mode") == "gate" {
        let caller = local_caller(uid, text("agent"), text("team"), text("org"));
        gate::serve(engine, &caller, "gate", input, writing);
        return;
    }
    if text("mode") == "ahp" {
        let caller = local_caller(uid, text("agent"), text("team"), text("org"));
        relayed_ahp(&owner.ahp.for_user(caller), input, writing);
        return;
    }
    while let Ok(command) = read_json(&mut input) {
        let _busy = Busy::new();
        let answer = run(&command, state, engine).unwrap_or_else(|error| Json::object().with("error", error));
        // In one piece: half an answer is none.
        if writing.write_all(format!("{answer}\n").as_bytes()).is_err() {
            return;
        }
    }
}

/// Commands of other processes that are being carried out.
static COMMANDS: AtomicUsize = AtomicUsize::new(0);

/// One of them.
struct Busy;

impl Busy {
    fn new() -> Busy {
        COMMANDS.fetch_add(1, Ordering::SeqCst);
        Busy
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        COMMANDS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits a moment for commands of other processes to get their answers, before this process ends.
pub fn answer_commands() {
    let end = std::time::Instant::now() + Duration::from_secs(2);
    while COMMANDS.load(Ordering::SeqCst) > 0 && std::time::Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Speaks the Agent Harness Protocol with a process that relays it.
fn relayed_ahp(door: &AhpDoor, input: BufReader<UnixStream>, writing: UnixStream) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    let rest = std::io::Cursor::new(input.buffer().to_vec());
    let streams = (input.into_inner(), writing);
    runtime.block_on(async move {
        let (reading, writing) = streams;
        if reading.set_nonblocking(true).is_err() || writing.set_nonblocking(true).is_err() {
            return;
        }
        let (Ok(reading), Ok(writing)) =
            (tokio::net::UnixStream::from_std(reading), tokio::net::UnixStream::from_std(writing))
        else {
            return;
        };
        let reader = tokio::io::AsyncReadExt::chain(rest, reading);
        // A peer that goes away has nothing more to be told.
        let _ =
            door.server().serve_stream(Peer::this_process(), reader, writing, &StreamLimits::stdio()).await;
    });
}

/// Carries out a command; commands that run in the owner's own process come here too.
pub fn run(command: &Json, state: &StateDir, engine: &Engine) -> Result<Json, String> {
    let text = |name: &str| command.get(name).and_then(Json::as_str).unwrap_or_default();
    let by = format!("uid:{}", rustix::process::getuid().as_raw());
    match text("op") {
        "approve" => approve(text("signed"), state, engine),
        "erase" => {
            let sequence = command.get("seq").and_then(Json::as_u64).ok_or("`seq` is missing")?;
            engine
                .erase(sequence, text("by"), text("reason"))
                .map(|sequence| Json::object().with("seq", sequence))
        }
        "checkpoint" => {
            let note = engine.ledger().checkpoint().map_err(|problem| problem.to_string())?;
            Ok(Json::object().with("note", note))
        }
        "cosign" => cosign(command, engine),
        "agent" => {
            let order = Order::from_word(text("order"))
                .ok_or_else(|| format!("unknown order `{}`", text("order")))?;
            agents::order(engine, text("agent"), order, text("reason"), &by)
        }
        "operation" => agents::operate(engine, text("operation"), text("order"), text("reason"), &by),
        "check" => {
            let caller =
                local_caller(rustix::process::getuid().as_raw(), text("agent"), text("team"), text("org"));
            let due = gate::take(engine, &caller, "check", text("line").as_bytes());
            Ok(gate::finish(engine, due))
        }
        "observe" => {
            let caller =
                local_caller(rustix::process::getuid().as_raw(), text("as"), text("team"), text("org"));
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
        other => Err(format!("unknown command `{other}`")),
    }
}

fn approve(signed: &str, state: &StateDir, engine: &Engine) -> Result<Json, String> {
    let keys = ApproverKeys::read(&state.approvers_file(), engine.ledger().key().name())?;
    let (order, sequence) = engine.decide_approval(signed, &keys).map_err(|refusal| refusal.to_string())?;
    Ok(Json::object()
        .with("approval_id", order.statement.approval.to_string())
        .with("verdict", order.statement.verdict.word())
        .with("approver", order.approver)
        .with("seq", sequence))
}

fn cosign(command: &Json, engine: &Engine) -> Result<Json, String> {
    let text = |name: &str| command.get(name).and_then(Json::as_str).unwrap_or_default();
    let size = command.get("size").and_then(Json::as_u64).ok_or("`size` is missing")?;
    let signature = NoteSignature::parse(text("line")).map_err(|error| error.to_string())?;
    let witness = text("witness").parse().map_err(|_| "`witness` is not a verifier key".to_owned())?;
    let note =
        engine.ledger().add_cosignature(size, signature, &witness).map_err(|problem| problem.to_string())?;
    Ok(Json::object().with("note", note))
}
