//! JSON paths of values, kept as links on the stack: a path becomes text only if something is wrong there.

use std::fmt;

/// Longest name that is shown whole.
const MAX_SHOWN: usize = 64;

/// The path of a value.
#[derive(Clone, Copy)]
pub(super) enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    pub(super) fn key(&'a self, name: &'a str) -> Path<'a> {
        Path::Key(self, name)
    }

    pub(super) fn index(&'a self, index: usize) -> Path<'a> {
        Path::Index(self, index)
    }
}

impl fmt::Display for Path<'_> {
    /// Recursion is bounded by the depth limit of the YAML parser.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => out.write_str("$"),
            Path::Index(parent, index) => write!(out, "{parent}[{index}]"),
            Path::Key(parent, name) => {
                let plain = !name.starts_with(|first: char| first.is_ascii_digit())
                    && name.chars().all(|part| part == '_' || part.is_ascii_alphanumeric());
                if plain && !name.is_empty() && name.len() <= MAX_SHOWN {
                    write!(out, "{parent}.{name}")
                } else {
                    write!(out, "{parent}['{}']", proctor_core::printable::shown(name, MAX_SHOWN))
                }
            }
        }
    }
}
