use super::*;

#[test]
fn commands_become_quoted_shell_lines() {
    let job = first_job(&manifest("", "", &shell(r#""cwd":"/a b","args":["it's","$(x)"],"#)));
    assert_eq!(job["payload_message"].as_str(), Some(r#"cd '/a b' && 'x' 'it'"'"'s' '$(x)'"#));
}

#[test]
fn output_limits_follow_the_preview() {
    for (output, [store, excerpt, summary, offload]) in [
        ("{}", [65_536u64, 2000, 5000, 65_536]),
        (r#"{"preview_bytes":8000}"#, [65_536, 8000, 8000, 65_536]),
        (r#"{"preview_bytes":20000,"retrieve":"inline"}"#, [80_000, 20_000, 20_000, 160_000]),
        (r#"{"preview_bytes":1e5}"#, [100_000, 100_000, 100_000, 800_000]),
        (r#"{"offload":"always"}"#, [65_536, 2000, 5000, 128]),
        (r#"{"offload":"never"}"#, [65_536, 2000, 5000, 1_048_576]),
        (r#"{"preview_bytes":1e300,"retrieve":"inline"}"#, [u64::MAX; 4]),
    ] {
        let job = first_job(&manifest("", "", &prompt(&format!(r#""output":{output},"#))));
        assert_eq!(job["output_store_limit_bytes"].as_u64(), Some(store), "{output}");
        assert_eq!(job["output_excerpt_limit_bytes"].as_u64(), Some(excerpt), "{output}");
        assert_eq!(job["output_summary_limit_bytes"].as_u64(), Some(summary), "{output}");
        assert_eq!(job["output_offload_threshold_bytes"].as_u64(), Some(offload), "{output}");
    }
}

#[test]
fn rejected_and_disabled_tasks_are_disabled_jobs() {
    for (members, enabled) in [
        ("", 1),
        (r#""enabled":false,"#, 0),
        (r#""approval":{"policy":"auto-reject"},"#, 0),
        (r#""approval":{"policy":"auto-approve"},"#, 1),
    ] {
        assert_eq!(
            first_job(&manifest("", "", &prompt(members)))["enabled"].as_u64(),
            Some(enabled),
            "{members}"
        );
    }
    let rejected = first_task(&manifest("", "", &prompt(r#""approval":{"policy":"auto-reject"},"#)));
    assert_eq!(rejected["enabled"].as_bool(), Some(true), "the portable plan keeps the declaration");
}

#[test]
fn approval_columns_have_defaults_but_risk_and_scope_are_raw() {
    let job = first_job(&manifest("", "", &prompt(r#""approval":{"policy":"manual"},"#)));
    assert_eq!(job["approval_required"].as_u64(), Some(1));
    assert_eq!(job["approval_timeout_s"].as_u64(), Some(3600));
    assert_eq!(job["approval_auto"], "reject");
    assert!(job["approval_risk_level"].is_null());
    assert!(job["approval_approver_scope"].is_null());
}

#[test]
fn only_root_turns_without_delivery_say_why() {
    assert!(first_job(&manifest("", "", &prompt("")))["delivery_opt_out_reason"].as_str().is_some());
    let delivered = prompt(r#""delivery":{"mode":"announce","to":"@x"},"#);
    assert!(first_job(&manifest("", "", &delivered))["delivery_opt_out_reason"].is_null());
    assert!(first_job(&manifest("", "", &shell("")))["delivery_opt_out_reason"].is_null());
}

#[test]
fn identities_are_merged_with_their_profile() {
    let job = first_job(&manifest(
        r#""identity_profiles":[{"id":"i","provider":"none","subject":{"kind":"agent","principal":"profile","delegation_mode":"none",
            "attributes":{"a":1}},"trust":{"level":"restricted"},"presentation":{"cleanup":"never"}}],"#,
        r#""identity":{"ref":"i"},"#,
        &prompt(r#""identity":{"subject":{"principal":"task"},"trust":{"level":"supervised"}},"#),
    ));
    for (column, value) in [
        ("identity_ref", "i"),
        ("identity_subject_kind", "agent"),
        ("identity_subject_principal", "task"),
        ("identity_trust_level", "supervised"),
        ("identity_delegation_mode", "none"),
    ] {
        assert_eq!(job[column], value, "{column}");
    }
    assert_eq!(job["identity"]["provider"], "none");
    assert!(job["identity"]["subject"]["attributes"].is_null());
    assert_eq!(job["identity"]["presentation"]["cleanup"], "never");
}

#[test]
fn an_identity_without_reference_is_not_a_flat_one() {
    let job = first_job(&manifest("", "", &prompt(r#""identity":{"trust":{"level":"restricted"}},"#)));
    assert!(job["identity_ref"].is_null());
    assert_eq!(job["identity_trust_level"], "restricted");
    assert!(job["identity"]["provider"].is_null());
    assert!(job["identity"]["presentation"].is_null());
}

#[test]
fn jobs_have_exactly_the_columns_of_the_newest_handoff() {
    let job = first_job(&manifest("", "", &prompt("")));
    let mut names: Vec<&str> = job
        .as_object()
        .expect("a job")
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| *name != "source")
        .collect();
    let mut fields = handoff::fields(3);
    names.sort_unstable();
    fields.sort_unstable();
    assert_eq!(names, fields);
    assert_eq!([1, 2, 3].map(|version| handoff::fields(version).len()), [41, 67, 70]);
}

#[test]
fn authorization_and_evidence_lose_their_configuration() {
    let job = first_job(&manifest(
        r#""authorization_profiles":[{"id":"z","provider":"opa","provider_config":{"endpoint":"https://planted.example/v1"}}],
           "evidence_profiles":[{"id":"e","provider":"none","provider_config":{"k":"planted"}}],"#,
        r#""authorization":{"ref":"z","provider_config":{"k":"planted"}},"evidence":{"ref":"e"},"#,
        &prompt(""),
    ));
    assert!(!job.to_string().contains("planted"));
    assert_eq!((&job["authorization_ref"], &job["evidence_ref"]), (&"z".into(), &"e".into()));
    assert_eq!(job["authorization"]["provider"], "opa");
}

#[test]
fn verification_has_columns_of_its_own() {
    let job = first_job(&manifest("", r#""verify":{"shell":"true"},"#, &prompt("")));
    assert_eq!(job["verify_shell"], "true");
    assert_eq!(job["verify_timeout_s"].as_u64(), Some(30));
    assert_eq!(job["verify_on_failure"], "error");
}
