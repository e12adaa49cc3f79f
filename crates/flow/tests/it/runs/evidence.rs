//! Evidence of runs.

use std::sync::Arc;

use proctor_core::json::Json;
use proctor_flow::run::adapters::SshSigner;
use proctor_flow::run::{BoxFuture, Cancel, EvidenceSigner, Execution, Options, Parts, Runner};
use proctor_ledger::bundle::{self, Check};
use proctor_ledger::keys::Trust;
use proctor_wire::agentcli::error::{Code, Failure};

use super::fixture::{ALLOW, World, manifest, script};

async fn exec(runner: &Runner, task: &Json, options: &Options) -> Execution {
    runner.exec(task, None, "t", options, &mut Cancel::never()).await.unwrap()
}

fn ledger() -> Options {
    Options { evidence_provider: Some("ledger".to_owned()), require_evidence: true, ..Options::default() }
}

#[tokio::test]
async fn a_bundle_holds_the_records_of_the_run_and_verifies_offline() {
    let world = World::new(Some(ALLOW));
    let runner = world.runner();
    let other = manifest(&script("t", "echo other-run", ""));
    exec(&runner, &other, &Options::default()).await;
    let result = exec(&runner, &manifest(&script("t", "echo this-run", "")), &ledger()).await;
    assert!(result.is_ok, "{}", result.json);
    let evidence = result.json.get("evidence").unwrap();
    let file = std::path::PathBuf::from(evidence.get("path").and_then(Json::as_str).unwrap());
    let bytes = std::fs::read(&file).unwrap();
    let digest = format!("sha256:{}", proctor_core::digest::Digest::of(&bytes));
    assert_eq!(evidence.get("digest"), Some(&Json::from(digest)));
    let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has("this-run") && !has("other-run"));
    let key = world.engine.ledger().key().clone();
    let trust: Trust = format!("log {key}\n").parse().unwrap();
    let check = Check { trust: Some(&trust), ..Check::default() };
    let verify = |mut bytes: &[u8]| bundle::verify(&mut bytes, &check, &mut |_| Ok(()), &mut |_, _| {});
    let report = verify(&bytes).unwrap();
    assert_eq!(report.records, evidence.get("records").and_then(Json::as_u64).unwrap());
    let mut forged = bytes.clone();
    let at = forged.windows(8).position(|window| window == b"this-run").unwrap();
    forged[at] = b'T';
    assert!(verify(&forged).is_err());
}

struct Signer;

impl EvidenceSigner for Signer {
    fn check<'a>(&'a self, _: &'a Json) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async { Ok(()) })
    }

    fn sign<'a>(&'a self, payload: &'a Json, _: &'a Json) -> BoxFuture<'a, Result<Json, Failure>> {
        Box::pin(async move { Ok(Json::object().with("signed_payload", payload.clone())) })
    }
}

#[tokio::test]
async fn the_payload_says_what_ran_and_holds_digests_of_the_command() {
    let world = World::new(Some(ALLOW));
    let runner = Runner::new(Parts { signer: Arc::new(Signer), ..world.parts() }).unwrap();
    let options = Options { require_evidence: true, ..Options::default() };
    let result = exec(&runner, &manifest(&script("t", "echo words-of-the-command", "")), &options).await;
    assert!(result.is_ok);
    let payload = result.json.pointer("/evidence/envelope/signed_payload").unwrap();
    for member in [
        "execution_id",
        "timestamp",
        "source",
        "bindings",
        "declared_identity",
        "resolved_identity",
        "authorization_proof",
        "authorization",
        "actor_context",
        "contract",
        "command",
        "result",
        "verify",
        "compliance_context",
    ] {
        assert!(payload.get(member).is_some(), "{member}");
    }
    assert!(!payload.get("command").unwrap().to_string().contains("words-of-the-command"));
    assert_eq!(payload.pointer("/bindings/effective_task_hash"), result.json.get("effective_task_hash"));
}

#[tokio::test]
async fn a_task_does_not_start_without_the_key_of_evidence_that_is_required() {
    let world = World::new(Some(ALLOW));
    let key_file = world.work().join("no-such-key");
    let signer = SshSigner { key_file: Some(key_file), folder: world.work(), ..SshSigner::default() };
    let runner = Runner::new(Parts { signer: Arc::new(signer), ..world.parts() }).unwrap();
    let task = manifest(&script("t", "touch started", ""));
    let required = Options { require_evidence: true, ..Options::default() };
    let refused = runner.exec(&task, None, "t", &required, &mut Cancel::never()).await.unwrap_err();
    assert_eq!(refused.failure.code, Code::EvidenceFailed);
    assert!(refused.failure.message.contains("no-such-key"), "{refused}");
    assert!(!world.work().join("started").exists());
    let optional = Options { evidence_provider: Some("ssh".to_owned()), ..Options::default() };
    assert!(exec(&runner, &task, &optional).await.is_ok);
    assert!(world.work().join("started").exists());
}

#[tokio::test]
async fn a_run_without_required_evidence_fails_and_without_optional_one_warns() {
    let world = World::new(Some(ALLOW));
    let runner = world.runner();
    let task = manifest(&script("t", "true", ""));
    let required = Options { require_evidence: true, ..Options::default() };
    let result = exec(&runner, &task, &required).await;
    assert_eq!((result.is_ok, result.code), (false, Some(Code::EvidenceFailed)));
    let optional = Options { evidence_provider: Some("ssh".to_owned()), ..Options::default() };
    let result = exec(&runner, &task, &optional).await;
    assert!(result.is_ok);
    assert!(result.json.get("warnings").unwrap().to_string().contains("no evidence"), "{}", result.json);
    let unknown = Options { evidence_provider: Some("in-toto".to_owned()), ..Options::default() };
    let refused = runner.exec(&task, None, "t", &unknown, &mut Cancel::never()).await.unwrap_err();
    assert_eq!(refused.failure.code, Code::EvidenceFailed);
}
