//! Consistency rules of task lists: dependencies, cycles and transitions.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use super::bounds::{MAX_ITEMS, cut};
use super::problem::{Problems, quote};
use super::verification::digests;
use crate::ahp::{TaskItem, TaskStatus};

/// Compares the new list with what was kept of the one before.
pub(super) fn check(before: &[TaskItem], tasks: &[TaskItem], problems: &mut Problems) {
    // All that were sent, so that a task behind those that are kept is neither unknown nor gone.
    let mut status_of: HashMap<&str, TaskStatus> = HashMap::with_capacity(tasks.len());
    for task in tasks {
        status_of.entry(cut(&task.id)).or_insert(task.status);
    }
    compare(before, tasks, &status_of, problems);
    let kept = tasks.get(..MAX_ITEMS).unwrap_or(tasks);
    let mut ids = HashSet::new();
    for task in kept {
        if !ids.insert(cut(&task.id)) {
            problems.add("duplicate_task", || format!("two tasks have the id {}", quote(&task.id)));
        }
        dependencies(task, &status_of, problems);
        digests("task", &task.id, &task.evidence, &task.artifacts, problems);
    }
    if let Some(cycle) = cycle(kept) {
        problems.add("dependency_cycle", || format!("tasks wait for each other: {}", describe(&cycle)));
    }
}

fn compare(
    before: &[TaskItem],
    tasks: &[TaskItem],
    status_of: &HashMap<&str, TaskStatus>,
    problems: &mut Problems,
) {
    let mut previous: HashMap<&str, TaskStatus> = HashMap::with_capacity(before.len());
    for task in before {
        // Of several with one id, only the first is followed; the others were reported as duplicates.
        let Entry::Vacant(unseen) = previous.entry(&task.id) else { continue };
        unseen.insert(task.status);
        if !task.status.is_final() && !status_of.contains_key(task.id.as_str()) {
            problems.add("task_vanished", || {
                format!("task {} was `{}` and is not listed any more", quote(&task.id), task.status.name())
            });
        }
    }
    let mut seen = HashSet::new();
    for task in tasks {
        let id = cut(&task.id);
        let Some(was) = previous.get(id).filter(|_| seen.insert(id)) else { continue };
        if !was.may_become(task.status) {
            problems.add("task_transition", || {
                format!("task {} was `{}` and cannot become `{}`", quote(id), was.name(), task.status.name())
            });
        }
    }
}

fn dependencies(task: &TaskItem, status_of: &HashMap<&str, TaskStatus>, problems: &mut Problems) {
    let began = matches!(task.status, TaskStatus::InProgress | TaskStatus::Completed);
    for dependency in task.depends_on.iter().take(MAX_ITEMS) {
        match status_of.get(cut(dependency)) {
            None => problems.add("unknown_dependency", || {
                format!("task {} depends on {}, which is not listed", quote(&task.id), quote(dependency))
            }),
            Some(status) if began && !status.satisfies() => problems.add("dependency_unfinished", || {
                format!(
                    "task {} is `{}`, but {}, which it depends on, is `{}`",
                    quote(&task.id),
                    task.status.name(),
                    quote(dependency),
                    status.name()
                )
            }),
            Some(_) => {}
        }
    }
}

/// A cycle of dependencies, if there is any. Without recursion: at most `MAX_ITEMS` tasks with as many dependencies each.
fn cycle(tasks: &[TaskItem]) -> Option<Vec<&str>> {
    let mut waits_for: HashMap<&str, HashSet<&str>> = HashMap::with_capacity(tasks.len());
    for task in tasks {
        let dependencies = task.depends_on.iter().take(MAX_ITEMS).map(|id| cut(id));
        waits_for.entry(cut(&task.id)).or_insert_with(|| dependencies.collect());
    }
    let mut awaited_by: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut waiting: HashMap<&str, usize> = HashMap::with_capacity(waits_for.len());
    let mut free = Vec::new();
    for (task, dependencies) in &waits_for {
        let known = dependencies.iter().filter(|dependency| waits_for.contains_key(*dependency));
        let count = known.clone().count();
        known.for_each(|dependency| awaited_by.entry(dependency).or_default().push(task));
        if count == 0 {
            free.push(*task);
        } else {
            waiting.insert(task, count);
        }
    }
    // Take away whatever waits for nothing, until nothing is left or all that is left waits.
    while let Some(done) = free.pop() {
        for task in awaited_by.get(done).into_iter().flatten() {
            if let Some(count) = waiting.get_mut(task) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    waiting.remove(task);
                    free.push(task);
                }
            }
        }
    }
    // Every task that is left waits for one that is left: following them must come back to where it was.
    let mut current = tasks.iter().map(|task| cut(&task.id)).find(|task| waiting.contains_key(task))?;
    let mut path = Vec::new();
    let mut position: HashMap<&str, usize> = HashMap::new();
    loop {
        if let Some(start) = position.insert(current, path.len()) {
            return path.get(start..).map(<[&str]>::to_vec);
        }
        path.push(current);
        // The least, so that the same list always gives the same message.
        let dependencies = waits_for.get(current)?;
        current = dependencies.iter().copied().filter(|next| waiting.contains_key(next)).min()?;
    }
}

/// A cycle for a message: its first few tasks.
fn describe(cycle: &[&str]) -> String {
    const SHOWN: usize = 5;
    let mut names: Vec<String> = cycle.iter().take(SHOWN).map(|id| quote(id)).collect();
    if cycle.len() > SHOWN {
        names.push("…".to_owned());
    }
    names.extend(cycle.first().map(|id| quote(id)));
    names.join(" → ")
}
