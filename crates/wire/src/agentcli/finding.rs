//! Findings of validation.

use proctor_core::json::Json;

/// An error or warning about a manifest, at a path of the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// JSONPath-like place, for example `$.workflows[0].tasks[1].shell.args[2]`.
    pub path: String,
    /// Description for people.
    pub message: String,
    /// Stable code of the kind of finding; those beyond the protocol's own begin with `proctor_`.
    pub code: &'static str,
}

impl Finding {
    /// A finding.
    pub fn new(path: impl Into<String>, code: &'static str, message: impl Into<String>) -> Finding {
        Finding { path: path.into(), message: message.into(), code }
    }

    /// The finding as it is sent: `path`, `message`, `code`.
    pub fn to_json(&self) -> Json {
        Json::object()
            .with("path", self.path.as_str())
            .with("message", self.message.as_str())
            .with("code", self.code)
    }
}

/// Result of validating a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Validation {
    /// Errors, in the protocol's order.
    pub errors: Vec<Finding>,
    /// Warnings, in the protocol's order.
    pub warnings: Vec<Finding>,
}

impl Validation {
    /// Whether the manifest has no errors.
    pub fn is_ok(&self) -> bool {
        self.errors.is_empty()
    }

    /// The result as it is sent: `ok`, `errors`, `warnings`.
    pub fn to_json(&self) -> Json {
        Json::object()
            .with("ok", self.is_ok())
            .with("errors", list(&self.errors))
            .with("warnings", list(&self.warnings))
    }
}

fn list(findings: &[Finding]) -> Vec<Json> {
    findings.iter().map(Finding::to_json).collect()
}
