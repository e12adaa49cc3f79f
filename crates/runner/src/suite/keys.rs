//! The keys of every mapping in a suite. The reader and the JSON Schema both go by these tables.

/// The keys of one kind of mapping.
pub(super) struct Keys {
    /// The mapping, in messages.
    pub(super) what: &'static str,
    /// The keys.
    pub(super) names: &'static [&'static str],
    /// Keys that are refused by name, with the reason.
    pub(super) refused: &'static [(&'static str, &'static str)],
    /// Keys that the caller refuses itself, because the reason depends on the value.
    pub(super) ignored: &'static [&'static str],
}

const fn keys(what: &'static str, names: &'static [&'static str]) -> Keys {
    Keys { what, names, refused: &[], ignored: &[] }
}

const CHAOS: (&str, &str) = ("chaos", "`chaos` is not supported yet; remove it");
const MATRIX: (&str, &str) = ("matrix", "`matrix` is not supported yet; write the tests out");
const INCLUDE: (&str, &str) = ("include", "`include` is not supported yet; put the tests into one file");

pub(super) const SUITE: Keys = Keys {
    what: "the suite",
    names: &[
        "test_suite",
        "version",
        "description",
        "defaults",
        "agents",
        "tests",
        "environment",
        "public",
        "network",
        "setup",
        "teardown",
        "approvals",
        "mock_tools",
        "strict",
    ],
    refused: &[
        CHAOS,
        MATRIX,
        INCLUDE,
        ("extends", "`extends` is not supported; put the tests into one file"),
        ("game", "`game` is not supported: games are no tests of this program"),
        ("evaluation", "`evaluation` is not supported: games are no tests of this program"),
    ],
    ignored: &[],
};

pub(super) const DEFAULTS: Keys = Keys {
    what: "the defaults",
    names: &["runs_per_test", "timeout_seconds", "scoring", "constraints", "pass_rate", "allow_partial"],
    refused: &[
        CHAOS,
        ("environment", "`environment` stands beside `defaults`, at the top of the suite, or in a test"),
        ("mock_tools", "`mock_tools` stands beside `defaults`, at the top of the suite, or in a test"),
        ("runs", "`runs` belongs to a test; its default is `runs_per_test`"),
    ],
    ignored: &[],
};

pub(super) const TEST: Keys = Keys {
    what: "a test",
    names: &[
        "id",
        "name",
        "description",
        "tags",
        "task",
        "constraints",
        "assertions",
        "attest",
        "scoring",
        "agents",
        "runs",
        "pass_rate",
        "allow_partial",
        "strict",
        "skip",
        "environment",
        "public",
        "network",
        "setup",
        "teardown",
        "files",
        "reference",
        "approvals",
        "mock_tools",
    ],
    refused: &[
        CHAOS,
        MATRIX,
        INCLUDE,
        ("runs_per_test", "`runs_per_test` belongs to `defaults`; in a test write `runs`"),
        ("timeout_seconds", "`timeout_seconds` belongs to the `constraints` of a test"),
        (
            "comparison_config",
            "`comparison_config` is not supported yet; give `--agent` twice to compare two agents",
        ),
        ("collaboration_config", "`collaboration_config` is not supported: a test runs one agent"),
        ("handoff_config", "`handoff_config` is not supported: a test runs one agent"),
    ],
    ignored: &[],
};

pub(super) const TASK: Keys =
    keys("a task", &["description", "input_data", "expected_artifacts", "workspace_fixture"]);
pub(super) const CONSTRAINTS: Keys =
    keys("constraints", &["max_steps", "max_tokens", "timeout_seconds", "allowed_tools", "budget_usd"]);
pub(super) const SCORING: Keys =
    keys("the scoring", &["quality_weight", "completeness_weight", "efficiency_weight", "cost_weight"]);
pub(super) const ASSERTION: Keys = keys("an assertion", &["type", "config", "critical", "optional"]);
pub(super) const AGENT: Keys = Keys {
    what: "an agent",
    names: &["name", "type", "config"],
    refused: &[
        ("endpoint", "`endpoint` belongs to the `config` of an agent"),
        ("command", "`command` belongs to the `config` of an agent"),
        ("args", "`args` belongs to the `config` of an agent"),
    ],
    ignored: &[],
};
pub(super) const SKIP: Keys = keys("a skip", &["reason"]);
pub(super) const COMMAND: Keys = keys("a command", &["command", "timeout_seconds"]);
pub(super) const FILE: Keys = keys("a file", &["path", "content", "source"]);
pub(super) const APPROVAL: Keys = keys("an approval", &["tool", "decision", "reason"]);
pub(super) const MOCK_TOOLS: Keys =
    keys("the mock tools", &["name", "description", "default_delay_ms", "tools"]);
pub(super) const MOCK_TOOL: Keys = keys("a mock tool", &["name", "description", "responses", "default"]);
pub(super) const MOCK_RESPONSE: Keys = keys("a mock response", &["when", "then"]);
pub(super) const MOCK_WHEN: Keys =
    keys("a mock condition", &["type", "field", "pattern", "call", "from_call", "to_call"]);
pub(super) const MOCK_THEN: Keys = keys("a mock reply", &["output", "error", "status", "delay_ms"]);
pub(super) const ATTEST: Keys = keys("an attest assertion", &["assertion_id", "type", "spec", "request_id"]);

// Configurations of assertions.
pub(super) const ARTIFACT_EXISTS: Keys = keys("the config of `artifact_exists`", &["path"]);
pub(super) const CONTAINS: Keys = keys("the config of `contains`", &["pattern", "regex", "path"]);
pub(super) const SCHEMA: Keys = keys("the config of `schema`", &["schema", "path"]);
pub(super) const SECTIONS: Keys = keys("the config of `sections`", &["sections", "path"]);
pub(super) const BEHAVIOR: Keys = keys(
    "the config of `behavior`",
    &[
        "check",
        "must_use_tools",
        "forbidden_tools",
        "max_tool_calls",
        "min_tool_calls",
        "no_errors",
        "expected_tool_calls",
        "tool_call_order",
        "forbidden_tool_calls",
    ],
);
pub(super) const MUST_USE_TOOLS: Keys = keys("the config of `must_use_tools`", &["tools"]);
pub(super) const FORBIDDEN_TOOLS: Keys = keys("the config of `forbidden_tools`", &["tools"]);
pub(super) const MAX_TOOL_CALLS: Keys = keys("the config of `max_tool_calls`", &["limit"]);
pub(super) const MIN_TOOL_CALLS: Keys = keys("the config of `min_tool_calls`", &["limit"]);
pub(super) const NO_ERRORS: Keys = keys("the config of `no_errors`", &[]);
pub(super) const CALL_PATTERN: Keys =
    keys("a call pattern", &["tool", "status", "input_matches", "output_matches"]);
pub(super) const MATCHER: Keys = keys("a matcher", &["path", "equals", "exists", "absent"]);
pub(super) const LLM_EVAL: Keys =
    keys("the config of `llm_eval`", &["criteria", "prompt", "threshold", "path", "num_runs"]);
pub(super) const PYTEST: Keys = Keys {
    what: "the config of `pytest`",
    names: &["path", "threshold", "timeout", "working_dir", "args"],
    refused: &[
        ("container", "`container` is not supported yet; checks run in the sandbox of the run"),
        ("image", "`image` is not supported yet; checks run in the sandbox of the run"),
    ],
    ignored: &[],
};
pub(super) const NPM: Keys = keys("the config of `npm`", &["command", "threshold", "timeout", "working_dir"]);
pub(super) const CUSTOM_COMMAND: Keys = keys(
    "the config of `custom_command`",
    &["command", "pattern", "success_pattern", "threshold", "timeout", "working_dir", "expect_zero"],
);
pub(super) const LINT: Keys = keys(
    "the config of `lint`",
    &["linter", "path", "max_violations", "max_errors", "args", "timeout", "working_dir"],
);
pub(super) const SECURITY: Keys = keys(
    "the config of `security`",
    &[
        "checks",
        "sensitivity",
        "pii_types",
        "injection_categories",
        "code_categories",
        "code_languages",
        "secret_types",
        "fail_on_warning",
    ],
);
pub(super) const FILE_EXISTS: Keys = keys("the config of `file_exists`", &["path", "workspace_path"]);
pub(super) const FILE_NOT_EXISTS: Keys = keys("the config of `file_not_exists`", &["path", "workspace_path"]);
pub(super) const DIR_EXISTS: Keys = keys("the config of `dir_exists`", &["path", "workspace_path"]);
pub(super) const FILE_CONTAINS: Keys =
    keys("the config of `file_contains`", &["path", "pattern", "regex", "workspace_path"]);
pub(super) const FILE_COUNT: Keys =
    keys("the config of `file_count`", &["path", "count", "operator", "workspace_path"]);
pub(super) const COMPOSITE: Keys =
    keys("the config of `composite`", &["operator", "conditions", "condition", "value", "comparator"]);
/// A condition of a composite: a leaf with `type` and `config`, or a nested composite.
pub(super) const CONDITION: Keys =
    keys("a condition", &["type", "config", "operator", "conditions", "condition", "value", "comparator"]);

/// Tables by their definition in the schema.
#[cfg(test)]
pub(super) const ALL: &[(&str, &Keys)] = &[
    ("suite", &SUITE),
    ("defaults", &DEFAULTS),
    ("test", &TEST),
    ("task", &TASK),
    ("constraints", &CONSTRAINTS),
    ("scoring", &SCORING),
    ("assertion", &ASSERTION),
    ("agent", &AGENT),
    ("skip", &SKIP),
    ("command", &COMMAND),
    ("file", &FILE),
    ("approval", &APPROVAL),
    ("mock_tools", &MOCK_TOOLS),
    ("mock_tool", &MOCK_TOOL),
    ("mock_response", &MOCK_RESPONSE),
    ("mock_when", &MOCK_WHEN),
    ("mock_then", &MOCK_THEN),
    ("attest_assertion", &ATTEST),
    ("artifact_exists", &ARTIFACT_EXISTS),
    ("contains", &CONTAINS),
    ("schema", &SCHEMA),
    ("sections", &SECTIONS),
    ("behavior", &BEHAVIOR),
    ("must_use_tools", &MUST_USE_TOOLS),
    ("forbidden_tools", &FORBIDDEN_TOOLS),
    ("max_tool_calls", &MAX_TOOL_CALLS),
    ("min_tool_calls", &MIN_TOOL_CALLS),
    ("no_errors", &NO_ERRORS),
    ("call_pattern", &CALL_PATTERN),
    ("matcher", &MATCHER),
    ("llm_eval", &LLM_EVAL),
    ("pytest", &PYTEST),
    ("npm", &NPM),
    ("custom_command", &CUSTOM_COMMAND),
    ("lint", &LINT),
    ("security", &SECURITY),
    ("file_exists", &FILE_EXISTS),
    ("file_not_exists", &FILE_NOT_EXISTS),
    ("dir_exists", &DIR_EXISTS),
    ("file_contains", &FILE_CONTAINS),
    ("file_count", &FILE_COUNT),
    ("composite", &COMPOSITE),
    ("condition", &CONDITION),
];

/// Types of assertions.
pub(super) const ASSERTION_TYPES: &[&str] = &[
    "artifact_exists",
    "contains",
    "schema",
    "sections",
    "behavior",
    "must_use_tools",
    "max_tool_calls",
    "min_tool_calls",
    "no_errors",
    "forbidden_tools",
    "llm_eval",
    "code_exec",
    "custom_command",
    "pytest",
    "npm",
    "lint",
    "security",
    "file_exists",
    "file_not_exists",
    "file_contains",
    "file_count",
    "dir_exists",
    "composite",
];

/// Types that will be supported: refused by name until then.
pub(super) const LATER_ASSERTION_TYPES: &[&str] = &[
    "performance",
    "style",
    "readability",
    "passive_voice",
    "sentence_length",
    "style_rules",
    "findings_match",
    "json_path",
];

/// Types that are out of scope: refused by name.
pub(super) const REFUSED_ASSERTION_TYPES: &[&str] = &[
    "tone",
    "factuality",
    "citation_grounding",
    "receipt_chain",
    "collaboration",
    "handoff",
    "git_commit",
    "method_critical_check",
    "method_rubric",
    "payoff",
    "exploitability",
    "cooperation",
    "equilibrium",
    "fairness",
];

/// Types that some manuals and examples name although no program has them, and what is meant.
pub(super) const MISNAMED_ASSERTION_TYPES: &[(&str, &str)] = &[
    ("sections_exist", "sections"),
    ("artifact_schema", "schema"),
    ("artifact_json_valid", "schema"),
    ("artifact_contains", "contains"),
    ("artifact_format", "contains"),
    ("must_not_use_tools", "forbidden_tools"),
    ("tool_sequence", "behavior"),
    ("typecheck", "custom_command"),
];

/// Types of agents.
pub(super) const AGENT_TYPES: &[&str] = &["cli", "http", "ws", "grpc", "plain", "nop", "reference"];
/// Types of agents that will be supported: refused by name until then.
pub(super) const LATER_AGENT_TYPES: &[&str] = &["container", "docker", "mcp"];
/// Types of agents that are out of scope: refused by name.
pub(super) const REFUSED_AGENT_TYPES: &[&str] =
    &["langgraph", "crewai", "autogen", "sdk", "bedrock", "vertex", "azure_openai"];

/// Keys of an agent's configuration that every type has.
pub(super) const AGENT_COMMON: &[&str] =
    &["timeout_seconds", "retry_count", "retry_delay_seconds", "enable_cost_tracking"];
pub(super) const AGENT_PROCESS: &[&str] =
    &["command", "args", "working_dir", "environment", "inherit_environment", "allowed_env_vars"];
pub(super) const AGENT_HTTP: &[&str] =
    &["endpoint", "stream_endpoint", "headers", "verify_ssl", "health_endpoint", "allow_internal"];
pub(super) const AGENT_REMOTE: &[&str] = &["endpoint", "headers", "verify_ssl"];

/// Words of `decision` in approvals.
pub(super) const DECISIONS: &[&str] = &["approve", "deny"];
/// Words of `network`, beside `true` and `false`.
pub(super) const NETWORK_WORDS: &[&str] = &["allow", "deny"];
/// Words of `status` in mock replies.
pub(super) const MOCK_STATUSES: &[&str] = &["success", "error"];
/// Words of `type` in mock conditions.
pub(super) const MATCH_KINDS: &[&str] = &["exact", "contains", "regex", "any"];
/// Words of `tool_call_order`.
pub(super) const ORDERS: &[&str] = &["any", "expected"];
/// Words of `operator` in composites.
pub(super) const OPERATORS: &[&str] = &["and", "or", "not", "threshold"];
