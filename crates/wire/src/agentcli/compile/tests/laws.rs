use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::agentcli::binding::{effective_task_hash, execution_binding};
use crate::agentcli::convert::convert;
use crate::agentcli::effective::select;
use crate::agentcli::expand::expand;

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        prop::sample::select(vec!["1e999", "1.5", "-0", "1e3"])
            .prop_map(|literal| Json::Number(literal.into())),
        word().prop_map(Json::from),
        ".{0,8}".prop_map(Json::from),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::Array),
            prop::collection::vec((word(), inner), 0..6).prop_map(object_of),
        ]
    })
}

fn object_of(members: Vec<(&'static str, Json)>) -> Json {
    let mut seen = HashSet::new();
    let unique = members.into_iter().filter(|(name, _)| seen.insert(*name));
    Json::Object(unique.map(|(name, value)| (name.to_owned(), value)).collect())
}

/// Words of manifests, so that arbitrary values get beyond the first check.
fn word() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "version",
        "0.1",
        "0.2",
        "workflows",
        "tasks",
        "id",
        "name",
        "a",
        "b",
        "target",
        "session_target",
        "shell",
        "isolated",
        "program",
        "args",
        "env",
        "prompt",
        "schedule",
        "cron",
        "trigger",
        "parent",
        "on",
        "success",
        "on_failure",
        "identity",
        "ref",
        "principal",
        "attestation",
        "subject",
        "attributes",
        "approval",
        "policy",
        "output",
        "preview_bytes",
        "identity_profiles",
        "provider",
        "none",
        "authorization_proof",
        "claims",
        "verify",
        "required",
        "contract",
        "allowed_paths",
        "child_credential_policy",
        "downscope",
    ])
}

/// A valid manifest of version 0.1 with a few tasks, identities and handlers.
fn old_manifest() -> impl Strategy<Value = Json> {
    let identity = prop_oneof![
        Just(String::new()),
        ("[a-c@]{1,3}", prop::option::of("[x-z]{1,2}"), prop::option::of("[p-r:]{1,4}")).prop_map(
            |(principal, run_as, attestation)| {
                let optional = |name: &str, value: Option<String>| {
                    value.map_or_else(String::new, |value| format!(r#","{name}":"{value}""#))
                };
                format!(
                    r#""identity":{{"principal":"{principal}"{}{}}},"#,
                    optional("run_as", run_as),
                    optional("attestation", attestation)
                )
            }
        ),
        Just(r#""identity":{"attestation":"only"},"#.to_owned()),
        Just(r#""identity":null,"#.to_owned()),
    ];
    let task = (identity.clone(), prop::option::of(identity.clone()), any::<bool>());
    (identity, prop::collection::vec(task, 1..5)).prop_map(|(workflow, tasks)| {
        let tasks: Vec<String> = tasks
            .into_iter()
            .enumerate()
            .map(|(index, (identity, handler, shell))| {
                let surface = if shell {
                    r#""target":{"session_target":"shell"},"shell":{"program":"x","args":["a'b"]}"#
                } else {
                    r#""target":{"session_target":"main"},"prompt":"p""#
                };
                let invocation = if index == 0 {
                    r#""schedule":{"cron":"0 9 * * *"}"#.to_owned()
                } else {
                    format!(r#""trigger":{{"parent":"t{}","on":"complete"}}"#, index - 1)
                };
                let handler = handler.map_or_else(String::new, |identity| {
                    format!(r#","on_failure":{{{identity}"prompt":"h"}}"#)
                });
                format!(r#"{{"id":"t{index}","name":"T",{identity}{surface},{invocation}{handler}}}"#)
            })
            .collect();
        parse(&format!(
            r#"{{"version":"0.1","workflows":[{{"id":"w","name":"W",{workflow}"tasks":[{}]}}]}}"#,
            tasks.join(",")
        ))
    })
}

/// Replaces the value at the place that `position` picks.
fn mutate(value: &mut Json, position: &mut usize, replacement: &Json) {
    if *position == 0 {
        *value = replacement.clone();
    }
    *position = position.wrapping_sub(1);
    match value {
        Json::Array(items) => {
            for item in items {
                mutate(item, position, replacement);
            }
        }
        Json::Object(members) => {
            for (_, member) in members {
                mutate(member, position, replacement);
            }
        }
        _ => {}
    }
}

const FULL: &str = r#"{"version":"0.2","identity_profiles":[{"id":"i","provider":"none","subject":{"kind":"agent","attributes":{"a":1}},
    "trust":{"level":"supervised","constraints":{"max_autonomy":"autonomous"}},"presentation":{"cleanup":"always"}}],
    "authorization_proof_profiles":[{"id":"p","method":"none","claims":{"a":"b"},"verify":{"required":false}}],
    "authorization_profiles":[{"id":"z","provider":"none","on_error":"deny"}],
    "evidence_profiles":[{"id":"e","provider":"none","payload":{"bind":["x"]}}],
    "workflows":[{"id":"w","name":"W","identity":{"ref":"i"},"contract":{"sandbox":"strict"},"authorization":{"ref":"z"},
    "tasks":[{"id":"t","name":"T","target":{"session_target":"shell"},"shell":{"program":"x","args":["y"],"env":{"A":"1"}},
    "schedule":{"cron":"0 9 * * *","tz":"UTC"},"authorization_proof":{"ref":"p"},"evidence":{"ref":"e"},"runtime":{"timeout_ms":5},
    "approval":{"policy":"manual"},"output":{"preview_bytes":100},"on_failure":{"prompt":"h","delay_s":1}},
    {"id":"u","name":"U","target":{"session_target":"isolated"},"prompt":"p","trigger":{"parent":"t","on":"success"},
    "model_policy":{"model":"m"},"verify":{"shell":"s"},"child_credential_policy":"inherit"}]}]}"#;

/// Runs everything that must not panic.
fn exercise(manifest: &Json) {
    let _ = expand(manifest);
    for target in Target::ALL {
        let first = compile(manifest, target, true);
        assert_eq!(first, compile(manifest, target, true), "compilation is a pure function");
    }
    let _ = convert(manifest);
    for task in ["t", "a", "t.failure"] {
        if let Ok(task) = select(manifest, None, task) {
            let _ = effective_task_hash(&execution_binding(&task, None, None));
        }
    }
}

#[test]
fn the_full_manifest_compiles() {
    compiled(&parse(FULL), Target::Standalone);
    compiled(&parse(&FULL.replace(r#","env":{"A":"1"}"#, "")), Target::OpenclawScheduler);
}

proptest! {
    #[test]
    fn nothing_panics_on_arbitrary_values(value in any_json()) {
        exercise(&value);
    }

    #[test]
    fn nothing_panics_on_mutated_manifests(position in 0usize..160, replacement in any_json()) {
        let mut manifest = parse(FULL);
        mutate(&mut manifest, &mut position.clone(), &replacement);
        exercise(&manifest);
    }

    #[test]
    fn compiled_ids_are_unique_and_parents_exist(manifest in old_manifest()) {
        let output = compiled(&manifest, Target::OpenclawScheduler);
        let jobs = output["jobs"].as_array().expect("jobs");
        let ids: HashSet<&str> = jobs.iter().filter_map(|job| job["id"].as_str()).collect();
        prop_assert_eq!(ids.len(), jobs.len());
        prop_assert!(jobs.iter().filter_map(|job| job["parent_id"].as_str()).all(|parent| ids.contains(parent)));
    }

    #[test]
    fn converted_manifests_are_valid_and_keep_their_ids(manifest in old_manifest()) {
        let converted = convert(&manifest).expect("converts");
        prop_assert!(validate(&converted).is_ok());
        let ids = |manifest: &Json| -> Vec<Json> {
            let output = compiled(manifest, Target::OpenclawScheduler);
            output["jobs"].as_array().expect("jobs").iter().map(|job| job["id"].clone()).collect()
        };
        prop_assert_eq!(ids(&manifest), ids(&converted));
    }
}
