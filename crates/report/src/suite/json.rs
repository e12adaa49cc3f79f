//! JSON report of a suite: the document of its result, with the conclusion and the comparison.

use proctor_core::json::Json;

use super::SuiteReport;

/// Builds the JSON report.
pub fn to_json(report: &SuiteReport<'_>) -> Json {
    let mut json = report.result.to_json().with("conclusion", report.conclusion().word());
    if let Some(comparison) = report.comparison {
        json.push("comparison", comparison.to_json());
    }
    if let Some(baseline) = report.baseline {
        json.push("baseline_result", baseline.to_json());
    }
    json
}
