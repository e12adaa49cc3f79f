//! What Agent Assembly's agents, runtimes and auditors send: frames, registrations, lines of the audit log.

use proctor_clients::assembly::client::Identity;
use proctor_core::digest::Digest;
use proctor_core::random::SeededRandomness;
use proctor_wire::assembly::chain::{Chain, Entry, EventType, Finding, Outcome, Verifier};
use proctor_wire::assembly::did;
use proctor_wire::assembly::frames::bare::{self, BareDecoder};
use proctor_wire::assembly::frames::{
    ClientDecoder, ClientFrame, FrameError, ServerDecoder, ServerFrame, TaggedDecoder, TaggedFrame,
};
use proctor_wire::assembly::handshake::{self, NONCE_LEN, ServerHandshake};
use proctor_wire::assembly::proto::agent::v1::{ChallengeRequest, RegisterRequest};
use proctor_wire::assembly::proto::audit::v1::{AuditEvent, CallStackNode, PolicyViolation, audit_event};
use proctor_wire::assembly::proto::common::v1::AgentId;
use proctor_wire::assembly::proto::event::v1::ApprovalDecision;
use proctor_wire::assembly::proto::policy::v1::{
    ActionContext, CheckActionRequest, CheckActionResponse, RedactInstructions, RedactRule, ToolCallContext,
    action_context,
};
use proctor_wire::assembly::unpack::unpack;

use crate::fuzz::{Material, Violation, drive};

#[path = "assembly/door.rs"]
mod door;

const AGENT: &str = "agent-001";
const NONCE: [u8; NONCE_LEN] = [9; NONCE_LEN];

/// Tags, lengths and field keys.
const FRAME_WORDS: &[&str] = &[
    "\u{0}",
    "\u{1}",
    "\u{2}",
    "\u{3}",
    "\u{4}",
    "\u{5}",
    "\u{6}",
    "\u{1}\u{0}",
    "\u{4}\u{4}\u{4}",
    "\u{8}\u{2}",
    "\n\u{3}abc",
    "\u{12}\u{0}",
    "\u{1a}\u{1}t",
    "2\u{0}",
    "*\u{0}",
    "\u{7f}",
    "\u{80}\u{80}",
    "\u{e2}\u{1}",
    "t",
    "{}",
];

/// Something that takes bytes piece by piece and gives frames.
trait Decoder {
    type Frame: PartialEq + std::fmt::Debug;
    fn new() -> Self;
    fn feed(&mut self, bytes: &[u8]) -> usize;
    fn next(&mut self) -> Result<Option<Self::Frame>, FrameError>;
    fn pending(&self) -> usize;
    fn encode(frame: &Self::Frame, out: &mut Vec<u8>) -> Result<(), FrameError>;
}

/// A frame that can be written again.
trait Writable: TaggedFrame + PartialEq + std::fmt::Debug {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), FrameError>;
}

impl Writable for ClientFrame {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), FrameError> {
        self.encode(out)
    }
}

impl Writable for ServerFrame {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), FrameError> {
        self.encode(out)
    }
}

impl<F: Writable> Decoder for TaggedDecoder<F> {
    type Frame = F;
    fn new() -> Self {
        TaggedDecoder::new()
    }
    fn feed(&mut self, bytes: &[u8]) -> usize {
        TaggedDecoder::feed(self, bytes).len()
    }
    fn next(&mut self) -> Result<Option<F>, FrameError> {
        self.next_frame()
    }
    fn pending(&self) -> usize {
        TaggedDecoder::pending(self)
    }
    fn encode(frame: &F, out: &mut Vec<u8>) -> Result<(), FrameError> {
        frame.write(out)
    }
}

impl Decoder for BareDecoder {
    type Frame = Vec<u8>;
    fn new() -> Self {
        BareDecoder::new()
    }
    fn feed(&mut self, bytes: &[u8]) -> usize {
        BareDecoder::feed(self, bytes).len()
    }
    fn next(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        self.next_frame()
    }
    fn pending(&self) -> usize {
        BareDecoder::pending(self)
    }
    fn encode(frame: &Vec<u8>, out: &mut Vec<u8>) -> Result<(), FrameError> {
        bare::encode(frame, out)
    }
}

/// What a stream came to: its frames, and how it ended.
type Read<F> = (Vec<F>, Result<usize, FrameError>);

fn read<D: Decoder>(pieces: &[&[u8]]) -> Result<Read<D::Frame>, Violation> {
    let mut decoder = D::new();
    let mut frames = Vec::new();
    for piece in pieces {
        if decoder.feed(piece) != 0 {
            return Err("a short piece did not fit".into());
        }
        loop {
            match decoder.next() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => {
                    let _ = decoder.feed(b"\x04\x00\x01\x00");
                    if decoder.next() != Err(error.clone()) || decoder.pending() != 0 {
                        return Err(format!("it read on after `{error}`").into());
                    }
                    return Ok((frames, Err(error)));
                }
            }
        }
    }
    Ok((frames, Ok(decoder.pending())))
}

/// Pieces of any length, which are the same for the same bytes.
fn pieces(data: &[u8]) -> Vec<&[u8]> {
    let start = Digest::of(data).as_bytes().iter().fold(0, |sum: u64, byte| (sum << 1) ^ u64::from(*byte));
    let random = SeededRandomness::new(start);
    let most = [1, 3, 40, 1000][random.below(4) as usize];
    let mut rest = data;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at((1 + random.below(most) as usize).min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// Whatever the pieces, the same frames come out; written again they are the same frames, in one spelling.
fn frames<D: Decoder>(data: &[u8]) -> Result<Vec<D::Frame>, Violation> {
    let whole = read::<D>(&[data])?;
    let in_pieces = read::<D>(&pieces(data))?;
    if whole != in_pieces {
        return Err(format!("{whole:?} at once, {in_pieces:?} in pieces").into());
    }
    let (frames, _) = whole;
    let spell = |frames: &[D::Frame]| {
        let mut bytes = Vec::new();
        frames.iter().try_for_each(|frame| D::encode(frame, &mut bytes)).map(|()| bytes)
    };
    let bytes = spell(&frames).map_err(|error| format!("what was read cannot be written: {error}"))?;
    let (again, end) = read::<D>(&[&bytes])?;
    if again != frames || end != Ok(0) || spell(&again).as_ref() != Ok(&bytes) {
        return Err(format!("{frames:?} came back as {again:?}, {end:?}").into());
    }
    Ok(frames)
}

fn written<F: Writable>(frames: &[F]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in frames {
        frame.write(&mut bytes).unwrap();
    }
    bytes
}

fn agent() -> AgentId {
    AgentId { org_id: "o".into(), team_id: "t".into(), agent_id: Identity::generate([1; 32]).did() }
}

fn query() -> CheckActionRequest {
    let call = ToolCallContext {
        tool_name: "search".into(),
        args_json: br#"{"q":"x"}"#.to_vec(),
        ..Default::default()
    };
    CheckActionRequest {
        agent_id: Some(agent()),
        credential_token: "token".into(),
        trace_id: "trace".into(),
        span_id: "span".into(),
        action_type: 2,
        context: Some(ActionContext { action: Some(action_context::Action::ToolCall(call)) }),
        caller_agent_id: Some(AgentId::default()),
    }
}

fn event() -> AuditEvent {
    let node = CallStackNode {
        id: "1".into(),
        children: vec![CallStackNode { latency_ms: -1, ..Default::default() }; 3],
        ..Default::default()
    };
    AuditEvent {
        event_id: "e".into(),
        detail: Some(audit_event::Detail::Violation(violation())),
        labels: [("a".to_owned(), "b".to_owned()), (String::new(), String::new())].into(),
        call_stack: vec![node; 2],
        dry_run: true,
        ..Default::default()
    }
}

fn violation() -> PolicyViolation {
    PolicyViolation { policy_rule: "r".into(), latency_ms: i64::MIN, ..Default::default() }
}

#[test]
fn assembly_client_frames() {
    let proof = handshake::prove(AGENT, &NONCE, "0.0.1");
    let good = [proof.clone(), handshake::prove(AGENT, &NONCE, "")];
    let session = written(&[
        ClientFrame::HandshakeProof(proof),
        ClientFrame::Heartbeat,
        ClientFrame::PolicyQuery(query()),
        ClientFrame::EventReport(event()),
        ClientFrame::ApprovalResponse(ApprovalDecision { approved: true, ..Default::default() }),
        ClientFrame::Heartbeat,
    ]);
    let valid: &[&[u8]] = &[
        &session,
        &written(&[ClientFrame::HandshakeProof(good[1].clone())]),
        &written(&[
            ClientFrame::PolicyQuery(query()),
            ClientFrame::PolicyQuery(CheckActionRequest::default()),
        ]),
        &written(&[ClientFrame::EventReport(event())]),
    ];
    drive("assembly client frames", &Material { words: FRAME_WORDS, valid }, |data| {
        let Some(first) = frames::<ClientDecoder>(data)?.into_iter().next() else { return Ok(()) };
        // The did is not part of the proof.
        match ServerHandshake::new(AGENT, NONCE).accept(first) {
            Ok(proof)
                if !good.iter().any(|good| {
                    good.signature == proof.signature && good.sdk_version == proof.sdk_version
                }) =>
            {
                Err(format!("a proof that nobody made: {proof:?}").into())
            }
            _ => Ok(()),
        }
    });
}

#[test]
fn assembly_server_frames() {
    let redact = RedactInstructions { rules: vec![RedactRule::default(); 2] };
    let answer = CheckActionResponse {
        decision: 4,
        reason: "because".into(),
        redact: Some(redact),
        decision_latency_us: -1,
        ..Default::default()
    };
    let session = written(&[
        ServerHandshake::new(AGENT, NONCE).challenge(),
        ServerFrame::PolicyResponse(answer.clone()),
        ServerFrame::Ack,
        ServerFrame::ViolationAlert(violation()),
        ServerFrame::ApprovalDecision(ApprovalDecision::default()),
    ]);
    let valid: &[&[u8]] = &[
        &session,
        &written(&[ServerHandshake::new(AGENT, NONCE).challenge()]),
        &written(&[ServerFrame::PolicyResponse(answer)]),
    ];
    drive("assembly server frames", &Material { words: FRAME_WORDS, valid }, |data| {
        for frame in frames::<ServerDecoder>(data)? {
            let nonce = match &frame {
                ServerFrame::HandshakeChallenge(challenge) => Some(challenge.nonce.len()),
                _ => None,
            };
            let is_answered = handshake::answer(AGENT, "1", &frame).is_ok();
            if is_answered != (nonce == Some(NONCE_LEN)) {
                return Err(format!("signed: {is_answered}; asked to sign {nonce:?} bytes").into());
            }
        }
        Ok(())
    });
}

#[test]
fn assembly_bare_frames() {
    let mut some = Vec::new();
    for payload in [&b""[..], b"a", &[0xFF; 200], &vec![7; 20_000]] {
        bare::encode(payload, &mut some).unwrap();
    }
    // After the tag, a tagged frame is a bare one.
    let asked = written(&[ClientFrame::PolicyQuery(query())]).split_off(1);
    let valid: &[&[u8]] = &[&some, &asked, &asked.repeat(3)];
    let payload = read::<BareDecoder>(&[&asked]).unwrap().0.remove(0);
    assert!(unpack::<CheckActionRequest>(&payload).is_ok_and(|read| read == query()));
    drive("assembly bare frames", &Material { words: FRAME_WORDS, valid }, |data| {
        for payload in frames::<BareDecoder>(data)? {
            let _ = unpack::<CheckActionRequest>(&payload);
        }
        Ok(())
    });
}

/// A field of a message: bytes or text.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![(number << 3) | 2];
    bare::encode(value, &mut bytes).unwrap();
    bytes
}

fn agent_field(did: &[u8]) -> Vec<u8> {
    field(1, &[field(1, b"o"), field(2, b"t"), field(3, did)].concat())
}

/// What of a registration is bound to each other: agent, key, nonce, proof.
#[derive(Clone, PartialEq, Debug)]
struct Bound([Vec<u8>; 4]);

impl Bound {
    fn of(seed: u8) -> Bound {
        Bound::signed(seed, [seed ^ 0x55; 32])
    }

    fn signed(seed: u8, nonce: [u8; 32]) -> Bound {
        let identity = Identity::generate([seed; 32]);
        let (did, key) = (identity.did().into_bytes(), identity.public_key().into_bytes());
        Bound([did, key, nonce.to_vec(), identity.prove(&nonce)])
    }

    fn in_request(request: &RegisterRequest) -> Bound {
        let id = request.agent_id.clone().unwrap_or_default().agent_id;
        Bound([
            id.into_bytes(),
            request.public_key.clone().into_bytes(),
            request.registration_nonce.clone(),
            request.possession_proof.clone(),
        ])
    }

    fn request(&self) -> Vec<u8> {
        let Bound([did, key, nonce, proof]) = self;
        let texts = [field(2, b"name"), field(6, b"tool"), field(6, b""), field(8, &field(1, b"k"))].concat();
        [agent_field(did), texts, field(7, key), vec![12 << 3, 3], field(14, proof), field(15, nonce)]
            .concat()
    }

    /// What the gateway asks of it, apart from having given the nonce.
    fn verifies(&self) -> bool {
        let Bound([did, key, nonce, proof]) = self;
        let (Ok(did), Ok(key)) = (std::str::from_utf8(did), std::str::from_utf8(key)) else { return false };
        did::bound_key(did, key).is_ok_and(|key| did::verify_possession(&key, nonce, proof).is_ok())
    }

    /// With one byte of it changed, as the input says.
    fn changed(&self, data: &[u8]) -> Bound {
        let at = |place: usize| usize::from(data.get(place).copied().unwrap_or_default());
        let mut changed = self.clone();
        let part = &mut changed.0[at(0) % 4];
        match at(1) % 4 {
            0 => drop(part.pop()),
            1 => part.push(at(2) as u8),
            _ => {
                let place = (at(2) * 256 + at(3)) % part.len();
                part[place] ^= 1 << (at(4) % 8);
            }
        }
        changed
    }
}

#[test]
fn assembly_registrations() {
    let good = [1, 2, 3].map(Bound::of);
    let requests = good.each_ref().map(Bound::request);
    let [did, key, ..] = good[0].0.each_ref().map(|part| String::from_utf8_lossy(part).into_owned());
    let challenge = [agent_field(did.as_bytes()), field(2, key.as_bytes())].concat();
    for (good, request) in good.iter().zip(&requests) {
        assert_eq!(&Bound::in_request(&unpack(request).unwrap()), good);
        assert!(good.verifies());
    }
    assert!(unpack::<ChallengeRequest>(&challenge).is_ok_and(|asked| asked.public_key == key));
    let small_order = "0100000000000000000000000000000000000000000000000000000000000000";
    let words = &[
        "did:key:z",
        "did:key:z6Mk",
        "did:web:x",
        &did,
        &key,
        small_order,
        "0",
        "f",
        "F",
        "1",
        "\n",
        "\u{12}",
        ":@",
        "r@",
        "z ",
        "\u{0}",
        "\u{22}",
        "\u{1}",
        "\u{3c}",
        "\u{80}",
    ];
    let valid: &[&[u8]] = &[&requests[0], &requests[1], &requests[2], &challenge];
    drive("assembly registration", &Material { words, valid }, |data| {
        if let Ok(asked) = unpack::<ChallengeRequest>(data) {
            let id = asked.agent_id.unwrap_or_default().agent_id;
            if let Ok(key) = did::bound_key(&id, &asked.public_key)
                && (did::encode(key.as_bytes()) != id || did::key_text(key.as_bytes()) != asked.public_key)
            {
                return Err(format!("`{id}` and `{}` have another spelling", asked.public_key).into());
            }
        }
        if let Ok(request) = unpack::<RegisterRequest>(data) {
            let bound = Bound::in_request(&request);
            if bound.verifies() && !good.contains(&bound) {
                return Err(format!("nobody signed {bound:?}").into());
            }
        }
        for good in &good {
            let changed = good.changed(data);
            if changed.verifies() {
                return Err(format!("{good:?} still verifies as {changed:?}").into());
            }
        }
        Ok(())
    });
}

/// A log of every kind of line.
fn log(seed: u8) -> Vec<Entry> {
    let mut chain = Chain::default();
    let mut entries = Vec::new();
    for (place, event_type) in EventType::ALL.iter().enumerate() {
        let payload = format!("{{\"action\":\"tool-{place}\",\"text\":\"\u{e9}\\n\"}}");
        let mut entry = Entry::new(*event_type, 1_000 + place as u64, [seed; 16], [2; 16], payload);
        match place % 3 {
            0 => {}
            1 => {
                entry.root_agent_id = Some([3; 16]);
                entry.team_id = Some("team".to_owned());
                entry.depth = Some(7);
            }
            _ => {
                entry.credential_findings = vec![Finding::new("OpenAiKey", 5), Finding::new("AwsKey", 0)];
                entry.redacted_payload = Some("[REDACTED:OpenAiKey]".to_owned());
                entry.decision_id = Some("d".to_owned());
            }
        }
        let sealed = chain.seal(entry).unwrap();
        chain.written(&sealed);
        entries.push(sealed.entry);
    }
    entries
}

fn lines(entries: &[Entry]) -> Vec<u8> {
    entries.iter().flat_map(|entry| entry.to_line().into_bytes().into_iter().chain([b'\n'])).collect()
}

#[test]
fn assembly_audit_lines() {
    let logs = [log(1), log(2)];
    let texts = logs.each_ref().map(|entries| lines(entries));
    let short = lines(&logs[0][..2]);
    let one = logs[1][2].to_line();
    let words = &[
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\n",
        "\n\n",
        "null",
        "0",
        "-1",
        "255",
        "256",
        "1e3",
        "18446744073709551615",
        "18446744073709551616",
        "\"seq\":",
        "\"depth\":4294967296",
        "\"payload\":",
        "\"event_type\":\"PolicyViolation\"",
        "\"org_id\":null,",
        "\"org_id\":\"\",",
        "\"credential_findings\":[],",
        "\"kind\":\"x\"",
        "\\ud800",
        "\\u0000",
        " ",
    ];
    let valid: &[&[u8]] = &[&texts[0], &texts[1], &short, one.as_bytes()];
    drive("assembly audit line", &Material { words, valid }, |data| {
        let mut verifier = Verifier::default();
        let mut entries = Vec::new();
        for line in data.split(|byte| *byte == b'\n') {
            verifier.line(line);
            let Ok(entry) = Entry::parse(line) else { continue };
            let again = Entry::parse(entry.to_line()).map_err(|error| error.to_string())?;
            if again != entry || again.hash() != entry.hash() || again.to_line() != entry.to_line() {
                return Err(format!("{entry:?} came back as {again:?}").into());
            }
            entries.push(entry);
        }
        match verifier.finish() {
            // Nothing but whole lines that were cut off at the end goes unseen.
            Outcome::Verified { entries: found } => {
                let is_known = logs.iter().any(|log| log.starts_with(&entries));
                if found == entries.len() as u64 && is_known {
                    Ok(())
                } else {
                    Err("a changed log was verified".into())
                }
            }
            Outcome::Incomplete { start: None, truncated: None, gaps, .. } if gaps.count == 0 => {
                Err("it is said to be incomplete, and not why".into())
            }
            Outcome::Incomplete { entries: found, .. } | Outcome::Tampered { entries: found, .. } => {
                if found <= entries.len() as u64 {
                    Ok(())
                } else {
                    Err(format!("{found} entries of {}", entries.len()).into())
                }
            }
        }
    });
}
