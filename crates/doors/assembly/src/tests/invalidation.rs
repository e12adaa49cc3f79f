use futures_util::{StreamExt, stream};
use proctor_core::digest::Digest;
use proctor_wire::assembly::proto::gateway::v1::invalidation_event::Payload;
use proctor_wire::assembly::proto::gateway::v1::subscribe_request::Kind;
use proctor_wire::assembly::proto::gateway::v1::{
    Decision as Resolution, InvalidationEvent, SubscribeAck, SubscribeInitial, SubscribeRequest,
};
use tonic::{Code, Status};

use super::*;
use crate::{AssemblySettings, Replies};

const ASK: &str = "default: allow\nrules:\n  - { id: deploys, when: 'action.tool == \"deploy\"', then: ask, expires: 10m }\n";

async fn gateway() -> (Gateway, Agent) {
    let approvers = vec![("alice".to_owned(), Digest::of(b"alice-has-a-long-token"))];
    let gateway = Gateway::with(ASK, AssemblySettings { approvers, ..AssemblySettings::default() }, 1);
    let mut agent = Agent::new(1);
    gateway.register(&mut agent).await.unwrap();
    (gateway, agent)
}

/// Sends these messages, and keeps the stream open.
fn subscribe(
    gateway: &Gateway,
    agent: &Agent,
    name: &str,
    kinds: Vec<Kind>,
) -> Result<Replies<InvalidationEvent>, Status> {
    let known =
        gateway.engine().look_up(|registry| registry.get(&agent.principal()).cloned()).unwrap().unwrap();
    let say = |kind: Kind| Ok(SubscribeRequest { assembly_id: name.to_owned(), kind: Some(kind) });
    let said: Vec<Result<SubscribeRequest, Status>> = kinds.into_iter().map(say).collect();
    gateway.door.subscribe_runtime(known, stream::iter(said).chain(stream::pending()))
}

fn from(last_seq_seen: u64) -> Vec<Kind> {
    vec![Kind::Initial(SubscribeInitial { last_seq_seen })]
}

async fn next(events: &mut Replies<InvalidationEvent>) -> String {
    let event = tokio::time::timeout(Duration::from_secs(20), events.next()).await.expect("an event comes");
    let event = event.unwrap().unwrap();
    match event.payload.unwrap() {
        Payload::PolicyInvalidated(_) => format!("{} policy", event.seq),
        Payload::ApprovalResolved(it) => {
            let word = if it.decision() == Resolution::Approved { "approved" } else { "denied" };
            format!("{} {word} {}", event.seq, it.request_id)
        }
    }
}

/// Waits for a moment without events.
async fn is_quiet(events: &mut Replies<InvalidationEvent>) -> bool {
    tokio::time::timeout(Duration::from_millis(20), events.next()).await.is_err()
}

async fn ask(gateway: &Gateway, agent: &Agent, number: usize) -> String {
    gateway.tool(agent, "deploy", &format!(r#"{{"n":{number}}}"#)).await.approval_id
}

fn decide(gateway: &Gateway, id: &str, allowed: bool) {
    gateway
        .engine()
        .decide_as("approver:alice", id.parse().unwrap(), allowed, "because", &Json::object())
        .unwrap();
}

#[tokio::test]
async fn whoever_comes_back_hears_of_what_it_missed() {
    let (mut gateway, agent) = gateway().await;
    let mut stranger = Agent::new(2);
    stranger.team = "other".to_owned();
    gateway.register(&mut stranger).await.unwrap();
    let (one, two, foreign) =
        (ask(&gateway, &agent, 1).await, ask(&gateway, &agent, 2).await, ask(&gateway, &stranger, 3).await);
    let mut events = subscribe(&gateway, &agent, "runtime", from(0)).unwrap();
    decide(&gateway, &one, true);
    assert_eq!(next(&mut events).await, format!("1 approved {one}"));
    drop(events);
    decide(&gateway, &foreign, true);
    decide(&gateway, &two, false);
    gateway.reload(&format!("{ASK}# changed\n"));
    let mut events = subscribe(&gateway, &agent, "runtime", from(1)).unwrap();
    assert_eq!(next(&mut events).await, format!("2 denied {two}"));
    assert_eq!(next(&mut events).await, "3 policy");
    assert!(is_quiet(&mut events).await);
    // Another one, and what it has not acknowledged.
    let mut again = subscribe(&gateway, &agent, "runtime", from(0)).unwrap();
    assert_eq!(next(&mut again).await, format!("1 approved {one}"));
    let mut other = subscribe(&gateway, &agent, "another runtime", from(0)).unwrap();
    assert!(is_quiet(&mut other).await, "it begins now");
    let third = ask(&gateway, &agent, 4).await;
    decide(&gateway, &third, true);
    assert_eq!(next(&mut events).await, format!("4 approved {third}"));
    assert_eq!(next(&mut other).await, format!("1 approved {third}"));
}

#[tokio::test]
async fn after_a_restart_everything_is_forgotten_and_told_again() {
    let (mut gateway, agent) = gateway().await;
    let mut ids = Vec::new();
    for number in 0..4 {
        ids.push(ask(&gateway, &agent, number).await);
        // They are told in the order in which they were asked.
        gateway.clock.pass(Duration::from_millis(1));
    }
    decide(&gateway, &ids[0], true);
    decide(&gateway, &ids[1], false);
    gateway.restart().await;
    gateway.clock.pass(minutes(9));
    decide(&gateway, &ids[2], true);
    gateway.clock.pass(minutes(2));
    let mut events = subscribe(&gateway, &agent, "runtime", from(7)).unwrap();
    assert_eq!(next(&mut events).await, "8 policy");
    for (place, (word, id)) in
        [("approved", &ids[0]), ("denied", &ids[1]), ("approved", &ids[2]), ("denied", &ids[3])]
            .iter()
            .enumerate()
    {
        assert_eq!(next(&mut events).await, format!("{} {word} {id}", place + 9), "the last one has expired");
    }
    assert!(is_quiet(&mut events).await);
}

#[tokio::test]
async fn what_is_acknowledged_is_not_kept() {
    let (gateway, agent) = gateway().await;
    let mut events = subscribe(&gateway, &agent, "runtime", from(0)).unwrap();
    let one = ask(&gateway, &agent, 1).await;
    decide(&gateway, &one, true);
    assert_eq!(next(&mut events).await, format!("1 approved {one}"));
    drop(events);
    let acknowledged = [from(1), vec![Kind::Ack(SubscribeAck { seq: u64::MAX })]].concat();
    let mut events = subscribe(&gateway, &agent, "runtime", acknowledged).unwrap();
    assert!(is_quiet(&mut events).await);
    // Whoever asks for it again has lost its place.
    let mut again = subscribe(&gateway, &agent, "runtime", from(0)).unwrap();
    assert_eq!(next(&mut again).await, "2 policy");
    assert_eq!(next(&mut again).await, format!("3 approved {one}"));
}

#[tokio::test]
async fn first_messages_that_make_no_sense_are_refused() {
    let (gateway, agent) = gateway().await;
    for (name, kinds) in [
        ("", from(0)),
        ("runtime", from(u64::MAX)),
        ("runtime", from(u64::MAX / 2 + 1)),
        (&*"n".repeat(257), from(0)),
    ] {
        let mut events = subscribe(&gateway, &agent, name, kinds).unwrap();
        let refused =
            tokio::time::timeout(Duration::from_secs(20), events.next()).await.expect("an answer comes");
        assert_eq!(refused.unwrap().unwrap_err().code(), Code::InvalidArgument, "{name}");
    }
    let mut far = subscribe(&gateway, &agent, "runtime", from(u64::MAX / 2)).unwrap();
    assert_eq!(next(&mut far).await, format!("{} policy", u64::MAX / 2 + 1));
}

#[tokio::test]
async fn nobody_subscribes_without_end() {
    let (gateway, agent) = gateway().await;
    let open: Vec<_> =
        (0..16).map(|number| subscribe(&gateway, &agent, &format!("{number}"), from(0)).unwrap()).collect();
    let refused = subscribe(&gateway, &agent, "one more", from(0)).err().unwrap();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    drop(open);
}
