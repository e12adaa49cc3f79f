use super::*;

fn parse(text: &str) -> Json {
    Json::parse(text.as_bytes()).expect("JSON")
}

/// A manifest with one task, and these members of the document, the workflow and the task.
fn manifest(top: &str, workflow: &str, task: &str) -> Json {
    parse(&format!(
        r#"{{"version":"0.2",{top}"workflows":[{{"id":"w","name":"W",{workflow}"tasks":[{{{task}"id":"t","name":"T",
            "target":{{"session_target":"main"}},"prompt":"p","schedule":{{"cron":"0 9 * * *"}},
            "on_failure":{{"prompt":"h"}}}}]}}]}}"#
    ))
}

fn effective(top: &str, workflow: &str, task: &str) -> EffectiveTask {
    select(&manifest(top, workflow, task), None, "t").expect("a task")
}

#[test]
fn a_task_without_blocks_has_only_defaults() {
    let task = effective("", "", "");
    assert_eq!(task.manifest_version, Version::V02);
    assert_eq!(task.compiled_id, compiled_id("w", "t"));
    assert_eq!((task.flat_identity, task.identity), (None, None));
    assert_eq!((task.authorization_proof, task.authorization, task.evidence), (None, None, None));
    assert_eq!((task.child_credential_policy, task.verify, task.timeout_ms), (None, None, None));
    assert!(task.enabled);
    assert!(task.task.get("on_failure").is_none());
    assert_eq!(task.contract.as_object().map(<[_]>::len), Some(7));
    assert!(task.contract.as_object().expect("contract").iter().all(|(_, value)| value.is_null()));
}

#[test]
fn the_digest_is_that_of_the_manifest_as_given() {
    let given = manifest("", "", "");
    let task = select(&given, None, "t").expect("a task");
    assert_eq!(task.manifest_digest, canonical::digest(&given).expect("digest"));
    assert_eq!(canonical::text_digest(&task.manifest_text), task.manifest_digest);
}

#[test]
fn the_model_policy_merges_key_by_key() {
    let task = effective(
        "",
        r#""model_policy":{"provider":"p","model":"m"},"#,
        r#""model_policy":{"model":"own"},"#,
    );
    assert_eq!(task.model_policy.to_string(), r#"{"provider":"p","model":"own","thinking":null}"#);
}

#[test]
fn handlers_are_selected_by_their_expanded_id() {
    let handler = select(&manifest("", "", ""), Some("w"), "t.failure").expect("the handler");
    assert_eq!(handler.task["trigger"]["parent"], "t");
}

#[test]
fn selection_names_what_is_missing() {
    let one = manifest("", "", "");
    let said = |workflow, task| select(&one, workflow, task).unwrap_err().to_string();
    assert_eq!(said(None, "x"), "workflow `w` has no task `x`: it has `t`, `t.failure`");
    assert_eq!(said(Some("v"), "t"), "the manifest has no workflow `v`: it has `w`");
    let two = parse(
        r#"{"version":"0.2","workflows":[{"id":"a","name":"A","tasks":[]},{"id":"b","name":"B","tasks":[]}]}"#,
    );
    let several = select(&two, None, "t").unwrap_err();
    assert_eq!(several.to_string(), "the manifest has several workflows: name one of `a`, `b`");
    let tasks: Vec<_> = (0..12).map(|number| parse(&format!(r#"{{"id":"t{number}"}}"#))).collect();
    let many = SelectError::unknown_task("w", "x", tasks.iter()).to_string();
    assert!(many.ends_with("`t8`, `t9`, and 2 more"), "{many}");
    let failure = Failure::from(several);
    assert_eq!(failure.code.rpc_code(), -32602);
}

#[test]
fn identity_merges_task_over_workflow_over_profile() {
    let task = effective(
        r#""identity_profiles":[{"id":"p","provider":"env-bearer","subject":{"kind":"service","principal":"a","attributes":{"x":1}},
            "auth":{"mode":"service","scopes":["r","w"],"provider_config":{"token_env":"T","k":1},"inputs":{"i":"1"},
                "delegation_policy":{"max_depth":3}},
            "trust":{"level":"restricted","constraints":{"max_autonomy":"supervised"}},"presentation":{"cleanup":"always"}}],"#,
        r#""identity":{"ref":"p","scope":"ws","subject":{"principal":"b","issuer":"i"},"auth":{"provider_config":{"k":2,"n":null}}},"#,
        r#""identity":{"subject":{"issuer":null,"attributes":{"y":2}},"auth":{"scopes":[],"provider_config":{"t":3,"k":null},
            "delegation_policy":{"require_grant_per_hop":false}},"trust":{"level":"autonomous"}},"#,
    );
    assert_eq!(
        task.identity.expect("identity").to_string(),
        concat!(
            r#"{"ref":"p","scope":"ws","provider":"env-bearer","#,
            r#""subject":{"kind":"service","principal":"b","display_name":null,"run_as":null,"issuer":"i","#,
            r#""delegation_mode":null,"attributes":{"y":2}},"#,
            r#""auth":{"mode":"service","scopes":[],"audience":null,"resource":null,"cache":null,"refresh":null,"#,
            r#""required":null,"#,
            r#""delegation_policy":{"max_depth":3,"allowed_delegators":null,"require_grant_per_hop":false},"#,
            r#""provider_config":{"token_env":"T","k":2,"n":null,"t":3},"inputs":{"i":"1"}},"#,
            r#""trust":{"level":"autonomous","constraints":{"escalation":null,"max_autonomy":"supervised","#,
            r#""escalation_timeout":null,"require_justification":null}},"#,
            r#""presentation":{"bindings":null,"handoff":null,"cleanup":"always","default_redaction":null}}"#
        )
    );
    assert!(task.declared_identity.get("provider").is_none());
    assert_eq!(task.declared_identity["trust"]["level"], "autonomous");
}

#[test]
fn a_flat_identity_merges_key_by_key() {
    let task = effective(
        "",
        r#""identity":{"principal":"bot","run_as":"ci"},"#,
        r#""identity":{"run_as":null,"attestation":"oidc:x"},"#,
    );
    let flat = task.flat_identity.expect("flat").to_string();
    assert_eq!(flat, r#"{"principal":"bot","run_as":"ci","attestation":"oidc:x"}"#);
    assert_eq!(task.identity, None);
}

#[test]
fn requirements_are_only_tightened() {
    let profiles = r#""authorization_proof_profiles":[{"id":"p","method":"jwt","claims":{"a":1,"b":1},"verify":{"required":true}}],
        "authorization_profiles":[{"id":"z","provider":"opa","provider_config":{"endpoint":"e"},"on_error":"deny",
            "request":{"include":["identity"]}}],
        "evidence_profiles":[{"id":"e","provider":"ssh","methods":["m"],"provider_config":{"k":1},
            "payload":{"bind":["x"],"context":{"a":true},"format":"json"}}],"#;
    let task = effective(
        profiles,
        r#""authorization_proof":{"ref":"p","claims":{"b":2,"c":2}},"authorization":{"ref":"z","on_error":"warn"},
           "evidence":{"ref":"e","payload":{"context":{"b":true}}},"#,
        r#""authorization_proof":{"claims":{"c":3},"verify":{"required":false}},
           "authorization":{"on_error":"warn","provider_config":{"x":1},"decision":{"allow_values":["y"]}},
           "evidence":{"verify":{"required":true}},"#,
    );
    let proof = task.authorization_proof.expect("proof");
    assert_eq!(proof["claims"].to_string(), r#"{"a":1,"b":2,"c":3}"#);
    assert_eq!(proof["verify"].to_string(), r#"{"required":true}"#);
    assert_eq!(proof["method"], "jwt");
    assert_eq!(
        task.authorization.expect("authorization").to_string(),
        concat!(
            r#"{"ref":"z","provider":"opa","provider_config":{"endpoint":"e","x":1},"on_error":"deny","#,
            r#""request":{"include":["identity"]},"decision":{"allow_values":["y"]}}"#
        )
    );
    assert_eq!(
        task.evidence.expect("evidence").to_string(),
        concat!(
            r#"{"ref":"e","provider":"ssh","methods":["m"],"provider_config":{"k":1},"#,
            r#""payload":{"bind":["x"],"context":{"b":true},"format":"json"},"verify":{"required":true}}"#
        )
    );
}

#[test]
fn an_inner_warning_stands_where_no_level_denies() {
    let task = effective(
        r#""authorization_profiles":[{"id":"z","provider":"none"}],"#,
        r#""authorization":{"ref":"z"},"#,
        r#""authorization":{"on_error":"warn"},"#,
    );
    assert_eq!(task.authorization.expect("authorization")["on_error"], "warn");
}

#[test]
fn contract_merges_by_key_and_verify_as_a_whole() {
    let task = effective(
        "",
        r#""contract":{"sandbox":"strict","network":"none"},"verify":{"shell":"a","timeout_seconds":5,"on_failure":"warn"},
           "child_credential_policy":"inherit","#,
        r#""contract":{"network":"restricted"},"verify":{"shell":"b"},"runtime":{"timeout_ms":1e3},"enabled":false,"#,
    );
    assert_eq!(task.contract["sandbox"], "strict");
    assert_eq!(task.contract["network"], "restricted");
    assert_eq!(
        task.verify.expect("verify").to_string(),
        r#"{"shell":"b","timeout_seconds":30,"on_failure":"error"}"#
    );
    assert_eq!(task.child_credential_policy.as_deref(), Some("inherit"));
    assert_eq!(task.timeout_ms, Some(1000));
    assert!(!task.enabled);
}

#[test]
fn approvals_are_normalised() {
    for (declared, expected) in [
        (
            "null",
            r#"{"required":0,"timeout_s":null,"auto":null,"policy":"none","risk_level":null,"approver_scope":null}"#,
        ),
        (
            r#"{"policy":"manual","required":false}"#,
            r#"{"required":1,"timeout_s":3600,"auto":"reject","policy":"manual","risk_level":"medium","approver_scope":null}"#,
        ),
        (
            r#"{"required":true,"auto":"approve","timeout_s":60,"risk_level":"high","approver_scope":"ops"}"#,
            r#"{"required":1,"timeout_s":60,"auto":"approve","policy":"manual","risk_level":"high","approver_scope":"ops"}"#,
        ),
        (
            r#"{"policy":"auto-approve","auto":"reject"}"#,
            r#"{"required":0,"timeout_s":3600,"auto":"approve","policy":"auto-approve","risk_level":"medium","approver_scope":null}"#,
        ),
        (
            r#"{"policy":"auto-reject","required":true}"#,
            r#"{"required":1,"timeout_s":3600,"auto":"reject","policy":"auto-reject","risk_level":"medium","approver_scope":null}"#,
        ),
        (
            r#"{"required":false,"risk_level":"low"}"#,
            r#"{"required":0,"timeout_s":3600,"auto":null,"policy":"none","risk_level":"low","approver_scope":null}"#,
        ),
    ] {
        let task = effective("", "", &format!(r#""approval":{declared},"#));
        assert_eq!(task.approval.to_string(), expected, "{declared}");
    }
}

#[test]
fn integers_count_however_they_are_written() {
    for (literal, value) in [
        ("7", Some(7)),
        ("7.0", Some(7)),
        ("1e3", Some(1000)),
        ("1.5", None),
        ("-1", None),
        ("1e999", Some(u64::MAX)),
    ] {
        assert_eq!(integer(&Json::Number(literal.into())), value, "{literal}");
    }
}

#[test]
fn debug_output_shows_no_content() {
    let task = effective("", "", r#""session":{"preferred_key":"planted"},"#);
    assert!(!format!("{task:?}").contains("planted"));
}
