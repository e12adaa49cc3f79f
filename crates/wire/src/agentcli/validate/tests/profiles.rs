//! Profiles: members, and what providers and methods need.

use super::*;

const IDENTITY: &str = "$.identity_profiles[0]";

/// Checks errors of the base with another identity profile.
#[track_caller]
fn identity(profile: &str, codes: &[&str]) {
    let expected: Vec<_> = codes.iter().map(|code| format!("{IDENTITY} {code}")).collect();
    let expected: Vec<_> = expected.iter().map(String::as_str).collect();
    errors(&[("/identity_profiles/0", profile)], &expected);
}

/// An identity profile `who` of a provider with this configuration.
fn configured(provider: &str, config: &str) -> String {
    format!(r#"{{"id":"who","provider":"{provider}","auth":{{"provider_config":{config}}}}}"#)
}

#[track_caller]
fn config(provider: &str, config: &str, codes: &[&str]) {
    identity(&configured(provider, config), codes);
}

#[track_caller]
fn proof(profile: &str, expected: &[&str]) {
    let expected: Vec<_> =
        expected.iter().map(|line| format!("$.authorization_proof_profiles[0].{line}")).collect();
    let expected: Vec<_> = expected.iter().map(String::as_str).collect();
    errors(&[("/authorization_proof_profiles/0", &format!(r#"{{"id":"proof",{profile}}}"#))], &expected);
}

const MISSING: &str = "provider_config_missing";
const INVALID: &str = "provider_config_invalid";
const UNSUPPORTED: &str = "unsupported_by_provider";

const PEM: &str = r"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";

#[test]
fn arrays_of_objects_with_ids_of_their_own() {
    for array in
        ["identity_profiles", "authorization_proof_profiles", "authorization_profiles", "evidence_profiles"]
    {
        let mut manifest = with(&[(&format!("/{array}"), "{}")]);
        assert_eq!(shown(&validate(&manifest).errors)[0], format!("$.{array} not_an_array"));
        manifest = base();
        let profile = manifest.pointer(&format!("/{array}/0")).unwrap().clone();
        manifest.set_pointer(&format!("/{array}"), Json::Array(vec![profile.clone(), Json::Null, profile]));
        assert_eq!(
            shown(&validate(&manifest).errors),
            [format!("$.{array}[1] required"), format!("$.{array}[2].id duplicate_id"),]
        );
        manifest.set_pointer("/version", Json::from("0.1"));
        assert_eq!(validate(&manifest).errors.len(), 2, "{array}");
    }
}

#[test]
fn members_of_identity_profiles() {
    identity(r#"{"id":"who","provider":"none","provider_config":{"any":1}}"#, &[]);
    errors(
        &[(
            "/identity_profiles/0",
            r#"{"id":"who","provider":" ","subject":{"kind":"x","principal":1,"run_as":"a b","delegation_mode":"x","attributes":[]},"trust":{"level":"x","constraints":{"escalation":"x","max_autonomy":"x","escalation_timeout":1,"require_justification":1}}}"#,
        )],
        &[
            "$.identity_profiles[0].provider empty",
            "$.identity_profiles[0].subject.kind not_in_list",
            "$.identity_profiles[0].subject.principal not_a_string",
            "$.identity_profiles[0].subject.run_as invalid_token",
            "$.identity_profiles[0].subject.delegation_mode not_in_list",
            "$.identity_profiles[0].subject.attributes not_an_object",
            "$.identity_profiles[0].trust.level not_in_list",
            "$.identity_profiles[0].trust.constraints.escalation not_in_list",
            "$.identity_profiles[0].trust.constraints.max_autonomy not_in_list",
            "$.identity_profiles[0].trust.constraints.escalation_timeout not_a_string",
            "$.identity_profiles[0].trust.constraints.require_justification not_a_boolean",
        ],
    );
    errors(
        &[
            ("/version", "\"0.1\""),
            (
                "/identity_profiles/0",
                r#"{"id":"who","provider":"x","auth":{"mode":"x","scopes":1,"audience":"","resource":1,"cache":"x","refresh":"x","required":1,"delegation_policy":{"max_depth":0,"allowed_delegators":1,"require_grant_per_hop":1},"provider_config":1,"inputs":1}}"#,
            ),
        ],
        &[
            "$.identity_profiles[0].auth.mode not_in_list",
            "$.identity_profiles[0].auth.scopes not_an_array",
            "$.identity_profiles[0].auth.audience empty",
            "$.identity_profiles[0].auth.resource not_a_string",
            "$.identity_profiles[0].auth.cache not_in_list",
            "$.identity_profiles[0].auth.refresh not_in_list",
            "$.identity_profiles[0].auth.required not_a_boolean",
            "$.identity_profiles[0].auth.delegation_policy.max_depth not_an_integer",
            "$.identity_profiles[0].auth.delegation_policy.allowed_delegators not_an_array",
            "$.identity_profiles[0].auth.delegation_policy.require_grant_per_hop not_a_boolean",
            "$.identity_profiles[0].auth.provider_config not_an_object",
            "$.identity_profiles[0].auth.inputs not_an_object",
        ],
    );
    errors(
        &[
            ("/version", "\"0.1\""),
            (
                "/identity_profiles/0",
                r#"{"id":"who","provider":"x","presentation":{"handoff":"x","cleanup":"x","default_redaction":1,"bindings":[{"target":{"kind":"x","name":1,"prefix":"a/b","expose_as":"1"},"required":1,"redact":1,"format":"x"},1]}}"#,
            ),
        ],
        &[
            "$.identity_profiles[0].presentation.handoff not_in_list",
            "$.identity_profiles[0].presentation.cleanup not_in_list",
            "$.identity_profiles[0].presentation.default_redaction not_a_boolean",
            "$.identity_profiles[0].presentation.bindings[0].source required",
            "$.identity_profiles[0].presentation.bindings[0].target.kind not_in_list",
            "$.identity_profiles[0].presentation.bindings[0].target.name not_a_string",
            "$.identity_profiles[0].presentation.bindings[0].target.prefix invalid_prefix",
            "$.identity_profiles[0].presentation.bindings[0].target.expose_as invalid_environment_name",
            "$.identity_profiles[0].presentation.bindings[0].required not_a_boolean",
            "$.identity_profiles[0].presentation.bindings[0].redact not_a_boolean",
            "$.identity_profiles[0].presentation.bindings[0].format not_in_list",
            "$.identity_profiles[0].presentation.bindings[1] not_an_object",
        ],
    );
}

#[test]
fn unknown_providers_are_errors_in_0_2_only() {
    for (pointer, path) in [
        ("/identity_profiles/0/provider", "$.identity_profiles[0].provider"),
        ("/authorization_profiles/0/provider", "$.authorization_profiles[0].provider"),
        ("/evidence_profiles/0/provider", "$.evidence_profiles[0].provider"),
    ] {
        errors(&[(pointer, "\"other\"")], &[&format!("{path} unknown_provider")]);
        errors(&[("/version", "\"0.1\""), (pointer, "\"other\"")], &[]);
    }
    errors(
        &[("/authorization_proof_profiles/0/method", "\"other\"")],
        &[
            "$.authorization_proof_profiles[0].method not_in_list",
            "$.authorization_proof_profiles[0].method unknown_method",
        ],
    );
    errors(
        &[("/version", "\"0.1\""), ("/authorization_proof_profiles/0/method", "\"other\"")],
        &["$.authorization_proof_profiles[0].method not_in_list"],
    );
    errors(&[("/authorization_proof_profiles/0/method", "-")], &[]);
}

#[test]
fn capabilities_of_providers_are_checked() {
    for (member, value, code) in [
        (
            "auth",
            r#"{"mode":"exchange","provider_config":{"token_env":"T"}}"#,
            &[UNSUPPORTED, UNSUPPORTED][..],
        ),
        ("auth", r#"{"mode":"service","provider_config":{"token_env":"T"}}"#, &[]),
        ("auth", r#"{"scopes":["a"," "],"provider_config":{"token_env":"T"}}"#, &[INVALID]),
        ("auth", r#"{"scopes":[],"provider_config":{"token_env":"T"}}"#, &[]),
        ("auth", r#"{"cache":"memory","provider_config":{"token_env":"T"}}"#, &[UNSUPPORTED]),
        ("auth", r#"{"cache":"none","refresh":"never","provider_config":{"token_env":"T"}}"#, &[]),
        ("auth", r#"{"refresh":"auto","provider_config":{"token_env":"T"}}"#, &[UNSUPPORTED]),
        (
            "auth",
            r#"{"delegation_policy":{"max_depth":1},"provider_config":{"token_env":"T"}}"#,
            &[UNSUPPORTED],
        ),
        ("auth", r#"{"delegation_policy":{"max_depth":null},"provider_config":{"token_env":"T"}}"#, &[]),
        ("subject", r#"{"delegation_mode":"impersonation"}"#, &[UNSUPPORTED]),
        ("subject", r#"{"delegation_mode":"none"}"#, &[]),
        ("presentation", r#"{"handoff":"downscope"}"#, &[UNSUPPORTED]),
    ] {
        let expected: Vec<_> = code.iter().map(|code| format!("{IDENTITY} {code}")).collect();
        let expected: Vec<_> = expected.iter().map(String::as_str).collect();
        errors(&[(&format!("/identity_profiles/0/{member}"), value)], &expected);
    }
    let azure = r#"{"id":"who","provider":"azure-managed-identity","auth":{"refresh":"auto","provider_config":{"resource":"r"}}}"#;
    identity(azure, &[]);
}

#[test]
fn bindings_fit_the_provider() {
    for (binding, codes) in [
        (r#"{"source":"credentials.access_token.value","target":{"kind":"env","name":"T"}}"#, &[][..]),
        (
            r#"{"source":"x","target":{"kind":"file","name":"token.txt","prefix":"tok-","expose_as":"F"}}"#,
            &[],
        ),
        (r#"{"source":"x","target":{"kind":"file"}}"#, &[]),
        (r#"{"source":"x","target":{"kind":"stdin"}}"#, &[]),
        (r#"{"source":"provider_assertions.x","target":{"kind":"stdin"}}"#, &["invalid_binding"]),
        (r#"{"source":"delegation_chain[0].grant","target":{"kind":"stdin"}}"#, &["invalid_binding"]),
        (r#"{"source":"x"}"#, &["invalid_binding"]),
        (r#"{"source":"x","target":{}}"#, &["invalid_binding"]),
        (r#"{"source":"x","target":{"kind":"none"}}"#, &[UNSUPPORTED]),
        (r#"{"source":"x","target":{"kind":"env"}}"#, &["invalid_binding"]),
        (r#"{"source":"x","target":{"kind":"env","name":"A-B"}}"#, &["invalid_binding"]),
        (r#"{"source":"x","target":{"kind":"file","name":"../x"}}"#, &["invalid_binding"]),
        (r#"{"source":"x","target":{"kind":"file","name":".."}}"#, &["invalid_binding"]),
        (
            r#"{"source":"x","target":{"kind":"stdin"}},{"source":"y","target":{"kind":"stdin"}}"#,
            &["invalid_binding"],
        ),
    ] {
        let expected: Vec<_> = codes.iter().map(|code| format!("{IDENTITY} {code}")).collect();
        let expected: Vec<_> = expected.iter().map(String::as_str).collect();
        let presentation = format!(r#"{{"bindings":[{binding}]}}"#);
        errors(&[("/identity_profiles/0/presentation", &presentation)], &expected);
    }
}

#[test]
fn bearer_providers() {
    config("env-bearer", "{}", &[MISSING]);
    identity(r#"{"id":"who","provider":"env-bearer"}"#, &[MISSING]);
    identity(r#"{"id":"who","provider":"env-bearer","auth":{"inputs":{"bearer_token":"x"}}}"#, &[]);
    identity(
        r#"{"id":"who","provider":"env-bearer","auth":{"inputs":{"token":{"value_from":{"env":"x"}}}}}"#,
        &[MISSING],
    );
    config("file-bearer", r#"{"token_file":"/t"}"#, &[]);
    config("file-bearer", r#"{"token_file":""}"#, &[MISSING]);
    identity(
        r#"{"id":"who","provider":"file-bearer","auth":{"inputs":{"token_file":{"value_from":{"command":"x"}}}}}"#,
        &[],
    );
    identity(
        r#"{"id":"who","provider":"file-bearer","auth":{"inputs":{"token_file":{"value_from":{}}}}}"#,
        &[MISSING],
    );
}

#[test]
fn oidc_providers() {
    let good =
        r#"{"token_endpoint":"https://h/t","client_id":"c","client_secret":{"value_from":{"env":"S"}}}"#;
    config("oidc-client-credentials", good, &[]);
    config("oidc-client-credentials", "{}", &[MISSING, MISSING, MISSING]);
    config("oidc-client-credentials", &good.replace("https", "http"), &[INVALID]);
    config("oidc-client-credentials", &good.replace("https://h", "http://127.0.0.1:1"), &[]);
    config("oidc-client-credentials", &good.replace("h/t", "u:p@h/t"), &[INVALID]);
    config("oidc-client-credentials", &good.replace("\"env\":\"S\"", ""), &[MISSING]);
    identity(
        r#"{"id":"who","provider":"oidc-client-credentials","auth":{"inputs":{"client_secret":{"value_from":{"file":"/s"}}},"provider_config":{"token_endpoint":"https://h/t","client_id":"c"}}}"#,
        &[],
    );
    config("oidc-token-exchange", r#"{"token_endpoint":"https://h/t","subject_token_env":"S"}"#, &[]);
    config("oidc-token-exchange", "{}", &[MISSING, MISSING]);
    identity(
        r#"{"id":"who","provider":"oidc-token-exchange","auth":{"mode":"exchange","inputs":{"subject_token":{"value_from":{"file":"/s"}}},"provider_config":{"token_endpoint":"https://h/t"}},"presentation":{"handoff":"downscope"}}"#,
        &[],
    );
}

#[test]
fn cloud_providers() {
    config("azure-managed-identity", r#"{"resource":"https://management.azure.com/"}"#, &[]);
    config("azure-managed-identity", r#"{"client_id":" "}"#, &[MISSING, INVALID]);
    let role = r#"{"role_arn":"arn:aws:iam::123456789012:role/path/name"}"#;
    config("aws-sts-assume-role", role, &[]);
    config("aws-sts-assume-role", "{}", &[MISSING]);
    for bad in
        ["arn:aws:iam::1:role/x", "arn:aws:sts::123456789012:role/x", "arn:aws:iam::123456789012:user/x", "x"]
    {
        config("aws-sts-assume-role", &format!(r#"{{"role_arn":"{bad}"}}"#), &[INVALID]);
    }
    config("aws-sts-assume-role", &role.replace("arn:aws:", "arn:aws-us-gov:"), &[]);
    let more = |more: &str| role.replace('}', &format!(",{more}}}"));
    config("aws-sts-assume-role", &more(r#""region":"eu-central-1","session_name":"a=b@c""#), &[]);
    config(
        "aws-sts-assume-role",
        &more(r#""region":"evil.example/","session_name":"a""#),
        &[INVALID, INVALID],
    );
    config("aws-sts-assume-role", &more(r#""session_name":"a b""#), &[INVALID]);
    config("gcp-workload-identity", r#"{"scopes":["s"],"service_account_email":"a@b"}"#, &[]);
    config("gcp-workload-identity", r#"{"scopes":["s"],"service_account_email":"ab"}"#, &[INVALID]);
    for scopes in ["{}", r#"{"scopes":[]}"#, r#"{"scopes":[""]}"#, r#"{"scopes":"s"}"#] {
        config("gcp-workload-identity", scopes, &[MISSING]);
    }
    identity(r#"{"id":"who","provider":"gcp-workload-identity","auth":{"scopes":["s"]}}"#, &[]);
    let entra = r#"{"tenant_id":"contoso.example","blueprint_app_id":"00000000-0000-0000-0000-000000000001","agent_identity_id":"agent"}"#;
    config("entra-agent-id", entra, &[]);
    config("entra-agent-id", "{}", &[MISSING, MISSING, MISSING]);
    config("entra-agent-id", &entra.replace("0000-0000-0000-", "0000-0000-00000-"), &[INVALID]);
    config("entra-agent-id", &entra.replace('}', r#","authority":"http://login.example"}"#), &[INVALID]);
}

#[test]
fn spiffe_needs_exactly_one_key_source() {
    let good = format!(r#"{{"svid_file":"/s","audience":"a","public_key_pem":"{PEM}"}}"#);
    config("spiffe-jwt-svid", &good, &[]);
    config("spiffe-jwt-svid", "{}", &[MISSING, MISSING, MISSING]);
    let more = |more: &str| good.replacen('{', &format!("{{{more},"), 1);
    config("spiffe-jwt-svid", &more(r#""jwks_file":"/k""#), &[MISSING]);
    config("spiffe-jwt-svid", &more(r#""jwks_uri":"https://h""#), &[UNSUPPORTED]);
    config("spiffe-jwt-svid", &more(r#""workload_api_socket":"unix:/s""#), &[UNSUPPORTED]);
    config("spiffe-jwt-svid", &good.replace("PUBLIC", "PRIVATE"), &[INVALID]);
    for (tolerance, good) in [("0", true), ("300", true), ("300.5", false), ("-1", false), ("\"1\"", false)] {
        let codes: &[&str] = if good { &[] } else { &[INVALID] };
        config("spiffe-jwt-svid", &more(&format!("\"clock_tolerance_s\":{tolerance}")), codes);
    }
    identity(
        r#"{"id":"who","provider":"spiffe-jwt-svid","auth":{"required":false,"audience":"a","provider_config":{"svid_file":"/s"}}}"#,
        &[],
    );
    identity(
        &format!(
            r#"{{"id":"who","provider":"spiffe-jwt-svid","trust":{{"level":"untrusted"}},"auth":{{"provider_config":{good}}}}}"#
        ),
        &[UNSUPPORTED],
    );
    config(
        "spiffe-jwt-svid",
        r#"{"svid_file":"/s","audience":"a","jwks":{"keys":[{"kty":"oct","k":"a"}]}}"#,
        &[INVALID],
    );
}

#[test]
fn stripe_strategies() {
    let good =
        r#"{"key_strategy":"precreated","account_mode":"test","permission_sets":{"read":{"key_env":"K"}}}"#;
    config("stripe-api-key", good, &[]);
    config("stripe-api-key", "{}", &[MISSING, MISSING]);
    config("stripe-api-key", &good.replace("{\"read\":{\"key_env\":\"K\"}}", "{}"), &[MISSING]);
    config("stripe-api-key", &good.replace("key_env", "key"), &[MISSING]);
    let dynamic = r#"{"key_strategy":"dynamic","account_mode":"live","master_key_source":{"env":"K"}}"#;
    config("stripe-api-key", dynamic, &[]);
    config("stripe-api-key", &dynamic.replace("env", "literal"), &[MISSING]);
    let hierarchy = |hierarchy: &str| good.replacen('{', &format!("{{\"scope_hierarchy\":{hierarchy},"), 1);
    config("stripe-api-key", &hierarchy(r#"{"admin":["read"],"read":[]}"#), &[]);
    config("stripe-api-key", &hierarchy(r#"{"admin":["read"],"read":["admin"]}"#), &[INVALID]);
    config("stripe-api-key", &hierarchy(r#"{"admin":"read"}"#), &[INVALID]);
    config("stripe-api-key", &hierarchy("[]"), &[INVALID]);
}

#[test]
fn texts_do_not_show_configured_values() {
    let secret = "sk_live_planted";
    let config = format!(
        r#"{{"token_endpoint":"http://{secret}","client_id":1,"role_arn":"{secret}","region":"{secret}/","session_name":"{secret} ","key_strategy":"{secret}","api_base":"{secret}","authority":"x://{secret}","service_account_email":"{secret}","tenant_id":"{secret}","public_key_pem":"{secret}"}}"#
    );
    for provider in crate::agentcli::providers::identity() {
        let manifest = with(&[("/identity_profiles/0", &configured(provider.name, &config))]);
        for finding in validate(&manifest).errors {
            assert!(!finding.message.contains("planted"), "{}: {}", provider.name, finding.message);
        }
    }
}

#[test]
fn proof_profiles() {
    proof(r#""method":"none","verify":{"required":true}"#, &["verify.required proof_not_verifiable"]);
    proof(r#""method":"none","verify":{"required":false},"claims":{"a":1}"#, &[]);
    let value = r#""proof":{"value_from":{"env":"T"}}"#;
    proof(&format!(r#""method":"jwt",{value},"jwks_uri":"https://h/k""#), &[]);
    proof(&format!(r#""method":"jwt",{value},"public_key":"{PEM}""#), &[]);
    proof(r#""method":"jwt""#, &["proof.value_from proof_config_missing", "public_key proof_config_missing"]);
    proof(
        &format!(r#""method":"jwt",{value},"jwks_uri":"http://localhost/k""#),
        &["jwks_uri proof_config_invalid"],
    );
    proof(&format!(r#""method":"jwt",{value},"public_key":"x""#), &["public_key proof_config_invalid"]);
    proof(&format!(r#""method":"detached-signature",{value},"allowed_signers":"a""#), &[]);
    proof(&format!(r#""method":"detached-signature",{value}"#), &["public_key proof_config_missing"]);
    proof(&format!(r#""method":"certificate",{value}"#), &["ca_certificate proof_config_missing"]);
    proof(&format!(r#""method":"certificate",{value},"ca_certificate_from":{{"literal":"x"}}"#), &[]);
    proof(
        &format!(r#""method":"certificate",{value},"public_key":"{PEM}""#),
        &["public_key proof_config_invalid"],
    );
    proof(
        r#""method":"none","issuer":"","proof":{"value_from":"x"},"claims":[],"verify":1"#,
        &["issuer empty", "proof.value_from not_an_object", "claims not_an_object", "verify not_an_object"],
    );
}

#[test]
fn literals_are_refused_in_the_walk_and_in_the_structure() {
    proof(
        r#""method":"none","proof":{"value_from":{"literal":"x"}}"#,
        &[
            "proof.value_from.literal literal_forbidden",
            "proof.value_from no_value_source",
            "proof.value_from.literal literal_forbidden",
        ],
    );
    proof(
        r#""method":"jwt","jwks_uri":"https://issuer.example/keys","issuer":"https://issuer.example","audience":"a","proof":{"value_from":{"literal":"x"}}"#,
        &[
            "proof.value_from.literal literal_forbidden",
            "proof.value_from no_value_source",
            "proof.value_from.literal literal_forbidden",
        ],
    );
    proof(
        r#""method":"none","proof":{"value_from":{"env":"T","literal":"x","more":1}}"#,
        &[
            "proof.value_from.literal literal_forbidden",
            "proof.value_from.more unknown_key",
            "proof.value_from.literal literal_forbidden",
        ],
    );
    proof(
        r#""method":"none","ca_certificate_from":{"env":" "},"proof":{}"#,
        &["ca_certificate_from.env empty", "ca_certificate_from no_value_source"],
    );
}

#[test]
fn authorization_and_evidence_profiles() {
    errors(
        &[(
            "/authorization_profiles/0",
            r#"{"id":"policy","provider":"opa","provider_config":1,"on_error":"allow","request":{"include":["",1]},"decision":{"allow_values":1,"deny_values":[null],"escalate_values":["x"],"more":1}}"#,
        )],
        &[
            "$.authorization_profiles[0].provider_config not_an_object",
            "$.authorization_profiles[0].on_error not_in_list",
            "$.authorization_profiles[0].request.include[0] empty",
            "$.authorization_profiles[0].request.include[1] not_a_string",
            "$.authorization_profiles[0].decision.allow_values not_an_array",
            "$.authorization_profiles[0].decision.deny_values[0] required",
            "$.authorization_profiles[0].decision.more unknown_key",
        ],
    );
    errors(
        &[(
            "/evidence_profiles/0",
            r#"{"id":"kept","provider":"ledger","methods":7,"payload":{"bind":"x","context":[],"format":"xml"},"verify":{"required":"x"}}"#,
        )],
        &[
            "$.evidence_profiles[0].payload.bind not_an_array",
            "$.evidence_profiles[0].payload.context not_an_object",
            "$.evidence_profiles[0].payload.format not_in_list",
            "$.evidence_profiles[0].verify.required not_a_boolean",
        ],
    );
}

#[test]
fn cedar_and_topaz_need_their_configuration() {
    let path = ["$.authorization_profiles[0].provider provider_config_missing"];
    for (provider, config, good) in [
        ("cedar", "null", false),
        ("cedar", r#"{"policies":" "}"#, false),
        ("cedar", r#"{"policies":"permit(principal, action, resource);"}"#, true),
        ("cedar", r#"{"policies_file":"p.cedar"}"#, true),
        ("topaz", r#"{"endpoint":"https://localhost:8383"}"#, false),
        ("topaz", r#"{"endpoint":"https://localhost:8383","policy_path":"x"}"#, true),
        ("opa", "null", true),
        ("none", "null", true),
    ] {
        let profile = format!(r#"{{"id":"policy","provider":"{provider}","provider_config":{config}}}"#);
        errors(&[("/authorization_profiles/0", &profile)], if good { &[] } else { &path });
    }
}
