//! The gateway and the runtime of Agent Assembly from the outside, each measure beside its floor in the same run:
//! `cargo bench -p proctor --bench assembly -- [--seconds N] [--quick | --check]`.
//! Prints a table for `docs/performance.md`. The program is the one in `PROCTOR_RELEASE_BINARY`, else the one that was built along. As
//! part of `cargo test` everything runs once with small counts, and no number is printed.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    unreachable_pub,
    reason = "measured on demand, by people"
)]

#[path = "assembly/agent.rs"]
mod agent;
#[path = "assembly/checks.rs"]
mod checks;
#[path = "assembly/counted.rs"]
mod counted;
#[path = "attest/failure.rs"]
mod failure;
#[path = "assembly/floor.rs"]
mod floor;
#[path = "assembly/library.rs"]
mod library;
#[path = "assembly/measured.rs"]
mod measured;
#[path = "assembly/measures.rs"]
mod measures;
#[path = "assembly/options.rs"]
mod options;
#[path = "assembly/process.rs"]
mod process;
#[path = "assembly/programs.rs"]
mod programs;
#[path = "attest/table.rs"]
mod table;

use std::process::ExitCode;

use failure::Failure;
use measures::Bench;
use options::{Extent, Options};
use programs::Programs;

/// The same allocator as the program's, so that the floor differs from it in nothing else.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if let Some(code) = floor::run() {
        return code;
    }
    let options = match Options::read(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => return ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("assembly: {problem}\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    if !cfg!(target_os = "linux") {
        eprintln!("assembly: nothing was measured: processor time and memory are read from /proc");
        return ExitCode::SUCCESS;
    }
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("assembly: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    let programs = Programs::new()?;
    let before = load();
    let table = Bench { programs: &programs, counts: options.counts() }.run()?;
    if options.extent == Extent::Check {
        println!("assembly: every measure works");
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
