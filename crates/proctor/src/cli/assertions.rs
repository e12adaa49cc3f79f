//! `proctor assert`: a trace or a session against assertions.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("judged").required(true).args(["trace", "session"])))]
pub struct AssertArgs {
    /// Trace, as JSON; `-` reads stdin.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Session of the ledger instead of a trace file: its id, a unique prefix of it, or the id that the agent claimed.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Assertions, as JSON or YAML; `-` reads stdin.
    #[arg(long, value_name = "FILE")]
    pub assertions: PathBuf,
    /// Reports to write, comma-separated: junit=PATH, sarif=PATH, json=PATH, html=PATH.
    #[arg(long, value_name = "LIST")]
    pub report: Vec<String>,
    /// Exit 13 if results are simulated or an assertion could not be evaluated.
    #[arg(long)]
    pub gate: bool,
    /// Count soft failures as hard ones.
    #[arg(long)]
    pub strict: bool,
    /// Do not record the results in the ledger.
    #[arg(long)]
    pub no_record: bool,
}
