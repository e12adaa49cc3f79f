//! The state directory: what lies where, and making it.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use proctor_core::hex;
use proctor_core::random::Randomness;
use proctor_ledger::keys::{Algorithm, SecretKey};

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

    /// Who may approve.
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

    /// Makes the directory with its keys, if it is not there. True if it was made.
    pub fn create(&self, randomness: &dyn Randomness) -> Result<bool, String> {
        for folder in [self.0.clone(), self.0.join("run")] {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&folder)
                .map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        let found = fs::metadata(&self.0).map_err(|error| format!("{}: {error}", self.0.display()))?;
        if found.mode() & 0o022 != 0 {
            let path = self.0.display();
            return Err(format!(
                "{path}: others can write there, and could change what guards: run `chmod 700 {path}`"
            ));
        }
        if self.exists() {
            return Ok(false);
        }
        let mut seed = [0u8; 32];
        randomness.fill(&mut seed);
        write_private(&self.secret_file(), &hex::encode(seed))?;
        // A name of its own for each ledger: two ledgers must not be taken for one another.
        let mut tag = [0u8; 6];
        randomness.fill(&mut tag);
        randomness.fill(&mut seed);
        let key = SecretKey::from_seed(&format!("proctor-{}", hex::encode(tag)), Algorithm::Ed25519, &seed)
            .map_err(|error| error.to_string())?;
        write_private(&self.key_file(), &key.encode())?;
        Ok(true)
    }

    /// The ledger's signing key.
    pub fn key(&self) -> Result<SecretKey, String> {
        read_key(&self.key_file())
    }

    /// The secret that keys action digests.
    pub fn secret(&self) -> Result<[u8; 32], String> {
        let file = self.secret_file();
        check_private(&file)?;
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        unhex(text.trim()).ok_or_else(|| format!("{}: expected 64 hexadecimal digits", file.display()))
    }
}

/// Reads a secret key file.
pub fn read_key(file: &Path) -> Result<SecretKey, String> {
    check_private(file)?;
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    SecretKey::decode(&text).map_err(|error| format!("{}: {error}", file.display()))
}

/// Writes a file that only its owner can read, whole or not at all; one that is there already is not touched.
pub fn write_private(file: &Path, text: &str) -> Result<(), String> {
    let describe = |error: std::io::Error| format!("{}: {error}", file.display());
    let mut draft = file.as_os_str().to_owned();
    draft.push(format!(".{}", std::process::id()));
    let draft = PathBuf::from(draft);
    let _ = fs::remove_file(&draft);
    let mut open = fs::OpenOptions::new();
    let mut handle = open.write(true).create_new(true).mode(0o600).open(&draft).map_err(describe)?;
    handle.write_all(text.as_bytes()).and_then(|()| handle.sync_all()).map_err(describe)?;
    // A link fails if the name is taken: then somebody was faster, and theirs counts.
    let linked = fs::hard_link(&draft, file);
    let _ = fs::remove_file(&draft);
    match linked {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(describe(error)),
        _ => Ok(()),
    }
}

/// Refuses a secret that others can read.
fn check_private(file: &Path) -> Result<(), String> {
    let found = fs::metadata(file).map_err(|error| format!("{}: {error}", file.display()))?;
    if found.mode() & 0o077 != 0 {
        return Err(format!(
            "{}: others can read or write it: run `chmod 600 {}`",
            file.display(),
            file.display()
        ));
    }
    Ok(())
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0u8; 32];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    Some(bytes)
}
