//! End of a run that was started: outcome, evidence, result.

use proctor_core::json::Json;
use proctor_proof::evidence::Payload;
use proctor_wire::agentcli::error::{Code, Failure};

use super::Run;
use super::check::Checked;
use crate::run::describe::{actor_context, command_of, declared_identity, source_of};
use crate::run::evidence::{Demand, Maker};
use crate::run::read::{member, text};
use crate::run::refusal::Stop;
use crate::run::result::{Execution, Ran};

impl Run<'_> {
    /// Outcome, evidence, end.
    pub(super) async fn finish(
        &mut self,
        checked: Checked,
        demand: Option<Demand>,
        ran: Ran,
        verify: Json,
    ) -> Result<Execution, Stop> {
        let mut code = None;
        if let Some(violation) = &ran.violation {
            code = Some(Code::ContractViolation);
            self.warnings.push(violation.clone());
        }
        let is_verified = verify.is_null() || verify.get("ok").and_then(Json::as_bool) == Some(true);
        if !is_verified {
            if text(&verify, "on_failure") == Some("warn") {
                self.warnings.push("the verify command failed".to_owned());
            } else {
                code = Some(Code::VerifyFailed);
            }
        }
        let is_ok = ran.is_ok && code.is_none();
        let may_retry = !is_ok && !ran.is_cancelled;
        let has_output = match text(&self.task.contract, "audit") {
            Some("none") => false,
            Some("on-failure") => !is_ok,
            _ => true,
        };
        let mut result = ran.to_record(has_output);
        if !verify.is_null() {
            result.push("verified", is_verified);
        }
        if let Some(open) = self.open.take() {
            let recorded = self.outcome(open, is_ok, result, ran.tokens, ran.cost_usd).await;
            recorded.map_err(after_the_fact)?;
        }
        let mut json = self.report(&checked, &ran, &verify);
        let mut evidence = Json::Null;
        if let Some(demand) = &demand {
            match self.evidence(demand, &checked, &ran, &json).await {
                Ok(made) => evidence = made,
                Err(failure) if demand.is_required => {
                    code = code.or(Some(Code::EvidenceFailed));
                    self.warnings.push(failure.message);
                }
                Err(failure) => self.warnings.push(format!("no evidence: {}", failure.message)),
            }
        }
        let is_ok = is_ok && code.is_none();
        let evidence = self.masker.mask_json(&evidence);
        self.record_end(is_ok, code, None, &evidence).await.map_err(after_the_fact)?;
        json.push("evidence", evidence);
        let warnings: Vec<Json> =
            self.warnings.iter().map(|warning| Json::from(self.masker.mask_text(warning))).collect();
        json.push("warnings", warnings);
        if let Some(code) = code {
            json.push("code", code.word());
        }
        let mut out = Json::object().with("ok", is_ok);
        if let Json::Object(members) = json {
            for (name, value) in members {
                out.push(&name, value);
            }
        }
        let execution_id = self.key.session.clone();
        Ok(Execution { is_ok, code, execution_id, json: out, stdout: ran.text, may_retry })
    }

    /// The result without evidence and warnings.
    fn report(&self, checked: &Checked, ran: &Ran, verify: &Json) -> Json {
        let parts = &self.runner.parts;
        let declared = declared_identity(self.task, &checked.binding);
        let resolved = checked.identity.as_ref().map(|identity| self.masker.mask_json(&identity.describe()));
        let flat = self.task.flat_identity.as_ref().and_then(|flat| text(flat, "principal"));
        let subject = member(&declared, "subject").and_then(|subject| text(subject, "principal"));
        let principal = checked
            .identity
            .as_ref()
            .and_then(|identity| identity.principal())
            .or_else(|| flat.or(subject).map(str::to_owned))
            .unwrap_or_else(|| parts.local_principal.clone());
        let record = checked
            .decision
            .record
            .map(|(id, sequence)| Json::object().with("decision_id", id.to_string()).with("seq", sequence));
        let mut debug = Vec::new();
        if self.options.identity_debug {
            debug.push(("identity", checked.binding.get("identity").cloned().unwrap_or_default()));
        }
        if let Some(presentation) = &self.presentation {
            debug.push(("presentation", presentation.clone()));
        }
        let mut policy = Json::object().with("rule", checked.decision.rule.as_str());
        if let Some(approval) = &checked.decision.approval {
            policy.push("approval_id", approval.id.to_string());
        }
        let report = Json::object()
            .with("execution_id", self.key.session.as_str())
            .with("source", source_of(self.task))
            .with("manifest_digest", self.task.manifest_digest.as_str())
            .with("effective_task_hash", checked.task_hash.as_str())
            .with("command", command_of(&checked.binding))
            .with("result", ran.to_json())
            .with("declared_identity", declared)
            .with("resolved_identity", resolved)
            .with("principal_used", principal)
            .with("authorization_proof", self.masker.mask_json(&checked.proof))
            .with("authorization", self.masker.mask_json(&checked.authorization))
            .with("policy", policy)
            .with("verify", verify.clone())
            .with("record", record);
        debug.into_iter().fold(report, |report, (name, value)| report.with(name, value))
    }

    async fn evidence(
        &self,
        demand: &Demand,
        checked: &Checked,
        ran: &Ran,
        report: &Json,
    ) -> Result<Json, Failure> {
        let (runner, of) = (self.runner, |name: &str| report.get(name).cloned().unwrap_or_default());
        let payload = Payload {
            execution_id: self.key.session.clone(),
            timestamp: runner.parts.clock.now().to_string(),
            source: of("source"),
            manifest_digest: self.task.manifest_digest.clone(),
            effective_task_hash: checked.task_hash.clone(),
            declared_identity: of("declared_identity"),
            resolved_identity: of("resolved_identity"),
            authorization_proof: of("authorization_proof"),
            authorization: of("authorization"),
            actor_context: actor_context(&checked.proof).with("principal", of("principal_used")),
            contract: self.task.contract.clone(),
            command: of("command"),
            result: ran.to_evidence(),
            verify: of("verify"),
            compliance_context: demand.context(),
        };
        let payload = payload.to_json();
        let maker = Maker {
            signer: &*runner.parts.signer,
            recorder: &runner.parts.recorder,
            state: runner.state(),
            folder: &runner.folders.evidence,
            execution_id: &self.key.session,
            decision: checked.decision.record.map_or(0, |(_, sequence)| sequence),
        };
        maker.make(demand, &payload).await
    }
}

/// Failure to record a run that was carried out: its message must not pass for that of a refusal.
fn after_the_fact(failure: Failure) -> Failure {
    let message = format!("the task ran, and {}", failure.message);
    Failure { message, ..failure }
}
