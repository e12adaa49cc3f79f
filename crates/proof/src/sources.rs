//! Interfaces to the world that verification needs: value sources of manifests, and documents fetched by URL.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use proctor_core::json::Json;

use crate::secret::Secret;

/// Future of a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Resolver of value sources: objects with exactly one of `env`, `file`, `command`, `literal`.
pub trait ValueSources: Send + Sync {
    /// Resolves a value source. `variables` are added to the environment of a command.
    fn resolve<'a>(
        &'a self,
        source: &'a Json,
        variables: &'a [(&'a str, &'a str)],
    ) -> BoxFuture<'a, Result<Secret, SourceError>>;
}

/// Value source that gives no value. No variant holds a value; names and paths are in backticks, or paraphrased where they may be secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The source is no object with exactly one known member.
    #[error("a value source has exactly one of `env`, `file`, `command` and `literal`, as text")]
    Malformed,
    /// The environment variable is not set, or empty.
    #[error("the environment variable {0} is not set: set it, or name another one")]
    VariableUnset(String),
    /// The file does not exist.
    #[error("the file {0} does not exist")]
    FileNotFound(String),
    /// The file holds nothing but white space.
    #[error("the file {0} is empty")]
    FileEmpty(String),
    /// The file cannot be read.
    #[error("the file {path} cannot be read: {problem}")]
    FileUnreadable {
        /// Path in backticks, or a paraphrase where the text may be a secret.
        path: String,
        /// Cause, in the operating system's words.
        problem: String,
    },
    /// The value is longer than the limit.
    #[error("the value is longer than {0} bytes")]
    TooLong(usize),
    /// The value is not UTF-8.
    #[error("the value is not UTF-8 text")]
    NotText,
    /// The value is empty.
    #[error("the value is empty")]
    Empty,
    /// Commands are not allowed in this call.
    #[error("a value comes from a command, and commands are not allowed: allow them with `--allow-commands`")]
    CommandsNotAllowed,
    /// Policy refused the command.
    #[error("policy refused the command: {0}")]
    CommandRefused(String),
    /// The command could not be started, or failed.
    #[error("the command of a value source failed: {0}")]
    CommandFailed(String),
    /// The command did not end in time.
    #[error("the command of a value source did not end within {} s", .0.as_secs())]
    CommandTimeout(Duration),
}

/// Reader of documents by URL, such as key sets.
pub trait Fetch: Send + Sync {
    /// Fetches a document with `GET`, without following redirects.
    fn get<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Fetched, FetchError>>;
}

/// Document that was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Body of the answer.
    pub body: Vec<u8>,
    /// Freshness by `Cache-Control: max-age`; zero with `no-store` or `no-cache`.
    pub max_age: Option<Duration>,
}

/// Request that got no usable answer. No variant holds a URL or a body, which may hold secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The URL cannot be used.
    #[error("the URL {0}")]
    Address(&'static str),
    /// No connection, or a lost one.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The time limit passed.
    #[error("the server took longer than {} s", .0.as_secs())]
    Timeout(Duration),
    /// The body is longer than the limit.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
    /// The server redirects.
    #[error("the server redirects, which is not followed: name the final URL")]
    Redirect,
    /// The private authority's text holds no certificate.
    #[error("the private authority's text holds no PEM certificate")]
    Authority,
    /// The status is not 2xx.
    #[error("the server answered with status {0}")]
    Status(u16),
}
