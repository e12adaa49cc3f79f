//! Evidence of a run: a signed envelope, or a bundle of the run's records.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_engine::access::open_reader;
use proctor_ledger::bundle::{self, ExportError, LedgerSource, Selection, SourceError};
use proctor_ledger::store::{Filter, Order};
use proctor_ledger::{ReadError, Reader};
use proctor_wire::agentcli::error::{Code, Failure};

use super::Options;
use super::parts::EvidenceSigner;
use super::read::{member, text};
use super::recorder::Recorder;

/// Provider of evidence when a run demands some and names none.
const DEFAULT: &str = "ssh";

/// Evidence that a run has to give.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Demand {
    provider: Provider,
    /// The evidence block of the task, or one that names the provider alone.
    block: Json,
    /// Whether a run without it fails.
    pub(super) is_required: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Provider {
    None,
    Ssh,
    Ledger,
}

/// Failure to export a bundle.
#[derive(Debug, thiserror::Error)]
enum BundleError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Export(#[from] ExportError),
    #[error("the evidence cannot be written: {}", proctor_system::describe(.0))]
    Write(#[from] std::io::Error),
    #[error("the decision of the run has no session")]
    NoSession,
}

impl Demand {
    /// Reads the evidence block of a task. Unknown providers are refused before anything runs.
    pub(super) fn read(block: Option<&Json>, options: &Options) -> Result<Option<Demand>, Failure> {
        let is_required = options.require_evidence
            || block
                .and_then(|block| member(block, "verify"))
                .and_then(|verify| member(verify, "required"))
                .and_then(Json::as_bool)
                == Some(true);
        let declared = block.and_then(|block| text(block, "provider"));
        let named = options.evidence_provider.as_deref().or(declared);
        let Some(named) = named.or(is_required.then_some(DEFAULT)) else { return Ok(None) };
        let provider = match named {
            "none" => Provider::None,
            "ssh" => Provider::Ssh,
            "ledger" => Provider::Ledger,
            other => return Err(failed(format!("the evidence provider `{other}` is unknown"))),
        };
        if provider == Provider::None && is_required {
            return Err(failed("evidence is required, and the provider `none` gives none".to_owned()));
        }
        let block = match block {
            Some(block) => block.clone(),
            None => Json::object().with("provider", named),
        };
        Ok(Some(Demand { provider, block, is_required }))
    }

    /// Refuses a run that must have evidence and could not sign it.
    pub(super) async fn check(&self, signer: &dyn EvidenceSigner) -> Result<(), Failure> {
        match self.provider {
            Provider::Ssh if self.is_required => signer.check(&self.block).await,
            _ => Ok(()),
        }
    }

    /// Additional members of the payload that the manifest sets.
    pub(super) fn context(&self) -> Json {
        let payload = member(&self.block, "payload");
        payload.and_then(|payload| member(payload, "context")).cloned().unwrap_or_default()
    }
}

/// Evidence of a run that has its outcome on record.
pub(super) struct Maker<'a> {
    pub(super) signer: &'a dyn EvidenceSigner,
    pub(super) recorder: &'a Recorder,
    pub(super) state: &'a Path,
    /// Folder of bundles.
    pub(super) folder: &'a Path,
    pub(super) execution_id: &'a str,
    /// Sequence of the run's decision.
    pub(super) decision: u64,
}

impl Maker<'_> {
    /// Makes the evidence. Returns what results show of it.
    pub(super) async fn make(&self, demand: &Demand, payload: &Json) -> Result<Json, Failure> {
        match demand.provider {
            Provider::None => Ok(Json::object().with("provider", "none")),
            Provider::Ssh => {
                let envelope = self.signer.sign(payload, &demand.block).await?;
                let text = format!("{envelope}\n");
                let file = self.folder.join(format!("{}.json", self.execution_id));
                write_private(&file, text.as_bytes())
                    .map_err(|error| failed(BundleError::from(error).to_string()))?;
                Ok(Json::object()
                    .with("provider", "ssh")
                    .with("path", file.display().to_string())
                    .with("digest", format!("sha256:{}", Digest::of(text.as_bytes())))
                    .with("envelope", envelope))
            }
            Provider::Ledger => {
                let note = self.recorder.checkpoint().await.map_err(|error| failed(error.to_string()))?;
                let (state, decision) = (self.state.to_owned(), self.decision);
                let file = self.folder.join(format!("{}.bundle", self.execution_id));
                let exporting = tokio::task::spawn_blocking(move || export(&state, note, decision, &file));
                let exported = exporting.await.map_err(|error| failed(error.to_string()))?;
                exported.map_err(|error| failed(error.to_string()))
            }
        }
    }
}

fn failed(message: String) -> Failure {
    Failure::new(Code::EvidenceFailed, message)
}

/// Writes a new file that only this user can read.
fn write_private(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut open = std::fs::OpenOptions::new();
    let mut handle = open.write(true).create_new(true).mode(0o600).open(file)?;
    handle.write_all(bytes)?;
    handle.sync_all()
}

/// Writes a bundle of the records of a run's session, with the policy that decided it.
fn export(state: &Path, note: String, decision: u64, file: &Path) -> Result<Json, BundleError> {
    let reader: Reader = open_reader(state)?;
    let session = reader.envelope(decision)?.session.ok_or(BundleError::NoSession)?;
    let source = LedgerSource::under(&reader, note)?;
    let filter = Filter { session: Some(session), seqs: Some(0..source.size()), ..Filter::default() };
    let mut chosen = Vec::new();
    for record in reader.records(filter, Order::Ascending) {
        chosen.push(record?.seq);
    }
    let closure = bundle::closure(&source, &chosen)?;
    let mut bytes = Vec::new();
    let report = bundle::export(&source, &Selection::Part(closure.seqs), &mut bytes, &mut |_, _| {})?;
    write_private(file, &bytes)?;
    Ok(Json::object()
        .with("provider", "ledger")
        .with("method", "ledger-bundle")
        .with("path", file.display().to_string())
        .with("digest", format!("sha256:{}", Digest::of(&bytes)))
        .with("records", report.records)
        .with("ledger", report.origin)
        .with("checkpoint_size", report.size))
}
