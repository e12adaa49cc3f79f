//! The state directory: file names, and creation with fresh keys.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use proctor_core::hex;
use proctor_core::random::Randomness;
use proctor_ledger::keys::{Algorithm, SecretKey};
use proctor_ledger::store::DATABASE_FILE;
use proctor_system::private::{self, PrivateError};

/// Error of a state directory or one of its keys.
#[derive(Debug, thiserror::Error)]
pub enum StateDirError {
    /// The operating system refused.
    #[error("{}: {}", path.display(), proctor_system::describe(source))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The directory is writable for other users.
    #[error("{}: other users can write to this folder, and could change keys and approvers: run `chmod 700 {}`", .0.display(), .0.display())]
    Shared(PathBuf),
    /// The directory belongs to another user, who can change keys, approvers and records.
    #[error(
        "{}: this state directory belongs to the user {owner}, and this process runs as {own}: run it as that user, or name another \
         with `--state`",
        path.display()
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// The user of this process.
        own: u32,
    },
    /// The directory has keys, but no ledger. A new one would be a second history under the same key.
    #[error(
        "{}: the keys are here, but `ledger.db` is not: restore it, or name a new state directory with `--state`",
        .0.display()
    )]
    LedgerLost(PathBuf),
    /// The directory has a ledger, but lacks a key that belongs to it.
    #[error(
        "{}: the ledger is here, but `{file}` is not: restore it, or name a new state directory with `--state`",
        path.display()
    )]
    KeyLost {
        /// The state directory.
        path: PathBuf,
        /// Name of the missing file.
        file: &'static str,
    },
    /// The ledger that the settings name is not in the directory.
    #[error(
        "{}: the ledger `{origin}`, which `proctor.toml` names, is not here ({found}): restore it; to leave it behind and begin a new one, \
         remove `origin` from `proctor.toml` and run `proctor init`, or name a new state directory with `--state`",
        path.display()
    )]
    OriginLost {
        /// The state directory.
        path: PathBuf,
        /// The origin in the settings.
        origin: String,
        /// Description of what is there instead.
        found: String,
    },
    /// The path of the directory leads to something else.
    #[error("{}: this is {found}, and no state directory: name another with `--state`", path.display())]
    NotAFolder {
        /// The path.
        path: PathBuf,
        /// The kind of file.
        found: &'static str,
    },
    /// A private file cannot be read or written.
    #[error(transparent)]
    Private(#[from] PrivateError),
    /// A file holds no key.
    #[error("{}: {reason}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// Description of the mistake.
        reason: String,
    },
}

/// A state directory.
#[derive(Debug, Clone)]
pub struct StateDir(PathBuf);

impl StateDir {
    /// The one at `path`, which may not exist yet.
    pub fn new(path: &Path) -> StateDir {
        StateDir(path.to_owned())
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Whether a ledger lies there.
    pub fn exists(&self) -> bool {
        self.key_file().exists()
    }

    /// The ledger's signing key.
    pub fn key_file(&self) -> PathBuf {
        self.0.join("ledger.key")
    }

    /// The secret that keys action digests.
    pub fn secret_file(&self) -> PathBuf {
        self.0.join("digest.key")
    }

    /// The file of approvers.
    pub fn approvers_file(&self) -> PathBuf {
        self.0.join("approvers")
    }

    /// The marker of a directory that is being made: keys are there, and the ledger follows.
    fn marker_file(&self) -> PathBuf {
        self.0.join("being-made")
    }

    /// Notes that the ledger is there: from now on, keys without a ledger are a loss.
    pub(crate) fn ledger_made(&self) {
        let _ = fs::remove_file(self.marker_file());
    }

    /// The socket on which Agent Assembly's services are served.
    pub fn assembly_socket(&self) -> PathBuf {
        self.0.join("run").join("assembly.sock")
    }

    /// The socket on which the owner listens for other `proctor` processes.
    pub fn socket(&self) -> PathBuf {
        self.0.join("run").join("owner.sock")
    }

    /// Refuses a directory without the ledger of this origin: a new one would hide that the old one is gone.
    pub fn check_origin(&self, origin: &str) -> Result<(), StateDirError> {
        let lost = |found: String| {
            Err(StateDirError::OriginLost { path: self.0.clone(), origin: origin.to_owned(), found })
        };
        // A link to the keys of another user is found by reading them.
        if !self.exists() {
            return lost("there is no ledger".to_owned());
        }
        let name = self.key()?.verifier_key().name().to_owned();
        if name != origin {
            return lost(format!("the ledger is `{name}`"));
        }
        if !self.0.join(DATABASE_FILE).exists() && !self.marker_file().exists() {
            return lost("its keys are, but `ledger.db` is not".to_owned());
        }
        Ok(())
    }

    /// Creates the directory with fresh keys, if it has none. True if they were made. Keys without their ledger, and a ledger without
    /// its keys, are refused; what an interrupted creation left is completed.
    pub fn create(&self, randomness: &dyn Randomness) -> Result<bool, StateDirError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| StateDirError::Io { path, source }
        };
        self.check_path()?;
        // Before anything is made in it.
        self.check_owner()?;
        let run = self.0.join("run");
        for path in [&self.0, &run] {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed(path))?;
        }
        self.check_owner()?;
        let found = fs::metadata(&self.0).map_err(failed(&self.0))?;
        if found.mode() & 0o022 != 0 {
            return Err(StateDirError::Shared(self.0.clone()));
        }
        // One process at a time looks and creates.
        let lock = fs::File::open(&run).map_err(failed(&run))?;
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive)
            .map_err(|errno| failed(&run)(errno.into()))?;
        // The marker first: whoever removes it has made the ledger before.
        let being_made = self.marker_file().exists();
        let is_there = |name: &str| self.0.join(name).symlink_metadata().is_ok();
        match (self.exists(), is_there(DATABASE_FILE)) {
            (true, true) if !self.secret_file().exists() => {
                return Err(StateDirError::KeyLost { path: self.0.clone(), file: "digest.key" });
            }
            (true, true) => return Ok(false),
            (true, false) if being_made && self.secret_file().exists() => return Ok(false),
            (true, false) => return Err(StateDirError::LedgerLost(self.0.clone())),
            (false, true) => {
                return Err(StateDirError::KeyLost { path: self.0.clone(), file: "ledger.key" });
            }
            (false, false) => {}
        }
        private::write(&self.marker_file(), "")?;
        let mut seed = [0u8; 32];
        randomness.fill(&mut seed);
        private::write(&self.secret_file(), &hex::encode(seed))?;
        // A name of its own for each ledger: two ledgers must not be taken for one another.
        let mut tag = [0u8; 6];
        randomness.fill(&mut tag);
        randomness.fill(&mut seed);
        let key = SecretKey::from_seed(&format!("proctor-{}", hex::encode(tag)), Algorithm::Ed25519, &seed)
            .map_err(|error| StateDirError::Key { path: self.key_file(), reason: error.to_string() })?;
        private::write(&self.key_file(), &key.encode())?;
        self.hide_from_git();
        Ok(true)
    }

    /// Refuses a directory of another user.
    fn check_owner(&self) -> Result<(), StateDirError> {
        let Ok(found) = fs::metadata(&self.0) else { return Ok(()) };
        let own = rustix::process::geteuid().as_raw();
        if found.uid() != own {
            return Err(StateDirError::Foreign { path: self.0.clone(), owner: found.uid(), own });
        }
        Ok(())
    }

    /// Refuses a path that leads to something other than a folder.
    fn check_path(&self) -> Result<(), StateDirError> {
        let found = match (fs::metadata(&self.0), fs::symlink_metadata(&self.0)) {
            (Ok(found), _) if found.is_dir() => return Ok(()),
            (Ok(_), _) => "a file",
            (Err(error), _) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                "a link that leads to itself"
            }
            (Err(_), Ok(link)) if link.is_symlink() => "a link that leads nowhere",
            _ => return Ok(()),
        };
        Err(StateDirError::NotAFolder { path: self.0.clone(), found })
    }

    /// Keeps keys and records out of a Git work tree that the directory lies in. Failing to write the file is no reason to refuse.
    fn hide_from_git(&self) {
        let Ok(path) = self.0.canonicalize() else { return };
        if path.ancestors().skip(1).any(|folder| folder.join(".git").exists()) {
            let file = fs::OpenOptions::new().write(true).create_new(true).open(path.join(".gitignore"));
            let _ = file.and_then(|mut file| std::io::Write::write_all(&mut file, b"*\n"));
        }
    }

    /// The ledger's signing key.
    pub fn key(&self) -> Result<SecretKey, StateDirError> {
        read_key(&self.key_file())
    }

    /// The secret that keys action digests.
    pub fn secret(&self) -> Result<[u8; 32], StateDirError> {
        let path = self.secret_file();
        let text = private::read(&path)?;
        let mut secret = [0; 32];
        match hex::decode_to_slice(text.trim(), &mut secret) {
            Ok(()) => Ok(secret),
            Err(_) => Err(StateDirError::Key { path, reason: "expected 64 hexadecimal digits".to_owned() }),
        }
    }
}

/// Reads a file that holds a secret key.
pub fn read_key(file: &Path) -> Result<SecretKey, StateDirError> {
    let text = private::read(file)?;
    SecretKey::decode(&text)
        .map_err(|error| StateDirError::Key { path: file.to_owned(), reason: error.to_string() })
}
