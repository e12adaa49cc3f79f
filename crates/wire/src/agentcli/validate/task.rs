//! Tasks and failure handlers.

use std::collections::HashSet;

use proctor_core::json::Json;

use super::code;
use super::path::Path;
use super::scalars::given;
use super::walk::Walk;
use crate::agentcli::structure::{Block, HANDLER, Kind, SHELL, TASK};

/// Positions in the tables of tasks and handlers. Members from [`OPTIONS`] on have no rules beyond their table and hooks.
const ID: usize = 0;
const NAME: usize = 1;
const ENABLED: usize = 2;
const TARGET: usize = 3;
const COMMAND: usize = 4;
const PROMPT: usize = 5;
const SHELL_BLOCK: usize = 6;
/// `schedule` of a task, `delay_s` of a handler.
const FIRST_OF_TWO: usize = 7;
/// `trigger` of a task, `condition` of a handler.
const SECOND_OF_TWO: usize = 8;
const OPTIONS: usize = 9;
const APPROVAL: usize = 16;

const TASK_MEMBERS: usize = 29;
const HANDLER_MEMBERS: usize = 25;

/// A task or handler: its place, its members, and its table.
struct Execution<'a> {
    path: &'a Path<'a>,
    values: &'a [Option<&'a Json>],
    block: &'static Block,
}

/// Members of a task that rules between tasks read.
#[derive(Debug, Default)]
pub(super) struct Facts<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) trigger: Option<&'a Json>,
    pub(super) approval: Option<&'a Json>,
    pub(super) handler: Option<&'a Json>,
}

/// Checks a task.
pub(super) fn task<'a>(
    walk: &mut Walk,
    path: &Path<'_>,
    object: &'a Json,
    declared: &mut HashSet<&'a str>,
) -> Facts<'a> {
    let values: [_; TASK_MEMBERS] = walk.members(path, object, &TASK);
    let task = Execution { path, values: &values, block: &TASK };
    task.check(walk, ID);
    task.check(walk, NAME);
    task.check(walk, ENABLED);
    let id = values[ID].and_then(Json::as_str);
    if let Some(id) = id
        && !declared.insert(id)
    {
        walk.error(&path.key("id"), code::DUPLICATE_ID, "is the id of another task of the workflow already");
    }
    task.check(walk, TARGET);
    let session = task.declared_session();
    task.surface(walk, session);
    task.invocation(walk);
    task.options(walk, session);
    let path = path.key("on_failure");
    let handler = walk.object(&path, values[TASK_MEMBERS - 1], false);
    if let Some(handler) = handler {
        on_failure(walk, &path, handler);
    }
    Facts { id, trigger: given(values[SECOND_OF_TWO]), approval: given(values[APPROVAL]), handler }
}

/// Checks a failure handler: a task without id, name, schedule and trigger of its own.
fn on_failure(walk: &mut Walk, path: &Path<'_>, object: &Json) {
    let values: [_; HANDLER_MEMBERS] = walk.members(path, object, &HANDLER);
    let handler = Execution { path, values: &values, block: &HANDLER };
    for position in [ID, NAME, ENABLED, TARGET] {
        handler.check(walk, position);
    }
    let has_shell = handler.given(SHELL_BLOCK).is_some();
    let session = match handler.given(TARGET).and_then(|target| given(target.get("session_target"))) {
        Some(declared) => declared.as_str(),
        None if has_shell => Some("shell"),
        None => Some("isolated"),
    };
    handler.surface(walk, session);
    handler.check(walk, FIRST_OF_TWO);
    handler.check(walk, SECOND_OF_TWO);
    handler.options(walk, session);
}

impl<'a> Execution<'a> {
    fn value(&self, position: usize) -> Option<&'a Json> {
        self.values.get(position).copied().flatten()
    }

    /// The member's value, unless it is `null`.
    fn given(&self, position: usize) -> Option<&'a Json> {
        given(self.value(position))
    }

    /// Checks a member by the table.
    fn check(&self, walk: &mut Walk, position: usize) {
        if let Some(member) = self.block.members.get(position) {
            walk.member(&self.path.key(member.name), self.value(position), member);
        }
    }

    fn declared_session(&self) -> Option<&'a str> {
        self.given(TARGET)?.get("session_target")?.as_str()
    }

    /// Checks what is executed: a program in shell tasks, a prompt in all others.
    fn surface(&self, walk: &mut Walk, session: Option<&str>) {
        self.check(walk, COMMAND);
        let (prompt, shell) = (self.path.key("prompt"), self.path.key("shell"));
        match session {
            Some("shell") => {
                if self.given(PROMPT).is_some() {
                    walk.error(&prompt, code::PROMPT_FORBIDDEN, "must be absent for a shell target");
                }
                let target = self.path.key("target");
                let kind = self.given(TARGET).and_then(|target| given(target.get("payload_kind")));
                if kind.is_some_and(|kind| *kind != "shellCommand") {
                    let message = "must be `shellCommand` for a shell target";
                    walk.error(&target.key("payload_kind"), code::PAYLOAD_KIND_MISMATCH, message);
                }
                if let Some(object) = walk.object(&shell, self.value(SHELL_BLOCK), true) {
                    walk.block(&shell, object, &SHELL);
                }
            }
            Some("main" | "isolated") => {
                walk.text(&prompt, self.value(PROMPT), true);
                if let Some(value) = self.given(SHELL_BLOCK) {
                    walk.error(&shell, code::SHELL_FORBIDDEN, "must be absent for a prompt target");
                    // The block's unknown keys are reported even where it must not be.
                    walk.fill(&shell, value, &SHELL, &mut []);
                }
            }
            _ => {}
        }
    }

    /// Checks the schedule or trigger of a task.
    fn invocation(&self, walk: &mut Walk) {
        let (schedule, trigger) = (self.path.key("schedule"), self.path.key("trigger"));
        let schedule_object = walk.object(&schedule, self.value(FIRST_OF_TWO), false);
        let trigger_object = walk.object(&trigger, self.value(SECOND_OF_TWO), false);
        if self.given(FIRST_OF_TWO).is_some() == self.given(SECOND_OF_TWO).is_some() {
            let message = "must have exactly one of `schedule` and `trigger`";
            walk.error(self.path, code::SCHEDULE_OR_TRIGGER, message);
        }
        for (path, object, position) in
            [(schedule, schedule_object, FIRST_OF_TWO), (trigger, trigger_object, SECOND_OF_TWO)]
        {
            if let (Some(object), Some(member)) = (object, self.block.members.get(position))
                && let Kind::Block(block) = member.kind
            {
                walk.block(&path, object, block);
            }
        }
    }

    /// Checks the optional blocks, and the rules between them.
    fn options(&self, walk: &mut Walk, session: Option<&str>) {
        let mut intent = None;
        let mut budgets = None;
        for (position, member) in self.block.members.iter().enumerate().skip(OPTIONS) {
            let Some(value) = self.value(position) else { continue };
            if member.name == "on_failure" {
                continue;
            }
            let path = self.path.key(member.name);
            walk.member(&path, Some(value), member);
            match member.name {
                "intent" => intent = Some(value),
                "budgets" => budgets = Some(value),
                "delivery" => delivery(walk, &path, value),
                "approval" => approval(walk, &path, value),
                "context" => context(walk, &path, value, budgets),
                _ => {}
            }
        }
        let Some(intent) = intent else { return };
        let plans = intent.get("mode").is_some_and(|mode| *mode == "plan");
        let reads = intent.get("read_only").and_then(Json::as_bool) == Some(true);
        if session == Some("shell") && (plans || reads) {
            let message = "is not enforced for a shell target: the program runs as it is";
            walk.warning(&self.path.key("intent"), code::INTENT_NOT_ENFORCED, message);
        }
    }
}

fn delivery(walk: &mut Walk, path: &Path<'_>, delivery: &Json) {
    let mode = delivery.get("mode").and_then(Json::as_str);
    if matches!(mode, Some("announce" | "announce-always")) && given(delivery.get("to")).is_none() {
        let message = "is required for the delivery modes `announce` and `announce-always`";
        walk.error(&path.key("to"), code::DELIVERY_TO_REQUIRED, message);
    }
}

fn approval(walk: &mut Walk, path: &Path<'_>, approval: &Json) {
    if given(approval.get("policy")).is_some() && given(approval.get("required")).is_some() {
        let message = "has both `policy` and `required`: `policy` decides";
        walk.warning(path, code::APPROVAL_POLICY_AND_REQUIRED, message);
    }
}

fn context(walk: &mut Walk, path: &Path<'_>, context: &Json, budgets: Option<&Json>) {
    let number = |value: Option<&Json>| match value {
        Some(Json::Number(literal)) => literal.parse::<f64>().ok(),
        _ => None,
    };
    let limit = number(context.get("limit"));
    let most = number(budgets.and_then(|budgets| budgets.get("max_context_items")));
    if let (Some(limit), Some(most)) = (limit, most)
        && limit.total_cmp(&most).is_ne()
    {
        let message = "differs from `budgets.max_context_items`: this one is used";
        walk.warning(&path.key("limit"), code::CONTEXT_LIMITS_DIFFER, message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_of_the_tables() {
        for table in [&TASK, &HANDLER] {
            let at = |position: usize| table.members[position].name;
            assert_eq!([at(ID), at(NAME), at(ENABLED), at(TARGET)], ["id", "name", "enabled", "target"]);
            assert_eq!([at(COMMAND), at(PROMPT), at(SHELL_BLOCK)], ["command", "prompt", "shell"]);
            assert_eq!([at(OPTIONS), at(APPROVAL)], ["model_policy", "approval"]);
        }
        let names = |table: &Block| [table.members[FIRST_OF_TWO].name, table.members[SECOND_OF_TWO].name];
        assert_eq!(names(&TASK), ["schedule", "trigger"]);
        assert_eq!(names(&HANDLER), ["delay_s", "condition"]);
        assert_eq!((TASK.members.len(), HANDLER.members.len()), (TASK_MEMBERS, HANDLER_MEMBERS));
        assert_eq!(TASK.members[TASK_MEMBERS - 1].name, "on_failure");
    }
}
