//! Waiting for processes without a thread for each: their descriptors are registered with the runtime.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use proctor_sandbox::{Error, Exit, Process};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;

/// Time after a KILL in which the kernel ends processes.
const SETTLE: Duration = Duration::from_secs(5);

/// Registers a copy of a descriptor.
#[expect(
    deprecated,
    reason = "its flaw is about types that close or change their descriptor; an owned one does neither"
)]
pub(super) fn watched(descriptor: BorrowedFd<'_>) -> std::io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(descriptor.try_clone_to_owned()?, Interest::READABLE)
}

/// Waits for the end of the program, then ends what it left: whether it ended by itself within `patience`, and its end. A program that did
/// not gets the grace period between TERM and KILL.
pub(super) async fn finish(
    mut process: Process,
    patience: Duration,
    grace: Duration,
) -> Result<(bool, Exit), Error> {
    let has_ended = matches!(timeout(patience, program_end(&mut process)).await, Ok(Ok(())));
    let grace = if has_ended { Duration::ZERO } else { grace };
    process.request_end(grace);
    let is_gone = matches!(timeout(grace.saturating_add(SETTLE), last_end(&process)).await, Ok(Ok(())));
    // Nothing is left to wait for then; only a process that the kernel holds on to makes this block.
    let exit = if is_gone { process.terminate(grace)? } else { block(process, grace).await? };
    Ok((has_ended, exit))
}

async fn program_end(process: &mut Process) -> Result<(), Error> {
    let events = watched(process.events()).map_err(failed)?;
    while process.try_wait()?.is_none() {
        // Cleared before the messages are read, so that one that comes meanwhile wakes this again.
        events.readable().await.map_err(failed)?.clear_ready();
    }
    Ok(())
}

async fn last_end(process: &Process) -> std::io::Result<()> {
    watched(process.gone())?.readable().await.map(drop)
}

async fn block(process: Process, grace: Duration) -> Result<Exit, Error> {
    let ending = tokio::task::spawn_blocking(move || process.terminate(grace));
    ending.await.map_err(|error| failed(std::io::Error::other(error)))?
}

fn failed(source: std::io::Error) -> Error {
    Error::System { what: "waiting for the end of an agent", source }
}
