//! Hosts that programs are given without a URL.

use super::{find_hosts, host, parse, unique};
use crate::shell::{AddressForm, ShellFacts};

/// The hosts that the commands of a command line name, each once.
///
/// An operand that holds an expansion is reported as written, so that a rule for known hosts does not match it.
pub fn hosts_of(facts: &ShellFacts) -> Vec<String> {
    let mut hosts = Vec::new();
    for command in &facts.commands {
        for word in command.words.iter().chain(&command.assignments) {
            hosts.extend(find_hosts(word));
        }
    }
    for address in &facts.addresses {
        match address.form {
            AddressForm::Host => hosts.push(login(address.text.trim_start_matches('@'))),
            AddressForm::Url => hosts.extend(bare_url(&address.text)),
            AddressForm::Remote => hosts.extend(remote(&address.text)),
        }
    }
    for path in facts.reads.iter().chain(&facts.writes) {
        // The shell itself connects for these paths.
        let target = path.strip_prefix("/dev/tcp/").or_else(|| path.strip_prefix("/dev/udp/"));
        hosts.extend(target.and_then(|rest| rest.split('/').next()).map(host::normalise));
    }
    unique(hosts)
}

/// The host of an address that may lack its scheme.
fn bare_url(word: &str) -> Option<String> {
    let complete = if word.contains("://") { word.to_owned() } else { format!("http://{word}") };
    parse(&complete).map(|parts| parts.host)
}

/// The host of `user@host` or `user@host:port`.
fn login(word: &str) -> String {
    if let Some(parts) = parse(word).filter(|_| word.contains("://")) {
        return parts.host;
    }
    let without_user = word.rsplit('@').next().unwrap_or(word);
    // An IPv6 address without brackets has several colons, none of which starts a port.
    if without_user.matches(':').count() > 1 && !without_user.starts_with('[') {
        return host::normalise(&format!("[{without_user}]"));
    }
    host::split(without_user).0
}

/// The host of `host:path` as scp, rsync and git read it.
fn remote(word: &str) -> Option<String> {
    if word.contains("://") {
        return None;
    }
    if let Some(bracket) = word.find('[')
        && let Some((address, after)) = word.get(bracket + 1..)?.split_once(']')
        && after.starts_with(':')
    {
        return Some(host::normalise(&format!("[{address}]")));
    }
    let (before, _) = word.split_once(':')?;
    // A slash before the colon, or a single letter as of a Windows drive, makes it a local path.
    if before.contains('/') || before.len() < 2 {
        return None;
    }
    Some(host::normalise(before.rsplit('@').next().unwrap_or(before)))
}
