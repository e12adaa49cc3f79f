//! A single HTTP exchange.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Response, Url};

use super::backoff::retry_after;
use super::endpoint::{Endpoint, Limits};
use super::error::ProviderError;
use super::wire::{self, Outgoing};

/// Bytes of a refusal that are read: more than anyone shows.
const REFUSAL_BYTES: usize = 64 * 1024;

/// Time limit of connecting.
const CONNECT: Duration = Duration::from_secs(10);

/// The base URL, if calls can be made to it.
pub(super) fn base_url(text: &str) -> Result<Url, ProviderError> {
    let invalid = |why: &str| ProviderError::Invalid(format!("the base URL {why}"));
    let url = Url::parse(text.trim()).map_err(|error| invalid(&format!("cannot be read: {error}")))?;
    // A secret in the address would show up in errors and logs: the address is not repeated here.
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("holds a user name or password: give the key as a key"));
    }
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(invalid(&format!("`{url}` must begin with http:// or https:// and name a host")));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(invalid("must end with the path: remove what follows `?` or `#`"));
    }
    Ok(url)
}

/// The HTTP client for an endpoint.
pub(super) fn connector(
    endpoint: &Endpoint,
    base: &Url,
    limits: &Limits,
) -> Result<reqwest::Client, ProviderError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in wire::fixed_headers(endpoint.vendor) {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if let Some((name, value)) = credentials(endpoint)? {
        headers.insert(HeaderName::from_static(name), value);
    }
    let mut builder = reqwest::Client::builder()
        .default_headers(headers)
        .user_agent(concat!("proctor/", env!("CARGO_PKG_VERSION")))
        // A redirect would take the key to wherever it points.
        .redirect(Policy::none())
        .connect_timeout(CONNECT.min(limits.attempt))
        // What may be retried is decided in one place, and counted there.
        .retry(reqwest::retry::never());
    if base.scheme() == "http" {
        // No certificates are needed, so a machine without any must not fail on them.
        builder = builder.tls_certs_only([]);
    }
    if is_loopback(base) {
        // The proxy of the environment is on the way to other machines, not to this one.
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| unreachable(&error))
}

/// The header with the key, if there is one.
pub(super) fn credentials(endpoint: &Endpoint) -> Result<Option<(&'static str, HeaderValue)>, ProviderError> {
    let Some(key) = endpoint.key.as_ref().filter(|key| !key.is_empty()) else { return Ok(None) };
    let (name, value) = wire::key_header(endpoint.vendor, key.expose());
    let value = zeroize::Zeroizing::new(value);
    let mut value = HeaderValue::from_str(&value).map_err(|_| {
        ProviderError::Invalid(
            "the key holds characters that no header can carry: check it for line ends".to_owned(),
        )
    })?;
    value.set_sensitive(true);
    Ok(Some((name, value)))
}

/// Sends one request and returns the body of a success.
pub(super) async fn exchange(
    connector: &reqwest::Client,
    outgoing: Outgoing,
    max_reply_bytes: usize,
) -> Result<Vec<u8>, ProviderError> {
    let sent = connector.post(outgoing.url).body(outgoing.body).send().await;
    let mut response = sent.map_err(|error| unreachable(&error))?;
    let status = response.status();
    if status.is_success() {
        let body = read(&mut response, max_reply_bytes).await?;
        return body.ok_or(ProviderError::TooLong { limit: max_reply_bytes });
    }
    let wanted = wanted_pause(response.headers());
    let message = if status.is_redirection() {
        let target = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        format!("it redirects to `{}`: use that as the base URL", target.unwrap_or("nowhere"))
    } else {
        match read(&mut response, REFUSAL_BYTES).await? {
            Some(body) if status.as_u16() != 429 || wire::is_out_of_money(&body) => {
                wire::error_message(&body)
            }
            _ if status.as_u16() == 429 => return Err(ProviderError::RateLimited { retry_after: wanted }),
            // A key cut in half at the end would not be recognised.
            _ => "its explanation is too long to read".to_owned(),
        }
    };
    Err(ProviderError::Refused { status: status.as_u16(), message })
}

/// The body, or nothing if it has more bytes than allowed.
async fn read(response: &mut Response, limit: usize) -> Result<Option<Vec<u8>>, ProviderError> {
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Ok(None);
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(&error))? {
        if body.len().saturating_add(chunk.len()) > limit {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

fn wanted_pause(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let milliseconds =
        text(HeaderName::from_static("retry-after-ms")).and_then(|text| text.trim().parse().ok());
    milliseconds.map(Duration::from_millis).or_else(|| retry_after(text(RETRY_AFTER)?, text(DATE)))
}

/// The error with its causes, which say more than it does, and without the address.
fn unreachable(error: &reqwest::Error) -> ProviderError {
    let mut text =
        if error.is_connect() { "no connection".to_owned() } else { "the connection failed".to_owned() };
    let mut cause = std::error::Error::source(error);
    let mut last = String::new();
    while let Some(inner) = cause {
        last = inner.to_string();
        cause = inner.source();
    }
    if !last.is_empty() {
        text.push_str(": ");
        text.push_str(&last);
    }
    ProviderError::Unreachable(text)
}

fn is_loopback(url: &Url) -> bool {
    // The textual form of an IPv6 address in a URL has brackets.
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    match host.parse::<std::net::IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::{Key, Vendor};

    #[test]
    fn only_an_address_without_secrets_is_taken() {
        for good in [
            "https://api.openai.com/v1",
            "https://api.openai.com/v1/",
            " http://127.0.0.1:1 ",
            "http://[::1]:1",
        ] {
            assert!(base_url(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "api.openai.com",
            "ftp://host",
            "https://user:hunter2@host",
            "https://host?key=hunter2",
            "https://host#hunter2",
            "file:///etc",
        ] {
            let error = base_url(bad).unwrap_err();
            assert!(matches!(error, ProviderError::Invalid(_)), "{bad}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn loopback_is_recognised() {
        for near in [
            "http://127.0.0.1:1",
            "http://127.9.9.9",
            "http://[::1]:1",
            "http://localhost:1",
            "http://a.localhost",
        ] {
            assert!(is_loopback(&Url::parse(near).unwrap()), "{near}");
        }
        for far in ["http://10.0.0.1", "http://localhost.example", "https://api.openai.com"] {
            assert!(!is_loopback(&Url::parse(far).unwrap()), "{far}");
        }
    }

    #[test]
    fn a_key_that_no_header_can_carry_is_refused_without_repeating_it() {
        let endpoint = Endpoint::usual(Vendor::Anthropic, Some(Key::new("hunter2\nhunter3")));
        let error = credentials(&endpoint).unwrap_err();
        assert!(!error.to_string().contains("hunter"), "{error}");
        assert!(credentials(&Endpoint::usual(Vendor::OpenAi, Some(Key::new(" ")))).unwrap().is_none());
    }
}
