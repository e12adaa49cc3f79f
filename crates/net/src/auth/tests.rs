use super::*;

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
}

fn credentials() -> Credentials {
    Credentials::none().with_secret("build", SecretKind::Bearer, "b-secret".to_owned()).with_secret(
        "laptop",
        SecretKind::ApiKey,
        "k-secret".to_owned(),
    )
}

fn identify(of: &Credentials, pairs: &[(&'static str, &str)], uri: &str) -> Result<Identity, u16> {
    let own = ConnectionInfo::new("127.0.0.1:1".parse().unwrap(), None)
        .of_user(rustix::process::geteuid().as_raw());
    of.identify(&headers(pairs), &uri.parse().unwrap(), Some(&own))
        .map_err(|refused| refused.status().as_u16())
}

#[test]
fn secrets_are_known_by_header_and_by_query_each_in_its_own_kind() {
    let door = credentials();
    let build = Ok(Identity::Token("build".to_owned()));
    let laptop = Ok(Identity::Token("laptop".to_owned()));
    assert_eq!(identify(&door, &[("authorization", "Bearer b-secret")], "/ahp"), build);
    assert_eq!(identify(&door, &[("authorization", "bearer  b-secret ")], "/ahp"), build);
    assert_eq!(identify(&door, &[("x-api-key", "k-secret")], "/ahp"), laptop);
    assert_eq!(identify(&door, &[], "/ahp?token=b-secret"), build);
    assert_eq!(identify(&door, &[], "/ahp?x=1&api_key=k%2Dsecret"), laptop);
    assert_eq!(identify(&door, &[("authorization", "Bearer b-secret")], "/ahp?token=wrong"), build);
}

#[test]
fn everything_else_is_unauthorized() {
    let door = credentials();
    for pairs in [
        &[][..],
        &[("authorization", "Bearer k-secret")],
        &[("authorization", "Bearer ")],
        &[("authorization", "Basic b-secret")],
        &[("authorization", "b-secret")],
        &[("x-api-key", "b-secret")],
        &[("x-api-key", "")],
        &[("host", "localhost")],
    ] {
        assert_eq!(identify(&door, pairs, "/ahp"), Err(401), "{pairs:?}");
    }
    assert_eq!(identify(&door, &[], "/ahp?token=k-secret"), Err(401));
    assert_eq!(identify(&door, &[("authorization", "Bearer x")], "/ahp?token=b-secret"), Err(401));
}

#[test]
fn certificates_open_only_where_they_are_asked_for() {
    let address = "10.0.0.9:1".parse().unwrap();
    let shown = ConnectionInfo::new(address, Some("agent.example".to_owned()));
    let none = ConnectionInfo::new(address, None);
    let ask = |of: &Credentials, info| of.identify(&HeaderMap::new(), &Uri::from_static("/"), Some(info));
    let door = Credentials::none().with_client_certificates();
    assert_eq!(ask(&door, &shown), Ok(Identity::Certificate("agent.example".to_owned())));
    assert_eq!(ask(&door, &none).unwrap_err().status(), 401);
    assert_eq!(ask(&credentials(), &shown).unwrap_err().status(), 401);
}

#[test]
fn without_credentials_this_machine_may_call_and_web_pages_may_not() {
    let door = Credentials::none();
    assert_eq!(identify(&door, &[("host", "127.0.0.1:8080")], "/ahp"), Ok(Identity::Loopback));
    assert_eq!(identify(&door, &[], "http://[::1]:1/ahp"), Ok(Identity::Loopback));
    assert_eq!(identify(&door, &[], "/ahp"), Err(403));
    assert_eq!(identify(&door, &[("host", "rebound.example")], "/ahp"), Err(403));
    let page = [("host", "localhost:1"), ("origin", "https://evil.example")];
    assert_eq!(identify(&door, &page, "/ahp"), Err(403));
    let own = [("host", "localhost:1"), ("origin", "http://localhost:1")];
    assert_eq!(identify(&door, &own, "/ahp"), Ok(Identity::Loopback));
    let far = ConnectionInfo::new("192.0.2.1:9".parse().unwrap(), None);
    let asked = door.identify(&headers(&[("host", "localhost")]), &Uri::from_static("/"), Some(&far));
    assert_eq!(asked.unwrap_err().status(), 403);
}

#[test]
fn without_credentials_other_users_and_unknown_ones_are_refused() {
    let door = Credentials::none();
    let own = rustix::process::geteuid().as_raw();
    let host = headers(&[("host", "localhost")]);
    let info = ConnectionInfo::new("127.0.0.1:9".parse().unwrap(), None);
    let ask = |info: Option<&ConnectionInfo>| door.identify(&host, &Uri::from_static("/"), info);
    assert_eq!(ask(Some(&info.clone().of_user(own))), Ok(Identity::Loopback));
    // Root, too, unless it is this user.
    for other in [own + 1, own.wrapping_sub(1)] {
        let refused = ask(Some(&info.clone().of_user(other))).unwrap_err();
        assert_eq!(refused.status(), 401);
        assert!(refused.reason().contains("another one"), "{refused}");
    }
    assert_eq!(ask(Some(&info)).unwrap_err().status(), 401);
    assert_eq!(ask(None).unwrap_err().status(), 401);
    // With credentials, they are what counts.
    let asked = credentials().identify(
        &headers(&[("authorization", "Bearer b-secret")]),
        &Uri::from_static("/"),
        Some(&info.of_user(own + 1)),
    );
    assert_eq!(asked, Ok(Identity::Token("build".to_owned())));
}

#[test]
fn beyond_loopback_one_listens_with_credentials_only() {
    for address in ["127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
        assert_eq!(may_listen(address.parse().unwrap(), false), Ok(()));
    }
    for address in ["0.0.0.0:1", "[::]:1", "192.0.2.1:1"] {
        assert!(may_listen(address.parse().unwrap(), false).unwrap_err().to_string().contains(address));
        assert_eq!(may_listen(address.parse().unwrap(), true), Ok(()));
    }
}

#[test]
fn secrets_do_not_show() {
    let shown = format!("{:?}", credentials());
    assert!(shown.contains("laptop") && !shown.contains("secret"), "{shown}");
}
