//! The same tests as an ordinary user, where these run as root.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// User and group without any rights.
const NOBODY: u32 = 65_534;

fn as_nobody(filter: &str, at_least: usize) {
    if !rustix::process::geteuid().is_root() {
        println!("not run: these tests already run as an ordinary user");
        return;
    }
    // The build folder may be closed to others.
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("tests");
    std::fs::copy(crate::support::own_program(), &program).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = Command::new(&program)
        .args([filter, "--test-threads=2"])
        .current_dir("/")
        .env("HOME", "/nonexistent")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let passed = text.matches("... ok").count();
    assert!(passed >= at_least, "only {passed} tests ran:\n{text}");
}

#[test]
fn battery_as_an_ordinary_user() {
    as_nobody("battery::", 16);
}

#[test]
fn endings_as_an_ordinary_user() {
    as_nobody("endings::", 8);
}

#[test]
fn reports_as_an_ordinary_user() {
    as_nobody("reports::", 7);
}

#[test]
fn claims_as_an_ordinary_user() {
    as_nobody("claims::", 4);
}

#[test]
fn leaks_as_an_ordinary_user() {
    as_nobody("leaks::", 1);
}
