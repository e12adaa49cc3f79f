//! Valid events of every kind.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A kind of event, as the protocol's document lists it.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// Name on the wire.
    pub name: &'static str,
    /// Whether it is a request.
    pub blocking: bool,
    /// Whether it may stand in a batch.
    pub batchable: bool,
}

const fn kind(name: &'static str, blocking: bool, batchable: bool) -> Kind {
    Kind { name, blocking, batchable }
}

/// All 22.
pub const KINDS: [Kind; 22] = [
    kind("handshake", true, false),
    kind("pre_action", true, true),
    kind("post_action", false, true),
    kind("pre_prompt", true, true),
    kind("post_response", false, true),
    kind("session_start", false, true),
    kind("session_end", false, true),
    kind("error", false, true),
    kind("query", true, false),
    kind("heartbeat", false, true),
    kind("idle", true, false),
    kind("context_perception", true, false),
    kind("success", false, true),
    kind("memory_recall", true, false),
    kind("planning", true, false),
    kind("reasoning", true, false),
    kind("rate_limit", true, false),
    kind("confirmation", true, false),
    kind("intent_detection", true, false),
    kind("run_lifecycle", false, true),
    kind("task_list", false, true),
    kind("verification", false, true),
];

/// The kinds that get a decision of their own shape; their payloads are checked.
pub const SPECIALISED: [&str; 8] = [
    "idle",
    "context_perception",
    "memory_recall",
    "planning",
    "reasoning",
    "rate_limit",
    "confirmation",
    "intent_detection",
];

/// The kinds whose payload is a durable contract.
pub const DURABLE: [&str; 3] = ["run_lifecycle", "task_list", "verification"];

impl Kind {
    /// The same kind in a library's own type.
    pub fn typed<T: DeserializeOwned>(self) -> T {
        typed(self.name)
    }

    /// Whether its decision has a shape of its own.
    pub fn is_specialised(self) -> bool {
        SPECIALISED.contains(&self.name)
    }
}

/// A kind in a library's own type.
pub fn typed<T: DeserializeOwned>(name: &str) -> T {
    serde_json::from_value(json!(name)).expect("the libraries know all kinds")
}

/// A payload that is good for the kind.
pub fn payload(name: &str) -> Value {
    match name {
        "pre_action" => json!({ "tool_name": "read_file", "arguments": { "file_path": "notes.txt" } }),
        "post_action" => {
            json!({ "tool_name": "read_file", "arguments": { "file_path": "notes.txt" }, "result": { "success": true } })
        }
        "pre_prompt" => json!({ "prompt": "Summarise the notes.", "message_count": 2 }),
        "post_response" => json!({ "response_text": "Done.", "tool_calls_count": 0 }),
        "session_start" => json!({ "session_id": "ses-1", "model_name": "m-1" }),
        "session_end" => json!({ "session_id": "ses-1", "duration_ms": 1200 }),
        "error" => json!({ "error_type": "io", "error_message": "no such file" }),
        "heartbeat" => {
            json!({ "uptime_ms": 90_000, "total_events_processed": 41, "current_state": "active", "cpu_percent": 0.5 })
        }
        "idle" => json!({ "idle_duration_ms": 45_000, "idle_reason": "awaiting_user" }),
        "context_perception" => json!({
            "session_id": "ses-1",
            "intent": "locate",
            "target": { "location": { "path": "notes.txt", "location_type": "file" } },
            "context": { "workspace": ".", "query": "where are the notes" },
            "constraints": { "max_results": 5 },
        }),
        "success" => {
            json!({ "session_id": "ses-1", "action_type": "edit", "action_summary": "renamed", "duration_ms": 830 })
        }
        "memory_recall" => json!({
            "session_id": "ses-1", "query": "notes", "memory_type": "episodic", "max_results": 3, "working_directory": "."
        }),
        "planning" => json!({
            "session_id": "ses-1",
            "task_description": "split the crate",
            "available_strategies": ["tree_of_thoughts", "step_by_step", { "custom": "beam" }],
        }),
        "reasoning" => {
            json!({ "session_id": "ses-1", "reasoning_type": "re_act", "problem_statement": "why does it hang" })
        }
        "rate_limit" => json!({
            "session_id": "ses-1", "limit_type": "llm_request_limit", "retry_after_ms": 2000, "current_usage": "60/60"
        }),
        "confirmation" => {
            json!({ "session_id": "ses-1", "confirmation_type": "user_confirm", "message": "go on?" })
        }
        "intent_detection" => {
            json!({ "session_id": "ses-1", "prompt": "where is the retry loop", "workspace": "." })
        }
        "run_lifecycle" => json!({
            "run_id": "run-9", "session_id": "ses-1", "status": "executing", "updated_at": "2026-06-02T09:20:00Z"
        }),
        "task_list" => json!({
            "run_id": "run-9",
            "session_id": "ses-1",
            "updated_at": "2026-06-02T09:20:00Z",
            "tasks": [{ "id": "t1", "title": "write", "status": "in_progress", "evidence": [{ "kind": "diff", "summary": "+1" }] }],
        }),
        "verification" => json!({
            "run_id": "run-9",
            "session_id": "ses-1",
            "status": "passed",
            "updated_at": "2026-06-02T09:21:00Z",
            "checks": [{ "id": "c1", "subject": "unit tests", "status": "passed", "command": "make test" }],
        }),
        _ => json!({}),
    }
}

/// A whole event of the kind, as JSON.
pub fn event(name: &str, payload: &Value) -> Value {
    json!({
        "event_type": name,
        "session_id": "ses-1",
        "agent_id": "ag-1",
        "timestamp": "2026-06-02T09:15:00Z",
        "depth": 0,
        "payload": payload,
    })
}

/// A whole event with a context and metadata that use every member.
pub fn full_event(name: &str, payload: &Value, depth: u32) -> Value {
    let mut event = event(name, payload);
    event["depth"] = json!(depth);
    event["context"] = json!({
        "recent_facts": [{ "content": "net_smoke fails", "source": "run-88", "confidence": 0.5 }],
        "memory_summary": { "memory_type": "episodic", "total_items": 3, "recent_topics": ["tests"] },
        "session_stats": { "total_actions": 12, "total_tokens": 9041, "duration_ms": 61_250, "error_count": 1 },
        "current_task": "ship it",
        "capabilities": { "search": { "type": "http", "url": "http://127.0.0.1/search" } },
    });
    event["metadata"] = json!({ "trace": "9f2", "nested": { "deep": [1, 2, 3] } });
    event
}

/// A request as text.
pub fn request(id: &str, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// A notification as text.
pub fn notification(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
}
