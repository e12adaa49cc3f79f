//! Runs: one task, or the tasks of a workflow.

use std::time::Duration;

use proctor_core::json::Json;
use proctor_flow::run::{Cancel, Options, Refusal};
use proctor_wire::agentcli::error::{Code, Failure};

use crate::door::Door;

/// Parameters of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunParams<'a> {
    pub(crate) workflow: Option<&'a str>,
    pub(crate) timeout_ms: Option<&'a str>,
    pub(crate) evidence_provider: Option<&'a str>,
    pub(crate) signing_key: Option<&'a str>,
    pub(crate) instance_id: Option<&'a str>,
    pub(crate) approval_id: Option<&'a str>,
    pub(crate) require_evidence: bool,
    pub(crate) require_authorization: bool,
    pub(crate) has_identity: bool,
    pub(crate) has_presentation: bool,
    pub(crate) allow_commands: bool,
    pub(crate) dry_run: bool,
}

impl RunParams<'_> {
    fn options(&self) -> Result<Options, Failure> {
        let timeout = self.timeout_ms.map(|text| match text.parse::<u64>() {
            Ok(number @ 1..=MAX_TIMEOUT_MS) => Ok(Duration::from_millis(number)),
            _ => Err(Failure::invalid_argument(format!(
                "`--timeout` must be a number of milliseconds up to {MAX_TIMEOUT_MS}"
            ))),
        });
        Ok(Options {
            allow_commands: self.allow_commands,
            timeout: timeout.transpose()?,
            evidence_provider: self.evidence_provider.map(str::to_owned),
            require_evidence: self.require_evidence,
            require_authorization: self.require_authorization,
            instance_id: self.instance_id.map(str::to_owned),
            approval_id: self.approval_id.map(str::to_owned),
            identity_debug: self.has_identity,
            presentation_debug: self.has_presentation,
        })
    }
}

/// A week: the longest run.
const MAX_TIMEOUT_MS: u64 = 7 * 24 * 3_600_000;

/// End of a run: whether it succeeded, and what is printed.
pub(crate) struct Ended {
    pub(crate) is_ok: bool,
    /// Code of the first refusal of a workflow's tasks, if nothing else went wrong.
    pub(crate) refused: Option<Code>,
    pub(crate) json: Json,
}

/// Runs one task.
pub(crate) async fn exec(
    door: &Door,
    manifest: &Json,
    task: &str,
    params: &RunParams<'_>,
    cancel: &mut Cancel,
) -> Result<Ended, Refusal> {
    let options = params.options()?;
    if params.dry_run {
        let directory = &door.surroundings.working_dir;
        let json = proctor_flow::run::preview(manifest, params.workflow, task, directory, &options)?;
        return Ok(Ended { is_ok: true, refused: None, json });
    }
    let runner = door.runner(params.signing_key)?;
    let execution = runner.exec(manifest, params.workflow, task, &options, cancel).await?;
    Ok(Ended { is_ok: execution.is_ok, refused: None, json: execution.json })
}

/// Runs the tasks of a workflow, from one root or from all.
pub(crate) async fn run(
    door: &Door,
    manifest: &Json,
    root: Option<&str>,
    params: &RunParams<'_>,
    cancel: &mut Cancel,
) -> Result<Ended, Refusal> {
    let options = params.options()?;
    if params.dry_run {
        let json = proctor_flow::run::preview_workflow(manifest, params.workflow, root)?;
        return Ok(Ended { is_ok: true, refused: None, json });
    }
    let runner = door.runner(params.signing_key)?;
    let ended = runner.run_workflow(manifest, params.workflow, root, &options, cancel).await?;
    Ok(Ended { is_ok: ended.is_ok, refused: ended.refused, json: ended.json })
}
