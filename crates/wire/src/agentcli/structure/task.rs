//! Manifests, workflows, tasks and failure handlers.

use super::profiles::{AUTHORIZATION_REFERENCE, EVIDENCE_REFERENCE, PROOF_REFERENCE};
use super::{
    AUTHORIZATION_PROFILE, Block, EVIDENCE_PROFILE, IDENTITY_PROFILE, Kind, Member, PROOF_PROFILE,
    TRUST_LEVELS, block, inline, optional, required,
};

pub(in super::super) static MANIFEST: Block = block(
    "manifest",
    "A manifest of agentcli: workflows, and the profiles that they refer to.",
    &[
        required("version", Kind::Word(&["0.1", "0.2"])),
        optional("identity_profiles", Kind::Blocks(&IDENTITY_PROFILE)),
        optional("authorization_proof_profiles", Kind::Blocks(&PROOF_PROFILE)),
        optional("authorization_profiles", Kind::Blocks(&AUTHORIZATION_PROFILE)),
        optional("evidence_profiles", Kind::Blocks(&EVIDENCE_PROFILE)),
        required("workflows", Kind::Blocks(&WORKFLOW)),
    ],
);

const CHILD_POLICY: Member =
    optional("child_credential_policy", Kind::Word(&["none", "inherit", "downscope", "independent"]));

pub(in super::super) static WORKFLOW: Block = block(
    "workflow",
    "Tasks that belong together, and what they inherit.",
    &[
        required("id", Kind::Identifier),
        required("name", Kind::Text),
        optional("model_policy", Kind::Block(&MODEL_POLICY)),
        optional("identity", Kind::Identity),
        optional("contract", Kind::Block(&CONTRACT)),
        optional("authorization_proof", Kind::Block(&PROOF_REFERENCE)),
        optional("authorization", Kind::Block(&AUTHORIZATION_REFERENCE)),
        optional("evidence", Kind::Block(&EVIDENCE_REFERENCE)),
        CHILD_POLICY,
        optional("verify", Kind::Block(&VERIFY)),
        required("tasks", Kind::Blocks(&TASK)),
    ],
);

/// Members of an execution, with the optional blocks that tasks and failure handlers share in the middle.
macro_rules! execution {
    ([$($head:expr),* $(,)?] [$($tail:expr),* $(,)?]) => {
        &[
            $($head,)*
            optional("model_policy", Kind::Block(&MODEL_POLICY)),
            optional("intent", Kind::Block(&INTENT)),
            optional("output", Kind::Block(&OUTPUT)),
            optional("budgets", Kind::Block(&BUDGETS)),
            optional("delivery", Kind::Block(&DELIVERY)),
            optional("reliability", Kind::Block(&RELIABILITY)),
            optional("runtime", Kind::Block(&RUNTIME)),
            optional("approval", Kind::Block(&APPROVAL)),
            optional("context", Kind::Block(&CONTEXT)),
            optional("session", Kind::Block(&SESSION)),
            optional("identity", Kind::Identity),
            optional("contract", Kind::Block(&CONTRACT)),
            optional("authorization_proof", Kind::Block(&PROOF_REFERENCE)),
            optional("authorization", Kind::Block(&AUTHORIZATION_REFERENCE)),
            optional("evidence", Kind::Block(&EVIDENCE_REFERENCE)),
            $($tail,)*
        ]
    };
}

/// The first members have rules of their own: `validate::task` knows their positions.
pub(in super::super) static TASK: Block = block(
    "task",
    "One execution: a prompt to an agent, or a program.",
    execution!([
        required("id", Kind::Identifier),
        required("name", Kind::Text),
        optional("enabled", Kind::Boolean),
        required("target", Kind::Block(&TARGET)),
        optional("command", Kind::Removed),
        optional("prompt", Kind::Text),
        optional("shell", Kind::Block(&SHELL)),
        optional("schedule", Kind::Block(&SCHEDULE)),
        optional("trigger", Kind::Block(&TRIGGER)),
    ] [
        optional("auth_profile", Kind::Text),
        optional("delete_after_run", Kind::Boolean),
        CHILD_POLICY,
        optional("verify", Kind::Block(&VERIFY)),
        optional("on_failure", Kind::Block(&HANDLER)),
    ]),
);

/// The same positions as in [`TASK`], as far as both have a member.
pub(in super::super) static HANDLER: Block = block(
    "onFailure",
    "A task that runs when its parent fails.",
    execution!([
        optional("id", Kind::Identifier),
        optional("name", Kind::Text),
        optional("enabled", Kind::Boolean),
        optional("target", Kind::Block(&HANDLER_TARGET)),
        optional("command", Kind::Removed),
        optional("prompt", Kind::Text),
        optional("shell", Kind::Block(&SHELL)),
        optional("delay_s", Kind::Integer(0)),
        optional("condition", Kind::Condition),
    ] [
        optional("delete_after_run", Kind::Boolean),
    ]),
);

static TARGET: Block = block(
    "target",
    "Where the task runs.",
    &[
        required("session_target", Kind::Word(&["main", "isolated", "shell"])),
        optional("payload_kind", Kind::Word(&["systemEvent", "agentTurn", "shellCommand"])),
        optional("agent_id", Kind::Token),
    ],
);

/// A handler without a session target runs where its other members say.
static HANDLER_TARGET: Block = inline(
    "handlerTarget",
    "Where the handler runs.",
    &[
        optional("session_target", Kind::Word(&["main", "isolated", "shell"])),
        optional("payload_kind", Kind::Word(&["systemEvent", "agentTurn", "shellCommand"])),
        optional("agent_id", Kind::Token),
    ],
);

pub(in super::super) static SHELL: Block = block(
    "shell",
    "The program of a shell task; no shell interprets it.",
    &[
        required("program", Kind::Token),
        optional("args", Kind::Texts),
        optional("env", Kind::Environment),
        optional("cwd", Kind::Text),
        optional("stdin", Kind::AnyText),
    ],
);

static SCHEDULE: Block =
    block("schedule", "When the task runs.", &[required("cron", Kind::Text), optional("tz", Kind::Text)]);

static TRIGGER: Block = block(
    "trigger",
    "The task after which this one runs.",
    &[
        required("parent", Kind::Text),
        required("on", Kind::Word(&["success", "failure", "complete"])),
        optional("delay_s", Kind::Integer(0)),
        optional("condition", Kind::Condition),
    ],
);

static MODEL_POLICY: Block = block(
    "modelPolicy",
    "The model of prompt tasks.",
    &[optional("provider", Kind::Token), optional("model", Kind::Token), optional("thinking", Kind::Token)],
);

static INTENT: Block = block(
    "intent",
    "What the task may do.",
    &[optional("mode", Kind::Word(&["execute", "plan"])), optional("read_only", Kind::Boolean)],
);

static OUTPUT: Block = block(
    "output",
    "How output is kept.",
    &[
        optional("preview_bytes", Kind::Integer(64)),
        optional("offload", Kind::Word(&["auto", "always", "never"])),
        optional("retrieve", Kind::Word(&["inline", "on-demand"])),
        optional("format", Kind::Word(&["json", "ndjson", "text"])),
    ],
);

static BUDGETS: Block = block(
    "budgets",
    "Limits of the task.",
    &[
        optional("max_iterations", Kind::Integer(1)),
        optional("max_fanout", Kind::Integer(1)),
        optional("max_context_items", Kind::Integer(1)),
        optional("max_pending_approvals", Kind::Integer(1)),
        optional("max_queued_dispatches", Kind::Integer(1)),
    ],
);

static DELIVERY: Block = block(
    "delivery",
    "Where results are sent.",
    &[
        optional("mode", Kind::Word(&["announce", "announce-always", "none"])),
        optional("channel", Kind::Token),
        optional("to", Kind::Token),
    ],
);

static RELIABILITY: Block = block(
    "reliability",
    "Retries and overlap.",
    &[
        optional("guarantee", Kind::Word(&["at-most-once", "at-least-once"])),
        optional("max_retries", Kind::Integer(0)),
        optional("overlap_policy", Kind::Word(&["skip", "allow", "queue"])),
    ],
);

static RUNTIME: Block = block("runtime", "Time limit of a run.", &[optional("timeout_ms", Kind::Integer(1))]);

static APPROVAL: Block = block(
    "approval",
    "Approval of runs by a person.",
    &[
        optional("required", Kind::Boolean),
        optional("policy", Kind::Word(&["manual", "auto-approve", "auto-reject"])),
        optional("risk_level", Kind::Word(&["low", "medium", "high"])),
        optional("approver_scope", Kind::Token),
        optional("timeout_s", Kind::Integer(1)),
        optional("auto", Kind::Word(&["approve", "reject"])),
    ],
);

static CONTEXT: Block = block(
    "context",
    "Earlier results that a prompt task sees.",
    &[optional("retrieval", Kind::Word(&["none", "recent", "hybrid"])), optional("limit", Kind::Integer(1))],
);

static SESSION: Block =
    block("session", "The agent session to prefer.", &[optional("preferred_key", Kind::Token)]);

static CONTRACT: Block = block(
    "contract",
    "What the runtime must enforce.",
    &[
        optional("sandbox", Kind::Word(&["none", "permissive", "strict"])),
        optional("allowed_paths", Kind::Texts),
        optional("network", Kind::Word(&["unrestricted", "restricted", "none"])),
        optional("max_cost_usd", Kind::Amount),
        optional("audit", Kind::Word(&["none", "on-failure", "always"])),
        optional("required_trust_level", Kind::Word(TRUST_LEVELS)),
        optional("trust_enforcement", Kind::Word(&["none", "advisory", "strict"])),
    ],
);

static VERIFY: Block = block(
    "verify",
    "A command that checks the result.",
    &[
        required("shell", Kind::Text),
        optional("timeout_seconds", Kind::Integer(1)),
        optional("on_failure", Kind::Word(&["error", "warn"])),
    ],
);
