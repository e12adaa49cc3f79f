//! The Attest engine from the outside, each measure beside its floor in the same run:
//! `cargo bench -p proctor --bench attest -- [--engine COMMAND [ARGUMENTS…]] [--seconds N] [--quick | --check]`.
//! Prints a table for `docs/performance.md`. Any engine that speaks the protocol can be measured; without `--engine` it is
//! the one that was built along. As part of `cargo test` everything runs once with small counts, and no number is printed.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    unreachable_pub,
    reason = "measured on demand, by people"
)]

#[path = "attest/counts.rs"]
mod counts;
#[path = "attest/failure.rs"]
mod failure;
#[path = "attest/floor.rs"]
mod floor;
#[path = "attest/inputs.rs"]
mod inputs;
#[path = "attest/measures.rs"]
mod measures;
#[path = "attest/options.rs"]
mod options;
#[path = "attest/process.rs"]
mod process;
#[path = "attest/scratch.rs"]
mod scratch;
#[path = "attest/table.rs"]
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use counts::Counts;
use failure::Failure;
use measures::Bench;
use options::{Extent, Options};
use scratch::Scratch;

fn main() -> ExitCode {
    // First of all: what this process costs as an empty program is measured.
    if let Some(code) = floor::run() {
        return code;
    }
    let options = match Options::read(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => return ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("attest: {problem}\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    if !cfg!(target_os = "linux") {
        eprintln!("attest: nothing was measured: processor time and memory are read from /proc");
        return ExitCode::SUCCESS;
    }
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("attest: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    let scratch = Scratch::new()?;
    let engine = match options.engine.split_first() {
        Some((program, arguments)) => (found(program)?, arguments.to_vec()),
        None => (scratch.link("attest-engine", env!("CARGO_BIN_EXE_proctor"))?, Vec::new()),
    };
    process::watch();
    let before = load();
    let table = Bench { engine, scratch: &scratch, counts: Counts::of(options) }.run()?;
    if options.extent == Extent::Check {
        println!("attest: every measure works");
        return Ok(());
    }
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!("{cores} cores; load average {before} before, {} after\n", load());
    table.print();
    Ok(())
}

/// A program's path that holds in every folder. Not resolved further: it may look at its own name.
fn found(program: &str) -> Result<PathBuf, Failure> {
    if !program.contains('/') {
        return Ok(program.into());
    }
    Ok(std::path::absolute(program).map_err(|error| format!("`{program}`: {error}"))?)
}

/// Load average of the last minute, 5 and 15 minutes.
fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}
