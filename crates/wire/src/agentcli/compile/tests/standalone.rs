use super::*;

#[test]
fn context_limits_stand_in_for_each_other() {
    for (members, budget, limit) in [
        ("", "5", "5"),
        (r#""context":{"limit":3},"#, "3", "3"),
        (r#""budgets":{"max_context_items":7},"#, "7", "7"),
        (r#""context":{"limit":3},"budgets":{"max_context_items":7},"#, "7", "3"),
    ] {
        let task = first_task(&manifest("", "", &prompt(members)));
        assert_eq!(task["budgets"]["max_context_items"].to_string(), budget, "{members}");
        assert_eq!(task["context"]["limit"].to_string(), limit, "{members}");
    }
}

#[test]
fn payload_kinds_follow_the_session_target() {
    for (target, kind) in [
        (r#"{"session_target":"main"}"#, "systemEvent"),
        (r#"{"session_target":"isolated"}"#, "agentTurn"),
        (r#"{"session_target":"isolated","payload_kind":"systemEvent"}"#, "systemEvent"),
    ] {
        let task = prompt("").replace(r#"{"session_target":"isolated"}"#, target);
        assert_eq!(first_task(&manifest("", "", &task))["execution"]["payload_kind"], kind, "{target}");
    }
}

#[test]
fn environment_and_input_are_printed_as_digests() {
    let task = first_task(&manifest(
        "",
        "",
        &shell(r#""env":{"B":"planted","A":"planted"},"stdin":"planted","cwd":"/x","args":["a"],"#),
    ));
    let payload = &task["execution"]["payload"];
    assert!(!payload.to_string().contains("planted"));
    assert_eq!(payload["env_keys"].to_string(), r#"["A","B"]"#);
    assert!(payload["env"].is_null() && payload["stdin"].is_null());
    assert!(payload["env_hash"].as_str().is_some_and(|hash| hash.starts_with("sha256:")));
    assert!(payload["stdin_hash"].as_str().is_some_and(|hash| hash.starts_with("sha256:")));
    assert_eq!(payload["cwd"], "/x");
}

#[test]
fn model_policies_merge_by_key() {
    let task = first_task(&manifest(
        "",
        r#""model_policy":{"provider":"p","thinking":"high"},"#,
        &prompt(r#""model_policy":{"model":"m"},"#),
    ));
    assert_eq!(
        task["execution"]["model_policy"].to_string(),
        r#"{"provider":"p","model":"m","thinking":"high","scheduler_model":"p/m"}"#
    );
    let alone = first_task(&manifest("", r#""model_policy":{"provider":"p"},"#, &prompt("")));
    assert!(alone["execution"]["model_policy"]["scheduler_model"].is_null());
}

const PROFILES: &str = r#""identity_profiles":[{"id":"i","provider":"env-bearer","provider_config":{"k":"planted"},
        "subject":{"attributes":{"k":"planted"},"kind":"service"},
        "auth":{"inputs":{"access_token":"planted"},"mode":"service","provider_config":{"token_env":"T"}}},
        {"id":"bare","provider":"none"}],
    "authorization_proof_profiles":[{"id":"file","method":"jwt","public_key":"k","proof":{"value_from":{"file":"/f"}}},
        {"id":"command","method":"jwt","public_key":"k","proof":{"value_from":{"command":"planted"}}}],
    "authorization_profiles":[{"id":"z","provider":"opa","provider_config":{"endpoint":"https://planted.example"}}],
    "evidence_profiles":[{"id":"e","provider":"none","provider_config":{"k":"planted"}}],"#;

#[test]
fn profiles_are_printed_without_configuration() {
    let plan =
        Plan { manifest: &parse(&format!("{{{PROFILES}\"version\":\"0.2\"}}")), workflows: Vec::new() };
    let output = crate::agentcli::compile::standalone::project(&plan, false).expect("projects");
    assert!(!output.to_string().contains("planted"), "{output}");
    assert_eq!(
        output["identity_profiles"].as_array().expect("profiles")[0].to_string(),
        format!(
            concat!(
                r#"{{"id":"i","provider":"env-bearer","provider_config":null,"#,
                r#""subject":{{"attributes":null,"kind":"service","attributes_hash":"{}"}},"#,
                r#""auth":{{"inputs":null,"mode":"service","provider_config":null}}}}"#
            ),
            crate::agentcli::canonical::digest(&parse(r#"{"k":"planted"}"#)).expect("digest")
        )
    );
    assert_eq!(
        output["identity_profiles"].as_array().expect("profiles")[1].to_string(),
        r#"{"id":"bare","provider":"none","subject":null,"auth":null,"provider_config":null}"#
    );
    let proofs = output["authorization_proof_profiles"].as_array().expect("profiles");
    assert_eq!(proofs[0]["proof"].to_string(), r#"{"value_from":{"file":"/f"}}"#);
    assert_eq!(proofs[1]["proof"].to_string(), r#"{"value_from":null}"#);
    let columns = crate::agentcli::compile::scheduler::project(&plan, false).expect("projects");
    let proofs = columns["authorization_proof_profiles"].as_array().expect("profiles");
    assert_eq!(proofs[0]["proof"].to_string(), r#"{"value_from":{"env":null,"file":"/f"}}"#);
    assert_eq!(proofs[1]["proof"].to_string(), r#"{"value_from":{"env":null,"file":null}}"#);
    assert!(!columns.to_string().contains("planted"));
}

#[test]
fn identities_print_the_merge_of_workflow_and_task_only() {
    let task = first_task(&manifest(
        r#""identity_profiles":[{"id":"i","provider":"none","subject":{"kind":"agent","principal":"profile"}}],"#,
        r#""identity":{"ref":"i","scope":"s"},"#,
        &prompt(r#""identity":{"subject":{"display_name":"D","attributes":{"k":"planted"}}},"#),
    ));
    let identity = &task["identity"];
    assert!(identity.get("provider").is_none());
    assert_eq!(identity["scope"], "s");
    assert!(identity["subject"]["principal"].is_null());
    assert_eq!(identity["subject"]["display_name"], "D");
    assert!(identity["subject"]["attributes"].is_null());
    assert!(identity["subject"]["attributes_hash"].as_str().is_some());
}

#[test]
fn authorization_is_printed_as_declared() {
    let task = first_task(&manifest(
        r#""authorization_profiles":[{"id":"z","provider":"none","on_error":"deny"}],"#,
        "",
        &prompt(r#""authorization":{"ref":"z","on_error":"warn","request":{"include":["identity"]}},"#),
    ));
    assert_eq!(
        task["authorization"].to_string(),
        r#"{"ref":"z","provider_config":null,"on_error":"warn","request":{"include":["identity"]},"decision":null}"#
    );
}
