//! `proctor audit …`

use std::fs::File;
use std::io::{BufWriter, Read};
use std::path::Path;
use std::time::Duration;

use proctor_core::json::Json;
use proctor_ledger::bundle::{self, Selection};
use proctor_ledger::fsck::fsck;
use proctor_ledger::keys::Trust;
use proctor_ledger::store::{Filter, Order};

use super::{Context, bench, records, verify, witness};
use crate::access::open_reader;
use crate::cli::{AuditCommand, FilterArgs};
use crate::failure::{Failure, NOT_VERIFIED, OK, Outcome, UNDECIDED};
use crate::output;

pub(super) fn run(context: &Context, command: AuditCommand) -> Outcome {
    match command {
        AuditCommand::Tail { filter, lines, follow } => tail(context, &filter, lines, follow),
        AuditCommand::Export { filter, output } => export(context, &filter, &output),
        AuditCommand::Verify { bundle, at_least, no_derivation } => verify::run(context, &bundle, at_least, !no_derivation),
        AuditCommand::Prove { record, consistency, check } => prove(context, record.as_deref(), consistency, check),
        AuditCommand::Fsck => check(context),
        AuditCommand::Erase { record, reason } => erase(context, &record, &reason),
        AuditCommand::Witness { witness, name, ledger_key } => {
            witness::run(context, &witness, &name, ledger_key.as_deref())
        }
        AuditCommand::Bench { records } => bench::run(context, records),
    }
}

fn tail(context: &Context, arguments: &FilterArgs, lines: usize, follow: bool) -> Outcome {
    let reader = open_reader(&context.config.state)?;
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
            output::data(records::line(record).join("  "))
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
    let text = std::fs::read_to_string(file).map_err(|error| Failure::from(format!("{}: {error}", file.display())))?;
    let trust = text.parse().map_err(|error| Failure::from(format!("{}: {error}", file.display())))?;
    Ok(Some(trust))
}

/// Has the owner sign the ledger as it is now; without an owner this process becomes it for a moment.
fn sign_now(context: &Context) -> Result<(), Failure> {
    records::command(context, &Json::object().with("op", "checkpoint")).map(|_| ())
}

fn export(context: &Context, arguments: &FilterArgs, file: &Path) -> Outcome {
    let reader = open_reader(&context.config.state)?;
    let filter = records::filter(&reader, arguments)?;
    let whole = filter == Filter::default();
    let needs_checkpoint = match reader.latest_checkpoint() {
        Ok(Some(row)) => reader.size().ok() != Some(row.size),
        _ => true,
    };
    if needs_checkpoint {
        sign_now(context)?;
    }
    let selection = if whole {
        Selection::Whole
    } else {
        let mut chosen = Vec::new();
        for record in reader.records(filter, Order::Ascending) {
            chosen.push(record.map_err(|error| Failure::from(error.to_string()))?.seq);
        }
        if chosen.is_empty() {
            return Err(Failure::from("no record fits"));
        }
        Selection::Part(bundle::closure(&reader, &chosen).map_err(|error| Failure::from(error.to_string()))?)
    };
    let describe = |error: std::io::Error| Failure::from(format!("{}: {error}", file.display()));
    let mut out = BufWriter::new(File::create(file).map_err(describe)?);
    let bar = output::progress(reader.size().unwrap_or(0), "exporting");
    let report = bundle::export(&reader, selection, &mut out, &mut |done, _| bar.set_position(done))
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
        output::data(format!("{}: {} of {} records, {} bodies", file.display(), report.records, report.size, report.bodies))?;
    }
    Ok(OK)
}

fn prove(context: &Context, record: Option<&str>, consistency: Option<u64>, check: bool) -> Outcome {
    if check {
        return check_proof(context);
    }
    sign_now(context)?;
    let reader = open_reader(&context.config.state)?;
    let text = match (record, consistency) {
        (_, Some(size)) => bundle::prove_consistency(&reader, size).map_err(|error| Failure::from(error.to_string()))?,
        (Some(record), None) => {
            let sequence = records::sequence(&reader, record)?;
            bundle::prove(&reader, sequence).map_err(|error| Failure::from(error.to_string()))?
        }
        (None, None) => return Err(Failure::from("name a record, or a size with `--consistency`")),
    };
    output::data(text.trim_end())?;
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
    match bundle::verify_proof(&text, trust.as_ref()) {
        Ok(proven) => {
            output::data(proven.to_string())?;
            Ok(if trust.is_some() { OK } else { UNDECIDED })
        }
        Err(error) => Err(Failure::with_code(NOT_VERIFIED, error.to_string())),
    }
}

fn check(context: &Context) -> Outcome {
    let bar = output::progress(u64::MAX, "checking");
    let mut refold = crate::engine::Refold::default();
    let findings = fsck(&context.config.state, Some(&mut refold), &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    if context.json {
        for finding in &findings {
            output::data(
                Json::object()
                    .with("code", finding.damage.code())
                    .with("what", finding.what.as_str())
                    .with("where", finding.place.as_str())
                    .with("advice", finding.advice.as_str()),
            )?;
        }
    } else if findings.is_empty() {
        output::data("no damage found")?;
    } else {
        for finding in &findings {
            output::data(finding)?;
        }
    }
    Ok(if findings.is_empty() { OK } else { NOT_VERIFIED })
}

fn erase(context: &Context, record: &str, reason: &str) -> Outcome {
    let reader = open_reader(&context.config.state)?;
    let sequence = records::sequence(&reader, record)?;
    let by = format!("uid:{}", rustix::process::getuid().as_raw());
    let command = Json::object().with("op", "erase").with("seq", sequence).with("by", by).with("reason", reason);
    let answer = records::command(context, &command)?;
    if context.json {
        output::data(&answer)?;
    } else {
        let erasure = answer.get("seq").and_then(Json::as_u64).unwrap_or_default();
        output::data(format!("body of record {sequence} erased; recorded as {erasure}"))?;
    }
    Ok(OK)
}
