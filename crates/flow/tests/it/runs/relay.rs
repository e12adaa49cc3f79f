//! Runs of a process that does not own the state directory.

use std::sync::Arc;

use proctor_core::json::Json;
use proctor_engine::access::Access;
use proctor_flow::run::{JOBS, Options, Parts, Recorder, Runner};
use proctor_wire::agentcli::error::Code;

use super::fixture::{ALLOW, World, code, exec, manifest, script, settings};

/// Runner that reaches the engine of the world through its socket.
fn relayed(world: &World) -> Runner {
    let opened = Access::open(&settings(&world.state(), None), JOBS, |_| Vec::new());
    let Ok(access @ Access::Relay(_)) = opened else { panic!("the world owns its state directory") };
    Runner::new(Parts { recorder: Recorder::from(access), ..world.parts() }).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_decides_and_records_runs_of_other_processes() {
    let world = World::new(Some(ALLOW));
    let runner = relayed(&world);
    let result = exec(&runner, &manifest(&script("t", "echo ran", "")), "t").await.unwrap();
    assert!(result.is_ok);
    assert_eq!(world.story("w/t"), ["session ", "decision allow", "outcome ok", "run ended"]);
    let other = manifest(&script("t", "echo ran", "")).to_string().replace(r#""id":"w""#, r#""id":"v""#);
    let other = Json::parse(other.as_bytes()).unwrap();
    assert_eq!(code(&exec(&runner, &other, "t").await), Some(Code::AuthorizationDenied));
    assert_eq!(world.story("v/t"), ["session ", "decision deny", "run ended"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn approvals_and_bundles_work_through_the_owner() {
    let world = World::new(Some(&ALLOW.replace("then: allow", "then: ask")));
    let runner = relayed(&world);
    let task = manifest(&script("t", "echo ran", ""));
    let asked = exec(&runner, &task, "t").await.unwrap_err();
    world.approve(asked.approval.unwrap().id, true);
    let options = Options { evidence_provider: Some("ledger".to_owned()), ..Options::default() };
    let cancel = &mut proctor_flow::run::Cancel::never();
    let result = runner.exec(&task, None, "t", &options, cancel).await.unwrap();
    assert!(result.is_ok, "{}", result.json);
    assert!(result.json.pointer("/evidence/path").and_then(Json::as_str).is_some(), "{}", result.json);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_used_once_by_whoever_comes_first() {
    let world = World::new(Some(ALLOW));
    let own = Recorder::Engine(Arc::clone(&world.engine));
    let other = Recorder::from(Access::open(&settings(&world.state(), None), JOBS, |_| Vec::new()).unwrap());
    assert!(matches!(other, Recorder::Relay(_)), "the first process owns the state directory");
    assert!(own.consume("jwt-jti:1").await.unwrap());
    for recorder in [&own, &other] {
        assert!(!recorder.consume("jwt-jti:1").await.unwrap(), "a replay");
    }
    assert!(other.consume("jwt-jti:2").await.unwrap());
    assert!(!own.consume("jwt-jti:2").await.unwrap());
    // Of many at once, one is the first.
    let racing = (0..8).map(|number| {
        let recorder = if number % 2 == 0 { own.clone() } else { other.clone() };
        tokio::spawn(async move { recorder.consume("jwt-jti:3").await.unwrap() })
    });
    let mut first = 0;
    for racer in racing.collect::<Vec<_>>() {
        first += usize::from(racer.await.unwrap());
    }
    assert_eq!(first, 1);
    assert!(!world.records().iter().any(|(_, body)| body.contains("jwt-jti:")), "ids may be secrets");
}
