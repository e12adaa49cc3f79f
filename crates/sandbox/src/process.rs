//! Handle of a running process.

use crate::error::Error;
use crate::keeper::{CROSSED, END, EXITED, LEFT};
use crate::limits::Limit;
use crate::network::{Loopback, Slot};
use crate::plan;
use crate::sys::Errno;
use crate::sys::process::{self as calls, Children};
use crate::sys::sockets::{self, Words};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// End of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Exit status.
    Exited(i32),
    /// Signal that killed it.
    Signaled(i32),
    /// Unknown, because the supervisor was killed first.
    Lost,
}

/// Report on the end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// End of the program itself.
    pub status: Status,
    /// Limit that was crossed.
    pub limit: Option<Limit>,
    /// Processes that the program had left behind, or had not ended yet, when [`Process::terminate`] was called.
    pub left_behind: u32,
}

/// Running program with everything it started.
///
/// Dropping the handle kills what is left of the run, without grace, and waits for it.
#[derive(Debug)]
pub struct Process {
    /// Writing end of the program's standard input, if that is a pipe.
    pub stdin: Option<OwnedFd>,
    /// Reading end of the program's standard output, if that is a pipe.
    pub stdout: Option<OwnedFd>,
    /// Reading end of the program's standard error, if that is a pipe.
    pub stderr: Option<OwnedFd>,
    channel: Option<OwnedFd>,
    supervisor: OwnedFd,
    supervisor_id: u32,
    status: Option<Status>,
    limit: Option<Limit>,
    left_behind: u32,
    is_reaped: bool,
    /// Kept until the last process has gone.
    _network: Reach,
}

/// Network of a process: the namespace it is in, and the listener it reaches.
#[derive(Debug)]
pub(crate) struct Reach {
    pub(crate) _slot: Option<Arc<Slot>>,
    pub(crate) _listener: Option<Loopback>,
}

/// Time beyond the grace period in which the kernel ends killed processes.
const SETTLE: Duration = Duration::from_secs(20);

/// Time between two attempts to continue a supervisor that says nothing. A stopped one would neither report nor enforce limits.
pub(crate) const RESUME: Duration = Duration::from_millis(50);

impl Process {
    pub(crate) fn new(
        pipes: [Option<OwnedFd>; 3],
        channel: OwnedFd,
        supervisor: OwnedFd,
        supervisor_id: i32,
        network: Reach,
    ) -> Self {
        let [stdin, stdout, stderr] = pipes;
        Self {
            stdin,
            stdout,
            stderr,
            channel: Some(channel),
            supervisor,
            supervisor_id: supervisor_id.cast_unsigned(),
            status: None,
            limit: None,
            left_behind: 0,
            is_reaped: false,
            _network: network,
        }
    }

    /// Process id of the supervisor, whose descendants are the run.
    pub fn supervisor_id(&self) -> u32 {
        self.supervisor_id
    }

    /// Descriptor that becomes readable when there is something for [`Process::try_wait`] to read: above all, when the program has ended.
    pub fn events(&self) -> BorrowedFd<'_> {
        self.channel.as_ref().map_or(self.supervisor.as_fd(), OwnedFd::as_fd)
    }

    /// Process descriptor that becomes readable when no process of the run is left.
    pub fn gone(&self) -> BorrowedFd<'_> {
        self.supervisor.as_fd()
    }

    /// Looks whether the program has ended, without waiting. Processes that it started may still run.
    pub fn try_wait(&mut self) -> Result<Option<Exit>, Error> {
        self.read_messages()?;
        Ok(self.status.map(|status| self.exit(status)))
    }

    /// Waits for the end of the program, at most for the given time.
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<Exit>, Error> {
        let deadline = Deadline::after(timeout);
        loop {
            if let Some(exit) = self.try_wait()? {
                return Ok(Some(exit));
            }
            let Some(left) = deadline.left() else { return Ok(None) };
            if !wait_for(self.events(), left.min(RESUME))? {
                self.resume_supervisor();
            }
        }
    }

    /// Asks for the end of the run, without waiting: TERM to every process that it started, KILL after the grace period.
    pub fn request_end(&mut self, grace: Duration) {
        if let Some(channel) = &self.channel {
            let grace = i32::try_from(plan::milliseconds(grace)).unwrap_or(i32::MAX);
            // It fails only if the supervisor has gone, which it does after the last process of the run.
            let _ = sockets::send(channel.as_raw_fd(), [END, grace, 0]);
        }
        self.resume_supervisor();
    }

    /// Continues a supervisor that the run has stopped.
    pub(crate) fn resume_supervisor(&self) {
        resume(&self.supervisor);
    }

    /// Ends the run: TERM to every process that it started, KILL after the grace period. Returns when none is left.
    pub fn terminate(mut self, grace: Duration) -> Result<Exit, Error> {
        self.request_end(grace);
        self.wait_gone(grace.saturating_add(SETTLE))?;
        self.read_messages()?;
        let status = self.status.unwrap_or(Status::Lost);
        Ok(self.exit(status))
    }

    fn exit(&self, status: Status) -> Exit {
        // The kernel reports this limit by a signal of its own.
        let by_signal = (status == Status::Signaled(libc::SIGXFSZ)).then_some(Limit::FileSize);
        Exit { status, limit: self.limit.or(by_signal), left_behind: self.left_behind }
    }

    fn read_messages(&mut self) -> Result<(), Error> {
        let Some(channel) = self.channel.as_ref().map(OwnedFd::as_raw_fd) else { return Ok(()) };
        loop {
            match sockets::receive(channel, false) {
                Ok(Some([EXITED, libc::CLD_EXITED, status])) => self.status = Some(Status::Exited(status)),
                Ok(Some([EXITED, _, signal])) => self.status = Some(Status::Signaled(signal)),
                Ok(Some([CROSSED, limit, _])) => self.limit = self.limit.or(Limit::from_number(limit)),
                Ok(Some([LEFT, count, _])) => self.left_behind = count.cast_unsigned(),
                Ok(Some(_)) => {}
                Ok(None) => {
                    self.status = self.status.or(Some(Status::Lost));
                    self.channel = None;
                    return Ok(());
                }
                Err(Errno(libc::EAGAIN)) => return Ok(()),
                Err(errno) => return Err(system("reading from the supervisor", errno)),
            }
        }
    }

    /// Waits for the end of the supervisor, and reaps it.
    fn wait_gone(&mut self, timeout: Duration) -> Result<(), Error> {
        if !self.is_reaped {
            let deadline = Deadline::after(timeout);
            let step = || deadline.left().unwrap_or(Duration::ZERO).min(RESUME);
            while !wait_for(self.supervisor.as_fd(), step())? {
                self.resume_supervisor();
                if deadline.left().is_none() {
                    let source = std::io::Error::from(std::io::ErrorKind::TimedOut);
                    return Err(Error::System { what: "ending the processes of a run", source });
                }
            }
            calls::reap(Children::Descriptor(self.supervisor.as_raw_fd()), true)
                .map_err(|errno| system("waiting for the supervisor", errno))?;
            self.is_reaped = true;
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The supervisor takes a closed channel as the order to kill.
        self.channel = None;
        let _ = self.wait_gone(SETTLE);
    }
}

/// Continues a supervisor that its run has stopped: without a process namespace of its own, a run can send it signals.
pub(crate) fn resume(supervisor: &OwnedFd) {
    // It fails only if the supervisor has gone.
    let _ = calls::send_signal_to(supervisor.as_raw_fd(), libc::SIGCONT);
}

/// Waits for the first message of a supervisor. The program may stop its supervisor before that one has reported the start.
pub(crate) fn first_message(channel: &OwnedFd, supervisor: &OwnedFd) -> Result<Option<Words>, Error> {
    while !wait_for(channel.as_fd(), RESUME)? {
        resume(supervisor);
    }
    sockets::receive(channel.as_raw_fd(), true).map_err(|errno| system("reading from the supervisor", errno))
}

/// Point in time, or none if it is too far away to be told.
struct Deadline(Option<Instant>);

impl Deadline {
    fn after(time: Duration) -> Self {
        Self(Instant::now().checked_add(time))
    }

    /// Time left; `None` when it has passed.
    fn left(&self) -> Option<Duration> {
        match self.0 {
            Some(at) => at.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()),
            None => Some(Duration::MAX),
        }
    }
}

/// Waits until a descriptor can be read: whether it can.
fn wait_for(fd: BorrowedFd<'_>, time: Duration) -> Result<bool, Error> {
    // Rounded up, or the last millisecond would be spent in a loop.
    let milliseconds = i32::try_from(time.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
    sockets::wait_readable(fd.as_raw_fd(), -1, milliseconds)
        .map(|(is_readable, _)| is_readable)
        .map_err(|errno| system("waiting for a process", errno))
}

pub(crate) fn system(what: &'static str, errno: Errno) -> Error {
    Error::System { what, source: errno.into() }
}
