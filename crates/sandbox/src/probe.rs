//! Trial run: tries to break each protection from inside, so that the report is true.

mod report;
mod trial;

use crate::error::{Error, Step};
use crate::features::{Feature, Features};
use crate::keeper::{NO_PID_MAX, NO_SAMPLES};
use crate::limits::Limits;
use crate::mechanisms::Mechanisms;
use crate::network::Pool;
use crate::protections::Protections;
use crate::sandbox::{Started, start};
use crate::spec::{Network, Spec, Stream};
use crate::sys::process as calls;
use crate::workspace::Workspace;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::sync::Arc;

pub(crate) use report::off;
pub(crate) use trial::{Attempt, Trial};

/// Limits of the trial, small enough to be reached at once.
const LIMITS: Limits = Limits {
    memory: 256 * 1024 * 1024,
    processes: 64,
    file_size: 1024 * 1024,
    descriptors: 64,
    wall_time: std::time::Duration::from_secs(10),
};

/// Finds the features that work, and what they protect.
pub(crate) fn find(
    features: Features,
    pool: &Arc<Pool>,
    scratch: &Path,
) -> Result<(Mechanisms, Protections), Error> {
    let mut mechanisms = Mechanisms::candidates(features);
    let ground = Ground::new(scratch)?;
    // Each round takes at least one feature away, so this ends.
    loop {
        match ground.attempt(&mechanisms, pool) {
            Ok(result) => {
                if result.missing & NO_PID_MAX != 0 {
                    mechanisms.remove(Feature::PidMax, "the kernel has none, or refused to set it");
                }
                if result.missing & NO_SAMPLES != 0 {
                    mechanisms.remove(Feature::Supervisor, "/proc does not show the processes of a run");
                }
                let protections = report::protections(&mechanisms, result.possible);
                return Ok((mechanisms, protections));
            }
            Err(error) => {
                if !degrade(&mut mechanisms, &error) {
                    return Err(error);
                }
                // Kept namespaces belong to a user namespace, or to none, as it was decided before.
                pool.clear();
            }
        }
    }
}

/// Takes away the feature that a failed setup is about: whether there was one.
fn degrade(mechanisms: &mut Mechanisms, error: &Error) -> bool {
    let (feature, reason) = match error {
        Error::Setup { step, source } => {
            let feature = match step {
                Step::Clone | Step::UserMap => first_namespace(mechanisms),
                Step::EnterNetwork => Some(Feature::NetworkNamespace),
                Step::Mounts | Step::Masks | Step::Writable => Some(Feature::MountNamespace),
                Step::LandlockRules | Step::Landlock => Some(Feature::Landlock),
                Step::Filter => Some(Feature::Seccomp),
                Step::ResourceLimits => Some(Feature::ResourceLimits),
                _ => None,
            };
            (feature, format!("{step}: {source}"))
        }
        // Only namespaces and rulesets are made by the parent itself.
        Error::System { what: what @ "creating a network namespace", source } => {
            (Some(Feature::NetworkNamespace), format!("{what}: {source}"))
        }
        Error::System { what: what @ "creating a Landlock ruleset", source } => {
            (Some(Feature::Landlock), format!("{what}: {source}"))
        }
        _ => (None, String::new()),
    };
    match feature.filter(|feature| mechanisms.has(*feature)) {
        Some(feature) => {
            mechanisms.remove(feature, &reason);
            mechanisms.remove_dependent();
            true
        }
        None => false,
    }
}

/// Namespace to go without when they cannot be made together: the user's first, since user 0 can make the others alone.
fn first_namespace(mechanisms: &Mechanisms) -> Option<Feature> {
    [Feature::UserNamespace, Feature::IpcNamespace, Feature::PidNamespace, Feature::MountNamespace]
        .into_iter()
        .find(|feature| mechanisms.has(*feature))
}

/// Folders and listeners that the trial tries to reach.
struct Ground {
    workspace: Workspace,
    tcp: TcpListener,
    udp: UdpSocket,
    _by_path: UnixListener,
    _elsewhere: UnixListener,
    /// Named pipe, open for reading, so that only a protection keeps others from opening it for writing.
    _pipe: std::fs::File,
    _hidden: UnixListener,
    _abstract: UnixListener,
    abstract_name: Vec<u8>,
    segment: Option<calls::Segment>,
}

struct Outcome {
    possible: i32,
    missing: i32,
}

impl Ground {
    fn new(scratch: &Path) -> Result<Self, Error> {
        let workspace = Workspace::create(scratch).map_err(|error| Error::System {
            what: "creating a folder for trying the sandbox out",
            source: std::io::Error::other(error),
        })?;
        let failed = |source| Error::System { what: "preparing to try the sandbox out", source };
        let outside = workspace.home();
        let hidden = workspace.tmp();
        std::fs::write(outside.join("file"), "x").map_err(failed)?;
        std::fs::write(hidden.join("secret"), "x").map_err(failed)?;
        let tcp = TcpListener::bind(("127.0.0.1", 0)).map_err(failed)?;
        let udp = UdpSocket::bind(("127.0.0.1", 0)).map_err(failed)?;
        udp.set_nonblocking(true).map_err(failed)?;
        let abstract_name = format!("proctor-trial-{}", workspace.root().display()).into_bytes();
        let address = SocketAddr::from_abstract_name(&abstract_name).map_err(failed)?;
        let by_path = bind_below(outside).map_err(failed)?;
        let elsewhere = bind_by_descriptor(outside, "elsewhere").map_err(failed)?;
        let in_hidden = bind_below(hidden).map_err(failed)?;
        Ok(Self {
            tcp,
            udp,
            _by_path: by_path,
            _elsewhere: elsewhere,
            _pipe: named_pipe(outside).map_err(failed)?,
            _hidden: in_hidden,
            _abstract: UnixListener::bind_addr(&address).map_err(failed)?,
            abstract_name,
            // Kernels without System V memory have nothing to protect there.
            segment: calls::Segment::new().ok(),
            workspace,
        })
    }

    fn attempt(&self, mechanisms: &Mechanisms, pool: &Arc<Pool>) -> Result<Outcome, Error> {
        let failed = |source| Error::System { what: "preparing to try the sandbox out", source };
        let inside = self.workspace.workspace();
        let trial = Trial::new(&trial::Targets {
            inside,
            outside: self.workspace.home(),
            hidden: self.workspace.tmp(),
            tcp_port: self.tcp.local_addr().map_err(failed)?.port(),
            udp_port: self.udp.local_addr().map_err(failed)?.port(),
            abstract_name: &self.abstract_name,
            segment: self.segment.as_ref().map(|segment| segment.0),
            caller: std::process::id(),
            limits: LIMITS,
            is_first: mechanisms.has(Feature::PidNamespace),
            masks_sockets: mechanisms.has(Feature::MountNamespace),
        })?;
        let spec = Spec::new("trial", inside)
            .stdin(Stream::Null)
            .stdout(Stream::Null)
            .stderr(Stream::Null)
            .writable(inside)
            .hidden([self.workspace.tmp()])
            .network(Network::None)
            .limits(LIMITS);
        match start(spec, mechanisms, pool, Some(trial))? {
            Started::Tried { mut possible, missing } => {
                // A namespace takes datagrams to its own loopback; only what arrives here got out.
                if self.udp.recv(&mut [0; 8]).is_ok() {
                    possible |= Attempt::Udp.bit();
                }
                Ok(Outcome { possible, missing })
            }
            Started::Running(_) => Err(Error::SupervisorLost),
        }
    }
}

/// Listener at `socket` in a folder whose path may be longer than an address.
fn bind_below(folder: &Path) -> std::io::Result<UnixListener> {
    let direct = folder.join("socket");
    if direct.as_os_str().len() < trial::LONGEST_SOCKET {
        return UnixListener::bind(direct);
    }
    bind_by_descriptor(folder, "socket")
}

/// Listener in a folder, bound through the folder's descriptor: its name means nothing to others.
fn bind_by_descriptor(folder: &Path, name: &str) -> std::io::Result<UnixListener> {
    use std::os::fd::AsRawFd as _;
    let folder = std::fs::File::open(folder)?;
    UnixListener::bind(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()))
}

fn named_pipe(folder: &Path) -> std::io::Result<std::fs::File> {
    use rustix::fs::{CWD, FileType, Mode};
    use std::os::unix::fs::OpenOptionsExt as _;
    let path = folder.join("pipe");
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    std::fs::File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}
