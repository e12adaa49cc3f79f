//! Key sets: choice of the key, caching, rotation.

use std::sync::Arc;
use std::time::Duration;

use proctor_proof::jwt::{Expected, JwksError, JwtError, KeyCache, KeySet, KeySource, MAX_JWKS, verify};
use proctor_proof::sources::{FetchError, Fetched};

use crate::support::{
    NOW, OTHER_RSA, RSA, Server, TestKey, at, claims, ed25519, expected, json, key_set, p256, run, token,
};

const URL: &str = "https://issuer.example/keys";

fn signed(kid: &str, key: &TestKey) -> String {
    token(&format!(r#"{{"alg":"RS256","kid":"{kid}"}}"#), &claims(""), key)
}

fn set(keys: Vec<proctor_core::json::Json>) -> KeySet {
    KeySet::from_jwks(&key_set(keys)).unwrap()
}

#[test]
fn the_key_is_chosen_by_id_kind_use_operations_and_algorithm() {
    let token_a = signed("a", &RSA);
    let judge = |keys| verify(&token_a, &set(keys), &expected()).map(|_| ());
    let other = || OTHER_RSA.jwk(r#"{"kid":"b"}"#);
    assert_eq!(
        judge(vec![other(), RSA.jwk(r#"{"kid":"a","use":"sig","alg":"RS256","key_ops":["verify"]}"#)]),
        Ok(())
    );
    // The same id on a key of another kind is no candidate.
    assert_eq!(judge(vec![p256().jwk(r#"{"kid":"a"}"#), RSA.jwk(r#"{"kid":"a"}"#)]), Ok(()));
    for unfit in [
        r#"{"kid":"a","use":"enc"}"#,
        r#"{"kid":"a","key_ops":["sign"]}"#,
        r#"{"kid":"a","key_ops":"verify"}"#,
        r#"{"kid":"a","alg":"HS256"}"#,
        r#"{"kid":"a","alg":"ES256"}"#,
        r#"{"kid":"b"}"#,
        r#"{"kid":7}"#,
        "{}",
    ] {
        assert_eq!(judge(vec![RSA.jwk(unfit)]), Err(JwtError::UnknownKey), "{unfit}");
    }
    assert_eq!(judge(vec![RSA.jwk(r#"{"kid":"a","alg":"PS256"}"#)]), Err(JwtError::AlgorithmMismatch));
    let octets = json(r#"{"kty":"oct","k":"AAAA","kid":"a"}"#);
    assert_eq!(judge(vec![octets]), Err(JwtError::UnknownKey));
    assert_eq!(judge(vec![]), Err(JwtError::UnknownKey));
}

#[test]
fn an_ambiguous_key_is_a_failure() {
    let twice = || vec![RSA.jwk(r#"{"kid":"a"}"#), OTHER_RSA.jwk(r#"{"kid":"a"}"#)];
    assert_eq!(verify(&signed("a", &RSA), &set(twice()), &expected()), Err(JwtError::AmbiguousKey));
    let nameless = token(r#"{"alg":"RS256"}"#, &claims(""), &RSA);
    assert_eq!(verify(&nameless, &set(twice()), &expected()), Err(JwtError::AmbiguousKey));
    let one = vec![RSA.jwk(r#"{"kid":"a"}"#), ed25519().jwk(r#"{"kid":"b"}"#)];
    assert!(verify(&nameless, &set(one), &expected()).is_ok(), "only one key fits the algorithm");
}

#[test]
fn hostile_sets_are_refused() {
    assert_eq!(KeySet::from_jwks(&vec![b' '; MAX_JWKS + 1]), Err(JwksError::TooLong));
    assert_eq!(KeySet::from_jwks(b"{}"), Err(JwksError::NoKeys));
    assert_eq!(KeySet::from_jwks(b"[]"), Err(JwksError::NoKeys));
    assert!(matches!(KeySet::from_jwks(b"<html>"), Err(JwksError::NotJson(_))));
    assert!(matches!(KeySet::from_jwks(br#"{"keys":[],"keys":[]}"#), Err(JwksError::NotJson(_))));
    let many = vec![json("{}"); 101];
    assert_eq!(KeySet::from_jwks(&key_set(many)), Err(JwksError::TooManyKeys));
    let deep = format!(r#"{{"keys":{}{}}}"#, "[".repeat(1000), "]".repeat(1000));
    assert!(matches!(KeySet::from_jwks(deep.as_bytes()), Err(JwksError::NotJson(_))));
    // Coordinates of another length could shift bytes from one into the other.
    let short = json(r#"{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}"#);
    assert!(set(vec![short, json(r#"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#)]).is_empty());
}

struct Cached {
    cache: KeyCache,
    server: Server,
}

impl Cached {
    fn new(server: Server) -> Cached {
        Cached { cache: KeyCache::new(Arc::new(server.clone())), server }
    }

    fn verify(&self, token: &str, seconds: i64) -> Result<(), JwtError> {
        let expected = Expected { now: at(NOW + seconds), ..expected() };
        run(self.cache.verify(token, KeySource::Url(URL), &expected)).map(|_| ())
    }
}

#[test]
fn a_set_is_kept_while_it_is_fresh() {
    for (max_age, fresh, stale) in [(Some(30), 29, 30), (None, 299, 300), (Some(10_000_000), 310, 86_400)] {
        let cached = Cached::new(Server::of_keys(vec![RSA.jwk(r#"{"kid":"a"}"#)], max_age));
        let lasting = token(r#"{"alg":"RS256","kid":"a"}"#, &format!(r#"{{"exp":{}}}"#, NOW + 100_000), &RSA);
        for seconds in [0, fresh] {
            assert_eq!(cached.verify(&lasting, seconds), Ok(()));
        }
        assert_eq!(cached.server.requests(), 1, "{max_age:?}");
        assert_eq!(cached.verify(&lasting, stale), Ok(()));
        assert_eq!(cached.server.requests(), 2, "{max_age:?}");
        // A clock that was set back does not make the set fresh.
        assert_eq!(cached.verify(&lasting, -5), Ok(()));
        assert_eq!(cached.server.requests(), 3);
    }
    let uncached = Cached::new(Server::of_keys(vec![RSA.jwk(r#"{"kid":"a"}"#)], Some(0)));
    for requests in 1..4 {
        assert_eq!(uncached.verify(&signed("a", &RSA), 0), Ok(()));
        assert_eq!(uncached.server.requests(), requests);
    }
}

#[test]
fn a_rotated_key_is_fetched_at_most_once_a_minute() {
    let cached = Cached::new(Server::of_keys(vec![RSA.jwk(r#"{"kid":"old"}"#)], Some(3600)));
    let (old, new) = (signed("old", &RSA), signed("new", &OTHER_RSA));
    assert_eq!(cached.verify(&old, 0), Ok(()));
    assert_eq!(cached.verify(&new, 1), Err(JwtError::UnknownKey));
    assert_eq!(cached.server.requests(), 2);
    cached.server.serves(vec![OTHER_RSA.jwk(r#"{"kid":"new"}"#)]);
    // A flood of unknown ids reaches the server once a minute.
    for seconds in 2..61 {
        assert_eq!(cached.verify(&signed("forged", &RSA), seconds), Err(JwtError::UnknownKey));
    }
    assert_eq!(cached.server.requests(), 2);
    assert_eq!(cached.verify(&new, 61), Ok(()));
    assert_eq!(cached.server.requests(), 3);
    assert_eq!(cached.verify(&old, 62), Err(JwtError::UnknownKey), "a withdrawn key is not used");
    // A wrong algorithm is no unknown key.
    let mismatch = token(r#"{"alg":"ES256","kid":"new"}"#, &claims(""), &p256());
    assert_eq!(cached.verify(&mismatch, 200), Err(JwtError::AlgorithmMismatch));
    assert_eq!(cached.server.requests(), 3);
}

#[test]
fn a_set_that_cannot_be_fetched_is_a_failure() {
    let token = signed("a", &RSA);
    for problem in [
        FetchError::Unreachable("connection refused".to_owned()),
        FetchError::Timeout(Duration::from_secs(10)),
        FetchError::TooLong(1),
        FetchError::Redirect,
        FetchError::Status(503),
    ] {
        let cached = Cached::new(Server::of_keys(vec![RSA.jwk(r#"{"kid":"a"}"#)], Some(10)));
        assert_eq!(cached.verify(&token, 0), Ok(()));
        cached.server.answers(Err(problem.clone()));
        assert_eq!(cached.verify(&token, 9), Ok(()));
        assert_eq!(cached.verify(&token, 10), Err(JwtError::Fetch(problem)), "an expired set is not used");
    }
    let html = Cached::new(Server::new(Ok(Fetched { body: b"<html>".to_vec(), max_age: None })));
    assert!(matches!(html.verify(&token, 0), Err(JwtError::Jwks(JwksError::NotJson(_)))));
}

#[test]
fn only_safe_addresses_are_asked() {
    let server = Server::of_keys(vec![RSA.jwk(r#"{"kid":"a"}"#)], None);
    let cache = KeyCache::new(Arc::new(server.clone()));
    let judge = |url| run(cache.verify(&signed("a", &RSA), KeySource::Url(url), &expected())).is_ok();
    for url in ["https://a/k", "http://127.0.0.1:8080/k", "http://localhost/k", "http://[::1]:1/k"] {
        assert!(judge(url), "{url}");
    }
    assert_eq!(server.requests(), 4);
    for url in [
        "http://issuer.example/k",
        "http://127.0.0.1@evil.example/k",
        "http://localhost.evil.example/",
        "file:///etc/passwd",
        "",
        "HTTPS//x",
    ] {
        assert!(!judge(url), "{url}");
    }
    assert_eq!(server.requests(), 4);
}
