//! Servers behind a private authority: policy engine, key set and token endpoint over real TLS.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proctor_core::json::Json;
use proctor_core::time::{ManualClock, Timestamp};
use proctor_flow::authorization::{SessionView, evaluate};
use proctor_identity::environment::Environment;
use proctor_identity::http::Client;
use proctor_identity::{ResolveOptions, Resolver};
use proctor_proof::jwt::{Expected, JwtError, KeyCache, KeySource};
use proctor_wire::agentcli::effective::select;
use proctor_wire::agentcli::error::Code;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SigningKey as _};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Certificate authority of a private network.
struct Authority {
    params: CertificateParams,
    key: KeyPair,
    pem: String,
}

impl Authority {
    fn new() -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { params, key, pem }
    }

    /// Starts a server whose certificate is for this name. It answers every request with the body.
    async fn serve(&self, name: &str, body: String) -> u16 {
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let leaf = leaf.signed_by(&key, &Issuer::from_params(&self.params, &self.key)).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![leaf.der().clone()],
                rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut request = [0; 16384];
                let _read = stream.read(&mut request).await;
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
                let _sent = stream.write_all(answer.as_bytes()).await;
                let _sent = stream.shutdown().await;
            }
        });
        port
    }
}

fn client() -> Client {
    let nothing: [(&str, &str); 0] = [];
    Client::new(&Environment::new(nothing, "/"))
}

/// Clients that must not accept the server: with another authority, and with the system's.
fn distrusting() -> [Client; 2] {
    [client().trusting(&Authority::new().pem).unwrap(), client()]
}

fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap()
}

const NOW: i64 = 1_780_272_000;

#[tokio::test]
async fn a_policy_engine_is_asked_only_with_its_own_authority() {
    let authority = Authority::new();
    let permit = r#"{"decisions":[{"decision":"allowed","is":true}]}"#.to_owned();
    let right = authority.serve("localhost", permit.clone()).await;
    let wrong_name = authority.serve("topaz.example", permit).await;
    let ask = async |port: u16, certificate: Option<&str>| {
        let config = Json::object()
            .with("endpoint", format!("https://localhost:{port}"))
            .with("policy_path", "p")
            .with("identity_type", "jwt")
            .with("ca_certificate", certificate);
        let manifest = format!(
            r#"{{"version":"0.2","authorization_profiles":[{{"id":"p","provider":"topaz","provider_config":{config}}}],
            "workflows":[{{"id":"w","name":"W","authorization":{{"ref":"p"}},"tasks":[{{"id":"a","name":"A",
            "target":{{"session_target":"shell"}},"shell":{{"program":"git"}},"schedule":{{"cron":"0 9 * * *"}}}}]}}]}}"#
        );
        let task = select(&json(&manifest), None, "a").unwrap();
        let session = SessionView { token: Some("token-of-the-session"), ..SessionView::default() };
        evaluate(&task, &session, Path::new("/"), &client()).await
    };
    assert!(ask(right, Some(&authority.pem)).await.unwrap().is_allowed());
    let other = Authority::new().pem;
    for (port, certificate) in
        [(right, Some(other.as_str())), (right, None), (wrong_name, Some(authority.pem.as_str()))]
    {
        let error = ask(port, certificate).await.unwrap_err();
        assert_eq!(error.code(), Code::AuthorizationError);
        assert!(!error.to_string().contains("token-of-the-session"), "{error}");
    }
}

#[tokio::test]
async fn a_key_set_is_fetched_only_from_its_own_server() {
    let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let set = format!(
        r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519","kid":"k","x":"{}"}}]}}"#,
        base64url(key.public_key_raw())
    );
    let signed = format!(
        "{}.{}",
        base64url(br#"{"alg":"EdDSA","kid":"k"}"#),
        base64url(format!(r#"{{"exp":{}}}"#, NOW + 60).as_bytes())
    );
    let token = format!("{signed}.{}", base64url(&key.sign(signed.as_bytes()).unwrap()));
    let authority = Authority::new();
    let url = format!("https://localhost:{}/keys", authority.serve("localhost", set).await);
    let now = Timestamp::from_micros(NOW * 1_000_000);
    let expected = Expected { issuer: None, audience: None, now, skew: Duration::from_secs(60) };
    let verify = async |client: Client| {
        KeyCache::new(Arc::new(client)).verify(&token, KeySource::Url(&url), &expected).await
    };
    assert!(verify(client().trusting(&authority.pem).unwrap()).await.is_ok());
    for client in distrusting() {
        assert!(matches!(verify(client).await, Err(JwtError::Fetch(_))));
    }
}

#[tokio::test]
async fn a_client_secret_goes_only_to_its_own_server() {
    let authority = Authority::new();
    let answer = r#"{"access_token":"t0ken","expires_in":60}"#.to_owned();
    let port = authority.serve("localhost", answer).await;
    let identity = json(&format!(
        r#"{{"provider":"oidc-client-credentials","auth":{{"provider_config":{{"token_endpoint":"https://localhost:{port}/token","client_id":"me","client_secret":"s3cret"}}}}}}"#
    ));
    let resolve = async |client: Client| {
        let nothing: [(&str, &str); 0] = [];
        let clock = Arc::new(ManualClock::new(Timestamp::from_micros(NOW * 1_000_000)));
        let resolver = Resolver::new(Environment::new(nothing, "/"), clock).with_client(client);
        resolver.resolve(&identity, &ResolveOptions::default()).await.map(|session| session.credentials.len())
    };
    assert_eq!(resolve(client().trusting(&authority.pem).unwrap()).await.ok(), Some(1));
    for client in distrusting() {
        assert_eq!(resolve(client).await.unwrap_err().code(), Code::TokenRequestFailed);
    }
}

#[test]
fn texts_without_a_certificate_are_no_authority() {
    for text in ["", "secret", "-----BEGIN CERTIFICATE-----\nAAAA"] {
        assert!(client().trusting(text).is_err(), "{text}");
    }
}

/// Base64 of URLs, without padding.
fn base64url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let block =
            chunk.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            let digit = usize::try_from(block >> (18 - 6 * place) & 63).unwrap();
            out.push(char::from(ALPHABET[digit]));
        }
    }
    out
}
