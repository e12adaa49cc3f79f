use super::*;

#[test]
fn every_topic_has_its_documented_shape() {
    for (topic, members) in [
        ("manifest", &["name", "summary", "notes"][..]),
        ("workflow", &["name", "summary", "notes"]),
        ("task", &["name", "summary", "notes"]),
        ("targets", &["name", "summary", "items"]),
        ("commands", &["name", "summary", "items"]),
        ("rpc", &["name", "summary", "methods", "notifications"]),
    ] {
        let answer = result(Some(topic)).unwrap();
        let description = &answer["description"];
        let names: Vec<_> = description.as_object().unwrap().iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, members, "{topic}");
        assert_eq!(description["name"], topic);
    }
    assert_eq!(result(None).unwrap()["description"]["name"], "commands");
    assert_eq!(result(Some("RPC")).unwrap_err().code, crate::agentcli::error::Code::InvalidArgument);
}

#[test]
fn methods_have_names_of_their_own_and_the_notification_has_its_params() {
    let mut names: Vec<_> = METHODS.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), METHODS.len());
    let rpc = describe(Topic::Rpc);
    assert_eq!(
        rpc["notifications"].as_array().unwrap()[0]["params"].to_string(),
        r#"{"ok":true,"manifest_version":"0.2"}"#
    );
}

#[test]
fn targets_have_nineteen_features() {
    for target in targets() {
        assert_eq!(target["features"].as_object().unwrap().len(), 19);
    }
    assert_eq!(features(Target::OpenclawScheduler)["model_policy"], "model+thinking");
    assert_eq!(features(Target::Standalone)["approvals"], "intent-only");
    assert_eq!(features(Target::Standalone)["audit_export"].as_bool(), Some(false));
}

#[test]
fn features_of_the_standalone_target_are_those_of_its_plans() {
    let manifest = Json::parse(
        br#"{"version":"0.2","workflows":[{"id":"w","name":"W","tasks":[{"id":"a","name":"A","target":{"session_target":"main"},"prompt":"p","schedule":{"cron":"0 9 * * *"}}]}]}"#,
    )
    .unwrap();
    let plan = crate::agentcli::compile::compile(&manifest, Target::Standalone, false).unwrap();
    for (name, value) in features(Target::Standalone).as_object().unwrap() {
        assert_eq!(plan["capabilities"].get(name), Some(value), "{name}");
    }
}
