use proptest::prelude::*;

use super::super::{MAX_PAYLOAD, READ_CHUNK};
use super::*;
use crate::assembly::proto::audit::v1::CallStackNode;
use crate::assembly::proto::audit::v1::audit_event::Detail;
use crate::assembly::proto::common::v1::AgentId;
use crate::assembly::proto::policy::v1::action_context::Action;
use crate::assembly::proto::policy::v1::{ActionContext, RedactInstructions, RedactRule, ToolCallContext};

fn bytes_of_client(frames: &[ClientFrame]) -> Vec<u8> {
    let mut out = Vec::new();
    for frame in frames {
        frame.encode(&mut out).unwrap();
    }
    out
}

/// Feeds a stream in pieces that end at `cuts`, and takes frames after each.
fn frames<F: TaggedFrame>(bytes: &[u8], cuts: &[usize]) -> Result<(Vec<F>, usize), FrameError> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    let mut decoder = TaggedDecoder::new();
    let mut found = Vec::new();
    for piece in cuts.windows(2) {
        let mut rest = &bytes[piece[0]..piece[1]];
        loop {
            rest = decoder.feed(rest);
            while let Some(frame) = decoder.next_frame()? {
                found.push(frame);
            }
            if rest.is_empty() {
                break;
            }
        }
    }
    Ok((found, decoder.pending()))
}

#[test]
fn each_kind_has_its_tag_and_the_small_ones_their_exact_bytes() {
    let client = [
        (ClientFrame::PolicyQuery(CheckActionRequest::default()), vec![1, 0]),
        (
            ClientFrame::EventReport(AuditEvent { event_id: "e".into(), ..Default::default() }),
            vec![2, 3, 0x0a, 1, b'e'],
        ),
        (ClientFrame::ApprovalResponse(ApprovalDecision::default()), vec![3, 0]),
        (ClientFrame::Heartbeat, vec![4]),
        (ClientFrame::HandshakeProof(HandshakeProof::default()), vec![5, 0]),
    ];
    for (frame, expected) in client {
        let bytes = bytes_of_client(std::slice::from_ref(&frame));
        assert_eq!(bytes, expected, "{}", frame.kind());
        assert_eq!(frames(&bytes, &[]), Ok((vec![frame], 0)));
    }
    let server = [
        (
            ServerFrame::PolicyResponse(CheckActionResponse { decision: 2, ..Default::default() }),
            vec![1, 2, 0x08, 2],
        ),
        (ServerFrame::ApprovalDecision(ApprovalDecision::default()), vec![2, 0]),
        (ServerFrame::Ack, vec![3, 0]),
        (ServerFrame::ViolationAlert(PolicyViolation::default()), vec![4, 0]),
        (ServerFrame::HandshakeChallenge(HandshakeChallenge::default()), vec![5, 0]),
    ];
    for (frame, expected) in server {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes).unwrap();
        assert_eq!(bytes, expected, "{}", frame.kind());
        assert_eq!(frames(&bytes, &[]), Ok((vec![frame], 0)));
    }
}

#[test]
fn a_heartbeat_takes_one_byte_and_the_next_frame_follows_it() {
    let bytes = [4, 4, 1, 0, 4];
    let expected = vec![
        ClientFrame::Heartbeat,
        ClientFrame::Heartbeat,
        ClientFrame::PolicyQuery(CheckActionRequest::default()),
        ClientFrame::Heartbeat,
    ];
    assert_eq!(frames(&bytes, &[]), Ok((expected, 0)));
}

#[test]
fn an_unknown_tag_is_refused_before_anything_follows_it() {
    for tag in (0..=u8::MAX).filter(|tag| !(1..=5).contains(tag)) {
        assert_eq!(frames::<ClientFrame>(&[tag], &[]), Err(FrameError::UnknownTag(tag)));
        assert_eq!(frames::<ServerFrame>(&[tag], &[]), Err(FrameError::UnknownTag(tag)));
    }
}

#[test]
fn a_long_length_is_refused_before_the_payload_comes() {
    assert_eq!(frames::<ClientFrame>(&[1, 0x81, 0x80, 0x80, 0x04], &[]), Err(FrameError::TooLong(8_388_609)));
    assert_eq!(frames::<ClientFrame>(&[1, 0x80, 0x80, 0x80, 0x04], &[]), Ok((vec![], 5)));
    let mut endless = vec![2];
    endless.extend([0xFF; 10]);
    assert_eq!(frames::<ServerFrame>(&endless, &[]), Err(FrameError::BadLength));
}

#[test]
fn the_longest_message_passes_and_a_longer_one_is_not_written() {
    let query = |length: usize| {
        // Four bytes of tag and length of the text, so that the message has exactly `length`.
        ClientFrame::PolicyQuery(CheckActionRequest {
            trace_id: "t".repeat(length - 5),
            ..Default::default()
        })
    };
    let longest = query(MAX_PAYLOAD);
    let bytes = bytes_of_client(std::slice::from_ref(&longest));
    assert_eq!(bytes.len(), 1 + 4 + MAX_PAYLOAD);
    let cuts: Vec<usize> = (0..bytes.len()).step_by(READ_CHUNK).collect();
    assert_eq!(frames(&bytes, &cuts), Ok((vec![longest], 0)));
    let mut out = vec![9];
    assert_eq!(query(MAX_PAYLOAD + 1).encode(&mut out), Err(FrameError::TooLong(8_388_609)));
    assert_eq!(out, [9]);
}

#[test]
fn a_payload_that_is_not_its_message_is_refused_and_the_error_stays() {
    let mut decoder = ClientDecoder::new();
    assert!(decoder.feed(&[1, 2, 0x0a, 0x05, 4]).is_empty());
    let error = decoder.next_frame().unwrap_err();
    assert!(matches!(error, FrameError::BadMessage { kind: "policy query", .. }), "{error}");
    assert!(decoder.feed(&[4]).is_empty());
    assert_eq!(decoder.next_frame(), Err(error));
}

#[test]
fn deep_nesting_is_an_error_and_not_an_overflow() {
    let mut bytes = Vec::new();
    for _ in 0..2000 {
        let mut outer = vec![0x2a];
        prost::encode_length_delimiter(bytes.len(), &mut outer).unwrap();
        outer.append(&mut bytes);
        bytes = outer;
    }
    let mut event = vec![0xe2, 0x01];
    prost::encode_length_delimiter(bytes.len(), &mut event).unwrap();
    event.append(&mut bytes);
    let mut frame = vec![2];
    super::super::bare::encode(&event, &mut frame).unwrap();
    assert!(matches!(frames::<ClientFrame>(&frame, &[]), Err(FrameError::BadMessage { .. })));
}

#[test]
fn an_ack_may_carry_fields_of_a_later_version() {
    assert_eq!(frames(&[3, 2, 0x08, 1], &[]), Ok((vec![ServerFrame::Ack], 0)));
    assert!(frames::<ServerFrame>(&[3, 1, 0x0a], &[]).is_err());
}

fn agent() -> impl Strategy<Value = AgentId> {
    (".{0,8}", ".{0,8}", ".{0,40}").prop_map(|(org_id, team_id, agent_id)| AgentId {
        org_id,
        team_id,
        agent_id,
    })
}

fn query() -> impl Strategy<Value = ClientFrame> {
    let tool = (".{0,8}", prop::collection::vec(any::<u8>(), 0..400), any::<i32>());
    (prop::option::of(agent()), prop::option::of(tool), ".{0,20}").prop_map(|(agent_id, tool, trace_id)| {
        ClientFrame::PolicyQuery(CheckActionRequest {
            agent_id,
            trace_id,
            action_type: tool.as_ref().map_or(0, |tool| tool.2),
            context: tool.map(|(tool_name, args_json, _)| ActionContext {
                action: Some(Action::ToolCall(ToolCallContext {
                    tool_name,
                    args_json,
                    ..Default::default()
                })),
            }),
            ..Default::default()
        })
    })
}

fn client_frame() -> impl Strategy<Value = ClientFrame> {
    let event =
        (prop::option::of(agent()), prop::collection::btree_map(".{0,5}", ".{0,5}", 0..4), 0..3_usize)
            .prop_map(|(agent_id, labels, depth)| {
                let node = |children| CallStackNode { id: "n".into(), children, ..Default::default() };
                ClientFrame::EventReport(AuditEvent {
                    agent_id,
                    labels,
                    detail: Some(Detail::Violation(PolicyViolation::default())),
                    call_stack: (0..depth).fold(vec![], |children, _| vec![node(children)]),
                    ..Default::default()
                })
            });
    let decision = (".{0,20}", any::<bool>(), any::<i64>()).prop_map(|(approval_id, approved, at)| {
        ClientFrame::ApprovalResponse(ApprovalDecision {
            approval_id,
            approved,
            decided_at_unix_ms: at,
            ..Default::default()
        })
    });
    let proof = (prop::collection::vec(any::<u8>(), 0..70), ".{0,8}").prop_map(|(signature, sdk_version)| {
        ClientFrame::HandshakeProof(HandshakeProof { signature, sdk_version, ..Default::default() })
    });
    prop_oneof![query(), event, decision, Just(ClientFrame::Heartbeat), proof]
}

fn server_frame() -> impl Strategy<Value = ServerFrame> {
    let response = (any::<i32>(), ".{0,200}", prop::option::of(prop::collection::vec(".{0,9}", 0..3)))
        .prop_map(|(decision, reason, rules)| {
            let rules = rules.map(|paths| RedactInstructions {
                rules: paths
                    .into_iter()
                    .map(|field_path| RedactRule { field_path, ..Default::default() })
                    .collect(),
            });
            ServerFrame::PolicyResponse(CheckActionResponse {
                decision,
                reason,
                redact: rules,
                ..Default::default()
            })
        });
    let nonce = prop::collection::vec(any::<u8>(), 0..40)
        .prop_map(|nonce| ServerFrame::HandshakeChallenge(HandshakeChallenge { nonce }));
    let alert = ".{0,20}"
        .prop_map(|reason| ServerFrame::ViolationAlert(PolicyViolation { reason, ..Default::default() }));
    prop_oneof![
        response,
        nonce,
        alert,
        Just(ServerFrame::Ack),
        Just(ServerFrame::ApprovalDecision(ApprovalDecision::default()))
    ]
}

proptest! {
    #[test]
    fn what_a_client_writes_is_read_however_it_is_cut(
        sent in prop::collection::vec(client_frame(), 0..12),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let bytes = bytes_of_client(&sent);
        prop_assert_eq!(frames(&bytes, &cuts), Ok((sent.clone(), 0)));
        let every: Vec<usize> = (0..bytes.len()).collect();
        prop_assert_eq!(frames(&bytes, &every), Ok((sent, 0)));
    }

    #[test]
    fn what_a_server_writes_is_read_however_it_is_cut(
        sent in prop::collection::vec(server_frame(), 0..12),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let mut bytes = Vec::new();
        for frame in &sent {
            frame.encode(&mut bytes).unwrap();
        }
        prop_assert_eq!(frames(&bytes, &cuts), Ok((sent, 0)));
    }

    #[test]
    fn a_cut_stream_gives_the_whole_frames_and_says_that_something_is_left(
        sent in prop::collection::vec(client_frame(), 1..6),
        end: prop::sample::Index,
    ) {
        let bytes = bytes_of_client(&sent);
        let end = end.index(bytes.len());
        let (found, pending) = frames::<ClientFrame>(&bytes[..end], &[]).unwrap();
        let whole = bytes_of_client(&found).len();
        prop_assert_eq!(&found[..], &sent[..found.len()]);
        prop_assert_eq!(whole + pending, end);
    }

    #[test]
    fn random_bytes_give_frames_or_an_error_and_the_same_however_cut(
        bytes in prop::collection::vec(prop_oneof![0..8_u8, any::<u8>()], 0..300),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        prop_assert_eq!(frames::<ClientFrame>(&bytes, &[]), frames::<ClientFrame>(&bytes, &cuts));
        prop_assert_eq!(frames::<ServerFrame>(&bytes, &[]), frames::<ServerFrame>(&bytes, &cuts));
    }
}
