//! Model providers for assertions: judges, embedding models, and a database of scores and cached answers.
//!
//! ```
//! use proctor_providers::vendor::{Endpoint, Key, Vendor, cost_usd};
//!
//! // Any server that speaks the same format will do.
//! let endpoint = Endpoint::usual(Vendor::OpenAi, Some(Key::new("secret"))).at("http://127.0.0.1:8000/v1");
//! assert!(!format!("{endpoint:?}").contains("secret"));
//! assert_eq!(cost_usd("gpt-4.1", 1_000_000, 0), Some(2.0));
//! assert_eq!(cost_usd("a model of your own", 1, 1), None);
//! ```

pub mod local;
pub mod store;
pub mod vendor;
