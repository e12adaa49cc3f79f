//! Opening handshake of a WebSocket.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::upgrade::OnUpgrade;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// A request that cannot be upgraded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum HandshakeError {
    #[error("a WebSocket begins with GET")]
    Method,
    #[error("`{0}` is missing or has another value than a WebSocket's")]
    Header(&'static str),
    #[error("the connection cannot be upgraded")]
    NotUpgradable,
}

impl IntoResponse for HandshakeError {
    fn into_response(self) -> Response {
        let status = match self {
            HandshakeError::Method => StatusCode::METHOD_NOT_ALLOWED,
            HandshakeError::Header(_) => StatusCode::BAD_REQUEST,
            HandshakeError::NotUpgradable => StatusCode::UPGRADE_REQUIRED,
        };
        (status, self.to_string()).into_response()
    }
}

/// The response that accepts the upgrade, and the connection after it.
pub(super) fn accept(head: &mut Parts) -> Result<(Response, OnUpgrade), HandshakeError> {
    if head.method != Method::GET {
        return Err(HandshakeError::Method);
    }
    if !has_word(&head.headers, &header::CONNECTION, "upgrade") {
        return Err(HandshakeError::Header("Connection"));
    }
    if !has_word(&head.headers, &header::UPGRADE, "websocket") {
        return Err(HandshakeError::Header("Upgrade"));
    }
    if !has_word(&head.headers, &header::SEC_WEBSOCKET_VERSION, "13") {
        return Err(HandshakeError::Header("Sec-WebSocket-Version"));
    }
    let key = head.headers.get(header::SEC_WEBSOCKET_KEY);
    let key = key.ok_or(HandshakeError::Header("Sec-WebSocket-Key"))?;
    let accepted = derive_accept_key(key.as_bytes());
    let accepted =
        HeaderValue::try_from(accepted).map_err(|_| HandshakeError::Header("Sec-WebSocket-Key"))?;
    let upgrade = head.extensions.remove::<OnUpgrade>().ok_or(HandshakeError::NotUpgradable)?;
    let headers = [
        (header::CONNECTION, HeaderValue::from_static("upgrade")),
        (header::UPGRADE, HeaderValue::from_static("websocket")),
        (header::SEC_WEBSOCKET_ACCEPT, accepted),
    ];
    Ok(((StatusCode::SWITCHING_PROTOCOLS, headers).into_response(), upgrade))
}

/// Whether a list of words in a header has this one.
fn has_word(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|found| found.trim().eq_ignore_ascii_case(word))
}
