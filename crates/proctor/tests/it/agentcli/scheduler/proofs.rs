//! Proofs at `apply`: bound to the manifest, and used up by the apply that changes something.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ed25519_dalek::{Signer as _, SigningKey};
use proctor_core::json::Json;
use proctor_wire::agentcli::canonical;

use super::super::place::{Place, at};
use super::{actions, calls, place};

/// Beginning of an Ed25519 public key in DER (RFC 8410).
const DER: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

pub fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

pub fn pem(key: &SigningKey) -> String {
    let der = [&DER[..], key.verifying_key().as_bytes()].concat();
    format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(der))
}

/// A manifest whose only task needs a token of this key.
fn manifest(key: &SigningKey, cron: &str) -> String {
    let profile = format!(
        r#"{{"id":"p","method":"jwt","public_key":{},"proof":{{"value_from":{{"env":"PROOF"}}}}}}"#,
        Json::from(pem(key))
    );
    format!(
        r#"{{"version":"0.2","authorization_proof_profiles":[{profile}],"workflows":[{{"id":"w","name":"W","authorization_proof":{{"ref":"p"}},"tasks":[{{"id":"a","name":"A","target":{{"session_target":"shell"}},"shell":{{"program":"echo"}},"schedule":{{"cron":"{cron}"}}}}]}}]}}"#
    )
}

/// A token for a manifest; `more` are claims, each with its comma.
pub fn token(key: &SigningKey, manifest: &str, more: &str) -> String {
    signed(key, &claims(manifest, 4_102_444_800, more))
}

fn claims(manifest: &str, expires: u64, more: &str) -> String {
    let digest = canonical::digest(&Json::parse(manifest.as_bytes()).unwrap()).unwrap();
    format!(r#"{{"iss":"i","exp":{expires},"nbf":1,{more}"manifest_digest":"{digest}"}}"#)
}

fn signed(key: &SigningKey, claims: &str) -> String {
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let text = format!("{}.{}", encode(r#"{"alg":"EdDSA"}"#), encode(claims));
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(key.sign(text.as_bytes()).to_bytes()))
}

/// Deletes the only job of the scheduler, so that the next apply changes something.
fn forget(place: &Place) {
    let database = rusqlite::Connection::open(place.path("scheduler.db")).unwrap();
    assert_eq!(database.execute("DELETE FROM jobs", []).unwrap(), 1);
}

#[test]
fn the_second_apply_that_changes_something_with_the_same_proof_is_a_replay() {
    let mut place = place(&[("STAND_IN_FEATURES", "{}")]);
    let key = key(7);
    let document = manifest(&key, "0 9 * * *");
    place.write("m.json", &document);
    place.set("PROOF", &token(&key, &document, r#""jti":"one","#));
    // Looking is not using.
    place.good(&["apply", "m.json", "--dry-run"]);
    place.good(&["authorization-proof", "verify", "m.json", "a"]);
    let first = place.good(&["apply", "m.json"]);
    assert_eq!(actions(&first), ["created A"]);
    let verification = at(&first, "/authorization_proof_verifications/0");
    assert_eq!(at(verification, "/authorization_proof_ref").as_str(), Some("p"));
    assert_eq!(at(verification, "/verification/verified"), &Json::Bool(true));
    assert_eq!(at(&first, "/actions/0/authorization_proof_verification/method").as_str(), Some("jwt"));
    // An apply that changes nothing needs no new proof, and a run verifies without using.
    assert_eq!(actions(&place.good(&["apply", "m.json"])), ["updated A"]);
    place.good(&["exec", "m.json", "a"]);

    forget(&place);
    let refused = place.refused(&["apply", "m.json"], "authorization_proof_failed");
    assert!(refused.to_string().contains("used by an earlier apply"), "{refused}");
    // The same through RPC, by another process: the use is on record.
    let mut server = place.serve();
    let params = format!(r#"{{"manifest":{document}}}"#);
    server.refused("agentcli.apply", &params, -32000, "authorization_proof_failed");
    server.end();
    // Another token with the same `jti` is the same proof, also for another manifest.
    let changed = manifest(&key, "0 8 * * *");
    place.write("m.json", &changed);
    place.set("PROOF", &token(&key, &changed, r#""jti":"one","#));
    place.refused(&["apply", "m.json"], "authorization_proof_failed");
    assert_eq!(calls(&place).iter().filter(|call| *call == "jobs add").count(), 1);
    assert_eq!(place.proctor(&["manifest", "apply", "m.json"]).status.code(), Some(12));
    // Tokens without a `jti` are known by their digest.
    place.set("PROOF", &token(&key, &changed, ""));
    assert_eq!(actions(&place.good(&["apply", "m.json"])), ["created A"]);
    forget(&place);
    place.refused(&["apply", "m.json"], "authorization_proof_failed");
    place.set("PROOF", &token(&key, &changed, r#""jti":"two","#));
    assert_eq!(actions(&place.good(&["apply", "m.json"])), ["created A"]);
    assert!(place.proctor(&["audit", "fsck"]).status.success());
}

#[test]
fn proofs_that_do_not_hold_write_nothing() {
    let mut place = place(&[("STAND_IN_FEATURES", "{}")]);
    let key = key(7);
    let document = manifest(&key, "0 9 * * *");
    place.write("m.json", &document);
    let other = manifest(&key, "0 8 * * *");
    let good = token(&key, &document, "");
    let unsigned =
        format!("{}.{}.", URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#), good.split('.').nth(1).unwrap());
    for (kind, token) in [
        ("another manifest", token(&key, &other, "")),
        ("another key", token(&self::key(8), &document, "")),
        ("no algorithm", unsigned),
        ("half of it", good[..good.len() / 2].to_owned()),
        ("expired", signed(&key, &claims(&document, 1_000_000_000, ""))),
        ("not set", String::new()),
    ] {
        place.set("PROOF", &token);
        let (refused, code) = place.json(&["apply", "m.json"]);
        let said = at(&refused, "/code").as_str().unwrap();
        assert_eq!(code, 1, "{kind}");
        assert!(
            ["authorization_proof_failed", "authorization_proof_invalid", "resolution_failed"]
                .contains(&said),
            "{kind}: {refused}"
        );
        assert!(token.is_empty() || !refused.to_string().contains(&token), "{kind}: {refused}");
    }
    assert!(calls(&place).iter().all(|call| call != "jobs add"));
    place.set("PROOF", &good);
    place.good(&["apply", "m.json"]);
}
