//! Order of a workflow's tasks: parents, children, circles.

use std::collections::HashMap;
use std::time::Duration;

use proctor_core::json::Json;
use proctor_wire::agentcli::effective::SelectError;
use proctor_wire::agentcli::error::{Code, Failure};

use crate::run::read::{integer, member, text};

/// Children that a task starts at most, if its budgets do not say.
const DEFAULT_FANOUT: u64 = 25;

/// Longest circle that an error shows.
const SHOWN_CIRCLE: usize = 8;

/// Task of a workflow, as far as its order is concerned.
#[derive(Debug)]
pub(super) struct Node<'m> {
    pub(super) id: &'m str,
    pub(super) is_enabled: bool,
    pub(super) trigger: Option<Trigger<'m>>,
    pub(super) children: Vec<usize>,
    /// Children that it starts, at most.
    pub(super) max_fanout: u64,
}

#[derive(Debug)]
pub(super) struct Trigger<'m> {
    pub(super) parent: &'m str,
    pub(super) on: &'m str,
    pub(super) delay: Duration,
    pub(super) condition: Option<&'m str>,
}

pub(super) fn nodes(workflow: &Json) -> Vec<Node<'_>> {
    let tasks = member(workflow, "tasks").and_then(Json::as_array).unwrap_or_default();
    let mut nodes: Vec<Node<'_>> = tasks.iter().map(node).collect();
    let index: HashMap<&str, usize> =
        nodes.iter().enumerate().map(|(index, node)| (node.id, index)).collect();
    for child in 0..nodes.len() {
        let parent = nodes.get(child).and_then(|node| node.trigger.as_ref()).map(|trigger| trigger.parent);
        let parent = parent.and_then(|parent| index.get(parent)).copied();
        if let Some(parent) = parent.and_then(|parent| nodes.get_mut(parent)) {
            parent.children.push(child);
        }
    }
    nodes
}

fn node(task: &Json) -> Node<'_> {
    let trigger = member(task, "trigger").map(|trigger| Trigger {
        parent: text(trigger, "parent").unwrap_or_default(),
        on: text(trigger, "on").unwrap_or_default(),
        delay: Duration::from_secs(integer(trigger, "delay_s").unwrap_or_default()),
        condition: text(trigger, "condition"),
    });
    Node {
        id: text(task, "id").unwrap_or_default(),
        is_enabled: member(task, "enabled").and_then(Json::as_bool).unwrap_or(true),
        trigger,
        children: Vec::new(),
        max_fanout: member(task, "budgets")
            .and_then(|budgets| integer(budgets, "max_fanout"))
            .unwrap_or(DEFAULT_FANOUT),
    }
}

/// Tasks that a run starts from: the named one, else all without a trigger.
pub(super) fn roots(
    nodes: &[Node<'_>],
    workflow: &Json,
    named: Option<&str>,
) -> Result<Vec<usize>, SelectError> {
    let Some(named) = named else {
        return Ok((0..nodes.len())
            .filter(|index| nodes.get(*index).is_some_and(|node| node.trigger.is_none()))
            .collect());
    };
    match nodes.iter().position(|node| node.id == named) {
        Some(root) => Ok(vec![root]),
        None => {
            let tasks = member(workflow, "tasks").and_then(Json::as_array).unwrap_or_default();
            let id = text(workflow, "id").unwrap_or_default();
            Err(SelectError::unknown_task(id, named, tasks.iter()))
        }
    }
}

/// Refuses tasks that trigger each other. Each task has at most one parent, so a walk towards the root finds every circle.
pub(super) fn refuse_circles(nodes: &[Node<'_>]) -> Result<(), Failure> {
    let index: HashMap<&str, usize> =
        nodes.iter().enumerate().map(|(index, node)| (node.id, index)).collect();
    // Number of the walk that passed a task first; 0: none yet.
    let mut passed = vec![0_usize; nodes.len()];
    for start in 0..nodes.len() {
        let (walk, mut at) = (start + 1, Some(start));
        while let Some(current) = at {
            match passed.get_mut(current) {
                Some(mark @ 0) => *mark = walk,
                Some(mark) if *mark == walk => return Err(circle(nodes, &index, current)),
                _ => break,
            }
            at = parent_of(nodes, &index, current);
        }
    }
    Ok(())
}

fn parent_of(nodes: &[Node<'_>], index: &HashMap<&str, usize>, of: usize) -> Option<usize> {
    let trigger = nodes.get(of)?.trigger.as_ref()?;
    index.get(trigger.parent).copied()
}

fn circle(nodes: &[Node<'_>], index: &HashMap<&str, usize>, start: usize) -> Failure {
    let mut names = Vec::new();
    let mut at = Some(start);
    while let Some(current) = at {
        names.push(nodes.get(current).map_or("", |node| node.id));
        at = parent_of(nodes, index, current).filter(|next| *next != start);
        if names.len() == SHOWN_CIRCLE {
            names.push("…");
            break;
        }
    }
    names.reverse();
    let message = format!("tasks trigger each other in a circle: {}", names.join(" → "));
    Failure::new(Code::ValidationError, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workflow(edges: &[(&str, Option<&str>)]) -> Json {
        let tasks = edges.iter().map(|(id, parent)| {
            let task = Json::object().with("id", *id);
            match parent {
                Some(parent) => {
                    task.with("trigger", Json::object().with("parent", *parent).with("on", "complete"))
                }
                None => task,
            }
        });
        Json::object().with("tasks", tasks.collect::<Vec<_>>())
    }

    #[test]
    fn circles_are_found_wherever_they_are_and_shown_in_trigger_order() {
        let tree = workflow(&[("a", None), ("b", Some("a")), ("c", Some("b")), ("d", Some("a"))]);
        assert_eq!(refuse_circles(&nodes(&tree)), Ok(()));
        let ring =
            workflow(&[("a", None), ("x", Some("z")), ("y", Some("x")), ("z", Some("y")), ("w", Some("y"))]);
        let error = refuse_circles(&nodes(&ring)).unwrap_err();
        assert_eq!(error.code, Code::ValidationError);
        assert_eq!(error.message, "tasks trigger each other in a circle: y → z → x");
    }

    #[test]
    fn long_chains_are_walked_in_linear_time() {
        let names: Vec<String> = (0..20_000).map(|number| format!("t{number}")).collect();
        let mut edges: Vec<(&str, Option<&str>)> = vec![(names[0].as_str(), None)];
        edges.extend(names.windows(2).map(|pair| (pair[1].as_str(), Some(pair[0].as_str()))));
        edges.reverse();
        let chain = workflow(&edges);
        let begun = std::time::Instant::now();
        assert_eq!(refuse_circles(&nodes(&chain)), Ok(()));
        assert!(begun.elapsed() < Duration::from_secs(1));
    }
}
