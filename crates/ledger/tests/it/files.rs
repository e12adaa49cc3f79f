//! Files of an open ledger that are removed, moved, replaced, cut or linked: nothing is recorded into them.

use std::fs::{self, File};
use std::path::Path;

use proctor_core::record::RecordKind;
use proctor_ledger::{Ledger, NotRecorded};

use super::support::{World, assert_in_order};

/// What the ledger answers when nothing can be recorded.
fn refusal(ledger: &Ledger, world: &World) -> String {
    let Err(NotRecorded::Failed(reason)) = ledger.append(world.draft(RecordKind::Decision)).wait() else {
        panic!("a draft was recorded");
    };
    assert_eq!(ledger.check().unwrap_err(), NotRecorded::Failed(reason.clone()));
    reason
}

fn record(ledger: &Ledger, world: &World) -> u64 {
    ledger.append(world.draft(RecordKind::Decision)).wait().unwrap().seq()
}

/// An open ledger with two records, in a folder below `dir`.
fn opened(dir: &Path, world: &World) -> Ledger {
    let ledger = world.open(&dir.join("state"));
    ledger.check().unwrap();
    assert_eq!((record(&ledger, world), record(&ledger, world)), (0, 1));
    ledger
}

#[test]
fn nothing_is_recorded_into_a_ledger_that_was_removed() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(1));
    let ledger = opened(dir.path(), &world);
    fs::remove_dir_all(dir.path().join("state")).unwrap();
    for _ in 0..3 {
        let reason = refusal(&ledger, &world);
        assert!(reason.contains("ledger.db` is gone"), "{reason}");
    }
    ledger.close();
    assert!(!dir.path().join("state").exists());
}

#[test]
fn nothing_is_recorded_while_the_ledger_is_elsewhere_and_everything_when_it_is_back() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(1));
    let (state, away) = (dir.path().join("state"), dir.path().join("away"));
    let ledger = opened(dir.path(), &world);
    fs::rename(&state, &away).unwrap();
    assert!(refusal(&ledger, &world).contains("is gone"));
    fs::rename(&away, &state).unwrap();
    ledger.check().unwrap();
    assert_eq!(record(&ledger, &world), 2);
    ledger.close();
    assert_in_order(&state);
}

#[test]
fn nothing_is_recorded_into_a_copy_that_took_the_place_of_the_ledger() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(1));
    let ledger = opened(dir.path(), &world);
    let state = dir.path().join("state");
    for name in ["ledger.db", "ledger.db-wal"] {
        let (file, old, copy) = (state.join(name), state.join("old"), state.join("copy"));
        fs::copy(&file, &copy).unwrap();
        fs::rename(&file, &old).unwrap();
        fs::rename(&copy, &file).unwrap();
        let reason = refusal(&ledger, &world);
        assert!(reason.contains(&format!("{name}` is another file")), "{reason}");
        fs::rename(&old, &file).unwrap();
    }
    assert_eq!(record(&ledger, &world), 2);
    ledger.close();
    assert_in_order(&state);
}

#[test]
fn nothing_is_recorded_into_a_ledger_that_was_cut() {
    for name in ["ledger.db", "ledger.db-wal"] {
        let (dir, world) = (tempfile::tempdir().unwrap(), World::new(1));
        let ledger = opened(dir.path(), &world);
        let file = File::options().write(true).open(dir.path().join("state").join(name)).unwrap();
        file.set_len(file.metadata().unwrap().len() - 1).unwrap();
        let Err(NotRecorded::Failed(reason)) = ledger.append(world.draft(RecordKind::Decision)).wait() else {
            panic!("{name}: a draft was recorded");
        };
        assert!(reason.contains(&format!("{name}` has")) && reason.contains("bytes, and had"), "{reason}");
    }
}

#[test]
fn nothing_is_recorded_while_the_ledger_has_another_hard_link() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(1));
    let ledger = opened(dir.path(), &world);
    let (file, link) = (dir.path().join("state/ledger.db"), dir.path().join("link"));
    fs::hard_link(&file, &link).unwrap();
    assert!(refusal(&ledger, &world).contains("has 2 hard links, and had 1"));
    fs::remove_file(&link).unwrap();
    assert_eq!(record(&ledger, &world), 2);
}

#[test]
fn a_ledger_whose_log_is_emptied_by_its_own_writer_goes_on() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(1));
    let ledger = opened(dir.path(), &world);
    let mut draft = world.draft(RecordKind::Decision);
    draft.body = Some(b"body".to_vec());
    let seq = ledger.append(draft).wait().unwrap().seq();
    let mut erasure = world.envelope(RecordKind::Erasure);
    erasure.links = vec![seq];
    ledger.erase(seq, erasure).wait().unwrap();
    assert_eq!(record(&ledger, &world), 4);
    ledger.check().unwrap();
}
