//! Encryption, by the variables of the released gateway, which refuses to start with them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use aa_proto::assembly::common::v1::Decision;
use interop_assembly::actions::tool;
use interop_assembly::gateway::{Gateway, Place};
use interop_assembly::link::Link;
use interop_assembly::policies::OPEN;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

/// An authority, and what it issues.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap() }
    }

    fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// A certificate and its key.
    fn issue(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

/// A gateway with a certificate; with `callers`, those need one too.
fn start(place: &Place, authority: &Authority, callers: bool) -> Gateway {
    let (certificate, key) = authority.issue("localhost");
    for (name, text) in [("cert.pem", certificate), ("key.pem", key), ("ca.pem", authority.certificate())] {
        std::fs::write(place.path().join(name), text).unwrap();
    }
    private(&place.path().join("key.pem"));
    let mut variables =
        vec![("AA_GATEWAY_GRPC_TLS_CERT", "cert.pem"), ("AA_GATEWAY_GRPC_TLS_KEY", "key.pem")];
    if callers {
        variables.push(("AA_GATEWAY_GRPC_TLS_CLIENT_CA", "ca.pem"));
    }
    place.start_with(&[], &variables)
}

fn private(file: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

async fn link(gateway: &Gateway, tls: ClientTlsConfig) -> Result<Link, tonic::transport::Error> {
    let endpoint = Endpoint::from_shared(format!("https://{}", gateway.address)).unwrap();
    Ok(Link::new(endpoint.tls_config(tls.domain_name("localhost"))?.connect().await?))
}

#[tokio::test]
async fn the_gateway_speaks_tls_and_nothing_else() {
    let place = Place::new(OPEN);
    let authority = Authority::new();
    let gateway = start(&place, &authority, false);
    let trusting = || ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority.certificate()));
    let link = link(&gateway, trusting()).await.unwrap();
    let agent = link.register("platform").await;
    assert_eq!(link.decision(&agent, tool("web_search", "{}")).await, Decision::Allow);

    let plain = Endpoint::from_shared(format!("http://{}", gateway.address)).unwrap();
    let refused = match plain.connect().await {
        Err(_) => true,
        Ok(channel) => Link::new(channel).heartbeat(&agent).await.is_err(),
    };
    assert!(refused, "plain text must not be served beside TLS");
}

#[tokio::test]
async fn callers_need_a_certificate_where_an_authority_is_named() {
    let place = Place::new(OPEN);
    let authority = Authority::new();
    let gateway = start(&place, &authority, true);
    let trusting = || ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority.certificate()));
    let (certificate, key) = authority.issue("agent.example");
    let known = link(&gateway, trusting().identity(Identity::from_pem(certificate, key))).await.unwrap();
    let agent = known.register("platform").await;
    assert_eq!(known.decision(&agent, tool("web_search", "{}")).await, Decision::Allow);

    let stranger = match link(&gateway, trusting()).await {
        Err(_) => true,
        Ok(link) => link.heartbeat(&agent).await.is_err(),
    };
    assert!(stranger, "a caller without a certificate must not be served");
}
