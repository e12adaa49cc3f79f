//! Checks before anything is started: policy, proof, identity, trust, authorization.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use proctor_core::action::Action;
use proctor_core::json::Json;
use proctor_identity::sources::{CommandGate, CommandLine, CommandRefusal, Commands};
use proctor_wire::agentcli::binding::{effective_task_hash, execution_binding};
use proctor_wire::agentcli::effective::EffectiveTask;
use proctor_wire::agentcli::error::{Code, Failure};
use rust_decimal::Decimal;

use super::Run;
use crate::run::action::{action, command_line_of_words, require_approval, source_action};
use crate::run::contract::Confinement;
use crate::run::parts::{BoxFuture, ResolvedIdentity, Subject, Verdict};
use crate::run::read::{integer, shell, text};
use crate::run::recorder::{Approval, Decided, JobKey, Recorder};
use crate::run::refusal::{Stop, stop_of};
use crate::run::trust;

/// Gate of `command` value sources: each one is an action of the run.
pub struct SourceGate<'a> {
    recorder: &'a Recorder,
    key: &'a JobKey,
    task: &'a EffectiveTask,
    folder: &'a Path,
    /// Code and approval of the last refusal: the crates between carry neither.
    refused: Mutex<Option<(Code, Option<Approval>)>>,
}

impl<'a> SourceGate<'a> {
    /// Gate of the sources of a task. `key` is the principal and session of the run, `folder` the one that commands run in.
    pub fn new(
        recorder: &'a Recorder,
        key: &'a JobKey,
        task: &'a EffectiveTask,
        folder: &'a Path,
    ) -> SourceGate<'a> {
        SourceGate { recorder, key, task, folder, refused: Mutex::new(None) }
    }

    /// Gives the failure of a check the code of the refusal that caused it, if a command was refused.
    pub fn explained(&self, failure: Failure) -> Failure {
        self.stop(failure).failure
    }

    /// Stops a run after a failed check, with the approval that a refused command needs.
    pub(in crate::run) fn stop(&self, failure: Failure) -> Stop {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner).take();
        match refused {
            Some((code, approval)) => Stop { failure: Failure { code, ..failure }, approval },
            None => failure.into(),
        }
    }
}

impl CommandGate for SourceGate<'_> {
    fn permit<'a>(&'a self, command: &'a CommandLine) -> BoxFuture<'a, Result<(), CommandRefusal>> {
        Box::pin(async move {
            let line = command_line_of_words(&command.words());
            let folder = self.folder.display().to_string();
            let decided = self.recorder.decide(self.key, source_action(self.task, &line, &folder)).await;
            let Some(stop) = stop_of(&decided, Code::ApprovalRequired) else { return Ok(()) };
            let Stop { failure, approval } = stop;
            *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some((failure.code, approval));
            Err(CommandRefusal { reason: failure.message })
        })
    }
}

/// Results of the checks before the start.
pub(super) struct Checked {
    pub(super) binding: Json,
    pub(super) task_hash: String,
    pub(super) decision: Decided,
    pub(super) proof: Json,
    pub(super) identity: Option<Box<dyn ResolvedIdentity>>,
    pub(super) authorization: Json,
}

impl Run<'_> {
    /// Policy, proof, identity, trust, authorization.
    pub(super) async fn check(&mut self, confinement: &Confinement) -> Result<Checked, Stop> {
        let (task, parts) = (self.task, &self.runner.parts);
        let cwd = confinement.directory.display().to_string();
        let is_declared = shell(&task.task).is_some_and(|shell| text(shell, "cwd").is_some());
        let binding =
            execution_binding(task, is_declared.then_some(cwd.as_str()), self.options.instance_id.as_deref());
        let task_hash = effective_task_hash(&binding);
        let mut proposed = action(task, &task_hash, &cwd, self.options);
        // The hash has paths as they are written; a grant is for the folders that they lead to from here.
        if let Some(folders) = confinement.allowed() {
            let folders: Vec<Json> =
                folders.iter().map(|path| Json::from(path.display().to_string())).collect();
            proposed.args.push("allowed_folders", folders);
        }
        if integer(&task.approval, "required") == Some(1) && text(&task.approval, "policy") == Some("manual")
        {
            let (timeout, scope) =
                (integer(&task.approval, "timeout_s"), text(&task.approval, "approver_scope"));
            let risk = text(&task.approval, "risk_level").unwrap_or("medium");
            let reason = format!("the task requires an approval (risk: {risk})");
            require_approval(&mut proposed, &reason, timeout, scope);
        }
        if self.options.require_authorization && task.authorization.is_none() {
            let message = "the task has no authorization, and the run requires one";
            return Err(Failure::new(Code::AuthorizationDenied, message).into());
        }
        let decision = self.decide(proposed.clone(), Code::ApprovalRequired).await?;
        self.rests_on_named_approval(&decision)?;
        let key = self.key.clone();
        let gate = SourceGate::new(&parts.recorder, &key, task, &parts.directory);
        let commands = if self.options.allow_commands { Commands::Gated(&gate) } else { Commands::Forbidden };
        let subject = Subject { task, task_hash: &task_hash, commands };
        let proof = match &task.authorization_proof {
            Some(_) => parts.proofs.verify(subject).await.map_err(|failure| gate.stop(failure))?,
            None => Json::Null,
        };
        let identity = match &task.identity {
            Some(_) => Some(parts.identities.resolve(subject).await.map_err(|failure| gate.stop(failure))?),
            None => None,
        };
        if let Some(identity) = &identity {
            self.mask(&identity.secrets())?;
        }
        let trust = identity.as_ref().map(|identity| identity.trust());
        self.warnings.extend(trust::check(&task.contract, trust)?);
        let authorization = match &task.authorization {
            Some(_) => self.authorize(subject, identity.as_deref(), &proof, &mut proposed).await?,
            None => Json::Null,
        };
        Ok(Checked { binding, task_hash, decision, proof, identity, authorization })
    }

    /// Refuses a run that does not rest on the approval that its caller named.
    fn rests_on_named_approval(&self, decision: &Decided) -> Result<(), Failure> {
        let Some(named) = &self.options.approval_id else { return Ok(()) };
        let used = decision.approval.as_ref().map(|approval| approval.id.to_string());
        if used.as_deref() == Some(named) {
            return Ok(());
        }
        let message = format!("the run does not rest on the approval `{named}`");
        Err(Failure::new(Code::ApprovalScopeMismatch, message))
    }

    /// Decides on an action of the run; one that lets it through stays open until the outcome.
    async fn decide(&mut self, proposed: Action, ask: Code) -> Result<Decided, Stop> {
        let decided = self.runner.parts.recorder.decide(&self.key, proposed).await;
        if decided.effect.lets_through() {
            self.open = Some(decided.clone());
        }
        match stop_of(&decided, ask) {
            None => Ok(decided),
            Some(stop) => Err(stop),
        }
    }

    async fn authorize(
        &mut self,
        subject: Subject<'_>,
        identity: Option<&dyn ResolvedIdentity>,
        proof: &Json,
        proposed: &mut Action,
    ) -> Result<Json, Stop> {
        let answer = self.runner.parts.authorizer.evaluate(subject, identity, proof).await?;
        if answer.is_weakened {
            let warning = format!(
                "the authorization provider failed, and `on_error: warn` let it pass: {}",
                answer.reason
            );
            self.observe("authorization_weakened", Json::object().with("reason", answer.reason.as_str()))
                .await?;
            self.warnings.push(warning);
        }
        match answer.verdict {
            Verdict::Permit => Ok(answer.summary),
            Verdict::Deny => {
                let message = format!("the authorization provider denies the run: {}", answer.reason);
                Err(Failure::new(Code::AuthorizationDenied, message).into())
            }
            Verdict::Escalate => {
                // Another action than the first, so that the approval of one is not used up by the other.
                proposed.args.push("escalation", answer.reason.as_str());
                let reason = format!("the authorization provider escalates: {}", answer.reason);
                let (timeout, scope) =
                    (integer(&self.task.approval, "timeout_s"), text(&self.task.approval, "approver_scope"));
                require_approval(proposed, &reason, timeout, scope);
                let first = self.open.take();
                let escalated = self.decide(proposed.clone(), Code::AuthorizationEscalationRequired).await;
                let second = std::mem::replace(&mut self.open, first);
                if let Some(second) = second {
                    let result = Json::object().with("escalation", "approved");
                    self.outcome(second, escalated.is_ok(), result, Some(0), Some(Decimal::ZERO)).await?;
                }
                escalated?;
                Ok(answer.summary.with("escalation_approved", true))
            }
        }
    }
}
