use proptest::prelude::*;

use super::*;

#[test]
fn paths_that_could_leave_the_workspace_are_refused() {
    for (path, problem) in [
        ("", PathProblem::Empty),
        (" ", PathProblem::Empty),
        ("/etc/passwd", PathProblem::Absolute),
        ("\\\\server\\share", PathProblem::Absolute),
        ("C:\\x", PathProblem::Absolute),
        ("c:x", PathProblem::Absolute),
        ("~", PathProblem::Home),
        ("~root/x", PathProblem::Home),
        ("..", PathProblem::Parent),
        ("a/../b", PathProblem::Parent),
        ("a\\..\\b", PathProblem::Parent),
        ("a/..", PathProblem::Parent),
        ("a\0b", PathProblem::Nul),
    ] {
        assert_eq!(check_path(path), Err(problem), "{path}");
    }
    assert_eq!(check_path(&"a".repeat(4097)), Err(PathProblem::TooLong));
    for path in ["report.md", "out/report.md", "./a", "a//b", ".hidden", "a..b", "...", "a/~b", "ä:b"] {
        assert_eq!(check_path(path), Ok(()), "{path}");
    }
    assert_eq!(check_path(&"a".repeat(4096)), Ok(()));
}

const HELLO: &str = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

fn claims(size: u64, hash: &str) -> Claims<'_> {
    Claims { size_bytes: Some(size), content_hash: Some(hash) }
}

#[test]
fn claims_hold_for_text_or_for_base64() {
    let clean = Mismatches::default();
    assert_eq!(check_content(claims(5, HELLO), Content::Inline("hello")), clean);
    for encoded in ["aGVsbG8=", "aGVsbG8", "aGVs\nbG8=\n"] {
        assert_eq!(check_content(claims(5, HELLO), Content::Inline(encoded)), clean, "{encoded}");
    }
    assert_eq!(check_content(claims(5, &HELLO.to_uppercase()), Content::Inline("hello")), clean);
    assert_eq!(check_content(claims(5, HELLO), Content::Bytes(b"hello")), clean);
    let wrong = check_content(claims(5, HELLO), Content::Bytes(b"aGVsbG8="));
    assert!(wrong.size && wrong.hash, "the bytes of a file are never decoded");
    let wrong = check_content(claims(6, HELLO), Content::Inline("hello"));
    assert_eq!(wrong, Mismatches { size: true, ..clean });
    let wrong = check_content(claims(8, HELLO), Content::Inline("aGVsbG8="));
    assert!(wrong.hash, "the size of the text and the hash of the bytes contradict each other");
    let other = check_content(claims(5, "md5:5d41402abc4b2a76b9719d911017c592"), Content::Inline("hello"));
    assert_eq!(other, Mismatches { hash_not_checked: true, ..clean });
    assert!(check_content(claims(5, "sha256:abc123..."), Content::Inline("hello")).hash);
    assert_eq!(check_content(Claims::default(), Content::Inline("hello")), clean);
}

#[test]
fn views_write_what_they_read() {
    let data = Json::object().with("x", 1u8);
    for artifact in [
        Artifact::File(FileArtifact {
            path: "a",
            size_bytes: Some(1),
            content: Some("x"),
            ..FileArtifact::default()
        }),
        Artifact::Structured(StructuredArtifact { name: "n", schema: Some("s"), data: &data }),
        Artifact::Reference(ReferenceArtifact {
            path: "https://host/large",
            content_hash: Some(HELLO),
            ..ReferenceArtifact::default()
        }),
    ] {
        let json = artifact.to_json();
        assert_eq!(Artifact::view(&json), Some(artifact), "{json}");
        assert!(!json.to_string().contains("null"), "{json}");
    }
    assert_eq!(Artifact::view(&Json::object().with("type", "other").with("path", "p")), None);
}

proptest! {
    #[test]
    fn true_claims_never_mismatch(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        use base64::Engine as _;
        let hash = format!("sha256:{}", proctor_core::digest::Digest::of(&bytes));
        let claimed = claims(bytes.len() as u64, &hash);
        prop_assert!(!check_content(claimed, Content::Bytes(&bytes)).is_wrong());
        let encoded = base64::engine::general_purpose::STANDARD.encode(&bytes);
        prop_assert!(!check_content(claimed, Content::Inline(&encoded)).is_wrong());
        if let Ok(text) = std::str::from_utf8(&bytes) {
            prop_assert!(!check_content(claimed, Content::Inline(text)).is_wrong());
        }
        let mut other = bytes.clone();
        other.push(0);
        let wrong = check_content(claimed, Content::Bytes(&other));
        prop_assert!(wrong.size && wrong.hash);
    }

    #[test]
    fn accepted_paths_stay_below_a_folder(path in "[a./\\\\~:C-]{0,12}") {
        if check_path(&path).is_ok() {
            let mut depth = 0i32;
            for segment in path.replace('\\', "/").split('/') {
                depth += match segment { "" | "." => 0, ".." => -1, _ => 1 };
                prop_assert!(depth >= 0);
            }
            prop_assert!(!path.starts_with('/'));
        }
    }
}
