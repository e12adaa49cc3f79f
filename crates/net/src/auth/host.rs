//! Checks of `Host` and `Origin` that keep web pages out of a loopback server.

use std::net::IpAddr;

use axum::http::{HeaderMap, Uri, header};

/// The reason to refuse a request that may come from a web page; none if it is a local program's.
pub(super) fn refusal(headers: &HeaderMap, uri: &Uri) -> Option<&'static str> {
    let header = |name| headers.get(name).and_then(|value: &header::HeaderValue| value.to_str().ok());
    let host = header(header::HOST).or_else(|| uri.authority().map(axum::http::uri::Authority::as_str));
    let Some(host) = host.filter(|host| is_loopback(host)) else {
        return Some(
            "without credentials this door must be called by a loopback name, such as `localhost` or `127.0.0.1`",
        );
    };
    match headers.get(header::ORIGIN) {
        Some(origin) if !origin.to_str().is_ok_and(|origin| is_same(origin, host)) => {
            Some("without credentials this door is not for pages of another origin")
        }
        _ => None,
    }
}

fn is_same(origin: &str, host: &str) -> bool {
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

/// Whether a `Host` is a name that DNS cannot redirect or a loopback address, with or without a port.
fn is_loopback(host: &str) -> bool {
    if let Some(rest) = host.strip_prefix('[') {
        let address = rest.split_once(']').map_or("", |(address, _port)| address);
        return address.parse::<IpAddr>().is_ok_and(|it| it.to_canonical().is_loopback());
    }
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let name = name.strip_suffix('.').unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_names_and_addresses_are() {
        for host in
            ["localhost", "LOCALHOST:80", "localhost.:1", "127.0.0.1", "127.8.9.1:8080", "[::1]:1", "[::1]"]
        {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example:80",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "0.0.0.0",
            "[::2]:1",
            "[",
            "[::1",
            "::",
            "127.1",
            "2130706433",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn origins_must_be_the_host_itself() {
        assert!(is_same("http://localhost:80", "localhost:80"));
        assert!(!is_same("http://localhost:81", "localhost:80"));
        assert!(!is_same("null", "localhost:80"));
        assert!(!is_same("https://evil.example", "127.0.0.1"));
    }
}
