//! `proctor policy`: policies, and single actions to try them on.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Report mistakes and weaknesses of a policy; exit 10 if there are mistakes.
    #[command(after_help = "Example:\n  proctor policy lint policy.yaml")]
    Lint {
        /// A document or a folder (default: the configured policy).
        path: Option<PathBuf>,
    },
    /// Decide one action without recording it. Exits 0 for allow, redact and modify, 11 for deny, 13 for ask and defer.
    #[command(after_help = "Example:\n  proctor policy check --tool bash --arg command='git push'")]
    Check(ActionArgs),
    /// Decide one action, and show every rule that applied and the facts that rules saw.
    #[command(after_help = "Example:\n  proctor policy explain --tool bash --arg command='sudo rm -rf /'")]
    Explain(ActionArgs),
    /// Run a file of actions and expected decisions; exit 10 if one differs.
    #[command(after_help = "Example:\n  proctor policy test cases.yaml")]
    Test {
        /// The file of cases.
        file: PathBuf,
    },
    /// Accept a weaker policy with an approver's credential. Until then the one on record stays in force.
    #[command(
        after_help = "Example:\n  proctor policy accept --dry-run\n  proctor policy accept --credential ~/approver.key"
    )]
    Accept(AcceptArgs),
    /// Scan the text on stdin for secrets, and print it redacted.
    #[command(after_help = "Example:\n  proctor policy scan < notes.txt")]
    Scan,
    /// Print the JSON Schema of policy documents.
    #[command(after_help = "Example:\n  proctor policy schema > policy.schema.json")]
    Schema,
}

#[derive(Debug, Args)]
pub struct AcceptArgs {
    /// The approver's credential (default: the one that `init` made).
    #[arg(long, env = "PROCTOR_CREDENTIAL", value_name = "FILE")]
    pub credential: Option<PathBuf>,
    /// Accept only the policy with this digest, as `--dry-run` printed it.
    #[arg(long)]
    pub digest: Option<String>,
    /// Show what is weaker, and accept nothing.
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct ActionArgs {
    /// The action as JSON, instead of the flags below; `-` reads stdin.
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
    /// Decide with the ledger's memory, and record the decision as `gate` does.
    #[arg(long)]
    pub record: bool,
}
