//! Folder trees: modes, fixtures, snapshots, removal, sweeping.

use super::{CopyLimits, LeftOut, Workspace, WorkspaceError, sweep};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_tree_is_private_and_goes_with_its_value() {
    let base = tempfile::tempdir().unwrap();
    let workspace = Workspace::create(base.path()).unwrap();
    let root = workspace.root().to_owned();
    for folder in [&root, workspace.workspace(), workspace.tmp(), workspace.home()] {
        assert_eq!(mode(folder), 0o700);
    }
    let closed = workspace.workspace().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::write(closed.join("file"), "x").unwrap();
    set_mode(&closed, 0);
    drop(workspace);
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
}

#[test]
fn a_fixture_is_copied_with_links_and_executable_bits() {
    let base = tempfile::tempdir().unwrap();
    let fixture = base.path().join("fixture");
    fs::create_dir_all(fixture.join("deep/er")).unwrap();
    fs::write(fixture.join("deep/er/data"), "data").unwrap();
    fs::write(fixture.join("tool"), "#!/bin/sh\n").unwrap();
    set_mode(&fixture.join("tool"), 0o755);
    symlink("deep/er/data", fixture.join("link")).unwrap();
    let workspace = Workspace::create(&base.path().join("runs")).unwrap();
    workspace.copy_fixture(&fixture, CopyLimits::default()).unwrap();
    let copied = workspace.workspace();
    assert_eq!(fs::read_to_string(copied.join("link")).unwrap(), "data");
    assert_eq!(mode(&copied.join("tool")), 0o700);
    assert_eq!(mode(&copied.join("deep/er/data")), 0o600);
}

#[test]
fn a_fixture_that_leaves_its_folder_or_its_bounds_is_refused() {
    let base = tempfile::tempdir().unwrap();
    let fixture = base.path().join("fixture");
    fs::create_dir(&fixture).unwrap();
    fs::write(fixture.join("a"), "12345").unwrap();
    fs::write(fixture.join("b"), "67890").unwrap();
    let workspace = || Workspace::create(&base.path().join("runs")).unwrap();
    let few = CopyLimits { files: 1, bytes: 100 };
    let small = CopyLimits { files: 100, bytes: 9 };
    assert!(matches!(
        workspace().copy_fixture(&fixture, few),
        Err(WorkspaceError::TooLarge { limit: 1, .. })
    ));
    assert!(matches!(
        workspace().copy_fixture(&fixture, small),
        Err(WorkspaceError::TooLarge { limit: 9, .. })
    ));
    symlink("/etc/passwd", fixture.join("out")).unwrap();
    let error = workspace().copy_fixture(&fixture, CopyLimits::default()).unwrap_err();
    assert!(matches!(error, WorkspaceError::LinkLeaves { .. }), "{error}");
    assert_eq!(fs::read_dir(base.path().join("runs")).unwrap().count(), 0);
}

#[test]
fn a_snapshot_does_not_change_with_the_workspace() {
    let base = tempfile::tempdir().unwrap();
    let workspace = Workspace::create(base.path()).unwrap();
    let made = workspace.workspace();
    fs::write(made.join("result"), "before").unwrap();
    fs::create_dir(made.join("closed")).unwrap();
    fs::write(made.join("closed/file"), "kept").unwrap();
    set_mode(&made.join("closed/file"), 0);
    set_mode(&made.join("closed"), 0);
    symlink("/etc", made.join("out")).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(made.join("socket")).unwrap();
    let snapshot = workspace.snapshot().unwrap();
    fs::write(made.join("result"), "after").unwrap();
    assert_eq!(fs::read_to_string(snapshot.path().join("result")).unwrap(), "before");
    assert_eq!(fs::read_to_string(snapshot.path().join("closed/file")).unwrap(), "kept");
    assert_eq!(
        snapshot.left_out(),
        [
            LeftOut::Link { path: "out".into(), target: "/etc".into() },
            LeftOut::Special { path: "socket".into() }
        ]
    );
    drop((snapshot, socket, workspace));
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
}

#[test]
fn check_files_replace_what_a_run_put_in_their_place() {
    let base = tempfile::tempdir().unwrap();
    let check = base.path().join("check.py");
    let elsewhere = base.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(&check, "real").unwrap();
    let workspace = Workspace::create(&base.path().join("runs")).unwrap();
    fs::create_dir(workspace.workspace().join("inner")).unwrap();
    fs::create_dir(workspace.workspace().join("check.py")).unwrap();
    symlink("inner", workspace.workspace().join("tests")).unwrap();
    let snapshot = workspace.snapshot().unwrap();
    let limits = CopyLimits::default();
    snapshot.add(&check, Path::new("tests/check.py"), limits).unwrap();
    snapshot.add(&check, Path::new("check.py"), limits).unwrap();
    assert_eq!(fs::read_to_string(snapshot.path().join("tests/check.py")).unwrap(), "real");
    assert_eq!(fs::read_to_string(snapshot.path().join("check.py")).unwrap(), "real");
    assert!(!snapshot.path().join("inner/check.py").exists());
    let error = snapshot.add(&check, Path::new("../check.py"), limits).unwrap_err();
    assert!(matches!(error, WorkspaceError::PathLeaves { .. }));
    drop(snapshot);
}

#[test]
fn a_folder_of_checks_replaces_the_whole_folder_of_a_run() {
    let base = tempfile::tempdir().unwrap();
    let checks = base.path().join("checks");
    fs::create_dir(&checks).unwrap();
    fs::write(checks.join("test_one.py"), "real").unwrap();
    let workspace = Workspace::create(&base.path().join("runs")).unwrap();
    let tests = workspace.workspace().join("tests");
    fs::create_dir(&tests).unwrap();
    fs::write(tests.join("test_one.py"), "forged").unwrap();
    fs::write(tests.join("conftest.py"), "forged").unwrap();
    let snapshot = workspace.snapshot().unwrap();
    snapshot.add(&checks, Path::new("tests"), CopyLimits::default()).unwrap();
    assert_eq!(fs::read_to_string(snapshot.path().join("tests/test_one.py")).unwrap(), "real");
    assert_eq!(fs::read_dir(snapshot.path().join("tests")).unwrap().count(), 1);
}

#[test]
fn a_sweep_removes_only_what_nobody_holds() {
    let base = tempfile::tempdir().unwrap();
    let held = Workspace::create(base.path()).unwrap();
    // What a killed process leaves: folder and lock file, without the lock.
    fs::create_dir_all(base.path().join("run-1-7/workspace")).unwrap();
    fs::write(base.path().join("run-1-7.lock"), "").unwrap();
    fs::create_dir(base.path().join("other")).unwrap();
    fs::write(base.path().join("other.lock"), "").unwrap();
    assert_eq!(sweep(base.path()).unwrap(), 1);
    assert!(held.workspace().is_dir());
    assert!(!base.path().join("run-1-7").exists());
    assert!(!base.path().join("run-1-7.lock").exists());
    assert!(base.path().join("other.lock").exists());
    assert_eq!(sweep(&base.path().join("absent")).unwrap(), 0);
}

#[test]
fn a_workspace_that_was_replaced_by_a_link_is_not_followed() {
    let base = tempfile::tempdir().unwrap();
    let outside = base.path().join("outside");
    fs::create_dir_all(outside.join("closed")).unwrap();
    fs::write(outside.join("key"), "secret").unwrap();
    set_mode(&outside.join("key"), 0o040);
    set_mode(&outside.join("closed"), 0o050);
    let workspace = Workspace::create(&base.path().join("runs")).unwrap();
    fs::write(workspace.workspace().join("own"), "kept").unwrap();
    fs::rename(workspace.workspace(), workspace.root().join("aside")).unwrap();
    symlink(&outside, workspace.workspace()).unwrap();
    let snapshot = workspace.snapshot().unwrap();
    assert_eq!(fs::read_to_string(snapshot.path().join("own")).unwrap(), "kept");
    assert_eq!(fs::read_dir(snapshot.path()).unwrap().count(), 1);
    drop((snapshot, workspace));
    assert_eq!(mode(&outside.join("key")), 0o040);
    assert_eq!(mode(&outside.join("closed")), 0o050);
}

#[test]
fn text_of_checks_is_never_written_through_what_a_run_left() {
    let base = tempfile::tempdir().unwrap();
    let victim = base.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let workspace = Workspace::create(&base.path().join("runs")).unwrap();
    fs::write(workspace.workspace().join("inside"), "own").unwrap();
    symlink("inside", workspace.workspace().join("check.txt")).unwrap();
    symlink(&victim, workspace.tmp().join("inline")).unwrap();
    let snapshot = workspace.snapshot().unwrap();
    snapshot.write(Path::new("check.txt"), b"real").unwrap();
    snapshot.write(Path::new("deep/er/check.txt"), b"real").unwrap();
    assert_eq!(fs::read_to_string(snapshot.path().join("check.txt")).unwrap(), "real");
    assert_eq!(fs::read_to_string(snapshot.path().join("inside")).unwrap(), "own");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    let error = snapshot.write(Path::new("../check.txt"), b"real").unwrap_err();
    assert!(matches!(error, WorkspaceError::PathLeaves { .. }));
}

#[test]
fn a_tree_deeper_than_paths_can_be_is_removed() {
    let base = tempfile::tempdir().unwrap();
    let workspace = Workspace::create(base.path()).unwrap();
    let mut folder = super::tree::open(workspace.workspace(), false).unwrap();
    for _ in 0..3000 {
        rustix::fs::mkdirat(&folder, "d", rustix::fs::Mode::RWXU).unwrap();
        folder = super::tree::open_folder(&folder, std::ffi::OsStr::new("d"), false).unwrap();
    }
    drop((folder, workspace));
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
}
