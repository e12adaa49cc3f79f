//! Keys, tokens, value sources and servers for tests.

use std::collections::HashMap;
use std::future::ready;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    self, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RsaEncoding, RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proctor_core::json::Json;
use proctor_core::time::Timestamp;
use proctor_proof::jwt::Expected;
use proctor_proof::secret::Secret;
use proctor_proof::sources::{BoxFuture, Fetch, FetchError, Fetched, SourceError, ValueSources};

/// 2026-06-01T00:00:00Z, in seconds.
pub(crate) const NOW: i64 = 1_780_272_000;

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

pub(crate) fn expected() -> Expected<'static> {
    Expected { issuer: None, audience: None, now: at(NOW), skew: Duration::from_secs(60) }
}

pub(crate) fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap()
}

pub(crate) fn base64url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
}

/// Private keys of all kinds.
pub(crate) enum TestKey {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

// Generating an RSA key takes a noticeable part of a second without optimisation.
pub(crate) static RSA: LazyLock<TestKey> =
    LazyLock::new(|| TestKey::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()));
pub(crate) static OTHER_RSA: LazyLock<TestKey> =
    LazyLock::new(|| TestKey::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()));

pub(crate) fn p256() -> TestKey {
    ec(&signature::ECDSA_P256_SHA256_FIXED_SIGNING)
}

pub(crate) fn ec(algorithm: &'static EcdsaSigningAlgorithm) -> TestKey {
    TestKey::Ec(EcdsaKeyPair::generate(algorithm).unwrap())
}

pub(crate) fn ed25519() -> TestKey {
    TestKey::Ed25519(Ed25519KeyPair::generate().unwrap())
}

impl TestKey {
    pub(crate) fn public_der(&self) -> Vec<u8> {
        let der: PublicKeyX509Der<'_> = match self {
            TestKey::Rsa(pair) => pair.public_key().as_der().unwrap(),
            TestKey::Ec(pair) => pair.public_key().as_der().unwrap(),
            TestKey::Ed25519(pair) => pair.public_key().as_der().unwrap(),
        };
        der.as_ref().to_vec()
    }

    pub(crate) fn public_pem(&self) -> String {
        pem("PUBLIC KEY", &self.public_der())
    }

    pub(crate) fn sign(&self, algorithm: &str, text: &[u8]) -> Vec<u8> {
        match self {
            TestKey::Rsa(pair) => {
                let encoding: &'static dyn RsaEncoding = match algorithm {
                    "RS384" => &signature::RSA_PKCS1_SHA384,
                    "RS512" => &signature::RSA_PKCS1_SHA512,
                    "PS256" => &signature::RSA_PSS_SHA256,
                    "PS384" => &signature::RSA_PSS_SHA384,
                    "PS512" => &signature::RSA_PSS_SHA512,
                    _ => &signature::RSA_PKCS1_SHA256,
                };
                let mut out = vec![0; pair.public_modulus_len()];
                pair.sign(encoding, &SystemRandom::new(), text, &mut out).unwrap();
                out
            }
            TestKey::Ec(pair) => pair.sign(&SystemRandom::new(), text).unwrap().as_ref().to_vec(),
            TestKey::Ed25519(pair) => pair.sign(text).as_ref().to_vec(),
        }
    }

    /// The key as a member of a key set, with more members of its own.
    pub(crate) fn jwk(&self, more: &str) -> Json {
        let mut jwk = match self {
            TestKey::Rsa(pair) => {
                // PKCS#1 of a 2048-bit key: nine bytes of headers, the modulus, two bytes of headers, 65537.
                let sequence = pair.public_key().as_ref();
                let numbers = Json::object().with("kty", "RSA").with("n", base64url(&sequence[9..265]));
                numbers.with("e", base64url(&sequence[267..]))
            }
            TestKey::Ec(pair) => {
                let point = &pair.public_key().as_ref()[1..];
                let (x, y) = point.split_at(point.len() / 2);
                let curve = match x.len() {
                    32 => "P-256",
                    48 => "P-384",
                    _ => "P-521",
                };
                Json::object()
                    .with("kty", "EC")
                    .with("crv", curve)
                    .with("x", base64url(x))
                    .with("y", base64url(y))
            }
            TestKey::Ed25519(pair) => Json::object()
                .with("kty", "OKP")
                .with("crv", "Ed25519")
                .with("x", base64url(pair.public_key().as_ref())),
        };
        for (name, value) in json(more).as_object().unwrap() {
            jwk.push(name, value.clone());
        }
        jwk
    }
}

pub(crate) fn key_set(keys: Vec<Json>) -> Vec<u8> {
    Json::object().with("keys", keys).to_string().into_bytes()
}

/// Token with these header and claims, signed with the key.
pub(crate) fn token(header: &str, claims: &str, key: &TestKey) -> String {
    let algorithm = json(header)["alg"].as_str().unwrap_or_default().to_owned();
    let signed = format!("{}.{}", base64url(header.as_bytes()), base64url(claims.as_bytes()));
    let value = key.sign(&algorithm, signed.as_bytes());
    format!("{signed}.{}", base64url(&value))
}

/// Token with an HMAC of the secret.
pub(crate) fn hmac_token(header: &str, claims: &str, secret: &[u8]) -> String {
    let signed = format!("{}.{}", base64url(header.as_bytes()), base64url(claims.as_bytes()));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), signed.as_bytes());
    format!("{signed}.{}", base64url(tag.as_ref()))
}

/// Claims that are valid at [`NOW`], with more members.
pub(crate) fn claims(more: &str) -> String {
    let separator = if more.is_empty() { "" } else { "," };
    format!(
        r#"{{"iss":"https://issuer.example","aud":["agentcli","other"],"exp":{}{separator}{more}}}"#,
        NOW + 300
    )
}

/// Value sources in memory: `env` and `file` by name. Commands are refused.
#[derive(Default)]
pub(crate) struct Values(pub(crate) HashMap<String, String>);

impl Values {
    pub(crate) fn of(name: &str, value: &str) -> Values {
        Values(HashMap::from([(name.to_owned(), value.to_owned())]))
    }
}

impl ValueSources for Values {
    fn resolve<'a>(
        &'a self,
        source: &'a Json,
        variables: &'a [(&'a str, &'a str)],
    ) -> BoxFuture<'a, Result<Secret, SourceError>> {
        let name = source.get("env").or(source.get("file")).and_then(Json::as_str);
        let found = match (name, source.get("command")) {
            (Some(name), None) => self
                .0
                .get(name)
                .map(Secret::new)
                .ok_or_else(|| SourceError::VariableUnset(format!("`{name}`"))),
            // Shows which variables a command would have seen.
            (None, Some(_)) => Ok(Secret::new(format!("{variables:?}"))),
            _ => Err(SourceError::Malformed),
        };
        Box::pin(ready(found))
    }
}

/// Server of one document, which counts its requests.
#[derive(Clone)]
pub(crate) struct Server(Arc<Mutex<(Result<Fetched, FetchError>, usize)>>);

impl Server {
    pub(crate) fn new(answer: Result<Fetched, FetchError>) -> Server {
        Server(Arc::new(Mutex::new((answer, 0))))
    }

    pub(crate) fn of_keys(keys: Vec<Json>, max_age: Option<u64>) -> Server {
        Server::new(Ok(Fetched { body: key_set(keys), max_age: max_age.map(Duration::from_secs) }))
    }

    pub(crate) fn answers(&self, answer: Result<Fetched, FetchError>) {
        self.0.lock().unwrap().0 = answer;
    }

    pub(crate) fn serves(&self, keys: Vec<Json>) {
        let mut state = self.0.lock().unwrap();
        let max_age = state.0.as_ref().unwrap().max_age;
        state.0 = Ok(Fetched { body: key_set(keys), max_age });
    }

    pub(crate) fn requests(&self) -> usize {
        self.0.lock().unwrap().1
    }
}

impl Fetch for Server {
    fn get<'a>(&'a self, _url: &'a str) -> BoxFuture<'a, Result<Fetched, FetchError>> {
        let mut state = self.0.lock().unwrap();
        state.1 += 1;
        Box::pin(ready(state.0.clone()))
    }
}

/// Runs a future that never waits.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}
