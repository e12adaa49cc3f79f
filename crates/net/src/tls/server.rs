//! TLS settings of a server.

use std::fmt;
use std::sync::Arc;

use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use tokio_rustls::TlsAcceptor;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use super::error::{TlsError, certificates};

/// Certificate of a server, and the authorities of its clients' certificates.
#[derive(Clone)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
    asks_for_certificates: bool,
}

impl ServerTls {
    /// Settings from PEM texts: the certificate chain, the server's own certificate first; its private key; and, if clients must send
    /// a certificate, the authorities that issue them.
    pub fn from_pem(
        certificate_chain: &[u8],
        private_key: &[u8],
        client_authority: Option<&[u8]>,
    ) -> Result<ServerTls, TlsError> {
        let chain = certificates(certificate_chain, "the server certificate")?;
        let key =
            PrivateKeyDer::from_pem_slice(private_key).map_err(|_| TlsError::NoPrivateKey("the server's"))?;
        // Named, never the process-wide default: that one panics where two providers, or none, are linked.
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::setup(&error))?;
        let builder = match client_authority {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let mut roots = RootCertStore::empty();
                for authority in certificates(pem, "the client authority")? {
                    roots
                        .add(authority)
                        .map_err(|error| TlsError::unusable("the client authority", &error))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .build()
                    .map_err(|error| TlsError::unusable("the client authority", &error))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| TlsError::unusable("the server certificate and its key", &error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(ServerTls { config: Arc::new(config), asks_for_certificates: client_authority.is_some() })
    }

    /// Whether clients must send a certificate.
    pub fn asks_for_certificates(&self) -> bool {
        self.asks_for_certificates
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }

    /// The subject of a certificate: its first URI or DNS name, or else its common name.
    pub(crate) fn subject(certificate: &[u8]) -> Option<String> {
        let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
        let named = certificate.subject_alternative_name().ok().flatten().and_then(|names| {
            names.value.general_names.iter().find_map(|name| match name {
                GeneralName::URI(name) | GeneralName::DNSName(name) => Some((*name).to_owned()),
                _ => None,
            })
        });
        let common = || {
            let mut names = certificate.subject().iter_common_name();
            names.find_map(|name| name.as_str().ok().map(str::to_owned))
        };
        named.or_else(common).filter(|name| !name.is_empty())
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ServerTls")
            .field("asks_for_certificates", &self.asks_for_certificates)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    #[test]
    fn settings_that_cannot_work_are_refused_with_a_reason() {
        let key = KeyPair::generate().unwrap();
        let other = KeyPair::generate().unwrap();
        let pem =
            CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap().pem();
        let build = |chain: &str, key: &str, authority: Option<&str>| {
            ServerTls::from_pem(chain.as_bytes(), key.as_bytes(), authority.map(str::as_bytes))
                .map_err(|error| error.to_string())
        };
        assert!(build("", &key.serialize_pem(), None).unwrap_err().contains("BEGIN CERTIFICATE"));
        assert!(build(&pem, "no key", None).unwrap_err().contains("private key"));
        assert!(build(&pem, &other.serialize_pem(), None).unwrap_err().contains("cannot be used"));
        assert!(build(&pem, &key.serialize_pem(), Some("x")).unwrap_err().contains("client authority"));
        let tls = build(&pem, &key.serialize_pem(), Some(&pem)).unwrap();
        assert!(tls.asks_for_certificates());
        assert!(!format!("{tls:?}").contains("PRIVATE"));
    }

    #[test]
    fn a_certificate_is_for_its_first_name() {
        let key = KeyPair::generate().unwrap();
        let made = |names: Vec<SanType>, common: Option<&str>| {
            let mut params = CertificateParams::default();
            params.distinguished_name = rcgen::DistinguishedName::new();
            if let Some(common) = common {
                params.distinguished_name.push(DnType::CommonName, common);
            }
            params.subject_alt_names = names;
            ServerTls::subject(params.self_signed(&key).unwrap().der())
        };
        let uri = SanType::URI("spiffe://example/agent".try_into().unwrap());
        let dns = SanType::DnsName("agent.example".try_into().unwrap());
        let address = SanType::IpAddress([10, 0, 0, 1].into());
        assert_eq!(
            made(vec![address.clone(), uri, dns.clone()], Some("c")).unwrap(),
            "spiffe://example/agent"
        );
        assert_eq!(made(vec![dns], Some("c")).unwrap(), "agent.example");
        assert_eq!(made(vec![address], Some("c")).unwrap(), "c");
        assert_eq!(made(vec![], None), None);
        assert_eq!(ServerTls::subject(b"no certificate"), None);
    }
}
