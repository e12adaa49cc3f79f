//! Intermediate plan of a manifest: every default applied, every reference found. Each target is derived from it.

use std::borrow::Cow;
use std::collections::HashMap;

use proctor_core::json::Json;

use crate::agentcli::effective::members::{Amount, items, member, text};
use crate::agentcli::effective::{Approval, Declared, Layers, Profiles, merged_verify};
use crate::agentcli::expand::{self, compiled_id};

/// Tasks of a manifest after expansion; a plan borrows from them.
#[derive(Debug)]
pub(super) struct Expanded<'a> {
    workflows: Vec<(&'a Json, Vec<Cow<'a, Json>>)>,
}

impl<'a> Expanded<'a> {
    /// Expands the workflows of a valid manifest.
    pub(super) fn of(manifest: &'a Json) -> Expanded<'a> {
        let workflows = items(manifest, "workflows").iter();
        Expanded { workflows: workflows.map(|workflow| (workflow, expand::tasks(workflow))).collect() }
    }
}

/// Plan of a manifest.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    /// The manifest as it was given.
    pub(super) manifest: &'a Json,
    /// Workflows in their order.
    pub(super) workflows: Vec<WorkflowPlan<'a>>,
}

/// Plan of one workflow.
#[derive(Debug)]
pub(super) struct WorkflowPlan<'a> {
    /// The workflow as it is written.
    pub(super) written: &'a Json,
    /// Identifier.
    pub(super) id: &'a str,
    /// Name.
    pub(super) name: &'a str,
    /// Tasks in the order of expansion.
    pub(super) tasks: Vec<TaskPlan<'a>>,
}

/// Plan of one task.
#[derive(Debug)]
pub(super) struct TaskPlan<'a> {
    /// The task as it is written or expanded.
    pub(super) written: &'a Json,
    /// Identifier of the workflow.
    pub(super) workflow_id: &'a str,
    /// Identifier of the task.
    pub(super) task_id: &'a str,
    /// Identifier of the compiled task.
    pub(super) compiled_id: String,
    /// Name; with the workflow's in front where the manifest has several workflows.
    pub(super) name: Cow<'a, str>,
    /// Whether the task may run.
    pub(super) enabled: bool,
    /// Event that starts a run.
    pub(super) invocation: Invocation<'a>,
    /// `main`, `isolated` or `shell`.
    pub(super) session_target: &'a str,
    /// Agent that the task is for.
    pub(super) agent_id: &'a str,
    /// `systemEvent`, `agentTurn` or `shellCommand`.
    pub(super) payload_kind: &'a str,
    /// Prompt or command.
    pub(super) payload: Payload<'a>,
    /// Model that the task asks for.
    pub(super) model: Model<'a>,
    /// `execute` or `plan`.
    pub(super) intent_mode: &'a str,
    /// Whether the task promises to change nothing.
    pub(super) read_only: Option<bool>,
    /// Treatment of output.
    pub(super) output: Output<'a>,
    /// Limits of the task.
    pub(super) budgets: Budgets<'a>,
    /// Delivery of results.
    pub(super) delivery: Delivery<'a>,
    /// Guarantees and retries.
    pub(super) reliability: Reliability<'a>,
    /// Time limit of a run.
    pub(super) timeout_ms: Option<&'a Json>,
    /// Normalised approval.
    pub(super) approval: Approval<'a>,
    /// `none`, `recent` or `hybrid`.
    pub(super) context_retrieval: &'a str,
    /// Items of context.
    pub(super) context_limit: Amount<'a>,
    /// Session that the task prefers.
    pub(super) preferred_key: Option<&'a str>,
    /// Identity as workflow and task declare it.
    pub(super) identity: Declared<'a>,
    /// Profile of the identity.
    pub(super) identity_profile: Option<&'a Json>,
    /// Contract of task and workflow.
    pub(super) contract: Layers<'a>,
    /// Authorization proof of task and workflow.
    pub(super) proof: Layers<'a>,
    /// Profile of the authorization proof.
    pub(super) proof_profile: Option<&'a Json>,
    /// Authorization of task and workflow.
    pub(super) authorization: Layers<'a>,
    /// Profile of the authorization.
    pub(super) authorization_profile: Option<&'a Json>,
    /// Evidence of task and workflow.
    pub(super) evidence: Layers<'a>,
    /// Profile of the evidence.
    pub(super) evidence_profile: Option<&'a Json>,
    /// Credential policy for children: the task's, else the workflow's.
    pub(super) child_credential_policy: Option<&'a str>,
    /// Verification with defaults.
    pub(super) verify: Option<Json>,
    /// Authentication profile of the scheduler.
    pub(super) auth_profile: Option<&'a str>,
    /// Whether the job is deleted after its run.
    pub(super) delete_after_run: Option<bool>,
}

/// Event that starts a run.
#[derive(Debug)]
pub(super) enum Invocation<'a> {
    /// Times of a cron expression.
    Schedule {
        /// The expression.
        cron: &'a str,
        /// The time zone.
        tz: &'a str,
    },
    /// The end of another task.
    Trigger {
        /// Identifier of the parent in the manifest.
        parent: &'a str,
        /// Identifier of the compiled parent.
        parent_compiled_id: String,
        /// `success`, `failure` or `complete`.
        on: &'a str,
        /// Seconds to wait.
        delay_s: Amount<'a>,
        /// Condition on the parent's output.
        condition: Option<&'a str>,
        /// Credential policy that the parent itself declares.
        parent_policy: Option<&'a str>,
    },
}

/// Prompt or command of a task.
#[derive(Debug)]
pub(super) enum Payload<'a> {
    /// Prompt for an agent.
    Prompt(&'a str),
    /// Program with arguments.
    Shell {
        /// The program.
        program: &'a str,
        /// Its arguments.
        args: &'a [Json],
        /// Working directory.
        cwd: Option<&'a str>,
        /// Environment.
        env: Option<&'a Json>,
        /// Standard input.
        stdin: Option<&'a Json>,
    },
}

/// Model that a task asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Model<'a> {
    /// Provider of the model.
    pub(super) provider: Option<&'a str>,
    /// Name of the model.
    pub(super) name: Option<&'a str>,
    /// Level of thinking.
    pub(super) thinking: Option<&'a str>,
}

impl Model<'_> {
    /// `provider/model`, or the model alone. A provider alone names no model.
    pub(super) fn qualified(&self) -> Option<String> {
        let model = self.name?;
        Some(self.provider.map_or_else(|| model.to_owned(), |provider| format!("{provider}/{model}")))
    }
}

/// Treatment of output.
#[derive(Debug, Clone, Copy)]
pub(super) struct Output<'a> {
    /// `json`, `ndjson` or `text`.
    pub(super) format: Option<&'a str>,
    /// Size of the preview.
    pub(super) preview_bytes: Amount<'a>,
    /// `auto`, `always` or `never`.
    pub(super) offload: &'a str,
    /// `inline` or `on-demand`.
    pub(super) retrieve: &'a str,
}

/// Limits of a task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budgets<'a> {
    /// Iterations of an agent.
    pub(super) iterations: Option<&'a Json>,
    /// Children that one end may trigger.
    pub(super) fanout: Amount<'a>,
    /// Items of context.
    pub(super) context_items: Amount<'a>,
    /// Approvals that may be open.
    pub(super) pending_approvals: Amount<'a>,
    /// Dispatches that may wait.
    pub(super) queued_dispatches: Amount<'a>,
}

/// Delivery of results.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delivery<'a> {
    /// `announce`, `announce-always` or `none`.
    pub(super) mode: &'a str,
    /// Channel of the announcement.
    pub(super) channel: Option<&'a str>,
    /// Receiver of the announcement.
    pub(super) to: Option<&'a str>,
}

/// Guarantees and retries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reliability<'a> {
    /// `at-most-once` or `at-least-once`.
    pub(super) guarantee: &'a str,
    /// `skip`, `allow` or `queue`.
    pub(super) overlap_policy: &'a str,
    /// Retries of a failed run.
    pub(super) max_retries: Amount<'a>,
}

impl<'a> Plan<'a> {
    /// Plans a valid manifest.
    pub(super) fn of(manifest: &'a Json, expanded: &'a Expanded<'a>) -> Plan<'a> {
        let profiles = Profiles::of(manifest);
        let several = expanded.workflows.len() > 1;
        let workflows = expanded.workflows.iter().map(|(workflow, tasks)| {
            let name = text(workflow, "name").unwrap_or_default();
            let prefix = several.then_some(name);
            // Parents are found by id in every trigger: an index keeps large workflows linear.
            let by_id: HashMap<&str, &Json> =
                tasks.iter().filter_map(|task| Some((text(task, "id")?, task.as_ref()))).collect();
            WorkflowPlan {
                written: workflow,
                id: text(workflow, "id").unwrap_or_default(),
                name,
                tasks: tasks
                    .iter()
                    .map(|task| TaskPlan::of(task, workflow, prefix, &by_id, &profiles))
                    .collect(),
            }
        });
        Plan { manifest, workflows: workflows.collect() }
    }

    /// All tasks, in order.
    pub(super) fn tasks(&self) -> impl Iterator<Item = &TaskPlan<'a>> {
        self.workflows.iter().flat_map(|workflow| &workflow.tasks)
    }
}

impl<'a> TaskPlan<'a> {
    fn of(
        task: &'a Json,
        workflow: &'a Json,
        prefix: Option<&str>,
        by_id: &HashMap<&'a str, &'a Json>,
        profiles: &Profiles<'a>,
    ) -> TaskPlan<'a> {
        let workflow_id = text(workflow, "id").unwrap_or_default();
        let task_id = text(task, "id").unwrap_or_default();
        let name = text(task, "name").unwrap_or_default();
        let block = Block::of(task);
        let (context, target) = (block("context"), block("target"));
        let session_target = target.word("session_target", "isolated");
        let identity = Declared::of(task, workflow);
        let [contract, proof, authorization, evidence] =
            ["contract", "authorization_proof", "authorization", "evidence"]
                .map(|name| Layers::of(task, workflow, name));
        let budgets = budgets(block("budgets"), context);
        TaskPlan {
            written: task,
            workflow_id,
            task_id,
            compiled_id: compiled_id(workflow_id, task_id),
            name: prefix.map_or(Cow::Borrowed(name), |workflow| Cow::Owned(format!("{workflow}: {name}"))),
            enabled: member(task, "enabled").and_then(Json::as_bool).unwrap_or(true),
            invocation: Invocation::of(task, workflow_id, by_id),
            session_target,
            agent_id: target.word("agent_id", "main"),
            payload_kind: match (session_target, target.text("payload_kind")) {
                ("shell", _) => "shellCommand",
                (_, Some(declared)) => declared,
                ("main", None) => "systemEvent",
                _ => "agentTurn",
            },
            payload: payload(task, session_target),
            model: model(task, workflow),
            intent_mode: block("intent").word("mode", "execute"),
            read_only: block("intent").value("read_only").and_then(Json::as_bool),
            output: output(block("output")),
            budgets,
            delivery: delivery(block("delivery")),
            reliability: reliability(block("reliability")),
            timeout_ms: block("runtime").value("timeout_ms"),
            approval: Approval::of(task),
            context_retrieval: context.word("retrieval", "none"),
            context_limit: context.value("limit").map_or(budgets.context_items, Amount::Written),
            preferred_key: block("session").text("preferred_key"),
            identity,
            identity_profile: profiles.identity(identity.reference()),
            contract,
            proof,
            proof_profile: profiles.proof(proof.text("ref")),
            authorization,
            authorization_profile: profiles.authorization(authorization.text("ref")),
            evidence,
            evidence_profile: profiles.evidence(evidence.text("ref")),
            child_credential_policy: text(task, "child_credential_policy")
                .or_else(|| text(workflow, "child_credential_policy")),
            verify: merged_verify(task, workflow),
            auth_profile: text(task, "auth_profile"),
            delete_after_run: member(task, "delete_after_run").and_then(Json::as_bool),
        }
    }

    /// `schedule` or `trigger`.
    pub(super) fn invocation_mode(&self) -> &'static str {
        match self.invocation {
            Invocation::Schedule { .. } => "schedule",
            Invocation::Trigger { .. } => "trigger",
        }
    }

    /// Identifier of the compiled parent of a triggered task.
    pub(super) fn parent_compiled_id(&self) -> Option<&str> {
        match &self.invocation {
            Invocation::Schedule { .. } => None,
            Invocation::Trigger { parent_compiled_id, .. } => Some(parent_compiled_id),
        }
    }
}

impl<'a> Invocation<'a> {
    fn of(task: &'a Json, workflow_id: &str, by_id: &HashMap<&'a str, &'a Json>) -> Invocation<'a> {
        match Block(member(task, "trigger")) {
            Block(None) => {
                let schedule = Block(member(task, "schedule"));
                Invocation::Schedule { cron: schedule.word("cron", ""), tz: schedule.word("tz", "UTC") }
            }
            trigger => {
                let parent = trigger.word("parent", "");
                Invocation::Trigger {
                    parent,
                    parent_compiled_id: compiled_id(workflow_id, parent),
                    on: trigger.word("on", "success"),
                    delay_s: trigger.amount("delay_s", 0),
                    condition: trigger.text("condition"),
                    parent_policy: by_id
                        .get(parent)
                        .and_then(|parent| text(parent, "child_credential_policy")),
                }
            }
        }
    }
}

/// An optional block of a task.
#[derive(Clone, Copy)]
struct Block<'a>(Option<&'a Json>);

impl<'a> Block<'a> {
    fn of(task: &'a Json) -> impl Fn(&str) -> Block<'a> {
        move |name| Block(member(task, name))
    }

    fn value(self, name: &str) -> Option<&'a Json> {
        self.0.and_then(|block| member(block, name))
    }

    fn text(self, name: &str) -> Option<&'a str> {
        self.value(name).and_then(Json::as_str)
    }

    fn word(self, name: &str, default: &'static str) -> &'a str {
        self.text(name).unwrap_or(default)
    }

    fn amount(self, name: &str, default: u32) -> Amount<'a> {
        Amount::or(self.value(name), default)
    }
}

fn payload<'a>(task: &'a Json, session_target: &str) -> Payload<'a> {
    if session_target != "shell" {
        return Payload::Prompt(text(task, "prompt").unwrap_or_default());
    }
    let shell = Block(member(task, "shell"));
    Payload::Shell {
        program: shell.word("program", ""),
        args: shell.value("args").and_then(Json::as_array).unwrap_or_default(),
        cwd: shell.text("cwd"),
        env: shell.value("env"),
        stdin: shell.value("stdin"),
    }
}

fn model<'a>(task: &'a Json, workflow: &'a Json) -> Model<'a> {
    let policy = Layers::of(task, workflow, "model_policy");
    Model { provider: policy.text("provider"), name: policy.text("model"), thinking: policy.text("thinking") }
}

fn output(block: Block<'_>) -> Output<'_> {
    Output {
        format: block.text("format"),
        preview_bytes: block.amount("preview_bytes", 2000),
        offload: block.word("offload", "auto"),
        retrieve: block.word("retrieve", "on-demand"),
    }
}

fn budgets<'a>(block: Block<'a>, context: Block<'a>) -> Budgets<'a> {
    Budgets {
        iterations: block.value("max_iterations"),
        fanout: block.amount("max_fanout", 25),
        context_items: Amount::or(block.value("max_context_items").or_else(|| context.value("limit")), 5),
        pending_approvals: block.amount("max_pending_approvals", 10),
        queued_dispatches: block.amount("max_queued_dispatches", 25),
    }
}

fn delivery(block: Block<'_>) -> Delivery<'_> {
    Delivery { mode: block.word("mode", "none"), channel: block.text("channel"), to: block.text("to") }
}

fn reliability(block: Block<'_>) -> Reliability<'_> {
    Reliability {
        guarantee: block.word("guarantee", "at-most-once"),
        overlap_policy: block.word("overlap_policy", "skip"),
        max_retries: block.amount("max_retries", 0),
    }
}
