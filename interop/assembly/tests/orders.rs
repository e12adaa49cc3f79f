//! Orders of an operator, given on the command line, as agents hear and feel them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use aa_proto::assembly::agent::v1::control_command::Command;
use aa_proto::assembly::agent::v1::{ControlCommand, ControlStreamRequest};
use aa_proto::assembly::common::v1::Decision;
use aa_proto::assembly::policy::v1::{
    CheckActionRequest, CheckActionResponse, OpControlMessage, OpControlSignal, OpControlSubscribeRequest,
};
use interop_assembly::actions::{question, tool};
use interop_assembly::agent::Agent;
use interop_assembly::gateway::{PATIENCE, Place};
use interop_assembly::link::{Link, bearing};
use interop_assembly::policies::OPEN;
use tonic::Streaming;

#[tokio::test]
async fn an_operation_is_paused_resumed_and_terminated() {
    let place = Place::new(OPEN);
    let gateway = place.start();
    let link = gateway.link().await;
    let agent = link.register("platform").await;
    let request = OpControlSubscribeRequest { agent_id: Some(agent.id.clone()) };
    let request = bearing(&agent.token, request);
    let mut signals = link.policy().op_control_stream(request).await.unwrap().into_inner();
    let mut before = None;
    for (order, signal, decision) in [
        ("pause", OpControlSignal::Pause, Decision::Deny),
        ("resume", OpControlSignal::Resume, Decision::Allow),
        ("terminate", OpControlSignal::Terminate, Decision::Deny),
    ] {
        assert!(
            asks(&link, &agent, "other").await.decision() == Decision::Allow,
            "another operation goes on"
        );
        place.order(&["op", order, "t1:s1", "--reason", "a test"]);
        let message = next_signal(&mut signals).await;
        assert_eq!((message.op_id.as_str(), message.signal()), ("t1:s1", signal), "{message:?}");
        assert!(before.is_none_or(|before| before < message.sequence), "{message:?} after {before:?}");
        before = Some(message.sequence);
        let answer = asks(&link, &agent, "t1").await;
        assert_eq!(answer.decision(), decision, "after {order}: {answer:?}");
    }
    assert_eq!(asks(&link, &agent, "other").await.decision(), Decision::Allow);
}

#[tokio::test]
async fn all_operations_of_an_agent_and_of_everybody_can_be_paused() {
    let place = Place::new(OPEN);
    let gateway = place.start();
    let link = gateway.link().await;
    let (agent, other) = (link.register("platform").await, link.register("platform").await);
    let everything_of_one = format!("agent:{}", agent.id.agent_id);
    for (operation, of_the_other) in [(everything_of_one.as_str(), Decision::Allow), ("*", Decision::Deny)] {
        place.order(&["op", "pause", operation]);
        assert_eq!(asks(&link, &agent, "t1").await.decision(), Decision::Deny, "{operation}");
        assert_eq!(asks(&link, &other, "t2").await.decision(), of_the_other, "{operation}");
        place.order(&["op", "resume", operation]);
        assert_eq!(asks(&link, &agent, "t1").await.decision(), Decision::Allow, "{operation}");
        assert_eq!(asks(&link, &other, "t2").await.decision(), Decision::Allow, "{operation}");
    }
}

#[tokio::test]
async fn an_agent_is_suspended_resumed_and_killed() {
    let place = Place::new(OPEN);
    let gateway = place.start();
    let link = gateway.link().await;
    let agent = link.register("platform").await;
    let request =
        ControlStreamRequest { agent_id: Some(agent.id.clone()), credential_token: agent.token.clone() };
    let mut commands = link.lifecycle().control_stream(request).await.unwrap().into_inner();

    place.order(&["agent", "suspend", &agent.id.agent_id, "--reason", "too loud"]);
    let command = next_command(&mut commands).await;
    assert!(matches!(&command, Command::Suspend(told) if told.reason.contains("too loud")), "{command:?}");
    let answer = asks(&link, &agent, "t1").await;
    assert_eq!(answer.decision(), Decision::Deny, "{answer:?}");
    assert!(answer.reason.contains("too loud"), "{answer:?}");
    assert!(link.heartbeat(&agent).await.unwrap().should_suspend);

    place.order(&["agent", "resume", &agent.id.agent_id]);
    assert!(matches!(next_command(&mut commands).await, Command::Resume(_)));
    assert_eq!(asks(&link, &agent, "t1").await.decision(), Decision::Allow);
    assert!(!link.heartbeat(&agent).await.unwrap().should_suspend);

    place.order(&["agent", "kill", &agent.id.agent_id, "--reason", "for good"]);
    let command = next_command(&mut commands).await;
    assert!(matches!(&command, Command::Kill(told) if told.reason.contains("for good")), "{command:?}");
    assert_eq!(asks(&link, &agent, "t1").await.decision(), Decision::Deny);
}

async fn asks(link: &Link, agent: &Agent, trace: &str) -> CheckActionResponse {
    let asked = question(agent, tool("web_search", "{}"));
    let question = CheckActionRequest { trace_id: trace.into(), span_id: "s1".into(), ..asked };
    link.ask(question).await.unwrap()
}

async fn next_signal(stream: &mut Streaming<OpControlMessage>) -> OpControlMessage {
    let message = tokio::time::timeout(PATIENCE, stream.message()).await.expect("a signal in time");
    message.unwrap().expect("the stream goes on")
}

/// The next command that does not tell of a policy; an agent that begins to listen may be told of the one in force.
async fn next_command(stream: &mut Streaming<ControlCommand>) -> Command {
    loop {
        let message = tokio::time::timeout(PATIENCE, stream.message()).await.expect("a command in time");
        match message.unwrap().expect("the stream goes on").command.expect("a command") {
            Command::PolicyUpdate(_) => {}
            other => return other,
        }
    }
}
