//! The request that providers decide about.

use proctor_core::json::Json;
use proctor_wire::agentcli::effective::EffectiveTask;

/// Sections of the request when the authorization names none.
const DEFAULT_SECTIONS: [&str; 3] = ["identity", "contract", "command"];

/// The resolved identity, as authorization sees it.
#[derive(Clone, Copy, Default)]
pub struct SessionView<'s> {
    /// Principal of the session, else the declared one.
    pub principal: Option<&'s str>,
    /// Declared trust level.
    pub declared_trust: Option<&'s str>,
    /// Trust level that holds.
    pub effective_trust: Option<&'s str>,
    /// Members of the section `actor`: whose request the run serves.
    pub actor: Option<&'s Json>,
    /// Members of the section `step_up`.
    pub step_up: Option<&'s Json>,
    /// Token of the session, for policy engines that read it themselves.
    pub token: Option<&'s str>,
}

/// Shows who acts, and never the token.
impl std::fmt::Debug for SessionView<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SessionView").field("principal", &self.principal).finish_non_exhaustive()
    }
}

/// Builds the request: `source` always, the other sections as `include` names them.
pub(super) fn build(task: &EffectiveTask, session: &SessionView<'_>, include: Option<&Json>) -> Json {
    let source =
        Json::object().with("workflow_id", task.workflow_id.as_str()).with("task_id", task.task_id.as_str());
    let mut request = Json::object().with("source", source);
    let named: Option<Vec<&str>> =
        include.and_then(Json::as_array).map(|names| names.iter().filter_map(Json::as_str).collect());
    let mut sections: Vec<&str> = Vec::new();
    for name in named.as_deref().unwrap_or(&DEFAULT_SECTIONS) {
        if !sections.contains(name) {
            sections.push(name);
        }
    }
    for name in sections {
        if let Some(section) = section(name, task, session) {
            request.push(name, section);
        }
    }
    request
}

fn section(name: &str, task: &EffectiveTask, session: &SessionView<'_>) -> Option<Json> {
    let own = |value: Option<&str>| Json::from(value);
    Some(match name {
        "identity" => Json::object()
            .with("principal", own(session.principal))
            .with("trust_level", own(session.effective_trust.or(session.declared_trust))),
        "contract" => Json::object()
            .with("required_trust_level", task.contract.get("required_trust_level").cloned())
            .with("allowed_paths", task.contract.get("allowed_paths").cloned()),
        "command" => match task.task.get("shell") {
            Some(shell @ Json::Object(_)) => Json::object()
                .with("program", shell["program"].clone())
                .with("args", shell["args"].as_array().unwrap_or_default().to_vec()),
            _ => Json::Null,
        },
        "actor" => session.actor.cloned().unwrap_or_default(),
        "step_up" => session.step_up.cloned().unwrap_or_default(),
        "resource" => Json::Null,
        "trust" => Json::object()
            .with("declared_level", own(session.declared_trust))
            .with("effective_level", own(session.effective_trust)),
        _ => return None,
    })
}
