//! The runtime's socket, byte by byte.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proctor_clients::assembly::runtime::{Framing, Push, RuntimeHandler, RuntimeOptions, UnixSocket, serve};
use proctor_wire::assembly::frames::bare::{self, BareDecoder};
use proctor_wire::assembly::frames::{ClientFrame, ServerDecoder, ServerFrame};
use proctor_wire::assembly::handshake;
use proctor_wire::assembly::proto::audit::v1::{AuditEvent, PolicyViolation, audit_event};
use proctor_wire::assembly::proto::common::v1::Decision;
use proctor_wire::assembly::proto::event::v1::ApprovalDecision;
use proctor_wire::assembly::proto::ipc::v1::HandshakeProof;
use proctor_wire::assembly::proto::policy::v1::{CheckActionRequest, CheckActionResponse};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;

const AGENT: &str = "agent-001";

/// State of the handler that a test sees.
struct Seen {
    asked: Mutex<Vec<String>>,
    reported: Mutex<Vec<String>>,
    closed: Mutex<Vec<String>>,
    /// Notification of each query, report and closed connection.
    news: Notify,
    /// Lets queries named `gate` through.
    gate: Notify,
    pushes: broadcast::Sender<Push>,
}

impl Seen {
    async fn until(&self, what: impl Fn(&Seen) -> bool) {
        loop {
            let news = self.news.notified();
            if what(self) {
                return;
            }
            news.await;
        }
    }

    async fn until_closed(&self, why: &str) {
        self.until(|seen| seen.closed.lock().unwrap().iter().any(|closed| closed.contains(why))).await;
    }
}

/// Does what the trace says.
struct Obedient(Arc<Seen>);

impl RuntimeHandler for Obedient {
    async fn check(&self, request: CheckActionRequest) -> CheckActionResponse {
        self.0.asked.lock().unwrap().push(request.trace_id.clone());
        self.0.news.notify_waiters();
        let mut decision = Decision::Allow.into();
        match request.trace_id.as_str() {
            "gate" => self.0.gate.notified().await,
            "never" => std::future::pending().await,
            "panic" => panic!("as told"),
            "redact" => decision = Decision::Redact.into(),
            "nothing" => decision = Decision::Unspecified.into(),
            "unknown" => decision = 77,
            "long" => {
                return CheckActionResponse { reason: "x".repeat(9 << 20), decision, ..Default::default() };
            }
            _ => {}
        }
        CheckActionResponse { decision, reason: request.trace_id, ..Default::default() }
    }

    async fn report(&self, event: AuditEvent) {
        assert!(event.event_id != "panic", "as told");
        if event.event_id == "slow" {
            self.0.gate.notified().await;
        }
        self.0.reported.lock().unwrap().push(event.event_id);
        self.0.news.notify_waiters();
    }

    fn subscribe_pushes(&self) -> Option<broadcast::Receiver<Push>> {
        Some(self.0.pushes.subscribe())
    }

    fn closed(&self, why: &str) {
        self.0.closed.lock().unwrap().push(why.to_owned());
        self.0.news.notify_waiters();
    }
}

struct Runtime {
    path: PathBuf,
    seen: Arc<Seen>,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
    _folder: tempfile::TempDir,
}

async fn start(options: RuntimeOptions) -> Runtime {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runtime.sock");
    let listener = UnixSocket::bind(&path).await.unwrap();
    let seen = Arc::new(Seen {
        asked: Mutex::default(),
        reported: Mutex::default(),
        closed: Mutex::default(),
        news: Notify::new(),
        gate: Notify::new(),
        pushes: broadcast::channel(16).0,
    });
    let stop = CancellationToken::new();
    let serving = tokio::spawn(serve(listener, options, Obedient(Arc::clone(&seen)), stop.clone()));
    Runtime { path, seen, stop, serving, _folder: folder }
}

fn plain() -> RuntimeOptions {
    RuntimeOptions { framing: Framing::TaggedS, ..RuntimeOptions::new(AGENT) }
}

struct Library {
    stream: UnixStream,
    decoder: ServerDecoder,
}

impl Runtime {
    async fn connect(&self) -> Library {
        Library { stream: UnixStream::connect(&self.path).await.unwrap(), decoder: ServerDecoder::new() }
    }

    async fn greeted(&self) -> Library {
        let mut library = self.connect().await;
        let challenge = library.frame().await.unwrap();
        library.send(&handshake::answer(AGENT, "0.0.1", &challenge).unwrap()).await;
        library.send(&ClientFrame::Heartbeat).await;
        library
    }
}

impl Library {
    async fn send(&mut self, frame: &ClientFrame) {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes).unwrap();
        self.stream.write_all(&bytes).await.unwrap();
    }

    async fn ask(&mut self, trace_id: &str) {
        self.send(&query(trace_id)).await;
    }

    /// The next frame; none when the runtime has closed, however it did that.
    async fn frame(&mut self) -> Option<ServerFrame> {
        loop {
            if let Some(frame) = self.decoder.next_frame().unwrap() {
                return Some(frame);
            }
            let mut chunk = vec![0; 65536];
            match self.stream.read(&mut chunk).await {
                Ok(0) | Err(_) => return None,
                Ok(length) => assert!(self.decoder.feed(&chunk[..length]).is_empty()),
            }
        }
    }

    async fn answer(&mut self) -> CheckActionResponse {
        match self.frame().await.unwrap() {
            ServerFrame::PolicyResponse(answer) => answer,
            other => panic!("{other:?}"),
        }
    }
}

fn query(trace_id: &str) -> ClientFrame {
    ClientFrame::PolicyQuery(CheckActionRequest { trace_id: trace_id.to_owned(), ..Default::default() })
}

fn report(event_id: &str) -> ClientFrame {
    ClientFrame::EventReport(AuditEvent { event_id: event_id.to_owned(), ..Default::default() })
}

#[tokio::test]
async fn answers_come_in_the_order_of_asking_although_the_first_is_slow() {
    let runtime = start(RuntimeOptions::new(AGENT)).await;
    let mut library = runtime.greeted().await;
    let traces = ["gate", "two", "three", "four"];
    for trace in traces {
        library.ask(trace).await;
    }
    // All are looked at, in this order, while the first still waits.
    runtime.seen.until(|seen| seen.asked.lock().unwrap().len() == 4).await;
    assert_eq!(*runtime.seen.asked.lock().unwrap(), traces);
    runtime.seen.gate.notify_one();
    for trace in traces {
        assert_eq!(library.answer().await.reason, trace);
    }
}

#[tokio::test]
async fn a_query_without_an_answer_in_time_is_denied_and_the_order_stays() {
    let runtime = start(RuntimeOptions { query_timeout: Duration::from_millis(100), ..plain() }).await;
    let mut library = runtime.connect().await;
    library.ask("never").await;
    library.ask("next").await;
    let late = library.answer().await;
    assert_eq!(late.decision(), Decision::Deny);
    assert_eq!(
        (late.reason.as_str(), late.policy_rule.as_str()),
        ("gateway did not answer in time", "runtime.timeout")
    );
    assert_eq!(library.answer().await.reason, "next");
}

#[tokio::test]
async fn whatever_goes_wrong_is_a_denial() {
    let runtime = start(plain()).await;
    let mut library = runtime.connect().await;
    for trace in ["panic", "nothing", "unknown", "long"] {
        library.ask(trace).await;
        let answer = library.answer().await;
        assert_eq!(answer.decision(), Decision::Deny, "{trace}");
        assert!(!answer.reason.is_empty() && !answer.policy_rule.is_empty(), "{trace}");
    }
}

#[tokio::test]
async fn a_redaction_is_a_denial_where_the_client_reads_the_decision_alone() {
    let tagged = start(RuntimeOptions::new(AGENT)).await;
    let untagged = start(plain()).await;
    for mut library in [tagged.greeted().await, untagged.connect().await] {
        library.ask("redact").await;
        let answer = library.answer().await;
        assert_eq!((answer.decision(), answer.policy_rule.as_str()), (Decision::Deny, "runtime.redaction"));
        assert_eq!(answer.redact, None);
    }
}

#[tokio::test]
async fn an_event_that_no_gateway_accepts_ends_its_connection() {
    let runtime = start(plain()).await;
    let event = |size: usize| {
        ClientFrame::EventReport(AuditEvent { event_id: "x".repeat(size), ..AuditEvent::default() })
    };
    let mut fits = runtime.connect().await;
    fits.send(&event(4_100_000)).await;
    runtime.seen.until(|seen| seen.reported.lock().unwrap().len() == 1).await;
    let mut long = runtime.connect().await;
    long.send(&event(4_200_000)).await;
    runtime.seen.until_closed("a gateway accepts at most").await;
    assert_eq!(runtime.seen.reported.lock().unwrap().len(), 1);
    fits.ask("one").await;
    assert_eq!(fits.answer().await.decision(), Decision::Allow);
}

#[tokio::test]
async fn connections_do_not_wait_for_each_other() {
    let runtime = start(RuntimeOptions::new(AGENT)).await;
    let mut slow = runtime.greeted().await;
    slow.ask("gate").await;
    runtime.seen.until(|seen| seen.asked.lock().unwrap().len() == 1).await;
    let mut silent = runtime.connect().await;
    let mut other = runtime.greeted().await;
    for _ in 0..100 {
        other.ask("quick").await;
        assert_eq!(other.answer().await.reason, "quick");
    }
    runtime.seen.gate.notify_one();
    assert_eq!(slow.answer().await.reason, "gate");
    // It was never served before its proof.
    assert!(matches!(silent.frame().await, Some(ServerFrame::HandshakeChallenge(_))));
}

#[tokio::test]
async fn one_that_does_not_read_is_closed_and_blocks_nobody() {
    let options = RuntimeOptions { write_timeout: Duration::from_millis(200), ..plain() };
    let runtime = start(options).await;
    let mut deaf = runtime.connect().await;
    let long = "y".repeat(100_000);
    let mut bytes = Vec::new();
    query(&long).encode(&mut bytes).unwrap();
    // Until the runtime reads no more, because its answers are not read.
    while let Ok(Ok(())) =
        tokio::time::timeout(Duration::from_millis(100), deaf.stream.write_all(&bytes)).await
    {}
    let mut other = runtime.connect().await;
    other.ask("quick").await;
    assert_eq!(other.answer().await.reason, "quick");
    runtime.seen.until_closed("does not read").await;
}

#[tokio::test]
async fn only_a_proof_opens_the_door() {
    let runtime = start(RuntimeOptions::new(AGENT)).await;
    let nonce = |frame: &ServerFrame| match frame {
        ServerFrame::HandshakeChallenge(challenge) => challenge.nonce.clone(),
        other => panic!("{other:?}"),
    };
    let mut nonces = Vec::new();
    let mut firsts = vec![ClientFrame::Heartbeat, query("quick"), report("e")];
    firsts.push(ClientFrame::HandshakeProof(HandshakeProof::default()));
    firsts.push(ClientFrame::HandshakeProof(handshake::prove(AGENT, &[0; 32], "1")));
    for first in firsts {
        let mut library = runtime.connect().await;
        nonces.push(nonce(&library.frame().await.unwrap()));
        library.send(&first).await;
        assert_eq!(library.frame().await, None, "{first:?}");
    }
    // The proof of another agent.
    let mut library = runtime.connect().await;
    let challenge = library.frame().await.unwrap();
    nonces.push(nonce(&challenge));
    library.send(&handshake::answer("agent-002", "", &challenge).unwrap()).await;
    assert_eq!(library.frame().await, None);
    nonces.sort();
    nonces.dedup();
    assert_eq!(nonces.len(), 6);
    // A second proof after the first.
    let mut library = runtime.greeted().await;
    library.send(&ClientFrame::HandshakeProof(HandshakeProof::default())).await;
    assert_eq!(library.frame().await, None);
    assert!(
        runtime.seen.asked.lock().unwrap().is_empty() && runtime.seen.reported.lock().unwrap().is_empty()
    );
}

#[tokio::test]
async fn silence_instead_of_a_proof_ends_the_connection() {
    let options = RuntimeOptions::new(AGENT);
    assert_eq!(options.handshake_timeout, Duration::from_secs(5));
    let runtime = start(RuntimeOptions { handshake_timeout: Duration::from_millis(100), ..options }).await;
    let mut library = runtime.connect().await;
    assert!(library.frame().await.is_some());
    assert_eq!(library.frame().await, None);
    runtime.seen.until_closed("no handshake proof in time").await;
}

#[tokio::test]
async fn the_idlest_connection_gives_way_to_a_new_one() {
    let runtime = start(RuntimeOptions { max_connections: 2, ..RuntimeOptions::new(AGENT) }).await;
    let mut first = runtime.greeted().await;
    let mut second = runtime.greeted().await;
    second.ask("quick").await;
    second.answer().await;
    let mut third = runtime.greeted().await;
    third.ask("quick").await;
    third.answer().await;
    assert_eq!(first.frame().await, None);
    second.ask("quick").await;
    second.answer().await;
}

#[tokio::test]
async fn wrong_frames_close_the_connection() {
    let wrong: [&[u8]; 6] = [
        &[9],
        &[0],
        // One byte over the limit, announced only.
        &[1, 0x81, 0x80, 0x80, 0x04],
        // A length of eleven bytes.
        &[1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80],
        // No message.
        &[1, 1, 0xFF],
        &[5, 0],
    ];
    let runtime = start(plain()).await;
    for bytes in wrong {
        let mut library = runtime.connect().await;
        library.stream.write_all(bytes).await.unwrap();
        assert_eq!(library.frame().await, None, "{bytes:?}");
    }
    // A stream that ends within a frame.
    let mut library = runtime.connect().await;
    library.stream.write_all(&[1, 5, 0]).await.unwrap();
    library.stream.shutdown().await.unwrap();
    runtime.seen.until_closed("within a frame").await;
    assert!(runtime.seen.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_frame_that_is_begun_must_be_finished() {
    let runtime = start(RuntimeOptions { frame_timeout: Duration::from_millis(100), ..plain() }).await;
    let mut library = runtime.connect().await;
    library.stream.write_all(&[1, 5, 0]).await.unwrap();
    assert_eq!(library.frame().await, None);
    runtime.seen.until_closed("not finished in time").await;
    // Silence between frames is fine.
    let mut library = runtime.connect().await;
    library.ask("one").await;
    library.answer().await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    library.ask("two").await;
    assert_eq!(library.answer().await.reason, "two");
}

#[tokio::test]
async fn frames_may_come_byte_by_byte_or_all_at_once() {
    let runtime = start(RuntimeOptions::new(AGENT)).await;
    let mut library = runtime.greeted().await;
    let mut bytes = Vec::new();
    for frame in [query("one"), ClientFrame::Heartbeat, report("e"), query("two")] {
        frame.encode(&mut bytes).unwrap();
    }
    for byte in &bytes {
        library.stream.write_all(std::slice::from_ref(byte)).await.unwrap();
        library.stream.flush().await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!((library.answer().await.reason, library.answer().await.reason), ("one".into(), "two".into()));
    let all = bytes.repeat(500);
    let (mut reader, mut writer) = library.stream.split();
    let writing = async {
        writer.write_all(&all).await.unwrap();
    };
    let reading = async {
        let mut decoder = ServerDecoder::new();
        let mut answers = 0;
        while answers < 1000 {
            let mut chunk = vec![0; 4096];
            let length = reader.read(&mut chunk).await.unwrap();
            assert!(length > 0);
            assert!(decoder.feed(&chunk[..length]).is_empty());
            while let Some(frame) = decoder.next_frame().unwrap() {
                let ServerFrame::PolicyResponse(answer) = frame else { panic!("{frame:?}") };
                assert_eq!(answer.reason, if answers % 2 == 0 { "one" } else { "two" });
                answers += 1;
            }
        }
    };
    tokio::join!(writing, reading);
    runtime.seen.until(|seen| seen.reported.lock().unwrap().len() == 501).await;
}

#[tokio::test]
async fn reports_go_in_order_and_violations_come_back() {
    let runtime = start(RuntimeOptions::new(AGENT)).await;
    let mut library = runtime.greeted().await;
    let violation = PolicyViolation { policy_rule: "r".into(), ..Default::default() };
    let detail = Some(audit_event::Detail::Violation(violation.clone()));
    library.send(&report("slow")).await;
    library.send(&report("panic")).await;
    let broken = AuditEvent { event_id: "violation".into(), detail, ..Default::default() };
    library.send(&ClientFrame::EventReport(broken)).await;
    library.send(&ClientFrame::ApprovalResponse(ApprovalDecision::default())).await;
    assert_eq!(library.frame().await, Some(ServerFrame::ViolationAlert(violation)));
    // A slow report does not hold queries up.
    library.ask("quick").await;
    assert_eq!(library.answer().await.reason, "quick");
    runtime.seen.gate.notify_one();
    runtime.seen.until(|seen| seen.reported.lock().unwrap().len() == 2).await;
    assert_eq!(*runtime.seen.reported.lock().unwrap(), ["slow", "violation"]);
}

#[tokio::test]
async fn pushes_reach_all_who_were_greeted() {
    let runtime = start(RuntimeOptions::new(AGENT)).await;
    let (mut one, mut two) = (runtime.greeted().await, runtime.greeted().await);
    for library in [&mut one, &mut two] {
        library.ask("quick").await;
        library.answer().await;
    }
    let decision = ApprovalDecision { approval_id: "p".into(), approved: true, ..Default::default() };
    runtime.seen.pushes.send(Push::ApprovalDecision(decision.clone())).unwrap();
    for library in [&mut one, &mut two] {
        assert_eq!(library.frame().await, Some(ServerFrame::ApprovalDecision(decision.clone())));
    }
}

#[tokio::test]
async fn the_first_libraries_get_no_frames_that_they_do_not_know() {
    let runtime = start(plain()).await;
    let mut library = runtime.connect().await;
    let detail = Some(audit_event::Detail::Violation(PolicyViolation::default()));
    library.send(&ClientFrame::EventReport(AuditEvent { detail, ..Default::default() })).await;
    library.ask("quick").await;
    // The first frame is the answer: no challenge and no alert.
    assert_eq!(library.answer().await.reason, "quick");
}

#[tokio::test]
async fn bare_frames_are_queries_and_answers() {
    let runtime = start(RuntimeOptions { framing: Framing::Bare, ..RuntimeOptions::new(AGENT) }).await;
    let mut stream = UnixStream::connect(&runtime.path).await.unwrap();
    let mut bytes = Vec::new();
    for trace_id in ["gate", "two"] {
        let query = CheckActionRequest { trace_id: trace_id.to_owned(), ..Default::default() };
        bare::encode(&prost::Message::encode_to_vec(&query), &mut bytes).unwrap();
    }
    // An empty query is one, too.
    bytes.push(0);
    stream.write_all(&bytes).await.unwrap();
    runtime.seen.until(|seen| seen.asked.lock().unwrap().len() == 3).await;
    runtime.seen.pushes.send(Push::ViolationAlert(PolicyViolation::default())).unwrap();
    runtime.seen.gate.notify_one();
    stream.shutdown().await.unwrap();
    let mut answers = Vec::new();
    stream.read_to_end(&mut answers).await.unwrap();
    let mut decoder = BareDecoder::new();
    assert!(decoder.feed(&answers).is_empty());
    for reason in ["gate", "two", ""] {
        let payload = decoder.next_frame().unwrap().unwrap();
        let answer: CheckActionResponse = prost::Message::decode(payload.as_slice()).unwrap();
        assert_eq!(answer.reason, reason);
    }
    assert_eq!((decoder.next_frame().unwrap(), decoder.pending()), (None, 0));
    let mut stream = UnixStream::connect(&runtime.path).await.unwrap();
    stream.write_all(&[2, 0xFF, 0xFF]).await.unwrap();
    assert!(matches!(stream.read(&mut [0; 1]).await, Ok(0) | Err(_)));
}

#[tokio::test]
async fn a_stop_answers_what_is_in_flight_and_removes_the_file() {
    let runtime = start(RuntimeOptions::new(AGENT)).await;
    assert_eq!(std::fs::metadata(&runtime.path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut library = runtime.greeted().await;
    library.ask("gate").await;
    runtime.seen.until(|seen| seen.asked.lock().unwrap().len() == 1).await;
    let idle = runtime.greeted().await;
    runtime.stop.cancel();
    runtime.seen.gate.notify_one();
    assert_eq!(library.answer().await.reason, "gate");
    assert_eq!(library.frame().await, None);
    runtime.serving.await.unwrap();
    assert!(!runtime.path.exists());
    drop(idle);
}

#[tokio::test]
async fn no_more_queries_are_taken_than_may_be_in_flight() {
    let runtime = start(RuntimeOptions { max_in_flight: 3, ..plain() }).await;
    let mut library = runtime.connect().await;
    library.ask("gate").await;
    for _ in 0..10 {
        library.ask("quick").await;
    }
    runtime.seen.until(|seen| seen.asked.lock().unwrap().len() == 3).await;
    let mut other = runtime.connect().await;
    other.ask("other").await;
    other.answer().await;
    assert_eq!(runtime.seen.asked.lock().unwrap().len(), 4);
    runtime.seen.gate.notify_one();
    for _ in 0..11 {
        library.answer().await;
    }
}
