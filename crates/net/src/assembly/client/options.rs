//! Settings of a client.

use std::path::Path;
use std::time::Duration;

use super::error::ClientError;
use crate::tls::ClientTls;

/// How a client behaves. The default is right for most agents.
///
/// ```
/// use std::time::Duration;
///
/// use proctor_net::assembly::client::Options;
///
/// let options = Options { call_timeout: Duration::from_secs(2), ..Options::default() };
/// assert_eq!(options.connect_timeout, Duration::from_secs(5));
/// assert!(options.with_authority_file("no-such-file.pem").is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// How long connecting may take, including TLS.
    pub connect_timeout: Duration,
    /// How long a call may take, all in all; for a stream, how long opening it may take.
    pub call_timeout: Duration,
    /// Trust and client certificate for `https`.
    pub tls: ClientTls,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            connect_timeout: Duration::from_secs(5),
            call_timeout: Duration::from_secs(5),
            tls: ClientTls::default(),
        }
    }
}

impl Options {
    /// Trusts the authorities of this PEM file, and then no other ones.
    pub fn with_authority_file(mut self, path: impl AsRef<Path>) -> Result<Options, ClientError> {
        self.tls = self.tls.with_authority(read(path.as_ref())?);
        Ok(self)
    }

    /// Shows the certificate chain of this PEM file, with the private key of the other one.
    pub fn with_certificate_files(
        mut self,
        chain: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<Options, ClientError> {
        self.tls = self.tls.with_certificate(read(chain.as_ref())?, read(key.as_ref())?);
        Ok(self)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, ClientError> {
    std::fs::read(path).map_err(|error| ClientError::Settings(format!("`{}`: {error}", path.display())))
}
