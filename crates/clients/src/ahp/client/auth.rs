//! Credentials of a client.

use std::fmt;

use zeroize::Zeroizing;

/// A secret that authenticates an agent. It is never printed, and wiped from memory when dropped.
///
/// ```
/// use proctor_clients::ahp::client::AuthConfig;
/// assert!(!format!("{:?}", AuthConfig::bearer("s3cret")).contains("s3cret"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct AuthConfig {
    kind: Kind,
    secret: Zeroizing<String>,
    in_url: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bearer,
    ApiKey,
}

impl AuthConfig {
    /// A bearer token: `Authorization: Bearer …`.
    pub fn bearer(token: impl Into<String>) -> AuthConfig {
        AuthConfig { kind: Kind::Bearer, secret: Zeroizing::new(token.into()), in_url: false }
    }

    /// An API key: `X-API-Key: …`.
    pub fn api_key(key: impl Into<String>) -> AuthConfig {
        AuthConfig { kind: Kind::ApiKey, secret: Zeroizing::new(key.into()), in_url: false }
    }

    /// On WebSocket, sends the secret in the URL (`?token=` or `?api_key=`) and not in a header, for harnesses that read only the URL.
    /// URLs are written to access logs: avoid it where possible.
    #[must_use]
    pub fn in_url(mut self) -> AuthConfig {
        self.in_url = true;
        self
    }

    /// The header's name, lowercase, and its value.
    #[cfg(any(feature = "http", feature = "websocket", feature = "grpc"))]
    pub(super) fn header(&self) -> (&'static str, Zeroizing<String>) {
        match self.kind {
            Kind::Bearer => ("authorization", Zeroizing::new(format!("Bearer {}", self.secret.as_str()))),
            Kind::ApiKey => ("x-api-key", self.secret.clone()),
        }
    }

    /// The query parameter, if the secret goes into the URL.
    #[cfg(feature = "websocket")]
    pub(super) fn query(&self) -> Option<Zeroizing<String>> {
        let name = match self.kind {
            Kind::Bearer => "token",
            Kind::ApiKey => "api_key",
        };
        self.in_url.then(|| {
            let mut query = Zeroizing::new(format!("{name}="));
            for byte in self.secret.bytes() {
                if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                    query.push(char::from(byte));
                } else {
                    query.push_str(&format!("%{byte:02X}"));
                }
            }
            query
        })
    }
}

impl fmt::Debug for AuthConfig {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AuthConfig").field("kind", &self.kind).finish_non_exhaustive()
    }
}
