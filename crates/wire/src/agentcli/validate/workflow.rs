//! Workflows, and the rules between their tasks.

use std::borrow::Cow;
use std::collections::HashSet;

use proctor_core::json::Json;

use super::code;
use super::path::Path;
use super::scalars::given;
use super::task::{self, Facts};
use super::walk::Walk;
use crate::agentcli::rpc::is_truthy;
use crate::agentcli::structure::WORKFLOW;

/// Members of a workflow's table; the last one is `tasks`.
const MEMBERS: usize = 11;

/// Checks the manifest's workflows.
pub(super) fn all(walk: &mut Walk, path: &Path<'_>, value: Option<&Json>) {
    let mut seen = HashSet::new();
    for (index, item) in walk.full_array(path, value).unwrap_or_default().iter().enumerate() {
        let path = path.index(index);
        if let Some(object) = walk.object(&path, Some(item), true) {
            workflow(walk, &path, object, &mut seen);
        }
    }
}

fn workflow<'a>(walk: &mut Walk, path: &Path<'_>, object: &'a Json, seen: &mut HashSet<&'a str>) {
    let values: [_; MEMBERS] = walk.members(path, object, &WORKFLOW);
    let [id, .., tasks] = values;
    for (member, value) in WORKFLOW.members.iter().zip(values).take(MEMBERS - 1) {
        walk.member(&path.key(member.name), value, member);
    }
    if let Some(id) = id.and_then(Json::as_str)
        && !seen.insert(id)
    {
        walk.error(&path.key("id"), code::DUPLICATE_ID, "is the id of another workflow already");
    }
    let path = path.key("tasks");
    let tasks = walk.full_array(&path, tasks).unwrap_or_default();
    let mut declared = HashSet::with_capacity(tasks.len());
    let mut facts = Vec::with_capacity(tasks.len());
    for (index, item) in tasks.iter().enumerate() {
        let path = path.index(index);
        facts.push(match walk.object(&path, Some(item), true) {
            Some(object) => task::task(walk, &path, object, &mut declared),
            None => Facts::default(),
        });
    }
    unique_after_expansion(walk, &path, &facts);
    parents(walk, &path, &facts, &declared);
}

/// Reports identifiers that are used twice after each failure handler became a task behind its parent.
fn unique_after_expansion(walk: &mut Walk, path: &Path<'_>, tasks: &[Facts<'_>]) {
    let mut seen: HashSet<Cow<'_, str>> = HashSet::with_capacity(tasks.len());
    let message = "is the id of another task already, after failure handlers became tasks";
    for (index, task) in tasks.iter().enumerate() {
        let Some(id) = task.id else { continue };
        let path = path.index(index);
        if !seen.insert(Cow::Borrowed(id)) {
            walk.error(&path.key("id"), code::DUPLICATE_EXPANDED_ID, message);
        }
        let Some(handler) = task.handler else { continue };
        let id = match given(handler.get("id")) {
            None => Cow::Owned(format!("{id}.failure")),
            Some(Json::String(id)) => Cow::Borrowed(id.as_str()),
            Some(_) => continue,
        };
        if !seen.insert(id) {
            walk.error(&path.key("on_failure").key("id"), code::DUPLICATE_EXPANDED_ID, message);
        }
    }
}

/// Checks parents of triggers, and warns of approvals on tasks without trigger.
fn parents(walk: &mut Walk, path: &Path<'_>, tasks: &[Facts<'_>], declared: &HashSet<&str>) {
    for (index, task) in tasks.iter().enumerate() {
        let path = path.index(index);
        if let Some(trigger) = task.trigger {
            let Some(parent) = trigger.get("parent").and_then(Json::as_str) else { continue };
            let path = path.key("trigger");
            let path = path.key("parent");
            if task.id == Some(parent) {
                walk.error(&path, code::SELF_PARENT, "must be another task than this one");
            } else if !declared.contains(parent) {
                walk.error(&path, code::UNKNOWN_PARENT, "must be the id of a task of the same workflow");
            }
        } else if task.approval.and_then(|approval| approval.get("required")).is_some_and(is_truthy) {
            let message = "is enforced only where the scheduler gates scheduled tasks: others gate triggered tasks only";
            walk.warning(&path.key("approval").key("required"), code::ROOT_APPROVAL, message);
        }
    }
}
