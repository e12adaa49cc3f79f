//! Errors of followers, one enum for each operation.

use std::io;
use std::path::PathBuf;

use proctor_ledger::ReadError;
use proctor_wire::assembly::chain::{EntryError, SealError};

/// Failure to start a follower.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The operating system gave no thread.
    #[error("no thread for {name}: {source}")]
    Thread {
        /// The follower's name.
        name: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// The ledger could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The chained log could not be opened.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The webhook's settings cannot be used.
    #[error(transparent)]
    Webhook(#[from] WebhookError),
    /// The webhook's position could not be read or written.
    #[error(transparent)]
    Position(#[from] PositionError),
}

/// Failure to pass on all records before the deadline; the next start continues.
#[derive(Debug, thiserror::Error)]
pub enum FinishError {
    /// The thread still runs after the deadline.
    #[error("it did not end in time")]
    Timeout,
    /// The thread panicked.
    #[error("it failed inside")]
    Panicked,
    /// The chained log lacks lines.
    #[error("{0}: the log is completed at the next start")]
    Log(#[source] LogError),
    /// Events were not delivered.
    #[error("not everything was delivered: the next start goes on at record {next}")]
    Undelivered {
        /// The first record whose events are left.
        next: u64,
    },
}

/// Failure to open or extend the chained log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The log's file or folder cannot be used.
    #[error("{}: {source}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: LogFileError,
    },
    /// The ledger could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The deadline passed before the last record.
    #[error("there was not enough time")]
    Deadline,
}

/// Reason why the chained log's file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LogFileError {
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The path is not a regular file.
    #[error("it is not a file: move it away")]
    NotAFile,
    /// The lock is held by another process.
    #[error("another program writes it: end that one, or choose another folder")]
    Locked,
    /// The length is not the one after the last write.
    #[error("another program has changed it")]
    Modified,
    /// The path names another file, or none.
    #[error("it was moved or removed")]
    Moved,
    /// The only line does not parse.
    #[error("its only line is not one of an audit log: {0}")]
    OnlyLine(#[source] EntryError),
    /// The last two lines do not parse.
    #[error("its last lines are not those of an audit log: {0}")]
    LastLines(#[source] EntryError),
    /// The ledger could not be read while the last line's record was looked up.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The next entry cannot be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
}

/// Webhook settings that no event can be sent with. The URL may hold a secret, so no text repeats it.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// The URL does not parse.
    #[error("the webhook's URL cannot be read: {0}")]
    Url(#[source] <reqwest::Url as std::str::FromStr>::Err),
    /// The URL has another scheme, or no host.
    #[error("the webhook's URL must begin with http:// or https:// and name a host")]
    Scheme,
    /// The URL holds credentials.
    #[error("the webhook's URL holds a user name or password: use a secret instead")]
    Credentials,
    /// The secret is empty.
    #[error("the webhook's secret is empty: give one, or none at all")]
    EmptySecret,
    /// The HTTP client could not be built.
    #[error("the webhook: {}", innermost(.0))]
    Client(#[source] reqwest::Error),
    /// The runtime could not be built.
    #[error("the webhook: {0}")]
    Runtime(#[source] io::Error),
}

/// Failure to read or write the webhook's position.
#[derive(Debug, thiserror::Error)]
pub enum PositionError {
    /// The ledger's size could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The position's file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The file does not hold a number.
    #[error("{}: expected a number: remove the file to go on with what is recorded from now on", path.display())]
    NotANumber {
        /// The position's file.
        path: PathBuf,
    },
}

/// A word that names no [`EventKind`](crate::EventKind).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is not an event: there are {}", known.join(", "))]
pub struct UnknownEvent {
    /// The word, shortened.
    pub word: String,
    /// The words that name one.
    pub known: Vec<&'static str>,
}

/// The innermost cause of a request's error, which says most and does not repeat the URL.
pub(crate) fn innermost(error: &reqwest::Error) -> String {
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(error);
    let mut text = "the connection failed".to_owned();
    while let Some(inner) = cause {
        text = inner.to_string();
        cause = inner.source();
    }
    text
}
