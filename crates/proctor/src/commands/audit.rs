//! `proctor audit …`

use std::io::{BufWriter, Read};
use std::path::Path;
use std::time::Duration;

use proctor_core::json::Json;
use proctor_core::record::{Envelope, RecordKind};
use proctor_ledger::StateRow;
use proctor_ledger::bundle::{self, LedgerSource, Selection};
use proctor_ledger::fsck::{ExpectedRow, FsckOptions, Refold, fsck};
use proctor_ledger::keys::Trust;
use proctor_ledger::store::{Filter, Order};
use proctor_policy::state::State;
use proctor_system::private;

use super::{Context, bench, records, tiles, verify, verify_chain, witness};
use crate::cli::{AuditCommand, FilterArgs};
use crate::failure::{Failure, NOT_VERIFIED, OK, Outcome, UNDECIDED};
use crate::output;
use proctor_engine::access::open_reader;
use proctor_engine::state_dir::StateDir;

pub(super) fn run(context: &Context, command: AuditCommand) -> Outcome {
    match command {
        AuditCommand::Tail { filter, lines, follow } => tail(context, &filter, lines, follow),
        AuditCommand::Export { filter, output, tiles } => {
            export(context, &filter, output.as_deref(), tiles.as_deref())
        }
        AuditCommand::Verify { bundle, at_least, no_derivation } => {
            verify::run(context, &bundle, at_least, !no_derivation)
        }
        AuditCommand::VerifyChain { file } => verify_chain::run(context, &file),
        AuditCommand::Prove { record, consistency, check } => {
            prove(context, record.as_deref(), consistency, check)
        }
        AuditCommand::Fsck => check(context),
        AuditCommand::Erase { record, reason } => erase(context, &record, &reason),
        AuditCommand::Witness { witness, name, ledger_key } => {
            witness::run(context, &witness, &name, ledger_key.as_deref())
        }
        AuditCommand::Bench { records } => bench::run(context, records),
    }
}

fn tail(context: &Context, arguments: &FilterArgs, lines: usize, follow: bool) -> Outcome {
    let reader = open_reader(&context.config.engine.state)?;
    let filter = records::filter(&reader, arguments)?;
    let fail = |error: proctor_ledger::ReadError| Failure::from(error.to_string());
    let size = reader.size().map_err(fail)?;
    let mut newest = Vec::new();
    for record in reader.records(filter.clone(), Order::Descending).take(lines) {
        newest.push(record.map_err(fail)?);
    }
    let print = |record: &proctor_ledger::reader::Record| {
        if context.json {
            output::data(records::record_json(&reader, record, false))
        } else {
            output::data(records::line(record))
        }
    };
    for record in newest.iter().rev() {
        print(record)?;
    }
    if !follow {
        return Ok(OK);
    }
    let end = filter.seqs.as_ref().map_or(u64::MAX, |seqs| seqs.end);
    let rest = Filter { seqs: Some(size..end), ..filter };
    let mut following = reader.follow(rest, || Some(Duration::from_millis(100)));
    while let Some(page) = following.next_page().map_err(fail)? {
        for record in &page {
            print(record)?;
        }
    }
    Ok(OK)
}

/// The keys and witnesses that are trusted, if a file names them.
pub(super) fn trust(context: &Context) -> Result<Option<Trust>, Failure> {
    let Some(file) = &context.config.trusted else { return Ok(None) };
    let text = std::fs::read_to_string(file).map_err(|error| Failure::io(file, &error))?;
    let trust = text.parse().map_err(|error| Failure::from(format!("{}:{error}", file.display())))?;
    Ok(Some(trust))
}

/// Asks the owner to sign the ledger as it is now; without an owner this process becomes it for a moment.
fn sign_now(context: &Context) -> Result<(), Failure> {
    records::command(context, &Json::object().with("op", "checkpoint")).map(|_| ())
}

fn export(context: &Context, arguments: &FilterArgs, file: Option<&Path>, tiles: Option<&Path>) -> Outcome {
    let reader = open_reader(&context.config.engine.state)?;
    let filter = records::filter(&reader, arguments)?;
    let whole = filter == Filter::default();
    let needs_checkpoint = match reader.latest_checkpoint() {
        Ok(Some(row)) => reader.size().ok() != Some(row.size),
        _ => true,
    };
    if needs_checkpoint {
        sign_now(context)?;
    }
    if let Some(folder) = tiles {
        return tiles::run(context, &reader, folder);
    }
    let file =
        file.ok_or_else(|| Failure::from("name a file with `--output`, or a folder with `--tiles`"))?;
    let source = LedgerSource::latest(&reader).map_err(|error| Failure::from(error.to_string()))?;
    let selection = if whole {
        Selection::Whole
    } else {
        let mut chosen = Vec::new();
        for record in reader.records(filter, Order::Ascending) {
            chosen.push(record.map_err(|error| Failure::from(error.to_string()))?.seq);
        }
        if chosen.is_empty() {
            return Err(Failure::from("no record matches the filters"));
        }
        let closure = bundle::closure(&source, &chosen).map_err(|error| Failure::from(error.to_string()))?;
        Selection::Part(closure.seqs)
    };
    let describe = |error: std::io::Error| Failure::io(file, &error);
    let mut out = BufWriter::new(private::create(file).map_err(describe)?);
    let bar = output::progress(reader.size().unwrap_or(0), "exporting");
    let report = bundle::export(&source, &selection, &mut out, &mut |done, _| bar.set_position(done))
        .map_err(|error| Failure::from(error.to_string()))?;
    bar.finish_and_clear();
    out.into_inner().map_err(|error| describe(error.into_error()))?.sync_all().map_err(describe)?;
    if context.json {
        output::data(
            Json::object()
                .with("file", file.display().to_string())
                .with("records", report.records)
                .with("bodies", report.bodies)
                .with("size", report.size),
        )?;
    } else {
        output::data(format!(
            "{}: {} of {} records, {} bodies",
            file.display(),
            report.records,
            report.size,
            report.bodies
        ))?;
    }
    Ok(OK)
}

fn prove(context: &Context, record: Option<&str>, consistency: Option<u64>, check: bool) -> Outcome {
    if check {
        return check_proof(context);
    }
    sign_now(context)?;
    let reader = open_reader(&context.config.engine.state)?;
    let source = LedgerSource::latest(&reader).map_err(|error| Failure::from(error.to_string()))?;
    let fail = |error: proctor_ledger::ReadError| Failure::from(error.to_string());
    let proven = match (record, consistency) {
        (_, Some(size)) => {
            let old = reader.checkpoint(size).map_err(fail)?.ok_or_else(|| {
                Failure::from(format!("no checkpoint of {size} records was signed: take the size from one that was exported or witnessed"))
            })?;
            let new = reader
                .latest_checkpoint()
                .map_err(fail)?
                .ok_or_else(|| Failure::from("the ledger is empty"))?;
            bundle::prove_consistency(&source, &old, &new.note)
        }
        (Some(record), None) => bundle::prove(&source, records::sequence(&reader, record)?),
        (None, None) => return Err(Failure::from("name a record, or a size with `--consistency`")),
    };
    let text = proven.map_err(|error| Failure::from(error.to_string()))?;
    if context.json {
        output::data(Json::object().with("proof", text))?;
    } else {
        output::data(text.trim_end())?;
    }
    Ok(OK)
}

fn check_proof(context: &Context) -> Outcome {
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .take(1 << 20)
        .read_to_string(&mut text)
        .map_err(|error| Failure::from(format!("stdin: {error}")))?;
    let trust = trust(context)?;
    let refused = |error: bundle::ProofFileError| Failure::with_code(NOT_VERIFIED, error.to_string());
    let known = if trust.is_some() { "" } else { ", signer unknown" };
    if text.starts_with("proctor-consistency/") {
        let proven = bundle::verify_consistency_proof(&text, trust.as_ref()).map_err(refused)?;
        let (old, new, origin) = (proven.old.size, proven.new.size, proven.new.origin);
        if context.json {
            let out = Json::object().with("origin", origin).with("old_size", old).with("size", new);
            output::data(out.with("signer_known", trust.is_some()))?;
        } else {
            output::data(format!("the {new} records of {origin} continue the {old} before them{known}"))?;
        }
    } else {
        let proven = bundle::verify_proof(&text, trust.as_ref()).map_err(refused)?;
        let (seq, size, origin) = (proven.seq, proven.checkpoint.size, proven.checkpoint.origin);
        if context.json {
            let out = Json::object().with("origin", origin).with("seq", seq).with("size", size);
            let record = Json::parse(&proven.leaf).unwrap_or_default();
            output::data(out.with("record", record).with("signer_known", trust.is_some()))?;
        } else {
            output::data(format!("record {seq} is among the {size} records of {origin}{known}"))?;
            output::data(String::from_utf8_lossy(&proven.leaf))?;
        }
    }
    Ok(if trust.is_some() { OK } else { UNDECIDED })
}

fn check(context: &Context) -> Outcome {
    if !StateDir::new(&context.config.engine.state).exists()
        && !context.config.engine.state.join("ledger.db").exists()
    {
        return Err(proctor_ledger::ReadError::NotThere { dir: context.config.engine.state.clone() }.into());
    }
    let bar = output::progress(u64::MAX, "checking");
    // The engine applies a retraction before its next record; until then the rows are right without it.
    let applied = open_reader(&context.config.engine.state)
        .map_or(u64::MAX, |reader| proctor_engine::first_unapplied_retraction(&reader));
    let mut refold = Folded { applied, ..Folded::default() };
    let mut progress = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    // The key in the state directory, if it is there: a ledger that somebody made anew with a key of their own is not ours.
    let key = StateDir::new(&context.config.engine.state).key().ok().map(|key| key.verifier_key().clone());
    let options = FsckOptions { key, refold: Some(&mut refold), progress: Some(&mut progress) };
    let damage = fsck(&context.config.engine.state, options);
    bar.finish_and_clear();
    if context.json {
        for item in &damage {
            output::data(
                Json::object()
                    .with("code", item.kind.to_string())
                    .with("what", item.what.as_str())
                    .with("where", item.where_.as_str())
                    .with("advice", item.advice),
            )?;
        }
    } else if damage.is_empty() {
        output::data("no damage found")?;
    } else {
        for item in &damage {
            output::data(item)?;
        }
    }
    Ok(if damage.is_empty() { OK } else { NOT_VERIFIED })
}

fn erase(context: &Context, record: &str, reason: &str) -> Outcome {
    let reader = open_reader(&context.config.engine.state)?;
    let sequence = records::sequence(&reader, record)?;
    let size = reader.size()?;
    if sequence >= size {
        return Err(proctor_ledger::ReadError::NoRecord { seq: sequence, size }.into());
    }
    let by = format!("uid:{}", rustix::process::getuid().as_raw());
    let command =
        Json::object().with("op", "erase").with("seq", sequence).with("by", by).with("reason", reason);
    let answer = records::command(context, &command)?;
    if context.json {
        output::data(&answer)?;
    } else {
        let erasure = answer.get("seq").and_then(Json::as_u64).unwrap_or_default();
        output::data(format!("body of record {sequence} erased; recorded as {erasure}"))?;
    }
    Ok(OK)
}

/// The state folded anew from the records, to compare with the rows that are stored.
#[derive(Default)]
struct Folded {
    state: State,
    /// Retractions from here on are not in the rows yet.
    applied: u64,
    retracted: Option<u64>,
}

impl Refold for Folded {
    fn record(&mut self, seq: u64, envelope: &Envelope) {
        if envelope.kind == RecordKind::Retracted && seq >= self.applied {
            return;
        }
        self.state.apply(seq, envelope);
        if envelope.kind == RecordKind::Retracted {
            self.retracted = Some(seq);
        }
    }

    fn expected_rows(&mut self) -> Vec<ExpectedRow> {
        let mut rows: Vec<ExpectedRow> = self
            .state
            .rows()
            .into_iter()
            .map(|row| ExpectedRow {
                row: StateRow { fold: row.fold, key: row.key, value: row.value },
                seq: None,
            })
            .collect();
        rows.extend(
            self.retracted.map(|seq| ExpectedRow { row: proctor_engine::retraction_row(seq), seq: None }),
        );
        rows
    }
}
