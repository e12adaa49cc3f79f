//! `proctor audit bench`: what the disk under a ledger can do, and what the ledger makes of it. Works on a scratch ledger
//! beside the state directory, which is removed afterwards.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proctor_core::digest::Digest;
use proctor_core::id::RecordId;
use proctor_core::json::Json;
use proctor_core::random::Randomness;
use proctor_core::record::{Envelope, RecordKind};
use proctor_core::time::Clock;
use proctor_ledger::keys::{Algorithm, SecretKey};
use proctor_ledger::store::Durability;
use proctor_ledger::{Draft, Ledger, Options};

use super::Context;
use crate::failure::{Failure, OK, Outcome};
use crate::output;
use proctor_system::{SystemClock, SystemRandomness};

/// Bytes in the body of a record.
const BODY: usize = 500;
/// Records whose receipts are waited for at the same time.
const IN_FLIGHT: usize = 1000;

pub(super) fn run(context: &Context, records: u64) -> Outcome {
    let parent = context.config.engine.state.parent().unwrap_or(std::path::Path::new("."));
    let scratch = parent.join(format!(".proctor-bench-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).map_err(|error| Failure::io(&scratch, &error))?;
    let measured = measure(&scratch, records.clamp(1000, 10_000_000));
    let _ = std::fs::remove_dir_all(&scratch);
    let rows = measured?;
    if context.json {
        let mut out = Json::object();
        for (name, value, unit) in &rows {
            out.push(name, Json::object().with("value", format!("{value:.2}")).with("unit", *unit));
        }
        output::data(out)?;
    } else {
        let table: Vec<Vec<String>> = rows
            .iter()
            .map(|(name, value, unit)| vec![(*name).to_owned(), format!("{value:.1}"), (*unit).to_owned()])
            .collect();
        output::table(&table)?;
    }
    Ok(OK)
}

type Row = (&'static str, f64, &'static str);

fn measure(scratch: &std::path::Path, records: u64) -> Result<Vec<Row>, Failure> {
    let mut rows: Vec<Row> =
        vec![("fdatasync of 500 bytes", fdatasync(scratch)?, "µs"), ("SHA-256 of 500 bytes", sha256(), "µs")];
    for (durability, folder, single, many) in [
        (Durability::Process, "process", "append, one at a time, process", "append, 1000 in flight, process"),
        (Durability::Power, "power", "append, one at a time, power", "append, 1000 in flight, power"),
    ] {
        let ledger = scratch_ledger(&scratch.join(folder), durability)?;
        rows.push((single, one_at_a_time(&ledger)?, "µs"));
        rows.push((many, in_flight(&ledger, records)?, "records/s"));
        ledger.close();
    }
    Ok(rows)
}

fn fdatasync(scratch: &std::path::Path) -> Result<f64, Failure> {
    let describe = |error: std::io::Error| Failure::from(error.to_string());
    let mut file = File::create(scratch.join("fdatasync")).map_err(describe)?;
    let mut times = Vec::new();
    for _ in 0..200 {
        file.write_all(&[7; BODY]).map_err(describe)?;
        let start = Instant::now();
        file.sync_data().map_err(describe)?;
        times.push(start.elapsed());
    }
    Ok(median(times))
}

fn sha256() -> f64 {
    let text = [7u8; BODY];
    let start = Instant::now();
    for _ in 0..10_000 {
        std::hint::black_box(Digest::of(std::hint::black_box(&text)));
    }
    start.elapsed().as_secs_f64() * 1e6 / 10_000.0
}

fn scratch_ledger(folder: &std::path::Path, durability: Durability) -> Result<Ledger, Failure> {
    let mut seed = [0; 32];
    SystemRandomness.fill(&mut seed);
    let key = SecretKey::from_seed("bench", Algorithm::Ed25519, &seed)
        .map_err(|error| Failure::from(error.to_string()))?;
    let mut options = Options::new(key, Arc::new(SystemClock), Arc::new(SystemRandomness));
    options.durability = durability;
    Ledger::open(folder, options).map_err(|error| Failure::from(error.to_string()))
}

fn draft() -> Draft {
    let now = SystemClock.now();
    let mut envelope = Envelope::new(RecordId::new(now, &SystemRandomness), now, RecordKind::Observation);
    "uid:1000/bench".clone_into(&mut envelope.principal);
    "bench".clone_into(&mut envelope.agent);
    "measured".clone_into(&mut envelope.code);
    Draft { envelope, body: Some(vec![b'x'; BODY]), rows: Vec::new(), deadline: None, seq: None }
}

fn one_at_a_time(ledger: &Ledger) -> Result<f64, Failure> {
    let mut times = Vec::new();
    for _ in 0..300 {
        let start = Instant::now();
        ledger.append(draft()).wait().map_err(|problem| Failure::from(problem.to_string()))?;
        times.push(start.elapsed());
    }
    Ok(median(times))
}

fn in_flight(ledger: &Ledger, records: u64) -> Result<f64, Failure> {
    let mut waiting = VecDeque::with_capacity(IN_FLIGHT);
    let start = Instant::now();
    for _ in 0..records {
        if waiting.len() >= IN_FLIGHT
            && let Some(pending) = waiting.pop_front()
        {
            settle(pending)?;
        }
        waiting.push_back(ledger.append(draft()));
    }
    for pending in waiting {
        settle(pending)?;
    }
    Ok(records as f64 / start.elapsed().as_secs_f64())
}

fn settle(pending: proctor_ledger::Pending) -> Result<(), Failure> {
    pending.wait().map(|_| ()).map_err(|problem| Failure::from(problem.to_string()))
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(0.0, |time| time.as_secs_f64() * 1e6)
}
