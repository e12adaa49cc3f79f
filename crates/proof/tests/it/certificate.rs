//! Proofs by certificate.

use std::net::{IpAddr, Ipv4Addr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proctor_core::json::Json;
use proctor_proof::certificate::{CertificateError, Expected, Holder, Role, verify};
use proctor_proof::detached::DetachedError;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, SigningKey as _, date_time_ymd,
};

use crate::support::{at, json, pem};

const TEXT: &[u8] = br#"{"version":"0.2"}"#;
/// 2026-06-01T00:00:00Z, inside of the validity of every certificate that is not meant to be outside.
const NOW: i64 = crate::support::NOW;

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.distinguished_name.push(DnType::OrganizationName, "Example");
    params.not_before = date_time_ymd(2026, 1, 1);
    params.not_after = date_time_ymd(2027, 1, 1);
    params
}

fn authority_params(name: &str) -> CertificateParams {
    let mut params = params(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

struct Chain {
    authority: String,
    leaf: String,
    key: KeyPair,
}

/// Authority and a certificate that it issued, both changed by the caller.
fn chain(authority: impl FnOnce(&mut CertificateParams), leaf: impl FnOnce(&mut CertificateParams)) -> Chain {
    chain_of(&rcgen::PKCS_ECDSA_P256_SHA256, authority, leaf)
}

fn chain_of(
    algorithm: &'static rcgen::SignatureAlgorithm,
    authority: impl FnOnce(&mut CertificateParams),
    leaf: impl FnOnce(&mut CertificateParams),
) -> Chain {
    let authority_key = KeyPair::generate_for(algorithm).unwrap();
    let mut authority_params = authority_params("Root");
    authority(&mut authority_params);
    let certificate = authority_params.self_signed(&authority_key).unwrap();
    let issuer = Issuer::from_params(&authority_params, &authority_key);
    let key = KeyPair::generate_for(algorithm).unwrap();
    let mut params = params("deployer");
    params.subject_alt_names = vec![
        SanType::Rfc822Name("deployer@example.org".try_into().unwrap()),
        SanType::URI("spiffe://example.org/deployer".try_into().unwrap()),
        SanType::IpAddress(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7))),
    ];
    leaf(&mut params);
    let leaf = params.signed_by(&key, &issuer).unwrap();
    Chain { authority: certificate.pem(), leaf: leaf.pem(), key }
}

impl Chain {
    fn plain() -> Chain {
        chain(|_| {}, |_| {})
    }

    fn proof(&self) -> String {
        let signature = STANDARD.encode(self.key.sign(TEXT).unwrap());
        Json::object().with("certificate", self.leaf.as_str()).with("signature", signature).to_string()
    }

    fn verify(&self, claims: &str, seconds: i64) -> Result<Holder, CertificateError> {
        verify_with(&self.proof(), &self.authority, claims, seconds)
    }
}

fn verify_with(proof: &str, authority: &str, claims: &str, seconds: i64) -> Result<Holder, CertificateError> {
    let claims = json(claims);
    verify(proof, authority, TEXT, &Expected { claims: &claims, issuer: None, now: at(seconds) })
}

#[test]
fn a_manifest_signed_by_an_issued_certificate_is_accepted() {
    for algorithm in [
        &rcgen::PKCS_ECDSA_P256_SHA256,
        &rcgen::PKCS_ECDSA_P384_SHA384,
        &rcgen::PKCS_ED25519,
        &rcgen::PKCS_RSA_SHA256,
    ] {
        let chain = chain_of(algorithm, |_| {}, |_| {});
        let holder = chain.verify("{}", NOW).unwrap();
        assert_eq!(holder.subject, "CN=deployer, O=Example");
        assert_eq!(holder.issuer, "CN=Root, O=Example");
        let block = pem("SIGNATURE", &chain.key.sign(TEXT).unwrap());
        assert_eq!(verify_with(&(chain.leaf.clone() + &block), &chain.authority, "{}", NOW), Ok(holder));
    }
}

#[test]
fn claims_match_components_and_alternative_names() {
    let chain = Chain::plain();
    for claims in [
        r#"{"subject":"deployer"}"#,
        r#"{"subject":"CN=deployer, O=Example","issuer":"Root"}"#,
        r#"{"subject":"deployer@example.org"}"#,
        r#"{"sub":"spiffe://example.org/deployer","iss":"Example"}"#,
        r#"{"subject":"10.0.0.7","team":null}"#,
    ] {
        assert!(chain.verify(claims, NOW).is_ok(), "{claims}");
    }
    for (claims, problem) in [
        (r#"{"subject":"Deployer"}"#, CertificateError::ClaimMismatch("subject")),
        (r#"{"subject":""}"#, CertificateError::ClaimMismatch("subject")),
        (r#"{"subject":"Root"}"#, CertificateError::ClaimMismatch("subject")),
        (r#"{"subject":["deployer"]}"#, CertificateError::ClaimMismatch("subject")),
        (r#"{"issuer":"deployer"}"#, CertificateError::ClaimMismatch("issuer")),
        (r#"{"team":"x"}"#, CertificateError::UncheckableClaim("team".to_owned())),
    ] {
        assert_eq!(chain.verify(claims, NOW), Err(problem), "{claims}");
    }
    let expected = |issuer| Expected { claims: &Json::Null, issuer: Some(issuer), now: at(NOW) };
    assert!(verify(&chain.proof(), &chain.authority, TEXT, &expected("Root")).is_ok());
    let other = verify(&chain.proof(), &chain.authority, TEXT, &expected("deployer"));
    assert_eq!(other, Err(CertificateError::ClaimMismatch("issuer")));
}

#[test]
fn validity_of_both_certificates_counts() {
    let begin = 1_767_225_600; // 2026-01-01
    let end = 1_798_761_600; // 2027-01-01
    let plain = Chain::plain();
    assert!(plain.verify("{}", begin).is_ok());
    assert!(plain.verify("{}", end).is_ok());
    assert_eq!(plain.verify("{}", begin - 1), Err(CertificateError::NotYetValid(Role::Leaf)));
    assert_eq!(plain.verify("{}", end + 1), Err(CertificateError::Expired(Role::Leaf)));
    let old = chain(|authority| authority.not_after = date_time_ymd(2026, 3, 1), |_| {});
    assert_eq!(old.verify("{}", NOW), Err(CertificateError::Expired(Role::Authority)));
    let new = chain(|authority| authority.not_before = date_time_ymd(2026, 12, 1), |_| {});
    assert_eq!(new.verify("{}", NOW), Err(CertificateError::NotYetValid(Role::Authority)));
}

#[test]
fn roles_of_the_certificates_are_kept_apart() {
    let authority_as_leaf = chain(|_| {}, |leaf| leaf.is_ca = IsCa::Ca(BasicConstraints::Constrained(0)));
    assert_eq!(authority_as_leaf.verify("{}", NOW), Err(CertificateError::LeafIsAuthority));
    let no_authority = chain(|authority| authority.is_ca = IsCa::ExplicitNoCa, |_| {});
    assert_eq!(no_authority.verify("{}", NOW), Err(CertificateError::NotAnAuthority));
    let unsaid = chain(|authority| authority.is_ca = IsCa::NoCa, |_| {});
    assert_eq!(unsaid.verify("{}", NOW), Err(CertificateError::NotAnAuthority));
    let only_lists = chain(|authority| authority.key_usages = vec![KeyUsagePurpose::CrlSign], |_| {});
    assert_eq!(only_lists.verify("{}", NOW), Err(CertificateError::NotAnAuthority));
    let only_keys = chain(|_| {}, |leaf| leaf.key_usages = vec![KeyUsagePurpose::KeyEncipherment]);
    assert_eq!(only_keys.verify("{}", NOW), Err(CertificateError::NotForSigning));
    let signing = chain(
        |authority| authority.key_usages = vec![KeyUsagePurpose::KeyCertSign],
        |leaf| leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature],
    );
    assert!(signing.verify("{}", NOW).is_ok());
}

#[test]
fn another_authority_of_the_same_name_did_not_issue_it() {
    let (one, other) = (Chain::plain(), Chain::plain());
    assert_eq!(verify_with(&one.proof(), &other.authority, "{}", NOW), Err(CertificateError::NotIssued));
    let renamed = chain(
        |authority| {
            authority.distinguished_name = DistinguishedName::new();
            authority.distinguished_name.push(DnType::CommonName, "Other");
        },
        |_| {},
    );
    assert_eq!(verify_with(&one.proof(), &renamed.authority, "{}", NOW), Err(CertificateError::NotIssued));
    // The leaf as its own authority.
    assert_eq!(verify_with(&one.proof(), &one.leaf, "{}", NOW), Err(CertificateError::NotAnAuthority));
}

#[test]
fn the_signature_is_over_the_manifest_by_the_leaf_key() {
    let (one, other) = (Chain::plain(), Chain::plain());
    let bad = Err(CertificateError::Signature(DetachedError::BadSignature));
    let proof = |signature: Vec<u8>| {
        let signature = STANDARD.encode(signature);
        Json::object().with("certificate", one.leaf.as_str()).with("signature", signature).to_string()
    };
    assert_eq!(verify_with(&proof(one.key.sign(b"{}").unwrap()), &one.authority, "{}", NOW), bad);
    assert_eq!(verify_with(&proof(other.key.sign(TEXT).unwrap()), &one.authority, "{}", NOW), bad);
}

#[test]
fn critical_extensions_that_are_not_understood_are_refused() {
    let unknown = || {
        let mut extension = CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 99_999, 1], vec![5, 0]);
        extension.set_criticality(true);
        extension
    };
    let leaf = chain(|_| {}, |leaf| leaf.custom_extensions = vec![unknown()]);
    assert_eq!(leaf.verify("{}", NOW), Err(CertificateError::CriticalExtension(Role::Leaf)));
    let authority = chain(|authority| authority.custom_extensions = vec![unknown()], |_| {});
    assert_eq!(authority.verify("{}", NOW), Err(CertificateError::CriticalExtension(Role::Authority)));
}

#[test]
fn what_is_no_proof_is_refused() {
    let chain = Chain::plain();
    for proof in
        ["", "{}", "[]", r#"{"certificate":7,"signature":""}"#, chain.leaf.as_str(), &" ".repeat(70_000)]
    {
        assert_eq!(verify_with(proof, &chain.authority, "{}", NOW), Err(CertificateError::Shape));
    }
    let two = chain.leaf.clone() + &chain.leaf;
    let proof = Json::object().with("certificate", two).with("signature", "AA").to_string();
    assert_eq!(
        verify_with(&proof, &chain.authority, "{}", NOW),
        Err(CertificateError::NotACertificate(Role::Leaf))
    );
    assert_eq!(
        verify_with(&chain.proof(), &chain.key.public_key_pem(), "{}", NOW),
        Err(CertificateError::NotACertificate(Role::Authority))
    );
}
