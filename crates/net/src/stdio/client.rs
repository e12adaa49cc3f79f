//! A child process that is talked to over its standard streams.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::message::{LineReader, LineWriter, MessageReader, Received};

/// Time that the output of an exited process is still read. It is in the pipe already; only a descendant that holds the pipe open makes
/// this wait.
const DRAIN: Duration = Duration::from_millis(100);

/// Starts a program; a message is a line on its standard input or output, and its standard error is this process's. The process is
/// killed when the reader is dropped.
pub fn spawn(program: &str, args: &[String]) -> io::Result<(ProcessReader, LineWriter<ChildStdin>)> {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()?;
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("it has no standard streams"));
    };
    Ok((ProcessReader { lines: LineReader::new(stdout), child, exited: false }, LineWriter(stdin)))
}

/// The output of a child process.
#[derive(Debug)]
pub struct ProcessReader {
    lines: LineReader<ChildStdout>,
    child: Child,
    exited: bool,
}

impl MessageReader for ProcessReader {
    async fn next(&mut self) -> Option<Received> {
        if !self.exited {
            tokio::select! {
                biased;
                received = self.lines.next_line() => return received,
                _ = self.child.wait() => self.exited = true,
            }
        }
        tokio::time::timeout(DRAIN, self.lines.next_line()).await.ok().flatten()
    }

    async fn finish(self, within: Duration) {
        let ProcessReader { mut lines, mut child, exited } = self;
        if exited {
            return;
        }
        let exit = async {
            loop {
                tokio::select! {
                    _ = child.wait() => return,
                    // Read, though no call waits for it: the process must not be stopped by a full or closed pipe while it exits.
                    received = lines.next_line() => if received.is_none() { break },
                }
            }
            let _ = child.wait().await;
        };
        if tokio::time::timeout(within, exit).await.is_err() {
            // Kills the process and reaps it, so that no zombie remains.
            let _ = child.kill().await;
        }
    }
}
