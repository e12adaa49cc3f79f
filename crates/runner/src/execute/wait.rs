//! Waiting for processes without a thread for each: their descriptors are registered with the runtime.

use std::io::ErrorKind;
use std::time::Duration;

use proctor_sandbox::{Error, Exit, Process};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::time::timeout;

/// Time after a KILL in which the kernel ends processes.
const SETTLE: Duration = Duration::from_secs(5);

/// Registers the socket by which a running program's end is told. Only its readiness is used: the sandbox reads the messages.
pub(super) fn events(process: &Process) -> std::io::Result<UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(process.events().try_clone_to_owned()?);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
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
    if process.try_wait()?.is_some() {
        return Ok(());
    }
    let events = events(process).map_err(failed)?;
    while process.try_wait()?.is_none() {
        events.readable().await.map_err(failed)?;
        // Cleared before the messages are read, so that one that comes meanwhile wakes this again.
        let clear = || Err::<(), _>(ErrorKind::WouldBlock.into());
        let _ = events.try_io(Interest::READABLE, clear);
    }
    Ok(())
}

async fn last_end(process: &Process) -> std::io::Result<()> {
    // Any descriptor that can be polled will do: nothing is read from it.
    pipe::Receiver::from_owned_fd_unchecked(process.gone().try_clone_to_owned()?)?.readable().await
}

async fn block(process: Process, grace: Duration) -> Result<Exit, Error> {
    let ending = tokio::task::spawn_blocking(move || process.terminate(grace));
    ending.await.map_err(|error| failed(std::io::Error::other(error)))?
}

fn failed(source: std::io::Error) -> Error {
    Error::System { what: "waiting for the end of an agent", source }
}

#[cfg(test)]
mod tests {
    use super::{events, finish};
    use proctor_sandbox::{Features, Mode, Process, Sandbox, Spec, Status, Stream};
    use std::time::{Duration, Instant};

    const LONG: Duration = Duration::from_secs(20);

    fn start(script: &str) -> Process {
        let folder = std::env::temp_dir();
        let sandbox = Sandbox::deferred(Mode::Off, Features::all(), &folder);
        let spec = Spec::new("/bin/sh", &folder)
            .arguments(["-c", script])
            .environment("PATH", "/usr/bin:/bin")
            .stdin(Stream::Null)
            .stdout(Stream::Null)
            .stderr(Stream::Null);
        sandbox.spawn(spec).unwrap()
    }

    #[tokio::test]
    async fn the_end_of_a_program_is_noticed_and_what_it_left_is_ended() {
        let begin = Instant::now();
        let process = start("setsid sleep 300 & exit 3");
        events(&process).unwrap().readable().await.unwrap();
        let (has_ended, exit) = finish(process, LONG, LONG).await.unwrap();
        assert_eq!((has_ended, exit.status), (true, Status::Exited(3)));
        assert!(begin.elapsed() < LONG, "{:?}", begin.elapsed());
        // Also when the end is not there yet.
        let (has_ended, exit) = finish(start("sleep 0.1; exit 4"), LONG, LONG).await.unwrap();
        assert_eq!((has_ended, exit.status, exit.left_behind), (true, Status::Exited(4), 0));
    }

    #[tokio::test]
    async fn a_program_that_does_not_end_gets_term_and_then_kill() {
        let process = start("trap 'exit 7' TERM; while :; do sleep 0.01; done");
        // The trap is set within that time; without it the status would tell.
        let (has_ended, exit) = finish(process, Duration::from_millis(500), LONG).await.unwrap();
        assert_eq!((has_ended, exit.status), (false, Status::Exited(7)));
        let process = start("trap '' TERM; while :; do sleep 0.01; done");
        let (has_ended, exit) =
            finish(process, Duration::from_millis(500), Duration::from_millis(50)).await.unwrap();
        assert_eq!((has_ended, exit.status), (false, Status::Signaled(9)));
    }
}
