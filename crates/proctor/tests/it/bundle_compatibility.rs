//! Bundles of format 1 that an earlier version wrote verify with this one. Another evaluator made their decisions, so none is derived again.

use std::path::{Path, PathBuf};
use std::process::Command;

use proctor_core::json::Json;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn verify(bundle: &str, trust: &[&str]) -> (Option<i32>, Json) {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(crate::support::binary())
        .args(["audit", "verify", "--json"])
        .arg(fixture(bundle))
        .args(trust)
        .current_dir(folder.path())
        .output()
        .unwrap();
    (output.status.code(), Json::parse(&output.stdout).unwrap())
}

#[test]
fn bundles_of_the_first_version_verify_and_their_decisions_count_as_undecidable() {
    let trust = fixture("bundle-v1.trust");
    let trust = ["--trust", trust.to_str().unwrap()];
    for (bundle, decisions) in [("bundle-v1.bundle", 12), ("bundle-v1-session-one.bundle", 6)] {
        let (code, report) = verify(bundle, &trust);
        assert_eq!(code, Some(13), "{bundle}: {report}");
        let counted = |name: &str| report.pointer(&format!("/derivation/{name}")).and_then(Json::as_u64);
        assert_eq!((counted("same"), counted("different")), (Some(0), Some(0)), "{bundle}: {report}");
        assert_eq!(counted("undecidable"), Some(decisions), "{bundle}: {report}");
    }
    // Without the key that signed it, a bundle shows nothing about who wrote it.
    assert_eq!(verify("bundle-v1.bundle", &[]).0, Some(13));
}
