//! Refusals and their codes: of our gateway on every transport, and of the released one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use aa_proto::assembly::agent::v1::{
    ChallengeRequest, ControlStreamRequest, DeregisterRequest, RegisterRequest,
};
use aa_proto::assembly::common::v1::{AgentId, AgentIdentityAssurance, Decision};
use aa_proto::assembly::policy::v1::{ActionContext, CheckActionRequest, OpControlSubscribeRequest};
use interop_assembly::actions::{file, question, tool};
use interop_assembly::agent::Agent;
use interop_assembly::gateway::{Gateway, Place, Way};
use interop_assembly::link::{Link, bearing};
use interop_assembly::official::Official;
use tonic::Code;

/// Restricts nothing, and both can read it.
const POLICY: &str = "version: \"1\"\n";

/// Two gateways with the same policy, and all ways to them.
struct Doors {
    links: Vec<(&'static str, Link)>,
    _ours: (Gateway, Place),
    _theirs: Official,
}

impl Doors {
    async fn open() -> Doors {
        Doors::open_with(&[]).await
    }

    async fn open_with(variables: &[(&str, &str)]) -> Doors {
        let place = Place::new(POLICY);
        let gateway = place.start_with(&[], variables);
        let official = Official::start_with(POLICY, variables).await;
        let links = vec![
            ("ours over TCP", gateway.link_by(Way::Tcp).await),
            ("ours on the socket", gateway.link_by(Way::Socket).await),
            ("the released one", official.link().await),
        ];
        Doors { links, _ours: (gateway, place), _theirs: official }
    }
}

async fn challenge_code(link: &Link, id: Option<AgentId>, public_key: String) -> Code {
    let request = ChallengeRequest { agent_id: id, public_key };
    link.lifecycle().request_challenge(request).await.expect_err("a challenge that is refused").code()
}

#[tokio::test]
async fn challenges_are_given_to_whom_the_key_fits() {
    let doors = Doors::open().await;
    for (door, link) in &doors.links {
        eprintln!("{door}");
        let (agent, other) = (Agent::new("platform"), Agent::new("platform"));
        let key = agent.public_key();
        assert_eq!(challenge_code(link, None, key.clone()).await, Code::InvalidArgument);
        for wrong in ["", "agent-001", "did:key:", "did:key:z", "did:web:example.com", "did:key:z0OIl"] {
            let id = AgentId { agent_id: wrong.into(), ..agent.id.clone() };
            assert_eq!(challenge_code(link, Some(id), key.clone()).await, Code::InvalidArgument, "{wrong}");
        }
        for wrong in ["", "zz", &key[..62], "ed25519:AAAA=", &"g".repeat(64)] {
            let code = challenge_code(link, Some(agent.id.clone()), wrong.to_owned()).await;
            assert_eq!(code, Code::InvalidArgument, "{wrong}");
        }
        assert_eq!(
            challenge_code(link, Some(agent.id.clone()), other.public_key()).await,
            Code::Unauthenticated
        );
    }
}

async fn registration_code(link: &Link, agent: Agent, change: impl FnOnce(&mut RegisterRequest)) -> Code {
    link.register_as(agent, change).await.map(|_| ()).expect_err("a registration that is refused").code()
}

#[tokio::test]
async fn registering_needs_a_fresh_challenge_and_the_key() {
    let doors = Doors::open().await;
    for (door, link) in &doors.links {
        eprintln!("{door}");
        let team = "platform";
        let unauthenticated = Code::Unauthenticated;
        let code =
            registration_code(link, Agent::new(team), |request| request.registration_nonce.clear()).await;
        assert_eq!(code, unauthenticated, "no nonce");
        let code =
            registration_code(link, Agent::new(team), |request| request.registration_nonce = vec![7; 32])
                .await;
        assert_eq!(code, unauthenticated, "a nonce that nobody gave");
        let code =
            registration_code(link, Agent::new(team), |request| request.possession_proof[3] ^= 1).await;
        assert_eq!(code, unauthenticated, "a wrong proof");
        let code =
            registration_code(link, Agent::new(team), |request| request.possession_proof.clear()).await;
        assert_eq!(code, unauthenticated, "no proof");

        // Another's nonce, well signed.
        let (mine, theirs) = (Agent::new(team), Agent::new(team));
        let nonce = link.registration(&theirs).await.unwrap().registration_nonce;
        let mut request = link.registration(&mine).await.unwrap();
        request.possession_proof = mine.proof(&nonce);
        request.registration_nonce = nonce;
        assert_eq!(link.lifecycle().register(request).await.unwrap_err().code(), unauthenticated);

        // A nonce is burned by the first attempt, also by one that failed.
        let agent = Agent::new(team);
        let good = link.registration(&agent).await.unwrap();
        let bad = RegisterRequest { possession_proof: vec![1; 64], ..good.clone() };
        assert_eq!(link.lifecycle().register(bad).await.unwrap_err().code(), unauthenticated);
        assert_eq!(link.lifecycle().register(good).await.unwrap_err().code(), unauthenticated);
    }
}

#[tokio::test]
async fn registering_below_nobody_or_too_deep_is_refused() {
    let doors = Doors::open().await;
    for (door, link) in &doors.links {
        eprintln!("{door}");
        let agent = link.register("platform").await;

        let nobody = Agent::new("platform").id.agent_id;
        let code = registration_code(link, Agent::new("platform"), |request| {
            request.parent_agent_id = Some(nobody);
        });
        assert_eq!(code.await, Code::InvalidArgument);

        let mut parent = agent;
        for depth in 1..10 {
            let id = parent.id.agent_id.clone();
            let child =
                link.register_as(Agent::new("platform"), |request| request.parent_agent_id = Some(id)).await;
            parent = child.unwrap_or_else(|status| panic!("depth {depth}: {status}"));
        }
        let id = parent.id.agent_id.clone();
        let code =
            registration_code(link, Agent::new("platform"), |request| request.parent_agent_id = Some(id));
        assert_eq!(code.await, Code::InvalidArgument, "ten levels are enough");
    }
}

#[tokio::test]
async fn with_tenants_an_agent_needs_a_team() {
    let doors = Doors::open_with(&[("AA_GATEWAY_TENANCY_MODE", "tenanted")]).await;
    for (door, link) in &doors.links {
        eprintln!("{door}");
        assert_eq!(registration_code(link, Agent::new(""), |_| {}).await, Code::FailedPrecondition);
        link.register("platform").await;
    }
}

#[tokio::test]
async fn an_empty_or_foreign_token_opens_nothing() {
    let doors = Doors::open().await;
    for (door, link) in &doors.links {
        eprintln!("{door}");
        let (mut agent, other) = (link.register("platform").await, link.register("platform").await);
        let own = agent.token.clone();
        for token in [String::new(), "wrong".into(), other.token.clone()] {
            agent.token.clone_from(&token);
            let refused = link.heartbeat(&agent).await.unwrap_err();
            assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
            let agent_id = Some(agent.id.clone());
            let request =
                ControlStreamRequest { agent_id: agent_id.clone(), credential_token: token.clone() };
            let refused = link.lifecycle().control_stream(request).await.unwrap_err();
            assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
            let request =
                DeregisterRequest { agent_id, credential_token: token.clone(), reason: String::new() };
            let refused = link.lifecycle().deregister(request).await.unwrap_err();
            assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");

            let answer = link.check(&agent, tool("web_search", "{}")).await;
            assert_eq!(answer.decision(), Decision::Deny, "{answer:?}");
            assert_eq!(answer.policy_rule, "a2a_identity_verification", "{answer:?}");
            assert_ne!(answer.agent_identity_assurance(), AgentIdentityAssurance::Bound, "{answer:?}");
            let reason = if token.is_empty() { "missing credential token" } else { "credential token" };
            assert!(answer.reason.contains(reason), "{answer:?}");
        }
        agent.token = own;
        link.heartbeat(&agent).await.unwrap();
    }
}

#[tokio::test]
async fn questions_without_a_subject_are_refused() {
    let doors = Doors::open().await;
    for (door, link) in &doors.links {
        eprintln!("{door}");
        let agent = link.register("platform").await;
        let asked = question(&agent, tool("web_search", "{}"));
        for question in [
            CheckActionRequest { context: None, ..asked.clone() },
            CheckActionRequest { context: Some(ActionContext { action: None }), ..asked },
            question(&agent, file("frobnicate", "/srv/notes")),
            question(&agent, file("", "/srv/notes")),
        ] {
            let refused = link.ask(question.clone()).await.expect_err(&format!("{question:?}"));
            assert_eq!(refused.code(), Code::InvalidArgument, "{question:?}: {refused}");
        }
        let huge = "x".repeat(5 << 20);
        let refused = link.ask(question(&agent, tool("web_search", &format!("{{\"q\":\"{huge}\"}}")))).await;
        let refused = refused.expect_err("more than 4 MiB");
        assert!(matches!(refused.code(), Code::OutOfRange | Code::ResourceExhausted), "{refused}");
    }
}

#[tokio::test]
async fn operations_are_controlled_by_their_own_agent_only() {
    let doors = Doors::open().await;
    for (door, link) in &doors.links {
        eprintln!("{door}");
        let (agent, other) = (link.register("platform").await, link.register("platform").await);
        for (token, id, code) in [
            ("", &agent, Code::Unauthenticated),
            ("wrong", &agent, Code::Unauthenticated),
            (other.token.as_str(), &agent, Code::PermissionDenied),
        ] {
            let request = OpControlSubscribeRequest { agent_id: Some(id.id.clone()) };
            let refused = link.policy().op_control_stream(bearing(token, request)).await.unwrap_err();
            assert_eq!(refused.code(), code, "{refused}");
        }
    }
}
