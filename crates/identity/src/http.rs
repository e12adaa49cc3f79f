//! HTTP client for token endpoints, metadata services, key sets and policy engines.
//!
//! Redirects are not followed, bodies and times are bounded, hosts of this machine and its metadata services are never reached through a
//! proxy, and no error repeats a URL, header or body.

mod address;

use std::error::Error as _;
use std::sync::OnceLock;
use std::time::Duration;

use proctor_core::json::Json;
use proctor_proof::secret::Secret;
use proctor_proof::sources::{BoxFuture, Fetch, FetchError, Fetched};
use reqwest::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, Response};
use zeroize::Zeroizing;

pub use address::{Address, Network};

use crate::environment::Environment;
use crate::form::Form;

/// Longest body of an answer.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;

/// Time limit of an exchange, from connecting to the last byte.
pub const MAX_EXCHANGE_TIME: Duration = Duration::from_secs(10);

/// HTTP client with the limits of this module.
#[derive(Debug)]
pub struct Client {
    time_limit: Duration,
    proxies: Proxies,
    /// Private authorities, trusted instead of the system's.
    authorities: Option<Vec<Certificate>>,
    /// Built when first needed: loading the system's certificates takes longer than most requests.
    plain: OnceLock<reqwest::Client>,
    direct: OnceLock<reqwest::Client>,
    proxied: OnceLock<reqwest::Client>,
}

/// Proxy settings of the environment.
#[derive(Clone, Default)]
struct Proxies {
    https: Option<Secret>,
    exceptions: Option<String>,
}

impl std::fmt::Debug for Proxies {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The URL of a proxy may hold a password.
        out.debug_struct("Proxies").field("is_set", &self.https.is_some()).finish_non_exhaustive()
    }
}

/// Answer of a server, whatever its status.
pub struct Reply {
    /// Status code; never a redirect.
    pub status: u16,
    /// Body, overwritten when dropped.
    pub body: Zeroizing<Vec<u8>>,
    max_age: Option<Duration>,
}

impl Reply {
    /// Whether the status is 2xx.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Reply").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Header of a request; its value is never printed.
pub type Header<'a> = (&'static str, &'a str);

impl Client {
    /// Client with the proxy settings of this environment.
    pub fn new(environment: &Environment) -> Client {
        let named = |names: [&str; 4]| names.into_iter().find_map(|name| environment.variable(name)).cloned();
        let proxies = Proxies {
            https: named(["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
            exceptions: named(["no_proxy", "NO_PROXY", "no_proxy", "NO_PROXY"])
                .map(|exceptions| exceptions.expose().to_owned()),
        };
        Client::unbuilt(MAX_EXCHANGE_TIME, proxies, None)
    }

    fn unbuilt(time_limit: Duration, proxies: Proxies, authorities: Option<Vec<Certificate>>) -> Client {
        let (plain, direct, proxied) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Client { time_limit, proxies, authorities, plain, direct, proxied }
    }

    /// The same client, which trusts the certificates of this PEM text and no others: a public authority must not vouch for a name of a
    /// private network.
    pub fn trusting(&self, pem: &str) -> Result<Client, FetchError> {
        let authorities =
            Certificate::from_pem_bundle(pem.as_bytes()).ok().filter(|certificates| !certificates.is_empty());
        let authorities = authorities.ok_or(FetchError::Authority)?;
        Ok(Client::unbuilt(self.time_limit, self.proxies.clone(), Some(authorities)))
    }

    /// Shortens the time limit of an exchange.
    #[must_use]
    pub fn with_time_limit(self, limit: Duration) -> Client {
        Client { time_limit: limit.min(MAX_EXCHANGE_TIME), ..self }
    }

    /// Sends `GET`.
    pub async fn get(&self, address: &Address, headers: &[Header<'_>]) -> Result<Reply, FetchError> {
        let request = self.connector(address)?.get(address.url().clone());
        self.exchange(request.headers(header_map(headers)?)).await
    }

    /// Sends `POST` with a form.
    pub async fn post(
        &self,
        address: &Address,
        headers: &[Header<'_>],
        form: &Form,
    ) -> Result<Reply, FetchError> {
        let request = self
            .connector(address)?
            .post(address.url().clone())
            .header(CONTENT_TYPE, FORM_TYPE)
            .body(form.as_str().to_owned());
        self.exchange(request.headers(header_map(headers)?)).await
    }

    /// Sends `POST` with JSON.
    pub async fn post_json(&self, address: &Address, body: &Json) -> Result<Reply, FetchError> {
        let request = self
            .connector(address)?
            .post(address.url().clone())
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_string());
        self.exchange(request.headers(header_map(&[])?)).await
    }

    async fn exchange(&self, request: reqwest::RequestBuilder) -> Result<Reply, FetchError> {
        let answered = tokio::time::timeout(self.time_limit, async {
            let response = request.send().await.map_err(|error| self.failed(&error))?;
            if response.status().is_redirection() {
                return Err(FetchError::Redirect);
            }
            let status = response.status().as_u16();
            let max_age = max_age(response.headers());
            Ok(Reply { status, body: self.body(response).await?, max_age })
        });
        answered.await.map_err(|_| FetchError::Timeout(self.time_limit))?
    }

    async fn body(&self, mut response: Response) -> Result<Zeroizing<Vec<u8>>, FetchError> {
        if response.content_length().is_some_and(|length| length > MAX_BODY_BYTES as u64) {
            return Err(FetchError::TooLong(MAX_BODY_BYTES));
        }
        let mut body = Zeroizing::new(Vec::new());
        while let Some(chunk) = response.chunk().await.map_err(|error| self.failed(&error))? {
            if body.len() + chunk.len() > MAX_BODY_BYTES {
                return Err(FetchError::TooLong(MAX_BODY_BYTES));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// The HTTP client that fits the address.
    fn connector(&self, address: &Address) -> Result<&reqwest::Client, FetchError> {
        let (slot, is_encrypted, proxy) = match (address.url().scheme(), address.network()) {
            ("https", Network::Public) => (&self.proxied, true, Some(&self.proxies)),
            ("https", Network::Local) => (&self.direct, true, None),
            _ => (&self.plain, false, None),
        };
        if let Some(client) = slot.get() {
            return Ok(client);
        }
        let authorities = self.authorities.as_deref();
        let client = build(is_encrypted, proxy, authorities).map_err(|error| self.failed(&error))?;
        Ok(slot.get_or_init(|| client))
    }

    /// The innermost cause of an error; the outer ones repeat the URL.
    fn failed(&self, error: &reqwest::Error) -> FetchError {
        if error.is_timeout() {
            return FetchError::Timeout(self.time_limit);
        }
        let mut cause = error.source();
        let mut kind = None;
        while let Some(inner) = cause {
            if let Some(error) = inner.downcast_ref::<std::io::Error>() {
                kind = Some(error.kind());
            }
            cause = inner.source();
        }
        let what = if error.is_connect() { "no connection" } else { "the connection was lost" };
        FetchError::Unreachable(match kind {
            Some(kind) if kind != std::io::ErrorKind::Other => format!("{what}: {kind}"),
            _ => what.to_owned(),
        })
    }
}

impl Fetch for Client {
    fn get<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Fetched, FetchError>> {
        Box::pin(async move {
            let address = Address::endpoint(url)?;
            let reply = Client::get(self, &address, &[]).await?;
            if !reply.is_success() {
                return Err(FetchError::Status(reply.status));
            }
            Ok(Fetched { body: reply.body.to_vec(), max_age: reply.max_age })
        })
    }
}

/// Media type of forms, as AWS's signature covers it.
pub(crate) const FORM_TYPE: &str = "application/x-www-form-urlencoded; charset=utf-8";

fn build(
    is_encrypted: bool,
    proxies: Option<&Proxies>,
    authorities: Option<&[Certificate]>,
) -> Result<reqwest::Client, reqwest::Error> {
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("proctor/", env!("CARGO_PKG_VERSION")))
        // A redirect would take credentials to another server.
        .redirect(reqwest::redirect::Policy::none())
        // The process's own variables are not read: the caller's environment counts.
        .no_proxy()
        .retry(reqwest::retry::never())
        .https_only(is_encrypted);
    if let Some(authorities) = authorities {
        builder = builder.tls_certs_only(authorities.iter().cloned());
    } else if !is_encrypted {
        // No certificates are needed, so a machine without any must not fail on them.
        builder = builder.tls_certs_only([]);
    }
    if let Some(Proxies { https: Some(url), exceptions }) = proxies {
        let exceptions = exceptions.as_deref().and_then(reqwest::NoProxy::from_string);
        builder = builder.proxy(reqwest::Proxy::https(url.expose())?.no_proxy(exceptions));
    }
    builder.build()
}

fn header_map(headers: &[Header<'_>]) -> Result<HeaderMap, FetchError> {
    let mut map = HeaderMap::new();
    map.insert(ACCEPT, HeaderValue::from_static("application/json, text/xml;q=0.5"));
    for (name, value) in headers {
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| FetchError::Unreachable("a header cannot carry its value".to_owned()))?;
        value.set_sensitive(true);
        map.insert(HeaderName::from_static(name), value);
    }
    Ok(map)
}

/// Freshness of an answer, by the first `max-age` of `Cache-Control`.
fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(CACHE_CONTROL)?.to_str().ok()?.to_ascii_lowercase();
    let mut directives = text.split(',').map(str::trim);
    if directives.clone().any(|directive| directive == "no-store" || directive == "no-cache") {
        return Some(Duration::ZERO);
    }
    directives.find_map(|directive| directive.strip_prefix("max-age=")?.parse().ok().map(Duration::from_secs))
}
