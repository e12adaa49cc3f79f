use futures_util::StreamExt;
use proctor_clients::assembly::services::agent::agent_lifecycle_service_server::AgentLifecycleService;
use proctor_clients::assembly::services::policy::policy_service_server::PolicyService;
use proctor_wire::assembly::proto::agent::v1::ControlStreamRequest;
use proctor_wire::assembly::proto::agent::v1::control_command::Command;
use proctor_wire::assembly::proto::policy::v1::{OpControlSignal, OpControlSubscribeRequest};
use tonic::Code;

use super::*;
use crate::Replies;
use proctor_engine::orders::operate;

async fn orders(
    gateway: &Gateway,
    agent: &Agent,
) -> Replies<proctor_wire::assembly::proto::agent::v1::ControlCommand> {
    let request = ControlStreamRequest { agent_id: Some(agent.id()), credential_token: agent.token.clone() };
    gateway.door.control_stream(Request::new(request)).await.unwrap().into_inner()
}

async fn next(orders: &mut Replies<proctor_wire::assembly::proto::agent::v1::ControlCommand>) -> String {
    let command = tokio::time::timeout(Duration::from_secs(20), orders.next()).await.expect("an order comes");
    match command.unwrap().unwrap().command.unwrap() {
        Command::Suspend(it) => format!("suspend {}", it.reason),
        Command::Resume(it) => format!("resume {}", it.note),
        Command::Kill(it) => format!("kill {}", it.reason),
        Command::PolicyUpdate(it) => format!("policy {} bytes", it.policy_bytes.len()),
    }
}

#[tokio::test]
async fn all_four_orders_arrive_and_again_after_a_reconnect() {
    let (mut gateway, agent) = one_agent(ALLOW_ALL).await;
    let mut stream = orders(&gateway, &agent).await;
    assert_eq!(next(&mut stream).await, "policy 25 bytes", "the policy in force comes with the stream");
    give_order(&gateway, &agent, Order::Suspend, "one");
    assert_eq!(next(&mut stream).await, "suspend one");
    give_order(&gateway, &agent, Order::Resume, "two");
    assert_eq!(next(&mut stream).await, "resume two");
    gateway.reload("default: deny\nrules: []\n");
    assert_eq!(next(&mut stream).await, "policy 24 bytes");
    give_order(&gateway, &agent, Order::Kill, "three");
    assert_eq!(next(&mut stream).await, "kill three");
    drop(stream);
    gateway.restart().await;
    let mut stream = orders(&gateway, &agent).await;
    assert!(next(&mut stream).await.starts_with("kill "), "what holds is said again");
    assert_eq!(next(&mut stream).await, "policy 24 bytes", "and the policy");
    give_order(&gateway, &agent, Order::Resume, "four");
    assert_eq!(next(&mut stream).await, "resume four");
    let mut newer = orders(&gateway, &agent).await;
    assert_eq!(next(&mut newer).await, "resume four");
    assert_eq!(next(&mut newer).await, "policy 24 bytes");
    assert_eq!(stream.next().await.unwrap().unwrap_err().code(), Code::Aborted, "the newer stream took over");
}

#[tokio::test]
async fn children_follow_their_parent() {
    let (gateway, parent) = one_agent(ALLOW_ALL).await;
    let mut child = Agent::child_of(2, &parent);
    gateway.register(&mut child).await.unwrap();
    let mut stream = orders(&gateway, &child).await;
    assert!(next(&mut stream).await.starts_with("policy "));
    give_order(&gateway, &parent, Order::Suspend, "pause");
    assert!(next(&mut stream).await.starts_with("suspend "));
    assert_eq!(gateway.tool(&child, "x", "{}").await.policy_rule, "agent.parent_stopped");
    assert!(gateway.heartbeat(&child).await.unwrap().should_suspend);
    let mut grandchild = Agent::child_of(3, &child);
    assert_eq!(gateway.register(&mut grandchild).await.unwrap_err().code(), Code::FailedPrecondition);
    give_order(&gateway, &parent, Order::Resume, "go");
    assert_eq!(next(&mut stream).await, "resume go");
    assert_eq!(gateway.tool(&child, "x", "{}").await.decision(), Decision::Allow);
}

#[tokio::test]
async fn whoever_is_still_stopped_is_not_told_to_go_on() {
    let (gateway, parent) = one_agent(ALLOW_ALL).await;
    let mut child = Agent::child_of(2, &parent);
    gateway.register(&mut child).await.unwrap();
    let mut stream = orders(&gateway, &child).await;
    assert!(next(&mut stream).await.starts_with("policy "));
    give_order(&gateway, &child, Order::Suspend, "one");
    assert_eq!(next(&mut stream).await, "suspend one");
    give_order(&gateway, &parent, Order::Suspend, "two");
    assert!(next(&mut stream).await.starts_with("suspend "));
    give_order(&gateway, &child, Order::Resume, "three");
    let told = next(&mut stream).await;
    assert!(told.starts_with("suspend ") && told.contains("above it is stopped"), "{told}");
    give_order(&gateway, &parent, Order::Resume, "four");
    assert_eq!(next(&mut stream).await, "resume four");
}

#[tokio::test]
async fn one_cause_that_is_gone_does_not_end_another() {
    let policy = "tools: { llm_call: { allow: true } }\nbudget: { daily_limit_usd: 0.01, action_on_exceed: suspend }\n";
    let (gateway, agent) = one_agent(policy).await;
    let mut stream = orders(&gateway, &agent).await;
    assert!(next(&mut stream).await.starts_with("policy "));
    gateway.check(&agent, llm("gpt-4o", 4000)).await;
    gateway.check(&agent, llm("gpt-4o", 1)).await;
    assert!(next(&mut stream).await.starts_with("suspend "));
    give_order(&gateway, &agent, Order::Kill, "enough");
    assert_eq!(next(&mut stream).await, "kill enough");
    // The budget is open again on the next day.
    gateway.clock.pass(minutes(24 * 60));
    assert!(gateway.heartbeat(&agent).await.unwrap().should_suspend);
    assert_eq!(next(&mut stream).await, "kill agent is killed: enough");
}

#[tokio::test]
async fn a_policy_that_a_heartbeat_told_of_still_comes_with_the_stream() {
    let (mut gateway, agent) = one_agent(ALLOW_ALL).await;
    gateway.reload("default: deny\nrules: []\n");
    assert!(gateway.heartbeat(&agent).await.unwrap().policy_updated);
    assert!(!gateway.heartbeat(&agent).await.unwrap().policy_updated);
    let mut stream = orders(&gateway, &agent).await;
    assert_eq!(next(&mut stream).await, "policy 24 bytes");
}

#[tokio::test]
async fn nobody_has_streams_without_end() {
    let (gateway, agent) = one_agent(ALLOW_ALL).await;
    let open = async || {
        let subscribe = OpControlSubscribeRequest { agent_id: Some(agent.id()) };
        gateway.door.op_control_stream(with_token(subscribe, &agent.token)).await.unwrap().into_inner()
    };
    let mut streams = Vec::new();
    for _ in 0..16 {
        streams.push(open().await);
    }
    let mut refused = open().await;
    let refused =
        tokio::time::timeout(Duration::from_secs(20), refused.next()).await.expect("an answer comes");
    assert_eq!(refused.unwrap().unwrap_err().code(), Code::ResourceExhausted);
    streams.pop();
    // The place is free once the stream's task has noticed.
    tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            tokio::task::yield_now().await;
            let mut stream = open().await;
            let refused = tokio::time::timeout(Duration::from_millis(1), stream.next()).await;
            if refused.is_err() {
                return;
            }
        }
    })
    .await
    .expect("a place becomes free");
}

#[tokio::test]
async fn operations_are_paused_and_terminated() {
    let (gateway, agent) = one_agent(ALLOW_ALL).await;
    let subscribe = OpControlSubscribeRequest { agent_id: Some(agent.id()) };
    let refused = gateway.door.op_control_stream(Request::new(subscribe.clone())).await.err().unwrap();
    assert_eq!(refused.code(), Code::Unauthenticated);
    let mut stream =
        gateway.door.op_control_stream(with_token(subscribe, &agent.token)).await.unwrap().into_inner();
    let engine = gateway.engine();
    operate(engine, "trace:span", "pause", "look", "uid:0").unwrap();
    assert_eq!(decided(&gateway.tool(&agent, "x", "{}").await), (Decision::Deny, "operation.paused"));
    operate(engine, "trace:span", "resume", "go", "uid:0").unwrap();
    assert_eq!(gateway.tool(&agent, "x", "{}").await.decision(), Decision::Allow);
    operate(engine, &format!("agent:{}", agent.did()), "terminate", "end", "uid:0").unwrap();
    assert_eq!(decided(&gateway.tool(&agent, "x", "{}").await), (Decision::Deny, "operation.terminated"));
    for (sequence, signal) in
        [OpControlSignal::Pause, OpControlSignal::Resume, OpControlSignal::Terminate].into_iter().enumerate()
    {
        let message = stream.next().await.unwrap().unwrap();
        assert_eq!((message.signal(), message.sequence), (signal, sequence as u64));
    }
    assert!(operate(engine, "nonsense", "pause", "", "uid:0").is_err());
}

#[tokio::test]
async fn a_stream_ends_when_its_token_is_void() {
    let (mut gateway, mut agent) = one_agent(ALLOW_ALL).await;
    let mut stream = orders(&gateway, &agent).await;
    assert!(next(&mut stream).await.starts_with("policy "), "what is in force");
    gateway.register(&mut agent).await.unwrap();
    gateway.reload("default: deny\nrules: []\n");
    let ended = tokio::time::timeout(Duration::from_secs(20), stream.next()).await.expect("it ends");
    assert_eq!(ended.unwrap().unwrap_err().code(), Code::Unauthenticated);
    let mut stream = orders(&gateway, &agent).await;
    assert!(next(&mut stream).await.starts_with("policy "));
    give_order(&gateway, &agent, Order::Deregister, "gone");
    let ended = tokio::time::timeout(Duration::from_secs(20), stream.next()).await.expect("it ends");
    assert_eq!(ended.unwrap().unwrap_err().code(), Code::Unauthenticated);
}
