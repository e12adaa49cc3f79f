//! Search for an installed engine. Nothing is downloaded, and the environment is an argument.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The version that a cached engine must have by default.
pub const ENGINE_VERSION: &str = "0.9.0";

/// The file name of the engine.
const PROGRAM: &str = "attest-engine";
/// The environment variable with the engine's path.
const VARIABLE: &str = "ATTEST_ENGINE_PATH";
/// The file beside a cached engine that holds its version.
const MARKER: &str = ".engine-version";
/// Bytes of that file that are read: versions are short.
const MARKER_BYTES: u64 = 256;

/// Search for an engine in the locations and the order of the protocol's clients: `ATTEST_ENGINE_PATH`, `PATH`, the shared cache
/// `~/.attest/bin` if its version matches, `./bin`.
pub struct Discovery<V> {
    variables: V,
    home: Option<PathBuf>,
    current_dir: PathBuf,
    path: Option<OsString>,
    engine_version: String,
}

/// An engine that can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The program.
    pub path: PathBuf,
    /// The location that it was found in.
    pub location: Location,
}

/// A location of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    /// The variable `ATTEST_ENGINE_PATH`.
    Variable,
    /// A folder of `PATH`.
    SearchPath,
    /// The shared cache in the home folder.
    Cache,
    /// The folder `bin` in the current folder.
    Local,
}

/// A location without a usable engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// The location.
    pub location: Location,
    /// The path that was examined, if the location has one.
    pub path: Option<PathBuf>,
    /// The reason.
    pub problem: RejectReason,
}

/// The reason why a location has no usable engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RejectReason {
    /// The variable is not set.
    #[error("is not set")]
    NotSet,
    /// The variable is empty.
    #[error("is empty")]
    Empty,
    /// `PATH` is empty or not set.
    #[error("is empty or not set")]
    NoSearchPath,
    /// The home folder is unknown.
    #[error("has no place: no home folder is known")]
    NoHome,
    /// The file does not exist.
    #[error("does not exist")]
    Missing,
    /// The file cannot be examined.
    #[error("cannot be looked at: {0}")]
    Inaccessible(String),
    /// The path is not a file.
    #[error("is not a file")]
    NotAFile,
    /// The file is not executable.
    #[error("may not be executed")]
    NotExecutable,
    /// The version of a cached engine cannot be read.
    #[error("its `{MARKER}` cannot be read: {0}")]
    UnreadableVersion(String),
    /// The version of a cached engine is not in a file.
    #[error("its `{MARKER}` is not a file")]
    VersionNotAFile,
    /// A cached engine has another version.
    #[error("is of version `{}`, wanted is `{wanted}`", found.escape_debug())]
    WrongVersion {
        /// The version of the cached engine.
        found: String,
        /// The wanted version.
        wanted: String,
    },
}

/// A search without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFound {
    /// All rejected locations, in order.
    pub rejected: Vec<Rejected>,
}

impl<V: Fn(&str) -> Option<OsString>> Discovery<V> {
    /// A search in an environment: its variables, the home folder, the current folder (which relative paths start from) and the value
    /// of `PATH`.
    pub fn new(
        variables: V,
        home: Option<PathBuf>,
        current_dir: PathBuf,
        path: Option<OsString>,
    ) -> Discovery<V> {
        Discovery { variables, home, current_dir, path, engine_version: ENGINE_VERSION.to_owned() }
    }

    /// Accepts this version from the cache instead of [`ENGINE_VERSION`].
    #[must_use]
    pub fn engine_version(mut self, version: impl Into<String>) -> Discovery<V> {
        self.engine_version = version.into();
        self
    }

    /// The first usable engine. A variable that names something else than a program ends the search: it was set to select that engine
    /// and no other.
    pub fn find(&self) -> Result<Found, NotFound> {
        let mut rejected = Vec::new();
        match (self.variables)(VARIABLE) {
            Some(value) if !value.is_empty() => {
                let path = self.current_dir.join(value);
                return match check_executable(&path) {
                    Ok(()) => Ok(Found { path, location: Location::Variable }),
                    Err(problem) => {
                        rejected.push(Rejected { location: Location::Variable, path: Some(path), problem });
                        Err(NotFound { rejected })
                    }
                };
            }
            Some(_) => rejected.push(Rejected::without_path(Location::Variable, RejectReason::Empty)),
            None => rejected.push(Rejected::without_path(Location::Variable, RejectReason::NotSet)),
        }
        for (location, path) in self.candidates(&mut rejected) {
            let checked = check_executable(&path).and_then(|()| match location {
                Location::Cache => self.check_version(&path.with_file_name(MARKER)),
                _ => Ok(()),
            });
            match checked {
                Ok(()) => return Ok(Found { path, location }),
                Err(problem) => rejected.push(Rejected { location, path: Some(path), problem }),
            }
        }
        Err(NotFound { rejected })
    }

    /// The paths after the variable, in order. Locations without a path are rejected.
    fn candidates(&self, rejected: &mut Vec<Rejected>) -> Vec<(Location, PathBuf)> {
        let mut candidates = Vec::new();
        match self.path.as_ref().filter(|path| !path.is_empty()) {
            Some(path) => {
                let folders = std::env::split_paths(path);
                candidates.extend(
                    folders.map(|folder| (Location::SearchPath, self.current_dir.join(folder).join(PROGRAM))),
                );
            }
            None => rejected.push(Rejected::without_path(Location::SearchPath, RejectReason::NoSearchPath)),
        }
        match &self.home {
            Some(home) => candidates.push((Location::Cache, home.join(".attest/bin").join(PROGRAM))),
            None => rejected.push(Rejected::without_path(Location::Cache, RejectReason::NoHome)),
        }
        candidates.push((Location::Local, self.current_dir.join("bin").join(PROGRAM)));
        candidates
    }

    fn check_version(&self, marker: &Path) -> Result<(), RejectReason> {
        let unreadable = |error: std::io::Error| RejectReason::UnreadableVersion(error.to_string());
        // Only a plain file is opened: reading a pipe or a device may block for ever.
        if !fs::metadata(marker).map_err(unreadable)?.is_file() {
            return Err(RejectReason::VersionNotAFile);
        }
        let mut bytes = Vec::new();
        File::open(marker)
            .and_then(|file| file.take(MARKER_BYTES).read_to_end(&mut bytes))
            .map_err(unreadable)?;
        let version = String::from_utf8_lossy(&bytes);
        let version = version.trim();
        if version == self.engine_version {
            Ok(())
        } else {
            Err(RejectReason::WrongVersion { found: version.to_owned(), wanted: self.engine_version.clone() })
        }
    }
}

impl<V> fmt::Debug for Discovery<V> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Discovery")
            .field("home", &self.home)
            .field("current_dir", &self.current_dir)
            .field("path", &self.path)
            .field("engine_version", &self.engine_version)
            .finish_non_exhaustive()
    }
}

impl Rejected {
    fn without_path(location: Location, problem: RejectReason) -> Rejected {
        Rejected { location, path: None, problem }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Location::Variable => "the variable `ATTEST_ENGINE_PATH`",
            Location::SearchPath => "`PATH`",
            Location::Cache => "the cache `~/.attest/bin`",
            Location::Local => "the folder `./bin`",
        })
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(out, "{}: `{}` {}", self.location, path.display(), self.problem),
            None => write!(out, "{} {}", self.location, self.problem),
        }
    }
}

impl fmt::Display for NotFound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(
            "no Attest engine was found: install one, or set `ATTEST_ENGINE_PATH` to it; looked at:",
        )?;
        self.rejected.iter().try_for_each(|rejected| write!(out, "\n  {rejected}"))
    }
}

impl std::error::Error for NotFound {}

/// Checks that a path is an executable file.
fn check_executable(path: &Path) -> Result<(), RejectReason> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(RejectReason::Missing);
        }
        Err(error) => return Err(RejectReason::Inaccessible(error.to_string())),
    };
    if !metadata.is_file() {
        return Err(RejectReason::NotAFile);
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err(RejectReason::NotExecutable);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
