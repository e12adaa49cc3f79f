//! `proctor test` from the outside, each measure beside its floor in the same run:
//! `cargo bench -p proctor --bench suites -- [--quick | --check]`.
//! Prints a table for `docs/performance.md`. As part of `cargo test` everything runs once with small counts, and no number is printed.
//!
//! The cost of one more test is the slope between two suites, so that the start of the program is not in it.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::cast_precision_loss,
    unreachable_pub,
    dead_code,
    reason = "measured on demand, by people"
)]

#[path = "suites/counts.rs"]
mod counts;
#[path = "suites/extent.rs"]
mod extent;
#[path = "attest/failure.rs"]
mod failure;
#[path = "suites/floor.rs"]
mod floor;
#[path = "suites/ground.rs"]
mod ground;
#[path = "suites/measures.rs"]
mod measures;
#[path = "suites/server.rs"]
mod server;
#[path = "attest/table.rs"]
mod table;

use std::process::ExitCode;

use counts::Counts;
use extent::Extent;
use failure::Failure;

const USAGE: &str = "usage: cargo bench -p proctor --bench suites -- [--quick | --check]";

fn main() -> ExitCode {
    // First of all: this program is also the agent that is tested.
    if let Some(code) = floor::run() {
        return code;
    }
    let extent = match Extent::read("suites_bench", std::env::args().skip(1)) {
        Ok(Some(extent)) => extent,
        Ok(None) => return ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("suites: {problem}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    if !cfg!(target_os = "linux") {
        eprintln!("suites: nothing was measured: the sandbox and /proc are those of Linux");
        return ExitCode::SUCCESS;
    }
    match run(extent) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("suites: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn run(extent: Extent) -> Result<(), Failure> {
    let before = load();
    let table = measures::all(&Counts::of(extent))?;
    if extent == Extent::Check {
        println!("suites: every measure works");
        return Ok(());
    }
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!("{cores} cores; load average {before} before, {} after\n", load());
    table.print();
    Ok(())
}

/// Load average of the last minute, 5 and 15 minutes.
fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}
