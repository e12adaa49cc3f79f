//! The three ways in which messages stand on the socket.

use proctor_wire::assembly::frames::bare::{self, BareDecoder};
use proctor_wire::assembly::frames::{ClientDecoder, ClientFrame, FrameError, ServerFrame};
use proctor_wire::assembly::unpack::unpack;
use prost::Message;

/// What the bytes on the socket mean.
///
/// ```
/// use proctor_net::assembly::runtime::Framing;
///
/// assert_eq!("tagged-s".parse(), Ok(Framing::TaggedS));
/// assert_eq!(Framing::Bare.to_string(), "bare");
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Framing {
    /// A tag, a length and a message; the server speaks first and asks for a proof. What released libraries speak.
    #[default]
    Tagged,
    /// The same without the proof and without alerts: what the first libraries spoke.
    TaggedS,
    /// A length and a query, a length and an answer: what the specification says.
    Bare,
}

impl Framing {
    /// Whether the server asks for a proof first.
    pub(super) fn shakes_hands(self) -> bool {
        self == Framing::Tagged
    }
}

impl std::str::FromStr for Framing {
    type Err = String;

    fn from_str(text: &str) -> Result<Framing, String> {
        match text {
            "tagged" => Ok(Framing::Tagged),
            "tagged-s" => Ok(Framing::TaggedS),
            "bare" => Ok(Framing::Bare),
            other => Err(format!("framing `{other}` is not known: use `tagged`, `tagged-s` or `bare`")),
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

/// Reads frames of either form.
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

    /// Keeps what was read. After `next_frame` said that there is none, every read of the wire crate's chunk size fits; what does not
    /// is an error, because it would be lost.
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

    /// How many bytes belong to no frame yet.
    pub(super) fn pending(&self) -> usize {
        match self {
            Decoder::Tagged(decoder) => decoder.pending(),
            Decoder::Bare(decoder) => decoder.pending(),
        }
    }
}

/// Appends a frame. What the framing has no form for is left out.
pub(super) fn encode(framing: Framing, frame: &ServerFrame, out: &mut Vec<u8>) -> Result<(), FrameError> {
    match (framing, frame) {
        (Framing::TaggedS, ServerFrame::ViolationAlert(_) | ServerFrame::HandshakeChallenge(_)) => Ok(()),
        (Framing::Tagged | Framing::TaggedS, frame) => frame.encode(out),
        (Framing::Bare, ServerFrame::PolicyResponse(answer)) => bare::encode(&answer.encode_to_vec(), out),
        (Framing::Bare, _) => Ok(()),
    }
}
