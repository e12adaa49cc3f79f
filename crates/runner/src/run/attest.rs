//! Attest assertions of a test, on the run as a trace.

use proctor_assert::{Assertion, Tools, Trace, evaluate as evaluate_assertion};
use proctor_core::json::Json;

use crate::checks::AssertionResult;
use crate::execute::Execution;
use crate::suite::TestCase;

/// Evaluates the Attest assertions of a test.
pub(super) fn evaluate(test: &TestCase, execution: &Execution) -> Vec<AssertionResult> {
    if test.attest.is_empty() {
        return Vec::new();
    }
    let text = trace(execution).to_string();
    let Ok(trace) = Trace::parse(&text) else { return Vec::new() };
    let tools = Tools::default();
    let verdict = |assertion: &crate::suite::AttestAssertion| {
        // The loader has compiled the same text.
        let compiled = Assertion::new(&assertion.id, &assertion.kind, &assertion.spec).ok()?;
        Some(AssertionResult::from_verdict(&assertion.id, &evaluate_assertion(&trace, &compiled, &tools)))
    };
    test.attest.iter().filter_map(verdict).collect()
}

/// The run as a trace: tool calls and requests to models are steps, the text of the first artifact is the message.
fn trace(execution: &Execution) -> Json {
    let steps: Vec<Json> = execution
        .seen_events()
        .iter()
        .filter_map(|event| {
            let member = |name: &str| event.payload.get(name).cloned();
            match event.event_type.as_str() {
                "tool_call" => Some(
                    Json::object()
                        .with("type", "tool_call")
                        .with("name", member("tool").unwrap_or_default())
                        .with("args", member("input").or_else(|| member("args")).unwrap_or_else(Json::object))
                        .with("result", member("output").unwrap_or_default()),
                ),
                "llm_request" => Some(
                    Json::object().with("type", "llm_call").with("name", member("model").unwrap_or_default()),
                ),
                _ => None,
            }
        })
        .collect();
    let response = &execution.response;
    let first = response.get("artifacts").and_then(Json::as_array).and_then(|all| all.first());
    let content = first.and_then(|artifact| artifact.get("content")).and_then(Json::as_str);
    let mut output = Json::object().with("message", content.unwrap_or_default());
    if let Some(data) = first.and_then(|artifact| artifact.get("data")) {
        output.push("structured", data.clone());
    }
    Json::object()
        .with("trace_id", response.get("task_id").cloned().unwrap_or_default())
        .with("output", output)
        .with("steps", steps)
}
