//! Addresses in profiles: `https`, or `http` on this machine.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Errors of addresses. Their texts show no part of the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum EndpointError {
    #[error("must be an absolute URL")]
    NotAUrl,
    #[error("must use https, or http on a loopback address")]
    NotSecure,
    #[error("must not contain credentials")]
    Credentials,
}

/// Checks an address.
pub(super) fn check(address: &str) -> Result<(), EndpointError> {
    let (scheme, host) = host(address)?;
    match scheme {
        Scheme::Https => Ok(()),
        Scheme::Http if is_loopback(host) => Ok(()),
        Scheme::Http => Err(EndpointError::NotSecure),
    }
}

/// Checks an address that must use https on every host.
pub(super) fn check_https(address: &str) -> Result<(), EndpointError> {
    match host(address)? {
        (Scheme::Https, _) => Ok(()),
        (Scheme::Http, _) => Err(EndpointError::NotSecure),
    }
}

enum Scheme {
    Http,
    Https,
}

/// Scheme and host of an address.
fn host(address: &str) -> Result<(Scheme, &str), EndpointError> {
    // Readers of URLs disagree about these characters, and none belongs into an endpoint.
    let odd = |character: char| character.is_control() || character.is_whitespace() || character == '\\';
    if address.contains(odd) {
        return Err(EndpointError::NotAUrl);
    }
    let (scheme, rest) = address.split_once("://").ok_or(EndpointError::NotAUrl)?;
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "https" => Scheme::Https,
        "http" => Scheme::Http,
        _ => return Err(EndpointError::NotSecure),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(EndpointError::Credentials);
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or(EndpointError::NotAUrl)?;
            if host.parse::<Ipv6Addr>().is_err() {
                return Err(EndpointError::NotAUrl);
            }
            match port.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if port.is_empty() => (host, None),
                None => return Err(EndpointError::NotAUrl),
            }
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    if host.is_empty() || port.is_some_and(|port| port.parse::<u16>().is_err()) {
        return Err(EndpointError::NotAUrl);
    }
    Ok((scheme, host))
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
        || host.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_safe_addresses_pass() {
        for address in [
            "https://login.example.com/token",
            "HTTPS://h",
            "https://h:8443?x=1",
            "http://localhost:8080/",
            "http://127.0.0.1",
            "http://127.9.9.9/a",
            "http://[::1]:80/token",
        ] {
            assert_eq!(check(address), Ok(()), "{address}");
        }
        for (address, error) in [
            ("", EndpointError::NotAUrl),
            ("login.example.com", EndpointError::NotAUrl),
            ("https://", EndpointError::NotAUrl),
            ("https:///path", EndpointError::NotAUrl),
            ("https://h:port/", EndpointError::NotAUrl),
            ("https://h:99999/", EndpointError::NotAUrl),
            ("https://[::1", EndpointError::NotAUrl),
            ("https://[nothing]/", EndpointError::NotAUrl),
            ("https://a b/", EndpointError::NotAUrl),
            ("https://h\\@evil/", EndpointError::NotAUrl),
            ("http://login.example.com/token", EndpointError::NotSecure),
            ("http://localhost.example.com/", EndpointError::NotSecure),
            ("http://[fe80::1]/", EndpointError::NotSecure),
            ("file:///etc/passwd", EndpointError::NotSecure),
            ("https://user:word@h/", EndpointError::Credentials),
            ("http://localhost@evil.example/", EndpointError::Credentials),
        ] {
            assert_eq!(check(address), Err(error), "{address}");
        }
        assert_eq!(check_https("http://localhost/keys"), Err(EndpointError::NotSecure));
        assert_eq!(check_https("https://h/keys"), Ok(()));
    }
}
