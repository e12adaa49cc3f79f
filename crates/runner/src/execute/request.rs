use proctor_core::json::Json;
use proctor_sandbox::Workspace;
use proctor_wire::atp::{Constraints, Context, Number, Request};

use crate::suite::TestCase;

/// Identity of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunIdentity {
    /// Task id of the request, a UUID.
    pub task_id: String,
    /// Number of the run, from 1.
    pub number: u32,
    /// Number of runs of the test.
    pub total: u32,
}

/// The request of a run, as one line. `tools_endpoint` is the address of the run's tools.
pub fn build_request(
    test: &TestCase,
    identity: &RunIdentity,
    workspace: &Workspace,
    tools_endpoint: Option<&str>,
) -> String {
    let mut request = Request::new(&identity.task_id, &test.task.description);
    if let Some(data) = &test.task.input_data {
        request = request.with_input_data(data.clone());
    }
    if let Some(artifacts) = &test.task.expected_artifacts {
        request = request.with_expected_artifacts(artifacts.to_vec());
    }
    let tools = test.settings.constraints.allowed_tools.as_ref();
    let budget = test.settings.constraints.budget_usd.map(|budget| Json::Number(budget.to_string().into()));
    let constraints = Constraints {
        max_steps: test.settings.constraints.max_steps,
        max_tokens: test.settings.constraints.max_tokens,
        timeout_seconds: Some(test.settings.constraints.timeout_seconds.into()),
        allowed_tools: tools.map(|tools| tools.iter().map(String::as_str).collect()),
        budget_usd: budget.as_ref().and_then(Number::of),
    };
    let path = workspace.workspace().to_string_lossy();
    let context = Context {
        tools_endpoint,
        workspace_path: Some(&path),
        environment: test
            .settings
            .environment
            .iter()
            .map(|(name, value)| (name.as_str(), value.expose()))
            .collect(),
    };
    let metadata = Json::object()
        .with("test_id", test.id.as_str())
        .with("test_name", test.name.as_str())
        .with("run_number", identity.number)
        .with("total_runs", identity.total);
    request.with_constraints(&constraints).with_context(&context).with_metadata(metadata).to_string()
}
