//! Laws of validation over generated documents.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

/// Names of members of all tables, so that generated objects reach the rules.
const NAMES: [&str; 28] = [
    "version",
    "workflows",
    "tasks",
    "id",
    "name",
    "target",
    "session_target",
    "shell",
    "program",
    "args",
    "env",
    "prompt",
    "schedule",
    "cron",
    "trigger",
    "parent",
    "on",
    "condition",
    "on_failure",
    "identity",
    "ref",
    "trust",
    "identity_profiles",
    "provider",
    "auth",
    "presentation",
    "bindings",
    "provider_config",
];

fn any_json() -> impl Strategy<Value = Json> {
    let words = prop::sample::select(vec![
        "0.1",
        "0.2",
        "shell",
        "isolated",
        "a",
        "b",
        "success",
        "env-bearer",
        "",
        "regex:(",
        "none",
    ]);
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        prop::sample::select(vec!["0", "1", "-1", "1.5", "1e999"])
            .prop_map(|number| Json::Number(number.into())),
        words.prop_map(Json::from),
        "\\PC{0,8}".prop_map(Json::from),
    ];
    leaf.prop_recursive(8, 256, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::Array),
            prop::collection::btree_map(
                prop_oneof![4 => prop::sample::select(NAMES.to_vec()).prop_map(str::to_owned), 1 => "\\PC{0,8}"],
                inner,
                0..8
            )
            .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

/// A valid manifest: a chain of tasks with some of the optional blocks.
fn valid(version: &str, tasks: &[(bool, u8)]) -> Json {
    let mut list = Vec::new();
    for (index, (shell, options)) in tasks.iter().enumerate() {
        let mut task = Json::object().with("id", format!("t{index}")).with("name", "T");
        if *shell {
            task.push("target", json(r#"{"session_target":"shell","payload_kind":"shellCommand"}"#));
            task.push("shell", json(r#"{"program":"echo","args":["a"],"env":{"A":"b"},"stdin":""}"#));
        } else {
            task.push("target", json(r#"{"session_target":"isolated","agent_id":"main"}"#));
            task.push("prompt", "look");
        }
        match index.checked_sub(1) {
            None => task.push("schedule", json(r#"{"cron":"0 9 * * *","tz":"UTC"}"#)),
            Some(parent) => {
                let trigger = Json::object().with("parent", format!("t{parent}")).with("on", "success");
                task.push("trigger", trigger.with("condition", "regex:ok|fine"));
            }
        }
        let blocks = [
            ("delivery", r#"{"mode":"announce","to":"@x"}"#),
            ("contract", r#"{"sandbox":"strict","allowed_paths":["/a"],"max_cost_usd":2.5}"#),
            ("budgets", r#"{"max_iterations":3}"#),
            ("verify", r#"{"shell":"test -e x","timeout_seconds":5,"on_failure":"warn"}"#),
            ("on_failure", r#"{"prompt":"triage","delay_s":5}"#),
            ("identity", r#"{"ref":"who"}"#),
            ("evidence", r#"{"ref":"kept"}"#),
            ("output", r#"{"preview_bytes":64,"format":"json"}"#),
        ];
        for (bit, (name, block)) in blocks.iter().enumerate() {
            if options >> bit & 1 == 1 {
                task.push(name, json(block));
            }
        }
        list.push(task);
    }
    let mut manifest = base();
    manifest.set_pointer("/version", Json::from(version));
    manifest.set_pointer("/workflows/0/tasks", Json::Array(list));
    manifest
}

/// Pointers of all objects whose keys are checked.
fn checked_objects(value: &Json, pointer: &str, found: &mut Vec<String>) {
    match value {
        Json::Object(members) => {
            if !["env", "provider_config", "claims", "context", "inputs", "attributes"]
                .iter()
                .any(|name| pointer.ends_with(&format!("/{name}")))
            {
                found.push(pointer.to_owned());
            }
            for (name, member) in members {
                checked_objects(member, &format!("{pointer}/{name}"), found);
            }
        }
        Json::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                checked_objects(item, &format!("{pointer}/{index}"), found);
            }
        }
        _ => {}
    }
}

proptest! {
    #[test]
    fn any_value_gets_an_answer(value in any_json()) {
        let validation = validate(&value);
        prop_assert!(validation.errors.iter().all(|finding| finding.path.starts_with('$')));
        prop_assert_eq!(validate(&value), validation);
    }

    #[test]
    fn valid_manifests_are_valid(
        version in prop::sample::select(vec!["0.1", "0.2"]),
        tasks in prop::collection::vec(any::<(bool, u8)>(), 1..6),
    ) {
        prop_assert_eq!(validate(&valid(version, &tasks)).errors, vec![]);
    }

    #[test]
    fn unknown_key_anywhere_is_one_error_at_its_path(
        tasks in prop::collection::vec(any::<(bool, u8)>(), 1..4),
        choice in any::<prop::sample::Index>(),
    ) {
        let mut manifest = valid("0.2", &tasks);
        let mut objects = Vec::new();
        checked_objects(&manifest, "", &mut objects);
        let pointer = choice.get(&objects).clone();
        manifest.set_pointer(&format!("{pointer}/zzz"), Json::Null);
        let mut path = "$".to_owned();
        for step in pointer.split('/').skip(1) {
            if step.bytes().all(|byte| byte.is_ascii_digit()) {
                path.push_str(&format!("[{step}]"));
            } else {
                path.push_str(&format!(".{step}"));
            }
        }
        prop_assert_eq!(shown(&validate(&manifest).errors), vec![format!("{path}.zzz unknown_key")]);
    }
}

#[test]
fn time_grows_with_the_size_only() {
    let tasks = vec![(true, 0xffu8); 20_000];
    let manifest = valid("0.2", &tasks);
    let start = Instant::now();
    assert!(validate(&manifest).is_ok());
    // A quadratic scan would take minutes.
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}
