//! Append rate of the ledger in records a second, beside a bare loop of SQLite inserts with the same batches.
//!
//! `cargo run --release -p proctor-ledger --example append_rate -- [directory] [records] [in flight]`
//!
//! Besides the rate by the clock it tells the processor time for each record, which other programs disturb less.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::assigning_clones,
    reason = "a measurement, not a product"
)]

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use proctor_core::decision::Effect;
use proctor_core::digest::Digest;
use proctor_core::id::{RecordId, SessionId};
use proctor_core::random::{Randomness, SeededRandomness};
use proctor_core::record::{Envelope, RecordKind};
use proctor_core::time::{Clock, Timestamp};
use proctor_ledger::keys::{Algorithm, SecretKey};
use proctor_ledger::store::Durability;
use proctor_ledger::{Draft, Ledger, Options, StateRow};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let micros = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
        Timestamp::from_micros(i64::try_from(micros).unwrap())
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let records: u64 = arguments.next().map_or(500_000, |text| text.parse().unwrap());
    let in_flight: usize = arguments.next().map_or(1000, |text| text.parse().unwrap());
    for durability in [Durability::Power, Durability::Process] {
        for rows in [0, 2] {
            let rate = ledger(&dir, durability, records, in_flight, rows);
            println!("ledger, {durability:?}, {in_flight} in flight, {rows} state rows a record: {rate}");
        }
        let rate = bare(&dir, durability, records, in_flight);
        println!("bare inserts of leaf and body, {durability:?}, {in_flight} to a commit: {rate}");
    }
}

struct Measure {
    start: Instant,
    ticks: u64,
}

impl Measure {
    fn start() -> Measure {
        Measure { start: Instant::now(), ticks: processor_ticks() }
    }

    #[allow(clippy::cast_precision_loss, reason = "a rate")]
    fn end(&self, records: u64) -> String {
        let rate = records as f64 / self.start.elapsed().as_secs_f64();
        let micros = (processor_ticks() - self.ticks) as f64 * 10_000.0 / records as f64;
        format!("{rate:.0} records/s, {micros:.1} µs of processor time a record")
    }
}

/// User and system time of this process, in hundredths of a second.
fn processor_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    after_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

fn envelope(clock: &dyn Clock, randomness: &dyn Randomness, session: SessionId) -> Envelope {
    let now = clock.now();
    let mut envelope = Envelope::new(RecordId::new(now, randomness), now, RecordKind::Decision);
    envelope.session = Some(session);
    envelope.principal = "agent-7.build.example.com".to_owned();
    envelope.agent = "claude".to_owned();
    envelope.door = "ahp".to_owned();
    envelope.tool = "shell".to_owned();
    envelope.decision = Some(Effect::Allow);
    envelope.rule = "builds-are-fine".to_owned();
    envelope.action = Some(Digest::of(b"action"));
    envelope.policy = Some(Digest::of(b"policy"));
    envelope
}

fn ledger(dir: &Path, durability: Durability, records: u64, in_flight: usize, rows: u64) -> String {
    let dir = tempfile::tempdir_in(dir).unwrap();
    let key = SecretKey::from_seed("example.com/ledger", Algorithm::Ed25519, &[7; 32]).unwrap();
    let randomness = Arc::new(SeededRandomness::new(1));
    let mut options = Options::new(key, Arc::new(SystemClock), randomness.clone());
    options.durability = durability;
    let ledger = Ledger::open(dir.path(), options).unwrap();
    let sessions: Vec<SessionId> =
        (0..100).map(|_| SessionId::new(SystemClock.now(), randomness.as_ref())).collect();
    let first = envelope(&SystemClock, randomness.as_ref(), *sessions.first().unwrap());
    println!("leaf of {} bytes and body of 500 bytes", first.to_leaf().unwrap().len() + 74);
    let start = Measure::start();
    let mut waiting = VecDeque::new();
    for n in 0..records {
        if waiting.len() == in_flight {
            let oldest: proctor_ledger::Pending = waiting.pop_front().unwrap();
            oldest.wait().unwrap();
        }
        let session = sessions.get(usize::try_from(n % 100).unwrap()).unwrap();
        let mut draft = Draft::new(envelope(&SystemClock, randomness.as_ref(), *session));
        draft.body = Some(vec![b'x'; 500]);
        let row =
            |part| StateRow { fold: "session", key: format!("{session}/{part}"), value: Some(vec![0; 200]) };
        draft.rows = (0..rows).map(row).collect();
        waiting.push_back(ledger.append(draft));
    }
    for pending in waiting {
        pending.wait().unwrap();
    }
    let rate = start.end(records);
    assert_eq!(ledger.reader().size().unwrap(), records);
    rate
}

fn bare(dir: &Path, durability: Durability, records: u64, batch: usize) -> String {
    let dir = tempfile::tempdir_in(dir).unwrap();
    let mut connection = rusqlite::Connection::open(dir.path().join("bare.db")).unwrap();
    connection.pragma_update(None, "journal_mode", "wal").unwrap();
    let synchronous = if durability == Durability::Power { "full" } else { "normal" };
    connection.pragma_update(None, "synchronous", synchronous).unwrap();
    connection.execute_batch("CREATE TABLE records(seq INTEGER PRIMARY KEY, leaf BLOB); CREATE TABLE bodies(seq INTEGER PRIMARY KEY, salt BLOB, bytes BLOB)").unwrap();
    let start = Measure::start();
    let mut seq = 0_i64;
    while seq < i64::try_from(records).unwrap() {
        let transaction = connection.transaction().unwrap();
        {
            let mut leaf = transaction.prepare_cached("INSERT INTO records VALUES (?1, ?2)").unwrap();
            let mut body = transaction.prepare_cached("INSERT INTO bodies VALUES (?1, ?2, ?3)").unwrap();
            for _ in 0..batch {
                leaf.execute((seq, [0u8; 500].as_slice())).unwrap();
                body.execute((seq, [0u8; 32].as_slice(), [0u8; 500].as_slice())).unwrap();
                seq += 1;
            }
        }
        transaction.commit().unwrap();
    }
    start.end(records)
}
