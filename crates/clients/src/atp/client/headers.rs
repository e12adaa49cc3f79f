//! Additional headers of requests, which may hold secrets.

use std::fmt;

use zeroize::Zeroizing;

use super::address::AddressError;

/// Headers that the transports set themselves.
const RESERVED: [&str; 8] =
    ["accept", "connection", "content-length", "content-type", "host", "te", "transfer-encoding", "upgrade"];

/// Headers that are sent with every request: of HTTP, of the upgrade to a WebSocket, or as metadata of gRPC. Values are never printed.
///
/// ```
/// use proctor_clients::atp::client::Headers;
///
/// let headers = Headers::default().with("X-Tenant", "blue").unwrap().with("Authorization", "Bearer s3cret").unwrap();
/// assert!(!format!("{headers:?}").contains("s3cret"));
/// assert!(Headers::default().with("Content-Type", "text/plain").is_err());
/// ```
#[derive(Clone, Default)]
pub struct Headers(Vec<(String, Zeroizing<String>)>);

impl Headers {
    /// Adds a header. Names are not case-sensitive, and those that the transports set themselves are refused.
    pub fn with(mut self, name: &str, value: &str) -> Result<Headers, AddressError> {
        let name = name.to_ascii_lowercase();
        if RESERVED.contains(&name.as_str())
            || name.starts_with("sec-websocket-")
            || name.starts_with("grpc-")
        {
            return Err(AddressError::ReservedHeader(name));
        }
        self.0.retain(|(other, _)| *other != name);
        self.0.push((name, Zeroizing::new(value.to_owned())));
        Ok(self)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}
