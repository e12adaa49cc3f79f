//! Policy sources: texts with a role and a name. The caller reads them from files.

use proctor_core::digest::Digest;

/// Role of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SourceRole {
    /// A policy document.
    Document,
    /// A Cedar policy set that a document names.
    Cedar,
    /// A Rego module that a document names.
    Rego,
}

impl SourceRole {
    /// The word for it in records.
    pub const fn word(self) -> &'static str {
        match self {
            SourceRole::Document => "document",
            SourceRole::Cedar => "cedar",
            SourceRole::Rego => "rego",
        }
    }

    /// The role of that word.
    pub fn from_word(word: &str) -> Option<SourceRole> {
        [SourceRole::Document, SourceRole::Cedar, SourceRole::Rego]
            .into_iter()
            .find(|role| role.word() == word)
    }
}

/// A policy source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// Role.
    pub role: SourceRole,
    /// Name shown in messages, usually the file.
    pub name: String,
    /// Content.
    pub bytes: Vec<u8>,
}

impl Source {
    /// A policy document.
    pub fn document(name: &str, text: &str) -> Source {
        Source { role: SourceRole::Document, name: name.to_owned(), bytes: text.as_bytes().to_vec() }
    }

    /// A module.
    pub fn module(role: SourceRole, name: &str, text: &str) -> Source {
        Source { role, name: name.to_owned(), bytes: text.as_bytes().to_vec() }
    }

    /// The last part of the name: the same when the files are moved to another folder.
    pub(crate) fn file_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }
}

/// The name that a module has as a source: its path, from the folder of the document that names it.
///
/// ```
/// use proctor_policy::policy::module_name;
/// assert_eq!(module_name("policies/main.yaml", "cedar/files.cedar"), "policies/cedar/files.cedar");
/// assert_eq!(module_name("main.yaml", "files.cedar"), "files.cedar");
/// assert_eq!(module_name("/etc/p/main.yaml", "../m.rego"), "/etc/m.rego");
/// ```
pub fn module_name(document: &str, path: &str) -> String {
    let folder = document.rsplit_once('/').map_or("", |(folder, _)| folder);
    let joined = if path.starts_with('/') || folder.is_empty() && !document.starts_with('/') {
        path.to_owned()
    } else {
        format!("{folder}/{path}")
    };
    proctor_facts::path::absolute(&joined, "")
}

/// The digest of a set of sources. Folders do not count, so that a policy is the same wherever it lies.
pub fn sources_digest(sources: &[Source]) -> Digest {
    let mut lines: Vec<String> = sources
        .iter()
        .map(|source| {
            format!("{}\0{}\0{}\n", source.role.word(), source.file_name(), Digest::of(&source.bytes))
        })
        .collect();
    lines.sort();
    Digest::of(lines.concat().as_bytes())
}
