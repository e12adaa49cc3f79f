//! Records of runs: ends, approvals, and evidence.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_core::record::{RUN_ENDED, RecordKind};
use proctor_engine::access::open_reader;
use proctor_engine::rederive::Rederivation;
use proctor_flow::run::DOOR;
use proctor_ledger::bundle::{self, Check, Visited};
use proctor_ledger::keys::{Trust, TrustError};
use proctor_ledger::reader::BodyState;
use proctor_ledger::store::{Filter, Order};
use proctor_ledger::{ReadError, Reader};
use proctor_policy::question::ApprovalState;
use proctor_policy::state::{ApprovalInfo, ApprovalStatus};
use proctor_proof::evidence;
use proctor_proof::ssh::{AllowedSigners, local_zone};
use proctor_wire::agentcli::error::{Code, Failure};

use super::ok;
use crate::door::Door;

/// Ends that are listed without a limit of the caller.
const DEFAULT_LIMIT: u64 = 20;
/// The most ends that are listed.
const MAX_LIMIT: u64 = 10_000;
/// Records that are searched for ends; the newest ones.
const MAX_SEARCHED: usize = 1_000_000;

/// The ledger, if there is one.
fn reader(door: &Door) -> Result<Option<Reader>, Failure> {
    if !door.surroundings.state.join("ledger.key").exists() {
        return Ok(None);
    }
    open_reader(&door.surroundings.state).map(Some).map_err(|error| unreadable(&error))
}

fn unreadable(error: &ReadError) -> Failure {
    Failure::new(Code::InternalError, error.to_string())
}

/// The newest ends of runs.
pub(crate) fn audit(door: &Door, limit: Option<&Json>) -> Result<Json, Failure> {
    let limit = match limit {
        None | Some(Json::Null) => DEFAULT_LIMIT,
        Some(value) => {
            let number = value.as_u64().or_else(|| value.as_str().and_then(|text| text.parse().ok()));
            number.filter(|number| (1..=MAX_LIMIT).contains(number)).ok_or_else(|| {
                Failure::invalid_argument(format!("`limit` must be a whole number from 1 to {MAX_LIMIT}"))
            })?
        }
    };
    let (mut records, mut warnings) = (Vec::new(), Vec::new());
    if let Some(reader) = reader(door)? {
        ends(&reader, &mut |record| {
            records.push(record);
            records.len() as u64 != limit
        })?;
    } else {
        warnings.push(Json::from("there is no ledger yet: `exec` and `run` make one"));
    }
    Ok(ok().with("count", records.len() as u64).with("records", records).with("warnings", warnings))
}

/// Ends of runs, the newest first, until the callback has enough.
fn ends(reader: &Reader, each: &mut dyn FnMut(Json) -> bool) -> Result<(), Failure> {
    let filter = Filter { kinds: vec![RecordKind::Run], ..Filter::default() };
    for record in reader.records(filter, Order::Descending).take(MAX_SEARCHED) {
        let record = record.map_err(|error| unreadable(&error))?;
        if record.envelope.door != DOOR || record.envelope.code != RUN_ENDED {
            continue;
        }
        let body = match reader.body(record.seq).map_err(|error| unreadable(&error))? {
            BodyState::Present { bytes, .. } => Json::parse(&bytes).unwrap_or_default(),
            _ => Json::Null,
        };
        let job = record.envelope.principal.strip_prefix("job:").unwrap_or_default();
        let (workflow, task) = job.split_once('/').unwrap_or((job, ""));
        let mut entry = Json::object()
            .with("timestamp", record.envelope.time.to_string())
            .with("sequence", record.seq)
            .with("record_id", record.envelope.id.to_string())
            .with("workflow_id", workflow)
            .with("task_id", task);
        for (name, value) in body.get("data").and_then(Json::as_object).unwrap_or_default() {
            match name.as_str() {
                // Both are above, under the names that they have everywhere else.
                "workflow" | "task" => {}
                // The record holds digests in groups.
                "manifest_digest" | "evidence_digest" => {
                    entry.push(name, format!("{SHA256}{}", joined(value)));
                }
                _ => entry.push(name, value.clone()),
            }
        }
        if !each(entry) {
            break;
        }
    }
    Ok(())
}

/// Algorithm of digests, in front of them.
const SHA256: &str = "sha256:";

/// A digest whose record holds it in groups.
fn joined(groups: &Json) -> String {
    groups.as_array().unwrap_or_default().iter().filter_map(Json::as_str).collect()
}

/// Approvals that runs asked for.
pub(crate) fn approvals(
    door: &Door,
    status: Option<&str>,
    workflow: Option<&str>,
    task: Option<&str>,
) -> Result<Json, Failure> {
    let mut records = Vec::new();
    if let Some(reader) = reader(door)? {
        let failed =
            |error: proctor_engine::EngineError| Failure::new(Code::InternalError, error.to_string());
        let state = proctor_engine::read_state(&reader).map_err(failed)?;
        let mut found: Vec<&ApprovalInfo> = state.approvals().collect();
        found.sort_by_key(|approval| (approval.asked_at, approval.id));
        for approval in found {
            let Some(job) = approval.principal.strip_prefix("job:") else { continue };
            let (of_workflow, of_task) = job.split_once('/').unwrap_or((job, ""));
            let word = status_word(approval, door.clock().now());
            let fits = |wanted: Option<&str>, found: &str| wanted.is_none_or(|wanted| wanted == found);
            if fits(status, word) && fits(workflow, of_workflow) && fits(task, of_task) {
                let entry = Json::object()
                    .with("approval_id", approval.id.to_string())
                    .with("status", word)
                    .with("workflow_id", of_workflow)
                    .with("task_id", of_task)
                    .with("rule", approval.rule.as_str())
                    .with("requested_at", approval.asked_at.to_string())
                    .with("expires_at", approval.expires.to_string());
                records.push(entry);
            }
        }
    }
    Ok(ok().with("count", records.len() as u64).with("records", records))
}

fn status_word(approval: &ApprovalInfo, now: proctor_core::time::Timestamp) -> &'static str {
    match approval.status(now) {
        ApprovalStatus::Used => ApprovalStatus::Used.word(),
        _ if matches!(approval.state, ApprovalState::Refused { .. }) => ApprovalStatus::Refused.word(),
        _ if approval.closed.is_some() => ApprovalStatus::Expired.word(),
        other => other.word(),
    }
}

/// The longest evidence envelope that is read, in bytes.
const MAX_ENVELOPE: u64 = 4 << 20;
/// The longest bundle of a run that is read, in bytes.
const MAX_BUNDLE: u64 = 256 << 20;

/// Verifies the evidence of a run: the signed envelope that the run left beside its records.
pub(crate) fn verify(door: &Door, execution: &str, allowed_signers: Option<&str>) -> Result<Json, Failure> {
    let unknown = || Failure::invalid_argument(format!("there is no run `{execution}` on record"));
    let is_id = execution.len() == 32 && execution.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut end = None;
    if let Some(reader) = reader(door)?.filter(|_| is_id) {
        ends(&reader, &mut |record| {
            let is_it = record.get("execution_id").and_then(Json::as_str) == Some(execution);
            if is_it {
                end = Some(record);
            }
            !is_it
        })?;
    }
    let end = end.ok_or_else(unknown)?;
    let failed = |message: String| Failure::new(Code::VerifyFailed, message);
    let folder = door.surroundings.state.join("flow").join("evidence");
    let recorded = end.get("evidence_digest").and_then(Json::as_str).unwrap_or_default();
    let recorded = recorded.strip_prefix(SHA256).unwrap_or_default();
    let bundle = folder.join(format!("{execution}.bundle"));
    if bundle.exists() {
        return verify_bundle(door, execution, &bundle, recorded);
    }
    if recorded.is_empty() {
        return Err(failed(format!("the run `{execution}` left no evidence")));
    }
    let file = folder.join(format!("{execution}.json"));
    let stored = read_bounded(&file).map_err(|error| {
        let reason = proctor_system::describe(&error);
        failed(format!(
            "{}: {reason}; by its record, the run left evidence with the digest {SHA256}{recorded}",
            file.display()
        ))
    })?;
    if recorded != Digest::of(&stored).to_string() {
        return Err(failed(format!("the evidence of the run `{execution}` was changed after the run")));
    }
    let envelope = Json::parse(&stored).map_err(|error| failed(error.to_string()))?;
    // A valid envelope of another run says nothing about this one.
    let signed = envelope.pointer("/signed_payload/execution_id").and_then(Json::as_str);
    if signed != Some(execution) {
        return Err(failed(format!("the evidence stored for the run `{execution}` is that of another run")));
    }
    let named = allowed_signers.or_else(|| door.surroundings.variable("AGENTCLI_ALLOWED_SIGNERS"));
    let named = named.ok_or_else(|| {
        let how = "`--allowed-signers FILE` or AGENTCLI_ALLOWED_SIGNERS";
        Failure::invalid_argument(format!("name the keys that may sign: {how}"))
    })?;
    let path = door.surroundings.path(named);
    let unreadable = |error: &std::io::Error| {
        Failure::invalid_argument(format!("{}: {}", path.display(), proctor_system::describe(error)))
    };
    let lines = read_bounded(&path).map_err(|error| unreadable(&error))?;
    let lines = String::from_utf8_lossy(&lines);
    let signers = AllowedSigners::parse(&lines, &local_zone())
        .map_err(|error| Failure::invalid_argument(error.to_string()))?;
    evidence::verify(&envelope, &signers, door.clock().now()).map_err(|error| failed(error.to_string()))?;
    let result = ok().with("execution_id", execution).with("provider", "ssh").with("verified", true);
    Ok(result.with("envelope", envelope))
}

/// Verifies a bundle of a run's records as `proctor audit verify` does, with the key of this state directory's ledger.
fn verify_bundle(door: &Door, execution: &str, file: &Path, recorded: &str) -> Result<Json, Failure> {
    let failed = |message: String| Failure::new(Code::VerifyFailed, message);
    let shown = file.display();
    let unread = |error: std::io::Error| failed(format!("{shown}: {}", proctor_system::describe(&error)));
    let mut bytes = Vec::new();
    File::open(file).and_then(|file| file.take(MAX_BUNDLE).read_to_end(&mut bytes)).map_err(unread)?;
    if recorded != Digest::of(&bytes).to_string() {
        return Err(failed(format!("the evidence of the run `{execution}` was changed after the run")));
    }
    let key = open_reader(&door.surroundings.state).and_then(|reader| reader.key());
    let key = key.map_err(|error| unreadable(&error))?;
    let trust: Trust =
        format!("log {key}\n").parse().map_err(|error: TrustError| failed(error.to_string()))?;
    let check = Check { trust: Some(&trust), ..Check::default() };
    let mut derived = Rederivation::new();
    let visit = &mut |record: &Visited<'_>| Ok(derived.visit(record)?);
    let report = bundle::verify(&mut bytes.as_slice(), &check, visit, &mut |_, _| {});
    let report = report.map_err(|error| failed(format!("{shown}: {error}")))?;
    if let Some(different) = derived.different.first() {
        return Err(failed(format!("{shown}: {different}")));
    }
    Ok(ok()
        .with("execution_id", execution)
        .with("provider", "ledger")
        .with("verified", true)
        .with("path", shown.to_string())
        .with("records", report.records)
        .with("decisions", derived.same))
}

fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_ENVELOPE).read_to_end(&mut bytes)?;
    Ok(bytes)
}
