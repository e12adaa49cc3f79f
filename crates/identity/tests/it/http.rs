//! Limits of the HTTP client.

use std::time::Duration;

use proctor_identity::environment::Environment;
use proctor_identity::http::{Address, Client, MAX_BODY_BYTES};
use proctor_proof::sources::{Fetch, FetchError};

use crate::server::{Answer, Server, ok};

fn client() -> Client {
    let variables: [(&str, &str); 0] = [];
    Client::new(&Environment::new(variables, "/")).with_time_limit(Duration::from_millis(500))
}

async fn fetch(answer: Answer) -> Result<Vec<u8>, FetchError> {
    let server = Server::new(vec![answer]).await;
    let url = format!("{}/keys?hunter2", server.url);
    let result = Fetch::get(&client(), &url).await;
    if let Err(error) = &result {
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("127.0.0.1"), "{error:?}");
    }
    result.map(|fetched| fetched.body)
}

#[tokio::test]
async fn answers_are_bounded_in_time_and_size() {
    assert_eq!(fetch(ok("{}")).await, Ok(b"{}".to_vec()));
    assert!(matches!(fetch(Answer::Silence).await, Err(FetchError::Timeout(_))));
    assert_eq!(fetch(Answer::Endless).await, Err(FetchError::TooLong(MAX_BODY_BYTES)));
    assert_eq!(fetch(ok(&"x".repeat(MAX_BODY_BYTES + 1))).await, Err(FetchError::TooLong(MAX_BODY_BYTES)));
    assert!(matches!(fetch(Answer::Close).await, Err(FetchError::Unreachable(_))));
    assert_eq!(fetch(Answer::Reply(503, "", "hunter2".to_owned())).await, Err(FetchError::Status(503)));
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let other = Server::new(vec![ok("{}")]).await;
    let location: &'static str = Box::leak(format!("location: {}/hunter2\r\n", other.url).into_boxed_str());
    for status in [301, 302, 303, 307, 308] {
        let answer = Answer::Reply(status, location, String::new());
        assert_eq!(fetch(answer).await, Err(FetchError::Redirect));
    }
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn a_proxy_is_not_used_for_this_machine() {
    let proxy = Server::new(vec![ok("from the proxy")]).await;
    let server = Server::new(vec![ok("direct")]).await;
    let names = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"];
    let environment = Environment::new(names.map(|name| (name, proxy.url.as_str())), "/");
    let reply = Client::new(&environment).get(&Address::endpoint(&server.url).unwrap(), &[]).await.unwrap();
    assert_eq!(reply.body.as_slice(), b"direct");
    assert!(proxy.requests().is_empty());
}

#[tokio::test]
async fn other_hosts_are_reached_through_the_proxy() {
    let proxy = Server::new(vec![Answer::Reply(403, "", String::new())]).await;
    let environment = Environment::new([("HTTPS_PROXY", proxy.url.as_str())], "/");
    let client = Client::new(&environment).with_time_limit(Duration::from_secs(5));
    let address = Address::endpoint("https://id.example/token").unwrap();
    assert!(client.get(&address, &[]).await.is_err());
    assert!(proxy.requests()[0].starts_with("CONNECT id.example:443 "));
}

#[tokio::test]
async fn freshness_is_read_from_the_answer() {
    for (header, expected) in [
        ("cache-control: public, max-age=60\r\n", Some(60)),
        ("cache-control: no-store, max-age=60\r\n", Some(0)),
        ("", None),
    ] {
        let server = Server::new(vec![Answer::Reply(200, header, "{}".to_owned())]).await;
        let fetched = Fetch::get(&client(), &server.url).await.unwrap();
        assert_eq!(fetched.max_age, expected.map(Duration::from_secs));
    }
}

#[tokio::test]
async fn a_server_that_is_down_is_an_error() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    assert!(matches!(Fetch::get(&client(), &url).await, Err(FetchError::Unreachable(_))));
}

#[tokio::test]
async fn key_sets_of_bad_servers_verify_nothing() {
    use proctor_proof::jwt::{Expected, JwtError, KeyCache, KeySource};
    let expected = Expected {
        issuer: None,
        audience: None,
        now: proctor_core::time::Timestamp::from_micros(0),
        skew: Duration::from_secs(60),
    };
    // `{"alg":"EdDSA","kid":"k"}` and `{"exp":9}`: the set is fetched before the signature counts.
    let token = "eyJhbGciOiJFZERTQSIsImtpZCI6ImsifQ.eyJleHAiOjl9.AAAA";
    let elsewhere = Server::new(vec![ok(r#"{"keys":[]}"#)]).await;
    let location: &'static str = Box::leak(format!("location: {}/\r\n", elsewhere.url).into_boxed_str());
    for (answer, problem) in [
        (Answer::Silence, Some(FetchError::Timeout(Duration::from_millis(500)))),
        (Answer::Endless, Some(FetchError::TooLong(MAX_BODY_BYTES))),
        (Answer::Reply(302, location, String::new()), Some(FetchError::Redirect)),
        (Answer::Reply(500, "", String::new()), Some(FetchError::Status(500))),
        (Answer::Close, None),
    ] {
        let server = Server::new(vec![answer]).await;
        let cache = KeyCache::new(std::sync::Arc::new(client()));
        let verdict = cache.verify(token, KeySource::Url(&server.url), &expected).await.unwrap_err();
        match problem {
            Some(problem) => assert_eq!(verdict, JwtError::Fetch(problem)),
            None => assert!(matches!(verdict, JwtError::Fetch(FetchError::Unreachable(_))), "{verdict:?}"),
        }
    }
    assert!(elsewhere.requests().is_empty());
}
