//! Envelopes of evidence.

use jiff::tz::TimeZone;
use proctor_core::json::Json;
use proctor_proof::evidence::{EvidenceError, Payload, sign, signed_text, verify};
use proctor_proof::ssh::{AllowedSigners, PrivateKey};

use crate::ssh_keygen::{Folder, keygen};
use crate::support::{NOW, at, json};

fn payload() -> Json {
    let payload = Payload {
        execution_id: "0123".to_owned(),
        timestamp: "2026-06-01T00:00:00Z".to_owned(),
        source: json(r#"{"workflow_id":"w","task_id":"t"}"#),
        manifest_digest: "sha256:aa".to_owned(),
        effective_task_hash: "sha256:bb".to_owned(),
        contract: json(r#"{"sandbox":"strict","max_cost_usd":1.50}"#),
        ..Payload::default()
    };
    payload.to_json()
}

struct Fixture {
    folder: Folder,
    envelope: Json,
    signers: AllowedSigners,
}

fn fixture() -> Fixture {
    let folder = Folder::new();
    let key = PrivateKey::load(&folder.make_key("key", &["ed25519"])).unwrap();
    let envelope = sign(&payload(), "canonical-json", "ci@example.org", &key).unwrap();
    let lines = format!("ci@example.org namespaces=\"agentcli\" {}\n", folder.public("key"));
    folder.write("signers", lines.as_bytes());
    let signers = AllowedSigners::parse(&lines, &TimeZone::UTC).unwrap();
    Fixture { folder, envelope, signers }
}

#[test]
fn the_payload_has_the_documented_members() {
    let payload = payload();
    let names: Vec<&str> = payload.as_object().unwrap().iter().map(|(name, _)| name.as_str()).collect();
    let documented = "schema version execution_id timestamp source bindings declared_identity resolved_identity \
        authorization_proof authorization actor_context contract command result verify compliance_context";
    assert_eq!(names, documented.split_whitespace().collect::<Vec<_>>());
    assert_eq!(
        payload["bindings"],
        json(r#"{"manifest_digest":"sha256:aa","effective_task_hash":"sha256:bb"}"#)
    );
}

#[test]
fn ssh_keygen_accepts_the_envelope_without_its_signature() {
    let Fixture { folder, envelope, signers } = fixture();
    verify(&envelope, &signers, at(NOW)).unwrap();
    let signature = folder.write("signature", envelope["signature"].as_str().unwrap().as_bytes());
    let signers = folder.path("signers");
    let (signers, signature) = (signers.to_str().unwrap(), signature.to_str().unwrap());
    let arguments =
        ["-Y", "verify", "-n", "agentcli", "-I", "ci@example.org", "-f", signers, "-s", signature];
    keygen(&arguments, signed_text(&envelope).unwrap().as_bytes());
    // The order of members does not count.
    let mut members = envelope.as_object().unwrap().to_vec();
    members.reverse();
    verify(
        &Json::Object(members),
        &AllowedSigners::parse(&folder.read("signers"), &TimeZone::UTC).unwrap(),
        at(NOW),
    )
    .unwrap();
}

#[test]
fn any_change_is_found() {
    let Fixture { folder, envelope, signers } = fixture();
    let changed = |pointer: &str, value: &str| {
        let mut envelope = envelope.clone();
        assert!(envelope.set_pointer(pointer, json(value)), "{pointer}");
        verify(&envelope, &signers, at(NOW))
    };
    assert!(matches!(changed("/signed_payload/execution_id", r#""9""#), Err(EvidenceError::PayloadChanged)));
    assert!(matches!(changed("/payload_digest", r#""sha256:00""#), Err(EvidenceError::PayloadChanged)));
    for (pointer, value) in [("/payload_format", r#""json""#), ("/extra", "1")] {
        assert!(matches!(changed(pointer, value), Err(EvidenceError::Signer(_))), "{pointer}");
    }
    assert!(matches!(changed("/principal", r#""root@example.org""#), Err(EvidenceError::Signer(_))));
    for (pointer, value) in [
        ("/schema", r#""other""#),
        ("/version", "2"),
        ("/method", r#""none""#),
        ("/namespace", r#""git""#),
        ("/signature", "null"),
        ("/principal", "7"),
    ] {
        assert!(matches!(changed(pointer, value), Err(EvidenceError::Envelope(_))), "{pointer}");
    }
    // An envelope that names another key than its own, rightly signed.
    let key = PrivateKey::load(&folder.path("key")).unwrap();
    let mut forged = envelope.clone();
    forged.set_pointer("/key_fingerprint", Json::from("SHA256:other"));
    let text = signed_text(&forged).unwrap();
    let signature = proctor_proof::ssh::sign("agentcli", text.as_bytes(), &key).unwrap();
    forged.set_pointer("/signature", Json::from(signature));
    assert!(matches!(verify(&forged, &signers, at(NOW)), Err(EvidenceError::OtherKey)));
    assert!(matches!(verify(&json("[]"), &signers, at(NOW)), Err(EvidenceError::Envelope(_))));
}
