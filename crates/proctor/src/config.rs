//! `proctor.toml`: found upward from the working directory, every key overridable by flag and by `PROCTOR_…`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_door_ahp::AhpSettings;
use proctor_door_assembly::{AssemblyMode, AssemblySettings};
use proctor_engine::access::{local_caller, token_principal};
use proctor_engine::settings::{Durability as LedgerDurability, Settings as EngineSettings, file};
use proctor_engine::tokens::{self, TokenError, TokenTable};
use proctor_engine::workspaces::{WorkspaceError, Workspaces};
use proctor_system::trusted::{self, UntrustedPath};
use serde::Deserialize;

use crate::cli::{AhpArgs, AssemblyArgs};

/// Keys of the file. Unknown keys are refused.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    state: Option<PathBuf>,
    origin: Option<String>,
    policy: Option<PathBuf>,
    durability: Option<Durability>,
    agent: Option<String>,
    team: Option<String>,
    org: Option<String>,
    workspace: Option<PathBuf>,
    trusted: Option<PathBuf>,
    #[serde(default)]
    gate: GateTable,
    #[serde(default)]
    http: ListenTable,
    #[serde(default)]
    grpc: ListenTable,
    tls: Option<TlsTable>,
    #[serde(default)]
    ahp: AhpTable,
    #[serde(default)]
    assembly: AssemblyTable,
    webhook: Option<WebhookTable>,
    #[serde(default)]
    test: TestTable,
    #[serde(default)]
    flow: FlowTable,
    #[serde(default)]
    token: Vec<TokenTable>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct AssemblyTable {
    mode: Option<AssemblyMode>,
    socket: Option<PathBuf>,
    tenanted: Option<bool>,
    agents_approve: Option<bool>,
    heartbeat_secs: Option<u64>,
    open: Option<bool>,
    audit_dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct WebhookTable {
    url: String,
    secret_env: Option<String>,
    secret_file: Option<PathBuf>,
    events: Option<Vec<String>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListenTable {
    listen: Option<SocketAddr>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct TlsTable {
    certificate: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct AhpTable {
    answer_ms: Option<u64>,
    hold_ms: Option<u64>,
    socket: Option<PathBuf>,
    max_depth: Option<u32>,
    batch_size: Option<u64>,
    lenient: Option<bool>,
    workspace: Option<PathBuf>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct TestTable {
    #[serde(default)]
    agents: std::collections::BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct FlowTable {
    #[serde(default)]
    agent: std::collections::BTreeMap<String, FlowAgentTable>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct FlowAgentTable {
    address: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct GateTable {
    answer_ms: Option<u64>,
}

/// Durability that a record must have before its answer is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, clap::ValueEnum, Default)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Answer after the record is written to the operating system: it survives a crash of the process, not a power failure.
    #[default]
    Process,
    /// Answer after the record is synced to disk: it survives a power failure. Slower.
    Power,
}

/// The settings in force.
#[derive(Debug, Clone)]
pub struct Config {
    /// The engine: state directory, policy, and the identity of this user.
    pub engine: EngineSettings,
    /// Whether a flag, a variable or the file names the state directory. Otherwise it is the default one.
    pub state_is_named: bool,
    /// Origin of the ledger that the file names, if its state directory is the one in use.
    pub origin: Option<String>,
    /// Whether a weaker policy is loaded with an alarm, also where there are approvers.
    pub loads_weaker: bool,
    /// File of trusted keys.
    pub trusted: Option<PathBuf>,
    /// The file that was read.
    pub file: Option<PathBuf>,
    /// Address of HTTP.
    pub http: SocketAddr,
    /// Address of gRPC.
    pub grpc: SocketAddr,
    /// Certificates, if connections are encrypted.
    pub tls: Option<TlsFiles>,
    /// The door of the Agent Harness Protocol.
    pub ahp: AhpSettings,
    /// The door of Agent Assembly.
    pub assembly: AssemblyConfig,
    /// Receiver of events.
    pub webhook: Option<WebhookConfig>,
    /// Agents under test: names and addresses.
    pub test_agents: Vec<(String, String)>,
    /// Agents of prompt tasks: identifiers and addresses.
    pub flow_agents: Vec<(String, String)>,
}

/// Error of loading the settings.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: {}", path.display(), proctor_system::describe(source))]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Other users could change the file.
    #[error(transparent)]
    Untrusted(#[from] UntrustedPath),
    /// The file is not TOML, or not with these keys: one line for each mistake.
    #[error("{}", .0.join("; "))]
    File(Vec<String>),
    /// The delay of an `ask` answer takes up the whole time of an answer.
    #[error("`ahp.hold_ms` ({hold_ms}) must leave half a second of `ahp.answer_ms` ({answer_ms})")]
    HoldTooLong {
        /// `ahp.hold_ms`.
        hold_ms: u64,
        /// `ahp.answer_ms`.
        answer_ms: u64,
    },
    /// No answer could ever be given.
    #[error("`{0}` is 0, so that every answer would be late: give milliseconds, at least 1")]
    NoTime(&'static str),
    /// Client certificates are asked for without a certificate of the server.
    #[error("`--tls-client-ca` needs a certificate and a key of the server's own")]
    ClientCaAlone,
    /// A token is not usable.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// A pinned workspace is not usable.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
}

/// The door of Agent Assembly, and what belongs to it.
#[derive(Debug, Clone)]
pub struct AssemblyConfig {
    /// The door itself; approvers are added when a server starts.
    pub door: AssemblySettings,
    /// The Unix socket; none: in the state directory.
    pub socket: Option<PathBuf>,
    /// The folder of the chained log, if one is written.
    pub audit_dir: Option<PathBuf>,
    /// Whether agents of other machines may enrol without showing a certificate.
    pub open: bool,
}

/// The webhook, with the sources of its secret.
#[derive(Debug, Clone)]
pub struct WebhookConfig {
    /// The address.
    pub url: String,
    /// The variable that holds the secret.
    pub secret_env: Option<String>,
    /// The file that holds it.
    pub secret_file: Option<PathBuf>,
    /// Kinds of events; none: the usual ones.
    pub events: Option<Vec<String>>,
}

/// The files that encrypted connections need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate chain.
    pub certificate: PathBuf,
    /// Private key of the certificate.
    pub key: PathBuf,
    /// Authority of client certificates, if callers must have one.
    pub client_ca: Option<PathBuf>,
}

/// Default time limit of an answer.
const ANSWER_MS: u64 = 8000;

/// Values of flags and variables; clap reads both.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `--state`
    pub state: Option<PathBuf>,
    /// `--policy`
    pub policy: Option<PathBuf>,
    /// `--durability`
    pub durability: Option<Durability>,
    /// `--agent`
    pub agent: Option<String>,
    /// `--team`
    pub team: Option<String>,
    /// `--org`
    pub org: Option<String>,
    /// `--pin-workspace`
    pub workspace: Option<PathBuf>,
    /// `--trust`
    pub trusted: Option<PathBuf>,
    /// `--answer-ms`
    pub answer_ms: Option<u64>,
    /// `--http`
    pub http: Option<SocketAddr>,
    /// `--grpc`
    pub grpc: Option<SocketAddr>,
    /// `--ahp-socket`
    pub ahp_socket: Option<PathBuf>,
    /// `--tls-certificate`, `--tls-key`, `--tls-client-ca`
    pub tls: (Option<PathBuf>, Option<PathBuf>, Option<PathBuf>),
    /// Flags of the Agent Harness Protocol.
    pub ahp: AhpArgs,
    /// Flags of Agent Assembly.
    pub assembly: AssemblyArgs,
}

impl Config {
    /// Settings for a command that runs in `directory`.
    pub fn load(directory: &Path, overrides: &Overrides) -> Result<Config, ConfigError> {
        // Whatever has the name counts: settings that cannot be read must not be taken for none.
        let is_there = |file: &PathBuf| file.symlink_metadata().is_ok();
        let found = directory.ancestors().map(|folder| folder.join("proctor.toml")).find(is_there);
        let (file, base) = match &found {
            Some(path) => (read(path)?, path.parent().unwrap_or(directory).to_owned()),
            None => (File::default(), directory.to_owned()),
        };
        // Paths in the file start from the file, paths in flags from the working directory.
        let place = |flag: &Option<PathBuf>, key: &Option<PathBuf>| {
            flag.as_ref()
                .map(|path| directory.join(path))
                .or_else(|| key.as_ref().map(|path| base.join(path)))
        };
        let text = |flag: &Option<String>, key: &Option<String>| {
            flag.clone().or_else(|| key.clone()).unwrap_or_default()
        };
        let state = place(&overrides.state, &file.state);
        let (agent, team, org) = (
            text(&overrides.agent, &file.agent),
            text(&overrides.team, &file.team),
            text(&overrides.org, &file.org),
        );
        let answer_ms = overrides.answer_ms.or(file.ahp.answer_ms).unwrap_or(ANSWER_MS);
        let gate_ms = overrides.answer_ms.or(file.gate.answer_ms).unwrap_or(ANSWER_MS);
        for (key, time) in [("ahp.answer_ms", answer_ms), ("gate.answer_ms", gate_ms)] {
            if time == 0 {
                return Err(ConfigError::NoTime(key));
            }
        }
        let hold_ms = overrides.ahp.hold_ms.or(file.ahp.hold_ms).unwrap_or(0);
        let tokens = file.token.iter().map(|token| tokens::read(token, &base)).collect::<Result<Vec<_>, _>>();
        let tokens = tokens?;
        let mut workspaces = Workspaces::default();
        // An empty variable pins nothing, rather than the working directory.
        let pinned = overrides.workspace.clone().filter(|path| !path.as_os_str().is_empty());
        if let Some(folder) = place(&pinned, &file.workspace) {
            workspaces.pin(&folder)?;
        }
        for token in &file.token {
            if let Some(folder) = &token.workspace {
                workspaces.pin_for(token_principal(&token.name), &base.join(folder))?;
            }
        }
        if hold_ms != 0 && hold_ms.saturating_add(500) > answer_ms {
            return Err(ConfigError::HoldTooLong { hold_ms, answer_ms });
        }
        tokens::check(&tokens)?;
        let (certificate, key, client_ca) = &overrides.tls;
        let in_file = file.tls.as_ref();
        let tls = match (
            place(certificate, &in_file.map(|tls| tls.certificate.clone())),
            place(key, &in_file.map(|tls| tls.key.clone())),
            place(client_ca, &in_file.and_then(|tls| tls.client_ca.clone())),
        ) {
            (Some(certificate), Some(key), client_ca) => Some(TlsFiles { certificate, key, client_ca }),
            (None, None, Some(_)) => {
                return Err(ConfigError::ClientCaAlone);
            }
            _ => None,
        };
        let local = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let ahp = AhpSettings {
            answer: Duration::from_millis(answer_ms),
            hold: Duration::from_millis(hold_ms),
            socket: place(&overrides.ahp_socket, &file.ahp.socket),
            max_depth: overrides.ahp.max_depth.or(file.ahp.max_depth).unwrap_or(10),
            batch_size: overrides.ahp.batch_size.or(file.ahp.batch_size).unwrap_or(100),
            lenient: overrides.ahp.lenient.or(file.ahp.lenient).unwrap_or(false),
            workspace: place(&overrides.ahp.workspace, &file.ahp.workspace).unwrap_or_else(|| base.clone()),
            agent: agent.clone(),
            this_user: local_caller(rustix::process::getuid().as_raw(), &agent, &team, &org),
            tokens,
        };
        let assembly = AssemblyConfig {
            door: AssemblySettings {
                mode: overrides
                    .assembly
                    .assembly_mode
                    .map(AssemblyMode::from)
                    .or(file.assembly.mode)
                    .unwrap_or_default(),
                tenanted: file.assembly.tenanted.unwrap_or(false),
                agents_approve: file.assembly.agents_approve.unwrap_or(false),
                heartbeat: Duration::from_secs(file.assembly.heartbeat_secs.unwrap_or(30).clamp(1, 86_400)),
                approvers: Vec::new(),
            },
            socket: place(&overrides.assembly.assembly_socket, &file.assembly.socket),
            audit_dir: place(&overrides.assembly.audit_dir, &file.assembly.audit_dir),
            open: file.assembly.open.unwrap_or(false),
        };
        let webhook = file.webhook.as_ref().map(|table| WebhookConfig {
            url: table.url.clone(),
            secret_env: table.secret_env.clone(),
            secret_file: table.secret_file.as_ref().map(|path| base.join(path)),
            events: table.events.clone(),
        });
        Ok(Config {
            assembly,
            webhook,
            test_agents: file.test.agents.into_iter().collect(),
            flow_agents: file.flow.agent.into_iter().map(|(id, agent)| (id, agent.address)).collect(),
            http: overrides.http.or(file.http.listen).unwrap_or_else(|| local(7420)),
            grpc: overrides.grpc.or(file.grpc.listen).unwrap_or_else(|| local(50051)),
            tls,
            ahp,
            state_is_named: state.is_some(),
            origin: file.origin.filter(|_| overrides.state.is_none()),
            loads_weaker: false,
            engine: EngineSettings {
                state: state.unwrap_or_else(|| base.join(".proctor")),
                policy: place(&overrides.policy, &file.policy),
                durability: match overrides.durability.or(file.durability).unwrap_or_default() {
                    Durability::Process => LedgerDurability::Process,
                    Durability::Power => LedgerDurability::Power,
                },
                agent,
                team,
                org,
                workspaces,
                answer: Duration::from_millis(gate_ms),
            },
            trusted: place(&overrides.trusted, &file.trusted),
            file: found,
        })
    }
}

fn read(path: &Path) -> Result<File, ConfigError> {
    trusted::check(path)?;
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    file::read(&text).map_err(|mistakes| {
        let line = |mistake: &file::Mistake| format!("{}:{mistake}", path.display());
        ConfigError::File(mistakes.iter().map(line).collect())
    })
}

#[cfg(test)]
mod tests;
