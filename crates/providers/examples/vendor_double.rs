//! A stand-in for OpenAI, Anthropic, Gemini and Ollama on a port of this machine, for trying Proctor without any of them.
//!
//! ```text
//! cargo run -p proctor-providers --example vendor_double -- [--key KEY] [--until-stdin-ends]
//! ```
//!
//! Prints `listening on 127.0.0.1:PORT` and the key it accepts. What it answers is set over HTTP at `/control`; the page is
//! at the beginning of `tests/double/server.rs`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for a terminal")]

use std::io::Write as _;
use std::process::ExitCode;

#[path = "../tests/double/server.rs"]
mod double;

fn main() -> ExitCode {
    let mut key = double::KEY.to_owned();
    let mut until_stdin_ends = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--until-stdin-ends" => until_stdin_ends = true,
            "--key" => match arguments.next() {
                Some(value) => key = value,
                None => return usage(),
            },
            _ => return usage(),
        }
    }
    let server = double::Double::start_with(&key);
    println!("listening on {}", server.address());
    println!("key {key}");
    // Whoever started it may be reading a pipe.
    if std::io::stdout().flush().is_err() {
        return ExitCode::FAILURE;
    }
    if until_stdin_ends {
        let ended = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        return if ended.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    server.forever();
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: vendor_double [--key KEY] [--until-stdin-ends]");
    ExitCode::FAILURE
}
