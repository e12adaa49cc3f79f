//! Documents that apply to a caller.

use proctor_core::session::Caller;

use super::{Policy, SourceRole, covers};
use crate::document::{Document, DocumentScope};

impl Policy {
    /// Documents that apply to a caller, the narrowest last. Those for a single tool apply to everybody.
    pub fn documents_for(&self, caller: &Caller) -> Vec<&Document> {
        let speaks = |document: &&Document| {
            matches!(document.scope, DocumentScope::Tool(_)) || covers(&document.scope, caller)
        };
        let mut documents: Vec<&Document> = self.documents.iter().filter(speaks).collect();
        documents.sort_by_key(|document| match document.scope {
            DocumentScope::Tool(_) => 0,
            DocumentScope::Global => 1,
            DocumentScope::Org(_) => 2,
            DocumentScope::Team(_) => 3,
            DocumentScope::Agent(_) => 4,
        });
        documents
    }

    /// Text of the documents, as written; several are separated as YAML separates documents.
    pub fn text_for(&self, caller: &Caller) -> Vec<u8> {
        let mut text: Vec<u8> = Vec::new();
        for document in self.documents_for(caller) {
            let is_its =
                |source: &&super::Source| source.role == SourceRole::Document && source.name == document.file;
            let Some(source) = self.sources.iter().find(is_its) else { continue };
            if !text.is_empty() {
                if !text.ends_with(b"\n") {
                    text.push(b'\n');
                }
                text.extend(b"---\n");
            }
            text.extend(&source.bytes);
        }
        text
    }
}

impl Document {
    /// Title: the document's name, else its file's.
    pub fn title(&self) -> &str {
        if self.name.is_empty() { self.file.rsplit('/').next().unwrap_or(&self.file) } else { &self.name }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Source;

    #[test]
    fn the_narrowest_document_is_last() {
        let sources = vec![
            Source::document("p/a.yaml", "scope: team:ml\ndefault: ask\n"),
            Source::document("p/b.yaml", "default: deny"),
            Source::document("p/c.yaml", "scope: team:other\ndefault: allow\n"),
        ];
        let policy = Policy::compile(sources).unwrap();
        let caller = Caller { team: "ml".into(), ..Caller::default() };
        let titles: Vec<&str> = policy.documents_for(&caller).iter().map(|it| it.title()).collect();
        assert_eq!(titles, ["b.yaml", "a.yaml"]);
        assert_eq!(policy.text_for(&caller), b"default: deny\n---\nscope: team:ml\ndefault: ask\n");
    }
}
