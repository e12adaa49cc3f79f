//! Roles of AWS.

use proctor_core::time::Timestamp;
use proctor_wire::agentcli::error::Code;

use super::{credential, field, identity, resolve, resolve_in};
use crate::server::{Answer, Server, ok};

const ROLE: &str = "arn:aws:iam::123456789012:role/demo";

fn answer(action: &str, expiration: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<{action}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{action}Result>\
         <AssumedRoleUser><Arn>arn:x</Arn></AssumedRoleUser><Credentials><AccessKeyId>ASIAhunter2</AccessKeyId>\
         <SecretAccessKey>hunter2&amp;&#x2F;key</SecretAccessKey><SessionToken>hunter2-session==</SessionToken>\
         <Expiration>{expiration}</Expiration></Credentials></{action}Result></{action}Response>"
    )
}

fn profile(more: &str) -> proctor_core::json::Json {
    identity("aws-sts-assume-role", &format!(r#"{{"provider_config":{{"role_arn":"{ROLE}"{more}}}}}"#))
}

fn variables(server: &Server) -> Vec<(&'static str, &str)> {
    vec![
        ("AWS_ENDPOINT_URL_STS", server.url.as_str()),
        ("AWS_ACCESS_KEY_ID", "AKIAhunter2"),
        ("AWS_SECRET_ACCESS_KEY", "hunter2-long-lived"),
        ("AWS_SESSION_TOKEN", "hunter2-caller-session"),
    ]
}

#[tokio::test]
async fn a_role_is_assumed_with_a_signed_request() {
    let server = Server::new(vec![ok(&answer("AssumeRole", "2025-01-01T01:00:00Z"))]).await;
    let profile =
        profile(r#","region":"eu-central-1","external_id":"ext","session_name":"s1","duration_seconds":900"#);
    let session = resolve(&variables(&server), &profile).await.unwrap();
    assert_eq!(credential(&session, "access_token").as_deref(), Ok("hunter2-session=="));
    assert_eq!(credential(&session, "access_key_id").as_deref(), Ok("ASIAhunter2"));
    assert_eq!(credential(&session, "secret_access_key").as_deref(), Ok("hunter2&/key"));
    assert_eq!(session.expires_at, Timestamp::parse("2025-01-01T01:00:00Z"));
    assert_eq!(session.principal(), Some(ROLE));
    let described = session.describe();
    assert_eq!(described.pointer("/delegation_chain/0/principal").unwrap(), &"[REDACTED]");
    assert_eq!(described.pointer("/delegation_chain/1/principal").unwrap(), &ROLE);

    let request = &server.requests()[0];
    for (name, value) in [
        ("Action", "AssumeRole"),
        ("Version", "2011-06-15"),
        ("RoleArn", ROLE),
        ("RoleSessionName", "s1"),
        ("DurationSeconds", "900"),
        ("ExternalId", "ext"),
    ] {
        assert_eq!(field(request, name).as_deref(), Some(value), "{request}");
    }
    let scope = "authorization: AWS4-HMAC-SHA256 Credential=AKIAhunter2/20250101/eu-central-1/sts/aws4_request, \
                 SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, Signature=";
    assert!(request.contains(scope) && request.contains("x-amz-date: 20250101T000000Z"), "{request}");
    assert!(request.contains("x-amz-security-token: hunter2-caller-session"), "{request}");
    // The signature covers these headers as they are sent.
    assert!(request.contains(&format!("host: {}\r\n", server.authority)), "{request}");
    assert!(
        request.contains("content-type: application/x-www-form-urlencoded; charset=utf-8\r\n"),
        "{request}"
    );
}

#[tokio::test]
async fn a_web_identity_needs_no_keys() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("token"), "hunter2-web-identity\n").unwrap();
    let server = Server::new(vec![ok(&answer("AssumeRoleWithWebIdentity", "2025-01-01T01:00:00Z"))]).await;
    let path = folder.path().join("token");
    let variables = [
        ("AWS_ENDPOINT_URL_STS", server.url.as_str()),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", path.to_str().unwrap()),
    ];
    let session = resolve_in(folder.path(), &variables, &profile("")).await.unwrap();
    assert_eq!(credential(&session, "session_token").as_deref(), Ok("hunter2-session=="));
    let request = &server.requests()[0];
    assert_eq!(field(request, "Action").as_deref(), Some("AssumeRoleWithWebIdentity"));
    assert_eq!(field(request, "WebIdentityToken").as_deref(), Some("hunter2-web-identity"));
    assert!(!request.contains("authorization:"), "{request}");
}

#[tokio::test]
async fn refusals_and_bad_answers_are_failures() {
    let refusal = "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code>\
                   <Message>AKIAhunter2 may not</Message></Error></ErrorResponse>";
    let server = Server::new(vec![Answer::Reply(403, "", refusal.to_owned())]).await;
    let error = resolve(&variables(&server), &profile("")).await.unwrap_err();
    assert!(error.to_string().ends_with("status 403 and error `AccessDenied`"), "{error}");

    let good = answer("AssumeRole", "2025-01-01T01:00:00Z");
    for bad in [
        answer("AssumeRole", "2024-12-31T23:59:59Z"),
        answer("AssumeRole", "tomorrow"),
        good.replace("<SessionToken>hunter2-session==</SessionToken>", ""),
        good.replace("</AssumeRoleResponse>", ""),
        good.replace("&amp;", "&bomb;"),
        format!("<!DOCTYPE x [<!ENTITY bomb \"hunter2\">]>{good}"),
        "<a>".repeat(100_000),
    ] {
        let server = Server::new(vec![ok(&bad)]).await;
        let error = resolve(&variables(&server), &profile("")).await.unwrap_err();
        assert_eq!(error.code(), Code::TokenRequestFailed, "{error}");
    }
}

#[tokio::test]
async fn unfit_settings_are_refused_before_anything_is_sent() {
    let server = Server::new(vec![ok("")]).await;
    for more in
        [r#","region":"eu.evil.example/""#, r#","duration_seconds":1"#, r#","duration_seconds":"900""#]
    {
        let error = resolve(&variables(&server), &profile(more)).await.unwrap_err();
        assert_eq!(error.code(), Code::IdentityProfileInvalid, "{more}");
    }
    let error = resolve(&[("AWS_ENDPOINT_URL_STS", &server.url)], &profile("")).await.unwrap_err();
    assert_eq!(error.code(), Code::TokenNotFound);
    assert!(server.requests().is_empty());
}
