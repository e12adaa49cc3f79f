//! Methods, notifications and commands.

use proctor_core::json::Json;

use super::super::rpc::MANIFEST_VERSION;

/// Methods of the protocol, with a summary.
pub const METHODS: [(&str, &str); 27] = [
    ("agentcli.ping", "Answer, to show that the server is alive."),
    ("agentcli.version", "Versions of the package and of manifests."),
    ("agentcli.schema", "Schema of a manifest, a part of it, a compiled form or an envelope."),
    ("agentcli.describe", "Description of a topic."),
    ("agentcli.validate", "Findings of a manifest; always a result."),
    ("agentcli.compile", "Compiled form of a manifest for a target."),
    ("agentcli.apply", "Create and update jobs of openclaw-scheduler."),
    ("agentcli.inspect", "Rows of openclaw-scheduler's database."),
    ("agentcli.convert", "Conversion of a 0.1 manifest to 0.2."),
    ("agentcli.identity.providers", "Identity providers and their capabilities."),
    ("agentcli.identity.schema", "Capabilities of an identity provider."),
    ("agentcli.identity.resolve", "Resolve the identity of a task."),
    ("agentcli.identity.validateDelegation", "Check the delegation chain of a task's identity."),
    ("agentcli.authorizationProof.methods", "Methods of authorization proofs and their capabilities."),
    ("agentcli.authorizationProof.schema", "Verifier of a proof method."),
    ("agentcli.authorizationProof.verify", "Verify the authorization proof of a task."),
    ("agentcli.authorization.providers", "Authorization providers and their capabilities."),
    ("agentcli.authorization.schema", "Capabilities of an authorization provider."),
    ("agentcli.authorization.evaluate", "Evaluate the authorization of a task."),
    ("agentcli.evidence.providers", "Evidence providers and their capabilities."),
    ("agentcli.evidence.schema", "Methods of an evidence provider."),
    ("agentcli.targets", "Targets of compilation."),
    ("agentcli.paths", "Folders and files of agentcli."),
    ("agentcli.audit", "Latest records of runs."),
    ("agentcli.approvals.list", "Approvals of tasks."),
    ("agentcli.registry.list", "Names of registered manifests."),
    ("agentcli.registry.show", "A registered manifest."),
];

/// The one notification that the server sends.
pub const NOTIFICATION: &str = "agentcli.ready";

const COMMANDS: [(&str, &str); 26] = [
    ("version", "Print the versions of the package and of manifests."),
    ("help", "Print the usage."),
    ("schema [TARGET]", "Print a schema; `--legacy` for the older descriptors."),
    ("describe [TOPIC]", "Print a description."),
    ("targets", "List targets of compilation."),
    ("paths", "List folders and files of agentcli."),
    ("validate INPUT", "Check a manifest."),
    ("compile INPUT", "Compile a manifest for a target."),
    ("convert INPUT", "Convert a 0.1 manifest to 0.2."),
    ("apply INPUT", "Create and update jobs of openclaw-scheduler."),
    ("inspect [ENTITY]", "Print rows of openclaw-scheduler's database."),
    ("exec INPUT TASK", "Run one task now."),
    ("run INPUT", "Run a workflow's tasks from a root."),
    ("audit", "Print the latest records of runs."),
    ("verify EXECUTION", "Verify the evidence of a run."),
    ("approvals list", "List approvals of tasks."),
    ("registry list|add|show|remove", "Manage registered manifests."),
    ("identity providers|schema", "Print identity providers."),
    (
        "identity resolve|validate-delegation",
        "Resolve the identity of a task, or check its delegation chain.",
    ),
    ("whoami INPUT TASK", "Print the identity of a task."),
    ("authorization-proof methods|schema", "Print methods of authorization proofs."),
    ("authorization-proof verify", "Verify the authorization proof of a task."),
    ("authorization providers|schema", "Print authorization providers."),
    ("authorization evaluate", "Evaluate the authorization of a task."),
    ("evidence providers|schema", "Print evidence providers."),
    ("serve", "Serve the protocol on standard input and output."),
];

pub(super) fn methods() -> Vec<Json> {
    METHODS.iter().map(|(method, summary)| entry("method", method, summary)).collect()
}

pub(super) fn commands() -> Vec<Json> {
    COMMANDS.iter().map(|(command, summary)| entry("command", command, summary)).collect()
}

pub(super) fn notifications() -> Vec<Json> {
    let params = Json::object().with("ok", true).with("manifest_version", MANIFEST_VERSION);
    vec![entry("method", NOTIFICATION, "The server is ready; its first line.").with("params", params)]
}

fn entry(key: &str, name: &str, summary: &str) -> Json {
    Json::object().with(key, name).with("summary", summary)
}
