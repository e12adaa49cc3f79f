//! Counts of records after a gateway has ended. Numbers of a gateway that leaves something out are worth nothing.

use std::io::{BufRead, BufReader};
use std::path::Path;

use proctor_core::record::RecordKind;
use proctor_ledger::Reader;
use proctor_ledger::store::{Filter, Order};
use proctor_wire::assembly::chain::{Entry, EventType, Outcome, Verifier};

use crate::failure::Failure;

/// The audit log in its folder.
const LOG: &str = "gateway-default.jsonl";

/// Every answered check is one decision in the ledger.
pub fn in_ledger(state: &Path, answered: u64) -> Result<(), Failure> {
    let reader = Reader::open(state).map_err(|error| error.to_string())?;
    let filter = Filter { kinds: vec![RecordKind::Decision], ..Filter::default() };
    let mut found = 0;
    for record in reader.records(filter, Order::Ascending) {
        record.map_err(|error| error.to_string())?;
        found += 1;
    }
    same("decisions in the ledger", found, answered)
}

/// Every answered check is one line in the audit log, and the log is whole.
pub fn in_log(folder: &Path, answered: u64) -> Result<(), Failure> {
    let path = folder.join(LOG);
    let describe = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = std::fs::File::open(&path).map_err(describe)?;
    let mut verifier = Verifier::default();
    let mut found = 0;
    for line in BufReader::new(file).split(b'\n') {
        let line = line.map_err(describe)?;
        let entry = Entry::parse(&line).map_err(|error| format!("{}: {error}", path.display()))?;
        // Of what happens here, only checks that are allowed have this type.
        found += u64::from(entry.event_type == EventType::ToolCallIntercepted);
        verifier.line(&line);
    }
    match verifier.finish() {
        Outcome::Verified { .. } => same("checks in the audit log", found, answered),
        other => Err(format!("{}: {other:?}", path.display()).into()),
    }
}

fn same(what: &str, found: u64, answered: u64) -> Result<(), Failure> {
    if found == answered {
        return Ok(());
    }
    Err(format!("{found} {what} after {answered} answers").into())
}
