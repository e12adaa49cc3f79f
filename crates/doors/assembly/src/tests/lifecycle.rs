use proctor_clients::assembly::services::agent::agent_lifecycle_service_server::AgentLifecycleService;
use proctor_clients::assembly::services::policy::policy_service_server::PolicyService;
use proctor_clients::assembly::services::topology::topology_service_server::TopologyService;
use proctor_wire::assembly::proto::agent::v1::{DeregisterRequest, HeartbeatRequest, RegisterRequest};
use proctor_wire::assembly::proto::common::v1::{AgentId, RiskTier};
use proctor_wire::assembly::proto::policy::v1::CheckActionRequest;
use proctor_wire::assembly::proto::topology::v1::{
    GetAgentTreeRequest, GetLineageRequest, GetTeamMembersRequest,
};
use tonic::Code;

use super::*;
use crate::{AssemblyMode, AssemblySettings};

async fn refusal(gateway: &Gateway, request: RegisterRequest) -> Code {
    gateway.door.register(Request::new(request)).await.unwrap_err().code()
}

#[tokio::test]
async fn an_agent_registers_and_keeps_everything_over_a_restart() {
    let mut gateway = Gateway::new(ALLOW_ALL);
    let mut agent = Agent::new(1);
    agent.request.risk_tier = RiskTier::High.into();
    let response = gateway.register(&mut agent).await.unwrap();
    assert_eq!(response.heartbeat_interval_sec, 30);
    assert_eq!(response.team_id.as_deref(), Some("ml"));
    let digest = gateway.engine().policy().digest();
    assert_eq!(response.assigned_policy, format!("policy.yaml@sha256:{digest}"));
    assert!(!agent.token.is_empty());
    gateway.restart().await;
    assert_eq!(gateway.tool(&agent, "search", "{}").await.decision(), Decision::Allow);
    assert!(gateway.heartbeat(&agent).await.is_ok());
    // The token is nowhere in the state directory.
    let shown = records(&gateway, RecordKind::Agent);
    assert!(!shown.iter().any(|(envelope, body)| format!("{envelope:?}{body}").contains(&agent.token)));
}

#[tokio::test]
async fn a_new_proof_replaces_the_token_and_keeps_the_registration() {
    let (gateway, mut agent) = one_agent(ALLOW_ALL).await;
    let old = agent.clone();
    gateway.clock.pass(minutes(5));
    agent.request.risk_tier = RiskTier::Low.into();
    gateway.register(&mut agent).await.unwrap();
    assert_ne!(agent.token, old.token);
    let refused = gateway.tool(&old, "search", "{}").await;
    assert_eq!(decided(&refused), (Decision::Deny, "a2a_identity_verification"));
    assert_eq!(refused.reason, "credential token mismatch");
    assert_eq!(gateway.tool(&agent, "search", "{}").await.decision(), Decision::Allow);
    let known =
        gateway.engine().look_up(|registry| registry.get(&agent.principal()).cloned()).unwrap().unwrap();
    assert_eq!(known.registered_at.micros(), super::super::fixture::NOON);
    assert_eq!(known.registration.unwrap().risk, "", "a new token changes nothing else");
}

#[tokio::test]
async fn registrations_are_refused_with_the_codes_of_the_protocol() {
    let gateway = Gateway::new(ALLOW_ALL);
    let agent = Agent::new(1);
    let good = agent.registration(&gateway.door).await.unwrap();
    let free = AgentId { agent_id: "agent-001".into(), ..AgentId::default() };
    assert_eq!(
        refusal(&gateway, RegisterRequest { agent_id: None, ..good.clone() }).await,
        Code::InvalidArgument
    );
    assert_eq!(
        refusal(&gateway, RegisterRequest { agent_id: Some(free), ..good.clone() }).await,
        Code::InvalidArgument
    );
    let upper = good.public_key.to_uppercase();
    assert_eq!(
        refusal(&gateway, RegisterRequest { public_key: upper, ..good.clone() }).await,
        Code::InvalidArgument
    );
    let other = Agent::new(2).public_key();
    assert_eq!(
        refusal(&gateway, RegisterRequest { public_key: other, ..good.clone() }).await,
        Code::Unauthenticated
    );
    let no_nonce = RegisterRequest { registration_nonce: Vec::new(), ..good.clone() };
    assert_eq!(refusal(&gateway, no_nonce).await, Code::Unauthenticated);
    // A bad proof burns the nonce.
    let bad = RegisterRequest { possession_proof: vec![0; 64], ..good.clone() };
    assert_eq!(refusal(&gateway, bad).await, Code::Unauthenticated);
    assert_eq!(refusal(&gateway, good).await, Code::Unauthenticated);
    let late = agent.registration(&gateway.door).await.unwrap();
    gateway.clock.pass(Duration::from_secs(31));
    assert_eq!(refusal(&gateway, late).await, Code::Unauthenticated);
    let mut orphan = Agent::new(3);
    orphan.request.parent_agent_id = Some(Agent::new(4).did());
    assert_eq!(gateway.register(&mut orphan).await.unwrap_err().code(), Code::InvalidArgument);
    orphan.request.parent_agent_id = Some(orphan.did());
    assert_eq!(gateway.register(&mut orphan).await.unwrap_err().code(), Code::InvalidArgument);
    let tenanted =
        Gateway::with(ALLOW_ALL, AssemblySettings { tenanted: true, ..AssemblySettings::default() }, 1);
    let mut nobody = Agent::new(5);
    nobody.team.clear();
    assert_eq!(tenanted.register(&mut nobody).await.unwrap_err().code(), Code::FailedPrecondition);
}

#[tokio::test]
async fn a_known_agent_without_a_proof_exists_already() {
    let (gateway, agent) = one_agent(ALLOW_ALL).await;
    let good = agent.registration(&gateway.door).await.unwrap();
    let bare =
        RegisterRequest { registration_nonce: Vec::new(), possession_proof: Vec::new(), ..good.clone() };
    assert_eq!(refusal(&gateway, bare.clone()).await, Code::AlreadyExists);
    let unsigned = RegisterRequest { possession_proof: Vec::new(), ..good.clone() };
    let without_nonce = RegisterRequest { registration_nonce: Vec::new(), ..good.clone() };
    let wrong = RegisterRequest { possession_proof: vec![0; 64], ..good };
    for request in [without_nonce, unsigned, wrong] {
        assert_eq!(refusal(&gateway, request).await, Code::Unauthenticated);
    }
    assert!(gateway.heartbeat(&agent).await.is_ok(), "its token is still good");
    let leave = DeregisterRequest {
        agent_id: Some(agent.id()),
        credential_token: agent.token.clone(),
        reason: String::new(),
    };
    gateway.door.deregister(Request::new(leave)).await.unwrap();
    assert_eq!(refusal(&gateway, bare.clone()).await, Code::Unauthenticated, "nobody is registered");
    let stranger = Agent::new(9);
    let unknown =
        RegisterRequest { agent_id: Some(stranger.id()), public_key: stranger.public_key(), ..bare };
    assert_eq!(refusal(&gateway, unknown).await, Code::Unauthenticated);
}

#[tokio::test]
async fn agents_are_found_by_their_key() {
    let mut gateway = Gateway::new(ALLOW_ALL);
    let mut root = Agent::new(1);
    let key = gateway.register(&mut root).await.unwrap().root_agent_id.unwrap();
    let digits = |key: &[u8]| key.iter().map(|byte| format!("{byte:02X}")).collect::<String>();
    let lineage = async |gateway: &Gateway, named: String| {
        let request = with_token(GetLineageRequest { agent_id: named }, &root.token);
        gateway.door.get_lineage(request).await.map(|found| found.into_inner().ancestors.len())
    };
    assert_eq!(lineage(&gateway, digits(&key)).await.unwrap(), 1);
    assert_eq!(lineage(&gateway, "0".repeat(32)).await.unwrap_err().code(), Code::NotFound);
    // One that registers later, and below one that is named by its key.
    let mut child = Agent::new(2);
    child.request.parent_agent_id = Some(digits(&key));
    gateway.register(&mut child).await.unwrap();
    let known = gateway
        .engine()
        .look_up(|registry| proctor_engine::orders::key_of(registry.get(&child.principal()).unwrap()));
    assert_eq!(lineage(&gateway, known.clone().unwrap()).await.unwrap(), 2);
    gateway.restart().await;
    assert_eq!(lineage(&gateway, known.unwrap()).await.unwrap(), 2);
    // The key of a team that it has left is nobody's.
    give_order(&gateway, &root, Order::Deregister, "moved");
    let mut moved = root.clone();
    moved.team = "other".to_owned();
    gateway.register(&mut moved).await.unwrap();
    let request = with_token(GetLineageRequest { agent_id: digits(&key) }, &moved.token);
    assert_eq!(gateway.door.get_lineage(request).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn silence_is_noticed_after_a_restart_and_of_those_only_that_are_there() {
    let mut gateway = Gateway::new(ALLOW_ALL);
    let (mut silent, mut gone, mut loud) = (Agent::new(1), Agent::new(2), Agent::new(3));
    for agent in [&mut silent, &mut gone, &mut loud] {
        gateway.register(agent).await.unwrap();
    }
    gateway.restart().await;
    gateway.door.run_expiry().await;
    let leave = DeregisterRequest {
        agent_id: Some(gone.id()),
        credential_token: gone.token.clone(),
        reason: String::new(),
    };
    gateway.door.deregister(Request::new(leave)).await.unwrap();
    gateway.clock.pass(Duration::from_secs(60));
    gateway.heartbeat(&loud).await.unwrap();
    gateway.clock.pass(Duration::from_secs(31));
    for _ in 0..70 {
        gateway.door.run_expiry().await;
    }
    let offline: Vec<String> = records(&gateway, RecordKind::Agent)
        .into_iter()
        .filter(|(envelope, _)| envelope.code == "offline")
        .map(|(envelope, _)| envelope.principal)
        .collect();
    assert_eq!(offline, [silent.principal()]);
}

#[tokio::test]
async fn an_empty_or_foreign_token_is_refused_everywhere() {
    let mut gateway = Gateway::new(ALLOW_ALL);
    let (mut agent, mut other) = (Agent::new(1), Agent::new(2));
    gateway.register(&mut agent).await.unwrap();
    gateway.register(&mut other).await.unwrap();
    for _ in 0..2 {
        for token in ["", "nonsense", other.token.as_str()] {
            let impostor = Agent { token: token.to_owned(), ..agent.clone() };
            assert_eq!(
                gateway.heartbeat(&impostor).await.unwrap_err().code(),
                Code::Unauthenticated,
                "{token}"
            );
            let request = DeregisterRequest {
                agent_id: Some(agent.id()),
                credential_token: token.to_owned(),
                reason: String::new(),
            };
            let refused = gateway.door.deregister(Request::new(request)).await;
            assert_eq!(refused.unwrap_err().code(), Code::Unauthenticated);
            let check = gateway.tool(&impostor, "search", "{}").await;
            assert_eq!(decided(&check), (Decision::Deny, "a2a_identity_verification"));
            let reason = match token {
                "" => "missing credential token",
                "nonsense" => "credential token mismatch",
                _ => "credential token registered to a different agent",
            };
            assert_eq!(check.reason, reason);
            assert!(!check.decision_id.is_empty(), "refusals are on record too");
        }
        gateway.restart().await;
    }
    assert!(gateway.heartbeat(&agent).await.is_ok());
}

#[tokio::test]
async fn a_heartbeat_tells_of_a_new_policy_once() {
    let (mut gateway, agent) = one_agent(ALLOW_ALL).await;
    assert!(!gateway.heartbeat(&agent).await.unwrap().policy_updated);
    gateway.reload("default: deny\nrules: []\n");
    gateway.restart().await;
    assert!(gateway.heartbeat(&agent).await.unwrap().policy_updated, "also after a restart");
    assert!(!gateway.heartbeat(&agent).await.unwrap().policy_updated);
}

#[tokio::test]
async fn silence_makes_an_agent_offline_and_a_word_brings_it_back() {
    let (gateway, agent) = one_agent(ALLOW_ALL).await;
    let status = || {
        gateway.engine().look_up(|registry| {
            let agent = registry.get(&agent.principal()).unwrap();
            proctor_engine::orders::status(registry, agent)
        })
    };
    gateway.door.run_expiry().await;
    gateway.clock.pass(Duration::from_secs(89));
    gateway.door.run_expiry().await;
    assert_eq!(status().unwrap(), "active");
    gateway.clock.pass(Duration::from_secs(2));
    gateway.door.run_expiry().await;
    gateway.door.run_expiry().await;
    assert_eq!(status().unwrap(), "offline");
    gateway.heartbeat(&agent).await.unwrap();
    assert_eq!(status().unwrap(), "active");
    let codes: Vec<String> =
        records(&gateway, RecordKind::Agent).into_iter().map(|(envelope, _)| envelope.code).collect();
    assert_eq!(codes, ["registered", "offline", "online"]);
    // A check counts as a heartbeat, too.
    gateway.clock.pass(Duration::from_secs(91));
    gateway.door.run_expiry().await;
    assert_eq!(status().unwrap(), "offline");
    gateway.tool(&agent, "x", "{}").await;
    assert_eq!(status().unwrap(), "active");
}

#[tokio::test]
async fn lineage_is_kept_shown_and_bounded() {
    let gateway = Gateway::new(ALLOW_ALL);
    let mut root = Agent::new(1);
    root.request.max_child_depth = Some(2);
    gateway.register(&mut root).await.unwrap();
    let mut child = Agent::child_of(2, &root);
    let response = gateway.register(&mut child).await.unwrap();
    assert_eq!(response.parent_agent_id, Some(root.did()));
    assert_eq!(response.root_agent_id.unwrap().len(), 16);
    let mut grandchild = Agent::child_of(3, &child);
    gateway.register(&mut grandchild).await.unwrap();
    let mut too_deep = Agent::child_of(4, &grandchild);
    let refused = gateway.register(&mut too_deep).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("max_child_depth"), "{refused}");
    let tree = GetAgentTreeRequest { agent_id: root.did(), max_depth: 0 };
    let tree =
        gateway.door.get_agent_tree(with_token(tree, &root.token)).await.unwrap().into_inner().root.unwrap();
    assert_eq!(tree.children[0].children[0].agent.as_ref().unwrap().depth, 2);
    let lineage = GetLineageRequest { agent_id: grandchild.did() };
    let lineage = gateway.door.get_lineage(with_token(lineage, &root.token)).await.unwrap().into_inner();
    let names: Vec<&str> = lineage.ancestors.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["agent 3", "agent 2", "agent 1"]);
    let team = GetTeamMembersRequest { team_id: "ml".into() };
    let team = gateway.door.get_team_members(with_token(team, &root.token)).await.unwrap().into_inner();
    assert_eq!(team.members.len(), 3);
    let nobody = GetTeamMembersRequest { team_id: "ml".into() };
    assert_eq!(
        gateway.door.get_team_members(Request::new(nobody)).await.unwrap_err().code(),
        Code::Unauthenticated
    );
}

#[tokio::test]
async fn ten_generations_are_the_most() {
    let gateway = Gateway::new(ALLOW_ALL);
    let mut above = Agent::new(1);
    gateway.register(&mut above).await.unwrap();
    for seed in 2..=10 {
        let mut below = Agent::child_of(seed, &above);
        gateway.register(&mut below).await.unwrap();
        above = below;
    }
    let mut last = Agent::child_of(11, &above);
    assert_eq!(gateway.register(&mut last).await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test]
async fn leaving_frees_nobody_of_a_suspension_or_a_kill() {
    let (mut gateway, mut agent) = one_agent(ALLOW_ALL).await;
    let mut child = Agent::child_of(2, &agent);
    gateway.register(&mut child).await.unwrap();
    give_order(&gateway, &agent, Order::Suspend, "looking into it");
    let leave = DeregisterRequest {
        agent_id: Some(agent.id()),
        credential_token: agent.token.clone(),
        reason: "bye".into(),
    };
    assert!(gateway.door.deregister(Request::new(leave)).await.unwrap().into_inner().success);
    assert_eq!(gateway.tool(&child, "search", "{}").await.policy_rule, "agent.parent_stopped");
    gateway.restart().await;
    gateway.register(&mut agent).await.unwrap();
    assert_eq!(gateway.tool(&agent, "search", "{}").await.policy_rule, "agent.suspended");
    give_order(&gateway, &agent, Order::Kill, "enough");
    assert_eq!(gateway.tool(&agent, "search", "{}").await.policy_rule, "agent.killed");
    assert_eq!(gateway.register(&mut agent).await.unwrap_err().code(), Code::PermissionDenied);
    give_order(&gateway, &agent, Order::Resume, "all right");
    gateway.register(&mut agent).await.unwrap();
    assert_eq!(gateway.tool(&agent, "search", "{}").await.decision(), Decision::Allow);
    assert_eq!(gateway.tool(&child, "search", "{}").await.decision(), Decision::Allow);
    agent.team = "other".to_owned();
    assert_eq!(gateway.register(&mut agent).await.unwrap_err().code(), Code::FailedPrecondition);
    give_order(&gateway, &agent, Order::Deregister, "moved");
    gateway.register(&mut agent).await.unwrap();
}

#[tokio::test]
async fn a_relaxed_gateway_takes_identifiers_that_look_like_secrets_and_writes_none() {
    let settings = AssemblySettings { mode: AssemblyMode::Relaxed, ..AssemblySettings::default() };
    let gateway = Gateway::with(ALLOW_ALL, settings, 1);
    let names = [
        "alice@example.org",
        "xVqagxaeniraz0UNXJfRrQ2wS9kLmN4p",
        "AKIAQ7W3ERTY5UIOP2XZ",
        "AKIAQ7W3ERTY5UIOP2XY",
    ];
    let mut tokens = Vec::new();
    for name in names {
        let id = AgentId { org_id: "acme".into(), team_id: "ml".into(), agent_id: name.into() };
        let request = RegisterRequest { agent_id: Some(id.clone()), ..RegisterRequest::default() };
        let registered = gateway.door.register(Request::new(request)).await.unwrap().into_inner();
        tokens.push((id, registered.credential_token));
    }
    for (id, token) in &tokens {
        let beat = HeartbeatRequest {
            agent_id: Some(id.clone()),
            credential_token: token.clone(),
            ..HeartbeatRequest::default()
        };
        gateway.door.heartbeat(Request::new(beat)).await.unwrap();
        let asking = CheckActionRequest {
            agent_id: Some(id.clone()),
            credential_token: token.clone(),
            ..Agent::new(1).asking(tool("search", "{}"))
        };
        let ask =
            || async { gateway.door.check_action(Request::new(asking.clone())).await.unwrap().into_inner() };
        assert_eq!(ask().await.decision(), Decision::Allow, "{id:?}");
        // By its own name it is found, and stopped, and goes on.
        let operate = |word| {
            proctor_engine::orders::operate(
                gateway.engine(),
                &format!("agent:{}", id.agent_id),
                word,
                "",
                "uid:0",
            )
        };
        operate("pause").unwrap();
        assert_eq!(ask().await.policy_rule, "operation.paused", "{id:?}");
        operate("resume").unwrap();
        assert_eq!(ask().await.decision(), Decision::Allow, "{id:?}");
    }
    // A token is good for its own agent only.
    let swapped = CheckActionRequest {
        agent_id: Some(tokens[2].0.clone()),
        credential_token: tokens[3].1.clone(),
        ..Agent::new(1).asking(tool("search", "{}"))
    };
    let swapped = gateway.door.check_action(Request::new(swapped)).await.unwrap().into_inner();
    assert_eq!(swapped.reason, "credential token registered to a different agent");
    for (envelope, body) in
        records(&gateway, RecordKind::Agent).into_iter().chain(records(&gateway, RecordKind::Decision))
    {
        let text = format!("{envelope:?}{body}");
        assert!(names.iter().all(|name| !text.contains(name)), "{text}");
    }
}

#[tokio::test]
async fn a_relaxed_gateway_takes_free_identifiers_and_no_proof() {
    let settings = AssemblySettings { mode: AssemblyMode::Relaxed, ..AssemblySettings::default() };
    let gateway = Gateway::with(ALLOW_ALL, settings, 1);
    let id = AgentId { org_id: "acme".into(), team_id: "ml".into(), agent_id: "agent-001".into() };
    let request = RegisterRequest {
        agent_id: Some(id.clone()),
        public_key: "ed25519:AAAA".into(),
        ..RegisterRequest::default()
    };
    let token =
        gateway.door.register(Request::new(request.clone())).await.unwrap().into_inner().credential_token;
    assert_eq!(refusal(&gateway, request).await, Code::AlreadyExists);
    let beat = HeartbeatRequest {
        agent_id: Some(id.clone()),
        credential_token: token,
        ..HeartbeatRequest::default()
    };
    gateway.door.heartbeat(Request::new(beat)).await.unwrap();
    let claim = Agent::new(1);
    let mut asking = claim.asking(tool("search", "{}"));
    // Whoever is not registered is the one anonymous principal; whoever is needs its token.
    let anonymous = gateway.door.check_action(Request::new(asking.clone())).await.unwrap().into_inner();
    assert_eq!(anonymous.decision(), Decision::Allow);
    let decisions = records(&gateway, RecordKind::Decision);
    assert_eq!(decisions.last().unwrap().0.principal, "anonymous");
    asking.agent_id = Some(id);
    let refused = gateway.door.check_action(Request::new(asking)).await.unwrap().into_inner();
    assert_eq!(refused.reason, "missing credential token");
    // A key is proved even here.
    let unproved = RegisterRequest {
        agent_id: Some(claim.id()),
        public_key: claim.public_key(),
        ..RegisterRequest::default()
    };
    assert_eq!(refusal(&gateway, unproved).await, Code::Unauthenticated);
}
