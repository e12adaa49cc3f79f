//! Failures that all providers with a server share.

use proctor_wire::agentcli::error::Code;

use super::{PLANTED, identity, json, resolve};
use crate::server::{Answer, Server, ok};

/// A profile of each provider, and the variables that lead it to the server.
fn profiles(server: &Server) -> Vec<(proctor_core::json::Json, Vec<(&'static str, String)>)> {
    let url = &server.url;
    let none = Vec::new;
    vec![
        (
            identity(
                "oidc-client-credentials",
                &format!(
                    r#"{{"provider_config":{{"token_endpoint":"{url}/t","client_id":"c","client_secret":"{PLANTED}-client"}}}}"#
                ),
            ),
            none(),
        ),
        (
            identity(
                "oidc-token-exchange",
                &format!(
                    r#"{{"provider_config":{{"token_endpoint":"{url}/t","subject_token_env":"SUBJECT_TOKEN"}}}}"#
                ),
            ),
            vec![("SUBJECT_TOKEN", format!("{PLANTED}-subject"))],
        ),
        (
            identity("azure-managed-identity", r#"{"provider_config":{"resource":"https://r/"}}"#),
            vec![
                ("IDENTITY_ENDPOINT", format!("{url}/msi")),
                ("IDENTITY_HEADER", format!("{PLANTED}-header")),
            ],
        ),
        (
            identity("gcp-workload-identity", r#"{"provider_config":{"scopes":["a"]}}"#),
            vec![("GCE_METADATA_HOST", server.authority.clone())],
        ),
        (
            identity(
                "entra-agent-id",
                &format!(
                    r#"{{"provider_config":{{"tenant_id":"t","blueprint_app_id":"b","agent_identity_id":"a","authority":"{url}/t"}}}}"#
                ),
            ),
            vec![("AGENTCLI_ENTRA_CLIENT_ASSERTION", format!("{PLANTED}-assertion"))],
        ),
        (
            identity(
                "aws-sts-assume-role",
                r#"{"provider_config":{"role_arn":"arn:aws:iam::123456789012:role/x"}}"#,
            ),
            vec![
                ("AWS_ENDPOINT_URL_STS", url.clone()),
                ("AWS_ACCESS_KEY_ID", format!("AKIA{PLANTED}")),
                ("AWS_SECRET_ACCESS_KEY", format!("{PLANTED}-secret-key")),
            ],
        ),
    ]
}

#[tokio::test]
async fn no_provider_accepts_a_bad_answer() {
    let echo = format!(r#"{{"error":"{PLANTED}","error_description":"{PLANTED}-client"}}"#);
    let answers = [
        Answer::Close,
        Answer::Silence,
        Answer::Endless,
        Answer::Reply(302, "location: http://127.0.0.1:1/\r\n", String::new()),
        Answer::Reply(400, "", echo.clone()),
        Answer::Reply(500, "", PLANTED.to_owned()),
        ok(""),
        ok("{"),
        ok("[]"),
        ok("<a><b></a>"),
        ok(&echo),
        ok(r#"{"access_token":7}"#),
        ok(&format!(r#"{{"access_token":"{PLANTED}\n"}}"#)),
        ok(&format!(r#"{{"access_token":"{PLANTED}","expires_in":0}}"#)),
        ok(&format!(r#"{{"access_token":"{PLANTED}","expires_on":"1700000000"}}"#)),
        ok(&format!(r#"{{"access_token":"{PLANTED}","expires_in":"soon"}}"#)),
        ok(&format!(r#"{{"access_token":"{PLANTED}","expires_in":99999999999999}}"#)),
        ok(&format!(r#"{{"access_token":"{PLANTED}","token_type":"mac"}}"#)),
        ok(&format!(r#"{{"access_token":"{}"}}"#, "x".repeat(70_000))),
        ok(&format!(r#"{{"access_token":"{PLANTED}","access_token":"other"}}"#)),
    ];
    for answer in answers {
        let server = Server::new(vec![answer]).await;
        for (profile, variables) in profiles(&server) {
            let variables: Vec<(&str, &str)> =
                variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let error = resolve(&variables, &profile).await.unwrap_err();
            assert_eq!(error.code(), Code::TokenRequestFailed, "{profile}: {error}");
        }
    }
}

#[tokio::test]
async fn a_failure_is_an_empty_session_where_credentials_are_optional() {
    let server = Server::new(vec![Answer::Close]).await;
    for (mut profile, variables) in profiles(&server) {
        let variables: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert!(profile.set_pointer("/auth/required", json("false")));
        let session = resolve(&variables, &profile).await.unwrap();
        assert!(session.credentials.is_empty() && session.chain.is_empty() && session.delegation.is_valid());
        assert_eq!(session.unresolved, Some(Code::TokenRequestFailed));
        assert_eq!(session.describe()["credentials"].to_string(), "{}");
    }
}

#[tokio::test]
async fn nothing_is_sent_without_encryption_to_other_hosts() {
    for endpoint in ["http://id.example/token", "ftp://id.example", "https://u:hunter2@id.example/", "token"]
    {
        let auth = format!(
            r#"{{"provider_config":{{"token_endpoint":"{endpoint}","client_id":"c","client_secret":"s"}}}}"#
        );
        let error = resolve(&[], &identity("oidc-client-credentials", &auth)).await.unwrap_err();
        assert_eq!(error.code(), Code::IdentityProfileInvalid, "{endpoint}");
    }
    let gcp = identity("gcp-workload-identity", r#"{"provider_config":{"scopes":["a"]}}"#);
    let error = resolve(&[("GCE_METADATA_HOST", "metadata.example")], &gcp).await.unwrap_err();
    assert_eq!(error.code(), Code::IdentityProfileInvalid);
}

#[tokio::test]
async fn an_unknown_provider_is_an_error() {
    let error = resolve(&[], &identity("vault", "{}")).await.unwrap_err();
    assert_eq!(error.code(), Code::UnknownIdentityProvider);
}

#[tokio::test]
async fn no_provider_uses_a_proxy_for_this_machine_or_a_metadata_service() {
    let proxy = Server::new(vec![ok(r#"{"access_token":"from-the-proxy"}"#)]).await;
    let server = Server::new(vec![ok(r#"{"access_token":"hunter2-direct","expires_in":60}"#)]).await;
    let proxies = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
        .map(|name| (name, proxy.url.clone()));
    let mut asked = 0;
    for (profile, variables) in profiles(&server) {
        let all: Vec<(&str, &str)> =
            variables.iter().chain(&proxies).map(|(name, value)| (*name, value.as_str())).collect();
        // STS answers with XML: its request arrives, and its answer is refused.
        let _resolved = resolve(&all, &profile).await;
        asked += 1;
        assert!(server.requests().len() >= asked, "{profile}");
    }
    // The vendors' own addresses, which nobody answers here.
    for profile in [
        identity("azure-managed-identity", r#"{"provider_config":{"resource":"r"}}"#),
        identity("gcp-workload-identity", r#"{"provider_config":{"scopes":["a"]}}"#),
    ] {
        let all: Vec<(&str, &str)> = proxies.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(resolve(&all, &profile).await.unwrap_err().code(), Code::TokenRequestFailed);
    }
    assert!(proxy.requests().is_empty(), "{:?}", proxy.requests());
}
