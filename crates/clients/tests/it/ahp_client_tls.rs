//! TLS: a private authority, and client certificates.

use std::sync::Arc;

use futures_util::StreamExt;
use proctor_clients::ahp::client::{AhpClient, AhpError, ClientOptions, Transport};
use proctor_net::tls::ClientTls;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    der: rustls::pki_types::CertificateDer<'static>,
}

impl Authority {
    fn new() -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        Authority { pem: certificate.pem(), der: certificate.der().clone(), issuer: Issuer::new(params, key) }
    }

    fn issue(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }

    /// A server on loopback that wants certificates of `clients`, if given.
    async fn server(&self, clients: Option<&Authority>) -> (TcpListener, TlsAcceptor, String) {
        let (certificate, key) = self.issue("localhost");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.der.clone()).unwrap();
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
                builder.with_client_cert_verifier(verifier)
            }
        };
        let key = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("localhost:{}", listener.local_addr().unwrap().port());
        (listener, TlsAcceptor::from(Arc::new(config)), address)
    }
}

fn options(tls: ClientTls) -> ClientOptions {
    ClientOptions { tls, ..ClientOptions::default() }
}

/// Whether a WebSocket client with these settings gets through.
async fn websocket(server: &(TcpListener, TlsAcceptor, String), tls: ClientTls) -> Result<(), AhpError> {
    let (listener, acceptor, address) = server;
    let serving = async {
        let Ok(stream) = acceptor.accept(listener.accept().await.unwrap().0).await else { return };
        let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
        while let Some(Ok(_)) = socket.next().await {}
    };
    let calling = async {
        let transport = Transport::WebSocket { url: format!("wss://{address}/"), auth: None };
        AhpClient::connect(transport, options(tls)).await?.close().await
    };
    tokio::join!(Box::pin(calling), Box::pin(serving)).0
}

/// The same for HTTP.
async fn http(server: &(TcpListener, TlsAcceptor, String), tls: ClientTls) -> Result<(), AhpError> {
    let (listener, acceptor, address) = server;
    let serving = async {
        let Ok(mut stream) = acceptor.accept(listener.accept().await.unwrap().0).await else { return };
        let _ = stream.read(&mut [0; 4096]).await;
        let body = r#"{"jsonrpc":"2.0","id":"h","result":{"protocol_version":"2.4","harness_info":{"name":"t","version":"1","capabilities":[]}}}"#;
        let reply = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let _ = stream.write_all(reply.as_bytes()).await;
        let _ = stream.shutdown().await;
    };
    let calling = async {
        let transport = Transport::Http { url: format!("https://{address}/ahp"), auth: None };
        let client = AhpClient::connect(transport, options(tls)).await?;
        client.with_id("h").handshake(vec![]).await.map(drop)
    };
    tokio::join!(Box::pin(calling), Box::pin(serving)).0
}

#[tokio::test]
async fn a_private_authority_is_trusted_and_no_other_one() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = authority.server(None).await;
    let trusting = |authority: &Authority| ClientTls::default().with_authority(authority.pem.clone());
    websocket(&server, trusting(&authority)).await.unwrap();
    http(&server, trusting(&authority)).await.unwrap();
    for tls in [ClientTls::default(), trusting(&other)] {
        assert!(matches!(websocket(&server, tls.clone()).await.unwrap_err(), AhpError::Transport(_)));
        assert!(matches!(http(&server, tls).await.unwrap_err(), AhpError::Transport(_)));
    }
}

#[tokio::test]
async fn a_client_certificate_is_shown() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let server = authority.server(Some(&clients)).await;
    let trusting = ClientTls::default().with_authority(authority.pem.clone());
    let (certificate, key) = clients.issue("agent");
    let shown = trusting.clone().with_certificate(certificate.pem(), key.serialize_pem());
    websocket(&server, shown.clone()).await.unwrap();
    http(&server, shown).await.unwrap();
    assert!(websocket(&server, trusting.clone()).await.is_err());
    assert!(http(&server, trusting).await.is_err());
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused_before_connecting() {
    let tls = ClientTls::default().with_authority("no certificate");
    for transport in [
        Transport::WebSocket { url: "wss://localhost:1/".to_owned(), auth: None },
        Transport::Http { url: "https://localhost:1/".to_owned(), auth: None },
    ] {
        let error = AhpClient::connect(transport, options(tls.clone())).await.unwrap_err();
        assert!(matches!(error, AhpError::InvalidConfig(_)), "{error:?}");
    }
}
