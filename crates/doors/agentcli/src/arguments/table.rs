//! Commands and options of the program.

use super::Command;

/// A command: its name, words and options.
#[derive(Debug)]
pub struct CommandSpec {
    /// One or two words.
    pub name: &'static [&'static str],
    /// The command.
    pub command: Command,
    /// Names of the words after it.
    pub words: &'static [&'static str],
    /// Number of words that must be given.
    pub required: usize,
    /// Options of the command alone.
    pub(super) options: &'static [OptionSpec],
    /// Purpose in one sentence.
    pub summary: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Switch,
    Value,
}

#[derive(Debug)]
pub(super) struct OptionSpec {
    pub(super) name: &'static str,
    /// Another name with the same meaning.
    pub(super) alias: Option<&'static str>,
    pub(super) kind: Kind,
    pub(super) meaning: &'static str,
}

const fn switch(name: &'static str, meaning: &'static str) -> OptionSpec {
    OptionSpec { name, alias: None, kind: Kind::Switch, meaning }
}

const fn value(name: &'static str, meaning: &'static str) -> OptionSpec {
    OptionSpec { name, alias: None, kind: Kind::Value, meaning }
}

/// Options that every command has.
pub(super) const GLOBALS: &[OptionSpec] = &[
    switch("json", "Print JSON, also for errors and help."),
    switch("pretty", "Print JSON with indentation."),
    switch("ndjson", "Print each item of a list as a line of JSON."),
    value("home", "Folder of the program's own files (AGENTCLI_HOME)."),
];

/// Commands of the released program that have another place in Proctor, and where that is.
pub const ELSEWHERE: &[(&str, &str)] = &[
    ("approve", "`proctor approve allow ID` decides an approval that `exec` or `run` asked for"),
    (
        "approvals revoke",
        "a grant is good for one use and expires; `proctor approve deny ID` refuses what waits",
    ),
    ("import", "register each manifest with `registry add FILE`"),
    ("merge", "keep one manifest a file; a manifest may have several workflows"),
    ("init", "`schema manifest` prints what a manifest may have; docs/workflows.md has one to start from"),
    ("signing", "`evidence providers` lists the ways to sign"),
    ("skill-path", "there are no skill files; `describe` and `help` describe the program"),
];

const TASK: &[&str] = &["INPUT", "TASK"];
const WORKFLOW: &[OptionSpec] = &[
    value("workflow", "Workflow of the task; needed when the manifest has several."),
    switch(
        "allow-commands",
        "Run commands that the manifest names as sources of values, if the policy allows it.",
    ),
];

const SCHEDULER: [OptionSpec; 3] = [
    value("db", "Database of the scheduler."),
    value("scheduler-prefix", "Folder of the scheduler's npm package."),
    value("scheduler-bin", "Program of the scheduler."),
];

const fn plain(
    name: &'static [&'static str],
    command: Command,
    words: &'static [&'static str],
    required: usize,
    options: &'static [OptionSpec],
    summary: &'static str,
) -> CommandSpec {
    CommandSpec { name, command, words, required, options, summary }
}

const APPLY: &[OptionSpec] = &[
    value("db", SCHEDULER[0].meaning),
    value("scheduler-prefix", SCHEDULER[1].meaning),
    value("scheduler-bin", SCHEDULER[2].meaning),
    switch("dry-run", "Show the actions without writing."),
    switch("explain", "Add notes for each task."),
    value("adopt-by", "`id` (default), or `name` to take over jobs of the same name."),
    switch("check-capabilities", "Only ask the scheduler what it can do."),
    switch("allow-proof-command", "Run commands that proofs name as their source, if the policy allows it."),
    switch("allow-commands", "The same for every source of a value."),
];

const EXEC: &[OptionSpec] = &[
    value("workflow", "Workflow of the task; needed when the manifest has several."),
    switch("dry-run", "Show what would run, without any effect."),
    value("timeout", "Time limit in milliseconds."),
    value("signer", "`ssh` or `none`: evidence provider when the manifest names none."),
    value("signing-key", "Private key for evidence (AGENTCLI_SIGNING_KEY)."),
    value("evidence-provider", "Evidence provider when the manifest names none."),
    value("instance-id", "Identifier of this instance, part of the execution binding."),
    switch("require-evidence", "Fail when no evidence can be made."),
    switch("require-authorization", "Fail when the task has no authorization."),
    switch("identity-debug", "Add the declared and the resolved identity to the result."),
    switch("presentation-debug", "Add how credentials are presented to the result, without values."),
    value("approval-id", "Approval that must have been granted for this run."),
    switch(
        "allow-commands",
        "Run commands that the manifest names as sources of values, if the policy allows it.",
    ),
    value("db", SCHEDULER[0].meaning),
    value("scheduler-prefix", SCHEDULER[1].meaning),
    value("scheduler-bin", SCHEDULER[2].meaning),
];

const RUN: &[OptionSpec] = &[
    value("workflow", "Workflow to run; needed when the manifest has several."),
    value("root", "Task to start from."),
    switch("all-roots", "Start from every task with a schedule."),
    switch("dry-run", "Show what would run, without any effect."),
    value("timeout", "Time limit of each task in milliseconds."),
    value("signer", "`ssh` or `none`: evidence provider when the manifest names none."),
    value("signing-key", "Private key for evidence (AGENTCLI_SIGNING_KEY)."),
    value("evidence-provider", "Evidence provider when the manifest names none."),
    value("instance-id", "Identifier of this instance, part of the execution binding."),
    switch("require-evidence", "Fail when no evidence can be made."),
    switch("require-authorization", "Fail when a task has no authorization."),
    switch("identity-debug", "Add the declared and the resolved identity to the result."),
    switch("presentation-debug", "Add how credentials are presented to the result, without values."),
    switch(
        "allow-commands",
        "Run commands that the manifest names as sources of values, if the policy allows it.",
    ),
];

/// Commands, in the order of the help text.
pub const COMMANDS: &[CommandSpec] = &[
    plain(&["version"], Command::Version, &[], 0, &[], "Print the versions of program and manifests."),
    plain(&["help"], Command::Help, &["COMMAND"], 0, &[], "Print this text, or that of one command."),
    plain(
        &["schema"],
        Command::Schema,
        &["TARGET"],
        0,
        &[switch("legacy", "The descriptors of earlier versions instead of JSON Schema.")],
        "Print a schema: manifest, workflow, task, schedulerJob, standalonePlan, rpcRequest, rpcResponse.",
    ),
    plain(
        &["describe"],
        Command::Describe,
        &["TOPIC"],
        0,
        &[],
        "Describe a topic: manifest, workflow, task, targets, commands, rpc.",
    ),
    plain(&["targets"], Command::Targets, &[], 0, &[], "List the targets of compile, with their features."),
    plain(&["paths"], Command::Paths, &[], 0, &[], "Print the folders and files that the program uses."),
    plain(&["validate"], Command::Validate, &["INPUT"], 1, &[], "Check a manifest; all findings at once."),
    plain(
        &["compile"],
        Command::Compile,
        &["INPUT"],
        1,
        &[
            value("target", "`standalone` (default) or `openclaw-scheduler`."),
            value("write", "File below the working directory to write to."),
            switch("explain", "Add notes for each task."),
        ],
        "Compile a manifest for a target.",
    ),
    plain(&["plan"], Command::Plan, &["INPUT"], 1, APPLY, "Show what apply would change, as a diff."),
    plain(&["apply"], Command::Apply, &["INPUT"], 1, APPLY, "Apply a manifest to openclaw-scheduler."),
    plain(
        &["inspect"],
        Command::Inspect,
        &["ENTITY"],
        0,
        &[
            value("db", "Database of the scheduler."),
            value("fields", "Fields to show, separated by commas; dots reach into objects."),
            value("limit", "Number of rows (20)."),
            value("sanitize", "`none` (default) or `basic`: without control characters."),
        ],
        "Read the scheduler's database: jobs, runs, queue or approvals.",
    ),
    plain(
        &["convert"],
        Command::Convert,
        &["INPUT"],
        1,
        &[OptionSpec {
            name: "output",
            alias: Some("write"),
            kind: Kind::Value,
            meaning: "File below the working directory to write to.",
        }],
        "Convert a manifest of version 0.1 to 0.2.",
    ),
    plain(&["exec"], Command::Exec, TASK, 2, EXEC, "Run one task now, under policy and on record."),
    plain(
        &["run"],
        Command::Run,
        &["INPUT"],
        1,
        RUN,
        "Run a workflow's tasks now, under policy and on record.",
    ),
    plain(
        &["audit"],
        Command::Audit,
        &[],
        0,
        &[value("limit", "Number of records (20).")],
        "List the newest runs on record.",
    ),
    plain(
        &["verify"],
        Command::Verify,
        &["EXECUTION"],
        1,
        &[value("allowed-signers", "File of keys that may sign (AGENTCLI_ALLOWED_SIGNERS).")],
        "Verify the evidence of a run.",
    ),
    plain(
        &["approvals", "list"],
        Command::ApprovalsList,
        &[],
        0,
        &[
            value("status", "Only approvals in this state."),
            value("workflow", "Only those of a workflow."),
            value("task", "Only those of a task."),
        ],
        "List approvals that runs asked for.",
    ),
    plain(&["registry", "list"], Command::RegistryList, &[], 0, &[], "List registered manifests."),
    plain(
        &["registry", "add"],
        Command::RegistryAdd,
        &["INPUT"],
        1,
        &[value("name", "Name in the registry; the file's name if absent.")],
        "Register a manifest under a name.",
    ),
    plain(&["registry", "show"], Command::RegistryShow, &["NAME"], 1, &[], "Print a registered manifest."),
    plain(
        &["registry", "remove"],
        Command::RegistryRemove,
        &["NAME"],
        1,
        &[],
        "Remove a registered manifest.",
    ),
    plain(&["identity", "providers"], Command::IdentityProviders, &[], 0, &[], "List identity providers."),
    plain(
        &["identity", "schema"],
        Command::IdentitySchema,
        &["PROVIDER"],
        1,
        &[],
        "Show an identity provider.",
    ),
    plain(
        &["identity", "resolve"],
        Command::IdentityResolve,
        TASK,
        2,
        WORKFLOW,
        "Resolve the identity of a task, without running it.",
    ),
    plain(
        &["identity", "validate-delegation"],
        Command::IdentityValidateDelegation,
        TASK,
        2,
        WORKFLOW,
        "Check the delegation chain of a task's identity.",
    ),
    plain(
        &["authorization-proof", "methods"],
        Command::ProofMethods,
        &[],
        0,
        &[],
        "List methods of authorization proofs.",
    ),
    plain(
        &["authorization-proof", "schema"],
        Command::ProofSchema,
        &["METHOD"],
        1,
        &[],
        "Show a method of authorization proofs.",
    ),
    plain(
        &["authorization-proof", "verify"],
        Command::ProofVerify,
        TASK,
        2,
        WORKFLOW,
        "Verify the authorization proof of a task, without consuming it.",
    ),
    plain(
        &["authorization", "providers"],
        Command::AuthorizationProviders,
        &[],
        0,
        &[],
        "List authorization providers.",
    ),
    plain(
        &["authorization", "schema"],
        Command::AuthorizationSchema,
        &["PROVIDER"],
        1,
        &[],
        "Show an authorization provider.",
    ),
    plain(
        &["authorization", "evaluate"],
        Command::AuthorizationEvaluate,
        TASK,
        2,
        WORKFLOW,
        "Ask the authorization provider of a task, without running it.",
    ),
    plain(&["evidence", "providers"], Command::EvidenceProviders, &[], 0, &[], "List evidence providers."),
    plain(
        &["evidence", "schema"],
        Command::EvidenceSchema,
        &["PROVIDER"],
        1,
        &[],
        "Show an evidence provider.",
    ),
    plain(&["whoami"], Command::Whoami, TASK, 2, WORKFLOW, "Show as whom a task would run."),
    plain(
        &["serve"],
        Command::Serve,
        &[],
        0,
        &[value("db", "Database of the scheduler.")],
        "Serve JSON-RPC on standard input and output.",
    ),
];
