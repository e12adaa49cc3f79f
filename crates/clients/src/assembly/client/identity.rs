//! An agent's Ed25519 key and its `did:key`.

use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use ed25519_dalek::{Signer, SigningKey};
use proctor_core::hex;
use proctor_wire::assembly::did;
use zeroize::Zeroizing;

use super::error::ClientError;

/// Bytes of a private key.
const SEED_LEN: usize = 32;
/// The seed as hexadecimal digits, and a newline.
const FILE_LEN: usize = 2 * SEED_LEN + 1;

/// An agent's private key. It is wiped when dropped, and never printed.
///
/// ```
/// use proctor_clients::assembly::client::Identity;
///
/// let folder = tempfile::tempdir().unwrap();
/// let first = Identity::load_or_create(folder.path().join("agent.key")).unwrap();
/// let again = Identity::load_or_create(folder.path().join("agent.key")).unwrap();
/// assert_eq!(first.did(), again.did());
/// assert!(first.did().starts_with("did:key:z6Mk"));
/// assert_ne!(first.did(), Identity::generate([7; 32]).did());
/// ```
pub struct Identity {
    key: SigningKey,
}

impl Identity {
    /// The identity of a seed, which must be random and secret.
    pub fn generate(randomness: [u8; SEED_LEN]) -> Identity {
        let randomness = Zeroizing::new(randomness);
        Identity { key: SigningKey::from_bytes(&randomness) }
    }

    /// The identity in a file. A missing file is created, readable by this user only; when several processes create it at once, all get
    /// the same identity.
    pub fn load_or_create(path: impl AsRef<Path>) -> Result<Identity, ClientError> {
        let path = path.as_ref();
        let failed = |problem: String| ClientError::Identity { path: path.to_owned(), problem };
        match load(path) {
            Ok(identity) => return Ok(identity),
            Err(LoadError::Missing) => {}
            Err(LoadError::Other(problem)) => return Err(failed(problem)),
        }
        let mut seed = Zeroizing::new([0; SEED_LEN]);
        getrandom::fill(seed.as_mut_slice())
            .map_err(|error| failed(format!("the operating system gives no randomness: {error}")))?;
        match create(path, &seed) {
            Ok(()) => Ok(Identity { key: SigningKey::from_bytes(&seed) }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => load(path).map_err(|error| {
                failed(match error {
                    LoadError::Missing => "it came and went while it was made; try again".to_owned(),
                    LoadError::Other(problem) => problem,
                })
            }),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// The identifier: `did:key:z…`.
    pub fn did(&self) -> String {
        did::encode(self.key.verifying_key().as_bytes())
    }

    /// The public key as the messages spell it: 64 lowercase hexadecimal digits.
    pub fn public_key(&self) -> String {
        did::key_text(self.key.verifying_key().as_bytes())
    }

    /// The proof of possession: the signature of a gateway's nonce.
    pub fn prove(&self, nonce: &[u8; 32]) -> Vec<u8> {
        self.key.sign(nonce).to_bytes().to_vec()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Identity").field(&self.did()).finish()
    }
}

enum LoadError {
    Missing,
    Other(String),
}

fn load(path: &Path) -> Result<Identity, LoadError> {
    let other = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => LoadError::Missing,
        _ => LoadError::Other(error.to_string()),
    };
    let mut file = fs::File::open(path).map_err(other)?;
    let found = file.metadata().map_err(other)?;
    if !found.is_file() {
        return Err(LoadError::Other("it is no file".to_owned()));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        if found.mode() & 0o077 != 0 {
            return Err(LoadError::Other("others can read it: `chmod 600` it, or remove it".to_owned()));
        }
        if found.uid() != rustix::process::geteuid().as_raw() {
            return Err(LoadError::Other("it belongs to another user".to_owned()));
        }
    }
    // One byte more than the format has, so that longer files are recognised. The buffer never grows: a copy would not be wiped.
    let mut text = Zeroizing::new([0; FILE_LEN + 1]);
    let mut length = 0;
    while let Some(room @ [_, ..]) = text.get_mut(length..) {
        match file.read(room).map_err(other)? {
            0 => break,
            read => length += read,
        }
    }
    seed(text.get(..length).unwrap_or_default())
        .map(|seed| Identity { key: SigningKey::from_bytes(&seed) })
        .ok_or_else(|| LoadError::Other("it holds no key: 64 hexadecimal digits are expected".to_owned()))
}

fn seed(text: &[u8]) -> Option<Zeroizing<[u8; SEED_LEN]>> {
    let digits = text.strip_suffix(b"\n").unwrap_or(text);
    let mut seed = Zeroizing::new([0; SEED_LEN]);
    hex::decode_to_slice(digits, seed.as_mut_slice()).ok()?;
    Some(seed)
}

/// Writes the file under a temporary name and links it when it is complete. An existing file is not replaced.
fn create(path: &Path, seed: &[u8; SEED_LEN]) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&folder)?;
    let draft = folder.join(format!(".{}", uuid::Uuid::new_v4().simple()));
    let written = write(&draft, seed).and_then(|()| fs::hard_link(&draft, path));
    let removed = fs::remove_file(&draft);
    written?;
    removed?;
    fs::File::open(&folder)?.sync_all()
}

fn write(draft: &Path, seed: &[u8; SEED_LEN]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(draft)?;
    let mut text = Zeroizing::new([b'\n'; FILE_LEN]);
    let digits = text.get_mut(..2 * SEED_LEN).unwrap_or_default();
    hex::encode_to_slice(seed, digits).map_err(io::Error::other)?;
    file.write_all(text.as_slice())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn problem(path: &Path) -> String {
        Identity::load_or_create(path).unwrap_err().to_string()
    }

    #[test]
    fn an_identity_lasts_and_only_its_owner_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep").join("agent.key");
        let made = Identity::load_or_create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        let loaded = Identity::load_or_create(&path).unwrap();
        assert_eq!((made.did(), made.public_key()), (loaded.did(), loaded.public_key()));
        let key = did::bound_key(&loaded.did(), &loaded.public_key()).unwrap();
        let signature = ed25519_dalek::Signature::from_slice(&loaded.prove(&[5; 32])).unwrap();
        key.verify_strict(&[5; 32], &signature).unwrap();
        let secret = fs::read_to_string(&path).unwrap();
        assert!(!format!("{made:?}").contains(secret.trim()));
    }

    #[test]
    fn a_file_that_is_no_secret_key_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.key");
        Identity::load_or_create(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(problem(&path).contains("chmod 600"), "{}", problem(&path));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        for text in ["", "00", &"g".repeat(64), &"0".repeat(63), &"0".repeat(65), &"0".repeat(5000)] {
            fs::write(&path, text).unwrap();
            assert!(problem(&path).contains("64 hexadecimal digits"), "{text}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert!(problem(folder.path()).contains("no file"));
    }

    #[test]
    fn all_who_make_it_at_once_get_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.key");
        let made: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| Identity::load_or_create(&path).unwrap().did())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(made.iter().all(|did| did == &made[0]), "{made:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
