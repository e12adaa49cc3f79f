//! References between workflows, tasks, handlers and profiles.

use super::*;

#[test]
fn references_name_profiles_of_their_kind() {
    for version in ["\"0.1\"", "\"0.2\""] {
        errors(
            &[
                ("/version", version),
                ("/workflows/0/identity/ref", "\"proof\""),
                ("/workflows/0/authorization_proof", r#"{"ref":"who"}"#),
                ("/workflows/0/tasks/0/authorization", r#"{"ref":"x"}"#),
                ("/workflows/0/tasks/0/evidence", r#"{"ref":"x"}"#),
                ("/workflows/0/tasks/1/on_failure/identity", r#"{"ref":"x"}"#),
                ("/workflows/0/tasks/1/on_failure/evidence", r#"{"ref":"kept"}"#),
            ],
            &[
                "$.workflows[0].identity.ref unknown_reference",
                "$.workflows[0].authorization_proof.ref unknown_reference",
                "~[0].authorization.ref unknown_reference",
                "~[0].evidence.ref unknown_reference",
                "~[1].on_failure.identity.ref unknown_reference",
            ],
        );
    }
    errors(
        &[
            ("/workflows/0/authorization_proof", "{}"),
            ("/workflows/0/authorization", "{}"),
            ("/workflows/0/evidence", "{}"),
        ],
        &["$.workflows[0].authorization_proof.ref required", "$.workflows[0].authorization.ref required"],
    );
}

#[test]
fn required_trust_must_be_reachable() {
    let required = |level: &str| format!(r#"{{"required_trust_level":"{level}"}}"#);
    let task = "/workflows/0/tasks/0/contract";
    errors(&[(task, &required("supervised"))], &[]);
    errors(&[(task, &required("autonomous"))], &["~[0].contract.required_trust_level trust_unsatisfiable"]);
    // Reported once where the workflow declares it, although two tasks and a handler inherit it.
    errors(
        &[("/workflows/0/contract", &required("autonomous"))],
        &["$.workflows[0].contract.required_trust_level trust_unsatisfiable"],
    );
    errors(
        &[("/version", "\"0.1\""), (task, &required("autonomous"))],
        &["~[0].contract.required_trust_level trust_unsatisfiable"],
    );
    // A task's own constraint beats the profile's, in both directions.
    let autonomy = |level: &str| format!(r#"{{"trust":{{"constraints":{{"max_autonomy":"{level}"}}}}}}"#);
    let own = "/workflows/0/tasks/0/identity";
    errors(&[(task, &required("autonomous")), (own, &autonomy("autonomous"))], &[]);
    errors(
        &[(task, &required("restricted")), (own, &autonomy("untrusted"))],
        &["~[0].contract.required_trust_level trust_unsatisfiable"],
    );
    errors(
        &[("/workflows/0/tasks/1/on_failure/contract", &required("autonomous"))],
        &["~[1].on_failure.contract.required_trust_level trust_unsatisfiable"],
    );
    errors(&[("/workflows/0/identity", "-"), (task, &required("autonomous"))], &[]);
}
