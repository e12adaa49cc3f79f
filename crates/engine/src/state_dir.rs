//! The state directory: file names, and creation with fresh keys.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use proctor_core::hex;
use proctor_core::random::Randomness;
use proctor_ledger::keys::{Algorithm, SecretKey};
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

    /// The socket on which Agent Assembly's services are served.
    pub fn assembly_socket(&self) -> PathBuf {
        self.0.join("run").join("assembly.sock")
    }

    /// The socket on which the owner listens for other `proctor` processes.
    pub fn socket(&self) -> PathBuf {
        self.0.join("run").join("owner.sock")
    }

    /// Creates the directory with fresh keys, if it has none. True if they were made.
    pub fn create(&self, randomness: &dyn Randomness) -> Result<bool, StateDirError> {
        for path in [self.0.clone(), self.0.join("run")] {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
            made.map_err(|source| StateDirError::Io { path, source })?;
        }
        let found =
            fs::metadata(&self.0).map_err(|source| StateDirError::Io { path: self.0.clone(), source })?;
        if found.mode() & 0o022 != 0 {
            return Err(StateDirError::Shared(self.0.clone()));
        }
        if self.exists() {
            return Ok(false);
        }
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
        Ok(true)
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
