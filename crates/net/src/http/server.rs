//! Request bodies of bounded size, time and memory.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::Instant;

use crate::budget::{MemoryBudget, Reservation, UNCOUNTED};

/// The longest body.
pub const MAX_BODY: usize = 2 * 1024 * 1024;
/// Time for a body to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// A body that was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The content type is not JSON.
    #[error("the content type must be `application/json`")]
    NotJson,
    /// The body is longer than the limit, which is [`MAX_BODY`] for JSON bodies.
    #[error("a message is at most 2 MiB long")]
    TooLarge,
    /// The memory budget stayed exhausted.
    #[error("the memory for messages is exhausted")]
    Overloaded,
    /// The connection ended within the body.
    #[error("the body broke off")]
    Incomplete,
    /// The body took longer than the time limit.
    #[error("the body took too long")]
    TimedOut,
}

impl IntoResponse for BodyError {
    fn into_response(self) -> Response {
        let status = match self {
            BodyError::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            BodyError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            BodyError::Overloaded => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
            BodyError::Incomplete => StatusCode::BAD_REQUEST,
            BodyError::TimedOut => StatusCode::REQUEST_TIMEOUT,
        };
        (status, self.to_string()).into_response()
    }
}

/// Reads a JSON body. While the memory budget is exhausted, it waits up to `patience` before it reads anything.
pub async fn read_json_body(
    headers: &HeaderMap,
    body: Body,
    memory: &MemoryBudget,
    patience: Duration,
) -> Result<(Bytes, Option<Reservation>), BodyError> {
    if !is_json(headers) {
        return Err(BodyError::NotJson);
    }
    let announced =
        headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > MAX_BODY as u64) {
        return Err(BodyError::TooLarge);
    }
    let deadline = Instant::now() + BODY_TIMEOUT;
    // A body without a length may become as long as any.
    let most = announced.and_then(|length| usize::try_from(length).ok()).unwrap_or(MAX_BODY);
    let reservation = if most <= UNCOUNTED {
        None
    } else {
        Some(memory.reserve(most, Instant::now() + patience).await.ok_or(BodyError::Overloaded)?)
    };
    Ok((read_until(body, MAX_BODY, deadline).await?, reservation))
}

/// Reads a body of at most `limit` bytes, whatever its type.
pub async fn read_body(headers: &HeaderMap, body: Body, limit: usize) -> Result<Bytes, BodyError> {
    let announced =
        headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(BodyError::TooLarge);
    }
    read_until(body, limit, Instant::now() + BODY_TIMEOUT).await
}

async fn read_until(body: Body, limit: usize, deadline: Instant) -> Result<Bytes, BodyError> {
    match tokio::time::timeout_at(deadline, Limited::new(body, limit).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(BodyError::TooLarge),
        Ok(Err(_)) => Err(BodyError::Incomplete),
        Err(_elapsed) => Err(BodyError::TimedOut),
    }
}

/// A response with a JSON body.
pub fn json_response(status: StatusCode, text: String) -> Response {
    let kind = HeaderValue::from_static("application/json");
    (status, [(header::CONTENT_TYPE, kind)], text).into_response()
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(Ok(kind)) = headers.get(header::CONTENT_TYPE).map(HeaderValue::to_str) else { return false };
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}
