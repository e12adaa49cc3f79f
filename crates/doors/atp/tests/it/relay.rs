//! Runs in a process that is not the owner of the state directory.

use std::sync::Arc;
use std::time::Duration;

use proctor_door_atp::{ApprovalAnswer, CallStatus, Decider, Question, RelayedDecider, Run};
use proctor_door_gate::RelayedRuns;
use proctor_engine::Engine;
use proctor_engine::access::{Access, Relay};
use proctor_engine::settings::{Durability, Settings};
use proctor_engine::workspaces::Workspaces;

use crate::fixture::{POLICY, Tools, json, kinds, open, records, run, send};

fn settings(folder: &std::path::Path, agent: &str) -> Settings {
    let policy = folder.join("policy.yaml");
    std::fs::write(&policy, POLICY).unwrap();
    Settings {
        state: folder.join("state"),
        policy: Some(policy),
        durability: Durability::Process,
        agent: agent.to_owned(),
        team: String::new(),
        org: String::new(),
        workspaces: Workspaces::default(),
        answer: Duration::from_secs(30),
    }
}

/// The owner, and a relay to it under the name of a run.
fn owner_and_relay(folder: &std::path::Path) -> (Arc<Engine>, Relay) {
    let gate = |engine: &Arc<Engine>| -> Vec<Box<dyn proctor_engine::owner::RelayedDoor>> {
        vec![Box::new(RelayedRuns(Arc::clone(engine)))]
    };
    let Ok(Access::Owner(engine)) = Access::open(&settings(folder, ""), "atp", gate) else {
        panic!("the first one is the owner")
    };
    let Ok(Access::Relay(relay)) = Access::open(&settings(folder, "run-7"), "atp", |_| Vec::new()) else {
        panic!("the second one is not")
    };
    (engine, relay)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_owner_decides_and_records_for_a_relay() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, relay) = owner_and_relay(folder.path());
    let decider = Decider::Relay(Arc::new(RelayedDecider::new(relay).unwrap()));
    let answer = ApprovalAnswer { is_approved: true, reason: "by the suite".to_owned() };
    let allowed = ["echo", "purge", "limited", "mail"].map(str::to_owned).to_vec();
    let run = Run {
        allowed_tools: Some(allowed),
        approvals: Some(Arc::new(move |_: &Question<'_>| Some(answer.clone()))),
        ..run()
    };
    let door = open(run, decider, Arc::new(Tools::default()));
    let call = async |tool: &str, input: &str| {
        let body = format!(r#"{{"input":{input}}}"#);
        json(&send(door.url(), "POST", &format!("/{tool}"), body.as_bytes()).await.1)
    };
    assert_eq!(call("echo", r#"{"a":1}"#).await["output"], json(r#"{"a":1}"#));
    assert_eq!(call("purge", "{}").await["error_details"]["rule"], "no-purging");
    assert_eq!(call("limited", r#"{"limit":9}"#).await["output"], json(r#"{"limit":5}"#));
    assert_eq!(call("mail", "{}").await["status"], "success");
    assert_eq!(call("fail", "{}").await["error_code"], "TOOL_NOT_FOUND");
    assert_eq!(
        kinds(&engine),
        [
            "decision allow",
            "outcome ok",
            "decision deny",
            "decision modify",
            "outcome ok",
            "decision ask",
            "observation simulated_approval",
            "outcome ok",
            "observation tool_call_refused",
            "alarm tool_not_allowed",
        ]
    );
    let records = records(&engine);
    assert!(records.iter().all(|(envelope, _)| envelope.principal.ends_with("/run-7")));
    let calls = door.finish().await.calls;
    assert_eq!(calls[0].decision.as_ref().unwrap().record.unwrap().0, records[0].0.id);
    assert!(calls.iter().all(|call| call.status == CallStatus::Denied || call.outcome.is_some()));
    engine.finish();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_is_gone_is_a_deny() {
    let folder = tempfile::tempdir().unwrap();
    let (_engine, relay) = owner_and_relay(folder.path());
    let severed = relay.stream.try_clone().unwrap();
    let tools = Arc::new(Tools::default());
    let door = open(run(), Decider::Relay(Arc::new(RelayedDecider::new(relay).unwrap())), tools.clone());
    severed.shutdown(std::net::Shutdown::Both).unwrap();
    for _ in 0..2 {
        let reply = json(&send(door.url(), "POST", "/echo", b"{}").await.1);
        assert_eq!(reply["error_code"], "TOOL_ERROR");
        assert_eq!(reply["error_details"]["rule"], "not-recorded");
    }
    assert!(tools.seen.lock().unwrap().is_empty());
}
