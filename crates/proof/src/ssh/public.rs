//! SSH public keys.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use proctor_core::digest::Digest;

use super::buffer::{Malformed, Reader, put_number, put_string};
use crate::key::{Curve, Hash, KeyError, Material, PublicKey, Scheme};

/// SSH public key; for a security key with the application that it signs for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshPublicKey {
    pub(super) key: PublicKey,
    /// Application of a security key (`sk-…`), usually `ssh:`.
    pub(super) application: Option<Vec<u8>>,
}

/// Reads why a key or signature cannot be used: bytes, or the key's numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PublicKeyError {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl SshPublicKey {
    /// Name of the key's type, as key files have it.
    pub fn type_name(&self) -> &'static str {
        match (&self.key.0, &self.application) {
            (Material::Rsa { .. }, _) => "ssh-rsa",
            (Material::Ed25519(_), None) => "ssh-ed25519",
            (Material::Ed25519(_), Some(_)) => "sk-ssh-ed25519@openssh.com",
            (Material::Ec { curve: Curve::P256, .. }, None) => "ecdsa-sha2-nistp256",
            (Material::Ec { .. }, Some(_)) => "sk-ecdsa-sha2-nistp256@openssh.com",
            (Material::Ec { curve: Curve::P384, .. }, None) => "ecdsa-sha2-nistp384",
            (Material::Ec { curve: Curve::P521, .. }, None) => "ecdsa-sha2-nistp521",
        }
    }

    /// Fingerprint as `ssh-keygen -l` prints it, for example `SHA256:n4bQ…`.
    pub fn fingerprint(&self) -> String {
        format!("SHA256:{}", STANDARD_NO_PAD.encode(Digest::of(&self.to_blob()).as_bytes()))
    }

    /// Binary form.
    pub(super) fn to_blob(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_string(&mut out, self.type_name().as_bytes());
        match &self.key.0 {
            Material::Rsa { modulus, exponent, .. } => {
                put_number(&mut out, exponent);
                put_number(&mut out, modulus);
            }
            Material::Ec { curve, point } => {
                put_string(&mut out, curve_name(*curve).as_bytes());
                put_string(&mut out, point);
            }
            Material::Ed25519(bytes) => put_string(&mut out, bytes),
        }
        if let Some(application) = &self.application {
            put_string(&mut out, application);
        }
        out
    }

    /// Reads the binary form.
    pub(super) fn from_blob(blob: &[u8]) -> Result<SshPublicKey, PublicKeyError> {
        let mut reader = Reader::new(blob);
        let type_name = reader.text()?;
        let key = SshPublicKey::read_fields(type_name, &mut reader)?;
        reader.finish()?;
        Ok(key)
    }

    /// Reads the fields after a key's type, as keys and certificates have them.
    pub(super) fn read_fields(
        type_name: &str,
        reader: &mut Reader<'_>,
    ) -> Result<SshPublicKey, PublicKeyError> {
        let (plain, is_security_key) = match type_name {
            "sk-ssh-ed25519@openssh.com" => ("ssh-ed25519", true),
            "sk-ecdsa-sha2-nistp256@openssh.com" => ("ecdsa-sha2-nistp256", true),
            other => (other, false),
        };
        let key = match plain {
            "ssh-ed25519" => PublicKey::ed25519(reader.string()?)?,
            "ssh-rsa" => {
                let exponent = reader.number()?;
                PublicKey::rsa(reader.number()?, exponent)?
            }
            _ => {
                let curve =
                    curves().find(|curve| plain == ecdsa_name(*curve)).ok_or(KeyError::Unsupported)?;
                if reader.text()? != curve_name(curve) {
                    return Err(Malformed.into());
                }
                PublicKey::ec(curve, reader.string()?)?
            }
        };
        let application = if is_security_key { Some(reader.string()?.to_vec()) } else { None };
        Ok(SshPublicKey { key, application })
    }

    /// Verifies the binary form of a signature: its algorithm, and a value in that algorithm's form.
    pub(super) fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), Malformed> {
        let mut reader = Reader::new(signature);
        let algorithm = reader.text()?;
        let value = reader.string()?;
        let scheme = match (&self.key.0, algorithm) {
            // The algorithm `ssh-rsa` is SHA-1 and stays out.
            (Material::Rsa { .. }, "rsa-sha2-256") => Scheme::RsaPkcs1(Hash::Sha256),
            (Material::Rsa { .. }, "rsa-sha2-512") => Scheme::RsaPkcs1(Hash::Sha512),
            (Material::Ed25519(_), name) if name == self.type_name() => Scheme::Ed25519,
            (Material::Ec { .. }, name) if name == self.type_name() => Scheme::EcdsaFixed,
            _ => return Err(Malformed),
        };
        let fixed;
        let value = match &self.key.0 {
            Material::Ec { curve, .. } => {
                fixed = fixed_length(*curve, value)?;
                &fixed
            }
            _ => value,
        };
        let message = match &self.application {
            None => message.to_vec(),
            Some(application) => security_key_message(application, message, &mut reader)?,
        };
        reader.finish()?;
        self.key.verify(scheme, &message, value).map_err(|_| Malformed)
    }
}

/// Two numbers of an ECDSA signature, each with the length of a coordinate.
fn fixed_length(curve: Curve, value: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut reader = Reader::new(value);
    let mut fixed = Vec::new();
    for _ in 0..2 {
        let number = reader.number()?;
        let missing = curve.coordinate().checked_sub(number.len()).ok_or(Malformed)?;
        fixed.extend(std::iter::repeat_n(0, missing));
        fixed.extend(number);
    }
    reader.finish()?;
    Ok(fixed)
}

/// Text that a security key signs (`PROTOCOL.u2f`). A touch of the key is required: malware on the signer's machine can ask for
/// signatures, but cannot touch the key.
fn security_key_message(
    application: &[u8],
    message: &[u8],
    reader: &mut Reader<'_>,
) -> Result<Vec<u8>, Malformed> {
    const USER_PRESENT: u8 = 1;
    let flags = reader.byte()?;
    let counter = reader.u32()?;
    if flags & USER_PRESENT == 0 {
        return Err(Malformed);
    }
    let mut text = Digest::of(application).as_bytes().to_vec();
    text.push(flags);
    text.extend(counter.to_be_bytes());
    text.extend(Digest::of(message).as_bytes());
    Ok(text)
}

pub(super) fn curves() -> impl Iterator<Item = Curve> {
    [Curve::P256, Curve::P384, Curve::P521].into_iter()
}

pub(super) fn curve_name(curve: Curve) -> &'static str {
    match curve {
        Curve::P256 => "nistp256",
        Curve::P384 => "nistp384",
        Curve::P521 => "nistp521",
    }
}

fn ecdsa_name(curve: Curve) -> &'static str {
    match curve {
        Curve::P256 => "ecdsa-sha2-nistp256",
        Curve::P384 => "ecdsa-sha2-nistp384",
        Curve::P521 => "ecdsa-sha2-nistp521",
    }
}
