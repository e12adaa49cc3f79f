//! Specification of a process.

use crate::limits::Limits;
use crate::network::Loopback;
use crate::sys::account;
use crate::workspace::Workspace;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Variables that [`Spec::inherit`] takes over; all others must be named.
pub const ENVIRONMENT: [&str; 5] = ["PATH", "HOME", "LANG", "TERM", "TZ"];

/// Files and folders of a home directory that hold credentials.
pub const PRIVATE_HOME_PATHS: [&str; 5] = [".ssh", ".aws", ".gnupg", ".netrc", ".docker"];

/// Time between TERM and KILL when the wall time has passed.
const GRACE: Duration = Duration::from_secs(2);

/// Paths of a home directory that hold credentials, for [`Spec::hidden`].
pub fn private_paths(home: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let home = home.to_owned();
    PRIVATE_HOME_PATHS.into_iter().map(move |name| home.join(name))
}

/// Home directories of the calling user: the one that the environment names, and the one of the account. Credentials may be in both.
pub fn homes(variable: Option<&OsStr>, working_directory: &Path) -> Vec<PathBuf> {
    let named = variable.filter(|home| !home.is_empty()).map(|home| working_directory.join(home));
    let mut homes: Vec<PathBuf> = named.into_iter().chain(account::home()).collect();
    homes.dedup();
    homes
}

/// Standard stream of a process.
#[derive(Debug, Default)]
pub enum Stream {
    /// Pipe whose other end the caller gets.
    #[default]
    Pipe,
    /// `/dev/null`.
    Null,
    /// Open file, or end of a pipe, of the caller.
    File(OwnedFd),
}

/// Network that a process reaches.
#[derive(Clone, Debug, Default)]
pub enum Network {
    /// Nothing but a loopback interface of its own.
    #[default]
    None,
    /// The listener made by [`crate::Sandbox::loopback`], and nothing else.
    Only(Loopback),
    /// Everything the calling process reaches.
    Host,
}

/// Description of a process to start: program, surroundings, limits.
#[derive(Debug)]
pub struct Spec {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) directory: PathBuf,
    pub(crate) environment: BTreeMap<OsString, OsString>,
    pub(crate) streams: [Stream; 3],
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) readable: Vec<PathBuf>,
    pub(crate) read_only: Vec<PathBuf>,
    pub(crate) hidden: Vec<PathBuf>,
    pub(crate) network: Network,
    pub(crate) limits: Limits,
    pub(crate) grace: Duration,
}

impl Spec {
    /// Describes a program in a working directory: no arguments, an empty environment, pipes, nothing writable, no network.
    ///
    /// A program without a slash is looked up in the `PATH` of the process's own environment; a relative path starts from the working
    /// directory.
    pub fn new(program: impl Into<OsString>, directory: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            directory: directory.into(),
            environment: BTreeMap::new(),
            streams: [Stream::Pipe, Stream::Pipe, Stream::Pipe],
            writable: Vec::new(),
            readable: Vec::new(),
            read_only: Vec::new(),
            hidden: Vec::new(),
            network: Network::None,
            limits: Limits::default(),
            grace: GRACE,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn arguments<T: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of the environment.
    #[must_use]
    pub fn environment(mut self, name: impl Into<OsString>, value: impl AsRef<OsStr>) -> Self {
        self.environment.insert(name.into(), value.as_ref().to_owned());
        self
    }

    /// Takes the variables of [`ENVIRONMENT`] over from a given environment, unless they are set already.
    #[must_use]
    pub fn inherit(mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        for (name, value) in variables {
            if ENVIRONMENT.iter().any(|known| name == *known) {
                self.environment.entry(name).or_insert(value);
            }
        }
        self
    }

    /// Sets standard input.
    #[must_use]
    pub fn stdin(mut self, stream: Stream) -> Self {
        let [stdin, _, _] = &mut self.streams;
        *stdin = stream;
        self
    }

    /// Sets standard output.
    #[must_use]
    pub fn stdout(mut self, stream: Stream) -> Self {
        let [_, stdout, _] = &mut self.streams;
        *stdout = stream;
        self
    }

    /// Sets standard error.
    #[must_use]
    pub fn stderr(mut self, stream: Stream) -> Self {
        let [_, _, stderr] = &mut self.streams;
        *stderr = stream;
        self
    }

    /// Adds a folder that the process may write to, with everything below it.
    #[must_use]
    pub fn writable(mut self, folder: impl Into<PathBuf>) -> Self {
        self.writable.push(folder.into());
        self
    }

    /// Adds a folder that the process may read although it lies in a hidden one, but not write to.
    #[must_use]
    pub fn readable(mut self, folder: impl Into<PathBuf>) -> Self {
        self.readable.push(folder.into());
        self
    }

    /// Adds files inside writable folders that the process must not change, where the sandbox has a mount namespace.
    #[must_use]
    pub fn read_only<T: Into<PathBuf>>(mut self, files: impl IntoIterator<Item = T>) -> Self {
        self.read_only.extend(files.into_iter().map(Into::into));
        self
    }

    /// Gives the process the folders of a run: writable, with its home and its temporary folder in the environment.
    #[must_use]
    pub fn folders(mut self, workspace: &Workspace) -> Self {
        self.writable.extend(workspace.writable().map(Path::to_owned));
        self.environment("HOME", workspace.home()).environment("TMPDIR", workspace.tmp())
    }

    /// Adds files and folders that the process must not reach. Writable folders inside them stay reachable; paths that do not exist are
    /// passed over.
    #[must_use]
    pub fn hidden<T: Into<PathBuf>>(mut self, paths: impl IntoIterator<Item = T>) -> Self {
        self.hidden.extend(paths.into_iter().map(Into::into));
        self
    }

    /// Sets the network.
    #[must_use]
    pub fn network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the time between TERM and KILL when the wall time has passed (default: 2 s).
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }
}
