use super::*;

#[test]
fn identity_providers_are_listed_in_the_documented_order() {
    let names: Vec<_> = identity().iter().map(|provider| provider.name).collect();
    assert_eq!(
        names,
        [
            "stripe-api-key",
            "none",
            "env-bearer",
            "file-bearer",
            "oidc-client-credentials",
            "oidc-token-exchange",
            "azure-managed-identity",
            "aws-sts-assume-role",
            "gcp-workload-identity",
            "spiffe-jwt-svid",
            "entra-agent-id",
        ]
    );
}

/// Name, auth modes, credentials, handoff, refreshable, delegation.
type Row = (&'static str, &'static str, &'static str, &'static str, bool, bool);

#[test]
fn identity_capabilities_are_the_documented_ones() {
    let rows: [Row; 11] = [
        ("stripe-api-key", "service", "api_key", "none downscope", false, true),
        ("none", "none", "", "none", false, false),
        ("env-bearer", "service", "access_token", "none", false, false),
        ("file-bearer", "service", "access_token", "none", false, false),
        ("oidc-client-credentials", "service", "access_token", "none", false, false),
        ("oidc-token-exchange", "exchange", "access_token", "none downscope", false, true),
        ("azure-managed-identity", "service", "access_token", "none", true, false),
        ("aws-sts-assume-role", "service exchange", "access_token", "none", false, true),
        ("gcp-workload-identity", "service", "access_token", "none", true, false),
        ("spiffe-jwt-svid", "service delegated", "jwt_svid", "none", true, true),
        ("entra-agent-id", "service on-behalf-of", "access_token", "none downscope", true, true),
    ];
    for (name, modes, credentials, handoff, refreshable, delegation) in rows {
        let provider = identity_provider(name).unwrap();
        assert_eq!(provider.auth_modes.join(" "), modes, "{name}");
        assert_eq!(provider.credential_types.join(" "), credentials, "{name}");
        assert_eq!(provider.handoff_modes.join(" "), handoff, "{name}");
        assert_eq!((provider.refreshable, provider.delegation), (refreshable, delegation), "{name}");
        let kinds = match name {
            "none" => "none",
            "stripe-api-key" => "env",
            _ => "env file stdin",
        };
        assert_eq!(provider.presentation_kinds.join(" "), kinds, "{name}");
        assert_eq!(provider.trust_levels.contains(&"untrusted"), name != "spiffe-jwt-svid");
        let members: Vec<_> =
            provider.capabilities().as_object().unwrap().iter().map(|(member, _)| member.clone()).collect();
        assert_eq!(
            members,
            [
                "auth_modes",
                "credential_types",
                "presentation_kinds",
                "handoff_modes",
                "refreshable",
                "delegation",
                "trust_levels",
                "approval_mechanisms"
            ]
        );
    }
    assert_eq!(identity_provider("entra-agent-id").unwrap().approval_mechanisms, ["ciba"]);
    assert!(identity_provider("ENV-BEARER").is_none());
}

#[test]
fn other_lists_are_objects_with_names_and_capabilities() {
    let names = |list: Vec<Json>| -> Vec<String> {
        list.iter()
            .map(|item| {
                assert!(item.get("capabilities").and_then(Json::as_object).is_some());
                item["name"].as_str().unwrap().to_owned()
            })
            .collect()
    };
    let authorization = authorization().iter().map(AuthorizationProvider::to_json).collect();
    assert_eq!(names(authorization), ["none", "opa", "cedar", "topaz"]);
    let evidence = evidence().iter().map(EvidenceProvider::to_json).collect();
    assert_eq!(names(evidence), ["none", "ssh", "ledger"]);
    let methods = proof_methods().iter().map(ProofMethod::to_json).collect();
    assert_eq!(names(methods), ["none", "jwt", "detached-signature", "certificate"]);
    assert_eq!(evidence_provider("ssh").unwrap().methods().to_string(), r#"["ssh-signature"]"#);
    assert_eq!(evidence_provider("none").unwrap().methods().to_string(), "[]");
    assert_eq!(proof_method("jwt").unwrap().verifier(), "jwt");
}

#[test]
fn opa_and_none_have_the_documented_capabilities() {
    assert_eq!(
        authorization_provider("opa").unwrap().capabilities().to_string(),
        r#"{"decision_kinds":["permit","deny","require-escalation"],"escalation":true,"batch":false,"dry_run":true}"#
    );
    assert_eq!(
        authorization_provider("none").unwrap().capabilities().to_string(),
        r#"{"decision_kinds":["permit","deny"],"escalation":false,"batch":false,"dry_run":false}"#
    );
}
