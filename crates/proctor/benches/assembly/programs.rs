//! The programs under their names, and a folder for what they write.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::failure::Failure;
use crate::floor;
use crate::process::{Process, Stream};

/// The smallest policy that decides by a rule.
pub const ONE_RULE: &str = "version: \"1\"\ndefault: deny\nrules:\n  - { id: lookups, when: 'action.tool == \"grep\"', then: allow }\n";

/// The one that comes along for everyday use.
pub const BALANCED: &str = include_str!("../../../../schemas/examples/balanced.yaml");

/// One that remembers what an agent has done.
pub const WATCHFUL: &str = "version: \"1\"\ndefault: allow\nanomalies: {}\nbudget:\n  daily_limit_usd: 1000\n  monthly_limit_usd: 10000\n  team_daily_limit_usd: 1000\n  calls: { daily: 100000000, team_daily: 100000000 }\n  tokens: { daily: 100000000 }\n";

/// Rules of a runtime that asks no gateway.
const LOCAL_RULES: &str = "[[rules]]\nname = \"no-processes\"\nblocked_actions = [\"process_exec\"]\n";

/// Paths of the programs.
pub struct Programs {
    folder: tempfile::TempDir,
    made: AtomicU32,
}

/// A gateway, and where it keeps what it knows.
pub struct Gateway {
    pub process: Process,
    pub state: PathBuf,
    pub audit: Option<PathBuf>,
}

impl Gateway {
    /// Address for agents.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.process.place)
    }

    /// Endpoint for a runtime of the same machine.
    pub fn socket(&self) -> String {
        format!("unix:{}", self.state.join("run").join("assembly.sock").display())
    }
}

impl Programs {
    /// Gives the program its other names.
    pub fn new() -> Result<Programs, Failure> {
        let folder = tempfile::tempdir().map_err(|error| format!("a scratch folder: {error}"))?;
        let program = std::env::var_os("PROCTOR_RELEASE_BINARY")
            .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_proctor")), PathBuf::from);
        let program =
            std::path::absolute(&program).map_err(|error| format!("{}: {error}", program.display()))?;
        for name in ["aa-gateway", "aa-runtime"] {
            let link = folder.path().join(name);
            std::os::unix::fs::symlink(&program, &link)
                .map_err(|error| format!("{}: {error}", link.display()))?;
        }
        Ok(Programs { folder, made: AtomicU32::new(0) })
    }

    /// A path that was not given before; nothing is there.
    pub fn fresh(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{}-{name}", self.made.fetch_add(1, Ordering::Relaxed)))
    }

    /// A file with this text.
    pub fn file(&self, name: &str, text: &str) -> Result<PathBuf, Failure> {
        let path = self.fresh(name);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }

    /// A gateway with a ledger of its own.
    pub fn gateway(&self, policy: &str, with_audit: bool) -> Result<Gateway, Failure> {
        let policy = self.file("policy.yaml", policy)?;
        self.gateway_of(&policy, &self.fresh("x.db"), with_audit)
    }

    /// A gateway whose state is beside this file.
    pub fn gateway_of(&self, policy: &Path, file: &Path, with_audit: bool) -> Result<Gateway, Failure> {
        let mut command = self.command("aa-gateway");
        command.arg("--policy").arg(policy).args(["--listen", "127.0.0.1:0"]).arg("--db-path").arg(file);
        let audit = with_audit.then(|| self.fresh("audit"));
        if let Some(audit) = &audit {
            command.arg("--audit-dir").arg(audit);
        }
        let process = Process::start(
            "aa-gateway",
            &mut command,
            floor::READY,
            Stream::Output,
            &self.fresh("gateway.log"),
        )?;
        Ok(Gateway { process, state: file.with_extension("proctor"), audit })
    }

    /// The runtime of this agent: asks the gateway there, or else a file of rules. Gives the socket as well.
    pub fn runtime(&self, agent: &str, gateway: Option<&str>) -> Result<(Process, PathBuf), Failure> {
        let socket = self.fresh("r.sock");
        let mut command = self.command("aa-runtime");
        command.arg("--socket").arg(&socket).env("AA_AGENT_ID", agent);
        match gateway {
            Some(gateway) => command.env("AA_GATEWAY_ENDPOINT", gateway),
            None => command.env("AA_POLICY_PATH", self.file("rules.toml", LOCAL_RULES)?),
        };
        let log = self.fresh("runtime.log");
        let sign = "aa-runtime listening on";
        let process = Process::start("aa-runtime", &mut command, sign, Stream::Errors, &log)?;
        Ok((process, socket))
    }

    /// A server that answers every check at once.
    pub fn empty_gateway(&self) -> Result<Process, Failure> {
        let mut command = floor::grpc()?;
        Process::start("the floor", &mut command, floor::READY, Stream::Output, &self.fresh("floor.log"))
    }

    /// A server on a socket that sends back what it reads. Gives the socket as well.
    pub fn echo(&self) -> Result<(Process, PathBuf), Failure> {
        let socket = self.fresh("e.sock");
        let mut command = floor::echo(&socket)?;
        let process = Process::start(
            "the floor",
            &mut command,
            floor::READY,
            Stream::Output,
            &self.fresh("floor.log"),
        )?;
        Ok((process, socket))
    }

    /// A program that sees nothing of this machine's settings.
    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.folder.path().join(name));
        command.current_dir(self.folder.path());
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("AA_") || text.starts_with("PROCTOR_") {
                command.env_remove(&name);
            }
        }
        command.env("HOME", self.folder.path());
        command
    }
}
