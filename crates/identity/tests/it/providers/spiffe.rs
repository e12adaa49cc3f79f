//! JWT-SVIDs from a file.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaEncoding,
    RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proctor_core::json::Json;
use proctor_core::time::Timestamp;
use proctor_identity::{IdentityError, Session};
use proctor_wire::agentcli::error::Code;

use super::{NOW, credential, identity, json, resolve_in};

/// Key of the trust domain.
enum TestKey {
    Ec(EcdsaKeyPair),
    Rsa(RsaKeyPair, &'static dyn RsaEncoding, &'static str),
}

impl TestKey {
    fn algorithm(&self) -> &'static str {
        match self {
            TestKey::Ec(_) => "ES256",
            TestKey::Rsa(_, _, algorithm) => algorithm,
        }
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        match self {
            TestKey::Ec(key) => key.sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec(),
            TestKey::Rsa(key, padding, _) => {
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(*padding, &SystemRandom::new(), message, &mut signature).unwrap();
                signature
            }
        }
    }

    fn jwks(&self) -> String {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match self {
            TestKey::Ec(key) => {
                let point = key.public_key().as_ref();
                format!(
                    r#"{{"keys":[{{"kty":"EC","crv":"P-256","x":"{}","y":"{}"}}]}}"#,
                    encode(&point[1..33]),
                    encode(&point[33..])
                )
            }
            TestKey::Rsa(key, ..) => {
                // PKCS#1 of a 2048-bit key: nine bytes of headers, then the modulus.
                let modulus = &key.public_key().as_ref()[9..265];
                format!(r#"{{"keys":[{{"kty":"RSA","n":"{}","e":"AQAB"}}]}}"#, encode(modulus))
            }
        }
    }

    fn token(&self, claims: &Json) -> String {
        let header = format!(r#"{{"alg":"{}","typ":"JWT"}}"#, self.algorithm());
        let signed =
            format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims.to_string()));
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(self.sign(signed.as_bytes())))
    }
}

fn ec() -> TestKey {
    TestKey::Ec(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
}

fn claims() -> Json {
    Json::object()
        .with("sub", "spiffe://example.org/agent")
        .with("aud", vec![Json::from("svc"), Json::from("other")])
        .with("exp", NOW + 300)
        .with("iat", NOW - 10)
}

async fn resolve(token: &str, jwks: &str, more: &str) -> Result<Session, IdentityError> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("svid"), format!("{token}\n")).unwrap();
    std::fs::write(folder.path().join("keys.json"), jwks).unwrap();
    let auth = format!(
        r#"{{"audience":"svc","provider_config":{{"svid_file":"svid","jwks_file":"keys.json"{more}}}}}"#
    );
    let result = resolve_in(folder.path(), &[], &identity("spiffe-jwt-svid", &auth)).await;
    let shown = match &result {
        Ok(session) => format!("{} {session:?}", session.describe()),
        Err(error) => format!("{error} {error:?}"),
    };
    assert!(!shown.contains(token), "{shown}");
    result
}

#[tokio::test]
async fn svids_of_every_kind_of_key_are_accepted_with_any_issuer() {
    let rsa = || RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    for key in
        [ec(), TestKey::Rsa(rsa(), &RSA_PKCS1_SHA256, "RS256"), TestKey::Rsa(rsa(), &RSA_PSS_SHA256, "PS256")]
    {
        for issuer in [None, Some("https://spire.example.org"), Some("spiffe://example.org")] {
            let mut claims = claims();
            if let Some(issuer) = issuer {
                claims.push("iss", issuer);
            }
            let token = key.token(&claims);
            let session = resolve(&token, &key.jwks(), "").await.unwrap();
            assert_eq!(session.principal(), Some("spiffe://example.org/agent"));
            assert_eq!(session.subject.issuer.as_deref(), issuer.or(Some("spiffe://example.org")));
            assert_eq!(session.chain[0].kind, "workload");
            assert_eq!(session.chain[0].grant, "jwt-svid");
            assert_eq!(session.expires_at, Some(Timestamp::from_micros((NOW + 300) * 1_000_000)));
            assert_eq!(credential(&session, "jwt_svid"), Ok(token));
        }
    }
}

#[tokio::test]
async fn unfit_svids_are_refused() {
    let key = ec();
    let with = |name: &str, value: &str| {
        let mut claims = claims();
        claims.set_pointer(&format!("/{name}"), json(value));
        key.token(&claims)
    };
    let mut tampered = key.token(&claims());
    tampered.insert(tampered.find('.').unwrap() + 1, 'A');
    for token in [
        with("exp", &(NOW - 31).to_string()),
        with("exp", "null"),
        with("nbf", &(NOW + 31).to_string()),
        with("iat", &(NOW + 31).to_string()),
        with("aud", r#""elsewhere""#),
        with("sub", r#""agent""#),
        with("sub", r#""spiffe://example.org/../agent""#),
        ec().token(&claims()),
        tampered,
        "hunter2".to_owned(),
    ] {
        let error = resolve(&token, &key.jwks(), "").await.unwrap_err();
        assert_eq!(error.code(), Code::IdentityResolutionFailed, "{error}");
    }
    // Within the tolerance, and with the demanded issuer.
    resolve(&with("exp", &(NOW - 29).to_string()), &key.jwks(), "").await.unwrap();
    assert!(
        resolve(&with("exp", &(NOW - 29).to_string()), &key.jwks(), r#","clock_tolerance_s":0"#)
            .await
            .is_err()
    );
    assert!(resolve(&with("iss", r#""https://a""#), &key.jwks(), r#","issuer":"https://b""#).await.is_err());
    resolve(&with("iss", r#""https://a""#), &key.jwks(), r#","issuer":"https://a""#).await.unwrap();
}

#[tokio::test]
async fn unfit_profiles_are_refused() {
    let key = ec();
    let token = key.token(&claims());
    for (more, code) in [
        (r#","jwks":{"keys":[]}"#, Code::IdentityProfileInvalid),
        (r#","clock_tolerance_s":301"#, Code::IdentityProfileInvalid),
        (r#","workload_api_socket":"unix:///x""#, Code::UnsupportedCapability),
        (r#","jwks_uri":"https://x/""#, Code::UnsupportedCapability),
    ] {
        assert_eq!(resolve(&token, &key.jwks(), more).await.unwrap_err().code(), code, "{more}");
    }
    for jwks in ["{}", "[", r#"{"keys":[{"kty":"oct","k":"aHVudGVyMg"}]}"#] {
        assert!(resolve(&token, jwks, "").await.is_err(), "{jwks}");
    }
}

#[tokio::test]
async fn the_header_of_an_svid_cannot_choose_how_its_key_is_used() {
    let key = ec();
    let jwks = key.jwks();
    let with_header = |header: &str, sign: &dyn Fn(&[u8]) -> Vec<u8>| {
        let signed =
            format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims().to_string()));
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(sign(signed.as_bytes())))
    };
    let hmac = |secret: Vec<u8>| {
        move |message: &[u8]| {
            let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, &secret);
            aws_lc_rs::hmac::sign(&key, message).as_ref().to_vec()
        }
    };
    let own = |message: &[u8]| key.sign(message);
    for token in [
        with_header(r#"{"alg":"none"}"#, &|_| Vec::new()),
        with_header(r#"{"alg":"HS256"}"#, &hmac(jwks.clone().into_bytes())),
        with_header(r#"{"alg":"RS256"}"#, &own),
        with_header(r#"{"alg":"ES384"}"#, &own),
        with_header(r#"{"alg":"ES256","jku":"https://evil.example/"}"#, &own),
        with_header(r#"{"alg":"ES256","crit":["exp"]}"#, &own),
        with_header(r#"{"alg":"ES256","kid":"another"}"#, &own),
    ] {
        let error = resolve(&token, &jwks, "").await.unwrap_err();
        assert_eq!(error.code(), Code::IdentityResolutionFailed, "{error}");
    }
    // Two keys that fit: nothing says which one counts.
    let keys: Vec<Json> =
        [&jwks, &ec().jwks()].iter().map(|set| json(set)["keys"].as_array().unwrap()[0].clone()).collect();
    let both = Json::object().with("keys", keys).to_string();
    assert!(resolve(&key.token(&claims()), &both, "").await.is_err());
}
