//! Artifacts of a response: files, structured data, and references to large files.

mod check;
mod content;
mod path;

use proctor_core::json::Json;

use super::number::Number;
use super::object::{put, text};

pub(super) use check::{check, normalise};
pub use content::{Claims, Content, Mismatches, check_content, check_measured};
pub use path::{PathProblem, check_path};

/// A produced artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Artifact<'a> {
    /// A file of the workspace, or its inline content.
    File(FileArtifact<'a>),
    /// Structured data.
    Structured(StructuredArtifact<'a>),
    /// A file that is too large for a message.
    Reference(ReferenceArtifact<'a>),
}

/// A file of the workspace, or its inline content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileArtifact<'a> {
    /// Path relative to the workspace.
    pub path: &'a str,
    /// Media type.
    pub content_type: Option<&'a str>,
    /// Size of the content.
    pub size_bytes: Option<u64>,
    /// Hash of the content, like `sha256:…`.
    pub content_hash: Option<&'a str>,
    /// The content as text; base64 if it is binary. Nothing tells the two apart.
    pub content: Option<&'a str>,
}

/// Structured data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StructuredArtifact<'a> {
    /// The name.
    pub name: &'a str,
    /// Name of the data's schema.
    pub schema: Option<&'a str>,
    /// The data, an object.
    pub data: &'a Json,
}

/// A file that is too large for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReferenceArtifact<'a> {
    /// Path or URL. It may lie outside of the workspace, and must not be read then.
    pub path: &'a str,
    /// Media type.
    pub content_type: Option<&'a str>,
    /// Size of the content.
    pub size_bytes: Option<u64>,
    /// Hash of the content, like `sha256:…`.
    pub content_hash: Option<&'a str>,
}

impl<'a> Artifact<'a> {
    /// The artifact of a JSON object; none if it is not a valid one.
    pub fn view(json: &'a Json) -> Option<Artifact<'a>> {
        let size_bytes = json.get("size_bytes").and_then(Number::of).and_then(Number::as_u64);
        let content_type = text(json, "content_type");
        let content_hash = text(json, "content_hash");
        match text(json, "type")? {
            "file" => Some(Artifact::File(FileArtifact {
                path: text(json, "path")?,
                content_type,
                size_bytes,
                content_hash,
                content: text(json, "content"),
            })),
            "structured" => Some(Artifact::Structured(StructuredArtifact {
                name: text(json, "name")?,
                schema: text(json, "schema"),
                data: json.get("data")?,
            })),
            "reference" => Some(Artifact::Reference(ReferenceArtifact {
                path: text(json, "path")?,
                content_type,
                size_bytes,
                content_hash,
            })),
            _ => None,
        }
    }

    /// The object of a response; absent members are left out.
    pub fn to_json(&self) -> Json {
        let mut json = Json::object();
        match self {
            Artifact::File(file) => {
                json.push("type", "file");
                json.push("path", file.path);
                put_claims(&mut json, file.content_type, file.size_bytes, file.content_hash);
                put(&mut json, "content", file.content);
            }
            Artifact::Structured(structured) => {
                json.push("type", "structured");
                json.push("name", structured.name);
                put(&mut json, "schema", structured.schema);
                json.push("data", structured.data.clone());
            }
            Artifact::Reference(reference) => {
                json.push("type", "reference");
                json.push("path", reference.path);
                put_claims(&mut json, reference.content_type, reference.size_bytes, reference.content_hash);
            }
        }
        json
    }

    /// The path of a file or reference, or the name of structured data.
    pub fn name(&self) -> &'a str {
        match self {
            Artifact::File(file) => file.path,
            Artifact::Structured(structured) => structured.name,
            Artifact::Reference(reference) => reference.path,
        }
    }

    /// Claims about the content of a file or reference.
    pub fn claims(&self) -> Claims<'a> {
        match self {
            Artifact::File(file) => Claims { size_bytes: file.size_bytes, content_hash: file.content_hash },
            Artifact::Structured(_) => Claims::default(),
            Artifact::Reference(reference) => {
                Claims { size_bytes: reference.size_bytes, content_hash: reference.content_hash }
            }
        }
    }
}

fn put_claims(
    json: &mut Json,
    content_type: Option<&str>,
    size_bytes: Option<u64>,
    content_hash: Option<&str>,
) {
    put(json, "content_type", content_type);
    put(json, "size_bytes", size_bytes);
    put(json, "content_hash", content_hash);
}

#[cfg(test)]
mod tests;
