//! JSON report: the same on stdout and in a file.

use proctor_assert::JudgeMetadata;
use proctor_core::json::Json;

use super::{Ending, Entry, Findings};

/// Version of the report's format.
const VERSION: &str = "1.0";

/// Builds the JSON report.
pub fn to_json(findings: &Findings) -> Json {
    let counts = findings.counts();
    let (not_run, run): (Vec<&Entry>, Vec<&Entry>) =
        findings.entries.iter().partition(|entry| entry.ending == Ending::NotRun);
    let summary = Json::object()
        .with("total", counts.total)
        .with("passed", counts.passed)
        .with("soft_fail", counts.soft_fail)
        .with("hard_fail", counts.hard_fail)
        .with("error", counts.error)
        .with("not_run", counts.not_run);
    let mut out = Json::object()
        .with("version", VERSION)
        .with("timestamp", findings.made.to_string())
        .with("trace_id", findings.trace_id.as_str())
        .with("simulated", findings.simulated)
        .with("strict", findings.soft_failures_count.is_some())
        .with("conclusion", findings.conclusion().word());
    if let Some(why) = findings.strict_failure() {
        out.push("reason", why);
    }
    out.with("summary", summary)
        .with("results", run.into_iter().map(result).collect::<Vec<_>>())
        .with("not_run", not_run.into_iter().map(named).collect::<Vec<_>>())
        .with("total_cost", number(findings.cost_usd()))
        .with("total_duration_ms", milliseconds(findings.took()))
}

/// Members that every entry has, run or not.
fn named(entry: &Entry) -> Json {
    let mut out = Json::object()
        .with("assertion_id", entry.id.as_str())
        .with("type", entry.kind.as_str())
        .with("layer", entry.layer)
        .with("status", entry.ending.word())
        .with("explanation", entry.explanation.as_str());
    if !entry.request_id.is_empty() {
        out.push("request_id", entry.request_id.as_str());
    }
    out
}

fn result(entry: &Entry) -> Json {
    let mut out = named(entry)
        .with("score", entry.score.map_or(Json::Null, number))
        .with("cost", number(entry.cost_usd))
        .with("duration_ms", milliseconds(entry.took));
    for (name, text) in [
        ("trace_node_path", &entry.path),
        ("expected", &entry.expected),
        ("actual", &entry.actual),
        ("suggested_action", &entry.suggestion),
    ] {
        if !text.is_empty() {
            out.push(name, text.as_str());
        }
    }
    if let Some(source) = entry.threshold_source {
        out.push("threshold_source", source);
    }
    if let Some(judge) = &entry.judge {
        out.push("judge_metadata", judge_json(judge));
    }
    out
}

fn judge_json(judge: &JudgeMetadata) -> Json {
    let probes: Vec<Json> = judge
        .bias_probes
        .iter()
        .map(|probe| {
            Json::object()
                .with("name", probe.name.as_str())
                .with("score", number(probe.score))
                .with("delta", number(probe.delta))
        })
        .collect();
    Json::object()
        .with("model", judge.model.as_str())
        .with("rubric_name", judge.rubric_name.as_str())
        .with("rubric_version", judge.rubric_version.as_str())
        .with("prompt_hash", judge.prompt_hash.as_str())
        .with("sample_scores", judge.sample_scores.iter().copied().map(number).collect::<Vec<_>>())
        .with("score_mean", number(judge.score_mean))
        .with("score_stddev", number(judge.score_stddev))
        .with("high_variance", judge.high_variance)
        .with("bias_probes", probes)
}

/// JSON number; null for infinities and NaN.
pub(super) fn number(value: f64) -> Json {
    // Negative zero is an empty sum.
    let value = if value == 0.0 { 0.0 } else { value };
    if value.is_finite() { Json::Number(value.to_string().into()) } else { Json::Null }
}

fn milliseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
