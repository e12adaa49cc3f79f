//! Everything that a child process does before its program runs, worked out by the parent: after the fork nothing may allocate.

pub(crate) mod layers;
mod program;
mod sockets;

use crate::error::Error;
use crate::features::Feature;
use crate::landlock::{self, Ruleset};
use crate::limits::Limits;
use crate::mechanisms::Mechanisms;
use crate::probe::Trial;
use crate::seccomp::{self, Sockets};
use crate::spec::{Network, Spec};
use crate::sys::process::{Instruction, Resource, StringVector};
use crate::sys::{self};
use layers::{Layers, Reachable};
pub(crate) use program::explained;
use sockets::Foreign;
use std::ffi::CString;
use std::os::fd::{AsRawFd as _, RawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) use program::text;

/// What the process does once it is confined.
#[derive(Debug)]
pub(crate) enum Work {
    /// Becomes a program.
    Execute { program: CString, arguments: StringVector, environment: StringVector },
    /// Tries to break out, for the report on protections.
    Try(Box<Trial>),
}

/// Numbers that the supervisor needs for as long as the run lasts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    /// Channel to the parent.
    pub(crate) channel: RawFd,
    /// Whether the supervisor is PID 1 of a namespace.
    pub(crate) is_first: bool,
    /// Whether memory and processes are sampled.
    pub(crate) samples: bool,
    pub(crate) memory: u64,
    pub(crate) processes: u64,
    pub(crate) wall_milliseconds: u64,
    pub(crate) grace_milliseconds: u64,
    pub(crate) page: u64,
}

/// Plan of a child process.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) clone_flags: i32,
    pub(crate) is_confined: bool,
    pub(crate) user_map: Option<(Vec<u8>, Vec<u8>)>,
    pub(crate) layers: Option<Layers>,
    pub(crate) pid_max: Option<Vec<u8>>,
    pub(crate) ruleset: Option<Ruleset>,
    pub(crate) filter: Option<Vec<Instruction>>,
    pub(crate) resources: Vec<(Resource, u64)>,
    pub(crate) streams: [RawFd; 3],
    /// Ranges of descriptors that the supervisor closes.
    pub(crate) closed: Vec<(u32, u32)>,
    pub(crate) directory: CString,
    pub(crate) work: Work,
    pub(crate) watch: Watch,
}

/// Tasks beyond the limit that the kernel's own bounds leave, so that the supervisor sees the limit crossed, not shells that
/// give up because a fork failed.
const SLACK: u64 = 64;
/// PIDs below this number are used only once by a PID namespace.
const RESERVED_PIDS: u64 = 300;
/// The last of them, as text.
pub(crate) const RESERVED: &[u8] = b"299";

impl Plan {
    /// Works out how a process is set up. Streams and channel are descriptors above 2.
    pub(crate) fn new(
        spec: &Spec,
        mechanisms: &Mechanisms,
        streams: [RawFd; 3],
        channel: RawFd,
        trial: Option<Trial>,
    ) -> Result<Self, Error> {
        let is_confined = mechanisms.has(Feature::ResourceLimits)
            || mechanisms.has(Feature::MountNamespace)
            || mechanisms.has(Feature::Landlock)
            || mechanisms.has(Feature::Seccomp);
        let work = match trial {
            Some(trial) => Work::Try(Box::new(trial)),
            None => program::execution(spec)?,
        };
        let writable = canonical("writable folder", &spec.writable)?;
        let readable = canonical("readable folder", &spec.readable)?;
        let read_only = canonical("read-only file", &spec.read_only)?;
        let hidden = present(&spec.hidden);
        let has_mounts = mechanisms.has(Feature::MountNamespace);
        let is_masked = has_mounts && !matches!(spec.network, Network::Host);
        let foreign = if is_masked { sockets::foreign(&[&writable, &readable]) } else { Foreign::default() };
        let layers = if has_mounts {
            let reachable = Reachable { writable: &writable, readable: &readable, read_only: &read_only };
            let has_own_processes = mechanisms.has(Feature::PidNamespace);
            Some(Layers::new(reachable, &hidden, &foreign.paths, has_own_processes)?)
        } else {
            None
        };
        let ruleset = mechanisms
            .has(Feature::Landlock)
            .then(|| ruleset(spec, mechanisms, [&writable, &readable], &hidden))
            .transpose()?;
        let filter = mechanisms.has(Feature::Seccomp).then(|| filter(spec, mechanisms, foreign.is_complete));
        let mut kept: Vec<RawFd> = streams.into_iter().chain([channel]).collect();
        kept.extend(ruleset.as_ref().map(|ruleset| ruleset.descriptor.as_raw_fd()));
        let limits = &spec.limits;
        Ok(Self {
            clone_flags: mechanisms.clone_flags(),
            is_confined,
            user_map: mechanisms.has(Feature::UserNamespace).then(user_map),
            layers,
            pid_max: mechanisms
                .has(Feature::PidMax)
                .then(|| (RESERVED_PIDS + u64::from(limits.processes) + SLACK).to_string().into_bytes()),
            ruleset,
            filter,
            resources: resources(limits, mechanisms),
            streams,
            closed: gaps(kept),
            directory: text("working directory", spec.directory.as_os_str())?,
            work,
            watch: Watch {
                channel,
                is_first: mechanisms.has(Feature::PidNamespace),
                samples: mechanisms.has(Feature::Supervisor),
                memory: limits.memory,
                processes: u64::from(limits.processes),
                wall_milliseconds: milliseconds(limits.wall_time),
                grace_milliseconds: milliseconds(spec.grace),
                page: sys::files::page_size(),
            },
        })
    }
}

/// Duration in milliseconds, with a bound that no arithmetic on it overflows.
pub(crate) fn milliseconds(time: Duration) -> u64 {
    /// Ten years.
    const LONGEST: u64 = 10 * 366 * 86_400_000;
    u64::try_from(time.as_millis()).unwrap_or(LONGEST).min(LONGEST)
}

fn canonical(what: &'static str, paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    paths
        .iter()
        .map(|path| path.canonicalize().map_err(|source| Error::Path { what, path: path.clone(), source }))
        .collect()
}

/// Paths that exist, with links resolved: hiding a link would leave its target open.
fn present(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths.iter().filter_map(|path| path.canonicalize().ok()).collect()
}

fn ruleset(
    spec: &Spec,
    mechanisms: &Mechanisms,
    [writable, readable]: [&[PathBuf]; 2],
    hidden: &[PathBuf],
) -> Result<Ruleset, Error> {
    let has_network = mechanisms.has(Feature::NetworkNamespace);
    let only_port = match &spec.network {
        Network::Only(loopback) if !has_network => Some(loopback.port()),
        _ => None,
    };
    Ruleset::new(&landlock::Wanted {
        version: mechanisms.landlock_version,
        writable,
        readable,
        hidden: (!mechanisms.has(Feature::MountNamespace)).then_some(hidden),
        closes_sockets: !matches!(spec.network, Network::Host),
        only_port,
    })
    .map_err(|errno| Error::System { what: "creating a Landlock ruleset", source: errno.into() })
}

/// System call filter of a process; `masks_sockets` if every Unix socket of other programs has a mount over it.
fn filter(spec: &Spec, mechanisms: &Mechanisms, masks_sockets: bool) -> Vec<Instruction> {
    let sockets = match (&spec.network, mechanisms.has(Feature::NetworkNamespace)) {
        (Network::Host, _) => Sockets::All,
        // Where not all of them are masked, only the filter can close them.
        (_, true) if masks_sockets => Sockets::Namespaced,
        (_, true) => Sockets::Internet,
        (Network::Only(_), false) => Sockets::Tcp,
        (Network::None, false) => Sockets::None,
    };
    seccomp::program(seccomp::Wanted {
        sockets,
        refuses_metadata: !mechanisms.has(Feature::MountNamespace) && mechanisms.has(Feature::Landlock),
        refuses_ipc: !mechanisms.has(Feature::IpcNamespace),
    })
}

/// Maps of a user namespace that has the caller's own user and group, and no other.
pub(crate) fn user_map() -> (Vec<u8>, Vec<u8>) {
    let (user, group) = (sys::process::user_id(), sys::process::group_id());
    (format!("{user} {user} 1").into_bytes(), format!("{group} {group} 1").into_bytes())
}

fn resources(limits: &Limits, mechanisms: &Mechanisms) -> Vec<(Resource, u64)> {
    if !mechanisms.has(Feature::ResourceLimits) {
        return Vec::new();
    }
    let mut resources = vec![
        // Not RLIMIT_AS: runtimes reserve far more addresses than they use.
        (libc::RLIMIT_DATA, limits.memory),
        (libc::RLIMIT_FSIZE, limits.file_size),
        (libc::RLIMIT_NOFILE, limits.descriptors),
        // A core dump may be handed to a program outside of the run.
        (libc::RLIMIT_CORE, 0),
    ];
    // Elsewhere the count would include all of the user's processes, and user 0 is not bound by it.
    if mechanisms.has(Feature::UserNamespace) {
        resources.push((libc::RLIMIT_NPROC, u64::from(limits.processes) + SLACK));
    }
    resources
}

/// Ranges between the descriptors that stay open.
fn gaps(mut kept: Vec<RawFd>) -> Vec<(u32, u32)> {
    kept.sort_unstable();
    let mut gaps = Vec::with_capacity(kept.len() + 1);
    let mut next = 0_u32;
    for fd in kept.into_iter().filter_map(|fd| u32::try_from(fd).ok()) {
        if fd > next {
            gaps.push((next, fd - 1));
        }
        next = next.max(fd.saturating_add(1));
    }
    gaps.push((next, u32::MAX));
    gaps
}

/// Whether one of the folders contains the path.
pub(crate) fn is_below(path: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::gaps;

    #[test]
    fn descriptors_between_the_kept_ones_are_closed() {
        assert_eq!(gaps(vec![5, 3, 4, 9]), [(0, 2), (6, 8), (10, u32::MAX)]);
        assert_eq!(gaps(vec![0, 3, 3]), [(1, 2), (4, u32::MAX)]);
    }
}
