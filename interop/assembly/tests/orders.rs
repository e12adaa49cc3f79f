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
use interop_assembly::gateway::{PATIENCE, Place, Way};
use interop_assembly::link::{Link, bearing};
use interop_assembly::policies::OPEN;
use serde_json::Value;
use tonic::{Code, Streaming};

#[tokio::test]
async fn an_operation_is_paused_resumed_and_terminated() {
    for way in Way::ALL {
        let place = Place::new(OPEN);
        let gateway = place.start();
        let link = gateway.link_by(way).await;
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
}

#[tokio::test]
async fn all_operations_of_an_agent_and_of_everybody_can_be_paused() {
    let place = Place::new(OPEN);
    let gateway = place.start();
    for way in Way::ALL {
        let link = gateway.link_by(way).await;
        let (agent, other) = (link.register("platform").await, link.register("platform").await);
        let everything_of_one = format!("agent:{}", agent.id.agent_id);
        for (operation, of_the_other) in
            [(everything_of_one.as_str(), Decision::Allow), ("*", Decision::Deny)]
        {
            place.order(&["op", "pause", operation]);
            assert_eq!(asks(&link, &agent, "t1").await.decision(), Decision::Deny, "{operation}");
            assert_eq!(asks(&link, &other, "t2").await.decision(), of_the_other, "{operation}");
            place.order(&["op", "resume", operation]);
            assert_eq!(asks(&link, &agent, "t1").await.decision(), Decision::Allow, "{operation}");
            assert_eq!(asks(&link, &other, "t2").await.decision(), Decision::Allow, "{operation}");
        }
    }
}

#[tokio::test]
async fn an_agent_is_suspended_resumed_and_killed() {
    let place = Place::new(OPEN);
    let gateway = place.start();
    for way in Way::ALL {
        let link = gateway.link_by(way).await;
        let agent = link.register("platform").await;
        let request =
            ControlStreamRequest { agent_id: Some(agent.id.clone()), credential_token: agent.token.clone() };
        let mut commands = link.lifecycle().control_stream(request).await.unwrap().into_inner();

        place.order(&["agent", "suspend", &agent.id.agent_id, "--reason", "too loud"]);
        let command = next_command(&mut commands).await;
        assert!(
            matches!(&command, Command::Suspend(told) if told.reason.contains("too loud")),
            "{command:?}"
        );
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
}

#[tokio::test]
async fn agents_are_listed_shown_and_forgotten_by_commands() {
    let place = Place::new(OPEN);
    let gateway = place.start();
    for way in Way::ALL {
        let link = gateway.link_by(way).await;
        let parent = link.register("platform").await;
        let child = link.register_child("platform", &parent).await;
        for agent in [&parent, &child] {
            is_listed(&place, agent, "active");
            is_shown(&place, agent, "active");
        }
        let shown = place.order(&["agent", "show", &parent.id.agent_id]);
        assert!(shown.contains(&format!("{} (active)", child.id.agent_id)), "its child: {shown}");
        let shown = json(&place.order(&["agent", "show", &child.topology_id(), "--json"]));
        assert_eq!(shown["parent"], principal(&parent), "by its key: {shown}");
        assert_eq!(shown["depth"], 1, "{shown}");

        let request =
            ControlStreamRequest { agent_id: Some(child.id.clone()), credential_token: child.token.clone() };
        let mut commands = link.lifecycle().control_stream(request).await.unwrap().into_inner();
        let said = place.order(&["agent", "deregister", &parent.id.agent_id, "--reason", "moved out"]);
        assert_eq!(said, format!("{} forgotten\n", principal(&parent)));
        let late = link.heartbeat(&parent).await.unwrap_err();
        assert_eq!(late.code(), Code::Unauthenticated, "its token is void: {late}");
        assert_eq!(asks(&link, &parent, "t1").await.decision(), Decision::Deny);
        assert!(matches!(next_command(&mut commands).await, Command::Suspend(_)));
        assert_eq!(asks(&link, &child, "t1").await.decision(), Decision::Deny, "what it started is stopped");
        for all in [&["--json"][..], &["--json", "--all"]] {
            let listed = place.order(&[&["agent", "list"], all].concat());
            assert!(!of_agent(&listed, &parent), "{listed}");
        }
        is_listed(&place, &child, "stopped");
        is_shown(&place, &child, "stopped");

        let said = json(&place.order(&["agent", "deregister", &child.id.agent_id, "--json"]));
        assert_eq!((&said["principal"], &said["status"]), (&principal(&child).into(), &"forgotten".into()));
        assert!(said["seq"].is_u64(), "the record of it: {said}");
        assert_eq!(link.heartbeat(&child).await.unwrap_err().code(), Code::Unauthenticated);
    }
    gateway.terminate().await;
    let forgotten: Vec<_> =
        place.logged().into_iter().filter(|entry| entry.event_type() == "AgentForceDeregistered").collect();
    assert_eq!(forgotten.len(), 4, "{forgotten:?}");
    assert_eq!(forgotten[0].payload["reason"], "moved out", "{forgotten:?}");
    assert_eq!(forgotten[0].payload["detail"]["by"], format!("uid:{}", rustix::process::getuid().as_raw()));
}

fn principal(agent: &Agent) -> String {
    format!("agent:{}", agent.id.agent_id)
}

fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

fn of_agent(listed: &str, agent: &Agent) -> bool {
    listed.lines().any(|line| json(line)["agent"] == agent.id.agent_id)
}

/// In the table, and as an object of its own.
fn is_listed(place: &Place, agent: &Agent, status: &str) {
    let table = place.order(&["agent", "list"]);
    let row = table.lines().find(|row| row.starts_with(&agent.id.agent_id));
    let row: Vec<&str> = row.unwrap_or_else(|| panic!("{table}")).split_whitespace().collect();
    assert_eq!(row[1..4], [status, "example", "platform"], "{table}");

    let listed = place.order(&["agent", "list", "--json"]);
    let found = listed.lines().map(json).find(|line| line["agent"] == agent.id.agent_id);
    has_members(&found.unwrap_or_else(|| panic!("{listed}")), agent, status);
}

/// For people, and as one object.
fn is_shown(place: &Place, agent: &Agent, status: &str) {
    let shown = place.order(&["agent", "show", &agent.id.agent_id]);
    for (name, value) in [
        ("agent", agent.id.agent_id.as_str()),
        ("principal", &principal(agent)),
        ("status", status),
        ("name", "example"),
        ("team", "platform"),
        ("framework", "interop"),
        ("version", "1.0.0"),
    ] {
        let is_said = |line: &str| {
            line.split_once(' ').is_some_and(|(word, rest)| (word, rest.trim()) == (name, value))
        };
        assert!(shown.lines().any(is_said), "{name}: {value}: {shown}");
    }
    let shown = json(&place.order(&["agent", "show", &agent.id.agent_id, "--json"]));
    has_members(&shown, agent, status);
    assert_eq!(shown["says"]["framework"], "interop", "{shown}");
}

fn has_members(shown: &Value, agent: &Agent, status: &str) {
    for (name, value) in [
        ("agent", agent.id.agent_id.clone()),
        ("principal", principal(agent)),
        ("key", agent.topology_id()),
        ("status", status.to_owned()),
        ("name", "example".to_owned()),
        ("team", "platform".to_owned()),
    ] {
        assert_eq!(shown[name], value, "{name}: {shown}");
    }
    assert!(shown["registered_at"].as_str().is_some_and(|time| time.ends_with('Z')), "{shown}");
    assert_eq!(shown["why"].is_string(), status != "active", "{shown}");
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
