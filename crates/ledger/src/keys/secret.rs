//! Secret keys: redacted in `Debug`, zeroized when dropped.

use super::{Algorithm, KeyNameError, VerifierKey, check_key_name};
use base64::{Engine, engine::general_purpose::STANDARD};
use ed25519_dalek::{Signer, SigningKey};
use std::fmt;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// The first word of a secret key file.
const HEADER: &str = "PROCTOR-SECRET-KEY-1";

/// The longest secret key file: header, name, algorithm, seed, spaces and newline.
const MAX_FILE_BYTES: usize = 512;

/// A signing key with its name. Its memory is wiped when it is dropped; printing it shows no secret.
#[derive(Clone)]
pub struct SecretKey {
    key: SigningKey,
    verifier: VerifierKey,
}

/// Error of parsing a secret key. No message ever has a part of the secret in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretKeyError {
    /// The text is not one line of four words.
    #[error("a secret key file is one line: `PROCTOR-SECRET-KEY-1 <name> <algorithm> <base64 seed>`")]
    Form,
    /// The name is not allowed.
    #[error(transparent)]
    Name(#[from] KeyNameError),
    /// The algorithm is not known.
    #[error("the secret key's algorithm is not known; it must be `ed25519` or `cosignature/v1`")]
    Algorithm,
    /// The seed is not the base64 of 32 bytes.
    #[error("the secret key's seed is not the base64 of 32 bytes")]
    Seed,
}

impl SecretKey {
    /// The key that grows out of a 32-byte seed, which must come from a good source of randomness.
    pub fn from_seed(name: &str, algorithm: Algorithm, seed: &[u8; 32]) -> Result<Self, SecretKeyError> {
        check_key_name(name)?;
        let key = SigningKey::from_bytes(seed);
        // Every seed gives a usable key: the scalar is clamped, so the point is never of small order.
        let verifier = VerifierKey::new(name, algorithm, key.verifying_key().as_bytes())
            .map_err(|_| SecretKeyError::Seed)?;
        Ok(Self { key, verifier })
    }

    /// The public half.
    pub const fn verifier_key(&self) -> &VerifierKey {
        &self.verifier
    }

    /// The key's name.
    pub fn name(&self) -> &str {
        self.verifier.name()
    }

    /// The signature algorithm.
    pub const fn algorithm(&self) -> Algorithm {
        self.verifier.algorithm()
    }

    /// The content of a secret key file: one line. The caller keeps it from other eyes.
    pub fn encode(&self) -> Zeroizing<String> {
        let seed = Zeroizing::new(STANDARD.encode(self.key.as_bytes()));
        // The room is reserved at once: a growing string would leave copies behind.
        let mut line = Zeroizing::new(String::with_capacity(MAX_FILE_BYTES));
        for word in [HEADER, " ", self.name(), " ", self.algorithm().as_str(), " ", seed.as_str(), "\n"] {
            line.push_str(word);
        }
        line
    }

    /// Reads the content of a secret key file, exactly as [`SecretKey::encode`] writes it.
    ///
    /// The final newline may be missing; nothing else may differ.
    pub fn decode(text: &str) -> Result<Self, SecretKeyError> {
        if text.len() > MAX_FILE_BYTES {
            return Err(SecretKeyError::Form);
        }
        let line = text.strip_suffix('\n').unwrap_or(text);
        let mut words = line.split(' ');
        let (Some(HEADER), Some(name), Some(algorithm), Some(encoded), None) =
            (words.next(), words.next(), words.next(), words.next(), words.next())
        else {
            return Err(SecretKeyError::Form);
        };
        check_key_name(name)?;
        let algorithm = [Algorithm::Ed25519, Algorithm::CosignatureV1]
            .into_iter()
            .find(|known| known.as_str() == algorithm)
            .ok_or(SecretKeyError::Algorithm)?;
        // Room for 36 bytes: the decoder asks for whole groups of three before it knows the padding.
        let mut buffer = Zeroizing::new([0u8; 36]);
        let length = STANDARD.decode_slice(encoded, buffer.as_mut()).map_err(|_| SecretKeyError::Seed)?;
        let seed: Option<&[u8; 32]> = buffer.get(..length).and_then(|seed| seed.try_into().ok());
        Self::from_seed(name, algorithm, seed.ok_or(SecretKeyError::Seed)?)
    }

    /// The Ed25519 signature of a message. Domain separation is the caller's: only this crate may call it.
    pub(crate) fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.key.sign(message).to_bytes()
    }
}

impl PartialEq for SecretKey {
    fn eq(&self, other: &Self) -> bool {
        let same_seed: bool = self.key.as_bytes().ct_eq(other.key.as_bytes()).into();
        same_seed && self.verifier == other.verifier
    }
}

impl Eq for SecretKey {}

impl fmt::Debug for SecretKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SecretKey({}, secret not shown)", self.verifier)
    }
}
