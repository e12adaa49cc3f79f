//! URIs of RFC 3986: a scheme, and characters where the grammar has them.

use std::net::Ipv6Addr;

/// Whether this is a URI with a scheme.
pub(in crate::atp) fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let path_fits = match rest.strip_prefix("//") {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            is_authority(authority) && has_only(path, b":@/")
        }
        None => has_only(rest, b":@/"),
    };
    is_scheme && path_fits && has_only(query, b":@/?") && has_only(fragment, b":@/?")
}

fn is_authority(text: &str) -> bool {
    let (userinfo, host_and_port) = text.split_once('@').unwrap_or(("", text));
    let (host_fits, port) = match host_and_port.strip_prefix('[') {
        Some(literal) => match literal.split_once(']') {
            Some((address, "")) => (is_ip_literal(address), ""),
            Some((address, rest)) => match rest.strip_prefix(':') {
                Some(port) => (is_ip_literal(address), port),
                None => return false,
            },
            None => return false,
        },
        None => {
            let (host, port) = host_and_port.split_once(':').unwrap_or((host_and_port, ""));
            (has_only(host, b""), port)
        }
    };
    has_only(userinfo, b":") && host_fits && port.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_ip_literal(text: &str) -> bool {
    if let Some(future) = text.strip_prefix(['v', 'V']) {
        return future.split_once('.').is_some_and(|(version, address)| {
            !version.is_empty()
                && version.bytes().all(|byte| byte.is_ascii_hexdigit())
                && !address.is_empty()
                && !address.contains('%')
                && has_only(address, b":")
        });
    }
    text.parse::<Ipv6Addr>().is_ok()
}

/// Whether all characters are unreserved, sub-delimiters, percent-encoded, or of these.
fn has_only(text: &str, others: &[u8]) -> bool {
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = match first {
            b'%' => match after.split_at_checked(2) {
                Some((digits, after)) if digits.iter().all(u8::is_ascii_hexdigit) => after,
                _ => return false,
            },
            _ if first.is_ascii_alphanumeric()
                || b"-._~!$&'()*+,;=".contains(first)
                || others.contains(first) =>
            {
                after
            }
            _ => return false,
        };
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris() {
        for uri in [
            "http://test-harness:8080/tools",
            "http://[::1]:80/a?b=c/?#d",
            "http://[v1.a:b]/",
            "http://user:pw@host",
            "urn:a:b",
            "a:",
            "file:///a%20b",
            "http://",
            "http://host:",
        ] {
            assert!(is_uri(uri), "{uri}");
        }
        for other in [
            "",
            "tools",
            "/tools",
            "1a:b",
            "http://a b",
            "http://a%2",
            "http://a%zz",
            "http://h:8a",
            "http://[::1",
            "http://[::1]x",
            "http://[g::]",
            "http://a/[",
            "http://ä",
            "a:#b#c",
            "a:\u{0}",
        ] {
            assert!(!is_uri(other), "{other}");
        }
    }
}
