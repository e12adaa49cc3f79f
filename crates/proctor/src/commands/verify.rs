//! `proctor audit verify`: offline, from a bundle alone. Hashes, proofs, signatures, and every decision derived again.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use proctor_core::json::Json;
use proctor_engine::rederive::Rederivation;
use proctor_ledger::bundle::{self, Check, ErrorClass, Signer};
use proctor_ledger::keys::VerifierKey;

use super::{Context, audit};
use crate::failure::{FAILED, Failure, NOT_VERIFIED, OK, Outcome, UNDECIDED};
use crate::output;

pub(super) fn run(context: &Context, file: &Path, at_least: u64, derive: bool) -> Outcome {
    let trust = audit::trust(context)?;
    let handle = File::open(file).map_err(|error| Failure::io(file, &error))?;
    let length = handle.metadata().map_or(0, |metadata| metadata.len());
    let bar = output::progress(length, "verifying");
    let mut input = BufReader::with_capacity(1 << 20, handle);
    let mut tally = Rederivation::new();
    let check = Check { trust: trust.as_ref(), at_least_size: (at_least > 0).then_some(at_least) };
    let verified = bundle::verify(
        &mut input,
        &check,
        &mut |record| if derive { Ok(tally.visit(record)?) } else { Ok(()) },
        &mut |done, total| {
            bar.set_length(total);
            bar.set_position(done);
        },
    );
    bar.finish_and_clear();
    let report = verified.map_err(|error| {
        let code = if error.class() == ErrorClass::Tampered { NOT_VERIFIED } else { FAILED };
        Failure::with_code(code, format!("{}: {error}", file.display()))
    })?;
    // A decision that was retracted counts as the deny that its caller got.
    let code = if tally.different_count > 0 {
        NOT_VERIFIED
    } else if matches!(report.signer, Signer::Unknown) || tally.undecidable > 0 {
        UNDECIDED
    } else {
        OK
    };
    let verdict = match code {
        NOT_VERIFIED => "decisions differ from what their read-sets give",
        UNDECIDED if matches!(report.signer, Signer::Unknown) => "consistent, signer unknown",
        UNDECIDED => "verified, but some decisions cannot be derived again",
        _ => "verified",
    };
    if context.json {
        print_json(&report, &tally, verdict, derive)?;
    } else {
        print_text(&report, &tally, verdict, derive)?;
    }
    Ok(code)
}

fn print_json(
    report: &bundle::BundleReport,
    tally: &Rederivation,
    verdict: &str,
    derive: bool,
) -> Result<(), Failure> {
    let texts = |texts: &[String]| texts.iter().map(|text| Json::from(text.as_str())).collect::<Vec<_>>();
    let mut out = Json::object()
        .with("verdict", verdict)
        .with("origin", report.origin.as_str())
        .with("size", report.size)
        .with("records", report.records)
        .with("bodies", report.bodies)
        .with("erased", report.erased)
        .with("retracted", report.retracted.len());
    match &report.signer {
        Signer::Trusted { log, witnesses } => {
            out.push("signer", log.to_string());
            out.push("witnesses", texts(&witness_names(witnesses)));
        }
        Signer::Unknown => out.push("signer", Json::Null),
    }
    if derive {
        out.push(
            "derivation",
            Json::object()
                .with("same", tally.same)
                .with("different", tally.different_count)
                .with("undecidable", tally.undecidable)
                .with("differences", texts(&tally.different)),
        );
    }
    output::data(out)
}

fn print_text(
    report: &bundle::BundleReport,
    tally: &Rederivation,
    verdict: &str,
    derive: bool,
) -> Result<(), Failure> {
    output::data(verdict)?;
    output::data(format!("  ledger      {} at {} records", report.origin, report.size))?;
    match &report.signer {
        Signer::Trusted { log, witnesses } if witnesses.is_empty() => {
            output::data(format!("  signed by   {}", log.name()))?;
        }
        Signer::Trusted { log, witnesses } => {
            output::data(format!(
                "  signed by   {}, witnessed by {}",
                log.name(),
                witness_names(witnesses).join(", ")
            ))?;
        }
        Signer::Unknown => {
            output::data("  signed by   unknown: name the keys you trust with `--trust FILE`")?;
        }
    }
    output::data(format!(
        "  records     {} ({} bodies, {} erased)",
        report.records, report.bodies, report.erased
    ))?;
    if !report.retracted.is_empty() {
        output::data(format!("  retracted   {} decisions count as deny", report.retracted.len()))?;
    }
    if derive {
        output::data(format!(
            "  decisions   {} derived again and the same, {} different, {} undecidable",
            tally.same, tally.different_count, tally.undecidable
        ))?;
        if let Some(example) = &tally.undecidable_example {
            output::data(format!("  undecidable {example}"))?;
        }
        for difference in &tally.different {
            output::data(format!("  different   {}", output::shown(difference, 200)))?;
        }
    }
    Ok(())
}

fn witness_names(witnesses: &[(VerifierKey, u64)]) -> Vec<String> {
    witnesses.iter().map(|(key, _)| key.name().to_owned()).collect()
}
