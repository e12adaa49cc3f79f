//! Attest assertions of a test, on the run as a trace.

use proctor_assert::{Assertion, Tools, Trace, Verdict, evaluate as evaluate_assertion};
use proctor_core::json::Json;

use super::Surroundings;
use crate::checks::AssertionResult;
use crate::execute::Execution;
use crate::judging::Judges;
use crate::suite::{AttestAssertion, TestCase};
use crate::tools::{Doubt, SeenEvent};

/// Evaluates the Attest assertions of a test. They may wait for a model.
pub(super) async fn evaluate(
    around: &Surroundings,
    test: &TestCase,
    execution: &Execution,
) -> Vec<AssertionResult> {
    if test.settings.attest.is_empty() {
        return Vec::new();
    }
    let seen = execution.seen_events(test);
    let text = trace(execution, &seen).to_string();
    let (listed, judges) = (test.settings.attest.clone(), around.judges.clone());
    let evaluated = tokio::task::spawn_blocking(move || verdicts(&text, &listed, judges.as_deref()));
    let results = evaluated.await.unwrap_or_default();
    match invented(&seen) {
        Some(reason) => with_invented_calls(&test.settings.attest, results, &reason),
        None => results,
    }
}

/// Sentence about a call that the agent reports and did not make.
fn invented(seen: &[SeenEvent]) -> Option<String> {
    let call = seen.iter().find(|event| event.doubt == Some(Doubt::Unseen))?;
    let tool = call.payload.get("tool").and_then(Json::as_str).unwrap_or_default();
    let tool = proctor_core::printable::shown(tool, 100);
    Some(format!("the agent reports a call of `{tool}` that the tools endpoint did not see"))
}

/// Fails the assertions that look at steps: with a step that did not happen neither "was called" nor "was not called" can be believed.
fn with_invented_calls(
    listed: &[AttestAssertion],
    results: Vec<AssertionResult>,
    reason: &str,
) -> Vec<AssertionResult> {
    let fail = |assertion: &AttestAssertion| {
        AssertionResult::from_verdict(&assertion.id, &Verdict::fail(false, reason))
    };
    let judged = listed.iter().zip(results);
    judged.map(|(assertion, result)| if reads_output(assertion) { result } else { fail(assertion) }).collect()
}

/// Whether an assertion looks at the output alone.
fn reads_output(assertion: &AttestAssertion) -> bool {
    let spec = Json::parse(assertion.spec.as_bytes()).unwrap_or_default();
    spec.get("target").and_then(Json::as_str).is_some_and(|target| target.starts_with("output"))
}

fn verdicts(text: &str, listed: &[AttestAssertion], judges: Option<&dyn Judges>) -> Vec<AssertionResult> {
    let result = |assertion: &AttestAssertion, verdict: &Verdict| {
        AssertionResult::from_verdict(&assertion.id, verdict)
    };
    let unusable = |reason: String| {
        let verdict = Verdict::error(reason);
        listed.iter().map(|assertion| result(assertion, &verdict)).collect()
    };
    let trace = match Trace::parse(text) {
        Ok(trace) => trace,
        Err(error) => return unusable(format!("the run is no trace: {error}")),
    };
    // The loader has compiled the same texts.
    let compiled: Result<Vec<Assertion<'_>>, _> = listed
        .iter()
        .map(|assertion| Assertion::new(&assertion.id, &assertion.kind, &assertion.spec))
        .collect();
    let compiled = match compiled {
        Ok(compiled) => compiled,
        Err(error) => return unusable(error.to_string()),
    };
    let verdicts = match judges {
        Some(judges) => judges.verdicts(&trace, &compiled),
        None => {
            let tools = Tools::default();
            compiled.iter().map(|assertion| evaluate_assertion(&trace, assertion, &tools)).collect()
        }
    };
    listed.iter().zip(&verdicts).map(|(assertion, verdict)| result(assertion, verdict)).collect()
}

/// The run as a trace, as `proctor assert --session` sees it: tool calls and requests to models are steps, the text of the first artifact
/// is the message, amounts are those that the agent reported. Calls that reached no tool are no steps.
fn trace(execution: &Execution, seen: &[SeenEvent]) -> Json {
    let steps: Vec<Json> = seen
        .iter()
        .filter(|event| event.doubt != Some(Doubt::Rejected))
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
    let mut output = Json::object().with("message", execution.output_text());
    if let Some(data) = first.and_then(|artifact| artifact.get("data")) {
        output.push("structured", data.clone());
    }
    Json::object()
        .with("trace_id", response.get("task_id").cloned().unwrap_or_default())
        .with("output", output)
        .with("steps", steps)
        .with("metadata", metadata(execution))
}

fn metadata(execution: &Execution) -> Json {
    let mut metadata = Json::object();
    if let Some(tokens) = execution.measures.tokens {
        metadata.push("total_tokens", tokens);
    }
    if let Some(cost) = execution.measures.cost_usd.filter(|cost| cost.is_finite()) {
        metadata.push("cost_usd", Json::Number(cost.to_string().into()));
    }
    metadata.with("latency_ms", u64::try_from(execution.took.as_millis()).unwrap_or(u64::MAX))
}
