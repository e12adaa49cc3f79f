//! An agent as a process: one request.

use std::io;

use proctor_net::lines::{Line, Lines};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::{Agent, AgentServer, Execution, Outgoing, Refusal};

impl<A: Agent> AgentServer<A> {
    /// Executes the request on standard input: events go to standard error, the response to standard output. Nothing else may write
    /// there.
    pub async fn run_stdio(&self) -> io::Result<()> {
        use proctor_net::stdio::{input, output};
        self.serve_pipes(input(), output(), tokio::io::stderr()).await
    }

    /// Executes one request, the first line of `input` that is not empty: events go to `errors`, the response to `output`, one line
    /// each.
    ///
    /// A platform that does not read the events gets a response all the same.
    pub async fn serve_pipes<R, W, E>(&self, input: R, mut output: W, mut errors: E) -> io::Result<()>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
        E: AsyncWrite + Unpin,
    {
        let response = match self.read_request(input).await? {
            Ok(execution) => forward(execution, &mut errors).await,
            Err(refusal) => refusal.response,
        };
        write_line(&mut output, response).await?;
        output.shutdown().await
    }

    async fn read_request(&self, input: impl AsyncRead + Unpin) -> io::Result<Result<Execution, Refusal>> {
        let mut lines = Lines::new(input, self.inner.max_request);
        loop {
            return Ok(match lines.next().await? {
                Some(Line::Text(text)) if text.trim_ascii().is_empty() => continue,
                Some(Line::Text(text)) => self.begin(&text),
                Some(Line::TooLong(_)) => Err(self.too_large()),
                None => self.begin(b""),
            });
        }
    }
}

/// Writes the events; the response.
async fn forward(mut execution: Execution, errors: &mut (impl AsyncWrite + Unpin)) -> String {
    while let Some(message) = execution.next().await {
        match message {
            Outgoing::Event(text) => {
                let _ = write_line(errors, text).await;
            }
            Outgoing::Response(text) => return text,
        }
    }
    String::new()
}

async fn write_line(writer: &mut (impl AsyncWrite + Unpin), mut text: String) -> io::Result<()> {
    text.push('\n');
    writer.write_all(text.as_bytes()).await?;
    writer.flush().await
}
