use super::*;
use crate::agentcli::compile::{Target, compile};
use crate::agentcli::validate::validate;
use std::path::PathBuf;

/// A validator of a target's JSON Schema, formats and all.
fn validator(target: SchemaTarget) -> jsonschema::Validator {
    let schema = serde_json::from_str(&schema(target, SchemaFormat::Draft202012).to_string()).unwrap();
    jsonschema::draft202012::meta::validate(&schema).unwrap_or_else(|error| panic!("{target:?}: {error}"));
    jsonschema::draft202012::new(&schema).unwrap()
}

fn is_valid(validator: &jsonschema::Validator, value: &Json) -> bool {
    validator.is_valid(&serde_json::from_str(&value.to_string()).unwrap())
}

fn shared_manifests() -> Vec<(String, Json)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/agentcli/manifests");
    let Ok(entries) = std::fs::read_dir(folder) else {
        println!("not run: the shared vectors are not there");
        return Vec::new();
    };
    entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let manifest = Json::parse(&std::fs::read(&path).unwrap()).unwrap();
            (path.display().to_string(), manifest)
        })
        .collect()
}

const MANIFEST_TEXT: &str = r#"{
    "version": "0.2",
    "identity_profiles": [{"id": "who", "provider": "none", "presentation": {"bindings": []}}],
    "authorization_proof_profiles": [{"id": "p", "method": "none", "proof": {"value_from": {"env": "T"}}}],
    "workflows": [{
        "id": "w", "name": "W", "identity": {"ref": "who"}, "verify": null,
        "tasks": [
            {"id": "a", "name": "A", "target": {"session_target": "shell"},
             "shell": {"program": "echo", "args": ["x"], "env": {"A": "b"}, "stdin": ""},
             "schedule": {"cron": "0 9 * * *"}, "trigger": null, "prompt": null},
            {"id": "b", "name": "B", "target": {"session_target": "main"}, "prompt": "p",
             "trigger": {"parent": "a", "on": "success", "condition": "regex:x"},
             "on_failure": {"prompt": "triage", "delay_s": 1}}
        ]
    }]
}"#;

#[test]
fn valid_manifests_fit_the_schema() {
    let validator = validator(SchemaTarget::Manifest);
    let own = Json::parse(MANIFEST_TEXT.as_bytes()).unwrap();
    for (name, manifest) in shared_manifests().into_iter().chain([("own".to_owned(), own)]) {
        assert!(validate(&manifest).is_ok(), "{name}");
        let value = serde_json::from_str(&manifest.to_string()).unwrap();
        let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{name}");
        for (workflow, target) in
            manifest["workflows"].as_array().unwrap().iter().zip([SchemaTarget::Workflow])
        {
            assert!(is_valid(&super::tests::validator(target), workflow), "{name}");
            let task = &workflow["tasks"].as_array().unwrap()[0];
            assert!(is_valid(&super::tests::validator(SchemaTarget::Task), task), "{name}");
        }
    }
}

#[test]
fn broken_manifests_do_not() {
    let validator = validator(SchemaTarget::Manifest);
    let own = Json::parse(MANIFEST_TEXT.as_bytes()).unwrap();
    for (pointer, value) in [
        ("/version", "\"0.3\""),
        ("/workflows", "[]"),
        ("/workflows/0/tasks", "[]"),
        ("/workflows/0/id", "\"a b\""),
        ("/workflows/0/name", "\" \""),
        ("/workflows/0/name", "\"a\\u0000\""),
        ("/workflows/0/more", "1"),
        ("/workflows/0/tasks/0/prompt", "\"x\""),
        ("/workflows/0/tasks/0/shell", "null"),
        ("/workflows/0/tasks/0/command", "null"),
        ("/workflows/0/tasks/0/trigger", r#"{"parent":"b","on":"success"}"#),
        ("/workflows/0/tasks/0/schedule", "null"),
        ("/workflows/0/tasks/0/shell/env", r#"{"1":"x"}"#),
        ("/workflows/0/tasks/0/runtime", r#"{"timeout_ms":0}"#),
        ("/workflows/0/tasks/1/trigger/on", "\"later\""),
        ("/workflows/0/tasks/1/trigger/condition", "\"x\""),
        ("/workflows/0/tasks/1/prompt", "null"),
        ("/workflows/0/tasks/1/on_failure/verify", "null"),
        ("/authorization_proof_profiles/0/proof/value_from", r#"{"literal":"x"}"#),
        ("/authorization_proof_profiles/0/proof/value_from", "{}"),
        ("/authorization_proof_profiles/0/method", "\"other\""),
        ("/identity_profiles/0/presentation/bindings", "[{}]"),
    ] {
        let mut manifest = own.clone();
        assert!(manifest.set_pointer(pointer, Json::parse(value.as_bytes()).unwrap()));
        assert!(!validate(&manifest).is_ok(), "{pointer}");
        assert!(!is_valid(&validator, &manifest), "{pointer} {value}");
    }
}

#[test]
fn manifests_have_forty_one_definitions_and_closed_objects() {
    let schema = schema(SchemaTarget::Manifest, SchemaFormat::Draft202012);
    let definitions = schema["$defs"].as_object().unwrap();
    assert_eq!(definitions.len(), 41);
    for (name, definition) in definitions {
        if definition["type"] == "object" {
            assert_eq!(definition["additionalProperties"].as_bool(), Some(false), "{name}");
        }
    }
    for target in [SchemaTarget::Workflow, SchemaTarget::Task] {
        let fragment = super::schema(target, SchemaFormat::Draft202012);
        assert_eq!(fragment["$defs"], schema["$defs"]);
        assert_eq!(fragment["$ref"].as_str().unwrap(), format!("#/$defs/{}", target.word()));
    }
}

#[test]
fn compiled_forms_fit_their_schemas() {
    let (job, plan) = (validator(SchemaTarget::SchedulerJob), validator(SchemaTarget::StandalonePlan));
    let own =
        Json::parse(MANIFEST_TEXT.replace(r#", "env": {"A": "b"}, "stdin": """#, "").as_bytes()).unwrap();
    for (name, manifest) in shared_manifests().into_iter().chain([("own".to_owned(), own)]) {
        let output = compile(&manifest, Target::Standalone, true).unwrap();
        let value = serde_json::from_str(&output.to_string()).unwrap();
        let errors: Vec<_> = plan.iter_errors(&value).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{name}");
        let output = compile(&manifest, Target::OpenclawScheduler, true).unwrap();
        for compiled in output["jobs"].as_array().unwrap() {
            let value = serde_json::from_str(&compiled.to_string()).unwrap();
            let errors: Vec<_> = job.iter_errors(&value).map(|error| error.to_string()).collect();
            assert_eq!(errors, Vec::<String>::new(), "{name}");
        }
    }
    assert!(!is_valid(&job, &Json::object()));
    assert!(!is_valid(&plan, &Json::object()));
}

#[test]
fn envelopes_fit_their_schemas() {
    let (request, response) = (validator(SchemaTarget::RpcRequest), validator(SchemaTarget::RpcResponse));
    let json = |text: &str| Json::parse(text.as_bytes()).unwrap();
    assert!(is_valid(&request, &json(&crate::agentcli::rpc::ready())));
    assert!(is_valid(&request, &json(r#"{"jsonrpc":"2.0","id":[1],"method":"m","params":null}"#)));
    assert!(!is_valid(&request, &json(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[]}"#)));
    assert!(!is_valid(&request, &json(r#"{"jsonrpc":"1.0","method":"m"}"#)));
    assert!(is_valid(&response, &json(&crate::agentcli::rpc::too_long())));
    assert!(is_valid(&response, &json(r#"{"jsonrpc":"2.0","id":1,"result":{"ok":true}}"#)));
    assert!(!is_valid(&response, &json(r#"{"jsonrpc":"2.0","id":1}"#)));
    let both = r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#;
    assert!(!is_valid(&response, &json(both)));
}

#[test]
fn legacy_descriptors_use_their_vocabulary_only() {
    fn check(node: &Json) {
        for (name, value) in node.as_object().unwrap() {
            match name.as_str() {
                "fields" => value.as_object().unwrap().iter().for_each(|(_, field)| check(field)),
                "items" | "values" => check(value),
                "type" | "nullable" | "enum" | "const" | "required" | "min" | "minItems" | "format"
                | "note" | "removed" => {}
                other => panic!("{other}"),
            }
        }
    }
    for target in SchemaTarget::ALL {
        check(&schema(target, SchemaFormat::Legacy));
    }
    let manifest = schema(SchemaTarget::Manifest, SchemaFormat::Legacy);
    assert_eq!(manifest.pointer("/fields/version/const").unwrap().as_str(), Some("0.2"));
    assert_eq!(
        manifest.pointer("/fields/workflows/items").unwrap(),
        &schema(SchemaTarget::Workflow, SchemaFormat::Legacy)
    );
    assert_eq!(
        manifest.pointer("/fields/workflows/items/fields/tasks/items").unwrap(),
        &schema(SchemaTarget::Task, SchemaFormat::Legacy)
    );
}

#[test]
fn names_and_aliases() {
    for (alias, name) in [
        ("scheduler-job", "schedulerJob"),
        ("standalone-plan", "standalonePlan"),
        ("rpc-request", "rpcRequest"),
        ("rpc-response", "rpcResponse"),
    ] {
        assert_eq!(result(Some(alias), true), result(Some(name), true));
    }
    assert_eq!(result(None, false), result(Some("manifest"), false));
    assert_eq!(result(None, false).unwrap()["schema_format"], "json-schema-draft-2020-12");
    assert_eq!(result(None, true).unwrap()["schema_format"], "agentcli-legacy");
    assert!(result(Some("Manifest"), false).is_err());
}
