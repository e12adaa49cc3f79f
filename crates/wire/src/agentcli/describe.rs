//! Descriptions of manifests, targets, commands and the RPC surface.

mod surface;

use proctor_core::json::Json;

use super::compile::Target;
use super::error::Failure;
use super::structure::{MANIFEST, TASK, WORKFLOW};

pub use surface::{METHODS, NOTIFICATION};

/// Topics that can be described.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topic {
    /// Manifests.
    Manifest,
    /// Workflows.
    Workflow,
    /// Tasks.
    Task,
    /// Targets of compilation.
    Targets,
    /// Commands of the command line.
    Commands,
    /// Methods and notifications of the protocol.
    Rpc,
}

impl Topic {
    /// All topics.
    pub const ALL: [Topic; 6] =
        [Topic::Manifest, Topic::Workflow, Topic::Task, Topic::Targets, Topic::Commands, Topic::Rpc];

    /// Name of the topic.
    pub const fn word(self) -> &'static str {
        match self {
            Topic::Manifest => "manifest",
            Topic::Workflow => "workflow",
            Topic::Task => "task",
            Topic::Targets => "targets",
            Topic::Commands => "commands",
            Topic::Rpc => "rpc",
        }
    }

    /// The topic of a name.
    pub fn of_word(word: &str) -> Option<Topic> {
        Topic::ALL.into_iter().find(|topic| topic.word() == word)
    }
}

/// The description of a topic.
pub fn describe(topic: Topic) -> Json {
    match topic {
        Topic::Manifest => noted(
            topic,
            MANIFEST.note,
            &[
                "`version` is \"0.1\" or \"0.2\"; unknown keys are errors in 0.2 and warnings in 0.1",
                "profiles are named by `ref` in workflows, tasks and failure handlers",
                "`null` means absent",
            ],
        ),
        Topic::Workflow => noted(
            topic,
            WORKFLOW.note,
            &[
                "tasks inherit `model_policy`, `identity`, `contract`, `authorization_proof`, `authorization`, `evidence` and `verify`",
                "ids of workflows are unique in a manifest, ids of tasks in their workflow",
            ],
        ),
        Topic::Task => noted(
            topic,
            TASK.note,
            &[
                "a task has exactly one of `schedule` and `trigger`",
                "a shell target needs `shell`, other targets need `prompt`",
                "`on_failure` becomes a task of its own, triggered by the failure of its parent",
            ],
        ),
        Topic::Targets => {
            described(topic, "Targets that manifests are compiled for.").with("items", targets())
        }
        Topic::Commands => described(topic, "Commands of agentcli.").with("items", surface::commands()),
        Topic::Rpc => described(topic, "JSON-RPC 2.0 over standard input and output, one message a line.")
            .with("methods", surface::methods())
            .with("notifications", surface::notifications()),
    }
}

/// The result of `agentcli.describe`: `ok`, `description`. Without a topic, that of commands.
pub fn result(topic: Option<&str>) -> Result<Json, Failure> {
    let word = topic.unwrap_or("commands");
    let topic = Topic::of_word(word).ok_or_else(|| {
        let names = Topic::ALL.map(Topic::word).join(", ");
        let shown: String = word.chars().take(100).collect();
        Failure::invalid_argument(format!("unknown topic `{shown}`: use one of {names}"))
    })?;
    Ok(Json::object().with("ok", true).with("description", describe(topic)))
}

/// Targets with their capabilities and features, as `agentcli.targets` lists them.
pub fn targets() -> Vec<Json> {
    Target::ALL.into_iter().map(target).collect()
}

fn target(target: Target) -> Json {
    let (description, capabilities): (_, &[&str]) = match target {
        Target::Standalone => (
            "A portable plan; nothing executes it by itself.",
            &["schema", "validate", "compile", "describe", "json-rpc"],
        ),
        Target::OpenclawScheduler => (
            "Jobs of openclaw-scheduler.",
            &["compile", "apply", "inspect", "field-mask", "sanitize-basic", "ndjson"],
        ),
    };
    let capabilities: Vec<Json> = capabilities.iter().map(|word| Json::from(*word)).collect();
    Json::object()
        .with("name", target.word())
        .with("description", description)
        .with("capabilities", capabilities)
        .with("features", features(target))
}

/// Features of a target, before a runtime says otherwise.
pub fn features(target: Target) -> Json {
    let scheduler = target == Target::OpenclawScheduler;
    let mode = if scheduler { "runtime" } else { "portable" };
    let mut features = Json::object()
        .with("approvals", if scheduler { "runtime" } else { "intent-only" })
        .with("model_policy", if scheduler { "model+thinking" } else { "portable" });
    for name in ["execution_intent", "output_hints", "timeout_support", "context_retrieval"] {
        features.push(name, mode);
    }
    features.push("runtime_execution", scheduler);
    features.push("identity_declaration", true);
    features.push("runtime_identity_resolution", false);
    features.push("evidence_generation", false);
    features.push("audit_export", scheduler);
    for name in [
        "trust_evaluation",
        "delegation_validation",
        "credential_handoff",
        "authorization_proof_verification",
        "authorization_hook",
        "root_approval_gate",
        "approval_scope_enforcement",
        "structured_output_format",
    ] {
        features.push(name, false);
    }
    features
}

fn described(topic: Topic, summary: &str) -> Json {
    Json::object().with("name", topic.word()).with("summary", summary)
}

fn noted(topic: Topic, summary: &str, notes: &[&str]) -> Json {
    let notes: Vec<Json> = notes.iter().map(|note| Json::from(*note)).collect();
    described(topic, summary).with("notes", notes)
}

#[cfg(test)]
mod tests;
