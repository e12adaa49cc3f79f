//! Hosts that programs are given without a URL.

use super::{find_hosts, host, parse, unique};
use crate::shell::{self, ShellCommand, ShellFacts};

/// The hosts that the commands of a command line name, each once.
///
/// An operand that holds an expansion is reported as written, so that a rule for known hosts does not match it.
pub fn hosts_of(facts: &ShellFacts) -> Vec<String> {
    let mut hosts = Vec::new();
    for command in &facts.commands {
        for word in command.words.iter().chain(&command.assignments) {
            hosts.extend(find_hosts(word));
        }
        hosts_of_program(command, &mut hosts);
    }
    for path in facts.reads.iter().chain(&facts.writes) {
        // The shell itself connects for these paths.
        let target = path.strip_prefix("/dev/tcp/").or_else(|| path.strip_prefix("/dev/udp/"));
        hosts.extend(target.and_then(|rest| rest.split('/').next()).map(host::normalise));
    }
    unique(hosts)
}

fn hosts_of_program(command: &ShellCommand, hosts: &mut Vec<String>) {
    let Some((program, arguments)) = command.words.split_first() else { return };
    let name = program.rsplit('/').next().unwrap_or(program);
    let (operands, values) = shell::operands(name, arguments);
    let value_of = |names: &[&str]| -> Vec<&String> {
        values.iter().filter(|(option, _)| names.contains(&option.as_str())).map(|(_, value)| value).collect()
    };
    match name {
        "curl" | "wget" | "wget2" | "aria2c" | "http" | "https" | "xh" | "lynx" | "links" | "w3m"
        | "elinks" | "axel" => {
            hosts.extend(operands.iter().filter(|word| !is_method(word)).filter_map(|word| bare_url(word)));
            hosts.extend(
                value_of(&["url", "x", "proxy", "preproxy", "socks5", "socks5-hostname"])
                    .iter()
                    .filter_map(|word| bare_url(word)),
            );
            for value in value_of(&["resolve", "connect-to"]) {
                hosts.extend(value.split(':').filter(|part| part.contains('.')).map(host::normalise));
            }
        }
        "ssh" | "slogin" | "autossh" | "mosh" | "ssh-copy-id" | "sftp" | "telnet" | "ftp" | "ping"
        | "ping6" | "traceroute" => {
            hosts.extend(operands.first().map(|word| login(word)));
            for value in value_of(&["J", "W"]) {
                hosts.extend(value.split(',').map(login));
            }
        }
        "nc" | "ncat" | "netcat" | "nmap" | "whois" => hosts.extend(operands.first().map(|word| login(word))),
        "dig" | "nslookup" | "host" | "drill" => {
            let names = operands.iter().filter(|word| !word.starts_with('+'));
            hosts.extend(names.map(|word| host::normalise(word.trim_start_matches('@'))));
        }
        "socat" => {
            for word in &operands {
                let mut fields = word.split([':', ',']);
                let kind = fields.next().unwrap_or_default().to_ascii_lowercase();
                let connects = ["tcp", "udp", "openssl", "ssl", "sctp", "socks", "proxy"];
                if connects.iter().any(|prefix| kind.starts_with(prefix)) && !kind.contains("listen") {
                    hosts.extend(fields.next().map(host::normalise));
                }
            }
        }
        "openssl" => {
            let mut words = arguments.iter().skip_while(|word| *word != "-connect").skip(1);
            hosts.extend(words.next().map(|word| host::split(word).0));
        }
        "scp" | "rsync" => hosts.extend(operands.iter().filter_map(|word| remote(word))),
        "git" => {
            let commands = ["clone", "fetch", "pull", "push", "ls-remote", "remote", "submodule", "archive"];
            if arguments.iter().any(|word| commands.contains(&word.as_str())) {
                hosts.extend(
                    arguments.iter().filter(|word| !word.starts_with('-')).filter_map(|word| remote(word)),
                );
            }
        }
        _ => {}
    }
}

/// Whether a word is an HTTP method or a request item of httpie rather than an address.
fn is_method(word: &str) -> bool {
    matches!(word, "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "OPTIONS")
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
