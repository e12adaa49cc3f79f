//! `proctor test`: a suite against an agent.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

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

#[derive(Debug, Args)]
pub struct TestArgs {
    /// Suite of tests, as YAML or JSON.
    pub suite: PathBuf,
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
    /// Reports to write, comma-separated: junit=PATH, sarif=PATH, json=PATH, html=PATH, markdown=PATH, jsonl=PATH (while running).
    #[arg(long, value_name = "LIST")]
    pub report: Vec<String>,
    /// Earlier result to compare with: a JSON report.
    #[arg(long, value_name = "FILE")]
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
    /// Exit 13 instead of 10 if nothing failed, but something could not be evaluated.
    #[arg(long)]
    pub gate: bool,
    /// Strength of the sandbox that agents are started in.
    #[arg(long, value_enum, default_value = "auto")]
    pub sandbox: SandboxArg,
}
