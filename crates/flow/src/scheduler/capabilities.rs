//! Negotiation of capabilities: what the scheduler at hand supports, which fields it takes, and what it would not honour.

use proctor_core::json::Json;

use super::client::Client;
use super::error::{ApplyError, CallError, CallProblem};
use super::fields::{FieldVersion, is_set};
use crate::text::readable;

/// Most problems that one refusal names.
const MAX_PROBLEMS: usize = 10;

/// Features of the runtime that jobs may depend on. Without an answer of the runtime none of them counts as there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Features {
    runtime_identity_resolution: bool,
    evidence_generation: bool,
    trust_evaluation: bool,
    credential_handoff: bool,
    authorization_proof_verification: bool,
    authorization_hook: bool,
    root_approval_gate: bool,
    approval_scope_enforcement: bool,
    structured_output_format: bool,
}

impl Features {
    fn read(features: Option<&Json>) -> Features {
        // A gate counts as there only by `true` or the documented word: `"false"` and `"none"` are texts too.
        let on = |name: &str| {
            matches!(features.and_then(|features| features.get(name)), Some(Json::Bool(true)))
                || features.is_some_and(|features| features[name] == "runtime")
        };
        Features {
            runtime_identity_resolution: on("runtime_identity_resolution"),
            evidence_generation: on("evidence_generation"),
            trust_evaluation: on("trust_evaluation"),
            credential_handoff: on("credential_handoff"),
            authorization_proof_verification: on("authorization_proof_verification"),
            authorization_hook: on("authorization_hook"),
            root_approval_gate: on("root_approval_gate"),
            approval_scope_enforcement: on("approval_scope_enforcement"),
            structured_output_format: on("structured_output_format"),
        }
    }
}

/// Result of the negotiation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Capabilities {
    /// Whether the runtime was asked and answered.
    negotiated: bool,
    handoff_version: Option<String>,
    features: Features,
    /// Fields that are sent.
    pub(super) fields: FieldVersion,
    warnings: Vec<String>,
}

impl Capabilities {
    /// Asks the scheduler where the jobs need it, and refuses jobs that it could not honour.
    pub(super) async fn negotiate(client: &Client, jobs: &[Json]) -> Result<Capabilities, ApplyError> {
        let required = FieldVersion::required_by(jobs);
        let is_asked_by_protocol = jobs.iter().any(needs_negotiation);
        // Contracts, verification and flat identities are sent too where the scheduler takes them; the protocol alone would not
        // ask for their sake, and drop them.
        let (answer, unasked) = if is_asked_by_protocol || required > FieldVersion::V1 {
            // A failed query falls back to the static features.
            match client.capabilities().await {
                Ok(answer) => (Some(answer).filter(|answer| answer.as_object().is_some()), None),
                // A scheduler that cannot be started takes no jobs either, and says nothing about their features.
                Err(error @ CallError { problem: CallProblem::Start { .. }, .. }) => return Err(error.into()),
                Err(error) => (None, Some(error)),
            }
        } else {
            (None, None)
        };
        let mut capabilities = Capabilities {
            negotiated: answer.is_some(),
            handoff_version: answer.as_ref().and_then(|answer| match answer.get("handoff_version") {
                Some(Json::String(text)) => Some(readable(text)),
                Some(Json::Number(text)) => Some(text.to_string()),
                _ => None,
            }),
            features: Features::read(answer.as_ref().and_then(|answer| answer.get("features"))),
            fields: FieldVersion::V1,
            warnings: Vec::new(),
        };
        let mut problems: Vec<String> =
            jobs.iter().flat_map(|job| capabilities.missing(job)).take(MAX_PROBLEMS).collect();
        if capabilities.negotiated {
            match capabilities.advertised() {
                Some(advertised) if advertised >= required => capabilities.fields = advertised,
                advertised if is_asked_by_protocol => problems.push(format!(
                    "job `{}` needs handoff version {}, and the scheduler advertises {}",
                    jobs.iter()
                        .find(|job| FieldVersion::required_by(std::slice::from_ref(job)) == required)
                        .map(job_name)
                        .unwrap_or_default(),
                    required.word(),
                    advertised.map_or("none", FieldVersion::word)
                )),
                advertised => capabilities.fields = advertised.unwrap_or(FieldVersion::V1),
            }
        }
        if !problems.is_empty() {
            if let Some(error) = unasked {
                problems.push(format!("the scheduler was asked what it can do, and did not answer: {error}"));
            }
            return Err(ApplyError::Unsupported(problems));
        }
        capabilities.warn(jobs);
        Ok(capabilities)
    }

    /// Whether the scheduler says that it verifies proofs.
    pub(super) fn verifies_proofs(&self) -> bool {
        self.features.authorization_proof_verification
    }

    /// The member `capabilities` of results.
    pub(super) fn to_json(&self) -> Json {
        let mut json = Json::object()
            .with("source", if self.negotiated { "runtime" } else { "static" })
            .with("negotiated", self.negotiated)
            .with("handoff_version", self.handoff_version.clone());
        if !self.warnings.is_empty() {
            json.push(
                "warnings",
                self.warnings.iter().map(|text| Json::from(text.as_str())).collect::<Vec<Json>>(),
            );
        }
        json
    }

    /// Warnings for people.
    pub(super) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn advertised(&self) -> Option<FieldVersion> {
        let number: u32 = self.handoff_version.as_ref()?.trim().parse().ok()?;
        match number {
            0 => None,
            1 => Some(FieldVersion::V1),
            2 => Some(FieldVersion::V2),
            _ => Some(FieldVersion::V3),
        }
    }

    /// Features that a job cannot do without, and that the scheduler lacks.
    fn missing(&self, job: &Json) -> Vec<String> {
        let features = &self.features;
        let is_root_approval = is_set(&job["approval_required"]) && job["parent_id"].is_null();
        let handoff = job.pointer("/identity/presentation/handoff").and_then(Json::as_str).unwrap_or("none");
        let needs = [
            (
                is_root_approval,
                features.root_approval_gate,
                "an approval of a root job",
                "root_approval_gate",
            ),
            (
                is_set(&job["approval_approver_scope"]),
                features.approval_scope_enforcement,
                "an approver scope",
                "approval_scope_enforcement",
            ),
            (
                is_set(&job["output_format"]),
                features.structured_output_format,
                "an output format",
                "structured_output_format",
            ),
            (
                is_set(&job["authorization"]),
                features.authorization_hook,
                "authorization",
                "authorization_hook",
            ),
            (
                is_set(&job["contract_required_trust_level"]),
                features.trust_evaluation,
                "a required trust level",
                "trust_evaluation",
            ),
            (is_set(&job["evidence"]), features.evidence_generation, "evidence", "evidence_generation"),
            (handoff != "none", features.credential_handoff, "a credential handoff", "credential_handoff"),
        ];
        needs
            .into_iter()
            .filter(|(is_needed, is_there, ..)| *is_needed && !is_there)
            .map(|(_, _, what, feature)| {
                format!("job `{}` has {what}, and the scheduler has no `{feature}`", job_name(job))
            })
            .collect()
    }

    fn warn(&mut self, jobs: &[Json]) {
        let features = self.features;
        for job in jobs {
            let provider = job.pointer("/identity/provider").and_then(Json::as_str).unwrap_or("none");
            if provider != "none" && !features.runtime_identity_resolution {
                self.warnings.push(format!(
                    "job `{}`: the scheduler does not resolve identities; provider `{}` is only declared",
                    job_name(job),
                    readable(provider)
                ));
            }
            if job["child_credential_policy"] == "downscope" && !features.credential_handoff {
                self.warnings.push(format!(
                    "job `{}`: the scheduler hands no credentials on; `downscope` has no effect",
                    job_name(job)
                ));
            }
            let unsent: Vec<&str> = self.fields.unsent(job).collect();
            if !unsent.is_empty() {
                self.warnings.push(format!(
                    "job `{}`: not sent, because the scheduler does not take it: {}",
                    job_name(job),
                    unsent.join(", ")
                ));
            }
        }
    }
}

/// Whether a job has anything that the protocol negotiates for.
fn needs_negotiation(job: &Json) -> bool {
    let fields = [
        "identity",
        "identity_ref",
        "authorization",
        "authorization_proof",
        "evidence",
        "child_credential_policy",
        "contract_required_trust_level",
        "approval_approver_scope",
        "output_format",
    ];
    fields.iter().any(|name| is_set(&job[name]))
        || (is_set(&job["approval_required"]) && job["parent_id"].is_null())
}

/// Name of a job, fit for messages.
pub(super) fn job_name(job: &Json) -> String {
    readable(job.get("name").and_then(Json::as_str).unwrap_or_default())
}
