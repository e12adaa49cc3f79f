//! SARIF 2.1.0 report, which code hosts show beside the code.

use proctor_core::json::Json;

use super::json::number;
use super::{Ending, Entry, Findings};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

pub(super) fn to_json(findings: &Findings) -> Json {
    let mut kinds: Vec<&str> = Vec::new();
    for entry in &findings.entries {
        if !kinds.contains(&entry.kind.as_str()) {
            kinds.push(&entry.kind);
        }
    }
    let rules: Vec<Json> = kinds.iter().map(|kind| rule(kind)).collect();
    let results: Vec<Json> = findings
        .entries
        .iter()
        .filter_map(|entry| {
            let level = match entry.ending {
                Ending::HardFail | Ending::Error => "error",
                Ending::SoftFail if findings.soft_failures_count.is_some() => "error",
                Ending::SoftFail => "warning",
                Ending::Pass | Ending::NotRun => return None,
            };
            let index = kinds.iter().position(|kind| *kind == entry.kind).unwrap_or_default();
            Some(result(findings, entry, level, index))
        })
        .collect();
    let notifications: Vec<Json> = findings
        .entries
        .iter()
        .filter(|entry| entry.ending == Ending::NotRun)
        .map(|entry| {
            let text = format!("`{}` was not run: {}", entry.id, entry.why());
            Json::object().with("level", "warning").with("message", message(&text))
        })
        .collect();
    let driver = Json::object()
        .with("name", "proctor")
        .with("version", env!("CARGO_PKG_VERSION"))
        .with("rules", rules);
    let invocation = Json::object()
        .with("executionSuccessful", findings.counts().error == 0)
        .with("endTimeUtc", findings.made.to_string())
        .with("toolExecutionNotifications", notifications);
    let mut properties = Json::object()
        .with("trace_id", findings.trace_id.as_str())
        .with("simulated", findings.simulated)
        .with("strict", findings.soft_failures_count.is_some())
        .with("conclusion", findings.conclusion().word());
    if let Some(why) = findings.strict_failure() {
        properties.push("reason", why);
    }
    let run = Json::object()
        .with("tool", Json::object().with("driver", driver))
        .with("invocations", vec![invocation])
        .with("results", results)
        .with("properties", properties);
    Json::object().with("$schema", SCHEMA).with("version", "2.1.0").with("runs", vec![run])
}

fn message(text: &str) -> Json {
    Json::object().with("text", text)
}

fn rule(kind: &str) -> Json {
    let says = match kind {
        "schema" => "A value has the shape that is asked for.",
        "constraint" => "A number stays within its bound.",
        "trace" => "Steps come in the order that is asked for.",
        "content" => "A text says what it should.",
        "embedding" => "A text means about the same as another.",
        "llm_judge" => "A model finds a text good.",
        "trace_tree" => "Agents call each other as they should.",
        _ => "A plugin finds a trace good.",
    };
    Json::object().with("id", kind).with("shortDescription", message(says))
}

fn result(findings: &Findings, entry: &Entry, level: &str, rule: usize) -> Json {
    let place = Json::object()
        .with("artifactLocation", Json::object().with("uri", findings.source.as_str()))
        // Code hosts drop results without a line; a trace file has one.
        .with("region", Json::object().with("startLine", 1u8));
    let mut location = Json::object().with("physicalLocation", place);
    if !entry.path.is_empty() {
        let logical = Json::object().with("fullyQualifiedName", entry.path.as_str()).with("kind", "member");
        location.push("logicalLocations", vec![logical]);
    }
    let mut properties = Json::object()
        .with("assertion_id", entry.id.as_str())
        .with("status", entry.ending.word())
        .with("score", entry.score.map_or(Json::Null, number));
    for (name, text) in
        [("expected", &entry.expected), ("actual", &entry.actual), ("suggested_action", &entry.suggestion)]
    {
        if !text.is_empty() {
            properties.push(name, text.as_str());
        }
    }
    Json::object()
        .with("ruleId", entry.kind.as_str())
        .with("ruleIndex", rule)
        .with("level", level)
        .with("message", message(&format!("{}: {}", entry.id, entry.explanation)))
        .with("locations", vec![location])
        // The same assertion is the same finding in the next run, whatever the trace says then.
        .with("partialFingerprints", Json::object().with("assertion/v1", entry.id.as_str()))
        .with("properties", properties)
}
