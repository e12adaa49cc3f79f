//! `proctor approve`: approvals that wait for a person.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum ApproveCommand {
    /// List open approvals.
    #[command(after_help = "Example:\n  proctor approve list --all")]
    List {
        /// List decided and expired approvals too.
        #[arg(long)]
        all: bool,
    },
    /// Show one approval: the action, who asked, and until when it is open.
    #[command(after_help = "Example:\n  proctor approve show 0199c4f2")]
    Show {
        /// The approval id, or a unique prefix of at least four characters.
        id: String,
    },
    /// Grant the action, for one use.
    #[command(after_help = "Example:\n  proctor approve allow 0199c4f2 --reason \"release day\"")]
    Allow(ApproverDecisionArgs),
    /// Refuse the action; the agent is told the reason.
    #[command(after_help = "Example:\n  proctor approve deny 0199c4f2 --reason \"not on a Friday\"")]
    Deny(ApproverDecisionArgs),
    /// Print approvals as they are asked for, until interrupted.
    #[command(after_help = "Example:\n  proctor approve watch --json")]
    Watch,
}

#[derive(Debug, Args)]
pub struct ApproverDecisionArgs {
    /// The approval id, or a unique prefix of at least four characters.
    pub id: String,
    /// Reason, recorded and told to the agent.
    #[arg(long, default_value = "")]
    pub reason: String,
    /// The approver's credential (default: the one that `init` made).
    #[arg(long, env = "PROCTOR_CREDENTIAL", value_name = "FILE")]
    pub credential: Option<PathBuf>,
}
