use std::os::unix::fs::{MetadataExt, PermissionsExt};

use proctor_core::random::SeededRandomness;

use super::*;
use crate::environment::Environment;
use crate::{ResolveOptions, Resolver};

const TOKEN: &str = "hunter2/token";

async fn session() -> Session {
    let identity = Json::parse(
        br#"{"provider":"env-bearer","subject":{"principal":"agent://a","kind":"service"},
             "auth":{"provider_config":{"token_env":"MY_TOKEN"}}}"#,
    )
    .unwrap();
    let clock = std::sync::Arc::new(proctor_core::time::ManualClock::new(
        proctor_core::time::Timestamp::from_micros(0),
    ));
    let resolver = Resolver::new(Environment::new([("MY_TOKEN", TOKEN)], "/"), clock);
    resolver.resolve(&identity, &ResolveOptions::default()).await.unwrap()
}

/// Seeds that differ: names of folders are random.
static SEED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);

async fn present(folder: &Path, presentation: &str) -> Result<Presented, PresentationError> {
    let presentation = Json::parse(presentation.as_bytes()).unwrap();
    let seed = SEED.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    prepare(&session().await, &presentation, folder, &SeededRandomness::new(seed))
}

fn binding(target: &str, more: &str) -> String {
    format!(r#"{{"source":"credentials.access_token.value","target":{target}{more}}}"#)
}

fn private() -> tempfile::TempDir {
    tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(0o700)).tempdir().unwrap()
}

#[tokio::test]
async fn values_reach_environment_files_and_standard_input() {
    let folder = private();
    let list = [
        binding(r#"{"kind":"env","name":"RAW"}"#, ""),
        binding(r#"{"kind":"env","name":"QUOTED"}"#, r#","format":"json""#),
        binding(r#"{"kind":"env","name":"ENCODED"}"#, r#","format":"base64""#),
        binding(r#"{"kind":"file","name":"token.txt","expose_as":"TOKEN_FILE"}"#, ""),
        binding(r#"{"kind":"file","prefix":"aws"}"#, ""),
        binding(r#"{"kind":"stdin"}"#, ""),
        binding(r#"{"kind":"none"}"#, ""),
    ];
    let presented = present(folder.path(), &format!(r#"{{"bindings":[{}]}}"#, list.join(","))).await.unwrap();
    let env: Vec<(&str, &str)> =
        presented.env.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    let file = presented.files[0].to_str().unwrap().to_owned();
    assert_eq!(
        env,
        [
            ("RAW", TOKEN),
            ("QUOTED", "\"hunter2/token\""),
            ("ENCODED", "aHVudGVyMi90b2tlbg=="),
            ("TOKEN_FILE", &file)
        ]
    );
    assert_eq!(presented.stdin, Some(Secret::new(TOKEN)));
    assert!(presented.files[1].file_name().unwrap().to_str().unwrap().starts_with("aws-"));
    for path in &presented.files {
        assert_eq!(std::fs::read_to_string(path).unwrap(), TOKEN);
        assert_eq!(std::fs::metadata(path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
    }
    let shown = format!("{presented:?} {}", presented.describe());
    assert!(!shown.contains("hunter2") && !shown.contains("aHVudGVy"), "{shown}");
    presented.cleanup(Outcome::Success).unwrap();
    assert!(!Path::new(&file).exists());
}

#[tokio::test]
async fn cleanup_follows_the_outcome() {
    for (word, outcome, stays) in [
        ("always", Outcome::Success, false),
        ("always", Outcome::Failure, false),
        ("on-success", Outcome::Success, false),
        ("on-success", Outcome::Failure, true),
        ("on-failure", Outcome::Success, true),
        ("on-failure", Outcome::Failure, false),
        ("never", Outcome::Success, true),
        ("never", Outcome::Failure, true),
    ] {
        let folder = private();
        let bindings = binding(r#"{"kind":"file","name":"token"}"#, "");
        let text = format!(r#"{{"cleanup":"{word}","bindings":[{bindings}]}}"#);
        let presented = present(folder.path(), &text).await.unwrap();
        let file = presented.files[0].clone();
        presented.cleanup(outcome).unwrap();
        assert_eq!(file.exists(), stays, "{word} {outcome:?}");
        // A sweep must not remove what a finished run kept on purpose, except what a failed one would lose.
        let again = present(folder.path(), &text).await.unwrap();
        let dropped = again.files[0].clone();
        drop(again);
        assert_eq!(dropped.exists(), matches!(word, "on-success" | "never"), "{word} dropped");
    }
}

#[tokio::test]
async fn a_sweep_leaves_living_runs_and_foreign_files() {
    let folder = private();
    let bindings = binding(r#"{"kind":"file","name":"token"}"#, "");
    let living = present(folder.path(), &format!(r#"{{"bindings":[{bindings}]}}"#)).await.unwrap();
    let dead = folder.path().join(format!("always-{}", "0".repeat(32)));
    let kept = folder.path().join(format!("never-{}", "0".repeat(32)));
    let doomed = folder.path().join("remove-never-x");
    let foreign = folder.path().join("always-notes");
    let target = private();
    std::fs::write(target.path().join("precious"), "x").unwrap();
    std::os::unix::fs::symlink(target.path(), folder.path().join(format!("always-{}", "1".repeat(32))))
        .unwrap();
    for path in [&dead, &kept, &doomed, &foreign] {
        std::fs::create_dir(path).unwrap();
        std::fs::write(path.join("token"), TOKEN).unwrap();
    }
    assert_eq!(sweep(folder.path()).unwrap(), 2);
    assert!(living.files[0].exists() && kept.exists() && foreign.exists());
    assert!(!dead.exists() && !doomed.exists());
    assert!(target.path().join("precious").exists());
    assert_eq!(sweep(&folder.path().join("nowhere")).unwrap(), 0);
}

#[tokio::test]
async fn folders_that_others_can_use_are_refused() {
    let folder = private();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let bindings = binding(r#"{"kind":"file","name":"token"}"#, "");
    let error = present(folder.path(), &format!(r#"{{"bindings":[{bindings}]}}"#)).await.unwrap_err();
    assert_eq!(error.code(), Code::PresentationTargetInvalid);
    assert!(sweep(folder.path()).is_err());
}

#[tokio::test]
async fn unfit_bindings_have_their_codes() {
    let folder = private();
    let env = |name: &str| binding(&format!(r#"{{"kind":"env","name":"{name}"}}"#), "");
    for (bindings, code) in [
        (binding(r#"{"kind":"env","name":"A"}"#, r#","format":"xml""#), Code::PresentationFormatUnsupported),
        (r#"{"target":{"kind":"stdin"}}"#.to_owned(), Code::PresentationBindingInvalid),
        (r#"{"source":"credentials.access_token.value"}"#.to_owned(), Code::PresentationBindingInvalid),
        (
            r#"{"source":"credentials","target":{"kind":"stdin"}}"#.to_owned(),
            Code::PresentationBindingInvalid,
        ),
        (
            r#"{"source":"delegation_chain","target":{"kind":"stdin"}}"#.to_owned(),
            Code::PresentationSourceForbidden,
        ),
        (
            r#"{"source":"credentials.x.value","target":{"kind":"stdin"}}"#.to_owned(),
            Code::PresentationBindingMissing,
        ),
        (binding(r#"{"kind":"socket"}"#, ""), Code::PresentationTargetUnsupported),
        (env("1A"), Code::PresentationTargetInvalid),
        (env("A=B"), Code::PresentationTargetInvalid),
        (format!("{},{}", env("A"), env("A")), Code::PresentationTargetInvalid),
        (binding(r#"{"kind":"file","name":"../token"}"#, ""), Code::PresentationTargetInvalid),
        (binding(r#"{"kind":"file","name":".hidden"}"#, ""), Code::PresentationTargetInvalid),
        (binding(r#"{"kind":"file","prefix":"a/b"}"#, ""), Code::PresentationTargetInvalid),
        (
            [r#"{"kind":"stdin"}"#; 2].map(|target| binding(target, "")).join(","),
            Code::PresentationStdinConflict,
        ),
        (
            [r#"{"kind":"file","name":"a"}"#; 2].map(|target| binding(target, "")).join(","),
            Code::PresentationTargetInvalid,
        ),
    ] {
        let error = present(folder.path(), &format!(r#"{{"bindings":[{bindings}]}}"#)).await.unwrap_err();
        assert_eq!(error.code(), code, "{bindings}: {error}");
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }
    let optional = r#"{"source":"credentials.x.value","required":false,"target":{"kind":"stdin"}}"#;
    assert!(
        present(folder.path(), &format!(r#"{{"bindings":[{optional}]}}"#)).await.unwrap().stdin.is_none()
    );
    // Failed presentations leave nothing behind.
    let left =
        std::fs::read_dir(folder.path()).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir());
    assert_eq!(left.count(), 0);
}

#[tokio::test]
async fn credentials_are_masked_whatever_the_manifest_says() {
    let folder = private();
    let list = [
        binding(r#"{"kind":"env","name":"A"}"#, r#","redact":false"#),
        r#"{"source":"subject.principal","redact":false,"target":{"kind":"env","name":"B"}}"#.to_owned(),
    ];
    let presented = present(folder.path(), &format!(r#"{{"bindings":[{}]}}"#, list.join(","))).await.unwrap();
    assert!(presented.secrets().contains(&Secret::new(TOKEN)));
    assert!(!presented.secrets().contains(&Secret::new("agent://a")));
}
