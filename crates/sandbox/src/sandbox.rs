//! Sandbox: what the kernel grants, and processes started under it.

use crate::Step;
use crate::error::Error;
use crate::features::{Feature, Features};
use crate::keeper::{self, FAILED, STARTED, Stacks};
use crate::mechanisms::Mechanisms;
use crate::network::{Loopback, Pool, Slot};
use crate::plan::Plan;
use crate::probe::{self, Trial};
use crate::process::{Process, system};
use crate::protections::{Protection, Protections, Standing};
use crate::spec::{Network, Spec, Stream};
use crate::sys::process::{self as calls, Children};
use crate::sys::sockets::{self, Words};
use crate::sys::{Errno, files};
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::path::Path;
use std::sync::Arc;

/// Strictness of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Uses what the kernel grants, and reports what is missing.
    Auto,
    /// Refuses to run anything if a protection is missing.
    Require,
    /// Protects nothing, but still ends every process of a run, and keeps the wall time.
    Off,
}

/// Way of starting processes, with what this machine offers for their confinement.
#[derive(Clone, Debug)]
pub struct Sandbox {
    mode: Mode,
    mechanisms: Arc<Mechanisms>,
    protections: Arc<Protections>,
    pool: Arc<Pool>,
}

impl Sandbox {
    /// Tries out what works here, in a folder below `scratch` that is removed again.
    ///
    /// Only `features` are used. In mode [`Mode::Require`] a missing protection is an error.
    pub fn new(mode: Mode, features: Features, scratch: &Path) -> Result<Self, Error> {
        let pool = Arc::new(Pool::default());
        if mode == Mode::Off {
            return Ok(Self {
                mode,
                mechanisms: Arc::new(Mechanisms::off()),
                protections: Arc::new(probe::off()),
                pool,
            });
        }
        let (mechanisms, protections) = probe::find(features, &pool, scratch)?;
        let sandbox =
            Self { mode, mechanisms: Arc::new(mechanisms), protections: Arc::new(protections), pool };
        sandbox.refuse_missing(&sandbox.protections)?;
        Ok(sandbox)
    }

    /// Strictness.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Report on the protections of a process without network.
    pub fn protections(&self) -> &Protections {
        &self.protections
    }

    /// Report on the protections of a process with the given network.
    pub fn protections_with(&self, network: &Network) -> Protections {
        let mut protections = (*self.protections).clone();
        match network {
            Network::None => {}
            Network::Host => protections.set(Protection::Network, Standing::Waived),
            Network::Only(_) if self.mode == Mode::Off || self.mechanisms.has(Feature::NetworkNamespace) => {}
            Network::Only(_) => {
                let why = self.mechanisms.why_absent(&[Feature::NetworkNamespace]);
                let reason = format!("Landlock restricts ports, not hosts: {why}");
                protections.set(Protection::Network, Standing::Missing { reason });
            }
        }
        protections
    }

    /// Makes a listener on 127.0.0.1 for [`Network::Only`].
    pub fn loopback(&self) -> Result<Loopback, Error> {
        self.pool.listen(&self.mechanisms)
    }

    /// Starts a process. Returns when its program runs.
    pub fn spawn(&self, spec: Spec) -> Result<Process, Error> {
        if self.mode == Mode::Require {
            self.refuse_missing(&self.protections_with(&spec.network))?;
        }
        match start(spec, &self.mechanisms, &self.pool, None)? {
            Started::Running(process) => Ok(process),
            Started::Tried { .. } => Err(Error::SupervisorLost),
        }
    }

    fn refuse_missing(&self, protections: &Protections) -> Result<(), Error> {
        match protections.missing().next().filter(|_| self.mode == Mode::Require) {
            Some((protection, reason)) => Err(Error::Missing { protection, reason: reason.to_owned() }),
            None => Ok(()),
        }
    }
}

/// Result of [`start`].
pub(crate) enum Started {
    /// The program runs.
    Running(Process),
    /// The trial ended.
    Tried {
        /// What was possible, as bits of [`crate::probe::Attempt`].
        possible: i32,
        /// Features that turned out missing, as bits of [`keeper`].
        missing: i32,
    },
}

/// Starts a program, or a trial in its place.
pub(crate) fn start(
    spec: Spec,
    mechanisms: &Mechanisms,
    pool: &Arc<Pool>,
    trial: Option<Trial>,
) -> Result<Started, Error> {
    let slot = slot_for(&spec.network, mechanisms, pool)?;
    let mut spec = spec;
    let streams = std::mem::take(&mut spec.streams);
    let [(stdin, to_stdin), (stdout, from_stdout), (stderr, from_stderr)] = open_streams(streams)?;
    let (ours, theirs) = sockets::message_pair().map_err(|errno| system("creating a socket pair", errno))?;
    let theirs = above_standard(theirs)?;
    let numbers: [RawFd; 3] = [stdin.as_raw_fd(), stdout.as_raw_fd(), stderr.as_raw_fd()];
    let plan = Plan::new(&spec, mechanisms, numbers, theirs.as_raw_fd(), trial)?;
    let mut stacks = Stacks::new().map_err(|errno| system("allocating a stack", errno))?;
    let entered = slot.as_ref().and_then(|slot| slot.entered());
    let created = keeper::launch(&plan, entered, &mut stacks)
        .map_err(|(step, errno)| Error::Setup { step, source: errno.into() })?;
    // Our copies of the child's ends would keep its pipes open.
    drop((plan, stacks, theirs, stdin, stdout, stderr));
    let supervisor = calls::own_descriptor(created.descriptor);
    let first = sockets::receive(ours.as_raw_fd(), true);
    match first.map_err(|errno| system("reading from the supervisor", errno))? {
        Some([STARTED, _, _]) => Ok(Started::Running(Process::new(
            [to_stdin, from_stdout, from_stderr],
            ours,
            supervisor,
            created.pid,
            slot,
        ))),
        other => {
            drop(ours);
            let _ = calls::reap(Children::Descriptor(supervisor.as_raw_fd()), true);
            ended(other)
        }
    }
}

/// First message of a supervisor that does not go on.
fn ended(message: Option<Words>) -> Result<Started, Error> {
    match message {
        Some([keeper::TRIED, possible, missing]) => Ok(Started::Tried { possible, missing }),
        Some([FAILED, step, errno]) => Err(match Step::from_number(step) {
            Some(step) => Error::Setup { step, source: Errno(errno).into() },
            None => Error::SupervisorLost,
        }),
        _ => Err(Error::SupervisorLost),
    }
}

fn slot_for(
    network: &Network,
    mechanisms: &Mechanisms,
    pool: &Arc<Pool>,
) -> Result<Option<Arc<Slot>>, Error> {
    match network {
        Network::Only(loopback) => Ok(loopback.slot()),
        Network::None if mechanisms.has(Feature::NetworkNamespace) => pool.take(mechanisms).map(Some),
        Network::Host | Network::None => Ok(None),
    }
}

/// The child's end of each stream, and ours where it is a pipe.
fn open_streams(streams: [Stream; 3]) -> Result<[(OwnedFd, Option<OwnedFd>); 3], Error> {
    let [stdin, stdout, stderr] = streams;
    Ok([open_stream(stdin, true)?, open_stream(stdout, false)?, open_stream(stderr, false)?])
}

fn open_stream(stream: Stream, is_input: bool) -> Result<(OwnedFd, Option<OwnedFd>), Error> {
    let (theirs, ours) = match stream {
        Stream::File(fd) => (fd, None),
        Stream::Null => {
            let flags = if is_input { libc::O_RDONLY } else { libc::O_WRONLY };
            let fd = files::open(c"/dev/null", flags, 0);
            (files::own(fd.map_err(|errno| system("opening /dev/null", errno))?), None)
        }
        Stream::Pipe => {
            let (read, write) = files::pipe().map_err(|errno| system("creating a pipe", errno))?;
            if is_input { (read, Some(write)) } else { (write, Some(read)) }
        }
    };
    Ok((above_standard(theirs)?, ours))
}

/// Moves a descriptor above the standard ones, which the child overwrites.
fn above_standard(fd: OwnedFd) -> Result<OwnedFd, Error> {
    const FIRST: RawFd = 3;
    if fd.as_raw_fd() >= FIRST {
        return Ok(fd);
    }
    files::duplicate_from(fd.as_raw_fd(), FIRST)
        .map(files::own)
        .map_err(|errno| system("duplicating a descriptor", errno))
}
