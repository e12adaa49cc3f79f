//! Keys: their names and identifiers, the public half as text, the secret half, and which keys to trust.

mod secret;
#[cfg(test)]
mod tests;
mod trust;

use base64::{Engine, engine::general_purpose::STANDARD};
use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;
use subtle::ConstantTimeEq;

pub use secret::{SecretKey, SecretKeyError};
pub use trust::{MAX_TRUST_BYTES, Trust, TrustError, TrustProblem};

/// The longest key name, in bytes.
pub const MAX_NAME_BYTES: usize = 255;

/// The longest verifier key text: the longest name, the identifier, the key, and two plus signs.
const MAX_VERIFIER_KEY_BYTES: usize = MAX_NAME_BYTES + 64;

/// Signature algorithms of C2SP signed notes. Each has its own identifier byte, so one cannot be mistaken for the
/// other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// Ed25519 over the text of a note (byte 0x01): checkpoints of a ledger, and approvals.
    Ed25519,
    /// Ed25519 over a time and the text of a checkpoint (byte 0x04): a witness's cosignature, version 1.
    CosignatureV1,
}

impl Algorithm {
    /// The identifier byte that goes before the public key.
    pub const fn byte(self) -> u8 {
        match self {
            Self::Ed25519 => 0x01,
            Self::CosignatureV1 => 0x04,
        }
    }

    /// The name used in secret key files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ed25519 => "ed25519",
            Self::CosignatureV1 => "cosignature/v1",
        }
    }

    const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0x01 => Some(Self::Ed25519),
            0x04 => Some(Self::CosignatureV1),
            _ => None,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Error in a key name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyNameError {
    /// The name is empty.
    #[error("the key name is empty")]
    Empty,
    /// The name is too long.
    #[error("the key name has {bytes} bytes; at most 255 are allowed")]
    TooLong {
        /// Length in bytes.
        bytes: usize,
    },
    /// The name has a character that would make signature lines ambiguous.
    #[error("the key name has {character:?}; spaces, plus signs and control characters are not allowed")]
    Character {
        /// The character.
        character: char,
    },
}

/// Checks a key name: not empty, at most 255 bytes, no spaces, plus signs or control characters.
pub fn check_key_name(name: &str) -> Result<(), KeyNameError> {
    if name.is_empty() {
        return Err(KeyNameError::Empty);
    }
    if name.len() > MAX_NAME_BYTES {
        return Err(KeyNameError::TooLong { bytes: name.len() });
    }
    let unwanted =
        |character: &char| *character == '+' || character.is_whitespace() || character.is_control();
    name.chars().find(unwanted).map_or(Ok(()), |character| Err(KeyNameError::Character { character }))
}

/// The short identifier of a key: a hint which key to try, not a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub [u8; 4]);

impl KeyId {
    /// The identifier of this public key under this name.
    pub fn of(name: &str, algorithm: Algorithm, public_key: &[u8; 32]) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(name.as_bytes());
        hasher.update([b'\n', algorithm.byte()]);
        hasher.update(public_key);
        let hash: [u8; 32] = hasher.finalize().into();
        let [a, b, c, d, ..] = hash;
        Self([a, b, c, d])
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.0))
    }
}

/// The public half of a key with its name: what others need to check its signatures.
///
/// As text it is `<name>+<identifier in hex>+<base64 of algorithm byte and public key>`.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifierKey {
    name: String,
    algorithm: Algorithm,
    id: KeyId,
    key: VerifyingKey,
}

/// Error of parsing a verifier key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerifierKeyError {
    /// The text does not have the three parts.
    #[error("a verifier key has the form `name+id+key`, for example `example.com/log+1a2b3c4d+AbCd…`")]
    Form,
    /// The name is not allowed.
    #[error(transparent)]
    Name(#[from] KeyNameError),
    /// The identifier is not eight lowercase hexadecimal digits.
    #[error("the key identifier is not eight lowercase hexadecimal digits")]
    IdForm,
    /// The last part is not the base64 of 33 bytes.
    #[error("the key after the last `+` is not the base64 of an algorithm byte and 32 bytes")]
    KeyForm,
    /// The algorithm is not known.
    #[error("algorithm {byte:#04x} is not supported; use 0x01 (ed25519) or 0x04 (cosignature/v1)")]
    Algorithm {
        /// The algorithm byte.
        byte: u8,
    },
    /// The bytes are not a usable public key.
    #[error("the public key is not a usable ed25519 key")]
    Point,
    /// The identifier is not that of the name and key: one of the parts was changed.
    #[error("the key identifier `{given}` does not belong to this name and key (expected `{expected}`)")]
    IdMismatch {
        /// The identifier in the text.
        given: KeyId,
        /// The identifier that name and key have.
        expected: KeyId,
    },
}

impl VerifierKey {
    /// A verifier key from its parts.
    pub fn new(name: &str, algorithm: Algorithm, public_key: &[u8; 32]) -> Result<Self, VerifierKeyError> {
        check_key_name(name)?;
        let key = VerifyingKey::from_bytes(public_key).map_err(|_| VerifierKeyError::Point)?;
        // One key, one spelling; and a key of small order would accept signatures that nobody made.
        if key.is_weak() || key.to_edwards().compress().as_bytes() != public_key {
            return Err(VerifierKeyError::Point);
        }
        let id = KeyId::of(name, algorithm, public_key);
        Ok(Self { name: name.to_owned(), algorithm, id, key })
    }

    /// The key's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The signature algorithm.
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The key's short identifier.
    pub const fn id(&self) -> KeyId {
        self.id
    }

    /// The public key itself.
    pub fn public_key(&self) -> &[u8; 32] {
        self.key.as_bytes()
    }

    /// Whether this is an Ed25519 signature of the message by this key, checked strictly.
    pub(crate) fn accepts(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        self.key.verify_strict(message, &Signature::from_bytes(signature)).is_ok()
    }

    /// Whether both are the same public key, under whatever name.
    pub fn same_public_key(&self, other: &Self) -> bool {
        self.public_key().ct_eq(other.public_key()).into()
    }
}

impl FromStr for VerifierKey {
    type Err = VerifierKeyError;

    fn from_str(text: &str) -> Result<Self, VerifierKeyError> {
        if text.len() > MAX_VERIFIER_KEY_BYTES {
            return Err(VerifierKeyError::Form);
        }
        let mut parts = text.splitn(3, '+');
        let (Some(name), Some(id), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(VerifierKeyError::Form);
        };
        check_key_name(name)?;
        let mut given = [0; 4];
        hex::decode_to_slice(id, &mut given).map_err(|_| VerifierKeyError::IdForm)?;
        if hex::encode(given) != id {
            return Err(VerifierKeyError::IdForm);
        }
        let bytes = STANDARD.decode(key).map_err(|_| VerifierKeyError::KeyForm)?;
        let (byte, public_key) = bytes.split_first().ok_or(VerifierKeyError::KeyForm)?;
        let algorithm = Algorithm::from_byte(*byte).ok_or(VerifierKeyError::Algorithm { byte: *byte })?;
        let public_key: &[u8; 32] = public_key.try_into().map_err(|_| VerifierKeyError::KeyForm)?;
        let parsed = Self::new(name, algorithm, public_key)?;
        if parsed.id.0 != given {
            return Err(VerifierKeyError::IdMismatch { given: KeyId(given), expected: parsed.id });
        }
        Ok(parsed)
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = vec![self.algorithm.byte()];
        bytes.extend_from_slice(self.public_key());
        write!(formatter, "{}+{}+{}", self.name, self.id, STANDARD.encode(bytes))
    }
}

impl fmt::Debug for VerifierKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "VerifierKey({self})")
    }
}
