//! Security keys, for which no device is at hand: their signatures are made here.

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use proctor_core::digest::Digest;

use super::buffer::put_string;
use super::public::SshPublicKey;
use crate::key::PublicKey;

fn signed(pair: &Ed25519KeyPair, application: &[u8], flags: u8, message: &[u8]) -> Vec<u8> {
    let counter = 7u32.to_be_bytes();
    let text =
        [Digest::of(application).as_bytes(), &[flags][..], &counter, Digest::of(message).as_bytes()].concat();
    let mut blob = Vec::new();
    put_string(&mut blob, b"sk-ssh-ed25519@openssh.com");
    put_string(&mut blob, pair.sign(&text).as_ref());
    blob.push(flags);
    blob.extend(counter);
    blob
}

#[test]
fn security_keys_must_have_been_touched() {
    let pair = Ed25519KeyPair::generate().unwrap();
    let key = PublicKey::ed25519(pair.public_key().as_ref()).unwrap();
    let key = SshPublicKey { key, application: Some(b"ssh:".to_vec()) };
    assert_eq!(SshPublicKey::from_blob(&key.to_blob()).as_ref(), Ok(&key));
    assert!(key.verify(b"text", &signed(&pair, b"ssh:", 1, b"text")).is_ok());
    assert!(key.verify(b"text", &signed(&pair, b"ssh:", 5, b"text")).is_ok());
    assert!(key.verify(b"text", &signed(&pair, b"ssh:", 0, b"text")).is_err());
    assert!(key.verify(b"text", &signed(&pair, b"web:", 1, b"text")).is_err());
    assert!(key.verify(b"other", &signed(&pair, b"ssh:", 1, b"text")).is_err());
    // The plain key of the same numbers is another key.
    let plain = SshPublicKey { application: None, ..key.clone() };
    assert_ne!(plain, key);
    assert!(plain.verify(b"text", &signed(&pair, b"ssh:", 1, b"text")).is_err());
}

#[test]
fn sha1_signatures_and_other_names_are_refused() {
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::rsa::KeySize;
    use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RSA_PKCS1_SHA512, RsaKeyPair};
    let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    // PKCS#1 of a 2048-bit key: nine bytes of headers, the modulus, two bytes of headers, 65537.
    let sequence = pair.public_key().as_ref();
    let key = PublicKey::rsa(&sequence[9..265], &sequence[267..]);
    let key = SshPublicKey { key: key.unwrap(), application: None };
    let mut value = vec![0; pair.public_modulus_len()];
    for (name, encoding, is_accepted) in [
        ("rsa-sha2-256", &RSA_PKCS1_SHA256, true),
        ("rsa-sha2-512", &RSA_PKCS1_SHA512, true),
        ("rsa-sha2-512", &RSA_PKCS1_SHA256, false),
        ("ssh-rsa", &RSA_PKCS1_SHA256, false),
        ("ssh-ed25519", &RSA_PKCS1_SHA256, false),
        ("", &RSA_PKCS1_SHA256, false),
    ] {
        pair.sign(encoding, &SystemRandom::new(), b"text", &mut value).unwrap();
        let mut blob = Vec::new();
        put_string(&mut blob, name.as_bytes());
        put_string(&mut blob, &value);
        assert_eq!(key.verify(b"text", &blob).is_ok(), is_accepted, "{name}");
    }
}
