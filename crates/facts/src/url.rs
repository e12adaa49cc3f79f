//! URLs and the hosts a command line would talk to.
//!
//! Hosts are read the way browsers and download tools read them, so that one host has one spelling: lower case, no user
//! information, no port, no final dot, IPv4 numbers in dotted form.

mod host;
mod program;

#[cfg(test)]
mod tests;

pub use program::hosts_of;

/// The parts of a URL that rules look at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UrlParts {
    /// The scheme, lower-cased.
    pub scheme: String,
    /// The host, normalised; IPv6 without brackets.
    pub host: String,
    /// The port, if one is given.
    pub port: Option<u16>,
    /// The path, without query and fragment.
    pub path: String,
}

/// Parses a URL with a host. `None` if the text has no scheme or no host.
pub fn parse(url: &str) -> Option<UrlParts> {
    // Tabs and newlines anywhere in a URL are ignored by browsers.
    let text: String =
        url.trim_matches(is_blank).chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
    let (scheme, rest) = text.split_once(':')?;
    if !is_scheme(scheme) {
        return None;
    }
    let scheme = scheme.to_ascii_lowercase();
    let rest = if is_web(&scheme) {
        // Any number of slashes of either kind starts the host here.
        rest.trim_start_matches(['/', '\\'])
    } else {
        rest.strip_prefix("//")?
    };
    let authority_end = rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(authority_end);
    let (host, port) = host::split(authority);
    if host.is_empty() {
        return None;
    }
    let path = tail.split(['?', '#']).next().unwrap_or_default().replace('\\', "/");
    Some(UrlParts { scheme, host, port, path })
}

/// Whether a text is a host in its one spelling: an address, or a name of letters, digits, `-` and `_`.
pub fn is_host(host: &str) -> bool {
    host::is_valid(host)
}

/// Whether a text has a scheme of URLs that reach no host, such as `data:`, or names none. `example.com:443` has a port instead.
pub(crate) fn scheme_without_host(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_port =
        rest.split(['/', '?', '#']).next().unwrap_or_default().bytes().all(|byte| byte.is_ascii_digit());
    is_scheme(scheme) && !is_port && !scheme.contains('.') && rest.parse::<std::net::Ipv6Addr>().is_err()
}

/// Hosts that other programs may read in a URL than [`parse`] does: a backslash ends the authority or is part of it, and blanks are
/// dropped or end it.
pub fn other_readings(url: &str) -> Vec<String> {
    let Some((_, rest)) = url.split_once("://") else { return Vec::new() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let first = parse(url).map(|parts| parts.host).unwrap_or_default();
    let mut readings = vec![host::split(authority).0];
    let before = |found: fn(char) -> bool| authority.split(found).next().unwrap_or_default();
    readings.push(host::split(before(|c| c == '\\')).0);
    readings.push(host::split(before(char::is_whitespace)).0);
    let is_plain = !authority.contains(|c: char| c == '\\' || c.is_whitespace() || c.is_control());
    if is_plain {
        return Vec::new();
    }
    readings.retain(|reading| *reading != first && !reading.is_empty());
    unique(readings)
}

/// The hosts of all `scheme://` URLs and `user@host:path` forms in a text, each once.
pub fn find_hosts(text: &str) -> Vec<String> {
    let mut hosts = Vec::new();
    for run in text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>')) {
        hosts_in_run(run, &mut hosts);
    }
    unique(hosts)
}

/// Removes duplicates, keeping the order.
fn unique(entries: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    entries.into_iter().filter(|entry| !entry.is_empty() && seen.insert(entry.clone())).collect()
}

/// Characters that end a URL in a shell line or a sentence.
const OPERATORS: [char; 6] = [';', '|', '&', '(', ')', ','];

/// Longest part of a text that is read as one URL, so that time stays linear in the text.
const MAX_URL_BYTES: usize = 4096;

fn hosts_in_run(run: &str, hosts: &mut Vec<String>) {
    for (colon, _) in run.match_indices(':') {
        let (before, after) = run.split_at(colon);
        let scheme = scheme_at_end(before);
        let starts_authority = after.starts_with("://")
            || (is_web(&scheme) && after.starts_with([':']) && {
                let next = after.as_bytes().get(1);
                matches!(next, Some(b'/' | b'\\'))
            });
        if scheme.is_empty() || !starts_authority {
            continue;
        }
        let after = limited(after);
        let whole = format!("{scheme}{after}");
        // In a shell line an operator ends the URL; in other text it may be part of the user information.
        let cut = whole.split(OPERATORS).next().unwrap_or_default();
        hosts.extend(parse(cut).map(|parts| parts.host));
        let uncut = parse(&whole).filter(|_| whole.contains('@')).map(|parts| parts.host);
        hosts.extend(uncut.map(|host| host.split(OPERATORS).next().unwrap_or_default().to_owned()));
    }
    if let Some(host) = copy_form(limited(run)) {
        hosts.push(host);
    }
}

fn limited(text: &str) -> &str {
    let mut end = text.len().min(MAX_URL_BYTES);
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.get(..end).unwrap_or(text)
}

/// The scheme at the end of a text, lower-cased; empty if there is none.
fn scheme_at_end(before: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let reversed: Vec<char> = before.chars().rev().take(32).take_while(|c| is_part(*c)).collect();
    let scheme: String = reversed.into_iter().rev().collect();
    scheme.trim_start_matches(|c: char| !c.is_ascii_alphabetic()).to_ascii_lowercase()
}

/// The host of `user@host:path`.
fn copy_form(run: &str) -> Option<String> {
    let (user, rest) = run.split_once('@')?;
    let (host, path) = if rest.starts_with('[') {
        let end = rest.find(']')?;
        (rest.get(..=end)?, rest.get(end + 1..)?.strip_prefix(':')?)
    } else {
        rest.split_once(':')?
    };
    let is_plain = |text: &str| {
        !text.is_empty()
            && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '[' | ']' | ':'))
    };
    let user = user.rsplit(['=', ',']).next().unwrap_or(user);
    (is_plain(user) && is_plain(host) && !path.is_empty()).then(|| host::normalise(host))
}

fn is_blank(character: char) -> bool {
    character.is_whitespace() || character.is_control()
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// Schemes for which slashes are optional and backslashes count as slashes.
fn is_web(scheme: &str) -> bool {
    matches!(scheme, "http" | "https" | "ws" | "wss" | "ftp")
}
