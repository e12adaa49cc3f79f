//! Authentication of HTTP callers: bearer tokens, API keys, client certificates, or loopback.

mod host;
mod query;
mod refusals;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use zeroize::Zeroizing;

use crate::listen::ConnectionInfo;
use crate::peer::Identity;

pub use refusals::{QUIET, Refusal, Refusals};

/// The form in which a secret is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SecretKind {
    /// `Authorization: Bearer …`, or the query parameter `token`.
    Bearer,
    /// `X-API-Key: …`, or the query parameter `api_key`.
    ApiKey,
}

/// The accepted credentials of a server. Only hashes of secrets are kept.
#[derive(Clone, Default)]
pub struct Credentials {
    known: Vec<Known>,
    certificates: bool,
    refusals: Option<Arc<Refusals>>,
}

#[derive(Clone)]
struct Known {
    name: String,
    kind: SecretKind,
    digest: [u8; 32],
}

impl Credentials {
    /// No credentials: only local callers are accepted.
    pub fn none() -> Credentials {
        Credentials::default()
    }

    /// Adds a secret that was issued to `name`. Its text is wiped.
    #[must_use]
    pub fn with_secret(
        mut self,
        name: impl Into<String>,
        kind: SecretKind,
        secret: impl Into<Zeroizing<String>>,
    ) -> Credentials {
        let digest = digest(secret.into().as_bytes());
        self.known.push(Known { name: name.into(), kind, digest });
        self
    }

    /// Adds a secret that was issued to `name`, by its SHA-256; it is accepted in either form.
    #[must_use]
    pub fn with_digest(mut self, name: impl Into<String>, digest: [u8; 32]) -> Credentials {
        let name = name.into();
        for kind in [SecretKind::Bearer, SecretKind::ApiKey] {
            self.known.push(Known { name: name.clone(), kind, digest });
        }
        self
    }

    /// Accepts client certificates that the TLS layer has verified.
    #[must_use]
    pub fn with_client_certificates(mut self) -> Credentials {
        self.certificates = true;
        self
    }

    /// Tells of requests that are refused.
    #[must_use]
    pub fn with_refusals(mut self, refusals: Arc<Refusals>) -> Credentials {
        self.refusals = Some(refusals);
        self
    }

    /// Whether only local callers are accepted.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty() && !self.certificates
    }

    /// Authenticates a request.
    ///
    /// Without credentials every process of this user is accepted, but no web page in a browser: the `Origin` must be the server itself, and
    /// the `Host` a loopback name (against DNS rebinding). Other users, root included, are refused.
    pub fn identify(
        &self,
        headers: &HeaderMap,
        uri: &Uri,
        connection: Option<&ConnectionInfo>,
    ) -> Result<Identity, Refused> {
        self.read_identity(headers, uri, connection).inspect_err(|refused| {
            if let Some(refusals) = &self.refusals {
                refusals.note(connection, refused.reason);
            }
        })
    }

    fn read_identity(
        &self,
        headers: &HeaderMap,
        uri: &Uri,
        connection: Option<&ConnectionInfo>,
    ) -> Result<Identity, Refused> {
        if self.is_empty() {
            let local = connection.is_none_or(|it| it.peer_addr.ip().to_canonical().is_loopback());
            return match host::refusal(headers, uri) {
                None if local => of_this_user(connection).map(|()| Identity::Loopback),
                None => Err(Refused::forbidden("this door is for this machine alone")),
                Some(why) => Err(Refused::forbidden(why)),
            };
        }
        if let Some((kind, secret)) = presented(headers, uri)? {
            return self.owner(kind, secret.as_bytes()).ok_or(Refused::unknown());
        }
        let subject = connection.and_then(|it| it.client_certificate_subject.clone());
        match subject {
            Some(subject) if self.certificates => Ok(Identity::Certificate(subject)),
            _ => Err(Refused::missing()),
        }
    }

    /// Constant-time lookup: every known hash is compared, whichever matches.
    fn owner(&self, kind: SecretKind, secret: &[u8]) -> Option<Identity> {
        let presented = digest(secret);
        let mut found = u32::MAX;
        for (index, known) in (0..).zip(&self.known) {
            let same = known.digest.ct_eq(&presented) & Choice::from(u8::from(known.kind == kind));
            found.conditional_assign(&index, same);
        }
        let known = self.known.get(usize::try_from(found).ok()?)?;
        Some(Identity::Token(known.name.clone()))
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.known.iter().map(|known| (&known.name, known.kind)).collect();
        out.debug_struct("Credentials")
            .field("issued_to", &names)
            .field("certificates", &self.certificates)
            .finish_non_exhaustive()
    }
}

/// An address that other machines can reach, without credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` can be reached from other machines, and no credentials are set: anybody could call; \
     set tokens or a client authority, or listen on 127.0.0.1"
)]
pub struct UnprotectedAddress(pub SocketAddr);

/// Checks that a server without credentials listens on loopback only.
pub fn may_listen(address: SocketAddr, has_credentials: bool) -> Result<(), UnprotectedAddress> {
    if has_credentials || address.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    Err(UnprotectedAddress(address))
}

/// Checks that a connection within this machine is one of this process's own user. One whose user cannot be found is refused.
pub fn of_this_user(connection: Option<&ConnectionInfo>) -> Result<(), Refused> {
    match connection.map(ConnectionInfo::user) {
        Some(Some(uid)) if uid == rustix::process::geteuid().as_raw() => Ok(()),
        Some(Some(_)) => Err(Refused::unauthenticated(
            "without credentials this door is for the user whom it runs as, and the caller is another one",
        )),
        _ => Err(Refused::unauthenticated(
            "without credentials this door is for the user whom it runs as, and the caller's user cannot be found",
        )),
    }
}

/// A request that was not authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refused {
    status: StatusCode,
    reason: &'static str,
}

impl Refused {
    fn missing() -> Refused {
        Refused::unauthenticated("credentials are missing; send `Authorization: Bearer` or `X-API-Key`")
    }

    fn unknown() -> Refused {
        Refused::unauthenticated("the credentials are not known")
    }

    fn unauthenticated(reason: &'static str) -> Refused {
        Refused { status: StatusCode::UNAUTHORIZED, reason }
    }

    fn forbidden(reason: &'static str) -> Refused {
        Refused { status: StatusCode::FORBIDDEN, reason }
    }

    /// The reason.
    pub fn reason(&self) -> &'static str {
        self.reason
    }

    /// The HTTP status: 401 or 403.
    pub fn status(&self) -> StatusCode {
        self.status
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.reason).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = header::HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

/// The secret of a request: from the headers, or from the query for clients that can set nothing else.
fn presented(headers: &HeaderMap, uri: &Uri) -> Result<Option<(SecretKind, Zeroizing<String>)>, Refused> {
    let text = |value: &header::HeaderValue| {
        value.to_str().map(|text| Zeroizing::new(text.trim().to_owned())).map_err(|_| Refused::unknown())
    };
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let value = text(value)?;
        return match value.split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
                Ok(Some((SecretKind::Bearer, Zeroizing::new(token.trim().to_owned()))))
            }
            _ => Err(Refused::unknown()),
        };
    }
    if let Some(value) = headers.get("x-api-key") {
        return Ok(Some((SecretKind::ApiKey, text(value)?)));
    }
    let query = uri.query().unwrap_or_default();
    Ok(query::parameter(query, "token")
        .map(|token| (SecretKind::Bearer, token))
        .or_else(|| query::parameter(query, "api_key").map(|key| (SecretKind::ApiKey, key))))
}

fn digest(secret: &[u8]) -> [u8; 32] {
    Sha256::digest(secret).into()
}

#[cfg(test)]
mod tests;
