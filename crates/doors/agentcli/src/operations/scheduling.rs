//! Apply, plan and inspect on openclaw-scheduler.

use proctor_core::json::Json;
use proctor_flow::run::{JobKey, Recorder, SourceGate};
use proctor_flow::scheduler::inspect::{Query, inspect as read_rows};
use proctor_flow::scheduler::{
    self, AdoptBy, Client, ConsumeError, Invocation, LocalProof, Options, Plan, Proofs, Replay,
};
use proctor_identity::sources::{Commands, Sources};
use proctor_proof::ssh::local_zone;
use proctor_proof::verify::{Inputs, verify};
use proctor_wire::agentcli::binding::{effective_task_hash, execution_binding};
use proctor_wire::agentcli::effective::select;
use proctor_wire::agentcli::error::{Code, Failure};

use crate::door::Door;

/// Parameters of an apply or a plan.
#[derive(Debug, Clone, Default)]
pub(crate) struct ApplyParams {
    pub(crate) scheduler: Invocation,
    pub(crate) dry_run: bool,
    pub(crate) explain: bool,
    pub(crate) adopt_by: Option<String>,
    pub(crate) allow_commands: bool,
}

impl ApplyParams {
    fn options(&self) -> Result<Options, Failure> {
        let word = self.adopt_by.as_deref().unwrap_or("id");
        let adopt_by = AdoptBy::from_word(word)
            .ok_or_else(|| Failure::invalid_argument("`adoptBy` must be `id` or `name`"))?;
        Ok(Options { adopt_by, dry_run: self.dry_run, explain: self.explain })
    }

    /// The scheduler that parameters name, else the one of the environment.
    fn client(&self, door: &Door) -> Result<Client, Failure> {
        let or = |given: &Option<String>, variable: &str| {
            given.clone().or_else(|| door.surroundings.variable(variable).map(str::to_owned))
        };
        let invocation = Invocation {
            prefix: or(&self.scheduler.prefix, "AGENTCLI_SCHEDULER_PREFIX"),
            bin: or(&self.scheduler.bin, "AGENTCLI_SCHEDULER_BIN"),
            db_path: or(&self.scheduler.db_path, "AGENTCLI_SCHEDULER_DB"),
        };
        Client::new(&invocation).map_err(|error| Failure::invalid_argument(error.to_string()))
    }
}

/// Applies a manifest. An apply that changes something opens the state directory: it consumes proofs.
pub(crate) async fn apply(door: &Door, manifest: &Json, params: &ApplyParams) -> Result<Json, Failure> {
    let options = params.options()?;
    let client = params.client(door)?;
    let recorder = door.recorder()?;
    let proofs = LocalProofs { door, manifest, recorder: &recorder, allow_commands: params.allow_commands };
    let applied = scheduler::apply(&client, manifest, options, &proofs, &Consumed(&recorder)).await;
    applied.map_err(|error| error.to_failure())
}

/// Differences between a manifest and the scheduler's jobs.
pub(crate) async fn plan(door: &Door, manifest: &Json, params: &ApplyParams) -> Result<Plan, Failure> {
    let options = Options { dry_run: true, ..params.options()? };
    scheduler::plan(&params.client(door)?, manifest, options).await.map_err(|error| error.to_failure())
}

/// Rows of the scheduler's database.
pub(crate) fn inspect(door: &Door, params: &Json, db: Option<&str>) -> Result<Json, Failure> {
    let query = Query::from_params(params).map_err(|error| Failure::invalid_argument(error.to_string()))?;
    let db = db.or_else(|| door.surroundings.variable("AGENTCLI_SCHEDULER_DB"));
    let path = db.map(|db| door.surroundings.path(db));
    read_rows(path.as_deref(), &query).map_err(|error| error.to_failure())
}

/// Proofs of tasks, verified before anything is written.
struct LocalProofs<'a> {
    door: &'a Door,
    manifest: &'a Json,
    recorder: &'a Recorder,
    allow_commands: bool,
}

impl Proofs for LocalProofs<'_> {
    async fn verify(&self, workflow_id: &str, task_id: &str) -> Result<LocalProof, Failure> {
        let task = select(self.manifest, Some(workflow_id), task_id)?;
        let Some(proof) = &task.authorization_proof else {
            return Err(Failure::new(
                Code::AuthorizationProofInvalid,
                format!("the task `{task_id}` has no proof"),
            ));
        };
        let hash = effective_task_hash(&execution_binding(&task, None, None));
        let zone = local_zone();
        let inputs = Inputs {
            proof,
            manifest_text: &task.manifest_text,
            manifest_digest: &task.manifest_digest,
            task_hash: &hash,
            now: self.door.clock().now(),
            zone: &zone,
        };
        let key = JobKey { job: format!("{workflow_id}/{task_id}"), session: "apply".to_owned() };
        let folder = &self.door.surroundings.working_dir;
        let gate = SourceGate::new(self.recorder, &key, &task, folder);
        let commands = if self.allow_commands { Commands::Gated(&gate) } else { Commands::Forbidden };
        let sources = Sources::new(self.door.environment(), commands);
        let verified = verify(&inputs, &sources, self.door.keys()).await;
        let verified =
            verified.map_err(|error| gate.explained(Failure::new(error.code(), error.to_string())))?;
        Ok(LocalProof { summary: verified.summary, replay_key: verified.replay_key })
    }
}

/// Proofs on record as used.
struct Consumed<'a>(&'a Recorder);

impl Replay for Consumed<'_> {
    async fn consume(&self, keys: &[String]) -> Result<(), ConsumeError> {
        // One record a key: the apply writes nothing if one was used, and then the others count as used, too.
        for key in keys {
            match self.0.consume(key).await {
                Ok(true) => {}
                Ok(false) => return Err(ConsumeError::Used),
                Err(error) => {
                    log::error!("the use of a proof is not on record: {error}");
                    return Err(ConsumeError::NotRecorded);
                }
            }
        }
        Ok(())
    }
}
