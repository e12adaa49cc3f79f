//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use proctor_door_assembly::AssemblyMode;

use crate::config::{Durability, Overrides};

/// Tests, supervises, audits and schedules AI agents.
#[derive(Debug, Parser)]
#[command(name = "proctor", version, about, propagate_version = true, max_term_width = 110)]
pub struct Cli {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Command,
}

/// Flags that every command takes.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Print data as JSON.
    #[arg(long, global = true)]
    pub json: bool,
    /// State directory (default: `.proctor` beside `proctor.toml`, else in the working directory).
    #[arg(long, global = true, env = "PROCTOR_STATE", value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Policy: a document, or a folder of documents.
    #[arg(long, global = true, env = "PROCTOR_POLICY", value_name = "FILE|DIR")]
    pub policy: Option<PathBuf>,
    /// When an answer may go out: once the operating system has the record, or once the disk has it.
    #[arg(long, global = true, env = "PROCTOR_DURABILITY", value_enum, hide_possible_values = false)]
    pub durability: Option<Durability>,
    /// Name of the agent that this user runs; part of the principal.
    #[arg(long, global = true, env = "PROCTOR_AGENT", value_name = "NAME")]
    pub agent: Option<String>,
    /// The agent's team.
    #[arg(long, global = true, env = "PROCTOR_TEAM", value_name = "NAME")]
    pub team: Option<String>,
    /// The agent's organisation.
    #[arg(long, global = true, env = "PROCTOR_ORG", value_name = "NAME")]
    pub org: Option<String>,
    /// File that names trusted ledger keys and witnesses.
    #[arg(long, global = true, env = "PROCTOR_TRUST", value_name = "FILE")]
    pub trust: Option<PathBuf>,
    /// Milliseconds after which an action that could not be recorded is denied.
    #[arg(long, global = true, env = "PROCTOR_ANSWER_MS", value_name = "MS")]
    pub answer_ms: Option<u64>,
}

impl Common {
    /// What flags and variables say.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            state: self.state.clone(),
            policy: self.policy.clone(),
            durability: self.durability,
            agent: self.agent.clone(),
            team: self.team.clone(),
            org: self.org.clone(),
            trusted: self.trust.clone(),
            answer_ms: self.answer_ms,
            ..Overrides::default()
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a state directory, a policy and an approver credential.
    Init(InitArgs),
    /// Read one action a line on stdin, write one recorded decision a line on stdout.
    Gate,
    /// Open all doors: HTTP, WebSocket, Unix socket and gRPC.
    Serve(ServeArgs),
    /// Speak the Agent Harness Protocol on stdin and stdout, until stdin ends.
    Harness(AhpArgs),
    /// Watch a sample agent under supervision, from start to end.
    Demo,
    /// Check, explain and test policies.
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Look at sessions.
    #[command(subcommand)]
    Session(SessionCommand),
    /// Read, export, prove and verify the ledger.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Decide what agents asked for.
    #[command(subcommand)]
    Approve(ApproveCommand),
    /// See who is registered; suspend, resume, kill and deregister agents.
    #[command(subcommand)]
    Agent(AgentCommand),
    /// Pause, resume and terminate operations of agents.
    #[command(subcommand)]
    Op(OpCommand),
    /// Check a trace, or a recorded session, against assertions. Exits 0 if they hold, 10 if not.
    Assert(AssertArgs),
    /// Make links for the programs that this build can be.
    Names {
        /// Folder for the links.
        #[arg(required_unless_present = "attest")]
        dir: Option<PathBuf>,
        /// Fill the cache of the official Attest SDKs (`~/.attest/bin`), so that they find this engine and download none; the SDK's version
        /// may be given.
        #[arg(long, value_name = "VERSION", num_args = 0..=1, require_equals = true, default_missing_value = "0.9.0")]
        attest: Option<String>,
    },
    /// Print a completion script.
    Completion {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Subcommand)]
pub enum AgentCommand {
    /// List agents.
    List {
        /// Also those that have deregistered.
        #[arg(long)]
        all: bool,
    },
    /// Show one agent.
    Show {
        /// Its identifier, principal, key or name, or the beginning of one of the first two.
        agent: String,
    },
    /// Stop an agent and all that it has started, until it is resumed.
    Suspend(OrderArgs),
    /// Let a suspended or killed agent go on.
    Resume(OrderArgs),
    /// Stop an agent for good: it cannot come back by registering again.
    Kill(OrderArgs),
    /// Forget an agent: its token is void, and whatever it has started is stopped.
    Deregister(OrderArgs),
}

#[derive(Debug, Args)]
pub struct OrderArgs {
    /// Its identifier, principal, key or name, or the beginning of one of the first two.
    pub agent: String,
    /// Why; the agent is told.
    #[arg(long, default_value = "ordered by an operator")]
    pub reason: String,
}

#[derive(Debug, Subcommand)]
pub enum OpCommand {
    /// List operations that are stopped.
    List,
    /// Deny everything that belongs to an operation, until it is resumed.
    Pause(OpArgs),
    /// Let a paused operation go on.
    Resume(OpArgs),
    /// Deny everything that belongs to an operation, for good.
    Terminate(OpArgs),
}

#[derive(Debug, Args)]
pub struct OpArgs {
    /// `TRACE:SPAN`, `agent:ID` for all of an agent's, or `*` for everything.
    #[arg(value_name = "OPERATION")]
    pub operation: String,
    /// Why.
    #[arg(long, default_value = "ordered by an operator")]
    pub reason: String,
}

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Address for HTTP and WebSocket (default: 127.0.0.1:7420); port 0 is the kernel's choice.
    #[arg(long, env = "PROCTOR_HTTP", value_name = "ADDR")]
    pub http: Option<SocketAddr>,
    /// Address for gRPC (default: 127.0.0.1:50051); port 0 is the kernel's choice.
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
    /// Authority that the certificates of callers must come from, as PEM.
    #[arg(long, env = "PROCTOR_TLS_CLIENT_CA", value_name = "FILE")]
    pub tls_client_ca: Option<PathBuf>,
    #[command(flatten)]
    pub ahp: AhpArgs,
    #[command(flatten)]
    pub assembly: AssemblyArgs,
}

/// Settings of the door of Agent Assembly.
#[derive(Debug, Clone, Default, Args)]
pub struct AssemblyArgs {
    /// Whether agents must prove who they are (strict, the default), or may have free identifiers and ask without a token (relaxed).
    #[arg(long, env = "PROCTOR_ASSEMBLY_MODE", value_name = "MODE", value_enum)]
    pub assembly_mode: Option<AssemblyModeArg>,
    /// Unix socket of Agent Assembly's services (default: `run/assembly.sock` in the state directory).
    #[arg(long, env = "PROCTOR_ASSEMBLY_SOCKET", value_name = "PATH")]
    pub assembly_socket: Option<PathBuf>,
    /// Folder for Agent Assembly's chained audit log; without it none is written.
    #[arg(long, env = "PROCTOR_AUDIT_DIR", value_name = "DIR")]
    pub audit_dir: Option<PathBuf>,
}

/// Settings of the door of the Agent Harness Protocol.
#[derive(Debug, Clone, Default, Args)]
pub struct AhpArgs {
    /// Milliseconds to hold back an answer for a person to decide.
    #[arg(long, env = "PROCTOR_AHP_HOLD_MS", value_name = "MS")]
    pub hold_ms: Option<u64>,
    /// Deepest event that is taken.
    #[arg(long, env = "PROCTOR_AHP_MAX_DEPTH", value_name = "N")]
    pub max_depth: Option<u32>,
    /// Most events in a batch.
    #[arg(long, env = "PROCTOR_AHP_BATCH_SIZE", value_name = "N")]
    pub batch_size: Option<u64>,
    /// Take events without `timestamp` and `depth`, as agents of older dialects send them.
    #[arg(long, env = "PROCTOR_AHP_LENIENT", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub lenient: Option<bool>,
    /// Folder that context for agents comes from.
    #[arg(long, env = "PROCTOR_AHP_WORKSPACE", value_name = "DIR")]
    pub workspace: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct InitArgs {
    /// Starter policy.
    #[arg(long, value_enum, default_value_t = Starter::Balanced)]
    pub starter: Starter,
    /// Name of the approver whose credential is made.
    #[arg(long, value_name = "NAME")]
    pub approver: Option<String>,
    /// Where the approver's credential goes (default: the user's configuration folder).
    #[arg(long, env = "PROCTOR_CREDENTIAL", value_name = "FILE")]
    pub credential: Option<PathBuf>,
}

/// The starter policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Starter {
    /// Only reading inside the workspace; all else is asked about or denied.
    Strict,
    /// Ordinary development; dangerous things are denied, risky ones asked about.
    Balanced,
    /// Nothing is stopped, everything is recorded.
    AuditOnly,
}

#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Report mistakes and weaknesses.
    Lint {
        /// A document or a folder (default: the configured policy).
        path: Option<PathBuf>,
    },
    /// Decide one action and say why. Exits 0 for allow, redact and modify, 11 for deny, 13 for ask and defer.
    Check(ActionArgs),
    /// Show everything that the policy says about one action.
    Explain(ActionArgs),
    /// Run a file of actions and expected decisions.
    Test {
        /// The file of cases.
        file: PathBuf,
    },
    /// Look for secrets in the text on stdin.
    Scan,
    /// Print the JSON Schema of policy documents.
    Schema,
}

#[derive(Debug, Args)]
pub struct ActionArgs {
    /// The action as JSON; `-` reads it from stdin.
    pub action: Option<String>,
    /// Tool name.
    #[arg(long)]
    pub tool: Option<String>,
    /// Kind of action: tool_call (default), file_operation, network_call, process_exec, llm_call, …
    #[arg(long)]
    pub kind: Option<String>,
    /// An argument of the tool; the value is JSON if it parses as such, else a string.
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    pub args: Vec<String>,
    /// File path.
    #[arg(long)]
    pub path: Option<String>,
    /// File operation: read, write, append, create, delete.
    #[arg(long)]
    pub operation: Option<String>,
    /// Command line.
    #[arg(long)]
    pub command: Option<String>,
    /// Host.
    #[arg(long)]
    pub host: Option<String>,
    /// URL.
    #[arg(long)]
    pub url: Option<String>,
    /// Model.
    #[arg(long)]
    pub model: Option<String>,
    /// Text of a prompt.
    #[arg(long)]
    pub text: Option<String>,
    /// Directory that relative paths start from.
    #[arg(long)]
    pub cwd: Option<String>,
    /// Session, as an agent would claim it.
    #[arg(long)]
    pub session: Option<String>,
    /// Record the decision like `gate` does.
    #[arg(long)]
    pub record: bool,
}

#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// List sessions, newest first.
    List {
        /// How many.
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// Show what happened in a session.
    Show {
        /// Our id, a unique prefix of it, or the id that the agent claimed.
        id: String,
        /// As a trace.
        #[arg(long)]
        trace: bool,
    },
}

/// Which records are meant.
#[derive(Debug, Clone, Args, Default)]
pub struct FilterArgs {
    /// Of this session.
    #[arg(long)]
    pub session: Option<String>,
    /// Of this principal.
    #[arg(long)]
    pub principal: Option<String>,
    /// Of this agent, as claimed.
    #[arg(long = "of-agent", value_name = "AGENT")]
    pub of_agent: Option<String>,
    /// Of this kind: decision, outcome, observation, approval, alarm, policy, …
    #[arg(long)]
    pub kind: Option<String>,
    /// From this sequence on.
    #[arg(long)]
    pub from: Option<u64>,
    /// Up to, but without, this sequence.
    #[arg(long)]
    pub to: Option<u64>,
    /// Not before this moment (RFC 3339).
    #[arg(long)]
    pub since: Option<String>,
    /// Before this moment (RFC 3339).
    #[arg(long)]
    pub until: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Print the newest records; `--follow` goes on.
    Tail {
        #[command(flatten)]
        filter: FilterArgs,
        /// How many.
        #[arg(short = 'n', long, default_value_t = 20)]
        lines: usize,
        /// Go on as records come.
        #[arg(short, long)]
        follow: bool,
    },
    /// Write a bundle: records with everything that verifying them needs.
    Export {
        #[command(flatten)]
        filter: FilterArgs,
        /// The file to write.
        #[arg(short, long, required_unless_present = "tiles")]
        output: Option<PathBuf>,
        /// Write the whole ledger in the tlog-tiles layout into this folder instead: checkpoint, tiles and entries, without bodies.
        #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "session", "principal", "of_agent", "kind", "from", "to", "since", "until"])]
        tiles: Option<PathBuf>,
    },
    /// Verify a bundle offline: hashes, proofs, signatures, and every decision derived again.
    Verify {
        /// The bundle.
        bundle: PathBuf,
        /// Refuse a bundle whose checkpoint is smaller than this.
        #[arg(long, default_value_t = 0)]
        at_least: u64,
        /// Hashes, proofs and signatures only.
        #[arg(long)]
        no_derivation: bool,
    },
    /// Verify the hash chain of an Agent Assembly audit log, offline.
    VerifyChain {
        /// The log, one JSON object a line; `-` is stdin.
        file: PathBuf,
    },
    /// Print a proof that a record is in the ledger, or that one checkpoint continues another.
    Prove {
        /// Sequence or decision id.
        #[arg(required_unless_present_any = ["consistency", "check"])]
        record: Option<String>,
        /// Prove that the present ledger continues the one of this size.
        #[arg(long, value_name = "SIZE")]
        consistency: Option<u64>,
        /// Check the proof on stdin instead of making one.
        #[arg(long, conflicts_with_all = ["record", "consistency"])]
        check: bool,
    },
    /// Look for damage.
    Fsck,
    /// Erase the body of a record; the record itself stays provable.
    Erase {
        /// Sequence or decision id.
        record: String,
        /// Why.
        #[arg(long)]
        reason: String,
    },
    /// Be a witness: cosign the ledger's checkpoint after checking that it continues the last one seen.
    Witness {
        /// The witness's folder: its key and what it has seen.
        #[arg(long, value_name = "DIR")]
        witness: PathBuf,
        /// Name of the witness, when its key is made.
        #[arg(long, default_value = "witness")]
        name: String,
        /// The verifier key of the ledger, when it is first seen.
        #[arg(long, value_name = "KEY")]
        ledger_key: Option<String>,
    },
    /// Measure this machine: fsync, SQLite commit, hashing, and the ledger's own appends.
    Bench {
        /// How many records to append.
        #[arg(long, default_value_t = 100_000)]
        records: u64,
    },
}

#[derive(Debug, Subcommand)]
pub enum ApproveCommand {
    /// List what waits.
    List {
        /// Also what is decided or expired.
        #[arg(long)]
        all: bool,
    },
    /// Show one.
    Show {
        /// The approval, or a unique prefix.
        id: String,
    },
    /// Let the action run, once.
    Allow(VerdictArgs),
    /// Refuse it.
    Deny(VerdictArgs),
    /// Print what is asked for as it comes.
    Watch,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("judged").required(true).args(["trace", "session"])))]
pub struct AssertArgs {
    /// The trace, as JSON; `-` reads it from stdin.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// A session of the ledger instead: our id, a unique prefix of it, or the id that the agent claimed.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// The assertions, as JSON or YAML; `-` reads them from stdin.
    #[arg(long, value_name = "FILE")]
    pub assertions: PathBuf,
    /// Reports to write: junit=PATH, sarif=PATH, json=PATH, html=PATH, with commas between them.
    #[arg(long, value_name = "LIST")]
    pub report: Vec<String>,
    /// Exit 13 if there is not enough to decide: results are simulated, or an assertion could not be evaluated.
    #[arg(long)]
    pub gate: bool,
    /// Soft failures count like hard ones.
    #[arg(long)]
    pub strict: bool,
    /// Do not put the results on record.
    #[arg(long)]
    pub no_record: bool,
}

#[derive(Debug, Args)]
pub struct VerdictArgs {
    /// The approval, or a unique prefix.
    pub id: String,
    /// Why.
    #[arg(long, default_value = "")]
    pub reason: String,
    /// The approver's credential (default: the one that `init` made).
    #[arg(long, env = "PROCTOR_CREDENTIAL", value_name = "FILE")]
    pub credential: Option<PathBuf>,
}

/// The values of `--assembly-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum AssemblyModeArg {
    /// Agents are did:key identities that prove to hold their key, and every check needs a token.
    Strict,
    /// Agents may also have free identifiers; checks without a token are those of one principal, `anonymous`.
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
