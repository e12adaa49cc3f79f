use futures_util::StreamExt;
use proctor_clients::assembly::services::approval::approval_service_server::ApprovalService;
use proctor_core::digest::Digest;
use proctor_wire::assembly::proto::approval::v1::{
    ApprovalDecisionType, DecideRequest, ListPendingRequest, WatchApprovalsRequest,
};
use tonic::{Code, Status};

use super::*;
use crate::AssemblySettings;

const ASK: &str = "default: allow\nrules:\n  - { id: deploys, when: 'action.tool == \"deploy\"', then: ask, expires: 10m, reason: A person decides. }\n";
const ALICE: &str = "alice-has-a-long-token";

async fn with_alice(settings: AssemblySettings) -> (Gateway, Agent) {
    let approvers = vec![("alice".to_owned(), Digest::of(ALICE.as_bytes()))];
    let gateway = Gateway::with(ASK, AssemblySettings { approvers, ..settings }, 1);
    let mut agent = Agent::new(1);
    gateway.register(&mut agent).await.unwrap();
    (gateway, agent)
}

async fn decide(gateway: &Gateway, token: &str, id: &str, allowed: bool) -> Result<(bool, String), Status> {
    let decision = if allowed { ApprovalDecisionType::Approved } else { ApprovalDecisionType::Rejected };
    let request = DecideRequest {
        request_id: id.to_owned(),
        decision: decision.into(),
        decided_by: "somebody else".into(),
        reason: "because".into(),
    };
    let response = gateway.door.decide(with_token(request, token)).await?.into_inner();
    Ok((response.success, response.error_message))
}

async fn pending(gateway: &Gateway, token: &str) -> usize {
    let listed = gateway.door.list_pending(with_token(ListPendingRequest {}, token)).await.unwrap();
    listed.into_inner().requests.len()
}

#[tokio::test]
async fn a_person_decides_and_the_grant_is_used_once() {
    let (mut gateway, agent) = with_alice(AssemblySettings::default()).await;
    let first = gateway.tool(&agent, "deploy", r#"{"to":"prod"}"#).await;
    assert_eq!(decided(&first), (Decision::Pending, "deploys"));
    let again = gateway.tool(&agent, "deploy", r#"{"to":"prod"}"#).await;
    assert_eq!((again.decision(), &again.approval_id), (Decision::Pending, &first.approval_id));
    assert_eq!(pending(&gateway, ALICE).await, 1);
    gateway.restart().await;
    assert_eq!(decide(&gateway, ALICE, &first.approval_id, true).await.unwrap(), (true, String::new()));
    let (success, message) = decide(&gateway, ALICE, &first.approval_id, false).await.unwrap();
    assert!(!success && message.contains("already decided"), "{message}");
    assert_eq!(
        gateway.tool(&agent, "deploy", r#"{"to":"test"}"#).await.decision(),
        Decision::Pending,
        "another action"
    );
    assert_eq!(gateway.tool(&agent, "deploy", r#"{"to":"prod"}"#).await.decision(), Decision::Allow);
    let third = gateway.tool(&agent, "deploy", r#"{"to":"prod"}"#).await;
    assert_eq!(third.decision(), Decision::Pending, "a grant is used once");
    assert_ne!(third.approval_id, first.approval_id);
    let (envelope, body) = records(&gateway, RecordKind::Approval).pop().unwrap();
    assert_eq!(envelope.principal, "approver:alice");
    assert_eq!(body.get("said_by").unwrap().as_str(), Some("somebody else"));
}

#[tokio::test]
async fn nobody_approves_for_itself() {
    let (gateway, agent) = with_alice(AssemblySettings::default()).await;
    let asked = gateway.tool(&agent, "deploy", "{}").await.approval_id;
    assert_eq!(
        decide(&gateway, &agent.token, &asked, true).await.unwrap_err().code(),
        Code::PermissionDenied
    );
    let settings = AssemblySettings { agents_approve: true, ..AssemblySettings::default() };
    let (gateway, agent) = with_alice(settings).await;
    let asked = gateway.tool(&agent, "deploy", "{}").await.approval_id;
    let mut child = Agent::child_of(2, &agent);
    gateway.register(&mut child).await.unwrap();
    let (mut stranger, mut peer) = (Agent::new(3), Agent::new(4));
    stranger.team = "other".to_owned();
    gateway.register(&mut stranger).await.unwrap();
    gateway.register(&mut peer).await.unwrap();
    for token in [&agent.token, &child.token, &stranger.token] {
        assert_eq!(decide(&gateway, token, &asked, true).await.unwrap_err().code(), Code::PermissionDenied);
    }
    assert_eq!(pending(&gateway, &stranger.token).await, 0, "another team's");
    assert_eq!(pending(&gateway, &peer.token).await, 1);
    assert!(decide(&gateway, &peer.token, &asked, true).await.unwrap().0);
    assert_eq!(gateway.tool(&agent, "deploy", "{}").await.decision(), Decision::Allow);
}

#[tokio::test]
async fn orders_that_make_no_sense_are_refused() {
    let (gateway, _) = with_alice(AssemblySettings::default()).await;
    assert_eq!(decide(&gateway, ALICE, "x", true).await.unwrap_err().code(), Code::InvalidArgument);
    let unknown = "0192f0c1-0000-7000-8000-000000000000";
    assert!(!decide(&gateway, ALICE, unknown, true).await.unwrap().0);
    assert_eq!(decide(&gateway, "nobody", unknown, true).await.unwrap_err().code(), Code::Unauthenticated);
    let silent = DecideRequest {
        request_id: unknown.into(),
        decision: ApprovalDecisionType::Rejected.into(),
        ..DecideRequest::default()
    };
    assert_eq!(
        gateway.door.decide(with_token(silent, ALICE)).await.unwrap_err().code(),
        Code::InvalidArgument
    );
}

#[tokio::test]
async fn agents_watch_their_own_team_and_not_without_end() {
    let (gateway, agent) = with_alice(AssemblySettings::default()).await;
    let mut stranger = Agent::new(3);
    stranger.team = "other".to_owned();
    gateway.register(&mut stranger).await.unwrap();
    let watch = async |token: &str| {
        let watching = gateway.door.watch_approvals(with_token(WatchApprovalsRequest {}, token)).await;
        watching.map(tonic::Response::into_inner)
    };
    let mut own = watch(&agent.token).await.unwrap();
    let mut foreign = watch(&stranger.token).await.unwrap();
    let asked = gateway.tool(&agent, "deploy", "{}").await.approval_id;
    let theirs = gateway.tool(&stranger, "deploy", "{}").await.approval_id;
    assert_eq!(own.next().await.unwrap().unwrap().request_id, asked);
    assert_eq!(foreign.next().await.unwrap().unwrap().request_id, theirs, "the other one is not shown");
    let mut more = Vec::new();
    for _ in 0..15 {
        more.push(watch(&agent.token).await.unwrap());
    }
    assert_eq!(watch(&agent.token).await.err().unwrap().code(), Code::ResourceExhausted);
    assert!(watch(ALICE).await.is_ok(), "others have their own");
}

#[tokio::test]
async fn a_watcher_whose_token_is_void_hears_no_more() {
    let (gateway, mut agent) = with_alice(AssemblySettings::default()).await;
    let watching =
        gateway.door.watch_approvals(with_token(WatchApprovalsRequest {}, &agent.token)).await.unwrap();
    let mut watching = watching.into_inner();
    gateway.tool(&agent, "deploy", "{}").await;
    assert!(watching.next().await.unwrap().is_ok());
    gateway.register(&mut agent).await.unwrap();
    gateway.tool(&agent, "deploy", r#"{"again":1}"#).await;
    assert_eq!(watching.next().await.unwrap().unwrap_err().code(), Code::Unauthenticated);
}

#[tokio::test]
async fn watchers_hear_of_new_requests_and_expired_ones_end_as_denies() {
    let (gateway, agent) = with_alice(AssemblySettings::default()).await;
    let watching = gateway.door.watch_approvals(with_token(WatchApprovalsRequest {}, ALICE)).await.unwrap();
    let mut watching = watching.into_inner();
    let asked = gateway.tool(&agent, "deploy", "{}").await.approval_id;
    let event = watching.next().await.unwrap().unwrap();
    assert_eq!(
        (event.request_id, event.condition_triggered, event.timeout_secs),
        (asked.clone(), "deploys".into(), 600)
    );
    let mut notices = gateway.engine().notices();
    gateway.door.run_expiry().await;
    gateway.clock.pass(minutes(11));
    gateway.door.run_expiry().await;
    let told = loop {
        if let proctor_engine::Notice::Decided(id, allowed) = notices.recv().await.unwrap() {
            break (id.to_string(), allowed);
        }
    };
    assert_eq!(told, (asked.clone(), false));
    gateway.door.run_expiry().await;
    let ended: Vec<String> =
        records(&gateway, RecordKind::Approval).into_iter().map(|(envelope, _)| envelope.code).collect();
    assert_eq!(ended, ["expired"], "it is on record, once");
    let (success, message) = decide(&gateway, ALICE, &asked, true).await.unwrap();
    assert!(!success && message.contains("expired"), "{message}");
    let response = gateway.tool(&agent, "deploy", "{}").await;
    assert_eq!(response.decision(), Decision::Deny, "{}", response.reason);
    gateway.door.close();
    assert!(watching.next().await.is_none(), "a closed door ends its streams");
}
