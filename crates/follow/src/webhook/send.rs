//! Delivery attempt of an event.

use std::sync::Arc;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use proctor_core::time::Clock;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, Response, Url};
use sha2::Sha256;
use zeroize::Zeroizing;

use super::WebhookSettings;
use super::events::Event;
use crate::error::{WebhookError, innermost};
use crate::loaded_record::hex;

/// Most bytes of a response that are read, so that the connection can be reused.
const ANSWER_BYTES: usize = 64 * 1024;

/// Interval at which an attempt checks the drain's deadline.
const LOOK: Duration = Duration::from_millis(100);

/// Outcome of an attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// Status 2xx.
    Delivered,
    /// Status 4xx other than 408 and 429: retrying would not help.
    Refused(u16),
    /// Any other outcome: to be retried.
    Failed {
        /// Cause.
        why: String,
        /// `Retry-After` of the response.
        wait: Option<Duration>,
    },
}

/// HTTP client that signs and posts events.
pub(super) struct Sender {
    client: Client,
    url: Url,
    /// Origin of the URL for log messages: path and query may hold a secret.
    shown: String,
    secret: Option<Zeroizing<String>>,
    attempt: Duration,
    clock: Arc<dyn Clock>,
    runtime: tokio::runtime::Runtime,
}

impl Sender {
    pub(super) fn new(
        settings: &WebhookSettings,
        attempt: Duration,
        clock: Arc<dyn Clock>,
    ) -> Result<Sender, WebhookError> {
        let url = checked(&settings.url)?;
        let secret = settings.secret.clone();
        if secret.as_ref().is_some_and(|secret| secret.is_empty()) {
            return Err(WebhookError::EmptySecret);
        }
        let mut builder = Client::builder()
            .user_agent(concat!("proctor/", env!("CARGO_PKG_VERSION")))
            // A redirect could send events to another receiver.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .timeout(attempt)
            // Retries are decided by the delivery loop alone.
            .retry(reqwest::retry::never());
        if url.scheme() == "http" {
            // No certificates are needed, so a machine without any must not fail on them.
            builder = builder.tls_certs_only([]);
        }
        let client = builder.build().map_err(WebhookError::Client)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(WebhookError::Runtime)?;
        let shown = url.origin().ascii_serialization();
        Ok(Sender { client, url, shown, secret, attempt, clock, runtime })
    }

    /// Makes one attempt. Aborts when `is_over` returns true.
    pub(super) fn send(&self, event: &Event, is_over: &dyn Fn() -> bool) -> Reply {
        self.runtime.block_on(async {
            let exchange = tokio::time::timeout(self.attempt, self.exchange(event));
            tokio::pin!(exchange);
            loop {
                tokio::select! {
                    outcome = &mut exchange => {
                        return outcome.unwrap_or_else(|_| self.failed("it took too long to answer", None));
                    }
                    () = tokio::time::sleep(LOOK) => {
                        if is_over() {
                            return self.failed("there was no more time", None);
                        }
                    }
                }
            }
        })
    }

    async fn exchange(&self, event: &Event) -> Reply {
        let timestamp = self.clock.now().micros().div_euclid(1_000_000).to_string();
        let mut request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header("x-proctor-event-id", &event.id)
            .header("x-proctor-timestamp", &timestamp);
        if let Some(secret) = &self.secret {
            let signature = signature(secret.as_bytes(), &timestamp, event.body.as_bytes());
            request = request.header("x-proctor-signature", signature);
        }
        match request.body(event.body.clone()).send().await {
            Ok(response) => self.reply(response).await,
            Err(error) if error.is_timeout() => self.failed("it took too long to answer", None),
            Err(error) => self.failed(&innermost(&error), None),
        }
    }

    async fn reply(&self, mut response: Response) -> Reply {
        let status = response.status();
        let asked = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let wait = asked.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
        let mut bytes = 0usize;
        while bytes < ANSWER_BYTES {
            // The status is known already: a truncated body does not change the outcome.
            let Ok(Some(chunk)) = response.chunk().await else { break };
            bytes = bytes.saturating_add(chunk.len());
        }
        match status.as_u16() {
            200..=299 => Reply::Delivered,
            408 | 429 => self.failed(&format!("it answered with status {}", status.as_u16()), wait),
            code @ 400..=499 => Reply::Refused(code),
            300..=399 => {
                self.failed("it redirects, which is not followed: set the URL that it points to", wait)
            }
            code => self.failed(&format!("it answered with status {code}"), wait),
        }
    }

    fn failed(&self, why: &str, wait: Option<Duration>) -> Reply {
        Reply::Failed { why: format!("{}: {why}", self.shown), wait }
    }
}

/// `v1=` and the HMAC-SHA256 over the timestamp, a dot and the body.
pub(super) fn signature(secret: &[u8], timestamp: &str, body: &[u8]) -> String {
    // INVARIANT: HMAC takes a key of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return String::new() };
    mac.update(timestamp.as_bytes());
    mac.update(b".");
    mac.update(body);
    format!("v1={}", hex(mac.finalize().into_bytes()))
}

/// Parses and validates the receiver's URL.
fn checked(text: &str) -> Result<Url, WebhookError> {
    let url = Url::parse(text.trim()).map_err(WebhookError::Url)?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(WebhookError::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(WebhookError::Credentials);
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctor_core::digest::Digest;

    /// HMAC from its definition, with nothing but SHA-256.
    fn hmac(key: &[u8], message: &[u8]) -> String {
        let mut block = [0u8; 64];
        if key.len() > 64 {
            block[..32].copy_from_slice(Digest::of(key).as_bytes());
        } else {
            block[..key.len()].copy_from_slice(key);
        }
        let inner = Digest::of_parts(&[&block.map(|byte| byte ^ 0x36), message]);
        Digest::of_parts(&[&block.map(|byte| byte ^ 0x5c), inner.as_bytes()]).to_string()
    }

    #[test]
    fn signatures_are_hmac_sha256_over_timestamp_and_body() {
        // RFC 4231, test case 2, shows that the definition above is HMAC.
        assert_eq!(
            hmac(b"Jefe", b"what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        for secret in ["s", &"long".repeat(40)] {
            let expected = hmac(secret.as_bytes(), b"17.{}");
            assert_eq!(signature(secret.as_bytes(), "17", b"{}"), format!("v1={expected}"));
        }
    }

    #[test]
    fn only_addresses_that_can_be_posted_to_are_taken_and_none_is_repeated() {
        assert!(checked(" https://hooks.example/a?b=c ").is_ok());
        for bad in ["", "hooks.example/hunter2", "ftp://h/hunter2", "https://u:hunter2@h/", "http:///"] {
            let problem = checked(bad).unwrap_err().to_string();
            assert!(!problem.contains("hunter2"), "{problem}");
        }
    }
}
