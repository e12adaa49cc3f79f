//! Requests: a task for an agent.

mod check;
mod parts;

use std::fmt;

use proctor_core::json::Json;

use super::VERSION;
use super::limits::DEFAULT_TIMEOUT_SECONDS;
use super::object::{put, set, text};
use super::read::message;

pub use parts::{Constraints, Context, ExpectedArtifact};

/// A request to execute a task.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    pub(super) json: Json,
}

message!(Request, "a request");

impl Request {
    /// A request of version 1.0 without constraints and context.
    pub fn new(task_id: &str, description: &str) -> Request {
        let task = Json::object().with("description", description);
        Request { json: Json::object().with("version", VERSION).with("task_id", task_id).with("task", task) }
    }

    /// Sets `task.input_data`, an object.
    #[must_use]
    pub fn with_input_data(self, data: Json) -> Request {
        self.with_task_member("input_data", data)
    }

    /// Sets `task.expected_artifacts`, as they are written in a suite: objects, or texts for released agents.
    #[must_use]
    pub fn with_expected_artifacts(self, artifacts: Vec<Json>) -> Request {
        self.with_task_member("expected_artifacts", artifacts.into())
    }

    /// Sets `constraints`.
    #[must_use]
    pub fn with_constraints(self, constraints: &Constraints<'_>) -> Request {
        self.with_member("constraints", constraints.to_json())
    }

    /// Sets `context`.
    #[must_use]
    pub fn with_context(self, context: &Context<'_>) -> Request {
        self.with_member("context", context.to_json())
    }

    /// Sets `metadata`, an object.
    #[must_use]
    pub fn with_metadata(self, metadata: Json) -> Request {
        self.with_member("metadata", metadata)
    }

    /// The natural-language description of the task.
    pub fn description(&self) -> &str {
        self.json.get("task").and_then(|task| text(task, "description")).unwrap_or_default()
    }

    /// Structured input data.
    pub fn input_data(&self) -> Option<&Json> {
        self.json.get("task").and_then(|task| task.get("input_data"))
    }

    /// Hints about expected outputs.
    pub fn expected_artifacts(&self) -> impl Iterator<Item = ExpectedArtifact<'_>> {
        let listed = self.json.get("task").and_then(|task| task.get("expected_artifacts"));
        listed.and_then(Json::as_array).unwrap_or_default().iter().map(ExpectedArtifact::view)
    }

    /// Limits of the execution.
    pub fn constraints(&self) -> Constraints<'_> {
        self.json.get("constraints").map(Constraints::view).unwrap_or_default()
    }

    /// The wall-clock limit, 300 seconds if the request names none.
    pub fn timeout_seconds(&self) -> u64 {
        self.constraints().timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS)
    }

    /// Tools endpoint, workspace and environment.
    pub fn context(&self) -> Context<'_> {
        self.json.get("context").map(Context::view).unwrap_or_default()
    }

    /// Metadata of the test.
    pub fn metadata(&self) -> Option<&Json> {
        self.json.get("metadata")
    }

    fn with_task_member(mut self, name: &str, value: Json) -> Request {
        if let Some(task) = super::object::member_mut(&mut self.json, "task") {
            set(task, name, value);
        }
        self
    }
}

/// Values of `context.environment` are secrets, so nothing but the id and the context without them is shown.
impl fmt::Debug for Request {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Request")
            .field("task_id", &self.task_id())
            .field("description", &self.description())
            .field("constraints", &self.constraints())
            .field("context", &self.context())
            .finish_non_exhaustive()
    }
}

impl Constraints<'_> {
    /// The object of a request; absent limits are left out.
    pub fn to_json(&self) -> Json {
        let mut json = Json::object();
        put(&mut json, "max_steps", self.max_steps);
        put(&mut json, "max_tokens", self.max_tokens);
        put(&mut json, "timeout_seconds", self.timeout_seconds);
        let tools = self.allowed_tools.as_ref();
        put(
            &mut json,
            "allowed_tools",
            tools.map(|tools| tools.iter().map(|tool| Json::from(*tool)).collect::<Vec<_>>()),
        );
        put(&mut json, "budget_usd", self.budget_usd);
        json
    }
}

impl Context<'_> {
    /// The object of a request; absent members are left out.
    pub fn to_json(&self) -> Json {
        let mut json = Json::object();
        put(&mut json, "tools_endpoint", self.tools_endpoint);
        put(&mut json, "workspace_path", self.workspace_path);
        if !self.environment.is_empty() {
            let entries =
                self.environment.iter().map(|(name, value)| ((*name).to_owned(), Json::from(*value)));
            json.push("environment", Json::Object(entries.collect()));
        }
        json
    }
}

#[cfg(test)]
mod tests;
