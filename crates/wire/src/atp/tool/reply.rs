//! Replies to calls of tools. Failures are HTTP 200 with `status: "error"`.

use proctor_core::json::Json;

use super::{Call, CallShape};
use crate::atp::Strictness;
use crate::atp::check::{Basis, Checker, shortened};
use crate::atp::error_code::ErrorCode;
use crate::atp::findings::ProblemKind;
use crate::atp::limits::{MAX_CONTENT, MAX_ERROR_CODE};
use crate::atp::object::{put, text};
use crate::atp::path::Path;
use crate::atp::read::{ReadError, parse_json};

/// The reply to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Result or failure.
    pub outcome: Outcome,
    /// Duration in milliseconds, a JSON number.
    pub duration_ms: Option<Json>,
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The tool's result.
    Success {
        /// Any JSON value.
        output: Json,
    },
    /// The call failed or was refused.
    Error {
        /// Error message.
        error: String,
        /// Error code.
        code: Option<ErrorCode>,
        /// Details, an object.
        details: Option<Json>,
        /// What the tool returned nevertheless.
        output: Option<Json>,
    },
}

const STATUSES: &[&str] = &["success", "error"];

impl Reply {
    /// The reply of a tool that succeeded.
    pub fn success(output: Json) -> Reply {
        Reply { outcome: Outcome::Success { output }, duration_ms: None }
    }

    /// The reply to a call that failed or was refused.
    pub fn error(error: impl Into<String>, code: ErrorCode, details: Option<Json>) -> Reply {
        let outcome = Outcome::Error { error: error.into(), code: Some(code), details, output: None };
        Reply { outcome, duration_ms: None }
    }

    /// Sets the duration.
    #[must_use]
    pub fn with_duration_ms(mut self, milliseconds: u64) -> Reply {
        self.duration_ms = Some(milliseconds.into());
        self
    }

    /// The body, in the shape of the call. Members that are absent are left out.
    pub fn to_json(&self, call: &Call) -> Json {
        let mut json = Json::object();
        if call.shape == CallShape::Released {
            json.push("tool", call.tool.as_str());
        }
        match &self.outcome {
            Outcome::Success { output } => {
                json.push("status", "success");
                // An agent that reads `output` must find it, even if the tool returned nothing.
                json.push("output", output.clone());
            }
            Outcome::Error { error, code, details, output } => {
                json.push("status", "error");
                json.push("error", error.as_str());
                put(&mut json, "error_code", code.as_ref().map(ErrorCode::as_str));
                put(&mut json, "error_details", details.clone());
                put(&mut json, "output", output.clone());
            }
        }
        put(&mut json, "duration_ms", self.duration_ms.clone());
        json
    }

    /// Reads the body of a reply, in either shape.
    pub fn read(body: &[u8]) -> Result<Reply, ReadError> {
        let json = parse_json(body)?;
        let mut checker = Checker::new(Strictness::Lenient);
        let mut failed = false;
        if let Some(mut fields) = checker.object(Basis::Schema, &json, &Path::Root) {
            if let Some(status) = fields.required_text("status", MAX_ERROR_CODE) {
                failed = status == "error";
                if !STATUSES.contains(&status) {
                    let problem = ProblemKind::NotOneOf { found: shortened(status), allowed: STATUSES };
                    fields.problem_at("status", Basis::Schema, problem);
                }
            }
            fields.text("error", MAX_CONTENT);
            fields.text("error_code", MAX_ERROR_CODE);
            fields.object("error_details");
            fields.amount("duration_ms", Basis::Schema);
        }
        if !checker.findings.is_valid() {
            return Err(ReadError::Invalid(Box::new(checker.findings)));
        }
        let member = |name| json.get(name).filter(|value| !value.is_null()).cloned();
        let outcome = if failed {
            Outcome::Error {
                error: text(&json, "error").unwrap_or("tool failed without a message").to_owned(),
                code: text(&json, "error_code").map(ErrorCode::from),
                details: member("error_details"),
                output: member("output"),
            }
        } else {
            Outcome::Success { output: json.get("output").cloned().unwrap_or_default() }
        };
        Ok(Reply { outcome, duration_ms: member("duration_ms") })
    }
}
