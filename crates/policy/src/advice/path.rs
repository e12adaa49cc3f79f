//! Patterns for files in a workspace: `src/**`, `*.md`, `docs`.
//!
//! `*` and `?` match within one name, `**` any number of folders. A pattern without a slash means that name anywhere; begun
//! with `./` it means that name in the workspace itself. What matches a folder matches everything in it. ASCII letters match
//! in either case, because on some systems they name the same file.

use crate::glob;

/// The longest pattern, in bytes.
const MAX_BYTES: usize = 512;

/// A pattern for files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathPattern {
    /// Names with `*` and `?`, or `**`; the last is `**`.
    segments: Vec<String>,
}

impl PathPattern {
    /// Reads a pattern. What other languages of patterns have and this one has not is refused, lest it be taken literally and
    /// miss what was meant.
    pub(crate) fn read(written: &str) -> Result<PathPattern, &'static str> {
        if written.len() > MAX_BYTES {
            return Err("it may have at most 512 bytes");
        }
        if written.starts_with('/') {
            return Err("it begins at the workspace; take off the `/`, or write `./`");
        }
        if written.starts_with('!') {
            return Err("`!` is not understood; `never` lists what is not shown");
        }
        if written.contains(['[', ']', '{', '}', '\\']) {
            return Err(
                "the only wildcards are `*`, `**` and `?`; write `?` for any other sign, and one entry for each choice",
            );
        }
        if written.chars().any(char::is_control) {
            return Err("it has control characters");
        }
        let names: Vec<&str> = written.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
        if names.is_empty() {
            return Err("it names nothing; write `**` for all files");
        }
        if names.contains(&"..") {
            return Err("`..` leaves the workspace");
        }
        if names.iter().any(|name| *name != "**" && name.contains("**")) {
            return Err("`**` stands alone between slashes, as in `src/**/*.rs`");
        }
        let anywhere = !written.trim_end_matches('/').contains('/');
        let mut segments = Vec::with_capacity(names.len() + 2);
        segments.extend(anywhere.then(|| "**".to_owned()));
        segments.extend(names.into_iter().map(str::to_owned));
        segments.push("**".to_owned());
        segments.dedup_by(|one, other| one == "**" && other == "**");
        Ok(PathPattern { segments })
    }

    /// Whether a file matches, by the names that lead to it.
    ///
    /// As in [`glob::matches`], a `**` takes as little as it can and only the last one is ever tried again.
    pub(crate) fn matches(&self, path: &[&str]) -> bool {
        let mut pattern = self.segments.as_slice();
        let mut rest = path;
        let mut retry: Option<(&[String], &[&str])> = None;
        loop {
            match pattern.split_first() {
                Some((first, pattern_rest)) if first == "**" => {
                    retry = Some((pattern_rest, rest));
                    pattern = pattern_rest;
                    continue;
                }
                Some((expected, pattern_rest)) => match rest.split_first() {
                    Some((name, path_rest)) if glob::matches(expected, name) => {
                        pattern = pattern_rest;
                        rest = path_rest;
                        continue;
                    }
                    Some(_) => {}
                    None => return false,
                },
                None if rest.is_empty() => return true,
                None => {}
            }
            let Some((after, taken)) = &mut retry else { return false };
            let Some((_, left)) = taken.split_first() else { return false };
            *taken = left;
            pattern = after;
            rest = left;
        }
    }
}

/// The names of a path from the workspace; nothing if it leaves the workspace, names nothing, or could be read in two ways.
pub(super) fn segments(path: &str) -> Option<Vec<&str>> {
    if path.starts_with('/') || path.contains('\\') || path.chars().any(char::is_control) {
        return None;
    }
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    (!names.is_empty() && !names.contains(&"..")).then_some(names)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        PathPattern::read(pattern).unwrap().matches(&segments(path).unwrap())
    }

    #[test]
    fn patterns_mean_what_people_expect() {
        for (pattern, path, expected) in [
            ("*.md", "README.md", true),
            ("*.md", "docs/a/b.md", true),
            ("./*.md", "README.md", true),
            ("./*.md", "docs/b.md", false),
            ("*.md", "a.mdx", false),
            ("src/**", "src/a/b.rs", true),
            ("src/**", "other/src/a.rs", false),
            ("src/*", "src/a.rs", true),
            ("src/*.rs", "src/a/b.rs", false),
            ("src/**/*.rs", "src/a.rs", true),
            ("src/**/*.rs", "src/a/b/c.rs", true),
            ("docs", "docs/a/b", true),
            ("docs/", "x/docs/a", true),
            ("./docs/", "x/docs/a", false),
            ("**/secrets/**", "secrets/key", true),
            ("**/secrets/**", "a/b/secrets/c/key", true),
            ("**/secrets/**", "a/secretsx/key", false),
            (".env", "a/.ENV", true),
            (".env*", ".env.local", true),
            ("a?c", "x/abc", true),
            ("a?c", "x/ac", false),
            ("**", "anything/at/all", true),
            ("*", "anything/at/all", true),
            ("**/a/**/a", "a/b/a/b/a", true),
            ("a/**/b/c", "a/b/b/b/c", true),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for pattern in
            ["/etc/**", "!a", "[ab]", "{a,b}", "a\\b", "", "/", "./", "../x", "a/../b", "src/**.rs", "a\nb"]
        {
            assert!(PathPattern::read(pattern).is_err(), "{pattern}");
        }
        assert!(PathPattern::read(&"a".repeat(513)).is_err());
        for path in ["", ".", "/etc/passwd", "../x", "a/../../x", "a\\b", "a\0b"] {
            assert_eq!(segments(path), None, "{path}");
        }
    }

    #[test]
    fn many_stars_do_not_explode() {
        let pattern = PathPattern::read(&("**/a/".repeat(100) + "b")).unwrap();
        assert!(!pattern.matches(&vec!["a"; 10_000]));
    }

    /// The definition, slow and obvious.
    fn obvious(pattern: &[String], path: &[&str]) -> bool {
        match pattern.split_first() {
            None => path.is_empty(),
            Some((first, rest)) if first == "**" => {
                (0..=path.len()).any(|taken| obvious(rest, &path[taken..]))
            }
            Some((first, rest)) => path
                .split_first()
                .is_some_and(|(name, path_rest)| glob::matches(first, name) && obvious(rest, path_rest)),
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(
            pattern in proptest::collection::vec("\\*\\*|[ab]|\\*|a\\*", 1..6),
            path in proptest::collection::vec("[ab]{1,2}", 1..7),
        ) {
            let pattern = PathPattern::read(&pattern.join("/")).unwrap();
            let names: Vec<&str> = path.iter().map(String::as_str).collect();
            prop_assert_eq!(pattern.matches(&names), obvious(&pattern.segments, &names));
        }

        #[test]
        fn what_matches_a_folder_matches_all_in_it(pattern in "[ab*?/.]{1,8}", path in "[ab]{1,2}(/[ab]{1,2}){0,3}", below in "[ab]{1,2}") {
            if let Ok(read) = PathPattern::read(&pattern) {
                let names: Vec<&str> = path.split('/').collect();
                let mut deeper = names.clone();
                deeper.push(&below);
                prop_assert!(!read.matches(&names) || read.matches(&deeper));
            }
        }
    }
}
