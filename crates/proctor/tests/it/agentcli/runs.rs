//! `exec` and `run`: decided by policy, recorded, and successful only if the process was.

use proctor_core::json::Json;

use super::place::{ALLOW, Place, at, echo, manifest};
use crate::support::binary;

#[test]
fn exec_is_decided_recorded_and_green_only_if_it_succeeded() {
    let place = Place::new();
    place.write("m.json", &echo("hi"));
    // Without a policy nothing starts.
    let (refused, code) = place.json(&["exec", "m.json", "a"]);
    assert_eq!((code, at(&refused, "/code").as_str()), (1, Some("authorization_denied")), "{refused}");

    place.write("policy.yaml", ALLOW);
    place.write("proctor.toml", "policy = \"policy.yaml\"\nstate = \"state\"\n");
    let (ran, code) = place.json(&["exec", "m.json", "a"]);
    assert_eq!((code, at(&ran, "/result/stdout").as_str()), (0, Some("hi\n")), "{ran}");
    place.write("fails.json", &manifest(r#""shell":{"program":"/bin/false"}"#, ""));
    let (failed, code) = place.json(&["exec", "fails.json", "a"]);
    assert_eq!((code, at(&failed, "/ok")), (1, &Json::Bool(false)), "{failed}");
    let (run, code) = place.json(&["run", "m.json"]);
    assert_eq!((code, at(&run, "/succeeded").to_string()), (0, "1".to_owned()), "{run}");

    let (audit, _) = place.json(&["audit"]);
    assert_eq!(at(&audit, "/count").to_string(), "3", "{audit}");
    let proctor = |arguments: &[&str]| place.command(&binary(), arguments).output().unwrap();
    let listed = proctor(&["audit", "tail", "--json"]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("job:w/a"), "{listed:?}");
    assert!(proctor(&["audit", "fsck"]).status.success());
    // The same command under `proctor manifest` has Proctor's exit codes.
    assert_eq!(proctor(&["manifest", "exec", "fails.json", "a"]).status.code(), Some(10));
    place.write("policy.yaml", "version: \"1\"\ndefault: deny\n");
    assert_eq!(proctor(&["manifest", "exec", "m.json", "a"]).status.code(), Some(11));
    place.write("bad.json", "{\"version\":\"0.2\"}");
    assert_eq!(proctor(&["manifest", "validate", "bad.json"]).status.code(), Some(10));
    assert_eq!(proctor(&["manifest", "frobnicate"]).status.code(), Some(1));
}

#[test]
fn exit_codes_tell_wrong_manifests_refusals_and_failures_apart() {
    let place = Place::with_policy("version: \"1\"\ndefault: deny\n");
    place.write("m.json", &echo("hi"));
    place.write("torn.json", "{\"version\":");
    place.write("token.json", &manifest(r#""shell":{"program":"/bin/true"},"identity":{"ref":"p"}"#, TOKEN));
    let code = |arguments: &[&str]| {
        let output = place.proctor(&[&["manifest"], arguments].concat());
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(code(&["validate", "torn.json"]).0, 10);
    // A workflow whose tasks were refused is refused, too.
    let output = place.proctor(&["manifest", "run", "m.json"]);
    assert_eq!(output.status.code(), Some(11));
    let result = Json::parse(&output.stdout).unwrap();
    assert_eq!(at(&result, "/tasks/0/status").as_str(), Some("refused"), "{result}");
    place.write("policy.yaml", ALLOW);
    let (refused, said) = code(&["exec", "token.json", "a"]);
    assert_eq!((refused, said.contains("token_not_found")), (11, true), "{said}");
    place.write("absent.json", &manifest(r#""shell":{"program":"/does/not/exist"}"#, ""));
    assert_eq!(code(&["exec", "absent.json", "a"]).0, 10);
    std::fs::remove_file(place.path("policy.yaml")).unwrap();
    let (refused, said) = code(&["exec", "m.json", "a"]);
    assert_eq!(
        (refused, said.contains("policy.yaml"), said.contains("state directory")),
        (11, true, false),
        "{said}"
    );
}

/// A profile whose token is nowhere.
const TOKEN: &str = r#""identity_profiles":[{"id":"p","provider":"env-bearer","auth":{"mode":"service","provider_config":{"token_env":"NO_SUCH_TOKEN"}}}],"#;

#[test]
fn evidence_of_the_ledger_is_verified_by_its_bundle() {
    let place = Place::with_policy(ALLOW);
    place.write("m.json", &echo("hi"));
    let ran = place.good(&["exec", "m.json", "a", "--evidence-provider", "ledger"]);
    let id = at(&ran, "/execution_id").as_str().unwrap().to_owned();
    let verified = place.good(&["verify", &id]);
    assert_eq!(at(&verified, "/verified"), &Json::Bool(true), "{verified}");
    assert_eq!(at(&verified, "/decisions").to_string(), "1", "{verified}");
    let audit = place.good(&["audit"]);
    let entry = at(&audit, "/records/0");
    assert!(
        at(entry, "/manifest_digest").as_str().is_some_and(|digest| digest.starts_with("sha256:")),
        "{audit}"
    );
    assert!(entry.get("workflow").is_none() && entry.get("task").is_none(), "{audit}");
    let bundle = place.path("state").join(format!("flow/evidence/{id}.bundle"));
    let mut bytes = std::fs::read(&bundle).unwrap();
    let last = bytes.len() - 40;
    bytes[last] ^= 1;
    std::fs::write(&bundle, bytes).unwrap();
    place.refused(&["verify", &id], "verify_failed");
    assert_eq!(place.proctor(&["manifest", "verify", &id]).status.code(), Some(12));
}
