//! Callers that go away before they have their answer.

use futures_util::{FutureExt, StreamExt};
use proctor_clients::assembly::services::agent::agent_lifecycle_service_server::AgentLifecycleService;
use proctor_clients::assembly::services::policy::policy_service_server::PolicyService;
use proctor_wire::assembly::proto::agent::v1::ControlStreamRequest;
use proctor_wire::assembly::proto::agent::v1::control_command::Command;

use super::*;

const LOOPS: &str =
    "default: allow\nrules: []\nanomalies: {loops: {count: 2, window: 5m, then: suspend}, spikes: off}\n";

#[tokio::test]
async fn what_a_check_gives_cause_for_happens_although_nobody_waits_for_the_answer() {
    let (gateway, agent) = one_agent(LOOPS).await;
    let request = ControlStreamRequest { agent_id: Some(agent.id()), credential_token: agent.token.clone() };
    let mut orders = gateway.door.control_stream(Request::new(request)).await.unwrap().into_inner();
    assert_eq!(gateway.tool(&agent, "search", "{}").await.decision(), Decision::Allow);
    let second = gateway.door.check_action(Request::new(agent.asking(tool("search", "{}"))));
    // Asked, and nobody waits for the answer.
    drop(second.now_or_never());
    let told = async {
        loop {
            let command = orders.next().await.unwrap().unwrap().command.unwrap();
            if let Command::Suspend(suspend) = command {
                return suspend.reason;
            }
        }
    };
    let reason = tokio::time::timeout(Duration::from_secs(20), told).await.expect("the agent hears of it");
    assert!(reason.contains("the same action 2 times"), "{reason}");
    let decisions = records(&gateway, RecordKind::Decision);
    assert_eq!(decisions.len(), 2);
    assert_eq!(records(&gateway, RecordKind::Retracted).len(), 0);
    assert_eq!(gateway.tool(&agent, "other", "{}").await.decision(), Decision::Deny);
}

#[tokio::test]
async fn callers_that_go_away_do_not_make_others_decide_again() {
    let (gateway, agent) = one_agent(ALLOW_ALL).await;
    let generation = gateway.engine().ledger().generation();
    for round in 0..50 {
        let name = format!("tool-{round}");
        let gone = gateway.door.check_action(Request::new(agent.asking(tool(&name, "{}"))));
        drop(gone.now_or_never());
        assert_eq!(gateway.tool(&agent, &name, "{}").await.decision(), Decision::Allow);
    }
    assert_eq!(gateway.engine().ledger().generation(), generation, "nothing was taken back");
    assert_eq!(records(&gateway, RecordKind::Decision).len(), 100);
}
