//! Policies that are evaluated here: Rego and Cedar.

use std::path::Path;

use proctor_core::json::Json;
use proctor_policy::modules::ModuleProblem;
use proctor_policy::modules::cedar::{CedarQuery, CedarRequest};
use proctor_policy::modules::rego::RegoQuery;
use proctor_wire::agentcli::effective::EffectiveTask;

use super::request::SessionView;
use super::{Answer, ProviderProblem, config};

/// Asks the rule `query` of a Rego module.
pub(super) async fn rego(config: &Json, request: Json, folder: &Path) -> Result<Answer, ProviderProblem> {
    let (config, folder) = (config.clone(), folder.to_owned());
    blocking(move || {
        let query = config::text(&config, "query")?;
        let module = config::text_or_file(&config, "module", "module_file", &folder)?;
        let compiled = RegoQuery::compile("module", &module, query).map_err(first)?;
        let result = compiled.evaluate(&request)?;
        Ok(Answer { result, policy_ref: Some(query.to_owned()) })
    })
    .await
}

/// Asks Cedar policies.
pub(super) async fn cedar(
    config: &Json,
    request: Json,
    folder: &Path,
    task: &EffectiveTask,
    session: &SessionView<'_>,
) -> Result<Answer, ProviderProblem> {
    let (config, folder) = (config.clone(), folder.to_owned());
    let principal = session.principal.unwrap_or("unknown").to_owned();
    let resource = format!("{}/{}", task.workflow_id, task.task_id);
    blocking(move || {
        let policies = config::text_or_file(&config, "policies", "policies_file", &folder)?;
        let schema = config::optional_text(&config, "schema")?;
        let entity = |key, default| {
            Ok::<&str, ProviderProblem>(config::optional_text(&config, key)?.unwrap_or(default))
        };
        let compiled = CedarQuery::compile("policies", &policies, schema).map_err(first)?;
        let answer = compiled.evaluate(CedarRequest {
            principal: (entity("principal", "Agent")?, &principal),
            action: (entity("action", "Action")?, "run"),
            resource: (entity("resource", "Task")?, &resource),
            context: &request,
            entities: config.get("entities").filter(|entities| !entities.is_null()),
        })?;
        let policy_ref = (!answer.policies.is_empty()).then(|| answer.policies.join(", "));
        Ok(Answer { result: Some(Json::Bool(answer.is_permitted)), policy_ref })
    })
    .await
}

/// Compiling and evaluating takes milliseconds, and files may be slow: neither belongs on a thread of tasks.
async fn blocking(
    work: impl FnOnce() -> Result<Answer, ProviderProblem> + Send + 'static,
) -> Result<Answer, ProviderProblem> {
    tokio::task::spawn_blocking(work).await.map_err(|_| ProviderProblem::Ended)?
}

fn first(problems: Vec<ModuleProblem>) -> ProviderProblem {
    problems.into_iter().next().map_or(ProviderProblem::Ended, ProviderProblem::Policy)
}
