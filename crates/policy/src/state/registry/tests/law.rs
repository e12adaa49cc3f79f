//! The rows are the registry, and lookups equal a walk over all agents.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const NAMES: [&str; 6] = ["a", "b", "c", "d", "\"e\"", "f\u{0}"];

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(NAMES.to_vec()).prop_map(str::to_owned)
}

fn registration() -> impl Strategy<Value = Registration> {
    let parent = prop_oneof![2 => Just(String::new()), 3 => name()];
    let numbers = (0u32..4, prop::option::of(0u32..3), any::<bool>());
    (prop::option::of(name()), parent, numbers, name()).prop_map(|(own, parent, numbers, text)| {
        Registration {
            token: own.map(|own| token(&own)),
            name: text.clone(),
            risk: text.clone(),
            parent,
            depth: numbers.0,
            max_child_depth: numbers.1,
            observe: numbers.2,
            reason: text.clone(),
            tool: text,
        }
    })
}

fn any_record() -> impl Strategy<Value = Envelope> {
    let code = prop::sample::select(vec![
        "registered",
        "registered",
        "registered",
        "token",
        "deregistered",
        "deregistered",
        "forgotten",
        "suspended",
        "resumed",
        "resumed",
        "killed",
        "offline",
        "online",
        "told",
        "op_paused",
        "op_resumed",
        "op_terminated",
        "nonsense",
    ]);
    let cause = prop::sample::select(vec!["operator", "budget", "*", "agent:a", "t:1", "t:2", "t:3", ""]);
    let team = prop::sample::select(vec!["", "red", "blue"]);
    (code, name(), cause, team, prop::option::weighted(0.9, registration()), prop::option::of(name()))
        .prop_map(|(code, principal, cause, team, registration, policy)| Envelope {
            name: cause.to_owned(),
            rule: "why".to_owned(),
            team: team.to_owned(),
            policy: policy.map(|policy| token(&policy)),
            registration: registration.map(Box::new),
            ..record(code, &principal)
        })
}

fn loaded(bounds: Bounds, saved: &BTreeMap<String, Vec<u8>>) -> Registry {
    let mut registry = Registry::with_bounds(bounds);
    for (key, value) in saved {
        registry.load(key, &Json::parse(value).unwrap()).unwrap();
    }
    registry.finish_load();
    registry
}

fn rows_of(registry: &Registry) -> BTreeMap<String, Vec<u8>> {
    let mut rows = Vec::new();
    registry.rows(&mut rows);
    rows.into_iter().map(|row| (row.key, row.value.unwrap())).collect()
}

/// Lookups, against the list of all agents.
fn lookups_are_true(registry: &Registry) -> Result<(), TestCaseError> {
    let all: Vec<&AgentInfo> = registry.list().collect();
    prop_assert!(all.is_sorted_by_key(|agent| &agent.principal));
    for name in NAMES {
        let children: Vec<&AgentInfo> = all.iter().copied().filter(|agent| agent.parent() == name).collect();
        prop_assert_eq!(registry.children(name).collect::<Vec<_>>(), children.clone());
        let own_token =
            |agent: &&&AgentInfo| agent.registration.as_ref().and_then(|own| own.token) == Some(token(name));
        let holders: Vec<&&AgentInfo> = all.iter().filter(own_token).collect();
        prop_assert!(holders.len() < 2);
        prop_assert_eq!(registry.by_token(&token(name)), holders.first().map(|holder| **holder));
        if let Some(status) = registry.status(name, "red", "") {
            let live = children.iter().filter(|agent| agent.is_registered()).count();
            prop_assert_eq!(status.children, if registry.get(name).is_some() { live as u64 } else { 0 });
        }
    }
    for team in ["red", "blue"] {
        let members = all.iter().filter(|agent| agent.team == team && agent.is_registered()).count();
        prop_assert_eq!(registry.team_agents(team), members as u64);
    }
    prop_assert!(all.iter().all(|agent| agent.registration.is_some() || agent.is_marked()));
    prop_assert!(
        all.iter()
            .all(|agent| !agent.is_deregistered || agent.registration.as_ref().unwrap().token.is_none())
    );
    Ok(())
}

fn law(bounds: Bounds, records: &[Envelope]) -> Result<(), TestCaseError> {
    let mut registry = Registry::with_bounds(bounds);
    let mut saved: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for (seq, record) in records.iter().enumerate() {
        let mut again = loaded(bounds, &saved);
        let (mut rows, mut rows_again) = (Vec::new(), Vec::new());
        registry.apply(seq as u64, record, &mut rows);
        again.apply(seq as u64, record, &mut rows_again);
        prop_assert_eq!(&rows, &rows_again);
        for row in rows {
            let before = saved.get(&row.key).cloned();
            prop_assert_ne!(&before, &row.value, "a row that did not change");
            match row.value {
                Some(value) => saved.insert(row.key, value),
                None => saved.remove(&row.key),
            };
        }
        prop_assert_eq!(&rows_of(&registry), &saved);
        prop_assert_eq!(registry.list().collect::<Vec<_>>(), again.list().collect::<Vec<_>>());
        lookups_are_true(&registry)?;
        lookups_are_true(&again)?;
        for name in NAMES {
            let status = registry.status(name, "red", "t:1");
            prop_assert_eq!(status, again.status(name, "red", "t:1"));
        }
        let with_registration = registry.list().filter(|agent| agent.registration.is_some()).count();
        prop_assert!(with_registration <= bounds.agents);
        let spans = registry.operations().filter(|(name, _)| name.starts_with("t:")).count();
        prop_assert!(spans <= bounds.operations);
    }
    Ok(())
}

proptest! {
    #[test]
    fn rows_are_the_registry(records in prop::collection::vec(any_record(), 1..50)) {
        law(BOUNDS, &records)?;
    }

    #[test]
    fn rows_are_the_registry_when_it_is_full(records in prop::collection::vec(any_record(), 1..50)) {
        law(FEW, &records)?;
    }

    /// A suspension is ended by resuming or forgetting, and by nothing else.
    #[test]
    fn marks_survive(before in prop::collection::vec(any_record(), 0..20), after in prop::collection::vec(any_record(), 0..20)) {
        let mut records = before;
        records.push(order("killed", "a", "operator"));
        let ends = |record: &&Envelope| record.principal == "a" && matches!(record.code.as_str(), "resumed" | "forgotten");
        records.extend(after.iter().filter(|record| !ends(record)).cloned());
        let registry = super::after(&records);
        prop_assert_eq!(rule(&registry, "a"), Some("agent.killed".to_owned()));
    }
}
