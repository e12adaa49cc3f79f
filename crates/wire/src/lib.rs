//! Messages, codecs and protocol rules of the protocols that Proctor serves. No I/O.
//!
//! ```
//! use proctor_wire::ahp::{Message, rpc};
//!
//! let line = br#"{"jsonrpc":"2.0","id":7,"method":"ahp/query","params":{}}"#;
//! let Ok(Message::Request { id, .. }) = rpc::read(line) else { panic!("a request") };
//! // An id comes back as it was sent.
//! let reply = rpc::respond(&id, &serde_json::json!({"answer": null})).unwrap();
//! assert_eq!(reply, r#"{"jsonrpc":"2.0","id":7,"result":{"answer":null}}"#);
//! ```

pub mod agentcli;
pub mod ahp;
pub mod assembly;
pub mod atp;
pub mod attest;
