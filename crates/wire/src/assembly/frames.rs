//! The frames of the local socket between an agent's library and its runtime: bytes in, frames out, no I/O.
//!
//! Two forms. [`bare`] is a length and a payload. The socket itself speaks [tagged](TaggedDecoder) frames: a tag, a length and a payload,
//! except for the heartbeat, which is its tag alone. There is no frame for an error: a reader closes the connection at an invalid frame.
//!
//! A decoder is fed what was read and then asked for frames until there are none. It holds at most one frame and one read: what does
//! not fit is handed back, to be fed again once the frames were taken.

pub mod bare;
mod buffer;
mod length;
mod tagged;

pub use buffer::READ_CHUNK;
pub use tagged::{ClientDecoder, ClientFrame, ServerDecoder, ServerFrame, TaggedDecoder, TaggedFrame};

use super::unpack::UnpackError;

/// The longest payload, in bytes.
pub const MAX_PAYLOAD: usize = 8 * 1024 * 1024;

/// Error of reading or writing a frame. After one the connection cannot be read on.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum FrameError {
    /// The tag is none of the direction's.
    #[error("unknown frame tag `{0}`")]
    UnknownTag(u8),
    /// The length takes more than ten bytes, or more than 64 bits.
    #[error("frame length is not a varint of at most 64 bits")]
    BadLength,
    /// The payload is, or would be, over [`MAX_PAYLOAD`].
    #[error("frame of {0} bytes is over the limit of {MAX_PAYLOAD}")]
    TooLong(u64),
    /// The payload is not the message that the tag promises.
    #[error("payload of the {kind} frame is not its message: {error}")]
    BadMessage {
        /// The kind of frame.
        kind: &'static str,
        /// The decoding error.
        error: UnpackError,
    },
}
