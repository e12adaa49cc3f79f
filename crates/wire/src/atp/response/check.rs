//! The rules of responses.

use proctor_core::json::Json;

use super::{Response, Status};
use crate::atp::check::{Basis, Checker, Fields, shortened};
use crate::atp::findings::{ProblemKind, WarningKind};
use crate::atp::limits::{MAX_ARTIFACTS, MAX_ERROR, MAX_ERROR_CODE, MAX_TRACE_ID};
use crate::atp::object::{member_mut, remove_nulls};
use crate::atp::path::Path;
use crate::atp::read::Message;
use crate::atp::{artifact, metrics};

const STATUSES: &[&str] = &["completed", "failed", "timeout", "cancelled", "partial"];
const OPTIONAL: [&str; 7] =
    ["version", "artifacts", "metrics", "error", "error_code", "error_details", "trace_id"];

impl Message for Response {
    fn check(json: &Json, checker: &mut Checker) {
        let Some(mut fields) = checker.object(Basis::Schema, json, &Path::Root) else { return };
        fields.version();
        fields.task_id();
        check_status(&mut fields);
        let artifacts = fields.expected("artifacts", WarningKind::NoArtifacts);
        let artifacts = artifacts.and_then(|value| fields.as_array("artifacts", value));
        let metrics = fields.expected("metrics", WarningKind::NoMetrics);
        check_error(&mut fields);
        if let Some(items) = artifacts {
            fields.at_most("artifacts", items.len(), MAX_ARTIFACTS);
            let list = Path::Root.member("artifacts");
            for (index, item) in items.iter().enumerate() {
                artifact::check(checker, item, &list.index(index));
            }
        }
        let path = Path::Root.member("metrics");
        if let Some(value) = metrics
            && let Some(fields) = checker.object(Basis::Schema, value, &path)
        {
            metrics::check(fields);
        }
    }

    fn normalise(json: &mut Json) {
        remove_nulls(json, &OPTIONAL);
        if let Some(Json::Array(items)) = member_mut(json, "artifacts") {
            items.iter_mut().for_each(artifact::normalise);
        }
        if let Some(metrics) = member_mut(json, "metrics") {
            metrics::normalise(metrics);
        }
    }

    fn from_valid(json: Json) -> Response {
        Response { json }
    }
}

fn check_status(fields: &mut Fields<'_, '_, '_>) {
    if let Some(value) = fields.required("status")
        && let Some(status) = fields.as_text("status", value)
        && Status::parse(status).is_none()
    {
        let problem = ProblemKind::NotOneOf { found: shortened(status), allowed: STATUSES };
        fields.problem_at("status", Basis::Schema, problem);
    }
}

fn check_error(fields: &mut Fields<'_, '_, '_>) {
    if let Some(value) = fields.nullable("error") {
        fields.bounded_text("error", value, MAX_ERROR);
    }
    fields.text("trace_id", MAX_TRACE_ID);
    // The optional extension: the document's schema does not have these members.
    fields.basis = Basis::Rule;
    fields.text("error_code", MAX_ERROR_CODE);
    fields.object("error_details");
}
