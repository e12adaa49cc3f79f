//! Descriptors of compiled forms.

use proctor_core::json::Json;

/// A node of a type.
pub(super) fn node(kind: &str) -> Json {
    Json::object().with("type", kind)
}

pub(super) fn nullable(node: Json) -> Json {
    node.with("nullable", true)
}

/// An object of anything.
pub(super) fn map() -> Json {
    node("object").with("note", "any members")
}

pub(super) fn list(words: &[&str]) -> Vec<Json> {
    words.iter().map(|word| Json::from(*word)).collect()
}

pub(super) fn object(note: &str, required: &[&str], fields: Vec<(&str, Json)>) -> Json {
    let fields = fields.into_iter().map(|(name, field)| (name.to_owned(), field)).collect();
    let mut node = node("object").with("note", note);
    if !required.is_empty() {
        node.push("required", list(required));
    }
    node.with("fields", Json::Object(fields))
}

/// An object with all of its fields required.
fn full(note: &str, fields: Vec<(&str, Json)>) -> Json {
    let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
    object(note, &names, fields)
}

fn string() -> Json {
    node("string")
}

fn text() -> Json {
    nullable(string())
}

fn words(words: &[&str]) -> Json {
    string().with("enum", list(words))
}

/// A boolean as the scheduler's database has it.
fn bit() -> Json {
    node("integer").with("enum", vec![Json::from(0u8), Json::from(1u8)])
}

fn count(least: u32) -> Json {
    node("integer").with("min", least)
}

fn source() -> Json {
    full("Where the manifest has it.", vec![("workflow_id", string()), ("task_id", string())])
}

/// A job of openclaw-scheduler.
pub(super) fn scheduler_job() -> Json {
    full(
        "A job of openclaw-scheduler, as its columns.",
        vec![
            ("id", string()),
            ("source", source()),
            ("name", string()),
            ("enabled", bit()),
            ("schedule_cron", string()),
            ("schedule_tz", string()),
            ("session_target", words(&["main", "isolated", "shell"])),
            ("agent_id", string()),
            ("payload_kind", words(&["systemEvent", "agentTurn", "shellCommand"])),
            ("payload_message", string()),
            ("payload_model", text()),
            ("payload_thinking", text()),
            ("execution_intent", words(&["execute", "plan"])),
            ("execution_read_only", bit()),
            ("run_timeout_ms", count(1)),
            ("overlap_policy", words(&["skip", "allow", "queue"])),
            ("max_retries", count(0)),
            ("max_queued_dispatches", count(1)),
            ("max_pending_approvals", count(1)),
            ("max_trigger_fanout", count(1)),
            ("delivery_mode", words(&["announce", "announce-always", "none"])),
            ("delivery_channel", text()),
            ("delivery_to", text()),
            ("delivery_opt_out_reason", text()),
            ("delivery_guarantee", words(&["at-most-once", "at-least-once"])),
            ("origin", string()),
            ("parent_id", text()),
            ("trigger_on", nullable(words(&["success", "failure", "complete"]))),
            ("trigger_delay_s", count(0)),
            ("trigger_condition", text()),
            ("approval_required", bit()),
            ("approval_timeout_s", count(1)),
            ("approval_auto", words(&["approve", "reject"])),
            ("approval_risk_level", nullable(words(&["low", "medium", "high"]))),
            ("approval_approver_scope", text()),
            ("context_retrieval", words(&["none", "recent", "hybrid"])),
            ("context_retrieval_limit", count(1)),
            ("output_store_limit_bytes", count(1)),
            ("output_excerpt_limit_bytes", count(1)),
            ("output_summary_limit_bytes", count(1)),
            ("output_offload_threshold_bytes", count(1)),
            ("output_format", nullable(words(&["json", "ndjson", "text"]))),
            ("preferred_session_key", text()),
            ("auth_profile", text()),
            ("delete_after_run", bit()),
            ("identity_principal", text()),
            ("identity_run_as", text()),
            ("identity_attestation", text()),
            ("contract_sandbox", text()),
            ("contract_allowed_paths", text().with("note", "an array, as JSON text")),
            ("contract_network", text()),
            ("contract_max_cost_usd", nullable(node("number").with("min", 0u8))),
            ("contract_audit", text()),
            ("identity_ref", text()),
            ("identity_subject_kind", text()),
            ("identity_subject_principal", text()),
            ("identity_trust_level", text()),
            ("identity_delegation_mode", text()),
            ("identity", nullable(map())),
            ("authorization_proof_ref", text()),
            ("authorization_proof", nullable(map())),
            ("authorization_ref", text()),
            ("authorization", nullable(map())),
            ("evidence_ref", text()),
            ("evidence", nullable(map())),
            ("contract_required_trust_level", text()),
            ("contract_trust_enforcement", text()),
            ("child_credential_policy", text()),
            ("verify_shell", text()),
            ("verify_timeout_s", nullable(count(1))),
            ("verify_on_failure", text()),
        ],
    )
}

/// The output of the target `standalone`.
pub(super) fn standalone_plan() -> Json {
    let array = |items: Json| node("array").with("items", items);
    let edge = full(
        "A trigger, as compiled ids.",
        vec![
            ("from", string()),
            ("to", string()),
            ("on", words(&["success", "failure", "complete"])),
            ("condition", text()),
            ("delay_s", count(0)),
        ],
    );
    let workflow = full(
        "A workflow.",
        vec![("id", string()), ("name", string()), ("tasks", array(plan_task())), ("edges", array(edge))],
    );
    let profiles = || array(map());
    object(
        "A portable plan; nothing executes it by itself.",
        &["target", "version", "capabilities", "workflows"],
        vec![
            ("target", string().with("const", "standalone")),
            ("version", string()),
            ("capabilities", map()),
            ("identity_profiles", profiles()),
            ("authorization_proof_profiles", profiles()),
            ("authorization_profiles", profiles()),
            ("evidence_profiles", profiles()),
            ("workflows", array(workflow)),
            ("explain", array(map())),
        ],
    )
}

fn plan_task() -> Json {
    let invocation = object(
        "A schedule or a trigger.",
        &["mode"],
        vec![
            ("mode", words(&["schedule", "trigger"])),
            ("cron", string()),
            ("tz", string()),
            ("parent", string()),
            ("on", words(&["success", "failure", "complete"])),
            ("delay_s", count(0)),
            ("condition", text()),
        ],
    );
    let execution = full(
        "What runs, and where.",
        vec![
            ("session_target", words(&["main", "isolated", "shell"])),
            ("agent_id", string()),
            ("payload_kind", words(&["systemEvent", "agentTurn", "shellCommand"])),
            ("payload", map()),
            ("model_policy", map()),
        ],
    );
    full(
        "A task with all defaults.",
        vec![
            ("id", string()),
            ("source", source()),
            ("name", string()),
            ("enabled", node("boolean")),
            ("invocation", invocation),
            ("execution", execution),
            ("intent", map()),
            ("output", map()),
            ("budgets", map()),
            ("delivery", map()),
            ("reliability", map()),
            ("runtime", map()),
            ("approval", map()),
            ("context", map()),
            ("session", map()),
            ("identity", nullable(map())),
            ("contract", map()),
            ("authorization_proof", nullable(map())),
            ("authorization", nullable(map())),
            ("evidence", nullable(map())),
            ("child_credential_policy", text()),
            ("verify", nullable(map())),
            ("auth_profile", text()),
            ("delete_after_run", nullable(node("boolean"))),
            ("parent_compiled_id", text()),
        ],
    )
}
