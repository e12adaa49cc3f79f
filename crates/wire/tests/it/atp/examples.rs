//! Messages like the document's, with its ellipses filled in.

pub(super) const REQUEST: &str = r#"{
  "version": "1.0",
  "task_id": "550e8400-e29b-41d4-a716-446655440000",
  "task": {
    "description": "Find top 5 competitors for Slack in enterprise communication market",
    "input_data": {"company": "Slack", "market": "enterprise communication"},
    "expected_artifacts": [{"type": "file", "format": "markdown", "name": "report.md"}]
  },
  "constraints": {
    "max_steps": 50,
    "max_tokens": 100000,
    "timeout_seconds": 300,
    "allowed_tools": ["web_search", "file_write"],
    "budget_usd": 1.0
  },
  "context": {
    "tools_endpoint": "http://test-harness:8080/tools",
    "workspace_path": "/workspace",
    "environment": {"API_KEY": "***"}
  },
  "metadata": {"test_id": "competitor_analysis_001", "run_number": 1, "total_runs": 5}
}"#;

pub(super) const RESPONSE: &str = r##"{
  "version": "1.0",
  "task_id": "550e8400-e29b-41d4-a716-446655440000",
  "status": "completed",
  "artifacts": [
    {
      "type": "file",
      "path": "report.md",
      "content_type": "text/markdown",
      "size_bytes": 4523,
      "content_hash": "sha256:abc123...",
      "content": "# Competitor Analysis\n\n## Overview..."
    },
    {
      "type": "structured",
      "name": "competitors",
      "schema": "competitor_list",
      "data": {
        "competitors": [
          {"name": "Microsoft Teams", "market_share": 0.35},
          {"name": "Zoom", "market_share": 0.20}
        ]
      }
    },
    {
      "type": "reference",
      "path": "/workspace/large_file.csv",
      "content_type": "text/csv",
      "size_bytes": 15000000,
      "content_hash": "sha256:00"
    }
  ],
  "metrics": {
    "total_tokens": 45000,
    "input_tokens": 15000,
    "output_tokens": 30000,
    "total_steps": 23,
    "tool_calls": 15,
    "llm_calls": 25,
    "wall_time_seconds": 120,
    "cost_usd": 0.45
  },
  "error": null,
  "trace_id": "trace_abc123"
}"##;

pub(super) const ERROR_RESPONSE: &str = r#"{
  "version": "1.0",
  "task_id": "550e8400-e29b-41d4-a716-446655440000",
  "status": "failed",
  "artifacts": [],
  "metrics": {"total_tokens": 1500, "total_steps": 5, "wall_time_seconds": 45},
  "error": "Tool 'database_query' not available",
  "error_code": "TOOL_NOT_FOUND",
  "error_details": {"tool": "database_query", "available_tools": ["web_search", "file_write"]}
}"#;

const EVENTS: [(&str, &str); 8] = [
    (
        "tool_call",
        r#"{"tool": "web_search", "input": {"query": "Slack competitors enterprise"}, "output": {"results": []}, "duration_ms": 1500, "status": "success"}"#,
    ),
    (
        "tool_call",
        r#"{"tool": "web_search", "input": {"query": "q"}, "output": {"n": 1}, "duration_ms": 1500, "status": "success", "error": null}"#,
    ),
    (
        "llm_request",
        r#"{"model": "claude-sonnet-4-20250514", "input_tokens": 2000, "output_tokens": 500, "duration_ms": 3200, "temperature": 0.7, "stop_reason": "end_turn"}"#,
    ),
    (
        "reasoning",
        r#"{"thought": "I need to search for competitor information first", "plan": ["Search web", "Extract companies", "Compare features"], "step": "planning"}"#,
    ),
    (
        "state_change",
        r#"{"from_state": "researching", "to_state": "analyzing", "reason": "Collected enough data"}"#,
    ),
    ("artifact_created", r#"{"artifact_type": "file", "path": "draft_report.md", "size_bytes": 2100}"#),
    (
        "error",
        r#"{"error_type": "tool_error", "message": "Web search API rate limited", "recoverable": true, "retry_after_ms": 5000}"#,
    ),
    (
        "progress",
        r#"{"current_step": 15, "total_steps": 25, "percentage": 60, "message": "Analyzing competitor features"}"#,
    ),
];

/// The document's events, one of each form.
pub(super) fn events() -> Vec<String> {
    let events = EVENTS.iter().map(|(kind, payload)| {
        format!(
            r#"{{"version": "1.0", "task_id": "550e8400-e29b-41d4-a716-446655440000", "timestamp": "2025-01-21T10:30:45.123Z", "sequence": 42, "event_type": "{kind}", "payload": {payload}}}"#
        )
    });
    events.collect()
}
