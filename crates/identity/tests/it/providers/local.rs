//! Providers without a server: none, bearer tokens, Stripe keys.

use proctor_wire::agentcli::error::Code;

use super::{credential, identity, json, resolve, resolve_in};

#[tokio::test]
async fn no_provider_means_no_credentials() {
    let session = resolve(&[], &identity("none", r#"{"mode":"none"}"#)).await.unwrap();
    assert!(session.credentials.is_empty() && session.chain.is_empty());
    assert_eq!(
        session.describe()["credential_summary"].to_string(),
        r#"{"credential_types":[],"expires_at":null}"#
    );
}

#[tokio::test]
async fn bearer_tokens_come_from_the_environment() {
    let profile = identity("env-bearer", r#"{"provider_config":{"token_env":"MY_TOKEN"}}"#);
    let session = resolve(&[("MY_TOKEN", "hunter2-token\n")], &profile).await.unwrap();
    assert_eq!(credential(&session, "access_token").as_deref(), Ok("hunter2-token"));
    assert_eq!(session.chain[0].grant, "bearer-token");

    let missing = resolve(&[], &profile).await.unwrap_err();
    assert_eq!(missing.code(), Code::TokenNotFound);
    assert!(missing.to_string().contains("`MY_TOKEN`"), "{missing}");
    // A token in place of a name is not repeated.
    let misplaced = identity("env-bearer", r#"{"provider_config":{"token_env":"hunter2-token"}}"#);
    assert_eq!(resolve(&[], &misplaced).await.unwrap_err().code(), Code::TokenNotFound);
    let input = identity("env-bearer", r#"{"inputs":{"bearer_token":"hunter2-input"}}"#);
    let session = resolve(&[], &input).await.unwrap();
    assert_eq!(credential(&session, "access_token").as_deref(), Ok("hunter2-input"));
    let nothing = resolve(&[], &identity("env-bearer", "{}")).await.unwrap_err();
    assert_eq!(nothing.code(), Code::IdentityProfileInvalid);
}

#[tokio::test]
async fn bearer_tokens_come_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("token"), "hunter2-token\n").unwrap();
    std::fs::write(folder.path().join("empty"), "\n").unwrap();
    let profile =
        |file: &str| identity("file-bearer", &format!(r#"{{"provider_config":{{"token_file":"{file}"}}}}"#));
    let session = resolve_in(folder.path(), &[], &profile("token")).await.unwrap();
    assert_eq!(credential(&session, "access_token").as_deref(), Ok("hunter2-token"));
    let code = |result: Result<_, proctor_identity::IdentityError>| {
        result.map(|_: proctor_identity::Session| ()).unwrap_err().code()
    };
    assert_eq!(code(resolve_in(folder.path(), &[], &profile("empty")).await), Code::TokenFileEmpty);
    assert_eq!(code(resolve_in(folder.path(), &[], &profile("none")).await), Code::TokenFileNotFound);
    let by_variable =
        identity("file-bearer", r#"{"inputs":{"token_file":{"value_from":{"env":"TOKEN_PATH"}}}}"#);
    let session = resolve_in(folder.path(), &[("TOKEN_PATH", "token")], &by_variable).await.unwrap();
    assert_eq!(credential(&session, "access_token").as_deref(), Ok("hunter2-token"));
    let by_command =
        identity("file-bearer", r#"{"inputs":{"token_file":{"value_from":{"command":"echo token"}}}}"#);
    assert_eq!(code(resolve_in(folder.path(), &[], &by_command).await), Code::IdentityResolutionFailed);
}

fn stripe(more: &str, scope: &str) -> proctor_core::json::Json {
    let mut profile = identity(
        "stripe-api-key",
        &format!(
            r#"{{"provider_config":{{"key_strategy":"precreated","account_mode":"test","permission_sets":{{
                "admin":{{"key_env":"ADMIN_KEY"}},"charges":{{"key_env":"CHARGES_KEY"}}}},
                "scope_hierarchy":{{"admin":["charges","refunds"],"charges":["charges_read"]}}{more}}}}}"#
        ),
    );
    profile.set_pointer("/scope", json(scope));
    profile
}

#[tokio::test]
async fn stripe_keys_are_selected_by_scope() {
    let keys = [("ADMIN_KEY", "sk_test_hunter2admin"), ("CHARGES_KEY", "rk_test_hunter2charges")];
    for (scope, grant, key) in [
        ("null", "scope:admin", keys[0].1),
        (r#""charges""#, "scope:charges", keys[1].1),
        (r#""charges_read""#, "scope:charges", keys[1].1),
        (r#""refunds""#, "scope:admin", keys[0].1),
    ] {
        let session = resolve(&keys, &stripe("", scope)).await.unwrap();
        assert_eq!(session.chain[0].grant, grant, "{scope}");
        assert_eq!(credential(&session, "api_key").as_deref(), Ok(key));
        assert_eq!(session.principal(), Some("stripe:test"));
    }
    let unknown = resolve(&keys, &stripe("", r#""payouts""#)).await.unwrap_err();
    assert_eq!(unknown.code(), Code::IdentityProfileInvalid);
    // A downscoped key never has more than the wanted scope.
    let mut narrow = stripe("", r#""charges_read""#);
    narrow.set_pointer("/presentation", json(r#"{"handoff":"downscope"}"#));
    assert_eq!(resolve(&keys, &narrow).await.unwrap_err().code(), Code::IdentityProfileInvalid);
}

#[tokio::test]
async fn stripe_keys_fit_their_account() {
    for key in ["sk_live_hunter2", "pk_test_hunter2", "hunter2", "sk_test_", "sk_testhunter2"] {
        let error = resolve(&[("ADMIN_KEY", key)], &stripe("", "null")).await.unwrap_err();
        assert_eq!(error.code(), Code::IdentityResolutionFailed, "{key}");
    }
    let dynamic =
        identity("stripe-api-key", r#"{"provider_config":{"key_strategy":"dynamic","account_mode":"test"}}"#);
    assert_eq!(resolve(&[], &dynamic).await.unwrap_err().code(), Code::UnsupportedCapability);
}
