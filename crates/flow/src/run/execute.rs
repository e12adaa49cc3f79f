//! Sequence of a run.

pub(super) mod check;
mod report;
mod work;

use proctor_core::json::Json;
use proctor_core::random::Randomness;
use proctor_mask::Masker;
use proctor_proof::secret::Secret;
use proctor_sandbox::Sandbox;
use proctor_wire::agentcli::effective::EffectiveTask;
use proctor_wire::agentcli::error::{Code, Failure};
use rust_decimal::Decimal;

use super::action::grouped;
use super::contract::Confinement;
use super::evidence::Demand;
use super::parts::{AgentRuntime, Presented};
use super::read::{shell, text};
use super::recorder::{Decided, JobKey, JobOutcome, RecordError};
use super::refusal::{Refusal, Stop};
use super::result::Execution;
use super::retry::Attempt;
use super::unapplied::unapplied;
use super::{Cancel, Options, Runner, agent};

pub use check::SourceGate;

/// Run in progress.
struct Run<'a> {
    runner: &'a Runner,
    options: &'a Options,
    task: &'a EffectiveTask,
    attempt: Attempt,
    key: JobKey,
    /// The decision that let the run through, until its outcome is recorded.
    open: Option<Decided>,
    masker: Masker,
    warnings: Vec<String>,
    /// Targets of presented credentials, if results show them.
    presentation: Option<Json>,
}

/// Place of execution: a sandbox, or an agent. The verify command of either runs in the sandbox.
struct Place<'a> {
    sandbox: Sandbox,
    agent: Option<&'a dyn AgentRuntime>,
}

impl Runner {
    pub(super) async fn execute(
        &self,
        task: &EffectiveTask,
        options: &Options,
        attempt: Attempt,
        cancel: &mut Cancel,
    ) -> Result<Execution, Refusal> {
        let key =
            JobKey { job: format!("{}/{}", task.workflow_id, task.task_id), session: self.execution_id() };
        let nothing =
            Masker::new([]).map_err(|error| Failure::new(Code::InternalError, error.to_string()))?;
        let mut run = Run {
            runner: self,
            options,
            task,
            attempt,
            key,
            open: None,
            masker: nothing,
            warnings: Vec::new(),
            presentation: None,
        };
        match run.steps(cancel).await {
            Ok(execution) => Ok(execution),
            Err(stop) => Err(run.refuse(stop).await),
        }
    }

    /// Random UUID without dashes.
    pub(super) fn execution_id(&self) -> String {
        random_id(&*self.parts.randomness)
    }
}

/// Random UUID without dashes.
pub(super) fn random_id(randomness: &dyn Randomness) -> String {
    proctor_core::id::drawn_without_long_number(|| {
        let mut bytes = [0_u8; 16];
        randomness.fill(&mut bytes);
        let [.., version, _, variant, _, _, _, _, _, _, _] = &mut bytes;
        *version = (*version & 0x0f) | 0x40;
        *variant = (*variant & 0x3f) | 0x80;
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    })
}

impl<'a> Run<'a> {
    async fn steps(&mut self, cancel: &mut Cancel) -> Result<Execution, Stop> {
        let task = self.task;
        let parts = &self.runner.parts;
        let confinement = Confinement::read(&task.task, &task.contract, &parts.directory)?;
        if !task.enabled {
            self.warnings.push("the task is disabled, and runs because it was named".to_owned());
        }
        self.warnings.extend(unapplied(task, parts.user()));
        if text(&task.approval, "policy") == Some("auto-reject") {
            let message = "the approval policy of the task rejects every run";
            return Err(Failure::new(Code::ApprovalAutoRejected, message).into());
        }
        let place = self.place(&confinement)?;
        let demand = Demand::read(task.evidence.as_ref(), self.options)?;
        let checked = self.check(&confinement).await?;
        if cancel.is_given() {
            return Err(Failure::new(Code::InternalError, "the run was cancelled before it started").into());
        }
        if let Some(demand) = &demand {
            demand.check(&*parts.signer).await?;
        }
        // An agent is handed no credentials, so none are written for it.
        let presented = match place.agent {
            Some(_) => Presented::default(),
            None => self.present(checked.identity.as_deref()).await?,
        };
        self.presentation = self.options.presentation_debug.then(|| presented.description.clone());
        let (ran, verify) = self.work(place, &confinement, presented, cancel).await?;
        self.finish(checked, demand, ran, verify).await
    }

    fn place(&mut self, confinement: &Confinement) -> Result<Place<'a>, Failure> {
        let runner = self.runner;
        let agent = if shell(&self.task.task).is_some() {
            None
        } else {
            let runtime = agent::runtime(runner.parts.agents.as_deref(), self.task)?;
            self.warnings.extend(confinement.outside()?);
            Some(runtime)
        };
        let (sandbox, gaps) = confinement.enforce(&runner.sandboxes, runner.state())?;
        if agent.is_none() {
            self.warnings.extend(gaps);
        }
        Ok(Place { sandbox, agent })
    }

    fn mask(&mut self, secrets: &[Secret]) -> Result<(), Failure> {
        self.masker = Masker::new(secrets.iter().map(Secret::expose))
            .map_err(|error| Failure::new(Code::PresentationBindingInvalid, error.to_string()))?;
        Ok(())
    }

    async fn outcome(
        &self,
        decided: Decided,
        is_ok: bool,
        result: Json,
        tokens: Option<u64>,
        cost_usd: Option<Decimal>,
    ) -> Result<(), Failure> {
        let Some(decision) = decided.record else { return Ok(()) };
        let result = self.masker.mask_json(&result);
        let outcome = JobOutcome { decision, is_ok, result, tokens, cost_usd };
        let recorded = self.runner.parts.recorder.outcome(&self.key, outcome).await;
        recorded.map(drop).map_err(|error| not_recorded(&error))
    }

    async fn observe(&self, code: &str, data: Json) -> Result<(), Failure> {
        let data = self.masker.mask_json(&data);
        let recorded = self.runner.parts.recorder.observe(&self.key, code, data).await;
        recorded.map(drop).map_err(|error| not_recorded(&error))
    }

    async fn record_end(
        &self,
        is_ok: bool,
        code: Option<Code>,
        message: Option<&str>,
        evidence: &Json,
    ) -> Result<(), Failure> {
        let mut data = Json::object()
            .with("execution_id", self.key.session.as_str())
            .with("workflow", self.task.workflow_id.as_str())
            .with("task", self.task.task_id.as_str())
            .with("manifest_digest", grouped(&self.task.manifest_digest))
            .with("ok", is_ok);
        if let Some(earlier) = &self.attempt.retry_of {
            data.push("attempt", self.attempt.number);
            data.push("retry_of", earlier.as_str());
        }
        if let Some(code) = code {
            data.push("code", code.word());
        }
        if let Some(message) = message {
            data.push("message", self.masker.mask_text(message));
        }
        if let Some(digest) = text(evidence, "digest") {
            data.push("evidence_digest", grouped(digest));
        }
        let recorded = self.runner.parts.recorder.end(&self.key, data).await;
        recorded.map(drop).map_err(|error| not_recorded(&error))
    }

    /// Records the end of a run that was stopped before its process was started.
    async fn refuse(&mut self, stop: Stop) -> Refusal {
        let Stop { mut failure, approval } = stop;
        failure.message = self.masker.mask_text(&failure.message);
        let mut recorded = Ok(());
        if let Some(open) = self.open.take() {
            let result = Json::object().with("started", false).with("code", failure.code.word());
            // Nothing was spent: what budgets reserved is given back.
            let (tokens, cost) = (Some(0), Some(Decimal::ZERO));
            recorded = self.outcome(open, false, result, tokens, cost).await;
        }
        let ended = self.record_end(false, Some(failure.code), Some(&failure.message), &Json::Null).await;
        if let Err(problem) = recorded.and(ended) {
            log::error!("run {}: {}", self.key.session, problem.message);
        }
        Refusal { failure, execution_id: Some(self.key.session.clone()), approval }
    }
}

fn not_recorded(error: &RecordError) -> Failure {
    Failure::new(Code::InternalError, format!("the run could not be recorded: {error}"))
}
