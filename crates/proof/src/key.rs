//! Public keys, and the signatures that they verify.
//!
//! One type serves JWT, detached signatures, SSH and certificates, so that limits (RSA of 2048 bits and more, named curves only) cannot
//! differ between them.

mod parse;

use aws_lc_rs::signature::{
    self, EcdsaVerificationAlgorithm, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey,
};

use crate::pem::PemError;

/// Smallest RSA modulus, in bits.
pub const MIN_RSA_BITS: usize = 2048;

/// Largest RSA modulus, in bits: larger ones cost a second and more for each signature.
pub const MAX_RSA_BITS: usize = 8192;

/// Elliptic curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Curve {
    /// NIST P-256.
    P256,
    /// NIST P-384.
    P384,
    /// NIST P-521.
    P521,
}

impl Curve {
    /// Length of a coordinate, in bytes.
    pub(crate) fn coordinate(self) -> usize {
        match self {
            Curve::P256 => 32,
            Curve::P384 => 48,
            Curve::P521 => 66,
        }
    }
}

/// Hash function of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

/// Signature scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// RSASSA-PKCS1-v1_5.
    RsaPkcs1(Hash),
    /// RSASSA-PSS, its salt as long as the hash.
    RsaPss(Hash),
    /// ECDSA with the curve's own hash, as two numbers of fixed length (JWS).
    EcdsaFixed,
    /// ECDSA as an ASN.1 sequence (X.509, OpenSSL).
    EcdsaDer(Hash),
    /// Ed25519.
    Ed25519,
}

/// Public key of a kind that this crate verifies with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(pub(crate) Material);

/// Numbers of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Material {
    /// Modulus and exponent without leading zeros; `only_pss` for keys that are bound to RSASSA-PSS.
    Rsa { modulus: Vec<u8>, exponent: Vec<u8>, only_pss: bool },
    /// Uncompressed point.
    Ec { curve: Curve, point: Vec<u8> },
    /// Compressed point of the Edwards curve.
    Ed25519([u8; 32]),
}

/// Key that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The text is not PEM.
    #[error(transparent)]
    Pem(#[from] PemError),
    /// A PEM text without a block.
    #[error("the key is not PEM: it begins with `-----BEGIN PUBLIC KEY-----`")]
    NoBlock,
    /// A PEM text with several blocks: nothing says which one counts.
    #[error("the PEM text has several keys: give exactly one")]
    SeveralBlocks,
    /// A private key where a public one belongs.
    #[error("the PEM text is a private key: give the public key, and keep the private one secret")]
    PrivateKey,
    /// A block of another kind.
    #[error("a PEM block `{0}` is no public key: use `PUBLIC KEY`, `RSA PUBLIC KEY` or `CERTIFICATE`")]
    OtherBlock(String),
    /// The key's bytes do not have the form that its kind needs.
    #[error("the key is malformed")]
    Malformed,
    /// Ed448, for which the linked cryptography library has no verifier.
    #[error("Ed448 keys are not supported: use Ed25519, ECDSA or RSA")]
    Ed448,
    /// A kind of key without a verifier here: DSA, secp256k1, X25519 and the like.
    #[error("this kind of key is not supported: use Ed25519, ECDSA on P-256, P-384 or P-521, or RSA")]
    Unsupported,
    /// An RSA key that is too small or too large.
    #[error("an RSA key of {0} bits is refused: use {MIN_RSA_BITS} to {MAX_RSA_BITS} bits")]
    RsaSize(usize),
}

/// Signature that does not belong to message and key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the signature does not fit the key and the signed text")]
pub struct BadSignature;

impl PublicKey {
    /// Reads a PEM text with one key: SubjectPublicKeyInfo (`PUBLIC KEY`), PKCS#1 (`RSA PUBLIC KEY`), or the key of a `CERTIFICATE`, whose
    /// validity is not looked at.
    pub fn from_pem(text: &str) -> Result<PublicKey, KeyError> {
        parse::pem(text)
    }

    /// RSA key from big-endian numbers; leading zeros are dropped.
    pub fn rsa(modulus: &[u8], exponent: &[u8]) -> Result<PublicKey, KeyError> {
        parse::rsa(modulus, exponent, false)
    }

    /// Key of a curve from an uncompressed point.
    pub fn ec(curve: Curve, point: &[u8]) -> Result<PublicKey, KeyError> {
        parse::ec(curve, point)
    }

    /// Ed25519 key.
    pub fn ed25519(bytes: &[u8]) -> Result<PublicKey, KeyError> {
        Ok(PublicKey(Material::Ed25519(bytes.try_into().map_err(|_| KeyError::Malformed)?)))
    }

    /// Verifies a signature. A scheme that does not belong to the kind of key fails like a wrong signature.
    pub fn verify(&self, scheme: Scheme, message: &[u8], signed: &[u8]) -> Result<(), BadSignature> {
        let verified = match (&self.0, scheme) {
            (Material::Rsa { only_pss: true, .. }, Scheme::RsaPkcs1(_)) => return Err(BadSignature),
            (Material::Rsa { modulus, exponent, .. }, Scheme::RsaPkcs1(_) | Scheme::RsaPss(_)) => {
                let parameters = rsa_parameters(scheme).ok_or(BadSignature)?;
                RsaPublicKeyComponents { n: modulus, e: exponent }.verify(parameters, message, signed)
            }
            (Material::Ec { curve, point }, Scheme::EcdsaFixed | Scheme::EcdsaDer(_)) => {
                let algorithm = ecdsa_algorithm(*curve, scheme).ok_or(BadSignature)?;
                UnparsedPublicKey::new(algorithm, point).verify(message, signed)
            }
            (Material::Ed25519(bytes), Scheme::Ed25519) => {
                UnparsedPublicKey::new(&signature::ED25519, bytes).verify(message, signed)
            }
            _ => return Err(BadSignature),
        };
        verified.map_err(|_| BadSignature)
    }

    /// Curve of the key, if it has one of the NIST curves.
    pub(crate) fn curve(&self) -> Option<Curve> {
        match &self.0 {
            Material::Ec { curve, .. } => Some(*curve),
            _ => None,
        }
    }
}

fn rsa_parameters(scheme: Scheme) -> Option<&'static RsaParameters> {
    Some(match scheme {
        Scheme::RsaPkcs1(Hash::Sha256) => &signature::RSA_PKCS1_2048_8192_SHA256,
        Scheme::RsaPkcs1(Hash::Sha384) => &signature::RSA_PKCS1_2048_8192_SHA384,
        Scheme::RsaPkcs1(Hash::Sha512) => &signature::RSA_PKCS1_2048_8192_SHA512,
        Scheme::RsaPss(Hash::Sha256) => &signature::RSA_PSS_2048_8192_SHA256,
        Scheme::RsaPss(Hash::Sha384) => &signature::RSA_PSS_2048_8192_SHA384,
        Scheme::RsaPss(Hash::Sha512) => &signature::RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

fn ecdsa_algorithm(curve: Curve, scheme: Scheme) -> Option<&'static EcdsaVerificationAlgorithm> {
    Some(match (curve, scheme) {
        (Curve::P256, Scheme::EcdsaFixed) => &signature::ECDSA_P256_SHA256_FIXED,
        (Curve::P384, Scheme::EcdsaFixed) => &signature::ECDSA_P384_SHA384_FIXED,
        (Curve::P521, Scheme::EcdsaFixed) => &signature::ECDSA_P521_SHA512_FIXED,
        (Curve::P256, Scheme::EcdsaDer(Hash::Sha256)) => &signature::ECDSA_P256_SHA256_ASN1,
        (Curve::P256, Scheme::EcdsaDer(Hash::Sha384)) => &signature::ECDSA_P256_SHA384_ASN1,
        (Curve::P256, Scheme::EcdsaDer(Hash::Sha512)) => &signature::ECDSA_P256_SHA512_ASN1,
        (Curve::P384, Scheme::EcdsaDer(Hash::Sha256)) => &signature::ECDSA_P384_SHA256_ASN1,
        (Curve::P384, Scheme::EcdsaDer(Hash::Sha384)) => &signature::ECDSA_P384_SHA384_ASN1,
        (Curve::P384, Scheme::EcdsaDer(Hash::Sha512)) => &signature::ECDSA_P384_SHA512_ASN1,
        (Curve::P521, Scheme::EcdsaDer(Hash::Sha256)) => &signature::ECDSA_P521_SHA256_ASN1,
        (Curve::P521, Scheme::EcdsaDer(Hash::Sha384)) => &signature::ECDSA_P521_SHA384_ASN1,
        (Curve::P521, Scheme::EcdsaDer(Hash::Sha512)) => &signature::ECDSA_P521_SHA512_ASN1,
        _ => return None,
    })
}
