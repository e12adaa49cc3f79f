use std::fmt;

use proctor_core::json::Json;

use crate::atp::number::Number;
use crate::atp::object::text;

/// Limits of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Constraints<'a> {
    /// Steps of the agent.
    pub max_steps: Option<u64>,
    /// Tokens of models.
    pub max_tokens: Option<u64>,
    /// Wall-clock seconds.
    pub timeout_seconds: Option<u64>,
    /// The only tools that may be called; all if absent.
    pub allowed_tools: Option<Vec<&'a str>>,
    /// Cost in US dollars.
    pub budget_usd: Option<Number<'a>>,
}

/// The surroundings of an execution.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Context<'a> {
    /// URL of the tools endpoint.
    pub tools_endpoint: Option<&'a str>,
    /// Path of the workspace.
    pub workspace_path: Option<&'a str>,
    /// Environment variables. Their values are secrets.
    pub environment: Vec<(&'a str, &'a str)>,
}

/// A hint about an expected output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedArtifact<'a> {
    /// The document's form.
    Described {
        /// `file` or `structured`.
        kind: Option<&'a str>,
        /// A format, like `markdown`.
        format: Option<&'a str>,
        /// A name.
        name: Option<&'a str>,
    },
    /// The released platform's form: a path.
    Path(&'a str),
}

impl<'a> Constraints<'a> {
    pub(super) fn view(json: &'a Json) -> Constraints<'a> {
        let integer = |name| json.get(name).and_then(Number::of).and_then(Number::as_u64);
        let tools = json.get("allowed_tools").and_then(Json::as_array);
        Constraints {
            max_steps: integer("max_steps"),
            max_tokens: integer("max_tokens"),
            timeout_seconds: integer("timeout_seconds"),
            allowed_tools: tools.map(|tools| tools.iter().filter_map(Json::as_str).collect()),
            budget_usd: json.get("budget_usd").and_then(Number::of),
        }
    }
}

impl<'a> Context<'a> {
    pub(super) fn view(json: &'a Json) -> Context<'a> {
        let environment = json.get("environment").and_then(Json::as_object).unwrap_or_default();
        let entries = environment.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)));
        Context {
            tools_endpoint: text(json, "tools_endpoint"),
            workspace_path: text(json, "workspace_path"),
            environment: entries.collect(),
        }
    }
}

/// Names of environment variables without their values, and the endpoint without its unguessable part.
impl fmt::Debug for Context<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.environment.iter().map(|(name, _)| *name).collect();
        out.debug_struct("Context")
            .field("has_tools_endpoint", &self.tools_endpoint.is_some())
            .field("workspace_path", &self.workspace_path)
            .field("environment", &names)
            .finish()
    }
}

impl<'a> ExpectedArtifact<'a> {
    pub(super) fn view(json: &'a Json) -> ExpectedArtifact<'a> {
        match json {
            Json::String(path) => ExpectedArtifact::Path(path),
            _ => ExpectedArtifact::Described {
                kind: text(json, "type"),
                format: text(json, "format"),
                name: text(json, "name"),
            },
        }
    }
}
