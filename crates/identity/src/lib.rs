//! Identities of tasks: providers that resolve credentials, delegation chains, and presentation to a process.

pub mod delegation;
pub mod environment;
pub mod error;
pub mod form;
pub mod http;
pub mod presentation;
mod provider;
pub mod resolver;
pub mod session;
pub mod sources;

pub use error::IdentityError;
pub use resolver::{ResolveOptions, Resolver};
pub use session::Session;
