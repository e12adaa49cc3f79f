//! `proctor audit verify`: offline, from a bundle alone. Hashes, proofs, signatures, and every decision derived again.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_core::record::{Envelope, RecordKind};
use proctor_ledger::bundle::{self, Check, ErrorClass, Signer, Visited};
use proctor_ledger::keys::VerifierKey;
use proctor_policy::body::{Derivation, policy_from_body, rederive};
use proctor_policy::policy::Policy;
use proctor_policy::state::State;

use super::{Context, audit};
use crate::failure::{FAILED, Failure, NOT_VERIFIED, OK, Outcome, UNDECIDED};
use crate::output;

/// What deriving came to.
#[derive(Default)]
struct Tally {
    same: u64,
    different: Vec<String>,
    different_count: u64,
    undecidable: u64,
    undecidable_example: Option<String>,
    policies: HashMap<Digest, Option<Arc<Policy>>>,
    /// The fold of all records so far, as long as none is missing.
    past: Option<State>,
    next: u64,
}

pub(super) fn run(context: &Context, file: &Path, at_least: u64, derive: bool) -> Outcome {
    let trust = audit::trust(context)?;
    let handle = File::open(file).map_err(|error| Failure::from(format!("{}: {error}", file.display())))?;
    let length = handle.metadata().map_or(0, |metadata| metadata.len());
    let bar = output::progress(length, "verifying");
    let mut input = BufReader::with_capacity(1 << 20, handle);
    let mut tally = Tally { past: Some(State::default()), ..Tally::default() };
    let check = Check { trust: trust.as_ref(), at_least_size: (at_least > 0).then_some(at_least) };
    let verified =
        bundle::verify(&mut input, &check, &mut |record| Ok(tally.visit(record, derive)?), &mut |done, total| {
            bar.set_length(total);
            bar.set_position(done);
        });
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

impl Tally {
    fn visit(&mut self, record: &Visited<'_>, derive: bool) -> Result<(), String> {
        if !derive {
            return Ok(());
        }
        if record.seq != self.next {
            // In a part records are missing, so what decisions were told of the past cannot be checked.
            self.past = None;
        }
        self.next = record.seq + 1;
        if self.past.is_none() && !matches!(record.kind, RecordKind::Policy | RecordKind::Decision) {
            return Ok(());
        }
        let envelope = record.envelope().map_err(|error| error.to_string())?;
        if envelope.kind == RecordKind::Decision {
            self.derive(record, &envelope);
        }
        if let Some(past) = &mut self.past {
            past.apply(record.seq, &envelope);
        }
        if envelope.kind != RecordKind::Policy {
            return Ok(());
        }
        if let (Some(digest), Some(body)) = (envelope.policy, record.body)
            && envelope.code.starts_with("loaded")
        {
            // Sources that do not give the digest they are recorded under are not that policy.
            let policy = policy_from_body(body).ok().filter(|policy| policy.digest() == digest).map(Arc::new);
            self.policies.entry(digest).or_insert(policy);
        }
        Ok(())
    }

    fn derive(&mut self, record: &Visited<'_>, envelope: &Envelope) {
        let policies = &self.policies;
        let mut lookup = |digest: Digest| policies.get(&digest).cloned().flatten();
        match rederive(envelope, record.body, &mut lookup, self.past.as_ref()) {
            Derivation::Same => self.same += 1,
            Derivation::Different(what) => {
                self.different_count += 1;
                if self.different.len() < 20 {
                    self.different.push(format!("record {}: {what}", record.seq));
                }
            }
            Derivation::Undecidable(what) => {
                self.undecidable += 1;
                self.undecidable_example.get_or_insert(format!("record {}: {what}", record.seq));
            }
        }
    }
}

fn print_json(
    report: &bundle::BundleReport,
    tally: &Tally,
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
    tally: &Tally,
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
