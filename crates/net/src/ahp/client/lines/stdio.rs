//! A program that the client starts.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, ChildStdout, Command};

use super::super::error::{AhpError, Result};
use super::super::link::{Incoming, Link, Received, Times};
use super::LineWriter;
use crate::lines::{Lines, MAX_MESSAGE};

/// How long the last words of a program that has ended are read. They are in the pipe already; only a descendant that holds it
/// open makes us wait.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Starts the program.
pub(in super::super) fn start(program: &str, args: &[String], times: Times) -> Result<Link> {
    let failed = |problem: &str| AhpError::Transport(format!("the program `{program}`: {problem}"));
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed(&error.to_string()))?;
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(failed("it has no standard streams"));
    };
    let reader = ProgramReader { lines: Lines::new(stdout, MAX_MESSAGE), child, ended: false };
    Ok(Link::start(reader, LineWriter(stdin), times))
}

struct ProgramReader {
    lines: Lines<ChildStdout>,
    child: Child,
    ended: bool,
}

impl Incoming for ProgramReader {
    async fn next(&mut self) -> Option<Received> {
        if !self.ended {
            tokio::select! {
                biased;
                received = super::next(&mut self.lines) => return received,
                _ = self.child.wait() => self.ended = true,
            }
        }
        tokio::time::timeout(LAST_WORDS, super::next(&mut self.lines)).await.ok().flatten()
    }

    async fn finish(self, within: Duration) {
        let ProgramReader { mut lines, mut child, ended } = self;
        if ended {
            return;
        }
        let going = async {
            loop {
                tokio::select! {
                    _ = child.wait() => return,
                    // Its last words are read, though nobody waits for them: it must not be stopped by a closed pipe on its way out.
                    received = super::next(&mut lines) => if received.is_none() { break },
                }
            }
            let _ = child.wait().await;
        };
        if tokio::time::timeout(within, going).await.is_err() {
            // Sends the signal and collects the program, so that none remains.
            let _ = child.kill().await;
        }
    }
}
