use super::*;
use crate::delegation::{self, DelegationPolicy};
use proctor_mask::MARK;

fn session() -> Session {
    let chain = vec![Hop::new("service", "agent://a", "bearer-token")];
    Session {
        provider: "env-bearer",
        subject: Subject {
            principal: Some("agent://a".to_owned()),
            issuer: None,
            run_as: Some("svc".to_owned()),
        },
        instance: Some("one".to_owned()),
        trust: Trust::from_json(None),
        delegation: delegation::validate(&chain, &DelegationPolicy::from_json(None)),
        chain,
        credentials: vec![
            Credential::new("api_key", Secret::new("hunter2-token")).with("other", Secret::new("part")),
        ],
        assertions: Json::object().with("echo", "the server said hunter2-token and clientsecret"),
        is_refreshable: false,
        expires_at: Some(Timestamp::from_micros(0)),
        handoff: Handoff { mode: "none".to_owned(), is_prepared: false },
        unresolved: None,
        is_optional: false,
        credential_types: &["access_token"],
        used: vec![Secret::new("clientsecret")],
    }
}

#[test]
fn the_description_has_the_protocols_members_and_no_credential() {
    let session = session();
    let shown = session.describe();
    let names: Vec<&str> = shown.as_object().unwrap().iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "provider",
            "subject",
            "instance",
            "trust",
            "delegation_chain",
            "delegation_validation",
            "credentials",
            "provider_assertions",
            "refresh",
            "handoff",
            "credential_summary"
        ]
    );
    assert_eq!(
        shown["credentials"].to_string(),
        format!(r#"{{"api_key":{{"value":"{MARK}","other":"{MARK}"}}}}"#)
    );
    assert_eq!(
        shown["trust"].to_string(),
        r#"{"declared_level":"supervised","effective_level":"supervised"}"#
    );
    let all = format!("{shown} {session:?}");
    assert!(!shown.to_string().contains("hunter2") && !shown.to_string().contains("clientsecret"), "{shown}");
    assert!(all.contains("agent://a"));
    assert!(!format!("{:?}", session.credentials).contains("hunter2"));
}

#[test]
fn values_are_found_by_path() {
    let session = session();
    let token = Lookup::Credential(Secret::new("hunter2-token"));
    assert_eq!(session.lookup("credentials.api_key.value"), Ok(token.clone()));
    assert_eq!(session.lookup("credentials.access_token.value"), Ok(token));
    assert_eq!(session.lookup("subject.run_as"), Ok(Lookup::Plain("svc".to_owned())));
    assert_eq!(session.lookup("credentials.api_key").unwrap().text(), Some(Secret::new("hunter2-token")));
    assert_eq!(
        session.lookup("credentials").unwrap().json().expose(),
        r#"{"api_key":{"value":"hunter2-token","other":"part"}}"#
    );
    for missing in
        ["", "credentials.none.value", "subject.issuer", "subject", "a.b.c.d", "credentials.api_key.x"]
    {
        assert_eq!(session.lookup(missing), Err(LookupError::Missing), "{missing}");
    }
    for forbidden in ["provider_assertions", "delegation_chain.0.principal", "provider_assertions.echo"] {
        assert_eq!(session.lookup(forbidden), Err(LookupError::Forbidden), "{forbidden}");
    }
}

#[test]
fn autonomy_never_exceeds_its_ceiling() {
    let trust = |text: &str| Trust::from_json(Some(&Json::parse(text.as_bytes()).unwrap()));
    let capped = trust(r#"{"level":"autonomous","constraints":{"max_autonomy":"restricted"}}"#);
    assert_eq!((capped.declared, capped.effective), (Some(TrustLevel::Autonomous), TrustLevel::Restricted));
    let lower = trust(r#"{"level":"untrusted","constraints":{"max_autonomy":"autonomous"}}"#);
    assert_eq!(lower.effective, TrustLevel::Untrusted);
    assert_eq!(trust(r#"{"level":null}"#).effective, TrustLevel::Supervised);
}

#[test]
fn all_secrets_are_masked_later() {
    let secrets = session().secrets();
    assert_eq!(secrets.len(), 3);
    assert!(secrets.contains(&Secret::new("clientsecret")));
}
