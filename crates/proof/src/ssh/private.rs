//! SSH private keys in OpenSSH's own format (`PROTOCOL.key`), and signing with them.

mod rsa;

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED_SIGNING,
    EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, RSA_PKCS1_SHA512, RsaKeyPair,
};
use proctor_system::private::PrivateError;
use zeroize::Zeroizing;

use super::buffer::{Malformed, Reader, put_number, put_string};
use super::public::{PublicKeyError, SshPublicKey};
use crate::key::{Curve, KeyError, Material};
use crate::pem::{self, MAX_PEM, PemError};

const MAGIC: &[u8] = b"openssh-key-v1\0";

/// SSH private key. `Debug` shows its fingerprint only.
pub struct PrivateKey {
    public: SshPublicKey,
    pair: Pair,
}

enum Pair {
    Ed25519(Ed25519KeyPair),
    Ecdsa(EcdsaKeyPair),
    Rsa(Box<RsaKeyPair>),
}

/// Private key that cannot be used. No variant holds a part of the key.
#[derive(Debug, thiserror::Error)]
pub enum PrivateKeyError {
    /// The file cannot be read, or other users can.
    #[error(transparent)]
    File(#[from] PrivateError),
    /// The path is a folder, pipe or device.
    #[error("`{0}` is not a file")]
    NotAFile(String),
    /// The text is not PEM.
    #[error(transparent)]
    Pem(#[from] PemError),
    /// A key of another format, or no key at all.
    #[error("the text is no OpenSSH private key: convert it with `ssh-keygen -p -f FILE`")]
    OtherFormat,
    /// The key needs a passphrase, and nobody is asked for one.
    #[error(
        "the private key is encrypted, and no passphrase is asked for: use a key without one, `ssh-keygen -p -N '' -f FILE`"
    )]
    Encrypted,
    /// The content does not have the form of a key, or its parts contradict each other.
    #[error("the private key is malformed")]
    Malformed,
    /// A kind of key that is not accepted.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A key on a security key, which only the device can use.
    #[error("the private key is on a security key, which is not used here: use a key in a file")]
    SecurityKey,
    /// An empty namespace.
    #[error("a signature needs a namespace")]
    NoNamespace,
    /// The cryptography library refused to sign.
    #[error("signing failed")]
    Signing,
}

impl From<Malformed> for PrivateKeyError {
    fn from(_: Malformed) -> PrivateKeyError {
        PrivateKeyError::Malformed
    }
}

impl From<PublicKeyError> for PrivateKeyError {
    fn from(error: PublicKeyError) -> PrivateKeyError {
        match error {
            PublicKeyError::Malformed(_) => PrivateKeyError::Malformed,
            PublicKeyError::Key(error) => PrivateKeyError::Key(error),
        }
    }
}

impl PrivateKey {
    /// Reads a key's file. As in ssh, one of our own that other users can read or write is refused.
    pub fn load(file: &Path) -> Result<PrivateKey, PrivateKeyError> {
        let failed = |source| PrivateError::Io { path: file.to_owned(), source };
        let found = fs::metadata(file).map_err(failed)?;
        // Opening a pipe would wait for a writer.
        if !found.is_file() {
            return Err(PrivateKeyError::NotAFile(file.display().to_string()));
        }
        if found.uid() == rustix::process::getuid().as_raw() && found.mode() & 0o077 != 0 {
            return Err(PrivateError::SharedFile(file.to_owned()).into());
        }
        let mut text = Zeroizing::new(String::new());
        let limit = u64::try_from(MAX_PEM).unwrap_or(u64::MAX).saturating_add(1);
        fs::File::open(file).map_err(failed)?.take(limit).read_to_string(&mut text).map_err(failed)?;
        PrivateKey::parse(&text)
    }

    /// Reads a key's text.
    pub fn parse(text: &str) -> Result<PrivateKey, PrivateKeyError> {
        let blocks = pem::blocks(text)?;
        let [block] = blocks.as_slice() else { return Err(PrivateKeyError::OtherFormat) };
        match block.label.as_str() {
            "OPENSSH PRIVATE KEY" if !block.has_headers => PrivateKey::from_blob(&block.bytes),
            "ENCRYPTED PRIVATE KEY" => Err(PrivateKeyError::Encrypted),
            label if block.has_headers && label.ends_with("PRIVATE KEY") => Err(PrivateKeyError::Encrypted),
            _ => Err(PrivateKeyError::OtherFormat),
        }
    }

    fn from_blob(blob: &[u8]) -> Result<PrivateKey, PrivateKeyError> {
        let mut reader = Reader::new(blob);
        if reader.take(MAGIC.len())? != MAGIC {
            return Err(PrivateKeyError::Malformed);
        }
        let cipher = reader.string()?;
        let derivation = reader.string()?;
        let _options = reader.string()?;
        if cipher != b"none" || derivation != b"none" {
            return Err(PrivateKeyError::Encrypted);
        }
        if reader.u32()? != 1 {
            return Err(PrivateKeyError::Malformed);
        }
        let public = SshPublicKey::from_blob(reader.string()?)?;
        let section = reader.string()?;
        reader.finish()?;
        let pair = pair(&public, section)?;
        Ok(PrivateKey { public, pair })
    }

    /// Public half.
    pub fn public(&self) -> &SshPublicKey {
        &self.public
    }

    /// Signature of a text in its binary form: algorithm and value.
    pub(super) fn sign(&self, text: &[u8]) -> Result<Vec<u8>, PrivateKeyError> {
        let failed = |_| PrivateKeyError::Signing;
        let (algorithm, value) = match &self.pair {
            Pair::Ed25519(pair) => {
                (self.public.type_name(), pair.try_sign(text).map_err(failed)?.as_ref().to_vec())
            }
            Pair::Ecdsa(pair) => {
                let fixed = pair.sign(&SystemRandom::new(), text).map_err(failed)?;
                let (r, s) = fixed.as_ref().split_at(fixed.as_ref().len() / 2);
                let mut value = Vec::new();
                put_number(&mut value, r);
                put_number(&mut value, s);
                (self.public.type_name(), value)
            }
            Pair::Rsa(pair) => {
                let mut value = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA512, &SystemRandom::new(), text, &mut value).map_err(failed)?;
                ("rsa-sha2-512", value)
            }
        };
        let mut out = Vec::new();
        put_string(&mut out, algorithm.as_bytes());
        put_string(&mut out, &value);
        Ok(out)
    }
}

impl std::fmt::Debug for PrivateKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("PrivateKey")
            .field("fingerprint", &self.public.fingerprint())
            .finish_non_exhaustive()
    }
}

/// Reads the private section: check numbers, the key again with its secret numbers, comment, padding.
fn pair(public: &SshPublicKey, section: &[u8]) -> Result<Pair, PrivateKeyError> {
    let mut reader = Reader::new(section);
    if reader.u32()? != reader.u32()? {
        return Err(PrivateKeyError::Malformed);
    }
    if public.application.is_some() {
        return Err(PrivateKeyError::SecurityKey);
    }
    if reader.text()? != public.type_name() {
        return Err(PrivateKeyError::Malformed);
    }
    let pair = match &public.key.0 {
        Material::Ed25519(point) => {
            let same = reader.string()? == point;
            // Seed, then the public key once more.
            let secret = reader.string()?;
            let seed = secret.strip_suffix(point).filter(|_| same).ok_or(PrivateKeyError::Malformed)?;
            Pair::Ed25519(
                Ed25519KeyPair::from_seed_and_public_key(seed, point)
                    .map_err(|_| PrivateKeyError::Malformed)?,
            )
        }
        Material::Ec { curve, point } => {
            let _curve = reader.string()?;
            let same = reader.string()? == point;
            let secret = padded(reader.number()?, curve.coordinate()).filter(|_| same);
            let secret = secret.ok_or(PrivateKeyError::Malformed)?;
            let pair =
                EcdsaKeyPair::from_private_key_and_public_key(signing_algorithm(*curve), &secret, point);
            Pair::Ecdsa(pair.map_err(|_| PrivateKeyError::Malformed)?)
        }
        Material::Rsa { modulus, exponent, .. } => {
            Pair::Rsa(Box::new(rsa::pair(modulus, exponent, &mut reader)?))
        }
    };
    let _comment = reader.string()?;
    let is_padding = reader.rest().iter().zip(1u8..).all(|(byte, expected)| *byte == expected);
    if !is_padding || reader.rest().len() > 255 {
        return Err(PrivateKeyError::Malformed);
    }
    Ok(pair)
}

fn padded(number: &[u8], length: usize) -> Option<Zeroizing<Vec<u8>>> {
    let missing = length.checked_sub(number.len())?;
    let mut out = Zeroizing::new(vec![0; missing]);
    out.extend(number);
    Some(out)
}

fn signing_algorithm(curve: Curve) -> &'static EcdsaSigningAlgorithm {
    match curve {
        Curve::P256 => &ECDSA_P256_SHA256_FIXED_SIGNING,
        Curve::P384 => &ECDSA_P384_SHA384_FIXED_SIGNING,
        Curve::P521 => &ECDSA_P521_SHA512_FIXED_SIGNING,
    }
}
