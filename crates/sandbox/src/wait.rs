//! Processes on a Tokio runtime: their pipes, and waiting without a thread for each, because their descriptors are registered with
//! the runtime.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::time::timeout;

use crate::process::{RESUME, resume};
use crate::{Error, Exit, Process};

/// Time after a KILL in which the kernel ends processes.
const SETTLE: Duration = Duration::from_secs(5);

/// Our ends of a program's pipes.
#[derive(Debug)]
pub struct Pipes {
    /// Standard input of the program, if it is a pipe.
    pub stdin: Option<pipe::Sender>,
    /// Standard output of the program.
    pub stdout: pipe::Receiver,
    /// Standard error of the program.
    pub stderr: pipe::Receiver,
}

impl Pipes {
    /// Takes the pipes of a process.
    pub fn take(process: &mut Process) -> io::Result<Pipes> {
        let missing = || io::Error::other("a pipe is missing");
        Ok(Pipes {
            stdin: process.stdin.take().map(pipe::Sender::from_owned_fd).transpose()?,
            stdout: pipe::Receiver::from_owned_fd(process.stdout.take().ok_or_else(missing)?)?,
            stderr: pipe::Receiver::from_owned_fd(process.stderr.take().ok_or_else(missing)?)?,
        })
    }
}

/// Becomes ready when the supervisor has said something about the program, usually that it has ended. Processes that it started may
/// still hold its output open.
pub fn notice(process: &Process) -> io::Result<impl Future<Output = ()> + use<>> {
    let events = watched(process.events())?;
    let supervisor = process.gone().try_clone_to_owned()?;
    Ok(async move {
        while timeout(RESUME, events.readable()).await.is_err() {
            resume(&supervisor);
        }
    })
}

/// Waits for the end of the program itself.
pub async fn program_end(process: &mut Process) -> Result<(), Error> {
    let events = watched(process.events()).map_err(failed)?;
    while process.try_wait()?.is_none() {
        match timeout(RESUME, events.readable()).await {
            // Cleared before the messages are read, so that one that comes meanwhile wakes this again.
            Ok(ready) => ready.map_err(failed)?.clear_ready(),
            Err(_) => process.resume_supervisor(),
        }
    }
    Ok(())
}

/// Ends everything that is left of a run, with a grace period between TERM and KILL, and waits for it.
pub async fn terminate(mut process: Process, grace: Duration) -> Result<Exit, Error> {
    process.request_end(grace);
    let last_end = watched(process.gone()).map_err(failed)?;
    let is_gone = matches!(timeout(grace.saturating_add(SETTLE), last_end.readable()).await, Ok(Ok(_)));
    drop(last_end);
    // Nothing is left to wait for then; only a process that the kernel holds on to makes this block.
    if is_gone { process.terminate(grace) } else { block(process, grace).await }
}

/// Waits for the end of the program, then ends what it left: whether it ended by itself within `patience`, and its end. A program that did
/// not gets the grace period between TERM and KILL.
pub async fn finish(
    mut process: Process,
    patience: Duration,
    grace: Duration,
) -> Result<(bool, Exit), Error> {
    let has_ended = matches!(timeout(patience, program_end(&mut process)).await, Ok(Ok(())));
    let exit = terminate(process, if has_ended { Duration::ZERO } else { grace }).await?;
    Ok((has_ended, exit))
}

async fn block(process: Process, grace: Duration) -> Result<Exit, Error> {
    let ending = tokio::task::spawn_blocking(move || process.terminate(grace));
    ending.await.map_err(|error| failed(io::Error::other(error)))?
}

/// Registers a copy of a descriptor with the runtime.
#[expect(
    deprecated,
    reason = "its flaw is about types that close or change their descriptor; an owned one does neither"
)]
fn watched(descriptor: BorrowedFd<'_>) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(descriptor.try_clone_to_owned()?, Interest::READABLE)
}

fn failed(source: io::Error) -> Error {
    Error::System { what: "waiting for the end of a process", source }
}
