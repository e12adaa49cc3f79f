//! Settings of a client.

use std::path::Path;
use std::time::Duration;

use proctor_net::tls::ClientTls;

use super::error::ClientError;

/// Settings of a client.
///
/// ```
/// use std::time::Duration;
///
/// use proctor_clients::assembly::client::Options;
///
/// let options = Options { call_timeout: Duration::from_secs(2), ..Options::default() };
/// assert_eq!(options.connect_timeout, Duration::from_secs(5));
/// assert!(options.with_authority_file("no-such-file.pem").is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// Time limit of connecting, including TLS.
    pub connect_timeout: Duration,
    /// Time limit of a call; for a stream, of opening it.
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
    /// Trusts only the authorities of this PEM file.
    pub fn with_authority_file(mut self, path: impl AsRef<Path>) -> Result<Options, ClientError> {
        self.tls = self.tls.with_authority(read(path.as_ref())?);
        Ok(self)
    }

    /// Sends the certificate chain of a PEM file, with the private key of another one.
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
