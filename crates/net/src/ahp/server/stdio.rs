//! Standard input and output.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

use super::{AhpServer, EventHandler, Peer, StreamLimits};

impl<H: EventHandler> AhpServer<H> {
    /// Serves the process that started this one, until its end of standard input is closed and it has all its answers.
    ///
    /// Nothing else may write to standard output.
    pub async fn run_stdio(&self) -> io::Result<()> {
        self.serve_stream(Peer::this_process(), input(), output(), &StreamLimits::stdio()).await
    }
}

/// What standard input is read from.
pub type StandardInput = Box<dyn AsyncRead + Unpin + Send>;
/// What standard output is written to.
pub type StandardOutput = Box<dyn AsyncWrite + Unpin + Send>;

/// Standard input, as fast as it can be had.
pub fn input() -> StandardInput {
    #[cfg(target_os = "linux")]
    if let Ok(pipe) = tokio::net::unix::pipe::OpenOptions::new().open_receiver("/proc/self/fd/0") {
        return Box::new(pipe);
    }
    Box::new(tokio::io::stdin())
}

/// Standard output, as fast as it can be had.
///
/// Pipes are opened anew: the kernel then tells when they are ready, without a thread in between, and the descriptors that other
/// processes share with us stay as blocking as they were.
pub fn output() -> StandardOutput {
    #[cfg(target_os = "linux")]
    if let Ok(pipe) = tokio::net::unix::pipe::OpenOptions::new().open_sender("/proc/self/fd/1") {
        return Box::new(pipe);
    }
    Box::new(tokio::io::stdout())
}
