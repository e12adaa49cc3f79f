//! The released gateway, for comparison.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tonic::transport::Endpoint;

use crate::gateway::PATIENCE;
use crate::link::Link;
use crate::log::{Entry, entries};

/// The variable that says where the released gateway is.
pub const GATEWAY: &str = "AA_GATEWAY";

/// A released gateway that runs. It is ended when this is dropped.
#[derive(Debug)]
pub struct Official {
    child: Child,
    folder: TempDir,
}

impl Official {
    /// Starts it with this policy, and waits until it answers.
    pub async fn start(policy: &str) -> Official {
        Official::start_with(policy, &[]).await
    }

    /// Starts it with more variables.
    pub async fn start_with(policy: &str, variables: &[(&str, &str)]) -> Official {
        let folder = tempfile::Builder::new().prefix("aa-").tempdir().expect("a folder");
        std::fs::write(folder.path().join("policy.yaml"), policy).expect("a policy");
        let mut command = Command::new(program());
        command.current_dir(folder.path()).env_clear().env("HOME", folder.path());
        command.envs(variables.iter().copied());
        // It does not say which port the kernel chose, so it listens on a socket.
        command.args(["--policy", "policy.yaml", "--socket", "gateway.sock"]);
        command.args(["--audit-dir", "audit", "--db-path", "gateway.db"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let official = Official { child, folder };
        let start = Instant::now();
        while official.connect().await.is_none() {
            assert!(start.elapsed() < PATIENCE, "{command:?} does not listen");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        official
    }

    /// A connection.
    pub async fn link(&self) -> Link {
        self.connect().await.expect("the released gateway listens")
    }

    /// Entries of the log, once it has so many lines: the gateway writes them when it has time.
    pub async fn logged(&self, lines: usize) -> Vec<Entry> {
        let log = self.folder.path().join("audit/gateway-default.jsonl");
        let start = Instant::now();
        loop {
            let written = std::fs::read_to_string(&log).unwrap_or_default();
            if written.ends_with('\n') && written.lines().count() >= lines {
                return entries(&log);
            }
            assert!(start.elapsed() < PATIENCE, "{lines} lines: {written}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn connect(&self) -> Option<Link> {
        let socket = self.folder.path().join("gateway.sock");
        let endpoint = Endpoint::from_shared(format!("unix:{}", socket.display())).ok()?;
        Some(Link::new(endpoint.connect().await.ok()?))
    }
}

impl Drop for Official {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program() -> PathBuf {
    std::env::var_os(GATEWAY).map_or_else(
        || panic!("{GATEWAY} is not set: it names the released `aa-gateway` (run `scripts/interop`)"),
        PathBuf::from,
    )
}
