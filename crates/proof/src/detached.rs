//! Detached signatures: base64 of a signature over a text, by a key at hand.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::key::{Curve, Hash, Material, PublicKey, Scheme};

/// Longest encoded signature, in bytes: one of an 8192-bit RSA key has 1368.
pub const MAX_ENCODED: usize = 8 * 1024;

/// Tools differ in whether they pad.
const LENIENT_PADDING: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Detached signature that is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DetachedError {
    /// The text is not base64, or longer than any signature.
    #[error("the signature is not base64, or longer than {MAX_ENCODED} bytes")]
    NotBase64,
    /// The signature does not fit.
    #[error("the signature does not fit the key and the signed text")]
    BadSignature,
}

/// Verifies a base64 signature over a text, with the algorithms that `openssl dgst -sha256 -sign` and Node's `crypto.sign` use by default.
///
/// RSA is PKCS#1 v1.5 with SHA-256, or PSS (salt as long as the hash) for keys that are bound to PSS. ECDSA is an ASN.1 sequence, with
/// SHA-256 or the hash of the curve's strength. Ed25519 signs the text itself. White space in the base64 does not count.
pub fn verify(key: &PublicKey, text: &[u8], signature: &str) -> Result<(), DetachedError> {
    let signature = decode(signature)?;
    let fits = schemes(key).iter().any(|scheme| key.verify(*scheme, text, &signature).is_ok());
    if fits { Ok(()) } else { Err(DetachedError::BadSignature) }
}

fn decode(encoded: &str) -> Result<Vec<u8>, DetachedError> {
    if encoded.len() > MAX_ENCODED {
        return Err(DetachedError::NotBase64);
    }
    let encoded: String = encoded.split_ascii_whitespace().collect();
    match LENIENT_PADDING.decode(encoded) {
        Ok(bytes) if !bytes.is_empty() => Ok(bytes),
        _ => Err(DetachedError::NotBase64),
    }
}

fn schemes(key: &PublicKey) -> &'static [Scheme] {
    match &key.0 {
        Material::Rsa { only_pss: false, .. } => &[Scheme::RsaPkcs1(Hash::Sha256)],
        Material::Rsa { only_pss: true, .. } => &[Scheme::RsaPss(Hash::Sha256)],
        Material::Ec { curve: Curve::P256, .. } => &[Scheme::EcdsaDer(Hash::Sha256)],
        Material::Ec { curve: Curve::P384, .. } => {
            &[Scheme::EcdsaDer(Hash::Sha256), Scheme::EcdsaDer(Hash::Sha384)]
        }
        Material::Ec { curve: Curve::P521, .. } => {
            &[Scheme::EcdsaDer(Hash::Sha256), Scheme::EcdsaDer(Hash::Sha512)]
        }
        Material::Ed25519(_) => &[Scheme::Ed25519],
    }
}
