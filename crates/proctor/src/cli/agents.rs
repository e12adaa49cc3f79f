//! `proctor agent` and `proctor op`: orders to agents and operations.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum AgentCommand {
    /// List registered agents, and principals that are stopped.
    #[command(after_help = "Example:\n  proctor agent list --all")]
    List {
        /// List deregistered agents too.
        #[arg(long)]
        all: bool,
    },
    /// Show one agent.
    #[command(after_help = "Example:\n  proctor agent show uid:1000/builder")]
    Show {
        /// Identifier, principal, key or name; a prefix of identifier or principal is enough.
        agent: String,
    },
    /// Deny every action of an agent, and of the agents that it started, until it is resumed.
    #[command(
        after_help = "Example:\n  proctor agent suspend uid:1000/builder --reason \"under investigation\""
    )]
    Suspend(OrderArgs),
    /// Lift a suspension or a kill, and reset the agent's loop counters.
    #[command(after_help = "Example:\n  proctor agent resume uid:1000/builder --reason \"all clear\"")]
    Resume(OrderArgs),
    /// Suspend an agent and refuse to register it again, until it is resumed.
    #[command(after_help = "Example:\n  proctor agent kill uid:1000/builder --reason \"key was leaked\"")]
    Kill(OrderArgs),
    /// Remove an agent from the registry: revoke its token, and deny the actions of the agents that it started.
    #[command(after_help = "Example:\n  proctor agent deregister deploy-bot --reason \"retired\"")]
    Deregister(OrderArgs),
}

#[derive(Debug, Args)]
pub struct OrderArgs {
    /// Identifier, principal, key or name; a prefix of identifier or principal is enough.
    pub agent: String,
    /// Reason, recorded and told to the agent.
    #[arg(long, default_value = "ordered by an operator")]
    pub reason: String,
}

#[derive(Debug, Subcommand)]
pub enum OpCommand {
    /// List paused and terminated operations.
    #[command(after_help = "Example:\n  proctor op list")]
    List,
    /// Deny every action of an operation until it is resumed.
    #[command(after_help = "Example:\n  proctor op pause '*' --reason \"everybody stops\"")]
    Pause(OpArgs),
    /// Resume a paused operation.
    #[command(after_help = "Example:\n  proctor op resume 4bf92f3577b34da6:00f067aa0ba902b7")]
    Resume(OpArgs),
    /// Deny every action of an operation for good.
    #[command(after_help = "Example:\n  proctor op terminate 4bf92f3577b34da6:00f067aa0ba902b7")]
    Terminate(OpArgs),
}

#[derive(Debug, Args)]
pub struct OpArgs {
    /// `TRACE:SPAN`, `agent:ID` for all operations of an agent, or `*` for all operations.
    #[arg(value_name = "OPERATION")]
    pub operation: String,
    /// Reason, recorded with the order.
    #[arg(long, default_value = "ordered by an operator")]
    pub reason: String,
}
