//! The document itself, workflows, and single values.

use super::*;

#[test]
fn only_objects_are_manifests() {
    for text in ["null", "[]", "\"{}\"", "1", "true"] {
        assert_eq!(shown(&validate(&json(text)).errors), ["$ not_an_object"], "{text}");
    }
    let empty = ["$.version unsupported_version", "$.workflows required"];
    assert_eq!(shown(&validate(&json("{}")).errors), empty);
}

#[test]
fn versions_are_exact() {
    for version in ["\"0.3\"", "0.2", "null", "\"0.2 \"", "[\"0.2\"]"] {
        errors(&[("/version", version)], &["$.version unsupported_version"]);
    }
    warnings(&[("/version", "\"0.1\"")], &[]);
}

#[test]
fn workflows_need_tasks() {
    errors(&[("/workflows", "[]")], &["$.workflows empty_array"]);
    errors(&[("/workflows", "{}")], &["$.workflows not_an_array"]);
    errors(&[("/workflows", "null")], &["$.workflows required"]);
    errors(&[("/workflows/0", "1")], &["$.workflows[0] not_an_object"]);
    errors(&[("/workflows/0", "null")], &["$.workflows[0] required"]);
    errors(&[("/workflows/0/tasks", "[]")], &["$.workflows[0].tasks empty_array"]);
    errors(
        &[("/workflows/0/tasks/0", "[]"), ("/workflows/0/tasks/1/trigger/parent", "\"b2\"")],
        &["~[0] not_an_object", "~[1].trigger.parent unknown_parent"],
    );
    errors(&[("/workflows/0/id", "\"-w\"")], &["$.workflows[0].id invalid_identifier"]);
    errors(&[("/workflows/0/name", "-")], &["$.workflows[0].name required"]);
    errors(
        &[("/workflows/0/child_credential_policy", "\"all\"")],
        &["$.workflows[0].child_credential_policy not_in_list"],
    );
    errors(
        &[("/workflows/0/verify", "{\"shell\":\" \",\"timeout_seconds\":0}")],
        &["$.workflows[0].verify.shell empty", "$.workflows[0].verify.timeout_seconds not_an_integer"],
    );
}

#[test]
fn workflow_ids_are_unique() {
    let mut manifest = base();
    let workflow = manifest.pointer("/workflows/0").unwrap().clone();
    manifest.set_pointer("/workflows", Json::Array(vec![workflow.clone(), workflow]));
    assert_eq!(shown(&validate(&manifest).errors), ["$.workflows[1].id duplicate_id"]);
}

#[test]
fn texts() {
    let name = "/workflows/0/tasks/0/name";
    for (value, code) in [
        ("7", "not_a_string"),
        ("[]", "not_a_string"),
        ("null", "required"),
        ("\"\"", "empty"),
        ("\" \\t\\n\\u00a0\\ufeff\\u2028\"", "empty"),
        ("\"\\u000b\"", "empty"),
        ("\"a\\u0000\"", "control_characters"),
        ("\"a\\u000b\"", "control_characters"),
        ("\"a\\u001b[0m\"", "control_characters"),
        ("\"a\\u007f\"", "control_characters"),
    ] {
        errors(&[(name, value)], &[&format!("~[0].name {code}")]);
    }
    for value in ["\"a\\tb\\r\\n\"", "\"\\u0085\"", "\"ä\"", "\"\\u0080\""] {
        errors(&[(name, value)], &[]);
    }
}

#[test]
fn identifiers_tokens_and_environment_names() {
    for (value, good) in [
        ("\"A.b_c-9\"", true),
        ("\"9\"", true),
        ("\".a\"", false),
        ("\"a b\"", false),
        ("\"ä\"", false),
        ("\"a\\n\"", false),
        ("\"a/b\"", false),
    ] {
        let expected: &[&str] = if good { &[] } else { &["$.workflows[0].id invalid_identifier"] };
        errors(&[("/workflows/0/id", value)], expected);
    }
    for (value, good) in [
        ("\"@a:b_c./-\"", true),
        ("\"a b\"", false),
        ("\"a;b\"", false),
        ("\"a\\n\"", false),
        ("\"$(a)\"", false),
    ] {
        let expected: &[&str] = if good { &[] } else { &["~[0].shell.program invalid_token"] };
        errors(&[("/workflows/0/tasks/0/shell/program", value)], expected);
    }
    errors(
        &[("/workflows/0/tasks/0/shell/env", r#"{"A_1":"x","1A":"x","B":"","C":null,"D":1,"":"x"}"#)],
        &[
            "~[0].shell.env.1A invalid_environment_name",
            "~[0].shell.env.B empty",
            "~[0].shell.env.C required",
            "~[0].shell.env.D not_a_string",
            "~[0].shell.env. invalid_environment_name",
        ],
    );
}

#[test]
fn numbers() {
    let timeout = "/workflows/0/tasks/0/runtime";
    for value in ["1", "1.0", "1e3", "10000000000000000000000", "null"] {
        errors(&[(timeout, &format!("{{\"timeout_ms\":{value}}}"))], &[]);
    }
    for value in ["0", "-1", "1.5", "1e400", "\"1\"", "true", "[]"] {
        errors(
            &[(timeout, &format!("{{\"timeout_ms\":{value}}}"))],
            &["~[0].runtime.timeout_ms not_an_integer"],
        );
    }
    let contract = "/workflows/0/contract";
    for value in ["0", "2.5", "1e-9", "null"] {
        errors(&[(contract, &format!("{{\"max_cost_usd\":{value}}}"))], &[]);
    }
    for value in ["-0.01", "1e400", "\"1\"", "{}"] {
        errors(
            &[(contract, &format!("{{\"max_cost_usd\":{value}}}"))],
            &["$.workflows[0].contract.max_cost_usd not_a_number"],
        );
    }
}

#[test]
fn null_is_absent_everywhere() {
    let changes: Vec<_> = ["model_policy", "contract", "authorization_proof", "verify", "evidence"]
        .iter()
        .map(|name| format!("/workflows/0/{name}"))
        .chain(
            [
                "enabled",
                "intent",
                "output",
                "budgets",
                "delivery",
                "on_failure",
                "trigger",
                "prompt",
                "identity",
            ]
            .iter()
            .map(|name| format!("/workflows/0/tasks/0/{name}")),
        )
        .collect();
    let changes: Vec<_> = changes.iter().map(|pointer| (pointer.as_str(), "null")).collect();
    errors(&changes, &[]);
    let nulls: Vec<_> =
        ["identity_profiles", "authorization_profiles"].iter().map(|name| format!("/{name}")).collect();
    errors(&[(&nulls[1], "null")], &[]);
}

#[test]
fn unknown_keys_are_errors_in_0_2_and_warnings_before() {
    let changes = [
        ("/more", "1"),
        ("/workflows/0/more", "1"),
        ("/workflows/0/contract", "{\"more\":1}"),
        ("/workflows/0/tasks/1/more", "null"),
        ("/workflows/0/tasks/1/target/more", "1"),
        ("/workflows/0/tasks/1/on_failure/more", "1"),
        ("/identity_profiles/0/more", "1"),
        ("/identity_profiles/0/auth/provider_config/more", "1"),
    ];
    errors(
        &changes,
        &[
            "$.more unknown_key",
            "$.identity_profiles[0].more unknown_key",
            "$.workflows[0].more unknown_key",
            "$.workflows[0].contract.more unknown_key",
            "~[1].more unknown_key",
            "~[1].target.more unknown_key",
            "~[1].on_failure.more unknown_key",
        ],
    );
    let before: Vec<_> = [("/version", "\"0.1\"")].into_iter().chain(changes).collect();
    warnings(
        &before,
        &[
            "$.more unknown_key",
            "$.workflows[0].more unknown_key",
            "~[1].more unknown_key",
            "~[1].on_failure.more unknown_key",
        ],
    );
}

#[test]
fn extension_maps_take_any_key() {
    errors(
        &[
            ("/workflows/0/identity/subject", r#"{"attributes":{"x":1}}"#),
            ("/workflows/0/identity/auth", r#"{"provider_config":{"x":1},"inputs":{"y":[]}}"#),
            ("/workflows/0/authorization_proof", r#"{"ref":"proof","claims":{"x":1}}"#),
            ("/workflows/0/authorization", r#"{"ref":"policy","provider_config":{"x":1}}"#),
            ("/workflows/0/evidence", r#"{"ref":"kept","payload":{"context":{"x":1}}}"#),
            ("/workflows/0/tasks/0/shell/env", r#"{"ANY":"x"}"#),
        ],
        &[],
    );
    errors(
        &[("/workflows/0/authorization", r#"{"ref":"policy","provider_config":[]}"#)],
        &["$.workflows[0].authorization.provider_config not_an_object"],
    );
}

#[test]
fn flat_identity_belongs_to_0_1() {
    let flat = r#"{"principal":"a b","run_as":"ci","attestation":"x"}"#;
    errors(
        &[("/workflows/0/identity", flat)],
        &[
            "$.workflows[0].identity.principal invalid_token",
            "$.workflows[0].identity.principal unknown_key",
            "$.workflows[0].identity.run_as unknown_key",
            "$.workflows[0].identity.attestation unknown_key",
        ],
    );
    errors(
        &[("/version", "\"0.1\""), ("/workflows/0/identity", flat)],
        &["$.workflows[0].identity.principal invalid_token"],
    );
    // Content decides about the shape, not the version.
    errors(&[("/version", "\"0.1\""), ("/workflows/0/identity", r#"{"principal":"a b","ref":"who"}"#)], &[]);
    errors(&[("/workflows/0/identity", r#"{"ref":null}"#)], &[]);
}

#[test]
fn findings_are_limited() {
    let mut keys = String::new();
    for number in 0..MAX_FINDINGS + 500 {
        keys.push_str(&format!(",\"k{number}\":1"));
    }
    let manifest = json(&BASE.replacen("\"version\": \"0.2\"", &format!("\"version\":\"0.2\"{keys}"), 1));
    let validation = validate(&manifest);
    assert_eq!(validation.errors.len(), MAX_FINDINGS + 1);
    assert_eq!(validation.errors.last().unwrap().code, "too_many_findings");
    let long = "k".repeat(1 << 20);
    let manifest = with(&[(&format!("/{long}"), "1")]);
    assert!(validate(&manifest).errors[0].path.len() < 1_000);
}

#[test]
fn misspelt_keys_get_a_suggestion_and_thousands_stay_cheap() {
    let found = validate(&with(&[("/workflows/0/tasks/0/shedule", "{}")]));
    assert_eq!(found.errors[0].message, "unknown key; did you mean `schedule`?");
    let mut many = base();
    for count in 0..6_000 {
        many.set_pointer(&format!("/workflows/0/tasks/0/shedule{count}"), json("1"));
    }
    let messages: Vec<String> = validate(&many).errors.into_iter().map(|finding| finding.message).collect();
    assert!(
        messages.iter().filter(|message| message.contains("did you mean")).count() <= walk::MAX_SUGGESTIONS
    );
}
