//! Clients of model vendors: chat completions and embeddings.
//!
//! A [`Client`] speaks one vendor's HTTP interface. Its calls block the calling thread: the engine works on plain threads, and
//! the tasks behind a call run on a small runtime of the client's own, started at the first call and shared by all clones.
//!
//! Guarantees of every call:
//!
//! * it returns within the `deadline` it was given; that covers waiting for our own rate limit, retries and pauses,
//! * it never sends the key to another host (redirects are not followed), and no error text contains the key,
//! * it reads no more of a reply than [`Limits::max_reply_bytes`],
//! * it retries only what may pass by itself: a failed connection and the statuses 408, 429, 500, 502, 503, 504 and 529,
//! * an answer that was cut short or withheld by a filter is an error that names the reason, never a text.

mod backoff;
mod bucket;
mod client;
mod endpoint;
mod error;
mod exchange;
mod http;
mod prices;
mod wire;

pub use backoff::Backoff;
pub use bucket::TokenBucket;
pub use client::Client;
pub use endpoint::{Endpoint, Key, Limits, UnknownVendor, Vendor};
pub use error::ProviderError;
pub use exchange::{ChatReply, ChatRequest, Message, Role, Vectors};
pub use prices::cost_usd;
