//! Paths without looking at the file system.

/// Makes a path absolute and clean: joins it with `cwd` if it is relative, resolves `.`, `..` and repeated slashes.
///
/// `~`, `~/x` and `~user/x` keep their tilde. `file:` URLs become paths. A relative path without a `cwd` stays
/// relative. Windows paths are written with forward slashes and keep their drive or share.
pub fn absolute(path: &str, cwd: &str) -> String {
    if let Some(from_url) = file_url(path) {
        return absolute_path(&from_url, cwd);
    }
    absolute_path(path, cwd)
}

fn absolute_path(path: &str, cwd: &str) -> String {
    if is_anchored(path) || cwd.is_empty() {
        return clean(path);
    }
    if path.is_empty() {
        return clean(cwd);
    }
    // Backslashes separate only in a Windows setting; elsewhere they are part of a name.
    let path = if is_windows(cwd) { path.replace('\\', "/") } else { path.to_owned() };
    clean(&format!("{cwd}/{path}"))
}

/// Whether a path does not depend on a directory.
pub(crate) fn is_anchored(path: &str) -> bool {
    path.starts_with('/') || path.starts_with('~') || is_windows(path)
}

fn is_windows(path: &str) -> bool {
    drive(path).is_some() || path.starts_with("\\\\")
}

/// The drive letter of `C:` or `C:\…` and what follows it.
fn drive(path: &str) -> Option<(char, &str)> {
    let mut characters = path.chars();
    let letter = characters.next().filter(char::is_ascii_alphabetic)?;
    let rest = characters.as_str().strip_prefix(':')?;
    (rest.is_empty() || rest.starts_with(['/', '\\'])).then_some((letter, rest))
}

fn clean(path: &str) -> String {
    if let Some((letter, rest)) = drive(path) {
        let parts = resolve(&rest.replace('\\', "/"), true);
        return format!("{}:/{}", letter.to_ascii_uppercase(), parts.join("/"));
    }
    if path.starts_with("\\\\") {
        return clean_share(path);
    }
    if path.starts_with('/') {
        return format!("/{}", resolve(path, true).join("/"));
    }
    if path.starts_with('~') {
        let (home, rest) = path.split_once('/').unwrap_or((path, ""));
        let mut parts = vec![home.to_owned()];
        parts.extend(resolve(rest, false));
        return parts.join("/");
    }
    let parts = resolve(path, false);
    let Some(first) = parts.first() else { return ".".to_owned() };
    // A name that looks like a home directory or a drive only after cleaning must not become one.
    if first.starts_with('~') || drive(&parts.join("/")).is_some() || first.starts_with("\\\\") {
        return format!("./{}", parts.join("/"));
    }
    parts.join("/")
}

/// Cleans `\\server\share\…`, and the `\\?\C:\…` form of a drive path.
fn clean_share(path: &str) -> String {
    let slashed = path.replace('\\', "/");
    let inner = slashed.strip_prefix("//?/").or_else(|| slashed.strip_prefix("//./")).unwrap_or(&slashed);
    if let Some((letter, rest)) = drive(inner) {
        return format!("{}:/{}", letter.to_ascii_uppercase(), resolve(rest, true).join("/"));
    }
    format!("/{}", resolve(&slashed, true).join("/"))
}

/// Resolves `.` and `..` of a path; the root has no parent, other starts may have.
fn resolve(path: &str, rooted: bool) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.last().is_some_and(|last| last != "..") {
                    parts.pop();
                } else if !rooted {
                    parts.push(part.to_owned());
                }
            }
            _ => parts.push(part.to_owned()),
        }
    }
    parts
}

/// The path of a `file:` URL on this host.
fn file_url(text: &str) -> Option<String> {
    let scheme = text.get(..5)?;
    if !scheme.eq_ignore_ascii_case("file:") {
        return None;
    }
    let rest = text.get(5..)?.replace('\\', "/");
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let path = match rest.strip_prefix("//") {
        None if rest.starts_with('/') => rest.to_owned(),
        None => return None,
        Some(after) => {
            let (host, path) = after.find('/').map_or((after, "/"), |index| after.split_at(index));
            let host = percent_decode(host);
            if host.is_empty() || host.eq_ignore_ascii_case("localhost") {
                path.to_owned()
            } else {
                // Another host: kept visible as a share.
                return Some(format!("//{host}{}", percent_decode(path)));
            }
        }
    };
    let decoded = percent_decode(&path);
    // `file:///C:/x` names a drive.
    let without_slash = decoded.trim_start_matches('/');
    Some(if drive(without_slash).is_some() { without_slash.to_owned() } else { decoded })
}

/// Decodes `%xx`; bytes that are no UTF-8 become replacement characters.
pub(crate) fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        if *first == b'%'
            && let [high, low, after @ ..] = tail
            && let (Some(high), Some(low)) = (hex_digit(*high), hex_digit(*low))
        {
            bytes.push(high * 16 + low);
            rest = after;
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::absolute;

    #[test]
    fn cleans_lexically() {
        let cases = [
            ("/a/b", "/w", "/a/b"),
            ("a", "/w", "/w/a"),
            ("./a/../b//c/", "/w", "/w/b/c"),
            ("../../../../etc/passwd", "/w/x", "/etc/passwd"),
            ("/..", "/w", "/"),
            ("/a/./b/../../c", "", "/c"),
            ("", "/w", "/w"),
            (".", "/w/", "/w"),
            ("a/../..", "", ".."),
            ("a/b", "", "a/b"),
            ("", "", "."),
            ("~", "/w", "~"),
            ("~/a/../b", "/w", "~/b"),
            ("~/../x", "/w", "~/../x"),
            ("~user//x", "/w", "~user/x"),
            ("./~/x", "/w", "/w/~/x"),
            ("./~/x", "", "./~/x"),
            ("file:///etc/pass%77d", "/w", "/etc/passwd"),
            ("file://localhost/a/../b", "/w", "/b"),
            ("FILE:/etc/%2e%2e/x", "/w", "/x"),
            ("file:///C:/x/../y", "/w", "C:/y"),
            ("file://other/x", "/w", "/other/x"),
            ("C:\\x\\..\\y", "/w", "C:/y"),
            ("c:/x/./y", "/w", "C:/y".replace('y', "x/y").leak()),
            ("C:\\..\\..\\x", "/w", "C:/x"),
            ("x\\y", "C:\\w", "C:/w/x/y"),
            ("\\\\?\\C:\\x", "/w", "C:/x"),
            ("\\\\server\\share\\..\\x", "/w", "/server/x"),
            ("a\0b\u{1b}", "/w", "/w/a\0b\u{1b}"),
            ("a\\b", "/w", "/w/a\\b"),
            ("a b", "~/w", "~/w/a b"),
        ];
        for (path, cwd, expected) in cases {
            assert_eq!(absolute(path, cwd), expected, "{path:?} in {cwd:?}");
        }
    }

    proptest! {
        #[test]
        fn is_idempotent(path in "[a~./\\\\C:%2e ]{0,20}|\\PC*", cwd in "(/[a-z./]{0,10})?") {
            let once = absolute(&path, &cwd);
            if !once.to_ascii_lowercase().starts_with("file:") {
                prop_assert_eq!(absolute(&once, &cwd), once.clone());
            }
        }

        #[test]
        fn never_leaves_the_root(path in "[a./~]{0,30}", cwd in "/[a-z./]{0,10}") {
            let result = absolute(&path, &cwd);
            if result.starts_with('/') {
                prop_assert!(!result.contains("/../") && !result.ends_with("/..") && !result.contains("//"), "{}", result);
            }
        }
    }
}
