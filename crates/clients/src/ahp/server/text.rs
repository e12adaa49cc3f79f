//! The server on transports that keep a connection: stdio, Unix socket and WebSocket.

use std::io;

use bytes::Bytes;
use proctor_net::connection::{Bounds, TextHandler, Work};
use proctor_net::stream;
use proctor_wire::ahp::rpc::{self, INVALID_REQUEST, Id, RpcError, Unreadable};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::{AhpServer, EventHandler, Peer, StreamLimits, safe};

impl<H: EventHandler> TextHandler for AhpServer<H> {
    const STOP_REASON: &'static str = "the harness stops";

    fn begin<'a>(
        &'a self,
        peer: &'a Peer,
        message: Bytes,
    ) -> Work<impl Future<Output = Option<String>> + Send + 'a, String> {
        let reservation = self.inner.bounds.memory.try_reserve_handling(message.len());
        match (rpc::read(&message), reservation) {
            (Ok(message), Some(reservation)) => {
                Work::Pending(self.handle_admitted(peer, message, reservation))
            }
            (Ok(message), None) => safe::overloaded(&message).map_or(Work::Done, Work::Reply),
            (Err(unreadable), _) => Work::Reply(self.refuse_unreadable(peer, &unreadable)),
        }
    }

    fn refuse_overlong(&self, peer: &Peer, limit: usize) -> String {
        let message = format!("Invalid request: a message is at most {limit} bytes long");
        let error = RpcError::new(INVALID_REQUEST, message);
        self.refuse_unreadable(peer, &Unreadable { id: Id::Null, error })
    }

    fn bounds(&self) -> &Bounds {
        &self.inner.bounds
    }
}

impl<H: EventHandler> AhpServer<H> {
    /// Serves one peer, a JSON message a line, until it closes its side and has all its replies.
    pub async fn serve_stream<R, W>(
        &self,
        peer: Peer,
        reader: R,
        writer: W,
        limits: &StreamLimits,
    ) -> io::Result<()>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        self.serve_stream_until(peer, reader, writer, limits, &CancellationToken::new()).await
    }

    /// Serves one peer like [`AhpServer::serve_stream`], until `stop` is cancelled: then messages in flight are answered.
    pub async fn serve_stream_until<R, W>(
        &self,
        peer: Peer,
        reader: R,
        writer: W,
        limits: &StreamLimits,
        stop: &CancellationToken,
    ) -> io::Result<()>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        stream::serve(self, &peer, reader, writer, limits, stop).await.map(drop)
    }

    /// Serves the process that started this one, until it closes standard input and has all its replies.
    ///
    /// Nothing else may write to standard output.
    #[cfg(feature = "stdio")]
    pub async fn run_stdio(&self) -> io::Result<()> {
        use proctor_net::stdio::{input, output};
        self.serve_stream(Peer::this_process(), input(), output(), &StreamLimits::stdio()).await
    }
}
