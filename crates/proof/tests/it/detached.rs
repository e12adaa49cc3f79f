//! Detached signatures by PEM keys.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA256_ASN1_SIGNING,
    ECDSA_P521_SHA512_ASN1_SIGNING,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use proctor_proof::detached::{DetachedError, verify};
use proctor_proof::key::PublicKey;

use crate::support::{OTHER_RSA, RSA, TestKey, ec, ed25519, p256, pem};

const TEXT: &[u8] = br#"{"version":"0.2"}"#;

#[test]
fn every_kind_of_key_signs() {
    let keys = [
        ec(&ECDSA_P256_SHA256_ASN1_SIGNING),
        ec(&ECDSA_P384_SHA384_ASN1_SIGNING),
        ec(&ECDSA_P521_SHA512_ASN1_SIGNING),
        ec(&ECDSA_P521_SHA256_ASN1_SIGNING),
        ed25519(),
    ];
    for (index, key) in keys.iter().chain([&*RSA]).enumerate() {
        let public = PublicKey::from_pem(&key.public_pem()).unwrap();
        let signature = key.sign("RS256", TEXT);
        let encoded = STANDARD.encode(&signature);
        assert_eq!(verify(&public, TEXT, &encoded), Ok(()), "{index}");
        assert_eq!(verify(&public, TEXT, &STANDARD_NO_PAD.encode(&signature)), Ok(()));
        let (start, end) = encoded.split_at(20);
        assert_eq!(verify(&public, TEXT, &format!("{start}\r\n {end}\n")), Ok(()), "{index}");
        assert_eq!(verify(&public, b"{}", &encoded), Err(DetachedError::BadSignature));
        let other = PublicKey::from_pem(&OTHER_RSA.public_pem()).unwrap();
        assert_eq!(verify(&other, TEXT, &encoded), Err(DetachedError::BadSignature));
    }
}

#[test]
fn other_algorithms_of_the_same_key_are_refused() {
    let public = PublicKey::from_pem(&RSA.public_pem()).unwrap();
    for name in ["RS512", "PS256"] {
        let encoded = STANDARD.encode(RSA.sign(name, TEXT));
        assert_eq!(verify(&public, TEXT, &encoded), Err(DetachedError::BadSignature), "{name}");
    }
    // Two numbers, as in a token.
    let key = p256();
    let encoded = STANDARD.encode(key.sign("", TEXT));
    let public = PublicKey::from_pem(&key.public_pem()).unwrap();
    assert_eq!(verify(&public, TEXT, &encoded), Err(DetachedError::BadSignature));
}

#[test]
fn a_key_that_is_bound_to_pss_verifies_pss_only() {
    let TestKey::Rsa(_) = &*RSA else { panic!("an RSA key") };
    // The same key under the identifier of RSASSA-PSS (1.2.840.113549.1.1.10) instead of rsaEncryption (…1.1) with its NULL.
    let der = RSA.public_der();
    let algorithm = [0x30, 0x0B, 0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x0A];
    let body = [&algorithm[..], &der[19..]].concat();
    let length = u16::try_from(body.len()).unwrap().to_be_bytes();
    let bound = [&[0x30, 0x82], &length[..], &body].concat();
    let public = PublicKey::from_pem(&pem("PUBLIC KEY", &bound)).unwrap();
    assert_eq!(verify(&public, TEXT, &STANDARD.encode(RSA.sign("PS256", TEXT))), Ok(()));
    let pkcs1 = STANDARD.encode(RSA.sign("RS256", TEXT));
    assert_eq!(verify(&public, TEXT, &pkcs1), Err(DetachedError::BadSignature));
}

#[test]
fn what_is_no_signature_is_refused() {
    let public = PublicKey::from_pem(&RSA.public_pem()).unwrap();
    for text in ["", " \n", "not base64!", "-----BEGIN SSH SIGNATURE-----", &"A".repeat(9000)] {
        assert_eq!(verify(&public, TEXT, text), Err(DetachedError::NotBase64), "{text}");
    }
}
