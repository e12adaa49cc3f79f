use super::*;

fn parse(text: &str) -> Json {
    Json::parse(text.as_bytes()).expect("JSON")
}

/// A manifest of version 0.1 with these members of the workflow, the first task, and its handler.
fn manifest(workflow: &str, task: &str, handler: &str) -> Json {
    parse(&format!(
        r#"{{"version":"0.1","workflows":[{{"id":"w","name":"W",{workflow}"tasks":[{{"id":"t","name":"T",{task}
            "target":{{"session_target":"main"}},"prompt":"p","schedule":{{"cron":"0 9 * * *"}},
            "on_failure":{{{handler}"prompt":"h"}}}}]}}]}}"#
    ))
}

fn converted(workflow: &str, task: &str, handler: &str) -> Json {
    convert(&manifest(workflow, task, handler)).expect("converts")
}

fn ids(manifest: &Json, name: &str) -> Vec<String> {
    items(manifest, name).iter().filter_map(|profile| text(profile, "id").map(str::to_owned)).collect()
}

#[test]
fn pairs_become_profiles_and_references() {
    let result = converted(
        r#""identity":{"principal":"bot@x.org","run_as":"ci"},"#,
        r#""identity":{"run_as":"root"},"#,
        r#""identity":{"attestation":"oidc:a"},"#,
    );
    let pair = r#"{"principal":"bot@x.org","run_as":"root"}"#;
    let second = format!("converted-bot-x-org-{}", digits(pair));
    assert_eq!(ids(&result, "identity_profiles"), ["converted-bot-x-org", &second]);
    assert_eq!(
        items(&result, "identity_profiles")[0].to_string(),
        concat!(
            r#"{"id":"converted-bot-x-org","provider":"none","subject":{"kind":"unknown","principal":"bot@x.org","#,
            r#""display_name":null,"run_as":"ci","delegation_mode":"none"},"trust":{"level":"supervised"},"#,
            r#""presentation":{"handoff":"none","cleanup":"always"}}"#
        )
    );
    let task = result.pointer("/workflows/0/tasks/0").expect("task");
    assert_eq!(task["identity"]["ref"].as_str(), Some(second.as_str()));
    // A handler inherits from the workflow, not from its parent.
    assert_eq!(task["on_failure"]["identity"]["ref"], "converted-bot-x-org");
    assert!(
        text(&task["on_failure"]["authorization_proof"], "ref")
            .is_some_and(|id| id.starts_with("legacy-oidc-a-"))
    );
    let names: Vec<&str> =
        result.as_object().expect("object").iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["version", "identity_profiles", "authorization_proof_profiles", "workflows"]);
}

#[test]
fn an_attestation_alone_removes_the_identity() {
    let result = converted("", r#""identity":{"attestation":"a b"},"#, "");
    let task = result.pointer("/workflows/0/tasks/0").expect("task");
    assert!(task.get("identity").is_none());
    let id = format!("legacy-a-b-{}", digits("a b"));
    assert_eq!(task["authorization_proof"]["ref"].as_str(), Some(id.as_str()));
    assert!(result.get("identity_profiles").is_none());
}

#[test]
fn a_declared_proof_is_kept() {
    let mut given =
        manifest("", r#""identity":{"attestation":"a"},"authorization_proof":{"ref":"mine"},"#, "");
    given.push("authorization_proof_profiles", vec![parse(r#"{"id":"mine","method":"none"}"#)]);
    let result = convert(&given).expect("converts");
    assert_eq!(result.pointer("/workflows/0/tasks/0/authorization_proof/ref"), Some(&"mine".into()));
    assert_eq!(ids(&result, "authorization_proof_profiles"), ["mine"]);
}

#[test]
fn equal_attestations_and_pairs_share_one_profile() {
    let identity = r#""identity":{"principal":"a","attestation":"x"},"#;
    let result = converted(identity, identity, identity);
    assert_eq!(ids(&result, "identity_profiles"), ["converted-a"]);
    assert_eq!(ids(&result, "authorization_proof_profiles").len(), 1);
}

#[test]
fn declared_profiles_are_kept_and_their_ids_avoided() {
    let mut given = manifest(r#""identity":{"principal":"a"},"#, "", "");
    given.push("identity_profiles", vec![parse(r#"{"id":"converted-a","provider":"none"}"#)]);
    given.push("evidence_profiles", Vec::new());
    let result = convert(&given).expect("converts");
    let fresh = format!("converted-a-{}", digits(r#"{"principal":"a","run_as":null}"#));
    assert_eq!(ids(&result, "identity_profiles"), ["converted-a", &fresh]);
    assert_eq!(result.pointer("/workflows/0/identity/ref"), Some(&fresh.into()));
    assert!(result.get("evidence_profiles").is_none());
}

#[test]
fn slugs_are_short_and_readable() {
    for (text, expected) in [
        ("oidc:deploy-pipeline", "oidc-deploy-pipeline"),
        ("--A__b..", "A-b"),
        ("@@", ""),
        ("abcdefghijklmnopqrstuvwxyz0123456789", "abcdefghijklmnopqrstuvwxyz012345"),
    ] {
        assert_eq!(slug(text), expected, "{text}");
    }
}

#[test]
fn only_valid_manifests_of_the_old_version_convert() {
    let failure = convert(&parse(r#"{"version":"0.2","workflows":[]}"#)).expect_err("a newer version");
    assert_eq!((failure.code.word(), failure.code.rpc_code()), ("invalid_argument", -32602));
    for broken in ["null", "[]", "7", r#"{"version":"0.1"}"#] {
        let failure = convert(&parse(broken)).expect_err(broken);
        assert_eq!(failure.code.rpc_code(), -32602, "{broken}");
    }
    // Version 0.1 warns of members that version 0.2 refuses: the conversion says which.
    let failure = convert(&manifest("", r#""colour":"red","#, "")).expect_err("an unknown member");
    let validation = failure.validation.expect("findings");
    assert_eq!(validation.errors[0].path, "$.workflows[0].tasks[0].colour");
}
