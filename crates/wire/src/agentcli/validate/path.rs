//! Paths of findings, built only when they are needed.

use std::fmt::{self, Display, Write};

/// Longest key of a manifest in a path: a key can be as long as the document.
const LONGEST_KEY: usize = 200;

/// A place in a document: a list of steps from the end to the beginning.
#[derive(Debug, Clone, Copy)]
pub(super) enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    pub(super) const fn key(&'a self, name: &'a str) -> Path<'a> {
        Path::Key(self, name)
    }

    pub(super) const fn index(&'a self, index: usize) -> Path<'a> {
        Path::Index(self, index)
    }
}

impl Display for Path<'_> {
    // Recursion is as deep as the tables of manifests.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => out.write_char('$'),
            Path::Index(parent, index) => write!(out, "{parent}[{index}]"),
            Path::Key(parent, name) => {
                write!(out, "{parent}.")?;
                match name.char_indices().nth(LONGEST_KEY) {
                    None => out.write_str(name),
                    Some((end, _)) => write!(out, "{}…", name.get(..end).unwrap_or_default()),
                }
            }
        }
    }
}
