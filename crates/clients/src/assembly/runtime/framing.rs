//! The framings of messages on the socket.

use proctor_wire::assembly::frames::bare::{self, BareDecoder};
use proctor_wire::assembly::frames::{ClientDecoder, ClientFrame, FrameError, ServerFrame};
use proctor_wire::assembly::unpack::unpack;
use prost::Message;

/// The framing of messages on the socket.
///
/// ```
/// use proctor_clients::assembly::runtime::Framing;
///
/// assert_eq!("tagged-s".parse(), Ok(Framing::TaggedS));
/// assert_eq!(Framing::Bare.to_string(), "bare");
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Framing {
    /// A tag, a length and a message, after a handshake that the server begins; used by released libraries.
    #[default]
    Tagged,
    /// Tagged, without handshake and alerts; used by the first libraries.
    TaggedS,
    /// A length and a query, a length and an answer; the specified framing.
    Bare,
}

impl Framing {
    /// Whether clients of this framing read redactions. Those of the tagged framings read the decision alone, and would run the action with its
    /// secrets.
    pub(super) fn carries_redactions(self) -> bool {
        self == Framing::Bare
    }

    /// Whether connections begin with a handshake.
    pub(super) fn has_handshake(self) -> bool {
        self == Framing::Tagged
    }
}

/// A name that is no framing's.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("framing `{0}` is not known: use `tagged`, `tagged-s` or `bare`")]
pub struct UnknownFraming(pub String);

impl std::str::FromStr for Framing {
    type Err = UnknownFraming;

    fn from_str(text: &str) -> Result<Framing, UnknownFraming> {
        match text {
            "tagged" => Ok(Framing::Tagged),
            "tagged-s" => Ok(Framing::TaggedS),
            "bare" => Ok(Framing::Bare),
            other => Err(UnknownFraming(other.to_owned())),
        }
    }
}

impl std::fmt::Display for Framing {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Framing::Tagged => "tagged",
            Framing::TaggedS => "tagged-s",
            Framing::Bare => "bare",
        })
    }
}

/// Decoder of client frames.
pub(super) enum Decoder {
    Tagged(ClientDecoder),
    Bare(BareDecoder),
}

impl Decoder {
    pub(super) fn new(framing: Framing) -> Decoder {
        match framing {
            Framing::Tagged | Framing::TaggedS => Decoder::Tagged(ClientDecoder::new()),
            Framing::Bare => Decoder::Bare(BareDecoder::new()),
        }
    }

    /// Buffers input. After `next_frame` returned none, a read of the wire crate's chunk size always fits; input that does not fit is an
    /// error, because it would be lost.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<(), FrameError> {
        let rest = match self {
            Decoder::Tagged(decoder) => decoder.feed(bytes),
            Decoder::Bare(decoder) => decoder.feed(bytes),
        };
        match rest {
            [] => Ok(()),
            rest => Err(FrameError::TooLong(u64::try_from(rest.len()).unwrap_or(u64::MAX))),
        }
    }

    /// The next frame, or `None` until more is fed.
    pub(super) fn next_frame(&mut self) -> Result<Option<ClientFrame>, FrameError> {
        match self {
            Decoder::Tagged(decoder) => decoder.next_frame(),
            Decoder::Bare(decoder) => {
                let Some(payload) = decoder.next_frame()? else { return Ok(None) };
                let query = unpack(&payload)
                    .map_err(|error| FrameError::BadMessage { kind: "policy query", error })?;
                Ok(Some(ClientFrame::PolicyQuery(query)))
            }
        }
    }

    /// The number of buffered bytes that belong to no complete frame.
    pub(super) fn pending(&self) -> usize {
        match self {
            Decoder::Tagged(decoder) => decoder.pending(),
            Decoder::Bare(decoder) => decoder.pending(),
        }
    }
}

/// Appends a frame. Frames that the framing does not have are left out.
pub(super) fn encode(framing: Framing, frame: &ServerFrame, out: &mut Vec<u8>) -> Result<(), FrameError> {
    match (framing, frame) {
        (Framing::TaggedS, ServerFrame::ViolationAlert(_) | ServerFrame::HandshakeChallenge(_)) => Ok(()),
        (Framing::Tagged | Framing::TaggedS, frame) => frame.encode(out),
        (Framing::Bare, ServerFrame::PolicyResponse(answer)) => bare::encode(&answer.encode_to_vec(), out),
        (Framing::Bare, _) => Ok(()),
    }
}
