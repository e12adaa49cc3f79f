//! Tokens: algorithms, keys, headers, claims.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED_SIGNING,
};
use proctor_proof::jwt::{Algorithm, Expected, JwtError, KeySet, MAX_TOKEN, verify};
use proctor_proof::key::{KeyError, PublicKey};

use crate::support::{
    NOW, OTHER_RSA, RSA, TestKey, claims, ec, ed25519, expected, hmac_token, key_set, p256, pem, token,
};

fn check(key: &TestKey, token: &str) -> Result<Algorithm, JwtError> {
    let keys = KeySet::from_pem(&key.public_pem()).unwrap();
    verify(token, &keys, &expected()).map(|token| token.algorithm)
}

#[test]
fn every_algorithm_is_verified_with_pem_and_with_a_key_set() {
    let mut keys: Vec<(&str, TestKey)> = vec![
        ("ES256", p256()),
        ("ES384", ec(&ECDSA_P384_SHA384_FIXED_SIGNING)),
        ("ES512", ec(&ECDSA_P521_SHA512_FIXED_SIGNING)),
        ("EdDSA", ed25519()),
    ];
    let mut cases: Vec<(&str, &TestKey)> = keys.iter_mut().map(|(name, key)| (*name, &*key)).collect();
    cases.extend(["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"].map(|name| (name, &*RSA)));
    for (name, key) in cases {
        let header = format!(r#"{{"alg":"{name}","kid":"k"}}"#);
        let token = token(&header, &claims(""), key);
        assert_eq!(check(key, &token).map(Algorithm::name), Ok(name));
        let set = KeySet::from_jwks(&key_set(vec![key.jwk(r#"{"kid":"k"}"#)])).unwrap();
        assert_eq!(verify(&token, &set, &expected()).map(|token| token.algorithm.name()), Ok(name));
        // The same token with one claim changed.
        let (head, rest) = token.split_once('.').unwrap();
        let (_, signature) = rest.split_once('.').unwrap();
        let forged =
            format!("{head}.{}.{signature}", crate::support::base64url(claims(r#""admin":1"#).as_bytes()));
        assert_eq!(check(key, &forged), Err(JwtError::BadSignature), "{name}");
    }
}

#[test]
fn pkcs1_and_certificate_pem_are_keys_too() {
    let token = token(r#"{"alg":"RS256"}"#, &claims(""), &RSA);
    let der = RSA.public_der();
    // SubjectPublicKeyInfo of a 2048-bit key: 24 bytes of headers, then the PKCS#1 sequence.
    let keys = KeySet::from_pem(&pem("RSA PUBLIC KEY", &der[24..])).unwrap();
    assert!(verify(&token, &keys, &expected()).is_ok());

    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let certificate = rcgen::CertificateParams::new(vec![]).unwrap().self_signed(&key).unwrap().pem();
    assert_eq!(PublicKey::from_pem(&certificate), PublicKey::from_pem(&key.public_key_pem()));
    assert_eq!(PublicKey::from_pem(&key.serialize_pem()), Err(KeyError::PrivateKey));
}

#[test]
fn weak_and_foreign_keys_are_refused() {
    assert_eq!(PublicKey::rsa(&[0xFF; 128], &[1, 0, 1]), Err(KeyError::RsaSize(1024)));
    assert_eq!(PublicKey::rsa(&[0xFF; 2048], &[1, 0, 1]), Err(KeyError::RsaSize(16384)));
    assert_eq!(PublicKey::rsa(&[0xFF; 256], &[1]), Err(KeyError::Malformed));
    assert_eq!(PublicKey::rsa(&[0xFF; 256], &[2]), Err(KeyError::Malformed));
    let two = RSA.public_pem() + &OTHER_RSA.public_pem();
    assert_eq!(PublicKey::from_pem(&two), Err(KeyError::SeveralBlocks));
    assert_eq!(PublicKey::from_pem("secret"), Err(KeyError::NoBlock));
    // SubjectPublicKeyInfo with the identifier 1.3.101.113 and 57 bytes.
    let ed448 =
        [&[0x30, 0x43, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x71, 0x03, 0x3A, 0x00][..], &[9; 57]].concat();
    assert_eq!(PublicKey::from_pem(&pem("PUBLIC KEY", &ed448)), Err(KeyError::Ed448));
    // A curve that is not NIST's: secp256k1, 1.3.132.0.10.
    let head = [
        0x30, 0x56, 0x30, 0x10, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x05, 0x2B, 0x81,
    ];
    let k256 = [&head[..], &[0x04, 0x00, 0x0A, 0x03, 0x42, 0x00, 0x04], &[7; 64]].concat();
    assert_eq!(PublicKey::from_pem(&pem("PUBLIC KEY", &k256)), Err(KeyError::Unsupported));
}

#[test]
fn another_key_does_not_verify() {
    let token = token(r#"{"alg":"RS256"}"#, &claims(""), &OTHER_RSA);
    assert_eq!(check(&RSA, &token), Err(JwtError::BadSignature));
}

#[test]
fn the_header_cannot_choose_how_a_key_is_used() {
    let text = claims("");
    let public = RSA.public_pem();
    for secret in [public.as_bytes(), &RSA.public_der()] {
        let token = hmac_token(r#"{"alg":"HS256"}"#, &text, secret);
        assert_eq!(check(&RSA, &token), Err(JwtError::RefusedAlgorithm));
    }
    for name in ["none", "None", "NONE", "HS384", "HS512", "RSA-OAEP", "", "rs256", "ES256K"] {
        let header = format!(r#"{{"alg":"{name}"}}"#);
        let signed = token(&header, &text, &RSA);
        let unsigned = signed.rsplit_once('.').unwrap().0.to_owned() + ".";
        for token in [signed, unsigned] {
            assert_eq!(check(&RSA, &token), Err(JwtError::RefusedAlgorithm), "{name}");
        }
    }
    assert_eq!(check(&RSA, &token(r#"{"typ":"JWT"}"#, &text, &RSA)), Err(JwtError::RefusedAlgorithm));
    assert_eq!(check(&RSA, &token(r#"{"alg":["RS256"]}"#, &text, &RSA)), Err(JwtError::RefusedAlgorithm));
    // A right signature under the name of another algorithm: of another kind, or of the same.
    for name in ["ES256", "ES384", "EdDSA"] {
        let token = token(&format!(r#"{{"alg":"{name}"}}"#), &text, &RSA);
        assert_eq!(check(&RSA, &token), Err(JwtError::AlgorithmMismatch), "{name}");
    }
    for (name, real) in [("PS256", "RS256"), ("RS512", "RS256"), ("RS256", "PS256")] {
        let header = format!(r#"{{"alg":"{name}"}}"#);
        let head = crate::support::base64url(header.as_bytes());
        let signed = format!("{head}.{}", crate::support::base64url(text.as_bytes()));
        let value = RSA.sign(real, signed.as_bytes());
        let token = format!("{signed}.{}", crate::support::base64url(&value));
        assert_eq!(check(&RSA, &token), Err(JwtError::BadSignature), "{name}");
    }
    let curve = p256();
    for name in ["RS256", "PS256", "ES384", "EdDSA"] {
        let token = token(&format!(r#"{{"alg":"{name}"}}"#), &text, &curve);
        assert_eq!(check(&curve, &token), Err(JwtError::AlgorithmMismatch), "{name}");
    }
    // A curve of another size under the name of the smaller one, and the other way round.
    for (key, name) in [
        (ec(&ECDSA_P384_SHA384_FIXED_SIGNING), "ES256"),
        (ec(&ECDSA_P521_SHA512_FIXED_SIGNING), "ES256"),
        (ec(&ECDSA_P521_SHA512_FIXED_SIGNING), "ES384"),
        (p256(), "ES512"),
    ] {
        let token = token(&format!(r#"{{"alg":"{name}","kid":"k"}}"#), &text, &key);
        assert_eq!(check(&key, &token), Err(JwtError::AlgorithmMismatch), "{name}");
        let set = KeySet::from_jwks(&key_set(vec![key.jwk(r#"{"kid":"k"}"#)])).unwrap();
        assert_eq!(verify(&token, &set, &expected()), Err(JwtError::AlgorithmMismatch), "{name}");
    }
    // JWS wants two numbers, not an ASN.1 sequence.
    let asn1 = ec(&ECDSA_P256_SHA256_ASN1_SIGNING);
    assert_eq!(check(&asn1, &token(r#"{"alg":"ES256"}"#, &text, &asn1)), Err(JwtError::BadSignature));
}

#[test]
fn keys_and_extensions_in_the_header_are_refused() {
    let jwk = RSA.jwk("{}").to_string();
    for (name, value) in [
        ("crit", r#"["exp"]"#),
        ("crit", "[]"),
        ("jku", r#""https://evil.example/keys""#),
        ("jwk", jwk.as_str()),
        ("x5u", r#""https://evil.example/cert""#),
        ("x5c", "[]"),
        ("jwk", "null"),
    ] {
        let token = token(&format!(r#"{{"alg":"RS256","{name}":{value}}}"#), &claims(""), &RSA);
        assert_eq!(check(&RSA, &token), Err(JwtError::RefusedHeader(name)), "{value}");
    }
}

#[test]
fn times_are_required_numeric_and_current() {
    let key = ed25519();
    let judge = |claims: &str| check(&key, &token(r#"{"alg":"EdDSA"}"#, claims, &key)).map(|_| ());
    for (claims, verdict) in [
        (format!(r#"{{"exp":{}}}"#, NOW - 59), Ok(())),
        (format!(r#"{{"exp":{}}}"#, NOW - 60), Err(JwtError::Expired)),
        (format!(r#"{{"exp":{}.5}}"#, NOW - 60), Ok(())),
        (r#"{"exp":1.9e9}"#.to_owned(), Ok(())),
        (r#"{"exp":0}"#.to_owned(), Err(JwtError::Expired)),
        (r#"{"exp":-1}"#.to_owned(), Err(JwtError::Expired)),
        (r#"{"exp":1e999}"#.to_owned(), Err(JwtError::NotNumeric("exp"))),
        (format!(r#"{{"exp":"{}"}}"#, NOW + 300), Err(JwtError::NotNumeric("exp"))),
        (r#"{"exp":null}"#.to_owned(), Err(JwtError::NotNumeric("exp"))),
        ("{}".to_owned(), Err(JwtError::MissingClaim("exp"))),
        (claims(&format!(r#""nbf":{}"#, NOW + 60)), Ok(())),
        (claims(&format!(r#""nbf":{}"#, NOW + 61)), Err(JwtError::NotYetValid)),
        (claims(r#""nbf":"soon""#), Err(JwtError::NotNumeric("nbf"))),
        (claims(&format!(r#""iat":{}"#, NOW + 61)), Err(JwtError::NotYetValid)),
    ] {
        assert_eq!(judge(&claims), verdict, "{claims}");
    }
}

#[test]
fn issuer_and_audience_are_compared() {
    let key = ed25519();
    let keys = KeySet::from_pem(&key.public_pem()).unwrap();
    let judge = |claims: &str, issuer, audience| {
        let expected = Expected { issuer, audience, ..expected() };
        verify(&token(r#"{"alg":"EdDSA"}"#, claims, &key), &keys, &expected).map(|_| ())
    };
    let text = claims("");
    assert_eq!(judge(&text, Some("https://issuer.example"), Some("agentcli")), Ok(()));
    assert_eq!(judge(&text, Some("https://issuer.example/"), None), Err(JwtError::WrongIssuer));
    assert_eq!(judge(&text, None, Some("agent")), Err(JwtError::WrongAudience));
    let one = format!(r#"{{"exp":{},"aud":"agentcli"}}"#, NOW + 1);
    assert_eq!(judge(&one, None, Some("agentcli")), Ok(()));
    assert_eq!(judge(&one, Some("https://issuer.example"), None), Err(JwtError::WrongIssuer));
    let none = format!(r#"{{"exp":{}}}"#, NOW + 1);
    assert_eq!(judge(&none, None, Some("agentcli")), Err(JwtError::WrongAudience));
}

#[test]
fn malformed_tokens_are_refused() {
    let good = token(r#"{"alg":"RS256"}"#, &claims(""), &RSA);
    let parts: Vec<&str> = good.split('.').collect();
    for (token, is_malformed) in [
        (String::new(), true),
        ("a.b".to_owned(), true),
        (format!("{good}.{}", parts[2]), true),
        (format!("{good}="), true),
        (format!("{}.{}.{}", parts[0], parts[1], "%%%"), true),
        (format!("{}.{}.{}", crate::support::base64url(b"[]"), parts[1], parts[2]), true),
        (format!("{}.{}.{}", crate::support::base64url(b"{\"alg\":1,\"alg\":2}"), parts[1], parts[2]), true),
        (format!("{}.{}.", parts[0], parts[1]), false),
    ] {
        let verdict = check(&RSA, &token);
        assert!(
            matches!(
                (&verdict, is_malformed),
                (Err(JwtError::Malformed(_)), true) | (Err(JwtError::BadSignature), false)
            ),
            "{token}: {verdict:?}"
        );
    }
    let long = format!("{good}{}", "A".repeat(MAX_TOKEN));
    assert_eq!(check(&RSA, &long), Err(JwtError::TooLong));
    let not_text = token(r#"{"alg":"RS256","kid":7}"#, &claims(""), &RSA);
    assert_eq!(check(&RSA, &not_text), Err(JwtError::Malformed("`kid` is not text")));
}

#[test]
fn replay_keys_are_those_of_issuer_and_id() {
    let key = ed25519();
    let keys = KeySet::from_pem(&key.public_pem()).unwrap();
    let replay_key = |claims: String| {
        verify(&token(r#"{"alg":"EdDSA"}"#, &claims, &key), &keys, &expected()).unwrap().replay_key
    };
    let with = |issuer: &str, id: &str, exp: i64| format!(r#"{{"iss":"{issuer}","jti":"{id}","exp":{exp}}}"#);
    let first = replay_key(with("a", "bc", NOW + 1));
    assert_eq!(first, replay_key(with("a", "bc", NOW + 2)), "another token with the same id is a replay");
    assert_ne!(first, replay_key(with("ab", "c", NOW + 1)));
    assert_ne!(first, replay_key(with("z", "bc", NOW + 1)));
    let bare = |exp: i64| format!(r#"{{"exp":{exp}}}"#);
    assert_eq!(replay_key(bare(NOW + 1)), replay_key(bare(NOW + 1)));
    assert_ne!(replay_key(bare(NOW + 1)), replay_key(bare(NOW + 2)));
    assert!(!first.contains("bc"), "ids may be secrets");
}

#[test]
fn the_listed_algorithms_are_those_that_are_verified() {
    let methods = proctor_wire::agentcli::providers::proof_methods();
    let listed = |name: &str| {
        let method = methods.iter().find(|method| method.name == name).unwrap();
        method.algorithms.to_vec()
    };
    let jwt = listed("jwt");
    for name in &jwt {
        assert_eq!(Algorithm::from_name(name).map(Algorithm::name), Some(*name));
    }
    for name in ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"] {
        assert!(jwt.contains(&name), "{name}");
    }
    for method in ["detached-signature", "certificate"] {
        assert!(!listed(method).contains(&"Ed448"));
    }
}
