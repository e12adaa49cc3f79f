//! Token endpoints and metadata services: requests as they are sent.

use proctor_core::time::Timestamp;
use proctor_wire::agentcli::error::Code;

use super::{NOW, credential, field, fields, identity, json, resolve};
use crate::server::{Answer, Server, ok};

const GOOD: &str =
    r#"{"access_token":"hunter2-token","token_type":"bearer","expires_in":3600,"scope":"a b"}"#;

fn in_an_hour() -> Timestamp {
    Timestamp::from_micros((NOW + 3600) * 1_000_000)
}

#[tokio::test]
async fn client_credentials_are_sent_in_the_body() {
    let server = Server::new(vec![ok(GOOD)]).await;
    let auth = format!(
        r#"{{"scopes":["a","b"],"audience":"aud","provider_config":{{"token_endpoint":"{}/token","client_id":"me",
            "client_secret":{{"value_from":{{"env":"CLIENT_SECRET"}}}}}}}}"#,
        server.url
    );
    let profile = identity("oidc-client-credentials", &auth);
    let session = resolve(&[("CLIENT_SECRET", "hunter2&secret")], &profile).await.unwrap();
    assert_eq!(credential(&session, "access_token").as_deref(), Ok("hunter2-token"));
    assert_eq!(session.expires_at, Some(in_an_hour()));
    assert_eq!(session.principal(), Some("me"));
    assert_eq!(session.chain[0].grant, "client-credentials");
    let expected = [
        ("grant_type", "client_credentials"),
        ("client_id", "me"),
        ("client_secret", "hunter2&secret"),
        ("scope", "a b"),
        ("audience", "aud"),
    ];
    assert_eq!(
        fields(&server.requests()[0]),
        expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
    assert_eq!(session.secrets().len(), 3);
}

#[tokio::test]
async fn client_credentials_can_use_http_basic() {
    let server = Server::new(vec![ok(GOOD)]).await;
    let auth = format!(
        r#"{{"inputs":{{"client_secret":{{"value_from":{{"env":"CLIENT_SECRET"}}}}}},
            "provider_config":{{"token_endpoint":"{}/token","client_id":"me","client_auth":"basic"}}}}"#,
        server.url
    );
    let profile = identity("oidc-client-credentials", &auth);
    resolve(&[("CLIENT_SECRET", "hunter2:x")], &profile).await.unwrap();
    let request = &server.requests()[0];
    // base64 of `me:hunter2%3Ax`
    assert!(request.contains("authorization: Basic bWU6aHVudGVyMiUzQXg="), "{request}");
    assert_eq!(field(request, "client_secret"), None);
}

#[tokio::test]
async fn a_known_error_word_is_shown() {
    let body = r#"{"error":"invalid_client","error_description":"hunter2-secret is wrong"}"#;
    let server = Server::new(vec![Answer::Reply(401, "", body.to_owned())]).await;
    let auth = format!(
        r#"{{"provider_config":{{"token_endpoint":"{}","client_id":"me","client_secret":"hunter2-secret"}}}}"#,
        server.url
    );
    let error = resolve(&[], &identity("oidc-client-credentials", &auth)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the token request failed: the server answered with status 401 and error `invalid_client`"
    );
}

#[tokio::test]
async fn a_token_is_exchanged_and_narrowed() {
    let narrow = r#"{"access_token":"hunter2-narrow","issued_token_type":"urn:ietf:params:oauth:token-type:access_token",
                     "token_type":"N_A","expires_in":60,"scope":"a"}"#;
    let server = Server::new(vec![ok(GOOD), ok(narrow)]).await;
    let auth = format!(
        r#"{{"mode":"exchange","scopes":["a","b"],"provider_config":{{"token_endpoint":"{}/t","subject_token_env":"SUBJECT_TOKEN"}}}}"#,
        server.url
    );
    let mut profile = identity("oidc-token-exchange", &auth);
    profile.set_pointer("/scope", json(r#""a""#));
    profile.set_pointer("/presentation", json(r#"{"handoff":"downscope"}"#));
    let session = resolve(&[("SUBJECT_TOKEN", "hunter2-subject")], &profile).await.unwrap();
    assert_eq!(credential(&session, "access_token").as_deref(), Ok("hunter2-narrow"));
    assert!(session.handoff.is_prepared);
    let kinds: Vec<(&str, &str)> =
        session.chain.iter().map(|hop| (hop.kind.as_str(), hop.grant.as_str())).collect();
    assert_eq!(kinds, [("exchange-source", "token-exchange"), ("service", "token-exchange")]);
    let requests = server.requests();
    assert_eq!(field(&requests[0], "subject_token").as_deref(), Some("hunter2-subject"));
    assert_eq!(field(&requests[0], "scope").as_deref(), Some("a b"));
    assert_eq!(
        field(&requests[0], "grant_type").as_deref(),
        Some("urn:ietf:params:oauth:grant-type:token-exchange")
    );
    assert_eq!(field(&requests[1], "subject_token").as_deref(), Some("hunter2-token"));
    assert_eq!(field(&requests[1], "scope").as_deref(), Some("a"));
}

#[tokio::test]
async fn a_token_that_was_not_narrowed_is_refused() {
    let server = Server::new(vec![ok(GOOD)]).await;
    let auth = format!(
        r#"{{"scopes":["a","b"],"provider_config":{{"token_endpoint":"{}/t","subject_token_env":"SUBJECT_TOKEN"}}}}"#,
        server.url
    );
    let mut profile = identity("oidc-token-exchange", &auth);
    profile.set_pointer("/presentation", json(r#"{"handoff":"downscope"}"#));
    let variables = [("SUBJECT_TOKEN", "hunter2-subject")];
    let unscoped = resolve(&variables, &profile).await.unwrap_err();
    assert_eq!(unscoped.code(), Code::IdentityProfileInvalid);
    profile.set_pointer("/scope", json(r#""a""#));
    assert_eq!(resolve(&variables, &profile).await.unwrap_err().code(), Code::TokenRequestFailed);
    profile.set_pointer("/scope", json(r#""c""#));
    assert_eq!(resolve(&variables, &profile).await.unwrap_err().code(), Code::IdentityProfileInvalid);
}

#[tokio::test]
async fn a_chain_that_breaks_its_policy_gives_no_session() {
    let server = Server::new(vec![ok(GOOD)]).await;
    let auth = format!(
        r#"{{"delegation_policy":{{"max_depth":1}},"provider_config":{{"token_endpoint":"{}/t","subject_token_env":"SUBJECT_TOKEN"}}}}"#,
        server.url
    );
    let profile = identity("oidc-token-exchange", &auth);
    let error = resolve(&[("SUBJECT_TOKEN", "hunter2-subject")], &profile).await.unwrap_err();
    assert_eq!(error.code(), Code::IdentityDelegationInvalid);
}

#[tokio::test]
async fn managed_identities_ask_the_announced_endpoint_or_imds() {
    let body = format!(r#"{{"access_token":"hunter2-token","expires_on":"{}"}}"#, NOW + 3600);
    let server = Server::new(vec![ok(&body)]).await;
    let config = r#"{"provider_config":{"resource":"https://management.azure.com/","client_id":"cid"}}"#;
    let profile = identity("azure-managed-identity", config);
    let endpoint = format!("{}/msi/token", server.url);
    let variables = [("IDENTITY_ENDPOINT", endpoint.as_str()), ("IDENTITY_HEADER", "hunter2-header")];
    let session = resolve(&variables, &profile).await.unwrap();
    assert_eq!(session.expires_at, Some(in_an_hour()));
    let request = &server.requests()[0];
    assert!(
        request.starts_with(
            "GET /msi/token?api-version=2019-08-01&resource=https%3A%2F%2Fmanagement.azure.com%2F&client_id=cid "
        ),
        "{request}"
    );
    assert!(request.contains("x-identity-header: hunter2-header"), "{request}");

    let config = format!(r#"{{"provider_config":{{"resource":"r","endpoint":"{}/"}}}}"#, server.url);
    resolve(&[], &identity("azure-managed-identity", &config)).await.unwrap();
    let request = &server.requests()[1];
    assert!(
        request.starts_with("GET /metadata/identity/oauth2/token?api-version=2018-02-01&resource=r HTTP"),
        "{request}"
    );
    assert!(request.contains("metadata: true"), "{request}");
}

#[tokio::test]
async fn workload_identities_ask_the_metadata_server() {
    let server = Server::new(vec![ok(GOOD)]).await;
    let config = r#"{"scopes":["x"],"provider_config":{"scopes":["https://a","https://b"],"service_account_email":"me@p.iam"}}"#;
    let profile = identity("gcp-workload-identity", config);
    let session = resolve(&[("GCE_METADATA_HOST", &server.authority)], &profile).await.unwrap();
    assert_eq!(session.principal(), Some("me@p.iam"));
    let request = &server.requests()[0];
    assert!(
        request.starts_with(
            "GET /computeMetadata/v1/instance/service-accounts/me@p.iam/token?scopes=https%3A%2F%2Fa%2Chttps%3A%2F%2Fb "
        ),
        "{request}"
    );
    assert!(request.to_ascii_lowercase().contains("metadata-flavor: google"), "{request}");
    let escaping = r#"{"provider_config":{"scopes":["a"],"service_account_email":"../../x@y"}}"#;
    let error = resolve(&[], &identity("gcp-workload-identity", escaping)).await.unwrap_err();
    assert_eq!(error.code(), Code::IdentityProfileInvalid);
}

#[tokio::test]
async fn an_entra_agent_gets_its_own_token_in_two_steps() {
    let first = r#"{"access_token":"hunter2-blueprint","expires_in":3600}"#;
    let server = Server::new(vec![ok(first), ok(GOOD)]).await;
    let auth = format!(
        r#"{{"provider_config":{{"tenant_id":"ten","blueprint_app_id":"blue","agent_identity_id":"agent",
            "authority":"{}/ten","scopes":["api://x/.default"]}},"inputs":{{"client_assertion":{{"value_from":{{"env":"ASSERTION_JWT"}}}}}}}}"#,
        server.url
    );
    let profile = identity("entra-agent-id", &auth);
    let session = resolve(&[("ASSERTION_JWT", "hunter2-assertion")], &profile).await.unwrap();
    assert_eq!(session.principal(), Some("agent://entra/ten/agent"));
    assert_eq!(credential(&session, "access_token").as_deref(), Ok("hunter2-token"));
    let requests = server.requests();
    assert!(requests[0].starts_with("POST /ten/oauth2/v2.0/token "));
    assert_eq!(field(&requests[0], "client_id").as_deref(), Some("blue"));
    assert_eq!(field(&requests[0], "fmi_path").as_deref(), Some("agent"));
    assert_eq!(field(&requests[0], "client_assertion").as_deref(), Some("hunter2-assertion"));
    assert_eq!(field(&requests[0], "scope").as_deref(), Some("api://AzureADTokenExchange/.default"));
    assert_eq!(field(&requests[1], "client_id").as_deref(), Some("agent"));
    assert_eq!(field(&requests[1], "client_assertion").as_deref(), Some("hunter2-blueprint"));
    assert_eq!(field(&requests[1], "scope").as_deref(), Some("api://x/.default"));
    assert_eq!(field(&requests[1], "fmi_path"), None);
    // Every token of the way is masked later.
    assert!(
        ["hunter2-assertion", "hunter2-blueprint", "hunter2-token"]
            .iter()
            .all(|token| { session.secrets().iter().any(|secret| secret.expose() == *token) })
    );
}

fn entra(server: &Server, more: &str) -> proctor_core::json::Json {
    let auth = format!(
        r#"{{"provider_config":{{"tenant_id":"ten","blueprint_app_id":"blue","agent_identity_id":"agent","authority":"{}/ten"}}{more}}}"#,
        server.url
    );
    identity("entra-agent-id", &auth)
}

const BLUEPRINT: &str = r#"{"access_token":"hunter2-blueprint","expires_in":3600}"#;

#[tokio::test]
async fn an_entra_blueprint_is_proved_by_the_managed_identity_of_the_machine() {
    let managed = format!(r#"{{"access_token":"hunter2-managed","expires_on":"{}"}}"#, NOW + 3600);
    // By the endpoint that the platform announces, and by the metadata service.
    for announced in [true, false] {
        let server = Server::new(vec![ok(&managed), ok(BLUEPRINT), ok(GOOD)]).await;
        let endpoint = format!("{}/msi", server.url);
        let variables = if announced {
            vec![("IDENTITY_ENDPOINT", endpoint.as_str()), ("IDENTITY_HEADER", "hunter2-header")]
        } else {
            vec![("AZURE_POD_IDENTITY_AUTHORITY_HOST", server.url.as_str())]
        };
        let session = resolve(&variables, &entra(&server, "")).await.unwrap();
        assert_eq!(credential(&session, "access_token").as_deref(), Ok("hunter2-token"));
        let requests = server.requests();
        let resource = "resource=api%3A%2F%2FAzureADTokenExchange ";
        assert!(requests[0].starts_with("GET ") && requests[0].contains(resource), "{}", requests[0]);
        assert_eq!(requests[0].contains("x-identity-header: hunter2-header"), announced);
        assert_eq!(requests[0].contains("metadata: true"), !announced);
        assert_eq!(field(&requests[1], "client_assertion").as_deref(), Some("hunter2-managed"));
        assert_eq!(field(&requests[1], "fmi_path").as_deref(), Some("agent"));
        assert_eq!(field(&requests[2], "client_assertion").as_deref(), Some("hunter2-blueprint"));
        assert!(session.secrets().iter().any(|secret| secret.expose() == "hunter2-managed"));
    }
}

#[tokio::test]
async fn an_entra_agent_acts_on_behalf_of_a_user() {
    let server = Server::new(vec![ok(BLUEPRINT), ok(GOOD)]).await;
    let inputs = r#","mode":"on-behalf-of","inputs":{"client_assertion":{"value_from":{"env":"ASSERTION_JWT"}},"subject_token":{"value_from":{"env":"USER_TOKEN"}}}"#;
    let variables = [("ASSERTION_JWT", "hunter2-assertion"), ("USER_TOKEN", "hunter2-user")];
    let session = resolve(&variables, &entra(&server, inputs)).await.unwrap();
    assert_eq!(credential(&session, "access_token").as_deref(), Ok("hunter2-token"));
    let requests = server.requests();
    assert_eq!(field(&requests[0], "grant_type").as_deref(), Some("client_credentials"));
    assert_eq!(field(&requests[0], "assertion"), None, "the user's token is for the second step");
    for (name, value) in [
        ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
        ("assertion", "hunter2-user"),
        ("requested_token_use", "on_behalf_of"),
        ("client_id", "agent"),
        ("client_assertion", "hunter2-blueprint"),
    ] {
        assert_eq!(field(&requests[1], name).as_deref(), Some(value), "{name}");
    }
    assert!(session.secrets().iter().any(|secret| secret.expose() == "hunter2-user"));
    // Without the user's token the agent's own is no substitute.
    let bare =
        r#","mode":"on-behalf-of","inputs":{"client_assertion":{"value_from":{"env":"ASSERTION_JWT"}}}"#;
    let error = resolve(&variables, &entra(&server, bare)).await.unwrap_err();
    assert_eq!(error.code(), Code::IdentityProfileInvalid);
}

#[tokio::test]
async fn a_failure_of_the_second_step_gives_no_token_of_the_first() {
    let bad = [
        Answer::Close,
        Answer::Silence,
        Answer::Endless,
        Answer::Reply(302, "location: http://127.0.0.1:1/\r\n", String::new()),
        Answer::Reply(401, "", r#"{"error":"invalid_client"}"#.to_owned()),
        ok("{}"),
        ok(r#"{"access_token":"hunter2-late","expires_in":0}"#),
    ];
    for answer in bad {
        let server = Server::new(vec![ok(BLUEPRINT), answer.clone()]).await;
        let assertion = [("AGENTCLI_ENTRA_CLIENT_ASSERTION", "hunter2-assertion")];
        let error = resolve(&assertion, &entra(&server, "")).await.unwrap_err();
        assert_eq!(error.code(), Code::TokenRequestFailed);
        assert_eq!(server.requests().len(), 2);

        let server = Server::new(vec![ok(GOOD), answer]).await;
        let auth = format!(
            r#"{{"mode":"exchange","scopes":["a","b"],"provider_config":{{"token_endpoint":"{}/t","subject_token_env":"SUBJECT_TOKEN"}}}}"#,
            server.url
        );
        let mut profile = identity("oidc-token-exchange", &auth);
        profile.set_pointer("/scope", json(r#""a""#));
        profile.set_pointer("/presentation", json(r#"{"handoff":"downscope"}"#));
        let error = resolve(&[("SUBJECT_TOKEN", "hunter2-subject")], &profile).await.unwrap_err();
        assert_eq!(error.code(), Code::TokenRequestFailed);
        assert_eq!(server.requests().len(), 2);
    }
}
