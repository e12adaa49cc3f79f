//! Schemas of manifests, compiled forms and envelopes: JSON Schema (Draft 2020-12), and the older descriptors.
//!
//! Manifests have one source, the tables of `structure`. Compiled forms and envelopes are written as descriptors, from
//! which their JSON Schema is derived.

mod compiled;
mod descriptor;
mod draft;
mod envelope;

use proctor_core::json::Json;

use super::error::Failure;
use super::structure::{MANIFEST, TASK, WORKFLOW};

/// Things that have a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SchemaTarget {
    /// A manifest.
    Manifest,
    /// A workflow of a manifest.
    Workflow,
    /// A task of a workflow.
    Task,
    /// A compiled job of openclaw-scheduler.
    SchedulerJob,
    /// A compiled plan of the target `standalone`.
    StandalonePlan,
    /// A JSON-RPC request.
    RpcRequest,
    /// A JSON-RPC response.
    RpcResponse,
}

/// Forms of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SchemaFormat {
    /// JSON Schema, Draft 2020-12.
    Draft202012,
    /// Descriptors of earlier versions.
    Legacy,
}

impl SchemaTarget {
    /// All targets.
    pub const ALL: [SchemaTarget; 7] = [
        SchemaTarget::Manifest,
        SchemaTarget::Workflow,
        SchemaTarget::Task,
        SchemaTarget::SchedulerJob,
        SchemaTarget::StandalonePlan,
        SchemaTarget::RpcRequest,
        SchemaTarget::RpcResponse,
    ];

    /// Name of the target.
    pub const fn word(self) -> &'static str {
        match self {
            SchemaTarget::Manifest => "manifest",
            SchemaTarget::Workflow => "workflow",
            SchemaTarget::Task => "task",
            SchemaTarget::SchedulerJob => "schedulerJob",
            SchemaTarget::StandalonePlan => "standalonePlan",
            SchemaTarget::RpcRequest => "rpcRequest",
            SchemaTarget::RpcResponse => "rpcResponse",
        }
    }

    /// The target of a name or alias.
    pub fn of_word(word: &str) -> Option<SchemaTarget> {
        let name = match word {
            "scheduler-job" => "schedulerJob",
            "standalone-plan" => "standalonePlan",
            "rpc-request" => "rpcRequest",
            "rpc-response" => "rpcResponse",
            other => other,
        };
        SchemaTarget::ALL.into_iter().find(|target| target.word() == name)
    }
}

impl SchemaFormat {
    /// Name of the form.
    pub const fn word(self) -> &'static str {
        match self {
            SchemaFormat::Draft202012 => "json-schema-draft-2020-12",
            SchemaFormat::Legacy => "agentcli-legacy",
        }
    }
}

/// The schema of a target.
pub fn schema(target: SchemaTarget, format: SchemaFormat) -> Json {
    match (target, format) {
        (SchemaTarget::Manifest, SchemaFormat::Draft202012) => draft::manifest(),
        (SchemaTarget::Workflow, SchemaFormat::Draft202012) => draft::fragment(&WORKFLOW),
        (SchemaTarget::Task, SchemaFormat::Draft202012) => draft::fragment(&TASK),
        (SchemaTarget::Manifest, SchemaFormat::Legacy) => descriptor::of_manifest(&MANIFEST),
        (SchemaTarget::Workflow, SchemaFormat::Legacy) => descriptor::of_block(&WORKFLOW),
        (SchemaTarget::Task, SchemaFormat::Legacy) => descriptor::of_block(&TASK),
        (_, SchemaFormat::Legacy) => written(target),
        (_, SchemaFormat::Draft202012) => {
            let mut schema = draft::derived(target.word(), &written(target));
            if target == SchemaTarget::RpcResponse {
                schema.push("oneOf", envelope::result_or_error());
            }
            schema
        }
    }
}

/// The descriptor of a target that is not a part of manifests.
fn written(target: SchemaTarget) -> Json {
    match target {
        SchemaTarget::SchedulerJob => compiled::scheduler_job(),
        SchemaTarget::StandalonePlan => compiled::standalone_plan(),
        SchemaTarget::RpcRequest => envelope::request(),
        _ => envelope::response(),
    }
}

/// The result of `agentcli.schema`: `ok`, `schema`, `schema_format`. Without a target, that of manifests.
pub fn result(target: Option<&str>, legacy: bool) -> Result<Json, Failure> {
    let word = target.unwrap_or("manifest");
    let target = SchemaTarget::of_word(word).ok_or_else(|| {
        let names = SchemaTarget::ALL.map(SchemaTarget::word).join(", ");
        let shown: String = word.chars().take(100).collect();
        Failure::invalid_argument(format!("unknown schema target `{shown}`: use one of {names}"))
    })?;
    let format = if legacy { SchemaFormat::Legacy } else { SchemaFormat::Draft202012 };
    Ok(Json::object()
        .with("ok", true)
        .with("schema", schema(target, format))
        .with("schema_format", format.word()))
}

#[cfg(test)]
mod tests;
