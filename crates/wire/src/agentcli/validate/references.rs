//! References to profiles, and trust that cannot be satisfied.

use std::collections::{HashMap, HashSet};

use proctor_core::json::Json;

use super::code;
use super::path::Path;
use super::scalars::given;
use super::walk::Walk;
use crate::agentcli::structure::TRUST_LEVELS;

/// Profiles by kind and id.
struct Profiles<'a> {
    identity: HashMap<&'a str, &'a Json>,
    /// Ids of proof, authorization and evidence profiles.
    others: [HashSet<&'a str>; 3],
}

/// Where an effective value was declared.
struct Declared<'a> {
    level: usize,
    contract: Path<'a>,
}

/// Checks references of workflows, tasks and handlers in the order of the document.
pub(super) fn check(walk: &mut Walk, manifest: &Json) {
    let profiles = Profiles::of(manifest);
    let mut reported = HashSet::new();
    let path = Path::Root.key("workflows");
    for (index, workflow) in items(manifest, "workflows").iter().enumerate() {
        let path = path.index(index);
        profiles.references(walk, &path, workflow);
        let outer = Scope { path, node: workflow };
        let path = path.key("tasks");
        for (index, task) in items(workflow, "tasks").iter().enumerate() {
            let path = path.index(index);
            profiles.references(walk, &path, task);
            profiles.trust(walk, &outer, &Scope { path, node: task }, &mut reported);
            if let Some(handler) = given(task.get("on_failure")) {
                let path = path.key("on_failure");
                profiles.references(walk, &path, handler);
                profiles.trust(walk, &outer, &Scope { path, node: handler }, &mut reported);
            }
        }
    }
}

/// A workflow, task or handler, with its place.
struct Scope<'a> {
    path: Path<'a>,
    node: &'a Json,
}

impl<'a> Profiles<'a> {
    fn of(manifest: &'a Json) -> Profiles<'a> {
        let ids = |key: &str| -> HashSet<&'a str> {
            items(manifest, key).iter().filter_map(|profile| profile.get("id")?.as_str()).collect()
        };
        let mut identity = HashMap::new();
        for profile in items(manifest, "identity_profiles") {
            if let Some(id) = profile.get("id").and_then(Json::as_str) {
                // Of two profiles with one id, which is an error, the first one counts.
                identity.entry(id).or_insert(profile);
            }
        }
        Profiles {
            identity,
            others: [
                ids("authorization_proof_profiles"),
                ids("authorization_profiles"),
                ids("evidence_profiles"),
            ],
        }
    }

    /// Checks the references of one node, in the order of the kinds.
    fn references(&self, walk: &mut Walk, path: &Path<'_>, node: &Json) {
        const KEYS: [&str; 4] = ["identity", "authorization_proof", "authorization", "evidence"];
        let mut blocks = [None; KEYS.len()];
        // One pass over the members, because most nodes have none of these.
        for (key, value) in node.as_object().unwrap_or_default() {
            if let Some((_, slot)) = KEYS.iter().zip(&mut blocks).find(|(name, _)| *name == key) {
                *slot = Some(value);
            }
        }
        for (position, (key, block)) in KEYS.into_iter().zip(blocks).enumerate() {
            let Some(id) = block.and_then(|block| block.get("ref")).and_then(Json::as_str) else { continue };
            let known = match position.checked_sub(1).and_then(|other| self.others.get(other)) {
                None => self.identity.contains_key(id),
                Some(ids) => ids.contains(id),
            };
            if !known {
                let message = format!("names no profile of `{key}_profiles`");
                walk.error(&path.key(key).key("ref"), code::UNKNOWN_REFERENCE, message);
            }
        }
    }

    /// Reports a required trust level above the highest autonomy of the identity.
    fn trust(
        &self,
        walk: &mut Walk,
        workflow: &Scope<'_>,
        task: &Scope<'_>,
        reported: &mut HashSet<(String, usize)>,
    ) {
        let Some(required) = declared(task).or_else(|| declared(workflow)) else { return };
        let Some(most) = self.autonomy(workflow.node, task.node) else { return };
        if required.level <= most {
            return;
        }
        let path = required.contract.key("required_trust_level");
        // One text for each pair of place and limit, so the limit stands for the text.
        if !reported.insert((path.to_string(), most)) {
            return;
        }
        let name = |level: usize| TRUST_LEVELS.get(level).copied().unwrap_or_default();
        let message = format!(
            "requires `{}`, but the identity's `max_autonomy` is `{}`",
            name(required.level),
            name(most)
        );
        walk.error(&path, code::TRUST_UNSATISFIABLE, message);
    }

    /// The effective `max_autonomy`: of the task, else of the workflow, else of the profile that either refers to.
    fn autonomy(&self, workflow: &Json, task: &Json) -> Option<usize> {
        let constraint = |node: &Json| level(node.get("trust")?.get("constraints")?.get("max_autonomy"));
        let identities = || [task, workflow].into_iter().filter_map(|node| node.get("identity"));
        identities().find_map(constraint).or_else(|| {
            let id = identities().find_map(|identity| identity.get("ref").and_then(Json::as_str))?;
            constraint(self.identity.get(id)?)
        })
    }
}

fn declared<'a>(scope: &'a Scope<'_>) -> Option<Declared<'a>> {
    let level = level(scope.node.get("contract")?.get("required_trust_level"))?;
    Some(Declared { level, contract: scope.path.key("contract") })
}

fn level(value: Option<&Json>) -> Option<usize> {
    let word = value?.as_str()?;
    TRUST_LEVELS.iter().position(|level| *level == word)
}

fn items<'a>(node: &'a Json, key: &str) -> &'a [Json] {
    node.get(key).and_then(Json::as_array).unwrap_or_default()
}
