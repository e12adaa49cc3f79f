//! Target `standalone`: a portable plan of workflows, tasks and edges.

use proctor_core::json::Json;

use super::digests::Digests;
use super::plan::{Invocation, Payload, Plan, TaskPlan, WorkflowPlan};
use super::profiles::{self, Source};
use super::{OUTPUT_VERSION, Target, blocks};
use crate::agentcli::canonical::{self, NotCanonical};
use crate::agentcli::effective::members::object;
use crate::agentcli::effective::{
    CONTRACT, Declared, Form, declared_authorization, declared_evidence, declared_proof, merged,
};

/// Note on scheduled tasks.
const SCHEDULED: &str = "The cron schedule is kept as it is written, for backends that start tasks by time.";
/// Note on triggered tasks.
const TRIGGERED: &str = "The trigger is kept as it is written, without a placeholder schedule.";

/// The plan as `standalone` output.
pub(super) fn project(plan: &Plan<'_>, explain: bool) -> Result<Json, NotCanonical> {
    let digests = Digests::default();
    let mut output = object([
        ("target", Target::Standalone.word().into()),
        ("version", OUTPUT_VERSION.into()),
        ("capabilities", capabilities()),
    ]);
    profiles::append(&mut output, plan.manifest, Source::Declared, &digests)?;
    let workflows: Vec<Json> = plan
        .workflows
        .iter()
        .map(|workflow| project_workflow(workflow, &digests))
        .collect::<Result<_, _>>()?;
    output.push("workflows", workflows);
    if explain {
        output.push("explain", plan.tasks().map(explanation).collect::<Vec<_>>());
    }
    Ok(output)
}

/// Features of a plan that nothing executes.
fn capabilities() -> Json {
    let no = || Json::from(false);
    let yes = || Json::from(true);
    let portable = || Json::from("portable");
    object([
        ("approvals", "intent-only".into()),
        ("model_policy", portable()),
        ("execution_intent", portable()),
        ("output_hints", portable()),
        ("timeout_support", portable()),
        ("context_retrieval", portable()),
        ("runtime_execution", no()),
        ("identity_declaration", yes()),
        ("runtime_identity_resolution", no()),
        ("evidence_generation", no()),
        ("audit_export", no()),
        ("trust_evaluation", no()),
        ("delegation_validation", no()),
        ("credential_handoff", no()),
        ("authorization_proof_verification", no()),
        ("authorization_hook", no()),
        ("root_approval_gate", no()),
        ("approval_scope_enforcement", no()),
        ("structured_output_format", no()),
        ("authoring", yes()),
        ("planning", yes()),
        ("rpc", yes()),
        ("budgets", yes()),
        ("identity", yes()),
        ("contracts", yes()),
    ])
}

fn project_workflow(workflow: &WorkflowPlan<'_>, digests: &Digests) -> Result<Json, NotCanonical> {
    let tasks: Vec<Json> =
        workflow.tasks.iter().map(|task| project_task(task, digests)).collect::<Result<_, _>>()?;
    Ok(object([
        ("id", workflow.id.into()),
        ("name", workflow.name.into()),
        ("tasks", tasks.into()),
        ("edges", workflow.tasks.iter().filter_map(edge).collect::<Vec<_>>().into()),
    ]))
}

fn project_task(task: &TaskPlan<'_>, digests: &Digests) -> Result<Json, NotCanonical> {
    Ok(object([
        ("id", task.compiled_id.as_str().into()),
        ("source", blocks::source(task)),
        ("name", task.name.as_ref().into()),
        ("enabled", task.enabled.into()),
        ("invocation", invocation(task)),
        ("execution", execution(task)?),
        ("intent", blocks::intent(task)),
        ("output", blocks::output(&task.output)),
        ("budgets", blocks::budgets(&task.budgets)),
        ("delivery", delivery(task)),
        ("reliability", reliability(task)),
        ("runtime", object([("timeout_ms", task.timeout_ms.cloned().into())])),
        ("approval", task.approval.to_json()),
        ("context", context(task)),
        ("session", object([("preferred_key", task.preferred_key.into())])),
        ("identity", identity(task, digests)?),
        ("contract", task.contract.object(&CONTRACT)),
        ("authorization_proof", declared_proof(task.proof).into()),
        ("authorization", declared_authorization(task.authorization).into()),
        ("evidence", declared_evidence(task.evidence).into()),
        ("child_credential_policy", task.child_credential_policy.into()),
        ("verify", task.verify.clone().into()),
        ("auth_profile", task.auth_profile.into()),
        ("delete_after_run", task.delete_after_run.into()),
        ("parent_compiled_id", task.parent_compiled_id().into()),
    ]))
}

fn invocation(task: &TaskPlan<'_>) -> Json {
    match &task.invocation {
        Invocation::Schedule { cron, tz } => {
            object([("mode", "schedule".into()), ("cron", (*cron).into()), ("tz", (*tz).into())])
        }
        Invocation::Trigger { parent, on, delay_s, condition, .. } => object([
            ("mode", "trigger".into()),
            ("parent", (*parent).into()),
            ("on", (*on).into()),
            ("delay_s", (*delay_s).into()),
            ("condition", (*condition).into()),
        ]),
    }
}

fn edge(task: &TaskPlan<'_>) -> Option<Json> {
    match &task.invocation {
        Invocation::Schedule { .. } => None,
        Invocation::Trigger { parent_compiled_id, on, delay_s, condition, .. } => Some(object([
            ("from", parent_compiled_id.as_str().into()),
            ("to", task.compiled_id.as_str().into()),
            ("on", (*on).into()),
            ("condition", (*condition).into()),
            ("delay_s", (*delay_s).into()),
        ])),
    }
}

fn execution(task: &TaskPlan<'_>) -> Result<Json, NotCanonical> {
    Ok(object([
        ("session_target", task.session_target.into()),
        ("agent_id", task.agent_id.into()),
        ("payload_kind", task.payload_kind.into()),
        ("payload", payload(&task.payload)?),
        ("model_policy", blocks::model_policy(&task.model)),
    ]))
}

/// The prompt or command. Environment and standard input may hold secrets: only their names and digests are printed.
fn payload(payload: &Payload<'_>) -> Result<Json, NotCanonical> {
    match payload {
        Payload::Prompt(prompt) => Ok(object([("prompt", (*prompt).into())])),
        Payload::Shell { program, args, cwd, env, stdin } => {
            let mut keys: Vec<&str> = env
                .and_then(Json::as_object)
                .unwrap_or_default()
                .iter()
                .map(|(name, _)| name.as_str())
                .collect();
            keys.sort_unstable();
            let env_hash = match env {
                Some(env) => canonical::digest(env)?,
                None => canonical::text_digest("{}"),
            };
            Ok(object([
                ("program", (*program).into()),
                ("args", args.to_vec().into()),
                ("cwd", (*cwd).into()),
                ("env", Json::Null),
                ("env_keys", keys.into_iter().map(Json::from).collect::<Vec<_>>().into()),
                ("env_hash", env_hash.into()),
                ("stdin", Json::Null),
                ("stdin_hash", stdin.map(canonical::digest).transpose()?.into()),
            ]))
        }
    }
}

fn delivery(task: &TaskPlan<'_>) -> Json {
    object([
        ("mode", task.delivery.mode.into()),
        ("channel", task.delivery.channel.into()),
        ("to", task.delivery.to.into()),
    ])
}

fn reliability(task: &TaskPlan<'_>) -> Json {
    object([
        ("guarantee", task.reliability.guarantee.into()),
        ("overlap_policy", task.reliability.overlap_policy.into()),
        ("max_retries", task.reliability.max_retries.into()),
    ])
}

fn context(task: &TaskPlan<'_>) -> Json {
    object([("retrieval", task.context_retrieval.into()), ("limit", task.context_limit.into())])
}

/// Identity as workflow and task declare it; the profile is printed beside the workflows.
fn identity(task: &TaskPlan<'_>, digests: &Digests) -> Result<Json, NotCanonical> {
    match task.identity {
        Declared::Flat(layers) => Ok(object([
            ("principal", layers.cloned("principal")),
            ("run_as", layers.cloned("run_as")),
            ("attestation", layers.cloned("attestation")),
            ("subject", Json::Null),
            ("auth", Json::Null),
        ])),
        Declared::Profiled(layers) => {
            let attributes_hash = digests.of(layers.block("subject").value("attributes"))?;
            Ok(merged(layers, None, Form::Redacted { attributes_hash: attributes_hash.as_deref() }))
        }
    }
}

fn explanation(task: &TaskPlan<'_>) -> Json {
    let note = match task.invocation {
        Invocation::Schedule { .. } => SCHEDULED,
        Invocation::Trigger { .. } => TRIGGERED,
    };
    blocks::explanation(task, Target::Standalone.word(), &[note])
}
