//! Tasks that trigger each other in a circle.

use std::collections::HashMap;

use proctor_core::json::Json;

use super::{Found, items};
use crate::text::readable;

/// Most tasks that one message names.
const MAX_NAMES: usize = 10;

/// Reports each circle of a workflow once, at its first task. A task that is its own parent is an error of the protocol.
pub(super) fn find(workflow: &Json, path: &str, found: &mut Found) {
    let tasks = items(workflow, "tasks");
    let mut positions = HashMap::new();
    for (position, task) in tasks.iter().enumerate() {
        if let Some(id) = task["id"].as_str() {
            positions.entry(id).or_insert(position);
        }
    }
    let parents: Vec<Option<usize>> =
        tasks.iter().map(|task| positions.get(task.pointer("/trigger/parent")?.as_str()?).copied()).collect();
    // The walk that a task was seen by: a walk that meets itself has found a circle.
    let mut seen_by: Vec<Option<usize>> = vec![None; tasks.len()];
    for start in 0..tasks.len() {
        let mut at = Some(start);
        while let Some(position) = at {
            match seen_by.get_mut(position) {
                Some(mark @ None) => *mark = Some(start),
                Some(Some(walk)) if *walk == start => {
                    report(tasks, &parents, position, path, found);
                    break;
                }
                _ => break,
            }
            at = parents.get(position).copied().flatten();
        }
    }
}

fn report(tasks: &[Json], parents: &[Option<usize>], start: usize, path: &str, found: &mut Found) {
    let mut circle = vec![start];
    let mut at = parents.get(start).copied().flatten();
    while let Some(position) = at.filter(|position| *position != start) {
        circle.push(position);
        at = parents.get(position).copied().flatten();
    }
    if circle.len() < 2 {
        return;
    }
    let first = circle.iter().copied().min().unwrap_or(start);
    circle.sort_unstable();
    found.add(&format!("{path}.tasks[{first}].trigger.parent"), "proctor_cycle", || {
        let names: Vec<String> = circle
            .iter()
            .take(MAX_NAMES)
            .filter_map(|position| tasks.get(*position)?["id"].as_str().map(readable))
            .map(|id| format!("`{id}`"))
            .collect();
        let rest = circle.len().saturating_sub(MAX_NAMES);
        let rest = if rest == 0 { String::new() } else { format!(" and {rest} more") };
        format!(
            "tasks {}{rest} trigger each other in a circle, so that none of them ever runs",
            names.join(", ")
        )
    });
}
