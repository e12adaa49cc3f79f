//! The calling side.

use std::fmt;
use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroizing;

/// How a client trusts a server, and shows who it is.
///
/// Without settings it trusts what this machine trusts and shows nothing.
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
    /// Trusts the authorities of this PEM text, and then no other ones.
    #[must_use]
    pub fn with_authority(mut self, pem: impl Into<Vec<u8>>) -> ClientTls {
        self.authority = Some(pem.into());
        self
    }

    /// Shows this certificate chain, with its private key, both as PEM text.
    #[must_use]
    pub fn with_certificate(mut self, pem: impl Into<Vec<u8>>, key_pem: impl Into<Vec<u8>>) -> ClientTls {
        self.certificate = Some((pem.into(), Zeroizing::new(key_pem.into())));
        self
    }

    /// The settings for rustls. `protocols` are offered in this order.
    pub(crate) fn config(&self, protocols: &[&[u8]]) -> Result<ClientConfig, String> {
        // Named, never the process-wide default: that one panics where two providers, or none, are linked.
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS cannot be set up: {error}"))?
            .with_root_certificates(self.roots()?);
        let mut config = match &self.certificate {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                let chain = certificates(chain, "the client certificate")?;
                let key = PrivateKeyDer::from_pem_slice(key)
                    .map_err(|_| "the client's private key is no PEM text with a private key".to_owned())?;
                builder
                    .with_client_auth_cert(chain, key)
                    .map_err(|error| format!("the client certificate cannot be used: {error}"))?
            }
        };
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Ok(config)
    }

    fn roots(&self) -> Result<RootCertStore, String> {
        let mut roots = RootCertStore::empty();
        if let Some(pem) = &self.authority {
            for certificate in certificates(pem, "the private authority")? {
                roots
                    .add(certificate)
                    .map_err(|error| format!("the private authority cannot be used: {error}"))?;
            }
        } else {
            // A machine without any has an empty store: every server is then refused, with a reason.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Ok(roots)
    }
}

fn certificates(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| format!("{what} is no PEM text: {error}"))?;
    if found.is_empty() {
        return Err(format!("{what} holds no certificate; it must be PEM text with `BEGIN CERTIFICATE`"));
    }
    Ok(found)
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
        let refused = |tls: ClientTls| tls.config(&[]).unwrap_err();
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
