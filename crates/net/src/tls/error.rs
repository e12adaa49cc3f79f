//! TLS settings that cannot be used.

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

/// TLS settings that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// The cryptography provider supports no safe protocol version.
    #[error("TLS cannot be set up: {0}")]
    Setup(String),
    /// The text of a certificate is not PEM.
    #[error("{what} is no PEM text: {problem}")]
    NotPem {
        /// The setting.
        what: &'static str,
        /// The parser's message.
        problem: String,
    },
    /// The PEM text holds no certificate.
    #[error("{0} holds no certificate; it must be PEM text with `BEGIN CERTIFICATE`")]
    NoCertificate(&'static str),
    /// The PEM text holds no private key.
    #[error("{0} private key is no PEM text with a private key")]
    NoPrivateKey(&'static str),
    /// A certificate or key was refused.
    #[error("{what} cannot be used: {problem}")]
    Unusable {
        /// The setting.
        what: &'static str,
        /// The reason.
        problem: String,
    },
}

impl TlsError {
    pub(super) fn setup(error: &rustls::Error) -> TlsError {
        TlsError::Setup(error.to_string())
    }

    pub(super) fn unusable(what: &'static str, error: &impl ToString) -> TlsError {
        TlsError::Unusable { what, problem: error.to_string() }
    }
}

/// The certificates of a PEM text; at least one.
pub(super) fn certificates(pem: &[u8], what: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| TlsError::NotPem { what, problem: error.to_string() })?;
    if found.is_empty() {
        return Err(TlsError::NoCertificate(what));
    }
    Ok(found)
}
