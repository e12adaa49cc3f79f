//! Approvals: listed, watched, decided, used once.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use aa_proto::assembly::approval::v1::{
    ApprovalDecisionType, DecideRequest, ListPendingRequest, WatchApprovalsRequest,
};
use aa_proto::assembly::common::v1::Decision;
use interop_assembly::actions::tool;
use interop_assembly::gateway::{PATIENCE, Place, Way};
use interop_assembly::link::{Link, bearing, bearing_as_bearer};
use interop_assembly::policies::ASKING;
use tonic::Code;

const NO_SUCH_APPROVAL: &str = "018f0000-0000-7000-8000-000000000000";

#[tokio::test]
async fn an_approval_is_listed_watched_granted_and_used_once() {
    for way in Way::ALL {
        let place = Place::new(ASKING);
        let alice = place.approver("alice");
        let gateway = place.start();
        let link = gateway.link_by(way).await;
        let agent = link.register("platform").await;
        let watch = bearing(&alice, WatchApprovalsRequest {});
        let mut watched = link.approvals().watch_approvals(watch).await.unwrap().into_inner();

        let asked = link.check(&agent, tool("deploy", r#"{"to":"production"}"#)).await;
        assert_eq!(asked.decision(), Decision::Pending, "{asked:?}");
        let event = tokio::time::timeout(PATIENCE, watched.message()).await.expect("an event in time");
        let event = event.unwrap().expect("the stream goes on");
        assert_eq!(event.request_id, asked.approval_id);

        let request = bearing_as_bearer(&alice, ListPendingRequest {});
        let pending = link.approvals().list_pending(request).await.unwrap().into_inner().requests;
        assert_eq!(pending.len(), 1, "{pending:?}");
        assert_eq!(pending[0].request_id, asked.approval_id);
        assert_eq!(pending[0].timeout_secs, 60);
        assert_eq!(pending[0].team_id, "platform");
        assert!(pending[0].submitted_at > 1_700_000_000, "seconds: {pending:?}");

        // Asking again does not make a second approval.
        let again = link.check(&agent, tool("deploy", r#"{"to":"production"}"#)).await;
        assert_eq!((again.decision(), &again.approval_id), (Decision::Pending, &asked.approval_id));

        let granted = link.decide(&alice, &asked.approval_id, ApprovalDecisionType::Approved).await.unwrap();
        assert!(granted.success, "{granted:?}");
        let twice = link.decide(&alice, &asked.approval_id, ApprovalDecisionType::Approved).await.unwrap();
        assert!(!twice.success && !twice.error_message.is_empty(), "{twice:?}");

        assert_eq!(link.decision(&agent, tool("deploy", r#"{"to":"test"}"#)).await, Decision::Pending);
        assert_eq!(link.decision(&agent, tool("deploy", r#"{"to":"production"}"#)).await, Decision::Allow);
        let next = link.check(&agent, tool("deploy", r#"{"to":"production"}"#)).await;
        assert_eq!(next.decision(), Decision::Pending, "a grant is used once: {next:?}");
        assert_ne!(next.approval_id, asked.approval_id);

        gateway.terminate().await;
        let log = std::fs::read_to_string(place.log()).unwrap();
        let granted = place.logged().into_iter().find(|entry| entry.event_type() == "ApprovalGranted");
        let granted = granted.unwrap_or_else(|| panic!("the grant is in the log: {log}"));
        assert!(granted.payload.to_string().contains("alice"), "who granted it is in the log: {granted:?}");
    }
}

#[tokio::test]
async fn what_was_rejected_is_denied_with_the_reason() {
    let place = Place::new(ASKING);
    let alice = place.approver("alice");
    let gateway = place.start();
    for way in Way::ALL {
        let link = gateway.link_by(way).await;
        let agent = link.register("platform").await;
        let asked = link.check(&agent, tool("deploy", "{}")).await;
        let request = DecideRequest {
            request_id: asked.approval_id,
            decision: ApprovalDecisionType::Rejected.into(),
            decided_by: String::new(),
            reason: "not on a Friday".into(),
        };
        assert!(link.approvals().decide(bearing(&alice, request)).await.unwrap().into_inner().success);
        let answer = link.check(&agent, tool("deploy", "{}")).await;
        assert_eq!(answer.decision(), Decision::Deny, "{answer:?}");
        assert!(answer.reason.contains("not on a Friday"), "{answer:?}");
    }
}

#[tokio::test]
async fn nobody_approves_for_themselves_and_no_agent_for_another() {
    let place = Place::new(ASKING);
    let alice = place.approver("alice");
    let gateway = place.start();
    for way in Way::ALL {
        let link = gateway.link_by(way).await;
        let (agent, mate) = (link.register("platform").await, link.register("platform").await);
        let asked = link.check(&agent, tool("deploy", "{}")).await;
        for token in [&agent.token, &mate.token] {
            let refused = link.decide(token, &asked.approval_id, ApprovalDecisionType::Approved).await;
            assert!(refuses(&refused), "{refused:?}");
        }
        assert_eq!(link.decision(&agent, tool("deploy", "{}")).await, Decision::Pending);
        assert!(
            link.decide(&alice, &asked.approval_id, ApprovalDecisionType::Approved).await.unwrap().success
        );
        assert_eq!(link.decision(&agent, tool("deploy", "{}")).await, Decision::Allow);
    }
}

fn refuses(answer: &Result<aa_proto::assembly::approval::v1::DecideResponse, tonic::Status>) -> bool {
    answer.as_ref().is_err_and(|status| status.code() == Code::PermissionDenied)
}

#[tokio::test]
async fn what_cannot_be_decided_is_said_exactly() {
    let place = Place::new(ASKING);
    let alice = place.approver("alice");
    let gateway = place.start();
    for way in Way::ALL {
        let link = gateway.link_by(way).await;
        let approved = ApprovalDecisionType::Approved;
        let unknown = link.decide(&alice, NO_SUCH_APPROVAL, approved).await.unwrap();
        assert!(!unknown.success && !unknown.error_message.is_empty(), "{unknown:?}");
        for (id, decision, reason) in [
            ("not-a-uuid", approved, "x"),
            (NO_SUCH_APPROVAL, ApprovalDecisionType::DecisionUnspecified, "x"),
            (NO_SUCH_APPROVAL, ApprovalDecisionType::Rejected, ""),
        ] {
            let request = DecideRequest {
                request_id: id.into(),
                decision: decision.into(),
                decided_by: String::new(),
                reason: reason.into(),
            };
            let refused = link.approvals().decide(bearing(&alice, request)).await.unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument, "{id} {decision:?} {reason:?}: {refused}");
        }
        for token in ["", "wrong"] {
            let refused = list(&link, token).await.unwrap_err();
            assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
            let refused = link.decide(token, NO_SUCH_APPROVAL, approved).await.unwrap_err();
            assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
            let watch = bearing(token, WatchApprovalsRequest {});
            let refused = link.approvals().watch_approvals(watch).await.unwrap_err();
            assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
        }
    }
}

async fn list(link: &Link, token: &str) -> Result<usize, tonic::Status> {
    let pending = link.approvals().list_pending(bearing(token, ListPendingRequest {})).await?;
    Ok(pending.into_inner().requests.len())
}
