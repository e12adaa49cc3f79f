//! Proofs of tasks, by their profiles.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::tz::TimeZone;
use proctor_core::json::Json;
use proctor_proof::jwt::{JwtError, KeyCache};
use proctor_proof::sources::SourceError;
use proctor_proof::ssh::{PrivateKey, sign};
use proctor_proof::verify::{Inputs, ProofError, Verified, verify};
use proctor_wire::agentcli::error::Code;

use crate::ssh_keygen::Folder;
use crate::support::{NOW, RSA, Server, Values, at, claims, ed25519, json, run, token};

const MANIFEST: &str = r#"{"version":"0.2"}"#;
const DIGEST: &str = "sha256:7b74eb5ab0eb2f043bd11b16e5f6bc36247f699894b298271008cbb9d2bd55f9";

fn check_with(proof: &Json, values: &Values, server: &Server) -> Result<Verified, ProofError> {
    let inputs = Inputs {
        proof,
        manifest_text: MANIFEST,
        manifest_digest: DIGEST,
        task_hash: "sha256:task",
        now: at(NOW),
        zone: &TimeZone::UTC,
    };
    run(verify(&inputs, values, &KeyCache::new(Arc::new(server.clone()))))
}

fn check(proof: &Json, values: &Values) -> Result<Verified, ProofError> {
    check_with(proof, values, &Server::of_keys(vec![], None))
}

/// Profile of a method, with its value from the variable `PROOF` and these members besides.
fn profile(method: &str, members: &[(&str, Json)]) -> Json {
    let mut profile =
        json(r#"{"proof":{"value_from":{"env":"PROOF","file":null}},"verify":{"required":true}}"#);
    profile.push("method", method);
    for (name, value) in members {
        profile.push(name, value.clone());
    }
    profile
}

fn bound(more: &str) -> String {
    let separator = if more.is_empty() { "" } else { "," };
    claims(&format!(r#""manifest_digest":"{DIGEST}"{separator}{more}"#))
}

#[test]
fn the_method_none_verifies_nothing() {
    let verified =
        check(&json(r#"{"method":"none","verify":{"required":false}}"#), &Values::default()).unwrap();
    assert_eq!(verified.summary["verified"], Json::Bool(false));
    assert_eq!(verified.summary["verified_at"], Json::Null);
    assert_eq!(verified.replay_key, None);
    let required = check(&profile("none", &[]), &Values::default()).unwrap_err();
    assert_eq!(
        (required.code(), &required),
        (Code::AuthorizationProofFailed, &ProofError::RequiredWithoutMethod)
    );
    for (proof, code) in [
        (json("{}"), Code::UnknownVerifier),
        (json(r#"{"method":null}"#), Code::UnknownVerifier),
        (json(r#"{"method":"signed-jwt"}"#), Code::UnknownVerifier),
    ] {
        assert_eq!(check(&proof, &Values::default()).unwrap_err().code(), code, "{proof}");
    }
}

#[test]
fn a_token_binds_the_manifest_and_the_summary_has_listed_claims_only() {
    let members =
        [("public_key", Json::from(RSA.public_pem())), ("issuer", Json::from("https://issuer.example"))];
    let proof = profile("jwt", &members);
    let text = bound(r#""jti":"1","sub":"agent","email":"person@example.org","org_id":"o""#);
    let signed = token(r#"{"alg":"PS256"}"#, &text, &RSA);
    let verified = check(&proof, &Values::of("PROOF", &format!("{signed}\n"))).unwrap();
    let expected = json(&format!(
        r#"{{"method":"jwt","issuer":"https://issuer.example","verified":true,"verified_at":"2026-06-01T00:00:00.000000Z",
            "manifest_digest":"{DIGEST}","verifier":"jwt","algorithm":"PS256","key_id":null,
            "claims":{{"sub":"agent","aud":["agentcli","other"],"iss":"https://issuer.example","exp":{},"org_id":"o",
            "manifest_digest":"{DIGEST}"}}}}"#,
        NOW + 300
    ));
    assert_eq!(verified.summary, expected);
    assert!(verified.replay_key.is_some());
    // The digest without its prefix is the same digest.
    let bare = claims(&format!(r#""manifest_digest":"{}""#, DIGEST.trim_start_matches("sha256:")));
    assert!(check(&proof, &Values::of("PROOF", &token(r#"{"alg":"RS256"}"#, &bare, &RSA))).is_ok());
    for claims in
        [claims(""), claims(r#""manifest_digest":"sha256:00""#), claims(r#""manifest_digest":null"#)]
    {
        let problem =
            check(&proof, &Values::of("PROOF", &token(r#"{"alg":"RS256"}"#, &claims, &RSA))).unwrap_err();
        assert_eq!(problem, ProofError::Jwt(JwtError::WrongDigest), "{claims}");
        assert_eq!(problem.code(), Code::AuthorizationProofFailed);
    }
}

#[test]
fn declared_claims_are_compared() {
    let key = ed25519();
    let text = bound(r#""sub":"agent","groups":["a","b"],"level":2,"org":{"id":1,"name":"x"}"#);
    let values = Values::of("PROOF", &token(r#"{"alg":"EdDSA"}"#, &text, &key));
    let judge = |claims: &str| {
        let members = [("public_key", Json::from(key.public_pem())), ("claims", json(claims))];
        check(&profile("jwt", &members), &values).map(|_| ())
    };
    for claims in [
        "{}",
        r#"{"subject":"agent","audience":"agentcli","issuer":"https://issuer.example"}"#,
        r#"{"sub":"agent","aud":["other","agentcli"]}"#,
        r#"{"groups":"b","level":2.0,"absent":null}"#,
        r#"{"org":{"name":"x","id":1}}"#,
    ] {
        assert_eq!(judge(claims), Ok(()), "{claims}");
    }
    for (claims, name) in [
        (r#"{"subject":"other"}"#, "subject"),
        (r#"{"subject":["agent","other"]}"#, "subject"),
        (r#"{"audience":"agent"}"#, "audience"),
        (r#"{"groups":["a","c"]}"#, "groups"),
        (r#"{"groups":[]}"#, "groups"),
        (r#"{"level":"2"}"#, "level"),
        (r#"{"org":{"name":"x"}}"#, "org"),
        (r#"{"absent":false}"#, "absent"),
    ] {
        let mismatch = ProofError::Jwt(JwtError::ClaimMismatch(name.to_owned()));
        assert_eq!(judge(claims), Err(mismatch), "{claims}");
    }
}

#[test]
fn keys_come_from_the_profile_or_its_address() {
    let server = Server::of_keys(vec![RSA.jwk(r#"{"kid":"k"}"#)], None);
    let values = Values::of("PROOF", &token(r#"{"alg":"RS256","kid":"k"}"#, &bound(""), &RSA));
    let address = ("jwks_uri", Json::from("https://issuer.example/keys"));
    let verified = check_with(&profile("jwt", std::slice::from_ref(&address)), &values, &server).unwrap();
    assert_eq!(verified.summary["key_id"], "k");
    assert_eq!(server.requests(), 1);
    let both = profile("jwt", &[("public_key", Json::from(ed25519().public_pem())), address]);
    let pinned = check_with(&both, &values, &server);
    assert_eq!(pinned, Err(ProofError::Jwt(JwtError::AlgorithmMismatch)), "the key in the manifest counts");
    assert_eq!(server.requests(), 1);
    let neither = check(&profile("jwt", &[]), &values).unwrap_err();
    assert_eq!(neither.code(), Code::AuthorizationProofInvalid);
    let broken = check(&profile("jwt", &[("public_key", Json::from("x"))]), &values).unwrap_err();
    assert_eq!(broken.code(), Code::AuthorizationProofInvalid);
}

#[test]
fn detached_signatures_by_pem_and_by_allowed_signers() {
    let key = ed25519();
    let raw = Values::of("PROOF", &STANDARD.encode(key.sign("", MANIFEST.as_bytes())));
    let pem = ("public_key", Json::from(key.public_pem()));
    let verified = check(&profile("detached-signature", std::slice::from_ref(&pem)), &raw).unwrap();
    assert_eq!(verified.summary["signature_format"], "raw");
    assert_eq!(verified.replay_key, None);

    let folder = Folder::new();
    let ssh = PrivateKey::load(&folder.make_key("key", &["ed25519"])).unwrap();
    let lines = format!("*@example.org {}\n", folder.public("key"));
    let mut values = Values::of("PROOF", &sign("agentcli", MANIFEST.as_bytes(), &ssh).unwrap());
    values.0.insert("signers-file".to_owned(), lines.clone());
    let principal = ("principal", Json::from("ci@example.org"));
    for signers in [lines.as_str(), "signers-file"] {
        let members = [("allowed_signers", Json::from(signers)), principal.clone()];
        let verified = check(&profile("detached-signature", &members), &values).unwrap();
        assert_eq!(verified.summary["key_fingerprint"], ssh.public().fingerprint().as_str());
        assert_eq!(verified.summary["namespace"], "agentcli");
    }
    let signers = ("allowed_signers", Json::from(lines));
    let namespace = ("namespace", Json::from("deploy"));
    let other =
        check(&profile("detached-signature", &[signers.clone(), principal.clone(), namespace]), &values);
    assert_eq!(other.unwrap_err().code(), Code::AuthorizationProofFailed);
    // An SSH signature needs allowed signers and a principal; a raw one needs a key.
    for (members, values) in [
        (vec![pem.clone()], &values),
        (vec![signers.clone()], &values),
        (vec![signers.clone(), principal.clone()], &raw),
        (vec![], &raw),
    ] {
        let problem = check(&profile("detached-signature", &members), values).unwrap_err();
        assert_eq!(problem.code(), Code::AuthorizationProofInvalid, "{problem}");
    }
    // Claims that no signature can satisfy are not passed over.
    for member in [("claims", json(r#"{"sub":"x"}"#)), ("audience", Json::from("x"))] {
        let problem = check(&profile("detached-signature", &[pem.clone(), member]), &raw).unwrap_err();
        assert!(matches!(problem, ProofError::Uncheckable { .. }), "{problem}");
    }
}

#[test]
fn certificates_are_verified_against_the_authority_of_the_profile() {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SigningKey as _};
    let authority_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&authority_key).unwrap().pem();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["ci.example.org".to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &Issuer::from_params(&params, &authority_key)).unwrap().pem();
    let signature = STANDARD.encode(key.sign(MANIFEST.as_bytes()).unwrap());
    let value = Json::object().with("certificate", leaf).with("signature", signature).to_string();
    let mut values = Values::of("PROOF", &value);
    values.0.insert("ca.pem".to_owned(), authority.clone());
    for member in [
        ("ca_certificate", Json::from(authority.as_str())),
        ("ca_certificate_from", json(r#"{"file":"ca.pem"}"#)),
        ("public_key", Json::from(authority.as_str())),
    ] {
        let members = [member, ("claims", json(r#"{"subject":"ci.example.org"}"#))];
        let verified = check(&profile("certificate", &members), &values).unwrap();
        assert_eq!(verified.summary["verified"], Json::Bool(true));
        assert!(verified.summary["certificate_fingerprint"].as_str().unwrap().starts_with("sha256:"));
    }
    let problem = check(&profile("certificate", &[]), &values).unwrap_err();
    assert_eq!(problem.code(), Code::AuthorizationProofInvalid);
}

#[test]
fn values_come_from_their_source_and_never_into_errors() {
    let members = [("public_key", Json::from(RSA.public_pem()))];
    let absent = check(&profile("jwt", &members), &Values::default()).unwrap_err();
    assert!(matches!(absent, ProofError::Source(SourceError::VariableUnset(_))));
    assert_eq!(absent.code(), Code::AuthorizationProofFailed);
    for method in ["jwt", "detached-signature", "certificate"] {
        let problem =
            check(&profile(method, &members), &Values::of("PROOF", "hunter2.hunter2.hunter2")).unwrap_err();
        assert!(!format!("{problem} {problem:?}").contains("hunter2"), "{problem:?}");
    }
    let literal = json(r#"{"method":"jwt","proof":{"value_from":{"literal":"x"}}}"#)
        .with("public_key", RSA.public_pem());
    assert_eq!(check(&literal, &Values::default()), Err(ProofError::LiteralProof));
    let missing = json(r#"{"method":"jwt","proof":null}"#).with("public_key", RSA.public_pem());
    assert_eq!(check(&missing, &Values::default()), Err(ProofError::Missing("proof.value_from")));
}
