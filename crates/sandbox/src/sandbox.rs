//! Sandbox: what the kernel grants, and processes started under it.

use crate::Step;
use crate::error::{Error, Missing};
use crate::features::{Feature, Features};
use crate::keeper::{self, FAILED, STARTED, Stacks};
use crate::mechanisms::Mechanisms;
use crate::network::{Loopback, Pool, Slot};
use crate::plan::{Plan, explained};
use crate::probe::{self, Trial};
use crate::process::{self, Process, Reach, system};
use crate::protections::{Protection, Protections, Standing};
use crate::spec::{Network, Spec, Stream};
use crate::sys::process::{self as calls, Children};
use crate::sys::sockets::{self, Words};
use crate::sys::{Errno, files};
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

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
///
/// Copies share what was found out.
#[derive(Clone, Debug)]
pub struct Sandbox {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    mode: Mode,
    features: Features,
    scratch: PathBuf,
    pool: Arc<Pool>,
    found: OnceLock<Found>,
    /// Protection that the caller cannot ask for, and why.
    lacking: Option<(Protection, String)>,
    /// Held while the sandbox is tried out, so that it happens once.
    trying: Mutex<()>,
}

/// Result of trying the sandbox out.
#[derive(Debug)]
struct Found {
    mechanisms: Mechanisms,
    protections: Protections,
}

impl Sandbox {
    /// Tries out what works here, in a folder below `scratch` that is removed again.
    ///
    /// Only `features` are used. In mode [`Mode::Require`] a missing protection is an error.
    pub fn new(mode: Mode, features: Features, scratch: &Path) -> Result<Self, Error> {
        let sandbox = Self::deferred(mode, features, scratch);
        sandbox.found()?;
        Ok(sandbox)
    }

    /// Sandbox that is tried out when its first process or listener is asked for: that takes milliseconds, and a caller may never start
    /// anything. Failures come then.
    pub fn deferred(mode: Mode, features: Features, scratch: &Path) -> Self {
        let found = OnceLock::new();
        if mode == Mode::Off {
            let off = Found { mechanisms: Mechanisms::off(), protections: probe::off() };
            let _ = found.set(off);
        }
        Self {
            inner: Arc::new(Inner {
                mode,
                features,
                scratch: scratch.to_owned(),
                pool: Arc::new(Pool::default()),
                found,
                lacking: None,
                trying: Mutex::new(()),
            }),
        }
    }

    /// Says that a protection is missing, however the sandbox is tried out: for callers that do not know what it should apply to. A sandbox
    /// that was copied or tried out already stays as it is.
    #[must_use]
    pub fn lacking(mut self, protection: Protection, reason: &str) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.lacking = Some((protection, reason.to_owned()));
        }
        self
    }

    /// Strictness.
    pub fn mode(&self) -> Mode {
        self.inner.mode
    }

    /// Tries the sandbox out, if that has not happened yet, and reports on the protections of a process without network.
    pub fn try_out(&self) -> Result<&Protections, Error> {
        self.found().map(|found| &found.protections)
    }

    /// Report on the protections of a process without network. It is empty if a deferred sandbox was never tried out.
    pub fn protections(&self) -> &Protections {
        const NOT_TRIED: &Protections = &Protections::empty();
        self.inner.found.get().map_or(NOT_TRIED, |found| &found.protections)
    }

    /// Report on the protections of a process with the given network.
    pub fn protections_with(&self, network: &Network) -> Protections {
        match network {
            Network::None => self.protections().clone(),
            Network::Only(_) => self.protections_with_listener(),
            Network::Host => {
                let mut protections = self.protections().clone();
                protections.set(Protection::Network, Standing::Waived);
                protections
            }
        }
    }

    /// Report on the protections of a process that reaches one listener, as with [`Network::Only`].
    pub fn protections_with_listener(&self) -> Protections {
        let mut protections = self.protections().clone();
        if let Some(Found { mechanisms, .. }) = self.inner.found.get()
            && self.inner.mode != Mode::Off
            && !mechanisms.has(Feature::NetworkNamespace)
        {
            let why = mechanisms.why_absent(&[Feature::NetworkNamespace]);
            let reason = format!("Landlock restricts ports, not hosts: {why}");
            protections.set(Protection::Network, Standing::Missing { reason });
        }
        protections
    }

    /// Makes a listener on 127.0.0.1 for [`Network::Only`].
    pub fn loopback(&self) -> Result<Loopback, Error> {
        self.inner.pool.listen(&self.found()?.mechanisms)
    }

    /// Starts a process. Returns when its program runs.
    pub fn spawn(&self, spec: Spec) -> Result<Process, Error> {
        let found = self.found()?;
        if self.inner.mode == Mode::Require {
            refuse_missing(&self.protections_with(&spec.network))?;
        }
        match start(spec, &found.mechanisms, &self.inner.pool, None)? {
            Started::Running(process) => Ok(process),
            Started::Tried { .. } => Err(Error::SupervisorLost),
        }
    }

    fn found(&self) -> Result<&Found, Error> {
        let Inner { mode, features, scratch, pool, found, lacking, trying } = &*self.inner;
        if let Some(found) = found.get() {
            return Ok(found);
        }
        let _one_at_a_time = trying.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = found.get() {
            return Ok(found);
        }
        let (mechanisms, mut protections) = probe::find(*features, pool, scratch)?;
        if let Some((protection, reason)) = lacking {
            protections.set(*protection, Standing::Missing { reason: reason.clone() });
        }
        if *mode == Mode::Require {
            refuse_missing(&protections)?;
        }
        Ok(found.get_or_init(|| Found { mechanisms, protections }))
    }
}

fn refuse_missing(protections: &Protections) -> Result<(), Error> {
    let missing: Vec<(Protection, String)> =
        protections.missing().map(|(protection, reason)| (protection, reason.to_owned())).collect();
    if missing.is_empty() { Ok(()) } else { Err(Error::Missing(Missing(missing))) }
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
    let listener = match &spec.network {
        Network::Only(loopback) => Some(loopback.clone()),
        Network::None | Network::Host => None,
    };
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
    match process::first_message(&ours, &supervisor)? {
        Some([STARTED, _, _]) => Ok(Started::Running(Process::new(
            [to_stdin, from_stdout, from_stderr],
            ours,
            supervisor,
            created.pid,
            Reach { _slot: slot, _listener: listener },
        ))),
        other => {
            drop(ours);
            let _ = calls::reap(Children::Descriptor(supervisor.as_raw_fd()), true);
            ended(other).map_err(|error| explained(&spec, error))
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
