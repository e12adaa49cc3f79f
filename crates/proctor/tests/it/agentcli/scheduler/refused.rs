//! Failures of the scheduler, and features that it lacks.

use proctor_core::json::Json;

use super::super::place::at;
use super::{TRACED, actions, calls, place, switch, two_tasks};

#[test]
fn a_trace_on_stderr_with_an_empty_stdout_names_what_was_written_before() {
    let place = place(&[("STAND_IN_FAULT", "crash:jobs add:2")]);
    place.write("m.json", &two_tasks("0.2", ""));
    let refused = place.refused(&["apply", "m.json"], "scheduler_error");
    let text = at(&refused, "/error").as_str().unwrap();
    assert!(text.contains("job `Report` was not written"), "{text}");
    assert!(text.contains("ValidationError: told to fail"), "{text}");
    assert!(text.ends_with("; written before: created `Collect`"), "{text}");
    assert!(!text.contains("Abcdefgh"), "{text}");
    // The same manifest can be applied again.
    switch(&place, &[]);
    assert_eq!(actions(&place.good(&["apply", "m.json"])), ["updated Collect", "created Report"]);
    // Through RPC the scheduler's words are in the details.
    switch(&place, &[("STAND_IN_FAULT", "crash:jobs update")]);
    let mut server = place.serve();
    let params = format!(r#"{{"manifest":{}}}"#, two_tasks("0.2", ""));
    let error = server.refused("agentcli.apply", &params, -32603, "scheduler_error");
    assert_eq!(at(&error, "/data/error_type").as_str(), Some("internal_error"));
    let details = at(&error, "/data/details").as_str().unwrap();
    assert!(details.contains("job `Collect` was not written"), "{details}");
    assert!(details.contains("nothing was written before"), "{details}");
    assert!(!error.to_string().contains(TRACED), "{error}");
    server.end();
}

#[test]
fn answers_that_confirm_nothing_are_failures() {
    let place = place(&[]);
    place.write("m.json", &two_tasks("0.2", ""));
    for (fault, code) in [
        ("silent:jobs add", "scheduler_error"),
        ("unconfirmed:jobs add", "scheduler_error"),
        ("other-id:jobs add", "scheduler_error"),
        ("garbage:jobs add", "parse_error"),
    ] {
        switch(&place, &[("STAND_IN_FAULT", fault)]);
        let _ = std::fs::remove_file(place.path("scheduler.db"));
        let refused = place.refused(&["apply", "m.json"], code);
        assert!(refused.to_string().contains("it is not known whether"), "{fault}: {refused}");
    }
    place.refused(&["apply", "m.json", "--scheduler-bin", "/does/not/exist"], "scheduler_error");
    place.refused(&["apply", "m.json", "--scheduler-bin", "-e"], "invalid_argument");
}

#[test]
fn features_that_the_scheduler_lacks_are_refused_before_anything_is_written() {
    let place = place(&[("STAND_IN_FEATURES", r#"{"trust_evaluation":"false"}"#)]);
    let task = |more: &str| two_tasks("0.2", "").replace(r#","schedule""#, &format!(r#",{more},"schedule""#));
    let mut server = place.serve();
    for (more, feature) in [
        (r#""output":{"format":"json"}"#, "structured_output_format"),
        (r#""approval":{"required":true}"#, "root_approval_gate"),
        (r#""approval":{"policy":"manual","approver_scope":"ops"}"#, "root_approval_gate"),
        (r#""contract":{"required_trust_level":"supervised"}"#, "trust_evaluation"),
    ] {
        let params = format!(r#"{{"manifest":{}}}"#, task(more));
        let error = server.refused("agentcli.apply", &params, -32602, "unsupported_capability");
        assert_eq!(at(&error, "/data/error_type").as_str(), Some("invalid_argument"));
        assert!(at(&error, "/message").as_str().unwrap().contains(feature), "{error}");
        place.write("m.json", &task(more));
        place.refused(&["apply", "m.json"], "unsupported_capability");
    }
    server.end();
    assert!(calls(&place).iter().all(|call| call == "capabilities"), "{:?}", calls(&place));
    // `--check-capabilities` asks, and writes nothing either.
    switch(&place, &[]);
    place.write("m.json", &task(r#""contract":{"required_trust_level":"supervised"}"#));
    let checked = place.good(&["apply", "m.json", "--check-capabilities"]);
    assert_eq!(at(&checked, "/capabilities/source").as_str(), Some("runtime"), "{checked}");
    assert_eq!(at(&checked, "/handoff/field_version").as_str(), Some("2"), "{checked}");
    assert!(calls(&place).iter().all(|call| call == "capabilities" || call == "jobs list"));
}

#[test]
fn identity_and_contract_of_a_0_1_manifest_are_sent_or_warned_about() {
    let workflow = r#""identity":{"principal":"ops@host"},"contract":{"sandbox":"strict"},"#;
    let place = place(&[]);
    place.write("m.json", &two_tasks("0.1", workflow));
    let sent = place.good(&["apply", "m.json"]);
    assert!(at(&sent, "/capabilities").get("warnings").is_none(), "{sent}");
    let fields = "identity_principal,contract_sandbox";
    let stored = place.good(&["inspect", "--fields", fields, "--limit", "1"]);
    assert_eq!(
        at(&stored, "/items/0").to_string(),
        r#"{"identity_principal":"ops@host","contract_sandbox":"strict"}"#
    );
    for switches in [("STAND_IN_HANDOFF", "1"), ("STAND_IN_FAULT", "crash:capabilities")] {
        switch(&place, &[switches]);
        std::fs::remove_file(place.path("scheduler.db")).unwrap();
        let applied = place.good(&["apply", "m.json"]);
        let warnings = at(&applied, "/capabilities/warnings").to_string();
        assert!(warnings.contains("identity_principal, contract_sandbox"), "{warnings}");
        let stored = place.good(&["inspect", "--fields", fields, "--limit", "1"]);
        assert_eq!(at(&stored, "/items/0/contract_sandbox"), &Json::Null, "{stored}");
    }
}
