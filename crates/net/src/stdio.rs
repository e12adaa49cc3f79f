//! Standard input and output: of this process as a server, and of a child process as a client.

pub mod client;

use tokio::io::{AsyncRead, AsyncWrite};

/// A reader of standard input.
pub type StandardInput = Box<dyn AsyncRead + Unpin + Send>;
/// A writer to standard output.
pub type StandardOutput = Box<dyn AsyncWrite + Unpin + Send>;

/// Standard input; a pipe is read without a thread in between.
pub fn input() -> StandardInput {
    #[cfg(target_os = "linux")]
    if let Ok(pipe) = tokio::net::unix::pipe::OpenOptions::new().open_receiver("/proc/self/fd/0") {
        return Box::new(pipe);
    }
    Box::new(tokio::io::stdin())
}

/// Standard output; a pipe is written without a thread in between.
///
/// Pipes are opened anew for readiness notification: setting the inherited descriptor non-blocking would change it for the other
/// processes that share it.
pub fn output() -> StandardOutput {
    #[cfg(target_os = "linux")]
    if let Ok(pipe) = tokio::net::unix::pipe::OpenOptions::new().open_sender("/proc/self/fd/1") {
        return Box::new(pipe);
    }
    Box::new(tokio::io::stdout())
}
