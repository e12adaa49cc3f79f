//! Expansion of `on_failure` into tasks of their own.
//!
//! A handler becomes a task that its parent's failure triggers, directly after the parent. All functions are total: on a
//! value that is no valid manifest they change only what has the expected shape.

use std::borrow::Cow;

use proctor_core::digest::Digest;
use proctor_core::json::Json;

use super::effective::members::{member, text, without};

/// Members that a handler's task takes over unchanged. Those of a task that are missing here (`verify`, `auth_profile`,
/// `child_credential_policy`) are not part of a handler.
const COPIED: [&str; 17] = [
    "shell",
    "model_policy",
    "intent",
    "output",
    "budgets",
    "delivery",
    "reliability",
    "runtime",
    "approval",
    "context",
    "session",
    "identity",
    "contract",
    "authorization_proof",
    "authorization",
    "evidence",
    "delete_after_run",
];

/// The manifest with every `on_failure` handler as a task right after its parent.
pub fn expand(manifest: &Json) -> Json {
    map_member(manifest, "workflows", |workflow| {
        vec![map_member(workflow, "tasks", |task| {
            let mut expanded = vec![without(task, "on_failure")];
            expanded.extend(handler(task));
            expanded
        })]
    })
}

/// Identifier of a compiled task: 32 hexadecimal digits, the same for the same workflow and task ids.
pub fn compiled_id(workflow: &str, task: &str) -> String {
    let mut id = Digest::of_parts(&[workflow.as_bytes(), b":", task.as_bytes()]).to_string();
    id.truncate(32);
    id
}

/// Tasks of one workflow in the order of [`expand`], without copying those that the manifest declares.
pub(super) fn tasks(workflow: &Json) -> Vec<Cow<'_, Json>> {
    let declared = member(workflow, "tasks").and_then(Json::as_array).unwrap_or_default();
    let mut expanded = Vec::with_capacity(declared.len());
    for task in declared {
        expanded.push(Cow::Borrowed(task));
        expanded.extend(handler(task).map(Cow::Owned));
    }
    expanded
}

/// Identifier that a task's handler has after expansion, if the task has a handler.
pub(super) fn handler_id(task: &Json) -> Option<Cow<'_, str>> {
    let handler = member(task, "on_failure").filter(|block| block.as_object().is_some())?;
    match text(handler, "id") {
        Some(id) => Some(Cow::Borrowed(id)),
        None => text(task, "id").map(|parent| Cow::Owned(format!("{parent}.failure"))),
    }
}

/// The task that a parent's `on_failure` stands for.
fn handler(parent: &Json) -> Option<Json> {
    let block = member(parent, "on_failure").filter(|block| block.as_object().is_some())?;
    let parent_id = text(parent, "id")?;
    let name = match text(block, "name") {
        Some(name) => name.to_owned(),
        None => format!("{} Failure Handler", text(parent, "name").unwrap_or(parent_id)),
    };
    let mut task = Json::object().with("id", handler_id(parent)?.into_owned()).with("name", name);
    if let Some(enabled) = member(block, "enabled").or_else(|| member(parent, "enabled")) {
        task.push("enabled", enabled.clone());
    }
    task.push("target", target(parent, block));
    if let Some(prompt) = text(block, "prompt").filter(|prompt| !prompt.is_empty()) {
        task.push("prompt", prompt);
    }
    for name in COPIED {
        if let Some(value) = member(block, name) {
            task.push(name, value.clone());
        }
    }
    let trigger = Json::object()
        .with("parent", parent_id)
        .with("on", "failure")
        .with("delay_s", member(block, "delay_s").cloned().unwrap_or_else(|| 0u8.into()))
        .with("condition", member(block, "condition").cloned());
    Some(task.with("trigger", trigger))
}

fn target(parent: &Json, block: &Json) -> Json {
    let declared = member(block, "target");
    let own = |name| declared.and_then(|target| member(target, name));
    let inferred = if member(block, "shell").is_some() { "shell" } else { "isolated" };
    let agent =
        own("agent_id").or_else(|| member(parent, "target").and_then(|target| member(target, "agent_id")));
    let mut target = Json::object()
        .with("session_target", own("session_target").cloned().unwrap_or_else(|| inferred.into()))
        .with("agent_id", agent.cloned().unwrap_or_else(|| "main".into()));
    if let Some(kind) = own("payload_kind") {
        target.push("payload_kind", kind.clone());
    }
    target
}

/// A copy of an object in which each item of one array member is replaced by the items that `replace` gives for it.
fn map_member(object: &Json, name: &str, replace: impl Fn(&Json) -> Vec<Json>) -> Json {
    let Json::Object(members) = object else { return object.clone() };
    let copy = |(key, value): &(String, Json)| match value {
        Json::Array(items) if key == name => {
            (key.clone(), Json::Array(items.iter().flat_map(&replace).collect()))
        }
        _ => (key.clone(), value.clone()),
    };
    Json::Object(members.iter().map(copy).collect())
}

#[cfg(test)]
mod tests;
