//! The halves of a client's connection, on any transport that keeps one.

mod lines;

pub use lines::{LineReader, LineWriter};

use std::io;
use std::time::Duration;

use bytes::Bytes;

/// The reading half of a connection.
pub trait MessageReader: Send + 'static {
    /// The next event; none once the connection has ended. Cancelling loses nothing.
    fn next(&mut self) -> impl Future<Output = Option<Received>> + Send;

    /// Closes the connection within the time, after the writing half was finished.
    fn finish(self, within: Duration) -> impl Future<Output = ()> + Send;
}

/// The writing half of a connection.
pub trait MessageWriter: Send + 'static {
    /// Writes one whole message.
    fn send(&mut self, text: String) -> impl Future<Output = io::Result<()>> + Send;

    /// Sends a ping, where the transport has one.
    fn ping(&mut self) -> impl Future<Output = io::Result<()>> + Send;

    /// Announces the end of the output.
    fn finish(self) -> impl Future<Output = ()> + Send;
}

/// An event on a connection.
#[derive(Debug)]
pub enum Received {
    /// A message.
    Text(Bytes),
    /// Other input that proves the peer to be alive: a pong, an overlong line.
    Activity,
}
