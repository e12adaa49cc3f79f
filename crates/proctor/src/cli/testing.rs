//! `proctor test`: a suite against an agent.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use proctor_runs::earlier::Rerun;

/// Strength of the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SandboxArg {
    /// Use every protection that this system grants, and report the others.
    Auto,
    /// Refuse to run if a protection is missing.
    Require,
    /// Start agents without protections.
    Off,
}

/// Tests of an earlier suite run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RerunArg {
    /// Those that failed or could not be evaluated.
    Failed,
    /// Those that could not be evaluated.
    Errors,
}

impl From<RerunArg> for Rerun {
    fn from(argument: RerunArg) -> Rerun {
        match argument {
            RerunArg::Failed => Rerun::Failed,
            RerunArg::Errors => Rerun::Errors,
        }
    }
}

/// Name of the newest suite run.
pub const LAST: &str = "last";

#[derive(Debug, Args)]
pub struct TestArgs {
    /// Suite of tests, as YAML or JSON; `proctor atp schema suite` prints its format.
    #[arg(required_unless_present = "init")]
    pub suite: Option<PathBuf>,
    // The flag of the same name that other commands have; there it is the name of the caller.
    /// Agent under test: a name of the suite, stdio:COMMAND, plain:COMMAND, http://…, ws://…, grpc://…, nop or reference. Given twice,
    /// the second is compared with the first.
    #[arg(long, value_name = "AGENT")]
    pub agent: Vec<String>,
    /// Runs of each test, instead of what the suite says.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: Option<u32>,
    /// Tests at a time.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub parallel: u16,
    /// Tests with these tags, comma-separated; `!tag` leaves tests out.
    #[arg(long, value_name = "TAGS")]
    pub tags: Option<String>,
    /// Part of the tests, like hash:1/4.
    #[arg(long, value_name = "hash:M/N")]
    pub partition: Option<String>,
    /// Stop after the first test that does not pass.
    #[arg(long)]
    pub fail_fast: bool,
    /// Further attempts at a run that ended in an error; each is shown.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100))]
    pub retries: Option<u32>,
    /// Go on with a suite run that was interrupted: its identifier, or the newest of this suite and agent.
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = LAST, conflicts_with = "rerun")]
    pub resume: Option<String>,
    /// Only tests that failed in the newest suite run of this suite and agent.
    #[arg(long, value_enum)]
    pub rerun: Option<RerunArg>,
    /// Server of the tools that the suite does not mock; calls go through the policy.
    #[arg(long, value_name = "URL")]
    pub tools_url: Option<String>,
    /// File that calls to --tools-url and their answers are written to.
    #[arg(long, value_name = "FILE", requires = "tools_url")]
    pub record_tools: Option<PathBuf>,
    /// Recording to answer tool calls from; a call that is not in it is an error.
    #[arg(long, value_name = "FILE", conflicts_with = "tools_url")]
    pub replay_tools: Option<PathBuf>,
    /// Reports to write, comma-separated: junit=PATH, sarif=PATH, json=PATH, html=PATH, markdown=PATH, jsonl=PATH (while running).
    #[arg(long, value_name = "LIST")]
    pub report: Vec<String>,
    /// Earlier result to compare with: a JSON report, or a suite run on record.
    #[arg(long, value_name = "RUN|FILE")]
    pub baseline: Option<PathBuf>,
    /// Exit 10 if the agent is shown to be worse than the baseline, and 13 if there are not enough runs to exclude it.
    #[arg(long)]
    pub fail_on_regression: bool,
    /// Loss of the mean score that must be excluded (default: 5).
    #[arg(long, value_name = "POINTS")]
    pub margin: Option<f64>,
    /// Load the suite, report its mistakes, and run nothing.
    #[arg(long)]
    pub check: bool,
    /// Write a first suite and an agent that passes it into a folder (default: first).
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "first", conflicts_with = "suite")]
    pub init: Option<PathBuf>,
    /// Exit 13 instead of 10 if nothing failed, but something could not be evaluated.
    #[arg(long)]
    pub gate: bool,
    /// Strength of the sandbox that agents are started in.
    #[arg(long, value_enum, default_value = "auto")]
    pub sandbox: SandboxArg,
}

#[derive(Debug, Subcommand)]
pub enum RunsCommand {
    /// List suite runs, the newest first.
    #[command(after_help = "Example:\n  proctor runs list")]
    List {
        /// Most lines.
        #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
        limit: usize,
    },
    /// Show the tests of a suite run and the reasons of failures.
    #[command(after_help = "Example:\n  proctor runs show last")]
    Show {
        /// Identifier, its beginning or end, or `last`.
        run: String,
    },
    /// Compare a suite run with an earlier one.
    #[command(after_help = "Example:\n  proctor runs compare last last")]
    Compare {
        /// The earlier suite run.
        baseline: String,
        /// The later suite run.
        run: String,
        /// Loss of the mean score that must be excluded (default: 5).
        #[arg(long, value_name = "POINTS")]
        margin: Option<f64>,
        /// Exit 10 if the later one is shown to be worse, and 13 if there are not enough runs to exclude it.
        #[arg(long)]
        fail_on_regression: bool,
    },
    /// Print the result of a suite run as JSON, or write reports of it.
    #[command(after_help = "Example:\n  proctor runs export last --report html=report.html")]
    Export {
        /// Identifier, its beginning or end, or `last`.
        run: String,
        /// Reports to write, comma-separated: junit=PATH, sarif=PATH, json=PATH, html=PATH, markdown=PATH, jsonl=PATH.
        #[arg(long, value_name = "LIST")]
        report: Vec<String>,
    },
}
