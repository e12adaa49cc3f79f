//! The rules of artifacts.

use proctor_core::json::Json;

use super::{Artifact, Content, check_content, check_path};
use crate::atp::check::{Basis, Checker, Fields, is_longer, shortened, wrong_type};
use crate::atp::findings::{ProblemKind, WarningKind};
use crate::atp::limits::{MAX_ARTIFACT_NAME, MAX_CONTENT, MAX_CONTENT_HASH, MAX_CONTENT_TYPE, MAX_PATH};
use crate::atp::object::{remove_nulls, text};
use crate::atp::path::Path;

const TYPES: &[&str] = &["file", "structured", "reference"];

pub(in crate::atp) fn check(checker: &mut Checker, json: &Json, path: &Path<'_>) {
    let Some(mut fields) = checker.object(Basis::Schema, json, path) else { return };
    let Some(value) = fields.required("type") else { return };
    let Some(kind) = fields.as_text("type", value) else { return };
    match kind {
        "file" => {
            check_path_member(&mut fields, |path| check_path(path).map_err(ProblemKind::from));
            check_claims(&mut fields);
            fields.text("content", MAX_CONTENT);
            check_inline(fields.checker, json, path);
        }
        "structured" => check_structured(&mut fields),
        "reference" => {
            check_path_member(&mut fields, check_reference);
            check_claims(&mut fields);
        }
        other => {
            let problem = ProblemKind::NotOneOf { found: shortened(other), allowed: TYPES };
            fields.problem_at("type", Basis::Schema, problem);
        }
    }
}

/// Removes nulls that stand for absent members.
pub(in crate::atp) fn normalise(json: &mut Json) {
    let optional: &[&str] = match text(json, "type") {
        Some("file") => &["content_type", "size_bytes", "content_hash", "content"],
        Some("structured") => &["schema", "content_type"],
        Some("reference") => &["content_type", "size_bytes", "content_hash"],
        _ => &[],
    };
    remove_nulls(json, optional);
}

fn check_structured(fields: &mut Fields<'_, '_, '_>) {
    if let Some(name) = fields.required_text("name", MAX_ARTIFACT_NAME)
        && name.contains(['/', '\\', '\0'])
    {
        fields.problem_at("name", Basis::Rule, ProblemKind::SlashInName);
    }
    fields.text("schema", MAX_PATH);
    if let Some(data) = fields.required("data")
        && data.as_object().is_none()
    {
        fields.problem_at("data", Basis::Schema, wrong_type("an object", data));
    }
    // A member that only released agents have.
    fields.basis = Basis::Rule;
    fields.text("content_type", MAX_CONTENT_TYPE);
}

fn check_path_member(fields: &mut Fields<'_, '_, '_>, rule: fn(&str) -> Result<(), ProblemKind>) {
    if let Some(value) = fields.required("path")
        && let Some(path) = fields.as_text("path", value)
        && let Err(problem) = rule(path)
    {
        fields.problem_at("path", Basis::Rule, problem);
    }
}

/// Absolute paths and URLs are allowed: whether the target may be read is decided where it is read.
fn check_reference(path: &str) -> Result<(), ProblemKind> {
    if path.trim().is_empty() {
        Err(ProblemKind::Empty)
    } else if is_longer(path, MAX_PATH) {
        Err(ProblemKind::TooLong { most: MAX_PATH })
    } else if path.contains('\0') {
        Err(ProblemKind::Nul)
    } else {
        Ok(())
    }
}

fn check_claims(fields: &mut Fields<'_, '_, '_>) {
    fields.text("content_type", MAX_CONTENT_TYPE);
    fields.count("size_bytes");
    fields.text("content_hash", MAX_CONTENT_HASH);
}

/// A mismatch is only a warning here: the document's own example has one. Runs decide by the warning's kind.
fn check_inline(checker: &mut Checker, json: &Json, path: &Path<'_>) {
    let Some(artifact @ Artifact::File(file)) = Artifact::view(json) else { return };
    let Some(content) = file.content else { return };
    let found = check_content(artifact.claims(), Content::Inline(content));
    if found.size {
        checker.warn(&path.member("size_bytes"), WarningKind::SizeMismatch);
    }
    if found.hash {
        checker.warn(&path.member("content_hash"), WarningKind::HashMismatch);
    }
    if found.hash_not_checked {
        checker.warn(&path.member("content_hash"), WarningKind::HashNotChecked);
    }
}
