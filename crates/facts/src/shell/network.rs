//! Programs that reach other hosts: settings, data and addresses in their arguments.

use super::AddressForm;
use super::arguments::Arguments;
use super::collect::Effect;
use super::effects::Recorder;
use super::notes::looks_like_path;
use super::opaque;
use super::program::Value;
use super::unwrap::run_text;
use super::word::Word;

/// Whether a word is `host:path` as scp, rsync and git read it.
pub(super) fn is_remote(text: &str) -> bool {
    if text.contains('[') && text.contains("]:") {
        return true;
    }
    text.find(':').is_some_and(|colon| !text.get(..colon).unwrap_or_default().contains('/'))
}

/// Records a URL that may lack its scheme.
pub(super) fn url(recorder: &mut Recorder, word: &Word) {
    let text = word.text();
    let lower = text.to_ascii_lowercase();
    if let Some(rest) = lower.starts_with("file:").then(|| text.get(5..).unwrap_or_default()) {
        // `file:///x`, `file://localhost/x`, `file:/x`
        let path = rest
            .strip_prefix("//")
            .map_or(rest, |rest| rest.find('/').and_then(|at| rest.get(at..)).unwrap_or(rest));
        let decoded = crate::path::percent_decode(path);
        recorder.file(Effect::Read, &Word::literal(&decoded));
        return;
    }
    recorder.collector.address(AddressForm::Url, &text);
}

/// Records a URL of git that names a program: `ext::command`, or a transport helper.
pub(super) fn helper(recorder: &mut Recorder, text: &str) {
    let Some((name, rest)) = text.split_once("::") else {
        if let Some(path) = text.strip_prefix("file://") {
            recorder.file(Effect::Write, &Word::literal(path));
        }
        return;
    };
    if recorder.name != "git" {
        return;
    }
    if name == "ext" {
        run_text(recorder.collector, "git", rest, recorder.context);
    }
    recorder.opaque();
}

/// Records a setting of ssh: `Key=value` or `Key value`.
pub(super) fn ssh_setting(recorder: &mut Recorder, text: &str) {
    let (key, value) = text.trim_start().split_once(['=', ' ', '\t']).unwrap_or((text, ""));
    let value = value.trim_start_matches([' ', '\t', '=']);
    match key.to_ascii_lowercase().as_str() {
        "proxycommand" | "localcommand" | "knownhostscommand" | "remotecommand" | "xauthlocation"
        | "proxyusefdpass" => {
            run_text(recorder.collector, recorder.name, value, recorder.context);
        }
        "hostname" | "proxyjump" | "canonicaldomains" => {
            for host in value.split([',', ' ']) {
                recorder.collector.address(AddressForm::Host, host);
            }
        }
        "setenv" => recorder.collector.assign(&Word::literal(value)),
        "localforward" | "remoteforward" | "dynamicforward" => opaque::scan_code(recorder.collector, value),
        "userknownhostsfile"
        | "controlpath"
        | "globalknownhostsfile"
        | "identityagent"
        | "revokedhostkeys" => {
            recorder.file(Effect::Write, &Word::literal(value));
        }
        "identityfile" | "certificatefile" => recorder.file(Effect::Read, &Word::literal(value)),
        "include" | "pkcs11provider" | "securitykeyprovider" | "match" => recorder.opaque(),
        "" => {}
        _ => recorder.value(Value::Text, &Word::literal(value)),
    }
}

/// Records data that may name a file after `@`.
pub(super) fn data(recorder: &mut Recorder, word: &Word) {
    let text = word.text();
    if let Some(at) = text.chars().position(|c| c == '@' || c == '<')
        && text.chars().take(at).all(|c| c != ' ')
    {
        recorder.file(Effect::Read, &word.skip(at + 1));
    }
    if let Some((_, host)) = text.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("host")) {
        recorder.collector.address(AddressForm::Host, host.trim());
    }
}

/// Records what the table cannot say of the programs that transfer files and connect.
pub(super) fn record(recorder: &mut Recorder, found: &Arguments, rest: &[Word]) {
    forwarding(recorder, found);
    note_missing_host(recorder, found, rest);
    match recorder.name {
        "curl" => {
            if found.has(&["O", "remote-name", "remote-name-all", "J", "remote-header-name"]) {
                let urls = found.operands.iter().chain(found.value(&["url"]));
                urls.for_each(|url| named_by_url(recorder, url, found.value(&["output-dir"])));
                recorder.collector.writes_here();
            }
            if let (Some(directory), Some(output)) =
                (found.value(&["output-dir"]), found.value(&["o", "output"]))
            {
                let joined = format!("{}/{}", directory.text().trim_end_matches('/'), output.text());
                recorder.collector.path(Effect::Write, &joined);
            }
            for given in &found.values {
                let text = given.value.text();
                match given.name.as_str() {
                    "w" | "write-out" => {
                        if text.starts_with('@') {
                            recorder.file(Effect::Read, &given.value.skip(1));
                        }
                        for part in text.split("%output{").skip(1) {
                            let file = part.split('}').next().unwrap_or_default();
                            recorder.file(Effect::Write, &Word::literal(file.trim_start_matches(">>")));
                        }
                    }
                    "resolve" | "connect-to" => {
                        // `host:port:address`: an empty part is the host that was asked for.
                        let parts =
                            text.split(':').filter(|part| part.contains('.') || part.contains("localhost"));
                        parts.for_each(|part| recorder.collector.address(AddressForm::Host, part));
                        if let Some(from) = text.rfind('[') {
                            recorder
                                .collector
                                .address(AddressForm::Host, text.get(from..).unwrap_or_default());
                        }
                    }
                    // Without an equals sign it is a file.
                    "b" | "cookie" if !text.contains('=') => recorder.file(Effect::Read, &given.value),
                    "variable" => recorder.opaque(),
                    _ => {}
                }
            }
        }
        "wget" | "wget2" if found.value(&["O", "output-document"]).is_none() => {
            for url in &found.operands {
                named_by_url(recorder, url, found.value(&["P", "directory-prefix"]));
            }
            recorder.collector.writes_here();
        }
        "nc" | "ncat" | "netcat" if found.has(&["U"]) => {
            for operand in &found.operands {
                recorder.file(Effect::Write, operand);
            }
        }
        "getent" => {
            let is_host = |word: &Word| word.text().starts_with("ahosts") || word.text() == "hosts";
            for word in found.operands.iter().skip(1).filter(|_| found.operands.first().is_some_and(is_host))
            {
                recorder.collector.address(AddressForm::Host, &word.text());
            }
        }
        "psql" | "pg_dump" | "pg_restore" => {
            let settings = found.operands.iter().chain(found.value(&["d", "dbname"])).map(Word::text);
            for setting in settings.collect::<Vec<_>>() {
                for part in setting.split(['\'', ' ', '\n', '\t']) {
                    if let Some((_, host)) = part.split_once('=').filter(|(key, _)| key.starts_with("host")) {
                        recorder.collector.address(AddressForm::Host, host);
                    }
                }
            }
        }
        "socat" => {
            for word in &found.operands {
                socat(recorder, &word.text());
            }
        }
        _ => {}
    }
}

/// Records the hosts of `[address:]port:host:port`, as ssh forwards connections.
fn forwarding(recorder: &mut Recorder, found: &Arguments) {
    if !matches!(recorder.name, "ssh" | "slogin" | "autossh") {
        return;
    }
    for given in found.values.iter().filter(|given| matches!(given.name.as_str(), "L" | "R" | "D" | "w")) {
        let text = given.value.text();
        for part in text
            .split([':', '[', ']', ' '])
            .filter(|part| part.contains(|c: char| c.is_ascii_alphabetic() || c == '.'))
        {
            if looks_like_path(part) {
                recorder.file(Effect::Write, &Word::literal(part));
            } else {
                recorder.collector.address(AddressForm::Host, part);
            }
        }
    }
}

/// Notes a program that connects, if no host was found among its words.
fn note_missing_host(recorder: &mut Recorder, found: &Arguments, rest: &[Word]) {
    let connects = matches!(
        recorder.name,
        "curl"
            | "wget"
            | "wget2"
            | "nc"
            | "ncat"
            | "netcat"
            | "telnet"
            | "ftp"
            | "tftp"
            | "ssh"
            | "slogin"
            | "autossh"
            | "scp"
            | "sftp"
            | "ping"
            | "ping6"
            | "traceroute"
            | "dig"
            | "nslookup"
            | "host"
            | "whois"
            | "nmap"
            | "mosh"
    );
    let tells = found.names(&[
        "V",
        "version",
        "help",
        "h",
        "l",
        "listen",
        "K",
        "config",
        "i",
        "input-file",
        "url",
        "U",
        "f",
        "Q",
    ]);
    if connects && !rest.is_empty() && found.operands.is_empty() && !tells && found.unknown.is_empty() {
        recorder.collector.note("no host", recorder.name);
    }
}

/// A download without a name is stored under the last part of its address.
fn named_by_url(recorder: &mut Recorder, url: &Word, directory: Option<&Word>) {
    let text = url.text();
    let path = text.split(['?', '#']).next().unwrap_or_default();
    let path = path.split_once("://").map_or(path, |(_, rest)| rest);
    if let Some((_, name)) = path.rsplit_once('/').filter(|(_, name)| !name.is_empty()) {
        let file = match directory {
            Some(directory) => format!("{}/{name}", directory.text().trim_end_matches('/')),
            None => name.to_owned(),
        };
        recorder.file(Effect::Write, &Word::literal(&file));
    }
}

/// An address of socat: `TYPE:parameters,options`.
fn socat(recorder: &mut Recorder, address: &str) {
    for part in address.split("!!") {
        let (kind, rest) = part.split_once(':').unwrap_or((part, ""));
        let kind = kind.to_ascii_lowercase();
        let value = rest.split(',').next().unwrap_or_default();
        let connects = ["tcp", "udp", "openssl", "ssl", "sctp", "socks", "proxy", "ip", "dccp"];
        if matches!(kind.as_str(), "exec" | "system" | "shell") {
            run_text(recorder.collector, "socat", value, recorder.context);
        } else if kind.contains("listen") || kind.contains("recv") {
            recorder.collector.note("listens", address);
        } else if connects.iter().any(|prefix| kind.starts_with(prefix)) {
            let host = value.strip_prefix('[').map_or_else(
                || value.split(':').next().unwrap_or_default().to_owned(),
                |inside| format!("[{}]", inside.split(']').next().unwrap_or_default()),
            );
            recorder.collector.address(AddressForm::Host, &host);
        } else if looks_like_path(value)
            || matches!(kind.as_str(), "open" | "create" | "file" | "gopen" | "unix-connect")
        {
            recorder.file(Effect::Write, &Word::literal(value));
        } else if rest.is_empty() && looks_like_path(part) {
            recorder.file(Effect::Write, &Word::literal(part));
        }
    }
}

/// Whether operands of a program may be hosts.
pub(super) fn connects(name: &str) -> bool {
    matches!(
        name,
        "curl"
            | "wget"
            | "aria2c"
            | "http"
            | "https"
            | "ssh"
            | "scp"
            | "sftp"
            | "rsync"
            | "nc"
            | "ncat"
            | "socat"
            | "telnet"
            | "ftp"
            | "ping"
            | "dig"
            | "host"
            | "nslookup"
    )
}
