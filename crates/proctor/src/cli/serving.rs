//! `proctor init`, `proctor serve` and `proctor harness`: setting up, and serving agents.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use proctor_door_assembly::AssemblyMode;

#[derive(Debug, Args)]
pub struct InitArgs {
    /// Starter policy.
    #[arg(long, value_enum, default_value_t = Starter::Balanced)]
    pub starter: Starter,
    /// Name of the approver whose credential is made.
    #[arg(long, value_name = "NAME")]
    pub approver: Option<String>,
    /// File for the approver's credential (default: `proctor/approver.key` in the user's configuration folder).
    #[arg(long, env = "PROCTOR_CREDENTIAL", value_name = "FILE")]
    pub credential: Option<PathBuf>,
}

/// The starter policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Starter {
    /// Allow reading inside the workspace; ask about or deny everything else.
    Strict,
    /// Allow ordinary development; deny what is dangerous, ask about what is risky.
    Balanced,
    /// Allow and record everything, except access to Proctor's own files.
    AuditOnly,
}

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Address for HTTP and WebSocket (default: 127.0.0.1:7420); port 0 picks a free port.
    #[arg(long, env = "PROCTOR_HTTP", value_name = "ADDR")]
    pub http: Option<SocketAddr>,
    /// Address for gRPC (default: 127.0.0.1:50051); port 0 picks a free port.
    #[arg(long, env = "PROCTOR_GRPC", value_name = "ADDR")]
    pub grpc: Option<SocketAddr>,
    /// Unix socket of the Agent Harness Protocol (default: `run/ahp.sock` in the state directory).
    #[arg(long, env = "PROCTOR_AHP_SOCKET", value_name = "PATH")]
    pub ahp_socket: Option<PathBuf>,
    /// Certificate chain for TLS, as PEM.
    #[arg(long, env = "PROCTOR_TLS_CERTIFICATE", value_name = "FILE", requires = "tls_key")]
    pub tls_certificate: Option<PathBuf>,
    /// Private key for TLS, as PEM.
    #[arg(long, env = "PROCTOR_TLS_KEY", value_name = "FILE", requires = "tls_certificate")]
    pub tls_key: Option<PathBuf>,
    /// Certificate authority, as PEM; callers must show a client certificate that it issued.
    #[arg(long, env = "PROCTOR_TLS_CLIENT_CA", value_name = "FILE")]
    pub tls_client_ca: Option<PathBuf>,
    #[command(flatten)]
    pub ahp: AhpArgs,
    #[command(flatten)]
    pub assembly: AssemblyArgs,
}

/// Settings of the Agent Assembly door.
#[derive(Debug, Clone, Default, Args)]
pub struct AssemblyArgs {
    /// `strict` (default): agents prove possession of their key, and checks need a token. `relaxed`: neither is required.
    #[arg(long, env = "PROCTOR_ASSEMBLY_MODE", value_name = "MODE", value_enum)]
    pub assembly_mode: Option<AssemblyModeArg>,
    /// Unix socket of Agent Assembly's services (default: `run/assembly.sock` in the state directory).
    #[arg(long, env = "PROCTOR_ASSEMBLY_SOCKET", value_name = "PATH")]
    pub assembly_socket: Option<PathBuf>,
    /// Folder for Agent Assembly's chained audit log (default: no log).
    #[arg(long, env = "PROCTOR_AUDIT_DIR", value_name = "DIR")]
    pub audit_dir: Option<PathBuf>,
}

/// Settings of the Agent Harness Protocol door.
#[derive(Debug, Clone, Default, Args)]
pub struct AhpArgs {
    /// Delay an `ask` answer by up to MS milliseconds, so that an approver can decide first (default: 0).
    #[arg(long, env = "PROCTOR_AHP_HOLD_MS", value_name = "MS")]
    pub hold_ms: Option<u64>,
    /// Refuse events of agents nested deeper than this (default: 10).
    #[arg(long, env = "PROCTOR_AHP_MAX_DEPTH", value_name = "N")]
    pub max_depth: Option<u32>,
    /// Refuse batches of more events than this (default: 100).
    #[arg(long, env = "PROCTOR_AHP_BATCH_SIZE", value_name = "N")]
    pub batch_size: Option<u64>,
    /// Accept events without `timestamp` and `depth`, as agents of older dialects send them.
    #[arg(long, env = "PROCTOR_AHP_LENIENT", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub lenient: Option<bool>,
    /// Folder whose files answer an agent's questions about its context (default: the folder of `proctor.toml`).
    #[arg(long, env = "PROCTOR_AHP_WORKSPACE", value_name = "DIR")]
    pub workspace: Option<PathBuf>,
}

/// The values of `--assembly-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum AssemblyModeArg {
    /// Agents are did:key identities that prove possession of their key; every check needs a token.
    Strict,
    /// Agents may also have free identifiers; checks without a token belong to the one principal `anonymous`.
    Relaxed,
}

impl From<AssemblyModeArg> for AssemblyMode {
    fn from(mode: AssemblyModeArg) -> AssemblyMode {
        match mode {
            AssemblyModeArg::Strict => AssemblyMode::Strict,
            AssemblyModeArg::Relaxed => AssemblyMode::Relaxed,
        }
    }
}
