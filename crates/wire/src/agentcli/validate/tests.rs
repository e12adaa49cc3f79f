mod order;
mod profiles;
mod properties;
mod references;
mod tasks;
mod top;
mod vectors;

use super::*;

/// A manifest with one shell task, one prompt task that it triggers, and a profile of each kind.
const BASE: &str = r#"{
    "version": "0.2",
    "identity_profiles": [{
        "id": "who", "provider": "env-bearer",
        "auth": {"provider_config": {"token_env": "TOKEN"}},
        "trust": {"level": "supervised", "constraints": {"max_autonomy": "supervised"}}
    }],
    "authorization_proof_profiles": [{"id": "proof", "method": "none"}],
    "authorization_profiles": [{"id": "policy", "provider": "none"}],
    "evidence_profiles": [{"id": "kept", "provider": "ssh"}],
    "workflows": [{
        "id": "w", "name": "W", "identity": {"ref": "who"},
        "tasks": [
            {"id": "a", "name": "A", "target": {"session_target": "shell"}, "shell": {"program": "echo"},
             "schedule": {"cron": "0 9 * * *"}},
            {"id": "b", "name": "B", "target": {"session_target": "isolated"}, "prompt": "look",
             "trigger": {"parent": "a", "on": "success"}, "on_failure": {"prompt": "triage"}}
        ]
    }]
}"#;

fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn base() -> Json {
    json(BASE)
}

/// The base with values put at pointers; `-` removes a member.
fn with(changes: &[(&str, &str)]) -> Json {
    let mut manifest = base();
    for (pointer, value) in changes {
        if *value == "-" {
            remove(&mut manifest, pointer);
        } else {
            assert!(manifest.set_pointer(pointer, json(value)), "{pointer}");
        }
    }
    manifest
}

fn remove(manifest: &mut Json, pointer: &str) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let mut object = manifest.pointer(parent).unwrap().clone();
    if let Json::Object(members) = &mut object {
        members.retain(|(key, _)| key != name);
    }
    manifest.set_pointer(parent, object);
}

/// Paths and codes, one line each.
fn shown(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|finding| format!("{} {}", finding.path, finding.code)).collect()
}

/// Checks the errors of the base with changes. Expected ones are relative to `$.`.
#[track_caller]
fn errors(changes: &[(&str, &str)], expected: &[&str]) {
    let validation = validate(&with(changes));
    let expected: Vec<_> =
        expected.iter().map(|line| line.replacen('~', "$.workflows[0].tasks", 1)).collect();
    assert_eq!(shown(&validation.errors), expected, "{changes:?}");
}

/// Checks the warnings of the base with changes, which has no errors.
#[track_caller]
fn warnings(changes: &[(&str, &str)], expected: &[&str]) {
    let validation = validate(&with(changes));
    assert_eq!(shown(&validation.errors), Vec::<String>::new(), "{changes:?}");
    let expected: Vec<_> =
        expected.iter().map(|line| line.replacen('~', "$.workflows[0].tasks", 1)).collect();
    assert_eq!(shown(&validation.warnings), expected, "{changes:?}");
}

#[test]
fn base_is_valid() {
    assert_eq!(validate(&base()), Validation::default());
}
