//! Reading where nothing can be written.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use proctor_core::record::RecordKind;
use proctor_ledger::Reader;
use proctor_ledger::reader::{Filter, Order};

use super::support::{World, assert_in_order};

const DIR: &str = "LEDGER_TO_READ";
const NOBODY: u32 = 65_534;

/// Started by the tests below as a process of a user who must not write there; nothing by itself.
#[test]
fn read_as_somebody_else() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let dir = Path::new(&dir);
    assert!(
        std::fs::write(dir.join("probe"), "").is_err(),
        "this test needs a directory that is not writable"
    );
    let reader = Reader::open(dir).unwrap();
    assert_eq!(reader.size().unwrap(), 10);
    assert_eq!(reader.records(Filter::default(), Order::Descending).map(Result::unwrap).count(), 10);
    assert_in_order(dir);
}

fn read_in_another_process(dir: &Path) {
    // Everybody may read, only the owner write; root is nobody in the other process.
    let is_root = rustix::process::getuid().is_root();
    let change = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        if is_root {
            chown(path, Some(0), Some(0)).unwrap();
        }
    };
    for entry in std::fs::read_dir(dir).unwrap() {
        change(&entry.unwrap().path(), 0o444);
    }
    change(dir, 0o555);
    let program = std::env::current_exe().unwrap();
    // The other user may not reach the build folder: the program is copied beside the ledger.
    let public = tempfile::tempdir().unwrap();
    let copy = public.path().join("reader");
    std::fs::copy(program, &copy).unwrap();
    change(public.path(), 0o755);
    let mut command = Command::new(&copy);
    command.args(["--exact", "read_only::read_as_somebody_else", "--nocapture"]).env(DIR, dir);
    if is_root {
        command.uid(NOBODY).gid(NOBODY);
    }
    // A process that another test starts at this moment may hold the copy open for writing until it runs.
    let output = loop {
        match command.output() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            output => break output.unwrap(),
        }
    };
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755)).unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn a_closed_ledger_in_a_directory_that_is_not_writable_can_be_read() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(40));
    let ledger = world.open(dir.path());
    (0..10).for_each(|_| drop(ledger.append(world.draft(RecordKind::Outcome))));
    ledger.close();
    read_in_another_process(dir.path());
}

#[test]
fn a_ledger_with_an_owner_can_be_read_by_those_who_cannot_write() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(41));
    let ledger = world.open(dir.path());
    for _ in 0..10 {
        ledger.append(world.draft(RecordKind::Outcome)).wait().unwrap();
    }
    read_in_another_process(dir.path());
    ledger.close();
    assert_in_order(dir.path());
}
