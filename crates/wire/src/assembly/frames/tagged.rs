//! Tagged frames of the runtime socket: a tag byte names the type of the payload.

use std::marker::PhantomData;

use prost::{Message, Name};

use super::buffer::{Buffer, delimited};
use super::{FrameError, length};
use crate::assembly::proto::audit::v1::{AuditEvent, PolicyViolation};
use crate::assembly::proto::event::v1::ApprovalDecision;
use crate::assembly::proto::ipc::v1::{HandshakeChallenge, HandshakeProof};
use crate::assembly::proto::policy::v1::{CheckActionRequest, CheckActionResponse};
use crate::assembly::unpack::unpack;

/// Frames from an agent's library.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "the large ones are the common ones, and live for one step")]
pub enum ClientFrame {
    /// Policy query; answered in the order of asking.
    PolicyQuery(CheckActionRequest),
    /// Event report frame.
    EventReport(AuditEvent),
    /// A person's decision on an approval.
    ApprovalResponse(ApprovalDecision),
    /// Heartbeat: one byte.
    Heartbeat,
    /// The answer to the challenge: the first frame.
    HandshakeProof(HandshakeProof),
}

/// Frames from a runtime.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerFrame {
    /// The answer to the oldest query without one.
    PolicyResponse(CheckActionResponse),
    /// Outcome of an approval, sent unasked.
    ApprovalDecision(ApprovalDecision),
    /// Acknowledgement.
    Ack,
    /// Report of a violation, forwarded from the gateway.
    ViolationAlert(PolicyViolation),
    /// The nonce that the client has to sign: the first frame of a connection.
    HandshakeChallenge(HandshakeChallenge),
}

/// A frame of one direction.
pub trait TaggedFrame: Sized {
    /// Reads the frame at the start of `bytes`, and how many bytes it took. `None`: more bytes are needed.
    fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, FrameError>;
}

/// Reads the frames of an agent's library.
pub type ClientDecoder = TaggedDecoder<ClientFrame>;

/// Reads the frames of a runtime.
pub type ServerDecoder = TaggedDecoder<ServerFrame>;

/// Reads the frames of one direction.
#[derive(Debug)]
pub struct TaggedDecoder<F> {
    buffer: Buffer,
    direction: PhantomData<fn() -> F>,
}

impl<F: TaggedFrame> TaggedDecoder<F> {
    /// A decoder that was fed nothing.
    pub fn new() -> Self {
        Self { buffer: Buffer::default(), direction: PhantomData }
    }

    /// Keeps what was read, and returns what did not fit: feed that once the frames were taken.
    #[must_use = "what did not fit must be fed again"]
    pub fn feed<'bytes>(&mut self, bytes: &'bytes [u8]) -> &'bytes [u8] {
        self.buffer.feed(bytes)
    }

    /// The next frame, or `None` until more is fed. An error stays.
    pub fn next_frame(&mut self) -> Result<Option<F>, FrameError> {
        self.buffer.take(F::read)
    }

    /// Number of bytes that were fed and belong to no frame yet: at the end of a stream, not 0 means that it was cut.
    pub fn pending(&self) -> usize {
        self.buffer.pending()
    }
}

impl<F: TaggedFrame> Default for TaggedDecoder<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl ClientFrame {
    const POLICY_QUERY: u8 = 1;
    const EVENT_REPORT: u8 = 2;
    const APPROVAL_RESPONSE: u8 = 3;
    const HEARTBEAT: u8 = 4;
    const HANDSHAKE_PROOF: u8 = 5;

    /// Appends the frame. On an error nothing is appended.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), FrameError> {
        match self {
            Self::PolicyQuery(message) => append(Self::POLICY_QUERY, message, out),
            Self::EventReport(message) => append(Self::EVENT_REPORT, message, out),
            Self::ApprovalResponse(message) => append(Self::APPROVAL_RESPONSE, message, out),
            Self::Heartbeat => {
                out.push(Self::HEARTBEAT);
                Ok(())
            }
            Self::HandshakeProof(message) => append(Self::HANDSHAKE_PROOF, message, out),
        }
    }

    /// The name of the kind, for logs and errors.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::PolicyQuery(_) => "policy query",
            Self::EventReport(_) => "event report",
            Self::ApprovalResponse(_) => "approval response",
            Self::Heartbeat => "heartbeat",
            Self::HandshakeProof(_) => "handshake proof",
        }
    }
}

impl TaggedFrame for ClientFrame {
    fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, FrameError> {
        let Some((tag, rest)) = bytes.split_first() else { return Ok(None) };
        match *tag {
            Self::POLICY_QUERY => payload("policy query", rest, Self::PolicyQuery),
            Self::EVENT_REPORT => payload("event report", rest, Self::EventReport),
            Self::APPROVAL_RESPONSE => payload("approval response", rest, Self::ApprovalResponse),
            Self::HEARTBEAT => Ok(Some((Self::Heartbeat, 1))),
            Self::HANDSHAKE_PROOF => payload("handshake proof", rest, Self::HandshakeProof),
            tag => Err(FrameError::UnknownTag(tag)),
        }
    }
}

impl ServerFrame {
    const POLICY_RESPONSE: u8 = 1;
    const APPROVAL_DECISION: u8 = 2;
    const ACK: u8 = 3;
    const VIOLATION_ALERT: u8 = 4;
    const HANDSHAKE_CHALLENGE: u8 = 5;

    /// Appends the frame. On an error nothing is appended.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), FrameError> {
        match self {
            Self::PolicyResponse(message) => append(Self::POLICY_RESPONSE, message, out),
            Self::ApprovalDecision(message) => append(Self::APPROVAL_DECISION, message, out),
            Self::Ack => append(Self::ACK, &(), out),
            Self::ViolationAlert(message) => append(Self::VIOLATION_ALERT, message, out),
            Self::HandshakeChallenge(message) => append(Self::HANDSHAKE_CHALLENGE, message, out),
        }
    }

    /// The name of the kind, for logs and errors.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::PolicyResponse(_) => "policy response",
            Self::ApprovalDecision(_) => "approval decision",
            Self::Ack => "ack",
            Self::ViolationAlert(_) => "violation alert",
            Self::HandshakeChallenge(_) => "handshake challenge",
        }
    }
}

impl TaggedFrame for ServerFrame {
    fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, FrameError> {
        let Some((tag, rest)) = bytes.split_first() else { return Ok(None) };
        match *tag {
            Self::POLICY_RESPONSE => payload("policy response", rest, Self::PolicyResponse),
            Self::APPROVAL_DECISION => payload("approval decision", rest, Self::ApprovalDecision),
            // Unknown fields are skipped in every message, in the empty one too.
            Self::ACK => payload("ack", rest, |()| Self::Ack),
            Self::VIOLATION_ALERT => payload("violation alert", rest, Self::ViolationAlert),
            Self::HANDSHAKE_CHALLENGE => payload("handshake challenge", rest, Self::HandshakeChallenge),
            tag => Err(FrameError::UnknownTag(tag)),
        }
    }
}

/// Appends a tag, the message's length and the message.
fn append(tag: u8, message: &impl Message, out: &mut Vec<u8>) -> Result<(), FrameError> {
    let length = message.encoded_len();
    let before = out.len();
    out.push(tag);
    if let Err(error) = length::put(length, out) {
        out.truncate(before);
        return Err(error);
    }
    out.reserve(length);
    message.encode_raw(out);
    Ok(())
}

/// Reads the length and the message after a tag, and counts the tag in.
fn payload<M: Name + Default, F>(
    kind: &'static str,
    rest: &[u8],
    frame: impl FnOnce(M) -> F,
) -> Result<Option<(F, usize)>, FrameError> {
    let Some((payload, length)) = delimited(rest)? else { return Ok(None) };
    let message = unpack(payload).map_err(|error| FrameError::BadMessage { kind, error })?;
    Ok(Some((frame(message), length.saturating_add(1))))
}

#[cfg(test)]
mod tests;
