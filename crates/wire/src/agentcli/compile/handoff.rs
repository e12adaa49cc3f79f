//! Sets of job columns that openclaw-scheduler knows, by version of the handoff.

use proctor_core::json::Json;

use crate::agentcli::effective::members::object;

/// Version of the handoff that jobs are compiled for.
pub const FIELD_VERSION: &str = "3";

/// Columns of version 1.
pub const V1: [&str; 41] = [
    "id",
    "name",
    "enabled",
    "schedule_cron",
    "schedule_tz",
    "session_target",
    "agent_id",
    "payload_kind",
    "payload_message",
    "payload_model",
    "payload_thinking",
    "execution_intent",
    "execution_read_only",
    "run_timeout_ms",
    "overlap_policy",
    "max_retries",
    "max_queued_dispatches",
    "max_pending_approvals",
    "max_trigger_fanout",
    "delivery_mode",
    "delivery_channel",
    "delivery_to",
    "delivery_opt_out_reason",
    "delivery_guarantee",
    "origin",
    "parent_id",
    "trigger_on",
    "trigger_delay_s",
    "trigger_condition",
    "approval_required",
    "approval_timeout_s",
    "approval_auto",
    "context_retrieval",
    "context_retrieval_limit",
    "output_store_limit_bytes",
    "output_excerpt_limit_bytes",
    "output_summary_limit_bytes",
    "output_offload_threshold_bytes",
    "preferred_session_key",
    "auth_profile",
    "delete_after_run",
];

/// Columns that version 2 adds.
pub const V2_ADDED: [&str; 26] = [
    "identity_principal",
    "identity_run_as",
    "identity_attestation",
    "contract_sandbox",
    "contract_allowed_paths",
    "contract_network",
    "contract_max_cost_usd",
    "contract_audit",
    "identity_ref",
    "identity_subject_kind",
    "identity_subject_principal",
    "identity_trust_level",
    "identity_delegation_mode",
    "identity",
    "authorization_proof_ref",
    "authorization_proof",
    "authorization_ref",
    "authorization",
    "evidence_ref",
    "evidence",
    "contract_required_trust_level",
    "contract_trust_enforcement",
    "child_credential_policy",
    "verify_shell",
    "verify_timeout_s",
    "verify_on_failure",
];

/// Columns that version 3 adds.
pub const V3_ADDED: [&str; 3] = ["approval_risk_level", "approval_approver_scope", "output_format"];

/// Columns of a version in their order; of the newest known one for every higher number.
pub fn fields(version: u8) -> Vec<&'static str> {
    let mut fields = V1.to_vec();
    if version >= 2 {
        fields.extend(V2_ADDED);
    }
    if version >= 3 {
        fields.extend(V3_ADDED);
    }
    fields
}

/// The `handoff` member of compiled output.
pub(super) fn summary() -> Json {
    object([
        ("field_version", FIELD_VERSION.into()),
        ("v1_field_count", V1.len().into()),
        ("v2_field_count", (V1.len() + V2_ADDED.len()).into()),
        ("v3_field_count", (V1.len() + V2_ADDED.len() + V3_ADDED.len()).into()),
    ])
}
