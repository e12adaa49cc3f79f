//! Reports, topology, invalidations, control of operations and health.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::HashMap;

use aa_proto::assembly::approval::v1::ApprovalDecisionType;
use aa_proto::assembly::audit::v1::audit_event::Detail;
use aa_proto::assembly::audit::v1::{AuditEvent, LlmCallDetail, ReportEventsRequest, ToolCallDetail};
use aa_proto::assembly::common::v1::{ActionType, Decision, Timestamp};
use aa_proto::assembly::gateway::v1::invalidation_event::Payload;
use aa_proto::assembly::gateway::v1::subscribe_request::Kind;
use aa_proto::assembly::gateway::v1::{InvalidationEvent, SubscribeAck, SubscribeInitial, SubscribeRequest};
use aa_proto::assembly::topology::v1::{
    GetAgentTreeRequest, GetLineageRequest, GetTeamMembersRequest, ReportEdgeRequest,
};
use futures_util::stream;
use interop_assembly::actions::tool;
use interop_assembly::agent::Agent;
use interop_assembly::gateway::{PATIENCE, Place, Way};
use interop_assembly::link::{Link, bearing};
use interop_assembly::policies::{ASKING, OPEN};
use tonic::{Code, Streaming};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;

fn event(agent: &Agent, id: &str) -> AuditEvent {
    AuditEvent {
        event_id: id.into(),
        agent_id: Some(agent.id.clone()),
        occurred_at: Some(Timestamp { unix_ms: 1_790_000_000_123 }),
        action_type: ActionType::LlmCall.into(),
        decision: Decision::Allow.into(),
        trace_id: "trace-of-the-report".into(),
        span_id: "span-of-the-report".into(),
        parent_span_id: "span-above".into(),
        labels: HashMap::from([("phase".into(), "label-of-the-report".into())]),
        detail: Some(Detail::LlmCall(LlmCallDetail {
            model: "model-of-the-report".into(),
            prompt_tokens: 1234,
            completion_tokens: 567,
            latency_ms: 89,
            provider: "provider-of-the-report".into(),
            ..LlmCallDetail::default()
        })),
        ..AuditEvent::default()
    }
}

#[tokio::test]
async fn reports_are_kept_whole() {
    for way in Way::ALL {
        let place = Place::new(OPEN);
        let gateway = place.start();
        let link = gateway.link_by(way).await;
        let agent = link.register("platform").await;
        let ids = ["e-1", "e-2", "e-3"];
        let events = ids.iter().map(|id| event(&agent, id)).collect();
        let request = bearing(&agent.token, ReportEventsRequest { events });
        let answer = link.audit().report_events(request).await.unwrap().into_inner();
        assert_eq!(answer.event_ids, ids);

        let tool_call = AuditEvent {
            detail: Some(Detail::ToolCall(ToolCallDetail {
                tool_name: "tool-of-the-stream".into(),
                error_message: "error-of-the-stream".into(),
                ..ToolCallDetail::default()
            })),
            ..event(&agent, "e-4")
        };
        let sent = stream::iter([tool_call, event(&agent, "e-5")]);
        let answer = link.audit().stream_events(bearing(&agent.token, sent)).await.unwrap().into_inner();
        assert_eq!(answer.events_received, 2);

        gateway.terminate().await;
        let log = std::fs::read_to_string(place.log()).unwrap();
        for id in ["e-1", "e-2", "e-3", "e-4", "e-5"] {
            let reported = place.logged().into_iter().find(|entry| entry.payload["event_id"] == id);
            let reported =
                reported.unwrap_or_else(|| panic!("{id} is in the log: {log}")).payload.to_string();
            let detail = if id == "e-4" {
                &["tool-of-the-stream", "error-of-the-stream"][..]
            } else {
                &["model-of-the-report", "1234", "567", "89", "provider-of-the-report"][..]
            };
            let common = ["trace-of-the-report", "span-of-the-report", "span-above", "label-of-the-report"];
            for part in detail.iter().chain(&common) {
                assert!(reported.contains(part), "{part} is kept: {reported}");
            }
        }
    }
}

#[tokio::test]
async fn nobody_reports_for_another() {
    for way in Way::ALL {
        let place = Place::new(OPEN);
        let gateway = place.start();
        let link = gateway.link_by(way).await;
        let (agent, other) = (link.register("platform").await, link.register("platform").await);
        for token in ["", "wrong"] {
            let request = bearing(token, ReportEventsRequest { events: vec![event(&agent, "e-1")] });
            let refused = link.audit().report_events(request).await.unwrap_err();
            assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
        }
        let events = vec![event(&agent, "mine"), event(&other, "not-mine")];
        let request = bearing(&agent.token, ReportEventsRequest { events });
        let refused = link.audit().report_events(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
        let sent = stream::iter([event(&other, "not-mine")]);
        let refused = link.audit().stream_events(bearing(&agent.token, sent)).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
        gateway.terminate().await;
        assert!(
            place.logged().iter().all(|entry| entry.payload["event_id"].is_null()),
            "nothing was written"
        );
    }
}

#[tokio::test]
async fn topology_knows_who_started_whom() {
    for way in Way::ALL {
        let place = Place::new(OPEN);
        let gateway = place.start();
        let link = gateway.link_by(way).await;
        let root = link.register("platform").await;
        let child = link.register_child("platform", &root).await;
        let leaf = link.register_child("platform", &child).await;
        let stranger = link.register("other").await;

        let request = GetAgentTreeRequest { agent_id: root.topology_id(), max_depth: 0 };
        let tree = link.topology().get_agent_tree(bearing(&root.token, request)).await.unwrap().into_inner();
        let top = tree.root.expect("a root");
        assert_eq!(top.agent.as_ref().map(|agent| agent.id.clone()), Some(root.topology_id()));
        assert_eq!(top.children.len(), 1, "{top:?}");
        assert_eq!(top.children[0].children.len(), 1, "{top:?}");
        let request = GetAgentTreeRequest { agent_id: root.topology_id(), max_depth: 1 };
        let tree = link.topology().get_agent_tree(bearing(&root.token, request)).await.unwrap().into_inner();
        assert!(tree.root.expect("a root").children[0].children.is_empty(), "one level was asked for");

        let request = GetLineageRequest { agent_id: leaf.topology_id() };
        let lineage = link.topology().get_lineage(bearing(&leaf.token, request)).await.unwrap().into_inner();
        let ids: Vec<String> = lineage.ancestors.iter().map(|agent| agent.id.clone()).collect();
        assert_eq!(ids, [leaf.topology_id(), child.topology_id(), root.topology_id()]);
        let depths: Vec<u32> = lineage.ancestors.iter().map(|agent| agent.depth).collect();
        assert_eq!(depths, [2, 1, 0]);

        let request = GetTeamMembersRequest { team_id: "platform".into() };
        let team =
            link.topology().get_team_members(bearing(&root.token, request)).await.unwrap().into_inner();
        let mut members: Vec<String> = team.members.iter().map(|agent| agent.id.clone()).collect();
        let mut expected = [root.topology_id(), child.topology_id(), leaf.topology_id()];
        members.sort();
        expected.sort();
        assert_eq!(members, expected);
        assert!(!members.contains(&stranger.topology_id()));

        let edge = ReportEdgeRequest {
            source_agent_id: root.topology_id(),
            target_agent_id: child.topology_id(),
            edge_type: "delegates_to".into(),
            metadata_json: r#"{"why":"a test"}"#.into(),
        };
        let first =
            link.topology().report_edge(bearing(&root.token, edge.clone())).await.unwrap().into_inner().id;
        let second =
            link.topology().report_edge(bearing(&root.token, edge.clone())).await.unwrap().into_inner().id;
        assert_ne!(first, second);
        let wrong = ReportEdgeRequest { edge_type: "admires".into(), ..edge.clone() };
        let refused = link.topology().report_edge(bearing(&root.token, wrong)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        let refused = link.topology().report_edge(bearing("wrong", edge)).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
    }
}

#[tokio::test]
async fn invalidations_tell_of_new_policies_and_of_decided_approvals() {
    for way in Way::ALL {
        let place = Place::new(ASKING);
        let alice = place.approver("alice");
        let gateway = place.start();
        let link = gateway.link_by(way).await;
        let agent = link.register("platform").await;
        let mut events = subscribe(&link, &agent, "assembly-1").await;

        let asked = link.check(&agent, tool("deploy", "{}")).await;
        assert!(
            link.decide(&alice, &asked.approval_id, ApprovalDecisionType::Approved).await.unwrap().success
        );
        let event = next(&mut events).await;
        assert_eq!(event.seq, 1);
        let Some(Payload::ApprovalResolved(resolved)) = event.payload else { panic!("{event:?}") };
        assert_eq!(resolved.request_id, asked.approval_id);
        assert_eq!(resolved.decision(), aa_proto::assembly::gateway::v1::Decision::Approved);

        place.set_policy("version: \"1\"\ndefault: deny\n");
        let event = next(&mut events).await;
        assert_eq!(event.seq, 2);
        assert!(matches!(event.payload, Some(Payload::PolicyInvalidated(_))), "{event:?}");
        // The one that was granted is denied too: a deny of the policy wins over a grant.
        assert_eq!(link.decision(&agent, tool("deploy", "{}")).await, Decision::Deny);
    }
}

#[tokio::test]
async fn subscribing_needs_a_token_and_a_name() {
    let place = Place::new(OPEN);
    let gateway = place.start();
    for way in Way::ALL {
        let link = gateway.link_by(way).await;
        let agent = link.register("platform").await;
        for (token, assembly, code) in [
            ("", "assembly-1", Code::Unauthenticated),
            ("wrong", "assembly-1", Code::Unauthenticated),
            (agent.token.as_str(), "", Code::InvalidArgument),
        ] {
            let sent = stream::iter([initial(assembly)]);
            let refused = match link.invalidations().subscribe(bearing(token, sent)).await {
                Err(refused) => refused,
                Ok(answer) => answer.into_inner().message().await.unwrap_err(),
            };
            assert_eq!(refused.code(), code, "{token:?} {assembly:?}: {refused}");
        }
    }
}

fn initial(assembly: &str) -> SubscribeRequest {
    SubscribeRequest {
        assembly_id: assembly.into(),
        kind: Some(Kind::Initial(SubscribeInitial { last_seq_seen: 0 })),
    }
}

/// Subscribes and keeps its own side open.
async fn subscribe(link: &Link, agent: &Agent, assembly: &str) -> Streaming<InvalidationEvent> {
    let (first, ack) = (initial(assembly), Kind::Ack(SubscribeAck { seq: 0 }));
    let ack = SubscribeRequest { assembly_id: assembly.into(), kind: Some(ack) };
    let sent = futures_util::StreamExt::chain(stream::iter([first, ack]), stream::pending());
    link.invalidations().subscribe(bearing(&agent.token, sent)).await.unwrap().into_inner()
}

async fn next(events: &mut Streaming<InvalidationEvent>) -> InvalidationEvent {
    let event = tokio::time::timeout(PATIENCE, events.message()).await.expect("an event in time");
    event.unwrap().expect("the stream goes on")
}

#[tokio::test]
async fn health_is_served_to_everybody() {
    let place = Place::new(OPEN);
    let gateway = place.start();
    for way in Way::ALL {
        let link = gateway.link_by(way).await;
        for service in ["", "assembly.policy.v1.PolicyService", "assembly.audit.v1.AuditService"] {
            let answer = link.health().check(HealthCheckRequest { service: service.into() }).await.unwrap();
            assert_eq!(answer.into_inner().status(), ServingStatus::Serving, "{way:?} {service}");
        }
    }
}
