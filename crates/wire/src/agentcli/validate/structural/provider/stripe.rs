//! Stripe keys: precreated for each scope, or made on demand.

use std::collections::HashMap;

use proctor_core::json::Json;

use super::{full_object, is_source};
use crate::agentcli::validate::scalars::filled;
use crate::agentcli::validate::structural::identity::{Faults, Profile};

pub(super) fn check(faults: &mut Faults<'_>, profile: &Profile<'_>) {
    let strategy = filled(profile.config("key_strategy"));
    if !matches!(strategy, Some("precreated" | "dynamic")) {
        faults.missing("`auth.provider_config.key_strategy` must be `precreated` or `dynamic`");
    }
    if !matches!(filled(profile.config("account_mode")), Some("live" | "test")) {
        faults.missing("`auth.provider_config.account_mode` must be `live` or `test`");
    }
    if strategy == Some("precreated") {
        match full_object(profile.config("permission_sets")) {
            None => faults.missing("`auth.provider_config.permission_sets` needs at least one set"),
            Some(sets) => {
                if !sets.iter().all(|(_, set)| has_key(set)) {
                    let message = "each of `auth.provider_config.permission_sets` needs `key_env`, `key_file` or `key_command`";
                    faults.missing(message);
                }
            }
        }
    }
    if strategy == Some("dynamic") && !profile.config("master_key_source").is_some_and(is_source) {
        faults.missing("`auth.provider_config.master_key_source` needs `env`, `file` or `command`");
    }
    if let Some(hierarchy) = profile.config("scope_hierarchy") {
        match graph(hierarchy) {
            None => {
                faults.invalid("`auth.provider_config.scope_hierarchy` must map scopes to lists of scopes");
            }
            Some(graph) if has_cycle(&graph) => {
                faults.invalid("`auth.provider_config.scope_hierarchy` must not contain itself");
            }
            Some(_) => {}
        }
    }
}

fn has_key(set: &Json) -> bool {
    ["key_env", "key_file", "key_command"].iter().any(|name| filled(set.get(name)).is_some())
}

fn graph(hierarchy: &Json) -> Option<HashMap<&str, Vec<&str>>> {
    hierarchy
        .as_object()?
        .iter()
        .map(|(scope, below)| {
            let below = below.as_array()?.iter().map(Json::as_str).collect::<Option<Vec<_>>>()?;
            Some((scope.as_str(), below))
        })
        .collect()
}

/// Depth-first search with a stack of its own: a hierarchy can be as deep as the manifest is long.
fn has_cycle(graph: &HashMap<&str, Vec<&str>>) -> bool {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        Open,
        Done,
    }
    let mut marks: HashMap<&str, Mark> = HashMap::new();
    for start in graph.keys() {
        if marks.contains_key(start) {
            continue;
        }
        marks.insert(start, Mark::Open);
        let mut stack = vec![(*start, 0usize)];
        while let Some((scope, next)) = stack.pop() {
            let Some(below) = graph.get(scope).and_then(|below| below.get(next)) else {
                marks.insert(scope, Mark::Done);
                continue;
            };
            stack.push((scope, next + 1));
            match marks.get(below) {
                Some(Mark::Open) => return true,
                Some(Mark::Done) => {}
                None => {
                    marks.insert(below, Mark::Open);
                    stack.push((below, 0));
                }
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_found_at_any_depth() {
        let cycle = |json: &str| has_cycle(&graph(&Json::parse(json.as_bytes()).unwrap()).unwrap());
        assert!(!cycle(r#"{"a":["b","c"],"b":["c"],"c":[]}"#));
        assert!(!cycle(r#"{"a":["b","c"],"b":["d"],"c":["d"]}"#));
        assert!(cycle(r#"{"a":["a"]}"#));
        assert!(cycle(r#"{"x":["a"],"a":["b"],"b":["c"],"c":["a"]}"#));
        let names: Vec<_> = (0..100_000).map(|number| format!("s{number}")).collect();
        let chain: HashMap<&str, Vec<&str>> =
            names.windows(2).map(|pair| (pair[0].as_str(), vec![pair[1].as_str()])).collect();
        assert!(!has_cycle(&chain));
    }
}
