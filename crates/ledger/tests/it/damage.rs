//! Damage is found: by opening, or by the full check.

use std::path::{Path, PathBuf};

use proctor_core::id::ApprovalId;
use proctor_core::random::SeededRandomness;
use proctor_core::record::RecordKind;
use proctor_core::time::Clock;
use proctor_ledger::fsck::{DamageKind, FsckOptions, fsck};
use proctor_ledger::keys::{Algorithm, SecretKey};
use proctor_ledger::{Ledger, OpenError};
use rusqlite::Connection;
use rusqlite::types::Value;

use super::support::{World, assert_in_order, check};

const TABLES: [&str; 10] =
    ["blocks", "bodies", "checkpoints", "meta", "once", "postings", "records", "state", "terms", "tiles"];

/// A closed ledger with something in every table.
fn populated(world: &World, dir: &Path) {
    let ledger = world.open(dir);
    let sessions: Vec<_> = (0..5).map(|_| world.session()).collect();
    for n in 0..700_usize {
        let mut draft = world.coded(&format!("principal-{}", n % 9), &n.to_string());
        draft.envelope.session = Some(sessions[n % 5]);
        draft.envelope.agent = "claude".to_owned();
        draft.envelope.once = (n % 10 == 0).then(|| format!("once-{n}"));
        draft.envelope.approval =
            (n % 50 == 0).then(|| ApprovalId::new(world.clock.now(), world.randomness.as_ref()));
        draft.body = Some(vec![u8::try_from(n % 251).unwrap(); if n == 300 { 20_000 } else { 50 }]);
        draft.envelope.links = if n > 0 { vec![n as u64 - 1] } else { Vec::new() };
        drop(ledger.append(draft));
        if n % 200 == 0 {
            ledger.checkpoint().unwrap();
        }
    }
    ledger.checkpoint().unwrap();
    let mut erasure = world.envelope(RecordKind::Erasure);
    erasure.links = vec![20];
    ledger.erase(20, erasure).wait().unwrap();
    ledger.note_unrecorded();
    ledger.close();
}

fn database(dir: &Path) -> PathBuf {
    dir.join("ledger.db")
}

/// Content of all tables.
fn content(dir: &Path) -> Result<Vec<Vec<Value>>, rusqlite::Error> {
    let connection = Connection::open_with_flags(database(dir), rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut all = Vec::new();
    for table in TABLES {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table}"))?;
        let columns = statement.column_count();
        let mut rows = statement.query(())?;
        while let Some(row) = rows.next()? {
            all.push((0..columns).map(|column| row.get(column)).collect::<Result<Vec<Value>, _>>()?);
        }
    }
    Ok(all)
}

fn noticed(world: &World, dir: &Path) -> bool {
    // Opening first: it must not write to a damaged ledger, so that the check sees the same.
    let refused = match Ledger::open(dir, world.options()) {
        Ok(ledger) => {
            ledger.close();
            false
        }
        Err(_) => true,
    };
    refused || !check(dir).is_empty()
}

#[test]
fn a_flipped_byte_is_noticed_or_changes_nothing() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(50));
    populated(&world, dir.path());
    assert_in_order(dir.path());
    let (original, before) = (std::fs::read(database(dir.path())).unwrap(), content(dir.path()).unwrap());
    let random = SeededRandomness::new(1234);
    let mut found = 0;
    for round in 0..400 {
        // The first page has the header and the tables' definitions.
        let bound = if round % 8 == 0 { 4096 } else { original.len() as u64 };
        let at = usize::try_from(random.below(bound)).unwrap();
        let mut damaged = original.clone();
        damaged[at] ^= u8::try_from(1 + random.below(255)).unwrap();
        let copy = tempfile::tempdir().unwrap();
        std::fs::write(database(copy.path()), &damaged).unwrap();
        if noticed(&world, copy.path()) {
            found += 1;
        } else {
            let after = content(copy.path()).unwrap();
            assert!(after == before, "byte {at} changed something, and nobody noticed");
        }
    }
    assert!(found > 150, "{found}");
}

#[test]
fn a_truncated_file_is_noticed() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(51));
    populated(&world, dir.path());
    let original = std::fs::read(database(dir.path())).unwrap();
    let random = SeededRandomness::new(77);
    let mut lengths: Vec<usize> = vec![0, 1, 99, 100, 4095, 4096, original.len() - 4096, original.len() - 1];
    lengths.extend((0..30).map(|_| usize::try_from(random.below(original.len() as u64)).unwrap()));
    for length in lengths {
        let copy = tempfile::tempdir().unwrap();
        std::fs::write(database(copy.path()), &original[..length]).unwrap();
        assert!(!check(copy.path()).is_empty(), "{length}");
        match Ledger::open(copy.path(), world.options()) {
            Err(OpenError::Damaged { damage }) => assert!(!damage.is_empty()),
            other => panic!("{length}: {:?}", other.err()),
        }
        assert_eq!(std::fs::read(database(copy.path())).unwrap(), original[..length], "nothing is written");
    }
}

/// The ledger's files as a crash leaves them: the database, and a write-ahead log that is not in it yet.
fn crashed(world: &World, dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let ledger = world.open(dir);
    for n in 0..50 {
        ledger.append(world.coded("alice", &n.to_string())).wait().unwrap();
    }
    let files = ["ledger.db", "ledger.db-wal"]
        .map(|name| (PathBuf::from(name), std::fs::read(dir.join(name)).unwrap()));
    files.into()
}

fn restored(files: &[(PathBuf, Vec<u8>)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(dir.path().join(name), bytes).unwrap();
    }
    dir
}

#[test]
fn a_crash_loses_nothing_and_a_torn_end_is_no_damage() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(52));
    let mut files = crashed(&world, dir.path());
    let copy = restored(&files);
    assert_in_order(copy.path());
    let ledger = world.open(copy.path());
    assert_eq!(ledger.append(world.coded("alice", "50")).wait().unwrap().seq(), 50);
    ledger.close();
    assert_in_order(copy.path());

    let torn = files[1].1.len() - 1000;
    files[1].1.truncate(torn);
    let copy = restored(&files);
    assert_in_order(copy.path());
    let ledger = world.open(copy.path());
    assert_eq!(ledger.append(world.coded("alice", "49")).wait().unwrap().seq(), 49);
}

#[test]
fn damage_inside_the_write_ahead_log_is_noticed() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(53));
    let files = crashed(&world, dir.path());
    for at in [3, 20, 40, 32 + 24 + 100, 32 + 5 * 4120 + 300] {
        let mut files = files.clone();
        files[1].1[at] ^= 0x55;
        let copy = restored(&files);
        let kinds: Vec<_> = check(copy.path()).into_iter().map(|damage| damage.kind).collect();
        assert!(kinds.contains(&DamageKind::Wal), "{at}: {kinds:?}");
        let mut options = world.options();
        options.durability = proctor_ledger::store::Durability::Power;
        assert!(matches!(Ledger::open(copy.path(), options), Err(OpenError::Damaged { .. })), "{at}");
    }
    let copy = restored(&files[1..]);
    assert!(matches!(Ledger::open(copy.path(), world.options()), Err(OpenError::Damaged { .. })));
}

/// Damage that an SQLite shell can do, and the damage that the check reports.
#[test]
fn each_kind_of_change_is_named() {
    use DamageKind::{
        BodyDigest, BodyMissing, BodyPresent, Checkpoint, Format, Index, Leaf, Once, Sequence, State, Tile,
    };
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(54));
    populated(&world, dir.path());
    let original = std::fs::read(database(dir.path())).unwrap();
    let cases = [
        ("DELETE FROM records WHERE seq = 5", Sequence),
        ("DELETE FROM records WHERE seq >= 699", Checkpoint),
        ("INSERT INTO records SELECT seq + 5, leaf FROM records ORDER BY seq DESC LIMIT 1", Sequence),
        (
            "UPDATE records SET leaf = CAST(replace(CAST(leaf AS TEXT), 'claude', 'cloude') AS BLOB) WHERE seq = 3",
            Tile,
        ),
        (
            "UPDATE records SET leaf = CAST(replace(CAST(leaf AS TEXT), 'claude', 'cloude') AS BLOB) WHERE seq = 3",
            Index,
        ),
        ("UPDATE records SET leaf = CAST(CAST(leaf AS TEXT) || ' ' AS BLOB) WHERE seq = 690", Leaf),
        (
            "UPDATE records SET leaf = CAST(replace(CAST(leaf AS TEXT), 'claude', 'cloude') AS BLOB) WHERE seq = 695",
            Checkpoint,
        ),
        ("UPDATE bodies SET bytes = x'00' WHERE seq = 9", BodyDigest),
        ("UPDATE bodies SET salt = x'00' WHERE seq = 9", BodyDigest),
        ("DELETE FROM bodies WHERE seq = 9", BodyMissing),
        ("INSERT INTO bodies(seq, salt, bytes) VALUES (20, zeroblob(32), x'00')", BodyPresent),
        ("INSERT INTO bodies(seq, salt, bytes) VALUES (9999, zeroblob(32), x'00')", BodyPresent),
        ("DELETE FROM once WHERE key = 'once-30'", Once),
        ("UPDATE once SET seq = 31 WHERE key = 'once-30'", Once),
        ("INSERT INTO once VALUES ('more', 1)", Once),
        ("UPDATE tiles SET hashes = zeroblob(8192) WHERE level = 0 AND idx = 1", Tile),
        ("UPDATE tiles SET hashes = zeroblob(64) WHERE level = 1", Tile),
        ("DELETE FROM tiles WHERE level = 0 AND idx = 0", Tile),
        ("INSERT INTO tiles VALUES (3, 0, x'00')", Tile),
        ("UPDATE checkpoints SET note = replace(note, 'A', 'B')", Checkpoint),
        ("UPDATE checkpoints SET size = 5000 WHERE size = (SELECT max(size) FROM checkpoints)", Checkpoint),
        (
            "UPDATE checkpoints SET size = size + 1 WHERE size = (SELECT min(size) FROM checkpoints)",
            Checkpoint,
        ),
        ("DELETE FROM checkpoints", Checkpoint),
        ("UPDATE blocks SET max_time = max_time + 1 WHERE block = 1", Index),
        (
            "DELETE FROM postings WHERE block = 1 AND term = (SELECT id FROM terms WHERE text = 'claude')",
            Index,
        ),
        ("INSERT INTO postings VALUES (1, 77, zeroblob(32))", Index),
        ("UPDATE terms SET text = 'claudia' WHERE text = 'claude'", Index),
        ("INSERT INTO terms VALUES (12345, 3, 'nobody')", Index),
        ("UPDATE state SET value = x'00' WHERE key = 'principal-3'", State),
        ("UPDATE state SET seq = seq - 1 WHERE key = 'principal-3'", State),
        ("DELETE FROM state WHERE key = 'principal-3'", State),
        ("INSERT INTO state VALUES ('code', 'nobody', x'00', 1)", State),
        ("INSERT INTO state VALUES ('other', 'nobody', x'00', 99999)", State),
        ("UPDATE meta SET value = '2' WHERE name = 'format'", Format),
        ("UPDATE meta SET value = 'other' WHERE name = 'origin'", Format),
        ("INSERT INTO meta VALUES ('more', '')", Format),
        ("CREATE TABLE more(x)", Format),
        ("DROP TABLE state", Format),
        ("PRAGMA user_version = 2", Format),
    ];
    for (sql, expected) in cases {
        let copy = tempfile::tempdir().unwrap();
        std::fs::write(database(copy.path()), &original).unwrap();
        Connection::open(database(copy.path())).unwrap().execute_batch(sql).unwrap();
        let damage = check(copy.path());
        assert!(damage.iter().any(|damage| damage.kind == expected), "{sql}: {damage:#?}");
    }
}

#[test]
fn wrong_links_and_records_of_the_ledger_itself_are_named() {
    use proctor_ledger::Draft;
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(55));
    let ledger = world.open(dir.path());
    let append = |change: &dyn Fn(&mut Draft), kind| {
        let mut draft = world.draft(kind);
        change(&mut draft);
        ledger.append(draft).wait().unwrap();
    };
    append(&|_| {}, RecordKind::Observation);
    append(&|draft| draft.envelope.code = "none".to_owned(), RecordKind::Gap);
    append(&|_| {}, RecordKind::Retracted);
    append(&|draft| draft.envelope.links = vec![1], RecordKind::Retracted);
    append(&|draft| draft.envelope.links = vec![0], RecordKind::Erasure);
    ledger.close();
    let found: Vec<_> = check(dir.path()).into_iter().map(|damage| (damage.kind, damage.where_)).collect();
    let expected = ["record 1", "record 2", "record 3", "record 4"];
    assert!(
        found
            .iter()
            .map(|(kind, where_)| (*kind, where_.as_str()))
            .eq(expected.map(|at| (DamageKind::Record, at))),
        "{found:?}"
    );
}

#[test]
fn a_ledger_made_anew_with_another_key_is_noticed_with_the_right_key() {
    let (dir, world) = (tempfile::tempdir().unwrap(), World::new(56));
    populated(&world, dir.path());
    let mut progress = Vec::new();
    let mut report = |done, total| progress.push((done, total));
    let other = SecretKey::from_seed("example.com/ledger", Algorithm::Ed25519, &[8; 32]).unwrap();
    let options =
        FsckOptions { key: Some(other.verifier_key().clone()), refold: None, progress: Some(&mut report) };
    assert!(fsck(dir.path(), options).iter().all(|damage| damage.kind == DamageKind::Checkpoint));
    assert_eq!(progress, [(702, 702)]);
    assert_eq!(DamageKind::BodyMissing.code(), "body-missing");
}

#[test]
fn what_is_no_ledger_at_all_is_no_reason_to_panic() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(check(dir.path())[0].kind, DamageKind::Unreadable);
    let random = SeededRandomness::new(5);
    for length in [1, 16, 100, 5000, 100_000] {
        let bytes: Vec<u8> = (0..length).map(|_| random.next_u64().to_le_bytes()[0]).collect();
        std::fs::write(database(dir.path()), bytes).unwrap();
        assert!(!check(dir.path()).is_empty());
        assert!(matches!(Ledger::open(dir.path(), World::new(1).options()), Err(OpenError::Damaged { .. })));
    }
    std::fs::remove_file(database(dir.path())).unwrap();
    Connection::open(database(dir.path())).unwrap().execute_batch("CREATE TABLE meta(name, value)").unwrap();
    assert!(!check(dir.path()).is_empty());
    assert!(Ledger::open(dir.path(), World::new(1).options()).is_err());
}
