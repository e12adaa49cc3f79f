//! Proofs by certificate: a text signed by the key of an X.509 certificate that a given authority issued.

mod names;
mod signature;

use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_core::time::Timestamp;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::detached::{self, DetachedError};
use crate::key::{KeyError, PublicKey};
use crate::pem::{self, PemError};

/// Longest proof, in bytes.
pub const MAX_PROOF: usize = 64 * 1024;

/// Expectations about a certificate.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// Declared claims: `subject` and `issuer`, each equal to a component of the name, or an alternative name.
    pub claims: &'a Json,
    /// Issuer of the profile; as the claim `issuer`.
    pub issuer: Option<&'a str>,
    /// Present moment.
    pub now: Timestamp,
}

/// Holder of a certificate who signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Subject's distinguished name, for people.
    pub subject: String,
    /// Issuer's distinguished name, for people.
    pub issuer: String,
    /// Serial number, in hexadecimal.
    pub serial: String,
    /// SHA-256 of the certificate: `sha256:` and 64 hexadecimal digits.
    pub fingerprint: String,
}

/// Proof by certificate that is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// The proof is neither a JSON object with both members nor PEM with both blocks.
    #[error(
        "the proof is neither JSON with `certificate` and `signature`, nor PEM with a `CERTIFICATE` and a `SIGNATURE` block"
    )]
    Shape,
    /// A PEM text that cannot be read.
    #[error(transparent)]
    Pem(#[from] PemError),
    /// A certificate that cannot be read, or a PEM text that does not hold exactly one.
    #[error("{0} is not exactly one X.509 certificate")]
    NotACertificate(Role),
    /// The key of a certificate.
    #[error("the key of {0} is refused: {1}")]
    Key(Role, KeyError),
    /// The signer's certificate is an authority's.
    #[error("the signer's certificate is an authority's: sign with a certificate that the authority issued")]
    LeafIsAuthority,
    /// The authority's certificate is no authority's.
    #[error(
        "the authority's certificate must not issue certificates: its basic constraints or key usage forbid it"
    )]
    NotAnAuthority,
    /// A certificate whose validity has not begun.
    #[error("{0} is not valid yet")]
    NotYetValid(Role),
    /// A certificate whose validity is over.
    #[error("{0} expired")]
    Expired(Role),
    /// The signer's key usage leaves out signatures.
    #[error("the signer's certificate is not for signatures: its key usage forbids them")]
    NotForSigning,
    /// A critical extension that is not understood.
    #[error("{0} has a critical extension that is not understood")]
    CriticalExtension(Role),
    /// The names of issuer and authority differ, or the authority's key did not sign the certificate.
    #[error("the signer's certificate was not issued by the authority")]
    NotIssued,
    /// A declared claim that the certificate does not have.
    #[error("the certificate does not have the declared {0}")]
    ClaimMismatch(&'static str),
    /// A declared claim that no certificate has, and that must not be passed over.
    #[error("the claim `{0}` cannot be checked: a certificate has `subject` and `issuer` only")]
    UncheckableClaim(String),
    /// The signature over the text.
    #[error(transparent)]
    Signature(#[from] DetachedError),
}

/// Certificate that an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The signer's.
    Leaf,
    /// The authority's.
    Authority,
}

impl std::fmt::Display for Role {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Role::Leaf => "the signer's certificate",
            Role::Authority => "the authority's certificate",
        })
    }
}

/// Verifies a proof: the signer's certificate against the authority's, claims, and the signature over the text.
pub fn verify(
    proof: &str,
    authority: &str,
    text: &[u8],
    expected: &Expected<'_>,
) -> Result<Holder, CertificateError> {
    let (leaf, signature) = parts(proof)?;
    let authority = one_certificate(authority, Role::Authority)?;
    let leaf = parse(&leaf, Role::Leaf)?;
    let authority = parse(&authority, Role::Authority)?;
    check_leaf(&leaf, expected.now)?;
    check_claims(&leaf, &authority, expected)?;
    check_authority(&authority, expected.now)?;
    let authority_key = key(&authority, Role::Authority)?;
    if leaf.issuer().as_raw() != authority.subject().as_raw()
        || signature::verify(&leaf, &authority_key).is_err()
    {
        return Err(CertificateError::NotIssued);
    }
    detached::verify(&key(&leaf, Role::Leaf)?, text, &signature)?;
    Ok(Holder {
        subject: leaf.subject().to_string(),
        issuer: leaf.issuer().to_string(),
        serial: proctor_core::hex::encode(leaf.raw_serial()),
        fingerprint: format!("sha256:{}", Digest::of(leaf.as_raw())),
    })
}

/// Certificate and base64 signature of a proof.
fn parts(proof: &str) -> Result<(Vec<u8>, String), CertificateError> {
    if proof.len() > MAX_PROOF {
        return Err(CertificateError::Shape);
    }
    if proof.trim_start().starts_with('{') {
        let value = Json::parse_bounded(proof.as_bytes(), 100).map_err(|_| CertificateError::Shape)?;
        let text = |name| value.get(name).and_then(Json::as_str).ok_or(CertificateError::Shape);
        return Ok((one_certificate(text("certificate")?, Role::Leaf)?, text("signature")?.to_owned()));
    }
    let blocks = pem::blocks(proof)?;
    match blocks.as_slice() {
        [certificate, signature] if certificate.label == "CERTIFICATE" && signature.label == "SIGNATURE" => {
            let encoded =
                base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &*signature.bytes);
            Ok((certificate.bytes.to_vec(), encoded))
        }
        _ => Err(CertificateError::Shape),
    }
}

fn one_certificate(text: &str, role: Role) -> Result<Vec<u8>, CertificateError> {
    match pem::blocks(text)?.as_slice() {
        [block] if block.label == "CERTIFICATE" => Ok(block.bytes.to_vec()),
        _ => Err(CertificateError::NotACertificate(role)),
    }
}

fn parse(der: &[u8], role: Role) -> Result<X509Certificate<'_>, CertificateError> {
    match X509Certificate::from_der(der) {
        Ok(([], certificate)) => Ok(certificate),
        _ => Err(CertificateError::NotACertificate(role)),
    }
}

fn key(certificate: &X509Certificate<'_>, role: Role) -> Result<PublicKey, CertificateError> {
    PublicKey::from_info(certificate.public_key()).map_err(|error| CertificateError::Key(role, error))
}

fn check_leaf(leaf: &X509Certificate<'_>, now: Timestamp) -> Result<(), CertificateError> {
    check_extensions(leaf, Role::Leaf)?;
    if leaf.is_ca() {
        return Err(CertificateError::LeafIsAuthority);
    }
    check_validity(leaf, now, Role::Leaf)?;
    match leaf.key_usage() {
        Ok(None) => Ok(()),
        Ok(Some(usage)) if usage.value.digital_signature() || usage.value.non_repudiation() => Ok(()),
        _ => Err(CertificateError::NotForSigning),
    }
}

fn check_authority(authority: &X509Certificate<'_>, now: Timestamp) -> Result<(), CertificateError> {
    check_extensions(authority, Role::Authority)?;
    let may_sign = match authority.key_usage() {
        Ok(usage) => usage.is_none_or(|usage| usage.value.key_cert_sign()),
        Err(_) => false,
    };
    if !authority.is_ca() || !may_sign {
        return Err(CertificateError::NotAnAuthority);
    }
    check_validity(authority, now, Role::Authority)
}

fn check_validity(
    certificate: &X509Certificate<'_>,
    now: Timestamp,
    role: Role,
) -> Result<(), CertificateError> {
    let now = now.micros().div_euclid(1_000_000);
    if now < certificate.validity().not_before.timestamp() {
        return Err(CertificateError::NotYetValid(role));
    }
    if now > certificate.validity().not_after.timestamp() {
        return Err(CertificateError::Expired(role));
    }
    Ok(())
}

/// Refuses critical extensions other than those that are looked at here. Name constraints are among the refused ones: whoever set them
/// wanted them to count. Extended key usage is accepted and not judged: no usage stands for signing manifests.
fn check_extensions(certificate: &X509Certificate<'_>, role: Role) -> Result<(), CertificateError> {
    let is_understood = |extension: &ParsedExtension<'_>| {
        matches!(
            extension,
            ParsedExtension::BasicConstraints(_)
                | ParsedExtension::KeyUsage(_)
                | ParsedExtension::ExtendedKeyUsage(_)
                | ParsedExtension::SubjectAlternativeName(_)
        )
    };
    let mut extensions = certificate.iter_extensions();
    if extensions.any(|extension| extension.critical && !is_understood(extension.parsed_extension())) {
        return Err(CertificateError::CriticalExtension(role));
    }
    // An extension that stands twice could be read in two ways.
    certificate.extensions_map().map(|_| ()).map_err(|_| CertificateError::NotACertificate(role))
}

fn check_claims(
    leaf: &X509Certificate<'_>,
    authority: &X509Certificate<'_>,
    expected: &Expected<'_>,
) -> Result<(), CertificateError> {
    let subjects = names::subject(leaf);
    let issuers = names::issuer(leaf, authority);
    for (name, value) in expected.claims.as_object().unwrap_or_default() {
        let (word, known) = match name.as_str() {
            _ if value.is_null() => continue,
            "subject" | "sub" => ("subject", &subjects),
            "issuer" | "iss" => ("issuer", &issuers),
            other => return Err(CertificateError::UncheckableClaim(other.chars().take(80).collect())),
        };
        if !value.as_str().is_some_and(|value| known.iter().any(|name| name == value)) {
            return Err(CertificateError::ClaimMismatch(word));
        }
    }
    match expected.issuer {
        Some(issuer) if !issuers.iter().any(|name| name == issuer) => {
            Err(CertificateError::ClaimMismatch("issuer"))
        }
        _ => Ok(()),
    }
}
