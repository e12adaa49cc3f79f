//! The program with the other framings.

use proctor_wire::assembly::frames::{ClientFrame, ServerDecoder, ServerFrame};
use proctor_wire::assembly::proto::audit::v1::{AuditEvent, PolicyViolation, audit_event::Detail};
use proctor_wire::assembly::proto::common::v1::Decision;
use proctor_wire::assembly::proto::ipc::v1::HandshakeProof;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::assembly_runtime::program::{Program, denied_by, tracing};
use proctor_test_support::gateway::with_gateway;

#[tokio::test]
async fn the_first_libraries_are_answered_without_a_challenge() {
    let (folder, double, endpoint) = with_gateway();
    let variables = [("AA_GATEWAY_ENDPOINT", endpoint.as_str())];
    let program = Program::start(folder, &variables, &["--framing", "tagged-s"]).await;
    program.says("(framing tagged-s)").await;
    let mut library = program.first_library().await;
    library.send(&ClientFrame::Heartbeat).await;
    // They know no alerts: the next frame is the answer.
    let detail = Some(Detail::Violation(PolicyViolation::default()));
    let violation = AuditEvent { event_id: "v".into(), detail, ..AuditEvent::default() };
    library.send(&ClientFrame::EventReport(violation)).await;
    assert_eq!(library.trace("one").await.policy_rule, "of-the-gateway");
    assert_eq!(denied_by(&library.trace("redact").await), "runtime.redaction");
    double.until(|seen| seen.events.len() == 1).await;
    // A proof that nobody asked for ends the connection.
    let mut eager = program.first_library().await;
    eager.send(&ClientFrame::HandshakeProof(HandshakeProof::default())).await;
    program.says("a handshake proof that nobody asked for").await;
}

#[tokio::test]
async fn plain_frames_of_the_document_are_answered_in_order() {
    let (folder, _double, endpoint) = with_gateway();
    let variables = [("AA_GATEWAY_ENDPOINT", endpoint.as_str())];
    let program = Program::start(folder, &variables, &["--framing", "bare"]).await;
    program.says("(framing bare)").await;
    let mut stream = UnixStream::connect(&program.socket).await.unwrap();
    // A tagged frame without its tag is a plain one.
    let mut bytes = Vec::new();
    let traces = [("one", Decision::Allow), ("redact", Decision::Redact)];
    for (trace, _) in traces {
        let mut frame = Vec::new();
        ClientFrame::PolicyQuery(tracing(trace)).encode(&mut frame).unwrap();
        bytes.extend_from_slice(&frame[1..]);
    }
    stream.write_all(&bytes).await.unwrap();
    for (trace, decision) in traces {
        let length = stream.read_u8().await.unwrap();
        assert!(length < 128, "a length of one byte");
        let mut frame = vec![1, length];
        frame.resize(2 + usize::from(length), 0);
        stream.read_exact(&mut frame[2..]).await.unwrap();
        let mut decoder = ServerDecoder::new();
        assert!(decoder.feed(&frame).is_empty());
        let Some(ServerFrame::PolicyResponse(answer)) = decoder.next_frame().unwrap() else { panic!() };
        assert_eq!((answer.decision(), answer.reason.as_str()), (decision, trace));
        // These frames carry the whole answer, with what to cut.
        assert_eq!(answer.redact.is_some(), decision == Decision::Redact);
    }
}
