//! Canonical spelling of hosts.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::path::percent_decode;

/// Splits `user@host:port` into a normalised host and a port.
pub(super) fn split(authority: &str) -> (String, Option<u16>) {
    let without_user = authority.rsplit('@').next().unwrap_or(authority);
    if let Some(inside) = without_user.strip_prefix('[') {
        let (address, after) = inside.split_once(']').unwrap_or((inside, ""));
        return (
            normalise(&format!("[{address}]")),
            after.strip_prefix(':').and_then(|port| port.parse().ok()),
        );
    }
    if without_user.matches(':').count() > 1
        && without_user.split('%').next().is_some_and(|bare| bare.parse::<Ipv6Addr>().is_ok())
    {
        return (ipv6(without_user), None);
    }
    match without_user.rsplit_once(':') {
        Some((host, port)) => (normalise(host), port.parse().ok()),
        None => (normalise(without_user), None),
    }
}

/// Normalises a host without user information and port.
pub(super) fn normalise(host: &str) -> String {
    if let Some(address) = host.strip_prefix('[') {
        return ipv6(address.trim_end_matches(']'));
    }
    let decoded = percent_decode(host);
    let mapped: String = decoded.chars().filter_map(map).flat_map(char::to_lowercase).collect();
    // Names of other scripts have one spelling in ASCII, the one that resolvers are asked for.
    let mapped = if mapped.is_ascii() { mapped } else { idna::domain_to_ascii(&mapped).unwrap_or(mapped) };
    let trimmed = mapped.strip_suffix('.').unwrap_or(&mapped);
    ipv4(trimmed).map_or_else(|| trimmed.to_owned(), |address| address.to_string())
}

/// Whether a normalised host can be one.
pub(super) fn is_valid(host: &str) -> bool {
    if host.parse::<Ipv6Addr>().is_ok() {
        return true;
    }
    let is_name = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    // What ends in a number is an address, or nothing that resolves.
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit()) || number(last).is_some();
    host.len() <= 253 && host.split('.').all(is_name) && (!is_number || host.parse::<Ipv4Addr>().is_ok())
}

/// Maps the characters that host names treat as others; `None` for those that are ignored.
fn map(character: char) -> Option<char> {
    match character {
        '\u{3002}' | '\u{ff0e}' | '\u{ff61}' => Some('.'),
        // Full-width forms of ASCII.
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(character) - 0xfee0),
        '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' => None,
        c => Some(c),
    }
}

fn ipv6(address: &str) -> String {
    let decoded = percent_decode(address);
    // A zone says which interface is used, not which host.
    let bare = decoded.split('%').next().unwrap_or_default();
    match bare.parse::<Ipv6Addr>() {
        // The same host can be reached under its IPv4 address.
        Ok(parsed) => parsed.to_ipv4_mapped().map_or_else(|| parsed.to_string(), |mapped| mapped.to_string()),
        Err(_) => bare.to_ascii_lowercase(),
    }
}

/// Reads an IPv4 address in any of the forms that `inet_aton` and browsers accept.
fn ipv4(host: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u64> = host.split('.').take(5).map(number).collect::<Option<_>>()?;
    let (last, leading) = parts.split_last()?;
    if leading.len() > 3 || leading.iter().any(|part| *part > 255) {
        return None;
    }
    let last_bits = 32 - 8 * u32::try_from(leading.len()).ok()?;
    if *last >= 1_u64 << last_bits {
        return None;
    }
    let high = leading.iter().fold(0_u64, |sum, part| (sum << 8) | part);
    let address = (high << last_bits) | last;
    u32::try_from(address).ok().map(Ipv4Addr::from)
}

fn number(part: &str) -> Option<u64> {
    let (digits, radix) = if let Some(hex) = part.strip_prefix("0x") {
        (hex, 16)
    } else if part.len() > 1 && part.starts_with('0') {
        (part.trim_start_matches('0'), 8)
    } else {
        if part.is_empty() {
            return None;
        }
        (part, 10)
    };
    if digits.is_empty() {
        return Some(0);
    }
    if digits.starts_with(['+', '-']) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}
