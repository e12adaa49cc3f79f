//! Claims of artifacts about their size and hash, checked against inline content and the files of the workspace.

use proctor_core::json::Json;
use proctor_wire::atp::artifact::{Artifact, Claims, Content, Mismatches, check_content, check_measured};

use crate::checks::{FilesError, WorkspacePath};
use crate::folder::Folder;

/// The first artifact with a claim that does not hold, or that nothing in the response and the workspace shows.
pub(super) fn wrong(response: &Json, folder: &Folder<'_>) -> Option<String> {
    let artifacts = response.get("artifacts").and_then(Json::as_array).unwrap_or_default();
    artifacts.iter().enumerate().find_map(|(index, artifact)| {
        let (member, reason) = wrong_claim(&Artifact::view(artifact)?, folder)?;
        Some(format!("$.artifacts[{index}].{member}: {reason}"))
    })
}

/// The member that does not hold, and why.
fn wrong_claim(artifact: &Artifact<'_>, folder: &Folder<'_>) -> Option<(&'static str, String)> {
    let claims = artifact.claims();
    if claims == Claims::default() {
        return None;
    }
    let member = if claims.size_bytes.is_some() { "size_bytes" } else { "content_hash" };
    let (found, size) = match artifact {
        Artifact::File(file) if file.content.is_some() => {
            let content = file.content.unwrap_or_default();
            (check_content(claims, Content::Inline(content)), content.len() as u64)
        }
        // Structured data has no claims; what a reference names outside of the workspace is not read.
        Artifact::Structured(_) => return None,
        Artifact::File(_) | Artifact::Reference(_) => {
            if artifact.name().contains("://") {
                return None;
            }
            let Ok(path) = WorkspacePath::parse(artifact.name()) else { return None };
            let unchecked = |error: FilesError| Some((member, format!("it cannot be checked: {error}")));
            match folder.size(&path) {
                Ok(Some(size)) if claims.size_bytes.is_some_and(|claimed| claimed != size) => {
                    (Mismatches { size: true, ..Mismatches::default() }, size)
                }
                // A file is read only for a hash that can be compared.
                Ok(Some(size)) if has_known_hash(claims) => match folder.digest(&path) {
                    Ok(digest) => (check_measured(claims, size, || digest), size),
                    Err(error) => return unchecked(error),
                },
                Ok(Some(size)) => {
                    let hash_not_checked = claims.content_hash.is_some();
                    (Mismatches { hash_not_checked, ..Mismatches::default() }, size)
                }
                Ok(None) => {
                    let reason =
                        "it cannot be checked: the artifact has no content, and the workspace no such file";
                    return Some((member, reason.to_owned()));
                }
                Err(error) => return unchecked(error),
            }
        }
    };
    if found.size {
        let claimed = claims.size_bytes.unwrap_or_default();
        return Some((
            "size_bytes",
            format!("the content has another size: {size} bytes, and not {claimed}"),
        ));
    }
    if found.hash {
        return Some(("content_hash", "the content has another hash".to_owned()));
    }
    let unknown = "it cannot be checked: only `sha256:` and 64 hexadecimal digits are known";
    found.hash_not_checked.then(|| ("content_hash", unknown.to_owned()))
}

fn has_known_hash(claims: Claims<'_>) -> bool {
    let known = claims.content_hash.and_then(|hash| hash.split_once(':'));
    known.is_some_and(|(algorithm, _)| algorithm.eq_ignore_ascii_case("sha256"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(folder: &Folder<'_>, artifact: &str) -> Option<String> {
        let response = Json::parse(format!("{{\"artifacts\": [{artifact}]}}").as_bytes()).unwrap();
        wrong(&response, folder)
    }

    #[test]
    fn claims_that_cannot_be_checked_do_not_hold() {
        let base = tempfile::tempdir().unwrap();
        std::fs::write(base.path().join("a.txt"), "hello").unwrap();
        // Larger than any buffer, and sparse.
        std::fs::File::create(base.path().join("big")).unwrap().set_len(70 << 20).unwrap();
        let folder = Folder::new(base.path());
        let hello = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        let zeros = format!("sha256:{}", "0".repeat(64));
        for (artifact, wanted) in [
            (r#"{"type": "file", "path": "a.txt", "size_bytes": 5}"#.to_owned(), None),
            (format!(r#"{{"type": "file", "path": "a.txt", "content_hash": "{hello}"}}"#), None),
            (
                format!(r#"{{"type": "file", "path": "x", "content": "hello", "content_hash": "{hello}"}}"#),
                None,
            ),
            (r#"{"type": "file", "path": "gone.txt"}"#.to_owned(), None),
            (r#"{"type": "reference", "path": "https://host/x", "size_bytes": 7}"#.to_owned(), None),
            (r#"{"type": "reference", "path": "/srv/x", "content_hash": "md5:00"}"#.to_owned(), None),
            (
                r#"{"type": "file", "path": "gone.txt", "size_bytes": 5}"#.to_owned(),
                Some(
                    "size_bytes: it cannot be checked: the artifact has no content, and the workspace no such file",
                ),
            ),
            (
                format!(r#"{{"type": "reference", "path": "gone.txt", "content_hash": "{hello}"}}"#),
                Some(
                    "content_hash: it cannot be checked: the artifact has no content, and the workspace no such file",
                ),
            ),
            (
                r#"{"type": "file", "path": "big", "size_bytes": 5}"#.to_owned(),
                Some("size_bytes: the content has another size: 73400320 bytes, and not 5"),
            ),
            (
                format!(r#"{{"type": "file", "path": "big", "content_hash": "{zeros}"}}"#),
                Some("content_hash: the content has another hash"),
            ),
            (
                r#"{"type": "file", "path": "a.txt", "content_hash": "md5:00"}"#.to_owned(),
                Some(
                    "content_hash: it cannot be checked: only `sha256:` and 64 hexadecimal digits are known",
                ),
            ),
            (
                r#"{"type": "file", "path": "x", "content": "hello", "content_hash": "00"}"#.to_owned(),
                Some(
                    "content_hash: it cannot be checked: only `sha256:` and 64 hexadecimal digits are known",
                ),
            ),
        ] {
            let wanted = wanted.map(|wanted| format!("$.artifacts[0].{wanted}"));
            assert_eq!(problem(&folder, &artifact), wanted, "{artifact}");
        }
    }
}
