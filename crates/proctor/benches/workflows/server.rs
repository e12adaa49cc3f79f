//! A process that answers one line with one line: `agentcli serve`, or a floor.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// A process that answers lines. It is ended when this is dropped.
pub struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    answer: Vec<u8>,
}

impl Server {
    /// Starts the process.
    pub fn start(command: &mut Command) -> Result<Server, Failure> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("the server cannot be started: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the server has no pipes".into());
        };
        let output = BufReader::with_capacity(256 * 1024, output);
        Ok(Server { child, input, output, answer: Vec::new() })
    }

    /// Reads a line.
    pub fn line(&mut self) -> Result<&[u8], Failure> {
        self.answer.clear();
        let read = self.output.read_until(b'\n', &mut self.answer);
        match read {
            Ok(1..) if self.answer.ends_with(b"\n") => Ok(&self.answer),
            _ => Err("the server ended before it answered".into()),
        }
    }

    /// Sends a line, and says how long the answer took.
    pub fn ask(&mut self, line: &[u8]) -> Result<Duration, Failure> {
        let begin = Instant::now();
        self.input.write_all(line).map_err(|error| format!("the server does not read: {error}"))?;
        self.line()?;
        Ok(begin.elapsed())
    }

    /// The last answer.
    pub fn answer(&self) -> &[u8] {
        &self.answer
    }

    /// Processor time of all threads so far.
    pub fn processor_time(&self) -> Result<Duration, Failure> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id()))
            .map_err(|error| format!("threads of the server: {error}"))?;
        let nanos = tasks
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok())
            .filter_map(|text| text.split_whitespace().next()?.parse::<u64>().ok())
            .sum();
        Ok(Duration::from_nanos(nanos))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
