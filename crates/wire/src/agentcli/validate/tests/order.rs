//! The order of findings over a whole document.

use super::*;

#[test]
fn findings_follow_the_documented_order() {
    errors(
        &[
            ("/identity_profiles/0/provider", "\"other\""),
            ("/identity_profiles/0/trust/level", "\"x\""),
            ("/authorization_proof_profiles/0/verify", r#"{"required":true}"#),
            ("/authorization_proof_profiles/0/issuer", "1"),
            ("/authorization_profiles/0/provider", "\"cedar\""),
            ("/authorization_profiles/0/on_error", "1"),
            ("/evidence_profiles/0/provider", "\"x\""),
            ("/evidence_profiles/0/id", "1"),
            ("/more", "1"),
            ("/workflows/0/more", "1"),
            ("/workflows/0/name", "1"),
            ("/workflows/0/identity/ref", "\"x\""),
            ("/workflows/0/tasks/0/contract", r#"{"required_trust_level":"autonomous"}"#),
            ("/workflows/0/tasks/0/identity", r#"{"trust":{"constraints":{"max_autonomy":"restricted"}}}"#),
            ("/workflows/0/tasks/0/evidence", r#"{"ref":"kept"}"#),
            ("/workflows/0/tasks/0/verify", "1"),
            ("/workflows/0/tasks/0/on_failure", "1"),
            ("/workflows/0/tasks/1/id", "\"a\""),
            ("/workflows/0/tasks/1/enabled", "1"),
            ("/workflows/0/tasks/1/target/session_target", "1"),
        ],
        &[
            "$.identity_profiles[0].trust.level not_in_list",
            "$.authorization_proof_profiles[0].issuer not_a_string",
            "$.authorization_profiles[0].on_error not_in_list",
            "$.evidence_profiles[0].id not_a_string",
            "$.workflows[0].name not_a_string",
            "~[0].verify not_an_object",
            "~[0].on_failure not_an_object",
            "~[1].enabled not_a_boolean",
            "~[1].id duplicate_id",
            "~[1].target.session_target not_in_list",
            "~[1].id duplicate_expanded_id",
            "~[1].trigger.parent self_parent",
            "$.more unknown_key",
            "$.workflows[0].more unknown_key",
            "$.identity_profiles[0].provider unknown_provider",
            "$.authorization_proof_profiles[0].verify.required proof_not_verifiable",
            "$.authorization_profiles[0].provider provider_config_missing",
            "$.evidence_profiles[0].provider unknown_provider",
            "$.workflows[0].identity.ref unknown_reference",
            "~[0].evidence.ref unknown_reference",
            "~[0].contract.required_trust_level trust_unsatisfiable",
        ],
    );
}
