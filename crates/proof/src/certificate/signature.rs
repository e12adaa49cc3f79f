//! Signature of an authority on a certificate.

use x509_parser::oid_registry::{
    OID_NIST_HASH_SHA256, OID_NIST_HASH_SHA384, OID_NIST_HASH_SHA512, OID_PKCS1_RSASSAPSS,
    OID_PKCS1_SHA256WITHRSA, OID_PKCS1_SHA384WITHRSA, OID_PKCS1_SHA512WITHRSA, OID_SIG_ECDSA_WITH_SHA256,
    OID_SIG_ECDSA_WITH_SHA384, OID_SIG_ECDSA_WITH_SHA512, OID_SIG_ED25519,
};
use x509_parser::prelude::X509Certificate;
use x509_parser::signature_algorithm::RsaSsaPssParams;
use x509_parser::x509::AlgorithmIdentifier;

use crate::key::{BadSignature, Hash, PublicKey, Scheme};

/// Verifies that the key signed the certificate. SHA-1 and MD5 are not among the schemes.
pub(super) fn verify(certificate: &X509Certificate<'_>, key: &PublicKey) -> Result<(), BadSignature> {
    let algorithm = &certificate.signature_algorithm;
    // RFC 5280: the algorithm outside of the signed part equals the one inside.
    if *algorithm != certificate.tbs_certificate.signature {
        return Err(BadSignature);
    }
    let scheme = scheme(algorithm).ok_or(BadSignature)?;
    key.verify(scheme, certificate.tbs_certificate.as_ref(), &certificate.signature_value.data)
}

fn scheme(algorithm: &AlgorithmIdentifier<'_>) -> Option<Scheme> {
    if algorithm.algorithm == OID_PKCS1_RSASSAPSS {
        let parameters = RsaSsaPssParams::try_from(algorithm.parameters.as_ref()?).ok()?;
        let hash = parameters.hash_algorithm_oid();
        return [
            (OID_NIST_HASH_SHA256, Hash::Sha256),
            (OID_NIST_HASH_SHA384, Hash::Sha384),
            (OID_NIST_HASH_SHA512, Hash::Sha512),
        ]
        .into_iter()
        .find_map(|(oid, known)| (oid == *hash).then_some(Scheme::RsaPss(known)));
    }
    [
        (OID_PKCS1_SHA256WITHRSA, Scheme::RsaPkcs1(Hash::Sha256)),
        (OID_PKCS1_SHA384WITHRSA, Scheme::RsaPkcs1(Hash::Sha384)),
        (OID_PKCS1_SHA512WITHRSA, Scheme::RsaPkcs1(Hash::Sha512)),
        (OID_SIG_ECDSA_WITH_SHA256, Scheme::EcdsaDer(Hash::Sha256)),
        (OID_SIG_ECDSA_WITH_SHA384, Scheme::EcdsaDer(Hash::Sha384)),
        (OID_SIG_ECDSA_WITH_SHA512, Scheme::EcdsaDer(Hash::Sha512)),
        (OID_SIG_ED25519, Scheme::Ed25519),
    ]
    .into_iter()
    .find_map(|(oid, scheme)| (oid == algorithm.algorithm).then_some(scheme))
}
