//! Run of a workflow: its tasks from one root or from all, ordered by the time they are ready, then by the order they were triggered in.

mod graph;
mod tally;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

use proctor_core::json::Json;
use proctor_wire::agentcli::effective::{pick_workflow, select};
use proctor_wire::agentcli::error::{Code, Failure};
use proctor_wire::agentcli::expand::expand;
use proctor_wire::agentcli::validate::validate;

use super::condition::{ConditionError, holds};
use super::read::text;
use super::recorder::JobKey;
use super::refusal::Refusal;
use super::retry::{Attempts, Next};
use super::{Cancel, Options, Runner};
use graph::{Node, Trigger, nodes, refuse_circles, roots};
use tally::{Tally, TaskEnd};

/// Reason of tasks that are not enabled.
const DISABLED: &str = "the task is disabled";

/// Ended run of a workflow.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkflowRun {
    /// Whether no task failed, and none was cancelled.
    pub is_ok: bool,
    /// Code of the first refusal, if no task failed in another way.
    pub refused: Option<Code>,
    /// The result as commands print it.
    pub json: Json,
}

impl Runner {
    /// Runs the tasks of a workflow: those with a schedule and what they trigger, or one task and what it triggers. Schedules do not
    /// matter, delays do. Every task is a run like any other.
    pub async fn run_workflow(
        &self,
        manifest: &Json,
        workflow: Option<&str>,
        root: Option<&str>,
        options: &Options,
        cancel: &mut Cancel,
    ) -> Result<WorkflowRun, Refusal> {
        let validation = validate(manifest);
        if !validation.is_ok() {
            return Err(Failure::invalid_manifest(validation).into());
        }
        let expanded = expand(manifest);
        let workflow = pick_workflow(&expanded, workflow).map_err(Failure::from)?;
        let workflow_id = text(workflow, "id").unwrap_or_default();
        let nodes = nodes(workflow);
        refuse_circles(&nodes)?;
        let roots = roots(&nodes, workflow, root).map_err(Failure::from)?;
        let mut run =
            WorkflowInProgress { runner: self, workflow_id, nodes: &nodes, tally: Tally::default() };
        run.walk(manifest, roots, options, cancel).await?;
        let Tally { tasks, succeeded, failed, refused, skipped, shown: _ } = run.tally;
        let refusals = u64::try_from(refused.len()).unwrap_or(u64::MAX);
        // A cancelled task has not done its work.
        let is_ok = failed == 0 && !cancel.is_given();
        let json = Json::object()
            .with("ok", is_ok)
            .with("workflow_id", workflow_id)
            .with("root", root)
            .with("succeeded", succeeded)
            .with("failed", failed)
            .with("refused", refusals)
            .with("skipped", skipped)
            .with("tasks", tasks);
        let refused = refused.first().copied().filter(|_| refusals == failed && !cancel.is_given());
        Ok(WorkflowRun { is_ok, refused, json })
    }
}

/// Shows which tasks a run of a workflow would start from, and what each may trigger; nothing runs.
pub fn preview_workflow(
    manifest: &Json,
    workflow: Option<&str>,
    root: Option<&str>,
) -> Result<Json, Failure> {
    let validation = validate(manifest);
    if !validation.is_ok() {
        return Err(Failure::invalid_manifest(validation));
    }
    let expanded = expand(manifest);
    let workflow = pick_workflow(&expanded, workflow)?;
    let workflow_id = text(workflow, "id").unwrap_or_default();
    let nodes = nodes(workflow);
    refuse_circles(&nodes)?;
    let mut waiting = roots(&nodes, workflow, root)?;
    waiting.reverse();
    let mut tasks = Vec::new();
    while let Some(node) = waiting.pop().and_then(|index| nodes.get(index)) {
        let trigger = node.trigger.as_ref();
        tasks.push(
            Json::object()
                .with("task_id", node.id)
                .with("enabled", node.is_enabled)
                .with("parent", trigger.map(|trigger| trigger.parent))
                .with("on", trigger.map(|trigger| trigger.on))
                .with("delay_s", trigger.map(|trigger| trigger.delay.as_secs()))
                .with("condition", trigger.and_then(|trigger| trigger.condition)),
        );
        waiting.extend(node.children.iter().rev());
    }
    Ok(Json::object()
        .with("ok", true)
        .with("dry_run", true)
        .with("workflow_id", workflow_id)
        .with("root", root)
        .with("tasks", tasks))
}

struct WorkflowInProgress<'a> {
    runner: &'a Runner,
    workflow_id: &'a str,
    nodes: &'a [Node<'a>],
    tally: Tally,
}

impl WorkflowInProgress<'_> {
    async fn walk(
        &mut self,
        manifest: &Json,
        roots: Vec<usize>,
        options: &Options,
        cancel: &mut Cancel,
    ) -> Result<(), Failure> {
        let timer = &*self.runner.parts.timer;
        let mut ready = BinaryHeap::new();
        let mut sequence = 0_usize;
        let mut retried: HashMap<usize, Attempts> = HashMap::new();
        let now = timer.elapsed();
        for root in roots {
            ready.push(Reverse((now, sequence, root)));
            sequence += 1;
        }
        while let Some(Reverse((at, _, index))) = ready.pop() {
            let nodes = self.nodes;
            let Some(node) = nodes.get(index) else { continue };
            if !node.is_enabled {
                self.skip(index, DISABLED).await?;
                continue;
            }
            if !cancel.is_given() {
                tokio::select! {
                    () = timer.until(at) => {}
                    () = cancel.cancelled() => {}
                }
            }
            let mut attempts = retried.remove(&index);
            if cancel.is_given() {
                // A task that is between two attempts has failed; others have not begun.
                match attempts.as_mut().and_then(Attempts::give_up) {
                    Some(execution) => {
                        self.tally.count(node.id, &TaskEnd::from(Ok(execution)));
                        self.skip_all(&node.children, "the run was cancelled").await?;
                    }
                    None => self.skip(index, "the run was cancelled").await?,
                }
                continue;
            }
            let task = select(manifest, Some(self.workflow_id), node.id).map_err(Failure::from)?;
            let mut attempts = attempts.unwrap_or_else(|| Attempts::of(&task.task));
            let ended = self.runner.execute(&task, options, attempts.upcoming(), cancel).await;
            let end = match attempts.ended(ended) {
                Next::Retry(delay) => {
                    retried.insert(index, attempts);
                    ready.push(Reverse((timer.elapsed().saturating_add(delay), sequence, index)));
                    sequence += 1;
                    continue;
                }
                Next::Done(end) => TaskEnd::from(end),
            };
            self.tally.count(node.id, &end);
            let ended_at = timer.elapsed();
            for (child, delay) in self.triggered(node, &end).await? {
                ready.push(Reverse((ended_at.saturating_add(delay), sequence, child)));
                sequence += 1;
            }
        }
        Ok(())
    }

    /// Children that a task starts, with their delays; the others are skipped, with the reason.
    async fn triggered(&mut self, node: &Node<'_>, end: &TaskEnd) -> Result<Vec<(usize, Duration)>, Failure> {
        let nodes = self.nodes;
        let mut triggered = Vec::new();
        for index in &node.children {
            let Some((child, trigger)) =
                nodes.get(*index).and_then(|child| Some((child, child.trigger.as_ref()?)))
            else {
                continue;
            };
            if !child.is_enabled {
                self.skip(*index, DISABLED).await?;
                continue;
            }
            let is_full = u64::try_from(triggered.len()).unwrap_or(u64::MAX) >= node.max_fanout;
            match fires(trigger, end).await {
                Ok(Fires::Yes) if is_full => {
                    self.skip(*index, "its parent starts no more children (`budgets.max_fanout`)").await?;
                }
                Ok(Fires::Yes) => triggered.push((*index, trigger.delay)),
                Ok(Fires::No(reason)) => self.skip(*index, reason).await?,
                Err(error) => self.undecided(*index, &error).await?,
            }
        }
        Ok(triggered)
    }

    /// Records that a task and everything below it did not run.
    async fn skip(&mut self, index: usize, reason: &str) -> Result<(), Failure> {
        let nodes = self.nodes;
        let mut waiting = vec![(index, reason)];
        while let Some((index, reason)) = waiting.pop() {
            let Some(node) = nodes.get(index) else { continue };
            let id = self.record_unstarted(node.id, "skipped", reason).await?;
            self.tally.skipped += 1;
            self.tally.tasks.push(
                Json::object()
                    .with("task_id", node.id)
                    .with("status", "skipped")
                    .with("reason", reason)
                    .with("execution_id", id),
            );
            // The stack is popped from its end: pushed in reverse, children come in the order of the manifest.
            waiting.extend(node.children.iter().rev().map(|child| (*child, "its parent did not run")));
        }
        Ok(())
    }

    /// Counts a task as failed whose condition could not be decided, and skips what is below it.
    async fn undecided(&mut self, index: usize, error: &ConditionError) -> Result<(), Failure> {
        let nodes = self.nodes;
        let Some(node) = nodes.get(index) else { return Ok(()) };
        let error = error.to_string();
        let id = self.record_unstarted(node.id, "failed", &error).await?;
        self.tally.failed += 1;
        self.tally.tasks.push(
            Json::object()
                .with("task_id", node.id)
                .with("status", "failed")
                .with("code", Code::ContractViolation.word())
                .with("error", error)
                .with("execution_id", id),
        );
        self.skip_all(&node.children, "its parent did not run").await
    }

    async fn skip_all(&mut self, indices: &[usize], reason: &str) -> Result<(), Failure> {
        for index in indices {
            self.skip(*index, reason).await?;
        }
        Ok(())
    }

    async fn record_unstarted(&self, task: &str, status: &str, reason: &str) -> Result<String, Failure> {
        let key = JobKey { job: format!("{}/{task}", self.workflow_id), session: self.runner.execution_id() };
        let data = Json::object()
            .with("execution_id", key.session.as_str())
            .with("workflow", self.workflow_id)
            .with("task", task)
            .with("status", status)
            .with("reason", reason);
        let recorded = self.runner.parts.recorder.end(&key, data).await;
        recorded.map_err(|error| {
            Failure::new(Code::InternalError, format!("the run could not be recorded: {error}"))
        })?;
        Ok(key.session)
    }
}

enum Fires {
    Yes,
    No(&'static str),
}

async fn fires(trigger: &Trigger<'_>, parent: &TaskEnd) -> Result<Fires, ConditionError> {
    let is_wanted = match trigger.on {
        "success" => parent.is_ok(),
        "failure" => !parent.is_ok(),
        _ => true,
    };
    if !is_wanted {
        return Ok(Fires::No("its trigger does not match the end of its parent"));
    }
    let Some(condition) = trigger.condition.map(str::to_owned) else { return Ok(Fires::Yes) };
    let text = parent.stdout().to_owned();
    let deciding = tokio::task::spawn_blocking(move || holds(&condition, &text));
    if deciding.await.map_err(|_| ConditionError::Failed)?? {
        Ok(Fires::Yes)
    } else {
        Ok(Fires::No("its condition does not match the output of its parent"))
    }
}
