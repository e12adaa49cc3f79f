//! Commands whose effects are not modelled: every word that looks like a path counts as written, every host as reached.

use super::AddressForm;
use super::collect::{Collector, Effect};
use super::notes::looks_like_path;
use super::program;
use super::unwrap::{Context, analyse, base_name, inner_context, run_text};
use super::word::Word;

/// Most commands that are looked for among the words of one program.
const MAX_INNER: usize = 16;

/// Records an opaque command and scans its words.
pub(super) fn record(collector: &mut Collector, words: &[Word]) {
    collector.opaque(words);
    collector.writes_here();
    for word in words.iter().skip(1) {
        scan_word(collector, word);
    }
}

/// Looks for commands among the words of a program that is not known: it may be a wrapper.
pub(super) fn commands_inside(collector: &mut Collector, words: &[Word], context: &Context) {
    let name = words.first().map(Word::text).unwrap_or_default();
    let mut left = MAX_INNER;
    for (index, word) in words.iter().enumerate().skip(1) {
        let text = word.text();
        let Some(first) = text.split_whitespace().next() else { continue };
        let known = program::find(base_name(first)).is_some_and(|entry| !entry.pure && !entry.builtin)
            || super::interpreter::is_shell(base_name(first));
        if !known || left == 0 {
            continue;
        }
        left -= 1;
        let inner = inner_context(context, &name);
        if text.contains(char::is_whitespace) {
            run_text(collector, &name, &text, context);
        } else {
            analyse(collector, words.get(index..).unwrap_or_default(), &inner);
            collector.directory_change = None;
            return;
        }
    }
}

/// Runs the words of a program with effects of its own that are lines of commands: options such as `-c` take them.
pub(super) fn lines_inside(collector: &mut Collector, name: &str, rest: &[Word], context: &Context) {
    let runs = |text: &str| {
        text.split([';', '|', '&', '`', '\n', '(', '!']).any(|part| {
            let mut words = part.split_whitespace();
            let first = base_name(words.next().unwrap_or_default());
            let is_known = program::find(first).is_some_and(|entry| !entry.pure && !entry.builtin);
            words.next().is_some()
                && (is_known
                    || matches!(first, "cd" | "eval" | "source")
                    || super::interpreter::is_shell(first)
                    || super::interpreter::language(first).is_some())
        })
    };
    for word in rest.iter().take(64) {
        let text = word.text();
        if !text.contains(char::is_whitespace) {
            continue;
        }
        let value = text.split_once('=').map_or("", |(_, value)| value);
        for line in [text.as_str(), value].map(|line| line.trim_start_matches('!')) {
            if runs(line) {
                run_text(collector, name, line, context);
            }
        }
    }
}

/// Records the paths and hosts in one word.
pub(super) fn scan_word(collector: &mut Collector, word: &Word) {
    let text = word.text();
    if text.contains(char::is_whitespace) {
        return scan_code(collector, &text);
    }
    // `--file=/x`, `NAME=/x`, or attached to a short option: `-I/usr/include`, `-f../x`.
    let value = match text.strip_prefix('-') {
        Some(option) => match option.split_once('=') {
            Some((_, value)) => value,
            None => option.find(['/', '~', '.']).and_then(|from| option.get(from..)).unwrap_or_default(),
        },
        None => text.as_str(),
    };
    for part in [value, value.split_once('=').map_or("", |(_, after)| after)] {
        scan_token(collector, part);
    }
    if text.starts_with('-') && text.chars().nth(1).is_some_and(|c| c != '-') {
        // `-hevil.example`: the value is attached to the option.
        let attached: String = text.chars().skip(2).collect();
        if is_host(&attached) {
            collector.address(AddressForm::Host, &attached);
        }
    }
    if text.contains([',', ':', ';', '@', '"', '\'', '(', '{', '[']) {
        for part in text.split(|c: char| !(c.is_alphanumeric() || "._~/@%+-:".contains(c))) {
            scan_token(collector, part);
        }
        for part in text.split(|c: char| !(c.is_alphanumeric() || "._~/@%+-".contains(c))) {
            if part.starts_with(['/', '~']) {
                scan_token(collector, part);
            }
        }
    }
}

/// Records the absolute paths and the hosts in code of another language.
pub(super) fn scan_code(collector: &mut Collector, code: &str) {
    collector.charge(code.len());
    for token in code.split(|c: char| !(c.is_alphanumeric() || "._~/@%+-:".contains(c))) {
        // A single name between slashes is more often a pattern than a path.
        let names = token.split('/').filter(|name| !name.is_empty()).count();
        let is_path =
            (token.starts_with('/') && names > 1 && !token.ends_with('/')) || token.starts_with("~/");
        let goes_up = token.starts_with("../") || token.contains("/../");
        if goes_up || (is_path && !token.starts_with("//")) {
            collector.path(Effect::Write, token.trim_end_matches(['.', ':']));
        } else if is_host(token) {
            collector.address(AddressForm::Host, token.trim_end_matches(['.', ':']));
        }
    }
}

fn scan_token(collector: &mut Collector, text: &str) {
    if text.is_empty() || text == "-" {
        return;
    }
    // `registry.example.com/image`, `example.com/module`
    let first = text.split('/').next().unwrap_or_default();
    if first.len() < text.len() && first.contains('.') && is_host(first) {
        collector.address(AddressForm::Host, first);
    }
    if is_host(text) {
        collector.address(AddressForm::Host, text);
    } else if looks_like_path(text) || has_file_extension(text) {
        collector.file(Effect::Write, &Word::literal(text));
    }
}

fn has_file_extension(text: &str) -> bool {
    let Some((stem, extension)) = text.rsplit_once('.') else { return false };
    !stem.is_empty()
        && (1..=8).contains(&extension.len())
        && extension.starts_with(|c: char| c.is_ascii_alphabetic())
        && extension.chars().all(|c| c.is_ascii_alphanumeric())
        && stem.chars().all(|c| c.is_alphanumeric() || "._-+".contains(c))
}

/// Top-level domains of more than two letters that hosts end with. Those of two letters are countries, unless they are
/// extensions of files.
const DOMAINS: &[&str] = &[
    "com",
    "org",
    "net",
    "edu",
    "gov",
    "mil",
    "int",
    "info",
    "biz",
    "dev",
    "app",
    "test",
    "example",
    "invalid",
    "internal",
    "local",
    "localhost",
    "localdomain",
    "lan",
    "home",
    "corp",
    "arpa",
    "cloud",
    "site",
    "online",
    "xyz",
    "tech",
    "store",
    "onion",
    "page",
    "blog",
    "shop",
    "live",
    "run",
    "link",
    "click",
    "top",
    "club",
    "host",
    "space",
    "website",
    "world",
];

/// Extensions of files that are countries, too.
const EXTENSIONS: &[&str] = &[
    "py", "rs", "sh", "pl", "md", "ps", "cc", "so", "ml", "ts", "js", "go", "rb", "cs", "hs", "vb", "kt",
    "pm", "gz", "bz", "xz", "st", "tf", "ex", "mk", "am", "in", "ac", "la", "lo", "do", "ms", "pa", "pb",
    "sc", "as", "ai", "ps", "id", "is",
];

/// Whether a word is written as a host: `name.tld`, `host:port`, `user@host` or an address.
pub(super) fn is_host(text: &str) -> bool {
    let bare = text.rsplit_once('@').map_or(text, |(_, host)| host);
    let has_user = bare.len() < text.len() && text.find('@') != Some(0);
    let (host, port) = match bare.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => {
            (host, Some(port))
        }
        // `user@host:path`
        Some((host, _)) if has_user => (host, None),
        Some(_) | None => (bare, None),
    };
    let host = host.trim_end_matches('.');
    let plain = !host.is_empty()
        && host.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '%'))
        && host.starts_with(|c: char| c.is_alphanumeric() || c == '%');
    if !plain {
        return bare.matches(':').count() > 1 && bare.parse::<std::net::Ipv6Addr>().is_ok();
    }
    if host.parse::<std::net::Ipv4Addr>().is_ok() || host == "localhost" {
        return true;
    }
    let Some((name, last)) = host.rsplit_once('.') else {
        let is_number = host.bytes().all(|b| b.is_ascii_digit());
        let is_address = is_number && host.len() > 5 || host.starts_with("0x");
        return (has_user && !is_number)
            || port.is_some_and(|port| port.len() > 2 && (!is_number || is_address));
    };
    if name.is_empty() {
        return false;
    }
    let last = last.to_ascii_lowercase();
    if EXTENSIONS.contains(&last.as_str()) {
        return has_user || port.is_some_and(|port| port.len() > 2);
    }
    let is_country = last.len() == 2 && last.bytes().all(|b| b.is_ascii_alphabetic());
    is_country
        || DOMAINS.contains(&last.as_str())
        || ((has_user || port.is_some_and(|port| port.len() > 2))
            && last.bytes().any(|b| b.is_ascii_alphabetic()))
}
