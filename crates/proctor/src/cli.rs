//! The command line: what `proctor` and its commands take, and their help texts.

mod agents;
mod approvals;
mod assertions;
mod atp;
mod help;
mod policy;
mod records;
mod serving;
mod testing;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use self::agents::{AgentCommand, OpArgs, OpCommand, OrderArgs};
pub use self::approvals::{ApproveCommand, ApproverDecisionArgs};
pub use self::assertions::AssertArgs;
pub use self::atp::AtpCommand;
pub use self::policy::{AcceptArgs, ActionArgs, PolicyCommand};
pub use self::records::{AuditCommand, FilterArgs, SessionCommand};
pub use self::serving::{AhpArgs, AssemblyArgs, AssemblyModeArg, InitArgs, ServeArgs, Starter};
pub use self::testing::{LAST, RunsCommand, SandboxArg, TestArgs};
use crate::config::{Durability, Overrides};

/// Supervises, audits and tests AI agents.
#[derive(Debug, Parser)]
#[command(
    name = "proctor",
    version,
    about,
    propagate_version = true,
    max_term_width = 110,
    help_template = help::root_template(),
    after_help = "Example:\n  proctor demo"
)]
pub struct Cli {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Command,
}

/// Flags that every command takes.
#[derive(Debug, Clone, Args)]
pub struct Common {
    // Ordered after the flags of a command, with which clap would mix them.
    /// Print data as JSON.
    #[arg(long, global = true, display_order = 900)]
    pub json: bool,
    /// State directory (default: `.proctor` beside `proctor.toml`, else in the working directory).
    #[arg(long, global = true, display_order = 901, env = "PROCTOR_STATE", value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Policy: a document, or a folder of documents.
    #[arg(long, global = true, display_order = 902, env = "PROCTOR_POLICY", value_name = "FILE|DIR")]
    pub policy: Option<PathBuf>,
    /// Answer once the operating system has the record (`process`), or once the disk has it (`power`).
    #[arg(
        long,
        global = true,
        display_order = 903,
        env = "PROCTOR_DURABILITY",
        value_enum,
        hide_possible_values = false
    )]
    pub durability: Option<Durability>,
    /// Name of the agent that this user runs; becomes part of the principal, as in `uid:1000/NAME`.
    #[arg(long, global = true, display_order = 904, env = "PROCTOR_AGENT", value_name = "NAME")]
    pub agent: Option<String>,
    /// The agent's team.
    #[arg(long, global = true, display_order = 905, env = "PROCTOR_TEAM", value_name = "NAME")]
    pub team: Option<String>,
    /// The agent's organisation.
    #[arg(long, global = true, display_order = 906, env = "PROCTOR_ORG", value_name = "NAME")]
    pub org: Option<String>,
    /// Folder that the agents work in: relative paths start there, and rules see it as `action.workspace`.
    #[arg(long, global = true, display_order = 907, env = "PROCTOR_WORKSPACE", value_name = "DIR")]
    pub pin_workspace: Option<PathBuf>,
    /// Trust file: the ledger keys and witnesses whose signatures count.
    #[arg(long, global = true, display_order = 908, env = "PROCTOR_TRUST", value_name = "FILE")]
    pub trust: Option<PathBuf>,
    /// Deny an action that is not recorded after this many milliseconds (default: 8000).
    #[arg(long, global = true, display_order = 909, env = "PROCTOR_ANSWER_MS", value_name = "MS")]
    pub answer_ms: Option<u64>,
}

impl Common {
    /// The settings that flags and variables override.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            state: self.state.clone(),
            policy: self.policy.clone(),
            durability: self.durability,
            agent: self.agent.clone(),
            team: self.team.clone(),
            org: self.org.clone(),
            workspace: self.pin_workspace.clone(),
            trusted: self.trust.clone(),
            answer_ms: self.answer_ms,
            ..Overrides::default()
        }
    }
}

// A new command also goes into a group of `help::GROUPS`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a state directory, a starter policy and an approver credential.
    #[command(after_help = "Example:\n  proctor init --approver ann")]
    Init(InitArgs),
    /// Show a sample agent under supervision, from start to end.
    #[command(after_help = "Example:\n  proctor demo")]
    Demo,
    /// Decide actions from stdin, one JSON object per line; print one decision per line.
    #[command(
        after_help = "Example:\n  echo '{\"tool\":\"bash\",\"args\":{\"command\":\"ls\"}}' | proctor gate"
    )]
    Gate,
    /// Serve agents over HTTP, WebSocket, Unix socket and gRPC until SIGTERM.
    #[command(after_help = "Example:\n  proctor serve --http 127.0.0.1:7420 --grpc 127.0.0.1:50051")]
    Serve(ServeArgs),
    /// Speak the Agent Harness Protocol on stdin and stdout until stdin ends.
    #[command(after_help = "Example:\n  proctor harness --agent builder")]
    Harness(AhpArgs),
    /// Validate, compile, plan, apply and run workflow manifests.
    #[command(after_help = help::of_manifest())]
    Manifest {
        /// A command of `agentcli`, with its words and options.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
        words: Vec<String>,
    },
    /// List the actions that wait for a person, and allow or deny them.
    #[command(subcommand, after_help = "Example:\n  proctor approve list")]
    Approve(ApproveCommand),
    /// List registered agents; suspend, resume, kill and deregister them.
    #[command(subcommand, after_help = "Example:\n  proctor agent list")]
    Agent(AgentCommand),
    /// Pause, resume and terminate operations of agents.
    #[command(subcommand, after_help = "Example:\n  proctor op list")]
    Op(OpCommand),
    /// List sessions, and show what happened in one.
    #[command(subcommand, after_help = "Example:\n  proctor session list")]
    Session(SessionCommand),
    /// Read, export, prove, verify and check the ledger.
    #[command(subcommand, after_help = "Example:\n  proctor audit tail -n 5")]
    Audit(AuditCommand),
    /// Lint, try and test policies.
    #[command(subcommand, after_help = "Example:\n  proctor policy lint policy.yaml")]
    Policy(PolicyCommand),
    /// Run a suite of tests against an agent; exit 0 if it passes, 10 if not, 13 if undecided, 130 on interrupt.
    #[command(after_help = "Example:\n  proctor test suite.yaml --agent stdio:./agent.sh")]
    Test(TestArgs),
    /// List, show, compare and export suite runs.
    #[command(subcommand, after_help = "Example:\n  proctor runs list")]
    Runs(RunsCommand),
    /// Validate messages of the Agent Test Protocol, print its schemas, and check agents.
    #[command(subcommand, after_help = "Example:\n  proctor atp schema request")]
    Atp(AtpCommand),
    /// Check a trace or a recorded session against assertions; exit 0 if they hold, 10 if not.
    #[command(after_help = "Example:\n  proctor assert --trace trace.json --assertions assertions.yaml")]
    Assert(AssertArgs),
    /// Link this binary under the program names that other tools start.
    #[command(after_help = "Example:\n  proctor names ~/.local/bin")]
    Names {
        /// Folder for the links.
        #[arg(required_unless_present = "attest")]
        dir: Option<PathBuf>,
        /// Put this engine into the cache of the official Attest SDKs (`~/.attest/bin`), so that they download none. VERSION is the
        /// SDK's version.
        #[arg(long, value_name = "VERSION", num_args = 0..=1, require_equals = true, default_missing_value = "0.9.0")]
        attest: Option<String>,
    },
    /// Print a shell completion script.
    #[command(after_help = "Example:\n  proctor completion bash > proctor.bash")]
    Completion {
        /// The shell.
        shell: clap_complete::Shell,
    },
}
