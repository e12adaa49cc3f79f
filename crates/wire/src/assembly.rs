//! The Agent Assembly protocol: its messages, the frames of its local socket, and the identities in both.
//!
//! ```
//! use proctor_wire::assembly::frames::{ClientDecoder, ClientFrame};
//! use proctor_wire::assembly::proto::policy::v1::CheckActionRequest;
//!
//! let query = ClientFrame::PolicyQuery(CheckActionRequest { trace_id: "t".into(), ..Default::default() });
//! let mut bytes = Vec::new();
//! ClientFrame::Heartbeat.encode(&mut bytes).unwrap();
//! query.encode(&mut bytes).unwrap();
//! assert_eq!(bytes, [4, 1, 3, 0x1a, 1, b't']);
//!
//! let mut decoder = ClientDecoder::new();
//! assert!(decoder.feed(&bytes).is_empty());
//! assert_eq!(decoder.next_frame().unwrap(), Some(ClientFrame::Heartbeat));
//! assert_eq!(decoder.next_frame().unwrap(), Some(query));
//! assert_eq!(decoder.next_frame().unwrap(), None);
//! ```

pub mod chain;
pub mod did;
pub mod frames;
pub mod handshake;
pub mod proto;
pub mod unpack;
mod varint;

/// The longest message that the gRPC services accept, in bytes.
pub const MAX_GRPC_MESSAGE: usize = 4 * 1024 * 1024;
