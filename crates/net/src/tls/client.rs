//! TLS settings of a client.

use std::fmt;
use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use zeroize::Zeroizing;

use super::error::{TlsError, certificates};

/// Trusted authorities and client certificate of a client.
///
/// The default trusts the authorities of the operating system and sends no certificate.
///
/// ```
/// # fn read(_: &str) -> Vec<u8> { Vec::new() }
/// use proctor_net::tls::ClientTls;
///
/// let tls = ClientTls::default()
///     .with_authority(read("ca.pem"))
///     .with_certificate(read("agent.pem"), read("agent.key.pem"));
/// assert!(!format!("{tls:?}").contains("PRIVATE"));
/// ```
#[derive(Clone, Default)]
pub struct ClientTls {
    authority: Option<Vec<u8>>,
    certificate: Option<(Vec<u8>, Zeroizing<Vec<u8>>)>,
}

impl ClientTls {
    /// Trusts only the authorities of this PEM text.
    #[must_use]
    pub fn with_authority(mut self, pem: impl Into<Vec<u8>>) -> ClientTls {
        self.authority = Some(pem.into());
        self
    }

    /// Sends this certificate chain, with its private key; both are PEM text.
    #[must_use]
    pub fn with_certificate(mut self, pem: impl Into<Vec<u8>>, key_pem: impl Into<Vec<u8>>) -> ClientTls {
        self.certificate = Some((pem.into(), Zeroizing::new(key_pem.into())));
        self
    }

    /// The settings of rustls. `protocols` are offered by ALPN in this order.
    pub(crate) fn config(&self, protocols: &[&[u8]]) -> Result<ClientConfig, TlsError> {
        // Named, never the process-wide default: that one panics where two providers, or none, are linked.
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::setup(&error))?
            .with_root_certificates(self.roots()?);
        let mut config = match &self.certificate {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                let chain = certificates(chain, "the client certificate")?;
                let key =
                    PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsError::NoPrivateKey("the client's"))?;
                builder
                    .with_client_auth_cert(chain, key)
                    .map_err(|error| TlsError::unusable("the client certificate", &error))?
            }
        };
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Ok(config)
    }

    fn roots(&self) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        if let Some(pem) = &self.authority {
            for certificate in certificates(pem, "the private authority")? {
                roots
                    .add(certificate)
                    .map_err(|error| TlsError::unusable("the private authority", &error))?;
            }
        } else {
            // An empty store of the system is no error: every server is then refused, with a reason.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Ok(roots)
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ClientTls")
            .field("private_authority", &self.authority.is_some())
            .field("client_certificate", &self.certificate.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_cannot_work_are_refused_with_a_reason() {
        let refused = |tls: ClientTls| tls.config(&[]).unwrap_err().to_string();
        assert!(refused(ClientTls::default().with_authority("nothing")).contains("BEGIN CERTIFICATE"));
        let key = rcgen::KeyPair::generate().unwrap();
        let other = rcgen::KeyPair::generate().unwrap();
        let certificate =
            rcgen::CertificateParams::new(vec!["agent".to_owned()]).unwrap().self_signed(&key).unwrap().pem();
        let trusting = ClientTls::default().with_authority(certificate.clone());
        assert!(
            refused(trusting.clone().with_certificate(certificate.clone(), "no key")).contains("private key")
        );
        assert!(
            refused(trusting.clone().with_certificate(certificate.clone(), other.serialize_pem()))
                .contains("cannot be used")
        );
        let config = trusting.with_certificate(certificate, key.serialize_pem()).config(&[b"h2"]).unwrap();
        assert_eq!(config.alpn_protocols, [b"h2".to_vec()]);
    }
}
