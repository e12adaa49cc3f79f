//! The life of an agent, from the challenge to the end, by the released clients on every way in.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::HashMap;

use aa_proto::assembly::agent::v1::control_command::Command;
use aa_proto::assembly::agent::v1::{
    ChallengeRequest, ControlCommand, ControlStreamRequest, DeregisterRequest, PolicyUpdateCommand,
};
use aa_proto::assembly::common::v1::{AgentIdentityAssurance, Decision, EnforcementMode, RiskTier};
use interop_assembly::actions::{file, tool};
use interop_assembly::agent::Agent;
use interop_assembly::gateway::{PATIENCE, Place, Way};
use interop_assembly::link::Link;
use interop_assembly::policies::OPEN;
use tonic::{Code, Streaming};

#[tokio::test]
async fn an_agent_lives_from_challenge_to_deregistration() {
    let place = Place::new(OPEN);
    let gateway = place.start();
    for way in Way::ALL {
        let link = gateway.link_by(way).await;
        let agent = registers(&link).await;

        let answer = link.check(&agent, tool("web_search", "{}")).await;
        assert_eq!(answer.decision(), Decision::Allow, "{way:?}: {answer:?}");
        assert_eq!(answer.agent_identity_assurance(), AgentIdentityAssurance::Bound, "{way:?}");

        let beat = link.heartbeat(&agent).await.unwrap();
        assert!(!beat.should_suspend, "{way:?}");

        deregisters(&link, &agent).await;
        let late = link.heartbeat(&agent).await.unwrap_err();
        assert_eq!(late.code(), Code::Unauthenticated, "{way:?}: {late}");
        let late = link.check(&agent, tool("web_search", "{}")).await;
        assert_ne!(late.agent_identity_assurance(), AgentIdentityAssurance::Bound, "{way:?}: {late:?}");
    }
}

/// Registers step by step, with everything that a registration can say.
async fn registers(link: &Link) -> Agent {
    let mut agent = Agent::new("platform");
    let challenge = ChallengeRequest { agent_id: Some(agent.id.clone()), public_key: agent.public_key() };
    let challenge = link.lifecycle().request_challenge(challenge).await.unwrap().into_inner();
    assert_eq!(challenge.nonce.len(), 32);
    assert!(challenge.expires_at_unix_ms > 0);

    let mut request = link.registration(&agent).await.unwrap();
    request.possession_proof = agent.proof(&challenge.nonce);
    request.registration_nonce = challenge.nonce;
    request.risk_tier = RiskTier::High.into();
    request.tool_names = vec!["web_search".into()];
    request.metadata = HashMap::from([("region".into(), "north".into())]);
    request.delegation_reason = Some("a test".into());
    request.max_child_depth = Some(3);
    request.enforcement_mode = EnforcementMode::Enforce.into();
    let response = link.lifecycle().register(request).await.unwrap().into_inner();
    assert!(!response.credential_token.is_empty());
    assert_eq!(response.heartbeat_interval_sec, 30);
    assert_eq!(response.team_id.as_deref(), Some("platform"));
    assert_eq!(response.root_agent_id.as_deref(), Some(agent.registry_key().as_slice()));
    agent.token = response.credential_token;
    agent
}

async fn deregisters(link: &Link, agent: &Agent) {
    let request = DeregisterRequest {
        agent_id: Some(agent.id.clone()),
        credential_token: agent.token.clone(),
        reason: "done".into(),
    };
    let response = link.lifecycle().deregister(request).await.unwrap().into_inner();
    assert!(response.success);
    assert_eq!(response.agent_id, agent.id.agent_id);
}

#[tokio::test]
async fn children_of_an_agent_that_leaves_are_suspended_told_and_denied() {
    let place = Place::new(OPEN);
    let gateway = place.start();
    for way in Way::ALL {
        let link = gateway.link_by(way).await;
        let parent = link.register("platform").await;
        let child = link.register_child("platform", &parent).await;
        let grandchild = link.register_child("platform", &child).await;
        let mut commands = [control(&link, &child).await, control(&link, &grandchild).await];
        assert_eq!(link.decision(&grandchild, file("read", "/srv/notes")).await, Decision::Allow);

        deregisters(&link, &parent).await;
        for stream in &mut commands {
            let command = next_but_policy(stream).await;
            assert!(matches!(command, Command::Suspend(_)), "{command:?}");
        }
        for agent in [&child, &grandchild] {
            assert!(link.heartbeat(agent).await.unwrap().should_suspend);
            let answer = link.check(agent, file("read", "/srv/notes")).await;
            assert_eq!(answer.decision(), Decision::Deny, "{answer:?}");
            assert!(!answer.reason.is_empty() && !answer.policy_rule.is_empty(), "{answer:?}");
        }
    }
}

#[tokio::test]
async fn a_new_policy_is_told_to_agents_that_listen() {
    for way in Way::ALL {
        let place = Place::new(OPEN);
        let gateway = place.start();
        let link = gateway.link_by(way).await;
        let agent = link.register("platform").await;
        let mut commands = control(&link, &agent).await;
        let first = policy_update(&mut commands).await;
        assert_eq!(String::from_utf8_lossy(&first.policy_bytes), OPEN, "the one in force is said first");
        let denying = "version: \"1\"\ndefault: deny\n";
        place.set_policy(denying);
        let update = policy_update(&mut commands).await;
        assert!(!update.new_policy_id.is_empty(), "{update:?}");
        assert_eq!(String::from_utf8_lossy(&update.policy_bytes), denying);
        assert_eq!(link.decision(&agent, tool("web_search", "{}")).await, Decision::Deny);
    }
}

async fn policy_update(stream: &mut Streaming<ControlCommand>) -> PolicyUpdateCommand {
    match next(stream).await {
        Command::PolicyUpdate(update) => update,
        other => panic!("{other:?}"),
    }
}

async fn control(link: &Link, agent: &Agent) -> Streaming<ControlCommand> {
    let request =
        ControlStreamRequest { agent_id: Some(agent.id.clone()), credential_token: agent.token.clone() };
    link.lifecycle().control_stream(request).await.unwrap().into_inner()
}

async fn next(stream: &mut Streaming<ControlCommand>) -> Command {
    let command = tokio::time::timeout(PATIENCE, stream.message()).await.expect("a command in time");
    command.unwrap().expect("the stream goes on").command.expect("a command")
}

/// The next command that does not tell of a policy; an agent that begins to listen may be told of the one in force.
async fn next_but_policy(stream: &mut Streaming<ControlCommand>) -> Command {
    loop {
        match next(stream).await {
            Command::PolicyUpdate(_) => {}
            other => return other,
        }
    }
}
