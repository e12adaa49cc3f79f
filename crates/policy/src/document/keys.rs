//! The keys of every object in a document. The reader and the JSON Schema both go by these tables.

pub(super) const DOCUMENT: &[&str] = &[
    "version",
    "scope",
    "default",
    "rules",
    "modules",
    "network",
    "tools",
    "data",
    "budget",
    "schedule",
    "capabilities",
    "advice",
    "approval_timeout_secs",
    "approval",
    "observe",
    "anomalies",
];
pub(super) const ENVELOPE: &[&str] = &["apiVersion", "kind", "metadata", "spec"];
pub(super) const METADATA: &[&str] = &["name", "version", "description"];
pub(super) const RULE: &[&str] =
    &["id", "when", "then", "reason", "taint", "expires", "approvers", "retry_after", "set", "paths"];
pub(super) const MODULE: &[&str] = &["cedar", "rego"];
pub(super) const NETWORK: &[&str] = &["allowlist"];
pub(super) const TOOL: &[&str] = &["allow", "limit_per_hour", "requires_approval_if"];
pub(super) const DATA: &[&str] = &["sensitive_patterns", "credential_action", "locale_packs"];
pub(super) const BUDGET: &[&str] = &[
    "daily_limit_usd",
    "monthly_limit_usd",
    "team_daily_limit_usd",
    "team_monthly_limit_usd",
    "org_daily_limit_usd",
    "org_monthly_limit_usd",
    "tokens",
    "calls",
    "timezone",
    "window",
    "action_on_exceed",
    "trust_reports",
];
pub(super) const COUNTS: &[&str] =
    &["daily", "monthly", "team_daily", "team_monthly", "org_daily", "org_monthly"];
pub(super) const SCHEDULE: &[&str] = &["active_hours"];
pub(super) const ACTIVE_HOURS: &[&str] = &["start", "end", "timezone"];
pub(super) const CAPABILITIES: &[&str] = &["allow", "deny"];
pub(super) const APPROVAL: &[&str] = &["timeout_seconds", "escalation_role"];
pub(super) const ADVICE: &[&str] =
    &["idle", "intents", "planning", "reasoning", "context", "memory", "rate_limit"];
pub(super) const ADVICE_IDLE: &[&str] = &["allow", "hours", "reason", "retry_after"];
pub(super) const ADVICE_INTENT: &[&str] = &["intent", "any", "regex", "confidence", "target_type", "domain"];
pub(super) const ADVICE_PLANNING: &[&str] =
    &["allow", "reason", "strategies", "deny", "max_chars", "hints", "template"];
pub(super) const ADVICE_REASONING: &[&str] = &["allow", "reason", "types", "deny", "max_chars", "hints"];
pub(super) const ADVICE_CONTEXT: &[&str] = &["allow", "reason", "files", "never", "max_results", "max_bytes"];
pub(super) const ADVICE_MEMORY: &[&str] = &["allow", "reason", "sessions", "max_results"];
pub(super) const ADVICE_RATE_LIMIT: &[&str] = &["max_wait", "skip_when_spent"];
pub(super) const ANOMALIES: &[&str] = &["loops", "spikes", "leaks", "unknown_hosts", "exfiltration"];
pub(super) const ANOMALIES_LOOPS: &[&str] = &["count", "window", "then"];
pub(super) const ANOMALIES_SPIKES: &[&str] = &["sigma", "at_least", "then"];
pub(super) const ANOMALIES_LEAKS: &[&str] = &["findings", "then"];
/// Keys of `anomalies.unknown_hosts` and `anomalies.exfiltration`.
pub(super) const ANOMALIES_RESPONSE: &[&str] = &["then"];

/// Words of `default`.
pub(super) const DEFAULTS: &[&str] = &["deny", "ask", "allow"];
/// Words of `then`.
pub(super) const EFFECTS: &[&str] = &["allow", "deny", "ask", "defer", "redact", "modify"];
/// Words of `data.credential_action`.
pub(super) const CREDENTIAL_ACTIONS: &[&str] = &["redact_only", "block", "alert_only", "alert_and_redact"];
/// Words of `budget.action_on_exceed`.
pub(super) const EXCEED_ACTIONS: &[&str] = &["deny", "suspend"];
/// Words of `then` in `anomalies`.
pub(super) const RESPONSES: &[&str] = &["alarm", "ask", "deny", "suspend"];
/// Value that turns a part of `anomalies` off.
pub(super) const OFF: &str = "off";
/// Capabilities without a parameter.
pub(super) const CAPABILITY_NAMES: &[&str] = &[
    "file_read",
    "file_write",
    "file_delete",
    "network_outbound",
    "network_inbound",
    "terminal_exec",
    "agent_spawn",
];
/// Capabilities with one, as in `mcp_tool:search`.
pub(super) const CAPABILITY_PREFIXES: &[&str] = &["mcp_tool:", "model:"];
/// Strategies of `advice.planning` without a parameter, and the prefix of those with one.
pub(super) const STRATEGIES: &[&str] = &["none", "step_by_step", "tree_of_thoughts", "graph_planning"];
pub(super) const STRATEGY_PREFIX: &str = "custom:";
/// Types of `advice.reasoning` without a parameter, and the prefix of those with one.
pub(super) const REASONING_TYPES: &[&str] = &["chain_of_thought", "tree_of_thoughts", "re_act", "reflexion"];
pub(super) const REASONING_PREFIX: &str = "other:";
/// Words of `advice.memory.sessions`.
pub(super) const MEMORY_SESSIONS: &[&str] = &["own", "principal"];

/// Keys that other documents of this family have, and why they are refused here.
pub(super) const REFUSED: &[(&str, &str)] = &[
    (
        "filesystem",
        "`filesystem` is enforced by launch isolation, which a gate is not; write rules on `action.paths` and `action.writes`",
    ),
    (
        "syscalls",
        "`syscalls` is enforced by a kernel layer, which a gate is not; write rules on `action.commands` and `action.paths`",
    ),
];
