//! JSON report of a suite: the document of its result, with the conclusion and the comparison.

use proctor_core::json::Json;
use proctor_runner::results::Document;

use super::SuiteReport;

/// Builds the JSON report.
pub fn to_json(report: &SuiteReport<'_>) -> Json {
    let mut json = with_conclusion(report, report.result.to_json());
    if let Some(baseline) = report.baseline {
        json.push("baseline_result", baseline.to_json());
    }
    json
}

/// The text of the JSON report. It needs far less memory than [`to_json`].
pub fn document<'r>(report: &SuiteReport<'r>) -> Document<'r> {
    let mut document = report.result.document().with("conclusion", report.conclusion().word());
    if let Some(comparison) = report.comparison {
        document = document.with("comparison", comparison.to_json());
    }
    match report.baseline {
        Some(baseline) => document.with_result("baseline_result", baseline),
        None => document,
    }
}

/// The members of the report that are not about single tests.
pub(super) fn header(report: &SuiteReport<'_>) -> Json {
    with_conclusion(report, report.result.header_json())
}

fn with_conclusion(report: &SuiteReport<'_>, json: Json) -> Json {
    let mut json = json.with("conclusion", report.conclusion().word());
    if let Some(comparison) = report.comparison {
        json.push("comparison", comparison.to_json());
    }
    json
}
