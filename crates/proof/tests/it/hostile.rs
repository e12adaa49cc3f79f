//! Parsers on arbitrary and on mutated bytes: an answer, never a panic, and never acceptance.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::tz::TimeZone;
use proctor_core::json::Json;
use proctor_proof::jwt::{KeySet, verify as verify_token};
use proctor_proof::key::PublicKey;
use proctor_proof::ssh::{AllowedSigners, PrivateKey, Request, SshSignature, sign, verify as verify_ssh};
use proctor_proof::{certificate, detached};
use proptest::prelude::*;

use crate::ssh_keygen::{Folder, MESSAGE, keygen};
use crate::support::{NOW, TestKey, at, base64url, claims, ed25519, expected, key_set, pem, token};

struct Good {
    signers: AllowedSigners,
    lines: String,
    private: String,
    /// Blobs of a plain signature and of one with a certificate.
    blobs: Vec<Vec<u8>>,
    key: TestKey,
    keys: KeySet,
}

static GOOD: LazyLock<Good> = LazyLock::new(|| {
    let folder = Folder::new();
    let path = folder.make_key("key", &["ecdsa", "-b", "256"]);
    let authority = folder.make_key("ca", &["ed25519"]);
    let public = folder.path("key.pub");
    let (authority, public) = (authority.to_str().unwrap(), public.to_str().unwrap());
    keygen(&["-q", "-s", authority, "-I", "test", "-n", "ci", "-V", "20260101:20270101", public], b"");
    let plain = sign("agentcli", MESSAGE, &PrivateKey::load(&path).unwrap()).unwrap();
    let certified = folder.signature(&folder.path("key-cert.pub"), "agentcli", MESSAGE);
    let lines = format!(
        "ci namespaces=\"agentcli\",valid-after=\"20260101Z\" {}\nc* cert-authority {}\n",
        folder.public("key"),
        folder.public("ca")
    );
    let key = ed25519();
    let keys = KeySet::from_pem(&key.public_pem()).unwrap();
    Good {
        signers: AllowedSigners::parse(&lines, &TimeZone::UTC).unwrap(),
        lines,
        private: folder.read("key"),
        blobs: [plain, certified].iter().map(|armoured| blob(armoured)).collect(),
        key,
        keys,
    }
});

fn blob(armoured: &str) -> Vec<u8> {
    let body: String = armoured.lines().filter(|line| !line.starts_with('-')).collect();
    STANDARD.decode(body).unwrap()
}

fn armoured(blob: &[u8]) -> String {
    format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n", STANDARD.encode(blob))
}

fn accepts(blob: &[u8]) -> bool {
    let request = Request { principal: "ci", namespace: "agentcli", now: at(NOW) };
    verify_ssh(&GOOD.signers, &request, MESSAGE, &armoured(blob)).is_ok()
}

#[test]
fn unchanged_signatures_are_accepted_and_no_prefix_of_them_is() {
    for blob in &GOOD.blobs {
        assert!(accepts(blob));
        for length in 0..blob.len() {
            assert!(!accepts(&blob[..length]), "{length}");
        }
        assert!(!accepts(&[blob.as_slice(), &[0]].concat()));
    }
}

#[test]
fn no_single_bit_of_a_signature_can_be_changed() {
    for blob in &GOOD.blobs {
        for at in 0..blob.len() {
            let mut changed = blob.clone();
            changed[at] ^= 1 << (at % 8);
            assert!(!accepts(&changed), "byte {at}");
        }
    }
}

#[test]
fn long_inputs_are_answered_in_time() {
    let began = Instant::now();
    let zone = TimeZone::UTC;
    let stars = format!("{} {}", "*a".repeat(200_000), GOOD.lines.split_once(' ').unwrap().1);
    let signers = AllowedSigners::parse(&stars, &zone).unwrap();
    let signature = armoured(&GOOD.blobs[0]);
    let principal = "a".repeat(250);
    let request = Request { principal: &principal, namespace: "agentcli", now: at(NOW) };
    let _ = verify_ssh(&signers, &request, MESSAGE, &signature);
    assert!(AllowedSigners::parse(&"a\n".repeat(20_000), &zone).is_err());
    assert!(AllowedSigners::parse(&"a".repeat(2 << 20), &zone).is_err());
    let _ = AllowedSigners::parse(&"\"".repeat(1 << 20), &zone);
    assert!(SshSignature::from_armoured(&"A".repeat(1 << 20)).is_err());
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

/// Lines that look like allowed signers.
fn signer_lines() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("ci".to_owned()),
        Just("*,!x".to_owned()),
        Just("\"a b\"".to_owned()),
        Just("cert-authority".to_owned()),
        Just("namespaces=\"agentcli\"".to_owned()),
        Just("valid-after=\"20260101Z\"".to_owned()),
        Just("valid-before=\"99999999999999\"".to_owned()),
        Just("ssh-ed25519".to_owned()),
        Just("AAAAC3NzaC1lZDI1NTE5AAAAIA==".to_owned()),
        Just(",".to_owned()),
        Just("\\\"".to_owned()),
        Just("\n".to_owned()),
        "[ -~äß\u{1F600}]{0,12}",
    ];
    let separator = prop_oneof![Just(" "), Just(""), Just("\t"), Just(",")];
    proptest::collection::vec((word, separator), 0..24)
        .prop_map(|words| words.into_iter().map(|(word, separator)| word + separator).collect())
}

proptest! {
    #[test]
    fn any_text_is_answered(text in any::<String>(), bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let encoded = STANDARD.encode(&bytes);
        for text in [text.as_str(), encoded.as_str(), armoured(&bytes).as_str()] {
            let _ = SshSignature::from_armoured(text);
            let _ = AllowedSigners::parse(text, &TimeZone::UTC);
            prop_assert!(PrivateKey::parse(text).is_err());
            let _ = PublicKey::from_pem(text);
            prop_assert!(verify_token(text, &GOOD.keys, &expected()).is_err());
            let _ = detached::verify(&PublicKey::ed25519(&[7; 32]).unwrap(), b"", text);
        }
        let _ = KeySet::from_jwks(&bytes);
        let mut blob = b"SSHSIG\0\0\0\x01".to_vec();
        blob.extend(&bytes);
        prop_assert!(SshSignature::from_armoured(&armoured(&blob)).is_err());
        let expected = certificate::Expected { claims: &Json::Null, issuer: None, now: at(NOW) };
        for label in ["PUBLIC KEY", "RSA PUBLIC KEY", "CERTIFICATE", "OPENSSH PRIVATE KEY"] {
            let text = pem(label, &bytes);
            let _ = PublicKey::from_pem(&text);
            let _ = PrivateKey::parse(&text);
            let proof = text.clone() + &pem("SIGNATURE", &bytes);
            prop_assert!(certificate::verify(&proof, &text, b"", &expected).is_err());
        }
    }

    #[test]
    fn lines_that_look_like_signers_are_answered(lines in signer_lines()) {
        let signers = AllowedSigners::parse(&lines, &TimeZone::UTC).unwrap();
        let request = Request { principal: "ci", namespace: "agentcli", now: at(NOW) };
        prop_assert!(verify_ssh(&signers, &request, MESSAGE, &armoured(&GOOD.blobs[0])).is_err());
    }

    #[test]
    fn mutated_private_keys_are_answered(at: prop::sample::Index, byte: u8) {
        let mut bytes = GOOD.private.clone().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(text) = String::from_utf8(bytes) {
            let _ = PrivateKey::parse(&text);
        }
    }

    #[test]
    fn mutated_tokens_are_refused(at: prop::sample::Index, byte in "[A-Za-z0-9_.-]") {
        let good = token(r#"{"alg":"EdDSA"}"#, &claims(""), &GOOD.key);
        prop_assert!(verify_token(&good, &GOOD.keys, &expected()).is_ok());
        let mut bytes = good.clone().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte.as_bytes()[0];
        let mutated = String::from_utf8(bytes).unwrap();
        prop_assert_eq!(verify_token(&mutated, &GOOD.keys, &expected()).is_ok(), mutated == good);
    }

    #[test]
    fn key_sets_that_look_like_some_are_answered(
        kinds in proptest::collection::vec((0usize..4, 0usize..4, proptest::collection::vec(any::<u8>(), 0..70)), 0..6),
    ) {
        let keys = kinds.into_iter().map(|(kind, curve, bytes)| {
            Json::object()
                .with("kty", ["RSA", "EC", "OKP", "oct"][kind])
                .with("crv", ["P-256", "P-384", "P-521", "Ed25519"][curve])
                .with("x", base64url(&bytes))
                .with("y", base64url(&bytes))
                .with("n", base64url(&bytes.repeat(5)))
                .with("e", base64url(&bytes))
        });
        let set = KeySet::from_jwks(&key_set(keys.collect())).unwrap();
        for name in ["RS256", "PS256", "ES256", "ES384", "ES512", "EdDSA"] {
            let token = token(&format!(r#"{{"alg":"{name}"}}"#), &claims(""), &GOOD.key);
            prop_assert!(verify_token(&token, &set, &expected()).is_err());
        }
    }
}
