//! The released binary as `aa-gateway`: started, asked, ended.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tonic::transport::Endpoint;

use crate::link::Link;
use crate::log::{Entry, entries};

/// The variable that says where the released binary is.
pub const BINARY: &str = "PROCTOR_RELEASE_BINARY";

/// Time limit of the gateway to start, and to end.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Line that the gateway prints once it can be called.
const READY: &str = "gRPC server listening on TCP";

/// The names that callers reach the gateway by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// TCP on loopback.
    Tcp,
    /// The Unix socket.
    Socket,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 2] = [Way::Tcp, Way::Socket];
}

/// A folder with a policy and the gateway's files.
#[derive(Debug)]
pub struct Place {
    folder: TempDir,
}

impl Place {
    /// A new one, with this policy.
    pub fn new(policy: &str) -> Place {
        let place = Place { folder: tempfile::Builder::new().prefix("aa-").tempdir().unwrap() };
        std::fs::create_dir(place.path().join("home")).unwrap();
        std::os::unix::fs::symlink(binary(), place.path().join("aa-gateway")).unwrap();
        place.set_policy(policy);
        place
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the policy; a running gateway takes it.
    pub fn set_policy(&self, policy: &str) {
        std::fs::write(self.path().join("policy.yaml"), policy).unwrap();
    }

    /// Writes `proctor.toml`, which a gateway reads when it starts.
    pub fn configure(&self, text: &str) {
        std::fs::write(self.path().join("proctor.toml"), text).unwrap();
    }

    /// Registers an approver; returns the token.
    pub fn approver(&self, name: &str) -> String {
        let token = format!("{name}-has-a-token-of-more-than-32-bytes");
        let file = format!("{name}.token");
        std::fs::write(self.path().join(&file), &token).unwrap();
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(self.path().join(&file), private).unwrap();
        self.configure(&format!("[[token]]\nname = \"{name}\"\nfile = \"{file}\"\napprover = true\n"));
        token
    }

    /// The log of decisions.
    pub fn log(&self) -> PathBuf {
        self.path().join("audit/gateway-default.jsonl")
    }

    /// Entries of the log of decisions.
    pub fn logged(&self) -> Vec<Entry> {
        entries(&self.log())
    }

    /// Sends an order as the operator; returns the output of the command.
    pub fn order(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(binary());
        command.current_dir(self.path()).env_clear().env("HOME", self.path().join("home"));
        command.args(arguments).args(["--state", "gateway.proctor", "--policy", "policy.yaml"]);
        let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        assert!(output.status.success(), "{command:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Starts the gateway here.
    pub fn start(&self) -> Gateway {
        self.start_with(&[], &[])
    }

    /// Starts the gateway with more arguments and variables.
    pub fn start_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Gateway {
        let mut command = Command::new(self.path().join("aa-gateway"));
        command.current_dir(self.path()).env_clear().env("HOME", self.path().join("home"));
        command.envs(variables.iter().copied());
        command.args(["--policy", "policy.yaml", "--listen", "127.0.0.1:0", "--socket", "gateway.sock"]);
        command.args(["--audit-dir", "audit", "--db-path", "gateway.db"]).args(arguments);
        Gateway::start(command, self.path().join("gateway.sock"))
    }
}

/// A gateway that runs. It is ended when this is dropped.
#[derive(Debug)]
pub struct Gateway {
    child: Child,
    /// Listening address.
    pub address: SocketAddr,
    socket: PathBuf,
}

impl Gateway {
    fn start(mut command: Command, socket: PathBuf) -> Gateway {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let (send, lines) = sync_channel(1024);
        std::thread::spawn(move || pass_on(stderr, &send));
        match ready(&lines) {
            Ok(address) => Gateway { child, address, socket },
            Err(said) => {
                let _ = child.kill();
                panic!("{command:?} did not say that it listens: {:?}\n{said}", child.wait());
            }
        }
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A connection over TCP.
    pub async fn link(&self) -> Link {
        self.link_by(Way::Tcp).await
    }

    /// A connection.
    pub async fn link_by(&self, way: Way) -> Link {
        // Seen where a test fails: it says on which way.
        eprintln!("by {way:?}");
        let endpoint = match way {
            Way::Tcp => Endpoint::from_shared(format!("http://{}", self.address)),
            Way::Socket => Endpoint::from_shared(format!("unix:{}", self.socket.display())),
        };
        Link::new(endpoint.expect("an address").connect().await.expect("the gateway listens"))
    }

    /// Asks it to end, and waits until it has. Connections hear of it meanwhile.
    pub async fn terminate(mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        tokio::task::spawn_blocking(move || self.wait()).await.expect("the gateway ends")
    }

    /// Ends it by force.
    pub fn kill(mut self) {
        self.signal(Signal::KILL);
        self.wait();
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process(pid, signal);
        }
    }

    fn wait(&mut self) -> ExitStatus {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                return status;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        panic!("the gateway does not end: {:?}", self.child.wait());
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The released binary.
pub fn binary() -> PathBuf {
    let path = std::env::var_os(BINARY).map_or_else(
        || panic!("{BINARY} is not set: it names the `proctor` binary to judge (run `scripts/interop`)"),
        PathBuf::from,
    );
    assert!(path.is_file(), "{BINARY} names `{}`, which is no file", path.display());
    path
}

/// The time that a process has used the processors for.
pub fn cpu_time(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process that runs");
    // The name of the program is in parentheses and may hold anything.
    let (_, fields) = stat.rsplit_once(')').expect("a line of this form");
    let ticks: u64 =
        fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// Passes lines on as long as the receiver exists, and reads to the end in any case: a full pipe would stop the gateway.
fn pass_on(stderr: impl BufRead, send: &SyncSender<String>) {
    for line in stderr.lines().map_while(Result::ok) {
        let _ = send.try_send(line);
    }
}

/// Listening address of the gateway; the error is its whole output instead.
fn ready(lines: &Receiver<String>) -> Result<SocketAddr, String> {
    let mut said = String::new();
    while let Ok(line) = lines.recv_timeout(PATIENCE) {
        if line.contains(READY)
            && let Some(address) = address_in(&line)
        {
            return Ok(address);
        }
        said += &format!("{line}\n");
    }
    Err(said)
}

fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("127.0.0.1:")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    format!("127.0.0.1:{digits}").parse().ok()
}
