//! SSH signatures of files (`PROTOCOL.sshsig`).

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::buffer::{Malformed, Reader, put_string};
use super::certificate::SshCertificate;
use super::private::{PrivateKey, PrivateKeyError};
use super::public::{PublicKeyError, SshPublicKey};
use crate::key::KeyError;

/// Longest armoured signature, in bytes: one by an RSA certificate with 256 principals fits.
pub const MAX_SIGNATURE: usize = 64 * 1024;

const MAGIC: &[u8] = b"SSHSIG";
const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
const END: &str = "-----END SSH SIGNATURE-----";

/// Bytes in a line of an armoured signature, as ssh-keygen writes them.
const LINE: usize = 70;

/// Key that made a signature: by itself, or with the certificate of an authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signer {
    /// A plain key.
    Key(SshPublicKey),
    /// A key with its certificate.
    Certificate(Box<SshCertificate>),
}

impl Signer {
    /// Key that made the signature.
    pub fn key(&self) -> &SshPublicKey {
        match self {
            Signer::Key(key) => key,
            Signer::Certificate(certificate) => &certificate.key,
        }
    }
}

/// Parsed signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshSignature {
    /// Key that made the signature.
    pub signer: Signer,
    /// Purpose that was signed with the message.
    pub namespace: String,
    reserved: Vec<u8>,
    hash: HashName,
    value: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HashName {
    Sha256,
    Sha512,
}

impl HashName {
    fn text(self) -> &'static str {
        match self {
            HashName::Sha256 => "sha256",
            HashName::Sha512 => "sha512",
        }
    }

    fn digest(self, message: &[u8]) -> digest::Digest {
        match self {
            HashName::Sha256 => digest::digest(&digest::SHA256, message),
            HashName::Sha512 => digest::digest(&digest::SHA512, message),
        }
    }
}

/// SSH signature that cannot be read or does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SshSignatureError {
    /// The text is longer than [`MAX_SIGNATURE`].
    #[error("the SSH signature is longer than {MAX_SIGNATURE} bytes")]
    TooLong,
    /// The text is not armoured.
    #[error("the SSH signature is not between `{BEGIN}` and `{END}`")]
    NotArmoured,
    /// The content does not have the form of a signature.
    #[error("the SSH signature is malformed")]
    Malformed,
    /// A format that a later OpenSSH may define.
    #[error("the SSH signature has version {0}, and only version 1 is known")]
    Version(u32),
    /// A key that is not accepted: DSA, a small RSA key, a broken certificate.
    #[error("the SSH signature's key is refused: {0}")]
    Key(#[from] KeyError),
    /// The signature is for another purpose.
    #[error("the SSH signature is for another namespace: sign with `ssh-keygen -Y sign -n {0}`")]
    WrongNamespace(String),
    /// The signature does not belong to message and key, or has an algorithm that is refused.
    #[error("the SSH signature does not fit the signed text")]
    BadSignature,
}

impl From<Malformed> for SshSignatureError {
    fn from(_: Malformed) -> SshSignatureError {
        SshSignatureError::Malformed
    }
}

impl From<PublicKeyError> for SshSignatureError {
    fn from(error: PublicKeyError) -> SshSignatureError {
        match error {
            PublicKeyError::Malformed(_) => SshSignatureError::Malformed,
            PublicKeyError::Key(error) => SshSignatureError::Key(error),
        }
    }
}

impl SshSignature {
    /// Whether a text looks like an armoured signature.
    pub fn is_armoured(text: &str) -> bool {
        text.trim_start().starts_with(BEGIN)
    }

    /// Reads an armoured signature. Nothing but white space may surround it.
    pub fn from_armoured(text: &str) -> Result<SshSignature, SshSignatureError> {
        if text.len() > MAX_SIGNATURE {
            return Err(SshSignatureError::TooLong);
        }
        let body = text.trim().strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END));
        let body = body.ok_or(SshSignatureError::NotArmoured)?;
        let encoded: String = body.split_ascii_whitespace().collect();
        let blob = STANDARD.decode(encoded).map_err(|_| SshSignatureError::Malformed)?;
        SshSignature::from_blob(&blob)
    }

    fn from_blob(blob: &[u8]) -> Result<SshSignature, SshSignatureError> {
        let mut reader = Reader::new(blob);
        if reader.take(MAGIC.len())? != MAGIC {
            return Err(SshSignatureError::Malformed);
        }
        let version = reader.u32()?;
        if version != 1 {
            return Err(SshSignatureError::Version(version));
        }
        let signer = signer(reader.string()?)?;
        let namespace = reader.text()?.to_owned();
        let reserved = reader.string()?.to_vec();
        let hash = match reader.string()? {
            b"sha256" => HashName::Sha256,
            b"sha512" => HashName::Sha512,
            _ => return Err(SshSignatureError::Malformed),
        };
        let value = reader.string()?.to_vec();
        reader.finish()?;
        Ok(SshSignature { signer, namespace, reserved, hash, value })
    }

    /// Verifies namespace and signature. The signer is not judged: that is [`AllowedSigners::check`](super::AllowedSigners::check).
    pub fn verify(&self, namespace: &str, message: &[u8]) -> Result<(), SshSignatureError> {
        if namespace.is_empty() || self.namespace != namespace {
            return Err(SshSignatureError::WrongNamespace(namespace.to_owned()));
        }
        let signed = signed_text(namespace, &self.reserved, self.hash, message);
        self.signer.key().verify(&signed, &self.value).map_err(|_| SshSignatureError::BadSignature)
    }
}

fn signer(blob: &[u8]) -> Result<Signer, SshSignatureError> {
    let type_name = Reader::new(blob).text()?;
    if SshCertificate::is_certificate_type(type_name) {
        Ok(Signer::Certificate(Box::new(SshCertificate::from_blob(blob)?)))
    } else {
        Ok(Signer::Key(SshPublicKey::from_blob(blob)?))
    }
}

fn signed_text(namespace: &str, reserved: &[u8], hash: HashName, message: &[u8]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    put_string(&mut out, namespace.as_bytes());
    put_string(&mut out, reserved);
    put_string(&mut out, hash.text().as_bytes());
    put_string(&mut out, hash.digest(message).as_ref());
    out
}

pub(super) fn sign(namespace: &str, message: &[u8], key: &PrivateKey) -> Result<String, PrivateKeyError> {
    if namespace.is_empty() {
        return Err(PrivateKeyError::NoNamespace);
    }
    let hash = HashName::Sha512;
    let value = key.sign(&signed_text(namespace, &[], hash, message))?;
    let mut blob = MAGIC.to_vec();
    blob.extend(1u32.to_be_bytes());
    put_string(&mut blob, &key.public().to_blob());
    put_string(&mut blob, namespace.as_bytes());
    put_string(&mut blob, &[]);
    put_string(&mut blob, hash.text().as_bytes());
    put_string(&mut blob, &value);
    Ok(armour(&blob))
}

fn armour(blob: &[u8]) -> String {
    let mut text = format!("{BEGIN}\n");
    for (at, character) in STANDARD.encode(blob).chars().enumerate() {
        if at > 0 && at % LINE == 0 {
            text.push('\n');
        }
        text.push(character);
    }
    text.push('\n');
    text.push_str(END);
    text.push('\n');
    text
}
