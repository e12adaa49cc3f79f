use super::*;
use crate::agentcli::effective::select;

fn parse(text: &str) -> Json {
    Json::parse(text.as_bytes()).expect("JSON")
}

const SHELL: &str = r#"{"version":"0.2","identity_profiles":[{"id":"p","provider":"env-bearer",
    "subject":{"principal":"a","attributes":{"team":"planted"}},"auth":{"provider_config":{"token_env":"planted"}}}],
    "authorization_proof_profiles":[{"id":"j","method":"jwt","public_key":"planted","proof":{"value_from":{"env":"planted"}}}],
    "workflows":[{"id":"w","name":"W","identity":{"ref":"p"},"authorization_proof":{"ref":"j"},"tasks":[{"id":"t","name":"T",
    "target":{"session_target":"shell"},
    "shell":{"program":"deploy","args":["planted"],"cwd":"/src","env":{"B":"planted","A":"1"},"stdin":"planted"},
    "schedule":{"cron":"0 9 * * *"},"runtime":{"timeout_ms":5}}]}]}"#;

fn binding(manifest: &str) -> Json {
    execution_binding(&select(&parse(manifest), None, "t").expect("a task"), None, None)
}

#[test]
fn the_binding_has_the_documented_members() {
    let binding = binding(SHELL);
    let names: Vec<&str> =
        binding.as_object().expect("object").iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "binding_version",
            "manifest_version",
            "manifest_digest",
            "source",
            "enabled",
            "target",
            "command",
            "prompt_hash",
            "runtime",
            "approval",
            "identity",
            "contract",
            "authorization_proof",
            "authorization",
            "evidence",
            "child_credential_policy",
            "verify",
            "output",
            "intent",
            "delete_after_run",
        ]
    );
    assert_eq!(binding["binding_version"].to_string(), "1");
    assert_eq!(binding["runtime"].to_string(), r#"{"timeout_ms":5,"instance_id":null}"#);
    assert_eq!(binding["target"].to_string(), r#"{"session_target":"shell"}"#);
}

#[test]
fn values_that_may_be_secret_enter_as_digests() {
    let binding = binding(SHELL);
    assert!(!binding.to_string().contains("planted"), "{binding}");
    let command = &binding["command"];
    assert_eq!(command["args_hashes"].as_array().map(<[_]>::len), Some(1));
    assert_eq!(command["env_keys"].to_string(), r#"["A","B"]"#);
    assert_eq!(command["cwd"], "/src");
    assert_eq!(
        command["stdin_hash"].as_str(),
        canonical::digest(&"planted".into()).ok().as_deref(),
        "hashes are digests of the canonical text"
    );
    assert!(binding["identity"]["subject"]["attributes_hash"].as_str().is_some());
    assert!(binding["identity"]["auth"]["provider_config_hash"].as_str().is_some());
    assert!(binding["identity"]["auth"]["inputs_hash"].is_null());
    assert!(binding["authorization_proof"]["public_key_hash"].as_str().is_some());
    assert!(binding["authorization_proof"]["ca_certificate_hash"].is_null());
}

#[test]
fn a_flat_identity_leaves_a_skeleton() {
    let binding = binding(
        r#"{"version":"0.1","workflows":[{"id":"w","name":"W","identity":{"principal":"bot"},"tasks":[{"id":"t","name":"T",
            "target":{"session_target":"main"},"prompt":"hello","schedule":{"cron":"0 9 * * *"}}]}]}"#,
    );
    let identity = binding["identity"].to_string();
    assert!(!identity.contains("bot"));
    assert!(
        identity.starts_with(r#"{"ref":null,"scope":null,"provider":null,"subject":{"kind":null,"#),
        "{identity}"
    );
    assert!(binding["command"].is_null());
    assert_eq!(binding["prompt_hash"].as_str(), canonical::digest(&"hello".into()).ok().as_deref());
}

#[test]
fn the_hash_changes_with_everything_a_run_depends_on() {
    let task = select(&parse(SHELL), None, "t").expect("a task");
    let base = effective_task_hash(&execution_binding(&task, None, None));
    assert_eq!(base, effective_task_hash(&execution_binding(&task, Some("/src"), None)));
    assert_ne!(base, effective_task_hash(&execution_binding(&task, Some("/real/src"), None)));
    assert_ne!(base, effective_task_hash(&execution_binding(&task, None, Some("instance"))));
    let mut changed = task.clone();
    changed.timeout_ms = Some(6);
    assert_ne!(base, effective_task_hash(&execution_binding(&changed, None, None)));
    for (from, to) in [("deploy", "destroy"), (r#""A":"1""#, r#""A":"2""#), ("0 9 * * *", "0 8 * * *")] {
        assert_ne!(base, effective_task_hash(&binding(&SHELL.replace(from, to))), "{from}");
    }
}
