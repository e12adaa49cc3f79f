//! Cost of keeping the history: batches of four results with four fixed assertion ids, far beyond what is kept.
//!
//! `cargo run --release -p proctor-providers --example history_rate [BATCHES]` prints, for each tenth of the run and for
//! one batch, the time that `record` took on the calling thread, the processor time of the writing thread, and the sum. The
//! second table is the same for batches that come one by one, as from a client that waits for each answer.
#![allow(clippy::print_stdout, reason = "it prints what it measured")]

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proctor_core::time::{Clock, ManualClock, Timestamp};
use proctor_providers::store::{Row, Store, StoreOptions};

/// Batches between two flushes: the queue must not overflow, for this is faster than any client.
const BURST: usize = 2_500;
const PACE: Duration = Duration::from_micros(250);

fn main() -> Result<(), Box<dyn Error>> {
    let batches = std::env::args().nth(1).map_or(Ok(100_000), |text| text.parse())?;
    println!("bursts of {BURST} batches");
    measure(batches, None)?;
    println!("one batch every {} µs", PACE.as_micros());
    measure(batches / 5, Some(PACE))?;
    Ok(())
}

fn measure(batches: usize, pace: Option<Duration>) -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_763_239_507_000_000)));
    let store = Store::open(dir.path(), StoreOptions::default(), Arc::clone(&clock) as Arc<dyn Clock>)?;
    let tenth = (batches / 10).max(1);
    let rows = batch();
    // The thread has its name when it has done something.
    store.record(rows.clone());
    store.flush();
    println!("{:>10} {:>12} {:>12} {:>12}", "batches", "record µs", "writer µs", "sum µs");
    for part in 0..10 {
        let before = writer_time()?;
        let mut recording = Duration::ZERO;
        for number in 0..tenth {
            clock.advance(100);
            let rows = rows.clone();
            let start = Instant::now();
            store.record(rows);
            recording += start.elapsed();
            if let Some(pace) = pace {
                std::thread::sleep(pace);
            } else if number % BURST == BURST - 1 {
                store.flush();
            }
        }
        store.flush();
        let per_batch = |time: Duration| time.as_secs_f64() * 1e6 / tenth as f64;
        let (record, writer) = (per_batch(recording), per_batch(writer_time()?.saturating_sub(before)));
        println!("{:>10} {record:>12.2} {writer:>12.2} {:>12.2}", (part + 1) * tenth, record + writer);
    }
    println!("dropped: {}", store.dropped());
    Ok(())
}

/// Rows as an engine makes them: ids of 36 characters, keys of 32.
fn batch() -> Vec<Row> {
    let row = |assertion: usize| Row {
        trace_id: format!("{assertion:036}"),
        assertion_id: format!("{:036}", assertion * 7_919),
        kind: "content".to_owned(),
        key: format!("{:032x}", assertion * 7_919),
        score: assertion as f64 / 10.0,
        status: "pass".to_owned(),
    };
    (0..4).map(row).collect()
}

/// Processor time of the newest store's thread, in the kernel too.
fn writer_time() -> Result<Duration, Box<dyn Error>> {
    let mut newest = None;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let thread = thread?;
        let number: u64 = thread.file_name().to_string_lossy().parse()?;
        let name = std::fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        if name.trim() == "attest-history" {
            newest = newest.max(Some((number, thread.path())));
        }
    }
    let (_, thread) = newest.ok_or("the store has no thread")?;
    let statistics = std::fs::read_to_string(thread.join("schedstat"))?;
    let nanos = statistics.split_whitespace().next().ok_or("no statistics")?.parse()?;
    Ok(Duration::from_nanos(nanos))
}
