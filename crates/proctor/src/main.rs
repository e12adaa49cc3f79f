//! Command line of Proctor, where all parts are put together.

#![expect(
    unreachable_pub,
    reason = "a program has no outside: `pub` says what a module shows to its neighbours"
)]

mod access;
mod allocator;
mod cli;
mod commands;
mod config;
mod failure;
mod logging;
mod output;
mod programs;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::Cli;
use crate::failure::{FAILED, Failure};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // Scripts ask this often; building the whole command line for it would cost more than everything else.
    if let [name, only] = arguments.as_slice()
        && (only == "--version" || only == "-V")
        && !programs::says_its_version(name)
    {
        let written = output::data(concat!("proctor ", env!("CARGO_PKG_VERSION")));
        return ExitCode::from(written.map_or_else(|failure| failure.code, |()| 0));
    }
    allocator::keep_little();
    output::choose_colours();
    // A file-size limit is an error of a write, not a reason to die.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
    logging::install(programs::log_prefix(&arguments));
    if let Some(code) = programs::run(&arguments) {
        return code;
    }
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() { FAILED } else { 0 };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let outcome = commands::run(cli);
    logging::flush();
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(Failure { code, lines }) => {
            for line in lines {
                output::error(&line);
            }
            ExitCode::from(code)
        }
    }
}
