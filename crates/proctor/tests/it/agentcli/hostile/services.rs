//! Others that answer: schedulers, databases, key sets, token endpoints.

use std::time::{Duration, Instant};

use proctor_core::json::Json;

use super::super::place::{ALLOW, Place, at, manifest};
use super::super::scheduler;
use super::{Attacked, TIME, assert_unharmed, command, file};
use crate::attest_hostile::vendor::Vendor;

#[test]
fn hostile_answers_of_a_scheduler_are_errors() {
    for (fault, code) in [
        ("garbage:jobs list", "parse_error"),
        ("huge:jobs list", "scheduler_error"),
        ("deep:jobs list", "parse_error"),
        ("crash:jobs list", "scheduler_error"),
        ("endless-error:jobs list", "scheduler_error"),
        ("huge:jobs add", "scheduler_error"),
    ] {
        let place = scheduler::place(&[("STAND_IN_FAULT", fault)]);
        let mut attacked = Attacked::new(place);
        let params = format!(r#"{{"manifest":{}}}"#, scheduler::two_tasks("0.2", ""));
        let reply = attacked.call(fault, "apply", &params);
        assert_eq!(at(&reply, "/error/data/code").as_str(), Some(code), "{fault}: {reply}");
        assert!(reply.to_string().len() < 4096, "{fault}");
        let place = attacked.end();
        let written = scheduler::calls(&place).iter().any(|call| call == "jobs add");
        assert_eq!(written, fault.ends_with("add"), "{fault}");
    }
}

#[test]
fn hostile_databases_are_errors() {
    let place = Place::with_policy(ALLOW);
    let mut attacked = Attacked::new(place);
    for (what, statements) in [
        ("no table", "CREATE TABLE other (id TEXT)"),
        (
            "a view without end",
            "CREATE VIEW jobs AS WITH RECURSIVE n(created_at) AS (SELECT 1 UNION ALL SELECT created_at + 1 FROM n) SELECT created_at FROM n",
        ),
        (
            "a huge text",
            "CREATE TABLE jobs (id TEXT, created_at TEXT); INSERT INTO jobs VALUES (CAST(zeroblob(60000000) AS TEXT), 'x')",
        ),
        (
            "many large texts",
            "CREATE TABLE jobs (id TEXT, created_at TEXT); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20) INSERT INTO jobs SELECT CAST(zeroblob(3000000) AS TEXT), i FROM n",
        ),
        (
            "an expensive column",
            "CREATE TABLE jobs (id TEXT, created_at TEXT AS (hex(zeroblob(1000000)) LIKE '%a%b%c%d%e%') VIRTUAL); INSERT INTO jobs(id) VALUES ('a')",
        ),
    ] {
        let path = attacked.place.path("scheduler.db");
        let _ = std::fs::remove_file(&path);
        rusqlite::Connection::open(&path).unwrap().execute_batch(statements).unwrap();
        let reply = attacked.call(what, "inspect", r#"{"dbPath":"scheduler.db"}"#);
        assert!(reply.get("error").is_some(), "{what}: {reply}");
    }
    let bytes = std::fs::read(attacked.place.path("scheduler.db")).unwrap();
    for (what, from) in [("a damaged header", 0), ("a damaged schema", 100), ("damaged pages", 4096)] {
        let mut damaged = bytes.clone();
        damaged[from..from + 90].fill(0xff);
        file(&attacked.place, "scheduler.db", damaged);
        let reply = attacked.call(what, "inspect", r#"{"dbPath":"scheduler.db"}"#);
        assert!(reply.get("error").is_some(), "{what}: {reply}");
    }
    attacked.end();
}

#[test]
fn hostile_key_sets_and_tokens_are_errors() {
    let place = Place::with_policy(ALLOW);
    let key = r#"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#;
    let keys = |count: usize| format!(r#"{{"keys":[{}]}}"#, vec![key; count].join(","));
    let token = "eyJhbGciOiJSUzI1NiJ9.e30.AAAA";
    let sets = [
        ("no JSON", "<html>".to_owned()),
        ("a deep set", "[".repeat(100_000)),
        ("many keys", keys(20_000)),
        ("a large set", format!(r#"{{"keys":[],"x":"{}"}}"#, "x".repeat(8 << 20))),
        (
            "a large number",
            format!(r#"{{"keys":[{{"kty":"RSA","n":"{}","e":"AQAB"}}]}}"#, "A".repeat(1 << 20)),
        ),
        ("a symmetric key", r#"{"keys":[{"kty":"oct","k":"AAAA"}]}"#.to_owned()),
        (
            "a point off its curve",
            r#"{"keys":[{"kty":"EC","crv":"P-256","x":"AQAB","y":"AQAB"}]}"#.to_owned(),
        ),
    ];
    let document = manifest(
        r#""shell":{"program":"/bin/true"},"identity":{"ref":"p"}"#,
        r#""identity_profiles":[{"id":"p","provider":"spiffe-jwt-svid","auth":{"mode":"service","provider_config":{"svid_file":"svid","audience":"a","jwks_file":"jwks"}}}],"#,
    );
    let mut attacked = Attacked::new(place);
    let params = format!(r#"{{"manifest":{document},"taskId":"a"}}"#);
    file(&attacked.place, "svid", token);
    for (what, set) in sets {
        file(&attacked.place, "jwks", set);
        let reply = attacked.call(what, "identity.resolve", &params);
        assert!(reply.get("error").is_some(), "{what}: {reply}");
    }
    file(&attacked.place, "jwks", keys(1));
    for (what, token) in [
        ("a long token", "a.".repeat(1 << 20)),
        ("many dots", ".".repeat(10_000)),
        ("control characters", "a.\u{1}.b".to_owned()),
        ("a deep header", format!("{}.e30.AAAA", "W1tbW1tb".repeat(1000))),
    ] {
        file(&attacked.place, "svid", token);
        let reply = attacked.call(what, "identity.resolve", &params);
        assert!(reply.get("error").is_some(), "{what}: {reply}");
    }
    attacked.end();
}

#[test]
fn hostile_token_endpoints_and_policy_engines_are_errors() {
    let vendor = Vendor::start(|asked| match asked.path.rsplit('/').next().unwrap_or_default() {
        "huge" => (200, format!(r#"{{"access_token":"{}"}}"#, "x".repeat(8 << 20))),
        "deep" => (200, "[".repeat(100_000)),
        "html" => (200, "<html>".to_owned()),
        "empty" => (200, String::new()),
        "array" => (200, "[]".to_owned()),
        "control" => (200, r#"{"access_token":"a\u0000b","token_type":"Bearer"}"#.to_owned()),
        "text" => (200, r#"{"result":{"allow":"true"},"access_token":{"a":1}}"#.to_owned()),
        _ => (302, "{}".to_owned()),
    });
    let base = vendor.url();
    let mut attacked = Attacked::new(Place::with_policy(ALLOW));
    for word in ["huge", "deep", "html", "empty", "array", "control", "text", "redirect"] {
        let identity = manifest(
            r#""shell":{"program":"/bin/true"},"identity":{"ref":"p"}"#,
            &format!(
                r#""identity_profiles":[{{"id":"p","provider":"oidc-client-credentials","auth":{{"mode":"service","provider_config":{{"token_endpoint":"{base}/{word}","client_id":"c","client_secret":"s"}}}}}}],"#
            ),
        );
        let reply =
            attacked.call(word, "identity.resolve", &format!(r#"{{"manifest":{identity},"taskId":"a"}}"#));
        assert!(reply.get("error").is_some(), "{word}: {reply}");
        let asked = manifest(
            r#""shell":{"program":"/bin/true"},"authorization":{"ref":"z"}"#,
            &format!(
                r#""authorization_profiles":[{{"id":"z","provider":"opa","provider_config":{{"endpoint":"{base}/{word}"}}}}],"#
            ),
        );
        let reply =
            attacked.call(word, "authorization.evaluate", &format!(r#"{{"manifest":{asked},"taskId":"a"}}"#));
        let allowed = reply.pointer("/result/decision/allowed").unwrap_or(&Json::Bool(false));
        assert_eq!(allowed, &Json::Bool(false), "{word}: {reply}");
    }
    attacked.end();
}

#[test]
fn tasks_that_write_without_end_are_cut_and_ended() {
    let place = Place::with_policy(ALLOW);
    let task = |script: &str, more: &str| {
        manifest(
            &format!(r#""shell":{{"program":"/bin/sh","args":["-c",{}]}}{more}"#, Json::from(script)),
            "",
        )
    };
    file(
        &place,
        "m.json",
        task("head -c 60000000 /dev/zero | tr '\\0' x; yes >&2", r#","runtime":{"timeout_ms":1500}"#),
    );
    let start = Instant::now();
    let (text, code) = command(&place, "output without end", &["exec", "m.json", "a"]);
    assert!(start.elapsed() < TIME + Duration::from_secs(2), "{:?}", start.elapsed());
    let result = Json::parse(text.as_bytes()).unwrap();
    assert_eq!((code, at(&result, "/result/timed_out")), (1, &Json::Bool(true)), "{}", text.len());
    assert_eq!(at(&result, "/result/stdout_truncated"), &Json::Bool(true));
    assert!(text.len() < 200_000, "{} bytes", text.len());
    // A bomb of processes ends with the run.
    file(&place, "m.json", task("for i in $(seq 50); do sleep 1000 & done; echo done", ""));
    let (text, code) = command(&place, "many processes", &["exec", "m.json", "a"]);
    let result = Json::parse(text.as_bytes()).unwrap();
    assert_eq!((code, at(&result, "/result/left_behind").to_string().as_str()), (0, "50"), "{text}");
    assert_unharmed(&place);
}
