//! The floors: what the same exchange costs when nothing is evaluated. This program, started again, is both.

use std::io::{Read, Write};
use std::process::{Command, ExitCode};

use crate::failure::Failure;

/// Set in the environment of a floor's process: `empty`, or the length of the line to answer with.
const VARIABLE: &str = "ATTEST_BENCH_FLOOR";

/// A program that ends at once.
pub fn empty() -> Result<Command, Failure> {
    this_program("empty")
}

/// A program that answers each line with one of `length` bytes.
pub fn echo(length: usize) -> Result<Command, Failure> {
    this_program(&length.to_string())
}

fn this_program(role: &str) -> Result<Command, Failure> {
    let program = std::env::current_exe().map_err(|error| format!("this program's path: {error}"))?;
    let mut command = Command::new(program);
    command.env(VARIABLE, role);
    Ok(command)
}

/// Is a floor, if this process was started as one.
pub fn run() -> Option<ExitCode> {
    let role = std::env::var(VARIABLE).ok()?;
    if role == "empty" {
        return Some(ExitCode::SUCCESS);
    }
    let length: usize = role.parse().ok()?;
    let mut line = vec![b'x'; length.saturating_sub(1)];
    line.push(b'\n');
    Some(if answer(&line).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn answer(line: &[u8]) -> std::io::Result<()> {
    let mut input = std::io::stdin().lock();
    let mut output = std::io::stdout().lock();
    let mut room = vec![0; 64 * 1024];
    let mut answers = Vec::new();
    loop {
        let count = input.read(&mut room)?;
        if count == 0 {
            return Ok(());
        }
        answers.clear();
        for _ in room.iter().take(count).filter(|byte| **byte == b'\n') {
            answers.extend_from_slice(line);
        }
        if !answers.is_empty() {
            output.write_all(&answers)?;
            output.flush()?;
        }
    }
}
