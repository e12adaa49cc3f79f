//! Signature algorithms of tokens.

use crate::key::{Curve, Hash, Material, PublicKey, Scheme};

/// Signature algorithm of a token (RFC 7518, 8037).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// RSASSA-PSS with SHA-384.
    Ps384,
    /// RSASSA-PSS with SHA-512.
    Ps512,
    /// ECDSA on P-256.
    Es256,
    /// ECDSA on P-384.
    Es384,
    /// ECDSA on P-521.
    Es512,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// Algorithm of that name; none for `none`, HMACs and unknown ones. `Ed25519` is RFC 9864's name of what RFC 8037 calls `EdDSA`.
    pub fn from_name(name: &str) -> Option<Algorithm> {
        Some(match name {
            "RS256" => Algorithm::Rs256,
            "RS384" => Algorithm::Rs384,
            "RS512" => Algorithm::Rs512,
            "PS256" => Algorithm::Ps256,
            "PS384" => Algorithm::Ps384,
            "PS512" => Algorithm::Ps512,
            "ES256" => Algorithm::Es256,
            "ES384" => Algorithm::Es384,
            "ES512" => Algorithm::Es512,
            "EdDSA" | "Ed25519" => Algorithm::EdDsa,
            _ => return None,
        })
    }

    /// Name in headers and key sets.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Rs256 => "RS256",
            Algorithm::Rs384 => "RS384",
            Algorithm::Rs512 => "RS512",
            Algorithm::Ps256 => "PS256",
            Algorithm::Ps384 => "PS384",
            Algorithm::Ps512 => "PS512",
            Algorithm::Es256 => "ES256",
            Algorithm::Es384 => "ES384",
            Algorithm::Es512 => "ES512",
            Algorithm::EdDsa => "EdDSA",
        }
    }

    pub(super) fn scheme(self) -> Scheme {
        match self {
            Algorithm::Rs256 => Scheme::RsaPkcs1(Hash::Sha256),
            Algorithm::Rs384 => Scheme::RsaPkcs1(Hash::Sha384),
            Algorithm::Rs512 => Scheme::RsaPkcs1(Hash::Sha512),
            Algorithm::Ps256 => Scheme::RsaPss(Hash::Sha256),
            Algorithm::Ps384 => Scheme::RsaPss(Hash::Sha384),
            Algorithm::Ps512 => Scheme::RsaPss(Hash::Sha512),
            Algorithm::Es256 | Algorithm::Es384 | Algorithm::Es512 => Scheme::EcdsaFixed,
            Algorithm::EdDsa => Scheme::Ed25519,
        }
    }

    /// Whether the key is of the algorithm's kind; for ECDSA, of its curve.
    pub(super) fn fits(self, key: &PublicKey) -> bool {
        match self {
            Algorithm::Rs256 | Algorithm::Rs384 | Algorithm::Rs512 => {
                matches!(key.0, Material::Rsa { only_pss: false, .. })
            }
            Algorithm::Ps256 | Algorithm::Ps384 | Algorithm::Ps512 => matches!(key.0, Material::Rsa { .. }),
            Algorithm::Es256 => key.curve() == Some(Curve::P256),
            Algorithm::Es384 => key.curve() == Some(Curve::P384),
            Algorithm::Es512 => key.curve() == Some(Curve::P521),
            Algorithm::EdDsa => matches!(key.0, Material::Ed25519(_)),
        }
    }
}
