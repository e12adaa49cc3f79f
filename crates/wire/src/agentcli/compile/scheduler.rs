//! Target `openclaw-scheduler`: jobs as the scheduler's columns.

mod message;

use proctor_core::json::Json;

use super::digests::Digests;
use super::plan::{Invocation, Output, Payload, Plan, TaskPlan};
use super::profiles::{self, Source, proof_value};
use super::{OUTPUT_VERSION, Target, blocks, handoff};
use crate::agentcli::canonical::NotCanonical;
use crate::agentcli::effective::members::{Amount, member, object, set, text};
use crate::agentcli::effective::{
    APPROVAL_TIMEOUT_S, Config, Declared, Form, merged, merged_authorization, merged_evidence, merged_proof,
    presents_nothing, provider,
};

/// Schedule of triggered jobs: the scheduler demands one, and the 31st of February never comes.
pub(super) const SENTINEL_CRON: &str = "0 0 31 2 *";
/// Time limit of jobs without one.
const TIMEOUT_MS: u32 = 300_000;
/// Reason for jobs that the scheduler wants delivered, unless they say why not.
const OPT_OUT: &str = "The manifest declares no delivery for this task.";

const SCHEDULED: [&str; 1] = ["The cron schedule becomes the job's own."];
const TRIGGERED: [&str; 2] = [
    "The scheduler demands a cron expression of every job, so a triggered task gets one that never fires.",
    "Runs start when the parent's end is queued, not by the placeholder.",
];

/// The plan as `openclaw-scheduler` output.
pub(super) fn project(plan: &Plan<'_>, explain: bool) -> Result<Json, NotCanonical> {
    let digests = Digests::default();
    let jobs: Vec<Json> = plan.tasks().map(|task| job(task, &digests)).collect::<Result<_, _>>()?;
    let mut output = object([
        ("target", Target::OpenclawScheduler.word().into()),
        ("version", OUTPUT_VERSION.into()),
        ("handoff", handoff::summary()),
        ("jobs", jobs.into()),
    ]);
    profiles::append(&mut output, plan.manifest, Source::Columns, &digests)?;
    if explain {
        output.push("explain", plan.tasks().map(explanation).collect::<Vec<_>>());
    }
    Ok(output)
}

/// The message of a job: its prompt, or its command as a shell line.
pub(super) fn payload_message(payload: &Payload<'_>) -> String {
    match payload {
        Payload::Prompt(prompt) => (*prompt).to_owned(),
        Payload::Shell { program, args, cwd, .. } => message::shell_line(program, args, *cwd),
    }
}

/// Merged scope of a task's identity.
pub(super) fn identity_scope<'a>(task: &TaskPlan<'a>) -> Option<&'a str> {
    task.identity.profiled().over(task.identity_profile).text("scope")
}

/// Cron expression and time zone of a job.
pub(super) fn schedule<'a>(task: &TaskPlan<'a>) -> (&'a str, &'a str) {
    match task.invocation {
        Invocation::Schedule { cron, tz } => (cron, tz),
        Invocation::Trigger { .. } => (SENTINEL_CRON, "UTC"),
    }
}

fn job(task: &TaskPlan<'_>, digests: &Digests) -> Result<Json, NotCanonical> {
    let (cron, tz) = schedule(task);
    let (trigger_on, trigger_delay_s, trigger_condition) = match &task.invocation {
        Invocation::Schedule { .. } => (None, Amount::Default(0), None),
        Invocation::Trigger { on, delay_s, condition, .. } => (Some(*on), *delay_s, *condition),
    };
    let written_approval = member(task.written, "approval");
    let approval = |name| written_approval.and_then(|block| text(block, name));
    let limits = OutputLimits::of(&task.output);
    let flat = |name| match task.identity {
        Declared::Flat(layers) => layers.cloned(name),
        Declared::Profiled(_) => Json::Null,
    };
    let identity = task.identity.profiled().over(task.identity_profile);
    let contract = |name| task.contract.cloned(name);
    let verify = |name| task.verify.as_ref().and_then(|verify| member(verify, name)).cloned();
    Ok(object([
        ("id", task.compiled_id.as_str().into()),
        ("source", blocks::source(task)),
        ("name", task.name.as_ref().into()),
        ("enabled", flag(task.enabled && task.approval.policy != "auto-reject")),
        ("schedule_cron", cron.into()),
        ("schedule_tz", tz.into()),
        ("session_target", task.session_target.into()),
        ("agent_id", task.agent_id.into()),
        ("payload_kind", task.payload_kind.into()),
        ("payload_message", payload_message(&task.payload).into()),
        ("payload_model", task.model.qualified().into()),
        ("payload_thinking", task.model.thinking.into()),
        ("execution_intent", task.intent_mode.into()),
        ("execution_read_only", flag(task.read_only == Some(true))),
        ("run_timeout_ms", Amount::or(task.timeout_ms, TIMEOUT_MS).into()),
        ("overlap_policy", task.reliability.overlap_policy.into()),
        ("max_retries", task.reliability.max_retries.into()),
        ("max_queued_dispatches", task.budgets.queued_dispatches.into()),
        ("max_pending_approvals", task.budgets.pending_approvals.into()),
        ("max_trigger_fanout", task.budgets.fanout.into()),
        ("delivery_mode", task.delivery.mode.into()),
        ("delivery_channel", task.delivery.channel.into()),
        ("delivery_to", task.delivery.to.into()),
        ("delivery_opt_out_reason", opt_out(task).into()),
        ("delivery_guarantee", task.reliability.guarantee.into()),
        ("origin", "system".into()),
        ("parent_id", task.parent_compiled_id().into()),
        ("trigger_on", trigger_on.into()),
        ("trigger_delay_s", trigger_delay_s.into()),
        ("trigger_condition", trigger_condition.into()),
        ("approval_required", flag(task.approval.required)),
        ("approval_timeout_s", task.approval.timeout_s.unwrap_or(Amount::Default(APPROVAL_TIMEOUT_S)).into()),
        ("approval_auto", task.approval.auto.unwrap_or("reject").into()),
        ("approval_risk_level", approval("risk_level").into()),
        ("approval_approver_scope", approval("approver_scope").into()),
        ("context_retrieval", task.context_retrieval.into()),
        ("context_retrieval_limit", task.context_limit.into()),
        ("output_store_limit_bytes", limits.store.into()),
        ("output_excerpt_limit_bytes", limits.excerpt.into()),
        ("output_summary_limit_bytes", limits.summary.into()),
        ("output_offload_threshold_bytes", limits.offload.into()),
        ("output_format", task.output.format.into()),
        ("preferred_session_key", task.preferred_key.into()),
        ("auth_profile", task.auth_profile.into()),
        ("identity_principal", flat("principal")),
        ("identity_run_as", flat("run_as")),
        ("identity_attestation", flat("attestation")),
        ("contract_sandbox", contract("sandbox")),
        ("contract_allowed_paths", task.contract.value("allowed_paths").map(Json::to_string).into()),
        ("contract_network", contract("network")),
        ("contract_max_cost_usd", contract("max_cost_usd")),
        ("contract_audit", contract("audit")),
        ("identity_ref", identity.cloned("ref")),
        ("identity_subject_kind", identity.block("subject").cloned("kind")),
        ("identity_subject_principal", identity.block("subject").cloned("principal")),
        ("identity_trust_level", identity.block("trust").cloned("level")),
        ("identity_delegation_mode", identity.block("subject").cloned("delegation_mode")),
        ("identity", merged_identity(task, digests)?.into()),
        ("authorization_proof_ref", task.proof.cloned("ref")),
        ("authorization_proof", proof(task).into()),
        ("authorization_ref", task.authorization.cloned("ref")),
        (
            "authorization",
            merged_authorization(task.authorization, task.authorization_profile, Config::Removed).into(),
        ),
        ("evidence_ref", task.evidence.cloned("ref")),
        ("evidence", merged_evidence(task.evidence, task.evidence_profile, Config::Removed).into()),
        ("contract_required_trust_level", contract("required_trust_level")),
        ("contract_trust_enforcement", contract("trust_enforcement")),
        ("child_credential_policy", task.child_credential_policy.into()),
        ("verify_shell", verify("shell").into()),
        ("verify_timeout_s", verify("timeout_seconds").into()),
        ("verify_on_failure", verify("on_failure").into()),
        ("delete_after_run", flag(task.delete_after_run == Some(true))),
    ]))
}

/// Reason why a scheduled turn of an agent is not delivered, which the scheduler asks for.
fn opt_out(task: &TaskPlan<'_>) -> Option<&'static str> {
    let root = matches!(task.invocation, Invocation::Schedule { .. });
    (root && task.payload_kind == "agentTurn" && task.delivery.mode == "none").then_some(OPT_OUT)
}

/// Identity over its profile; `None` for a flat one, which has columns of its own.
fn merged_identity(task: &TaskPlan<'_>, digests: &Digests) -> Result<Option<Json>, NotCanonical> {
    let Declared::Profiled(layers) = task.identity else { return Ok(None) };
    let layers = layers.over(task.identity_profile);
    let attributes_hash = digests.of(layers.block("subject").value("attributes"))?;
    let form = Form::Redacted { attributes_hash: attributes_hash.as_deref() };
    let mut identity = merged(layers, Some(&provider(task.identity_profile)), form);
    if presents_nothing(layers) {
        set(&mut identity, "presentation", Json::Null);
    }
    Ok(Some(identity))
}

fn proof(task: &TaskPlan<'_>) -> Option<Json> {
    let mut proof = merged_proof(task.proof, task.proof_profile)?;
    let written = task.proof_profile.and_then(|profile| member(profile, "proof"));
    set(&mut proof, "proof", proof_value(written, Source::Columns));
    Some(proof)
}

/// Sizes at which the scheduler cuts, stores and offloads output.
struct OutputLimits {
    store: u64,
    excerpt: u64,
    summary: u64,
    offload: u64,
}

impl OutputLimits {
    fn of(output: &Output<'_>) -> OutputLimits {
        let excerpt = output.preview_bytes.value().max(64);
        let store = match output.retrieve {
            "inline" => excerpt.saturating_mul(4).max(65_536),
            _ => excerpt.max(65_536),
        };
        let offload = match output.offload {
            "always" => 128,
            "never" => store.max(1_048_576),
            _ => store.max(excerpt.saturating_mul(8)).max(65_536),
        };
        OutputLimits { store, excerpt, summary: excerpt.max(5000), offload }
    }
}

fn flag(value: bool) -> Json {
    u8::from(value).into()
}

fn explanation(task: &TaskPlan<'_>) -> Json {
    let notes: &[&str] = match task.invocation {
        Invocation::Schedule { .. } => &SCHEDULED,
        Invocation::Trigger { .. } => &TRIGGERED,
    };
    blocks::explanation(task, Target::OpenclawScheduler.word(), notes)
        .with("model_policy", blocks::model_policy(&task.model))
        .with("intent", blocks::intent(task))
        .with("output", blocks::output(&task.output))
        .with("budgets", blocks::budgets(&task.budgets))
}
