//! Where the engine is. Nothing is downloaded, and nothing but the arguments says what the environment is.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The engine generation that a cached engine must be of, unless another one is asked for.
pub const ENGINE_VERSION: &str = "0.9.0";

/// The program's name in all places.
const PROGRAM: &str = "attest-engine";
/// The variable that names the engine.
const VARIABLE: &str = "ATTEST_ENGINE_PATH";
/// The file beside a cached engine that tells its version.
const MARKER: &str = ".engine-version";
/// How much of that file is read: versions are short.
const MARKER_BYTES: u64 = 256;

/// Looks for an engine in the places that the protocol's clients look at, in their order: `ATTEST_ENGINE_PATH`, `PATH`, the
/// shared cache `~/.attest/bin` if its version is the wanted one, `./bin`.
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
    /// Which step of the chain found it.
    pub place: Place,
}

/// A step of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The variable `ATTEST_ENGINE_PATH`.
    Variable,
    /// A folder of `PATH`.
    SearchPath,
    /// The shared cache in the home folder.
    Cache,
    /// The folder `bin` in the current folder.
    Local,
}

/// A place that did not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// Which step of the chain.
    pub place: Place,
    /// What was looked at, where there was a path to look at.
    pub path: Option<PathBuf>,
    /// Why it did not do.
    pub problem: String,
}

/// There is no engine that can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFound {
    /// Every place that was looked at, in order.
    pub looked: Vec<Looked>,
}

impl<V: Fn(&str) -> Option<OsString>> Discovery<V> {
    /// Looks in an environment: its variables, the home folder, the current folder (which relative paths start from) and the value
    /// of `PATH`.
    pub fn new(
        variables: V,
        home: Option<PathBuf>,
        current_dir: PathBuf,
        path: Option<OsString>,
    ) -> Discovery<V> {
        Discovery { variables, home, current_dir, path, engine_version: ENGINE_VERSION.to_owned() }
    }

    /// Takes another version from the cache than [`ENGINE_VERSION`].
    #[must_use]
    pub fn engine_version(mut self, version: impl Into<String>) -> Discovery<V> {
        self.engine_version = version.into();
        self
    }

    /// The first engine of the chain. A variable that names something else than a program ends the search: whoever set it means
    /// that engine and no other.
    pub fn find(&self) -> Result<Found, NotFound> {
        let mut looked = Vec::new();
        match (self.variables)(VARIABLE) {
            Some(value) if !value.is_empty() => {
                let path = self.current_dir.join(value);
                return match usable(&path) {
                    Ok(()) => Ok(Found { path, place: Place::Variable }),
                    Err(problem) => {
                        looked.push(Looked { place: Place::Variable, path: Some(path), problem });
                        Err(NotFound { looked })
                    }
                };
            }
            Some(_) => looked.push(Looked::nothing(Place::Variable, "is empty")),
            None => looked.push(Looked::nothing(Place::Variable, "is not set")),
        }
        for (place, path) in self.candidates(&mut looked) {
            let checked = usable(&path).and_then(|()| match place {
                Place::Cache => self.wanted_version(&path.with_file_name(MARKER)),
                _ => Ok(()),
            });
            match checked {
                Ok(()) => return Ok(Found { path, place }),
                Err(problem) => looked.push(Looked { place, path: Some(path), problem }),
            }
        }
        Err(NotFound { looked })
    }

    /// The paths after the variable, in order. Steps that give none are noted.
    fn candidates(&self, looked: &mut Vec<Looked>) -> Vec<(Place, PathBuf)> {
        let mut candidates = Vec::new();
        match self.path.as_ref().filter(|path| !path.is_empty()) {
            Some(path) => {
                let folders = std::env::split_paths(path);
                candidates.extend(
                    folders.map(|folder| (Place::SearchPath, self.current_dir.join(folder).join(PROGRAM))),
                );
            }
            None => looked.push(Looked::nothing(Place::SearchPath, "is empty or not set")),
        }
        match &self.home {
            Some(home) => candidates.push((Place::Cache, home.join(".attest/bin").join(PROGRAM))),
            None => looked.push(Looked::nothing(Place::Cache, "has no place: no home folder is known")),
        }
        candidates.push((Place::Local, self.current_dir.join("bin").join(PROGRAM)));
        candidates
    }

    fn wanted_version(&self, marker: &Path) -> Result<(), String> {
        let unreadable = |error: std::io::Error| format!("its `{MARKER}` cannot be read: {error}");
        // Only a plain file is opened: anything else might never answer.
        if !fs::metadata(marker).map_err(unreadable)?.is_file() {
            return Err(format!("its `{MARKER}` is not a file"));
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
            Err(format!("is of version `{}`, wanted is `{}`", version.escape_debug(), self.engine_version))
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

impl Looked {
    fn nothing(place: Place, problem: &str) -> Looked {
        Looked { place, path: None, problem: problem.to_owned() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Place::Variable => "the variable `ATTEST_ENGINE_PATH`",
            Place::SearchPath => "`PATH`",
            Place::Cache => "the cache `~/.attest/bin`",
            Place::Local => "the folder `./bin`",
        })
    }
}

impl fmt::Display for Looked {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(out, "{}: `{}` {}", self.place, path.display(), self.problem),
            None => write!(out, "{} {}", self.place, self.problem),
        }
    }
}

impl fmt::Display for NotFound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(
            "no Attest engine was found: install one, or set `ATTEST_ENGINE_PATH` to it; looked at:",
        )?;
        self.looked.iter().try_for_each(|looked| write!(out, "\n  {looked}"))
    }
}

impl std::error::Error for NotFound {}

/// Whether a program can be started, as far as its file tells.
fn usable(path: &Path) -> Result<(), String> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err("does not exist".to_owned());
        }
        Err(error) => return Err(format!("cannot be looked at: {error}")),
    };
    if !metadata.is_file() {
        return Err("is not a file".to_owned());
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err("may not be executed".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
