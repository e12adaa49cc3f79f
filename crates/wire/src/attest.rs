//! The Attest engine protocol, version 1: JSON-RPC 2.0, one object a line, on the standard streams of a child process.
//!
//! ```
//! use proctor_wire::attest::rpc;
//!
//! let line = rpc::repaired(br#"{"jsonrpc":"2.0","id":7,"method":"shutdown","params":{}}"#);
//! let request = rpc::read(&line).unwrap();
//! assert_eq!((request.id, request.method.as_ref()), (7, "shutdown"));
//! ```

pub mod message;
pub mod reply;
pub mod rpc;

/// The version of the protocol.
pub const PROTOCOL_VERSION: i64 = 1;

/// The longest line that a caller may send, without its end.
pub const MAX_LINE: usize = 10 * 1024 * 1024 - 1;

/// The longest line that every client reads: the official Python client breaks at 64 KiB.
pub const MAX_REPLY: usize = 60 * 1024;

/// The longest line that is sent to clients that read long ones.
pub const MAX_LONG_REPLY: usize = 16 * 1024 * 1024;

/// The most assertions of a batch that is answered with a long line.
pub const MAX_ASSERTIONS: usize = 10_000;

/// The longest name of an assertion, in bytes.
pub const MAX_ASSERTION_ID: usize = 256;
