//! TLS with a private authority, and client certificates.

use std::sync::Arc;
use std::time::Duration;

use crate::support::port::{Http, Running};
use crate::support::probe::{Probe, ask, assert_decides, value};
use proctor_clients::ahp::server::{AhpServer, Identity, http};
use proctor_net::auth::Credentials;
use proctor_net::listen::ListenOptions;
use proctor_net::tls::ServerTls;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn pem(&self) -> String {
        self.0.pem()
    }

    /// Certificate and key, as PEM text.
    fn issue(&self, name: &str, usage: ExtendedKeyUsagePurpose) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.extended_key_usages = vec![usage];
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }
}

async fn connect(
    running: &Running,
    authority: &Authority,
    shown: Option<&(String, String)>,
) -> std::io::Result<Http<TlsStream<TcpStream>>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match shown {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
            builder
                .with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap())
                .unwrap()
        }
    };
    let stream = TcpStream::connect(running.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    Ok(Http::new(TlsConnector::from(Arc::new(config)).connect(name, stream).await?))
}

async fn start(
    server: &AhpServer<Probe>,
    authority: &Authority,
    clients: Option<&Authority>,
    handshake_timeout: Duration,
) -> Running {
    let (certificate, key) = authority.issue("localhost", ExtendedKeyUsagePurpose::ServerAuth);
    let clients_pem = clients.map(Authority::pem);
    let tls = ServerTls::from_pem(
        certificate.as_bytes(),
        key.as_bytes(),
        clients_pem.as_ref().map(String::as_bytes),
    );
    let credentials = match clients {
        None => Credentials::none(),
        Some(_) => Credentials::none().with_client_certificates(),
    };
    let options = ListenOptions { tls: Some(tls.unwrap()), handshake_timeout, ..ListenOptions::default() };
    Running::start(http::router(server.clone(), Arc::new(credentials)), options).await
}

const LONG: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_private_authority_is_enough_and_silence_is_not() {
    let authority = Authority::new();
    let running = start(&Probe::server(), &authority, None, Duration::from_millis(300)).await;
    let mut client = connect(&running, &authority, None).await.unwrap();
    assert_decides(&value(&client.post(ask(1, "ok")).await.body), 1, "allow");
    assert!(connect(&running, &Authority::new(), None).await.is_err(), "the client trusts another one");
    assert!(running.connect().await.is_closed().await, "a caller that never agrees on TLS");
    let mut plain = running.connect().await;
    plain.write("POST /ahp HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(plain.answer().await.is_err());
    running.stop().await;
}

#[tokio::test]
async fn a_client_is_known_by_its_certificate() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let server = Probe::server();
    let running = start(&server, &authority, Some(&clients), LONG).await;
    let shown = clients.issue("agent.example", ExtendedKeyUsagePurpose::ClientAuth);
    let mut client = connect(&running, &authority, Some(&shown)).await.unwrap();
    assert_decides(&value(&client.post(ask(1, "ok")).await.body), 1, "allow");
    let peer = server.handler().peers.lock().unwrap()[0].clone();
    assert_eq!(peer.identity, Identity::Certificate("agent.example".to_owned()));

    let wrong = Authority::new().issue("agent.example", ExtendedKeyUsagePurpose::ClientAuth);
    for refused in [None, Some(&wrong)] {
        // With TLS 1.3 the client learns of it when it reads.
        if let Ok(mut client) = connect(&running, &authority, refused).await {
            client.send("/ahp", "host: localhost\r\ncontent-type: application/json\r\n", ask(1, "ok")).await;
            assert!(client.answer().await.is_err());
        }
    }
    assert_eq!(server.handler().peers.lock().unwrap().len(), 1);
    running.stop().await;
}
