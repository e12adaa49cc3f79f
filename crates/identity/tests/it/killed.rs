//! `cleanup` after `kill -9`.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use proctor_core::json::Json;
use proctor_core::random::SeededRandomness;
use proctor_core::time::{ManualClock, Timestamp};
use proctor_identity::environment::Environment;
use proctor_identity::presentation::{prepare, sweep};
use proctor_identity::{ResolveOptions, Resolver};

const FOLDER: &str = "PROCTOR_TEST_CREDENTIALS";
const CLEANUP: &str = "PROCTOR_TEST_CLEANUP";

/// Child process of the test below: presents a credential and waits to be killed. Alone it does nothing.
#[tokio::test]
async fn presents_and_waits() {
    let (Ok(folder), Ok(cleanup)) = (std::env::var(FOLDER), std::env::var(CLEANUP)) else { return };
    let identity = r#"{"provider":"env-bearer","auth":{"provider_config":{"token_env":"MY_TOKEN"}}}"#;
    let clock = Arc::new(ManualClock::new(Timestamp::from_micros(0)));
    let resolver = Resolver::new(Environment::new([("MY_TOKEN", "hunter2")], "/"), clock);
    let identity = Json::parse(identity.as_bytes()).unwrap();
    let session = resolver.resolve(&identity, &ResolveOptions::default()).await.unwrap();
    let binding = Json::object()
        .with("source", "credentials.access_token.value")
        .with("target", Json::object().with("kind", "file").with("name", "token"));
    let presentation = Json::object().with("cleanup", cleanup).with("bindings", vec![binding]);
    let presented = prepare(&session, &presentation, Path::new(&folder), &SeededRandomness::new(7)).unwrap();
    println!("\nPRESENTED {}", presented.files[0].display());
    let mut rest = Vec::new();
    let _ = std::io::stdin().read_to_end(&mut rest);
}

#[test]
fn the_next_start_removes_what_a_killed_run_left_behind() {
    for (cleanup, stays) in [("always", false), ("on-failure", false), ("on-success", true), ("never", true)]
    {
        let folder =
            tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(0o700)).tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::presents_and_waits", "--nocapture"])
            .env(FOLDER, folder.path())
            .env(CLEANUP, cleanup)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let file = lines
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("PRESENTED ").map(PathBuf::from))
            .expect("the child presents its credential");
        // A sweep while the run lives leaves its files alone.
        assert_eq!(sweep(folder.path()).unwrap(), 0);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "hunter2");

        child.kill().unwrap();
        child.wait().unwrap();
        assert!(file.exists(), "a killed process cleans nothing up");
        assert_eq!(sweep(folder.path()).unwrap(), usize::from(!stays));
        assert_eq!(file.exists(), stays, "{cleanup}");
    }
}
