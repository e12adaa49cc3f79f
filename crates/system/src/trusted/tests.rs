use std::os::unix::fs::{PermissionsExt, chown, symlink};

use super::*;

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A folder with a file, both for this user only.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("inner/policy.yaml");
    fs::create_dir(folder.path().join("inner")).unwrap();
    fs::write(&file, "").unwrap();
    mode(&folder.path().join("inner"), 0o755);
    mode(&file, 0o644);
    (folder, file)
}

#[test]
fn a_file_that_others_can_write_is_refused() {
    let (_folder, file) = folder();
    assert_eq!(check(&file), Ok(()));
    for bits in [0o600, 0o444, 0o755] {
        mode(&file, bits);
        assert_eq!(check(&file), Ok(()), "{bits:o}");
    }
    for bits in [0o666, 0o602] {
        mode(&file, bits);
        assert_eq!(check(&file), Err(UntrustedPath::Writable { path: file.clone() }), "{bits:o}");
    }
}

#[test]
fn a_file_in_a_folder_that_others_can_write_is_refused_unless_it_is_sticky() {
    let (folder, file) = folder();
    let inner = folder.path().join("inner");
    mode(&inner, 0o777);
    assert_eq!(check(&file), Err(UntrustedPath::Writable { path: inner.clone() }));
    assert!(check(&inner.join("../inner/policy.yaml")).is_err());
    mode(&inner, 0o1777);
    assert_eq!(check(&file), Ok(()));
    assert!(check(&inner).is_err(), "others can add documents to a folder that is a policy");
}

#[test]
fn the_way_through_a_link_counts() {
    let (folder, file) = folder();
    let (open, link) = (folder.path().join("open"), folder.path().join("link"));
    fs::create_dir(&open).unwrap();
    symlink(&file, &link).unwrap();
    assert_eq!(check(&link), Ok(()));
    symlink("../link", open.join("second")).unwrap();
    assert_eq!(check(&open.join("second")), Ok(()));
    mode(&open, 0o777);
    assert_eq!(check(&open.join("second")), Err(UntrustedPath::Writable { path: open.clone() }));
    mode(folder.path().join("inner").as_path(), 0o777);
    assert!(check(&link).is_err(), "what the link leads to counts too");
    symlink("loop", folder.path().join("loop")).unwrap();
    assert!(matches!(check(&folder.path().join("loop")), Err(UntrustedPath::Links { .. })));
}

#[test]
fn a_file_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let (folder, file) = folder();
    chown(&file, Some(4711), None).unwrap();
    assert_eq!(check(&file), Err(UntrustedPath::Owner { path: file.clone(), owner: 4711, user: 0 }));
    chown(&file, Some(0), None).unwrap();
    chown(folder.path().join("inner"), Some(4711), None).unwrap();
    assert!(matches!(check(&file), Err(UntrustedPath::Owner { .. })));
}

#[test]
fn what_is_not_there_passes_and_devices_too() {
    assert_eq!(check(Path::new("/nowhere/at/all")), Ok(()));
    assert_eq!(check(Path::new("/dev/null")), Ok(()));
}

#[test]
fn a_group_is_ones_own_only_if_nobody_else_is_in_it() {
    let users = "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nbob:x:1001:100::/home/bob:/bin/sh\neve:x:1002:100::/:/bin/sh\n";
    let groups = "root:x:0:\nann:x:1000:\nusers:x:100:\n";
    assert_eq!(own_group(users, groups, 1000), Some(1000));
    assert_eq!(own_group(users, groups, 1001), None, "eve has the same group");
    assert_eq!(own_group(users, &groups.replace("ann:x:1000:", "ann:x:1000:ann"), 1000), Some(1000));
    assert_eq!(own_group(users, &groups.replace("ann:x:1000:", "ann:x:1000:ann,eve"), 1000), None);
    assert_eq!(own_group(users, "", 1000), None);
    assert_eq!(own_group("", groups, 1000), None);
}
